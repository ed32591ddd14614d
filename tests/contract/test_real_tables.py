"""Every cell of real CSV files, from the file to each framework, against Python's csv module."""

import csv
import io
import re

import numpy as np
import pytest

import datum
from tests.contract.source_files import decode_text

jax = pytest.importorskip("jax")
pytest.importorskip("tensorflow")
pytest.importorskip("torch")

INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
FLOAT = re.compile(r"-?((0|[1-9][0-9]*)\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WORDS = ("nan", "NaN", "NAN", "inf", "Inf", "INF", "-inf")
TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
BLANKS = ("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "none")


@pytest.fixture
def _wide_jax():
    """JAX with integers and floats of 64 bits."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def read_by_python(path):
    """The names and columns of a file, as texts."""
    text = decode_text(path)
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    assert all(len(row) == len(header) for row in rows), path
    return header, list(zip(*rows, strict=True))


def type_by_rule(cells):
    """The values of a column by the rule of the documentation, None where there is none."""
    given = [cell for cell in cells if cell not in BLANKS]
    if given and all(_is_integer(cell) for cell in given):
        return "int64", [None if cell in BLANKS else int(cell) for cell in cells]
    if given and all(cell in TRUTHS for cell in given):
        return "bool", [None if cell in BLANKS else TRUTHS[cell] for cell in cells]
    if given and all(_is_float(cell) for cell in given):
        wide = [cell for cell in given if INTEGER.fullmatch(cell) and abs(int(cell)) > 2**53]
        if not wide:
            return "float64", [None if cell in BLANKS else float(cell) for cell in cells]
    return "str", [cell or None for cell in cells]


def _is_integer(cell):
    is_written = INTEGER.fullmatch(cell) is not None and cell != "-0"
    return is_written and -(2**63) <= int(cell) < 2**63


def _is_float(cell):
    return cell in WORDS or (FLOAT.fullmatch(cell) is not None and np.isfinite(float(cell)))


def texts_of(column):
    """A column of any framework as a list of texts."""
    values = column.numpy() if hasattr(column, "numpy") else column
    return [one.decode() if isinstance(one, bytes) else one for one in values]


def count_same(batch, name, dtype, expected):
    """Compare a column of a batch; how many cells were compared."""
    present = np.array([value is not None for value in expected])
    if not present.all() and dtype == "float64":
        assert np.isnan(np.asarray(batch[name])[~present]).all(), name
    elif not present.all():
        assert np.array_equal(np.asarray(batch[f"{name}_present"]), present), name
    if dtype == "str":
        found = texts_of(batch[name])
        assert [one for one, is_there in zip(found, present, strict=True) if is_there] == [
            value for value in expected if value is not None
        ], name
    else:
        found = np.asarray(batch[name])
        wanted = np.array([0 if value is None else value for value in expected], dtype)
        if found.dtype.kind == "i":
            assert np.abs(wanted).max() < 2 ** (8 * found.dtype.itemsize - 1), name
        cast = wanted.astype(found.dtype)  # frameworks may have narrower floats, or store them
        assert found.dtype.kind == wanted.dtype.kind, name
        np.testing.assert_array_equal(found[present], cast[present], err_msg=name)
    return len(expected)


@pytest.mark.usefixtures("_wide_jax")
def test_every_cell_of_real_tables_is_the_same_in_every_framework(
    tmp_path, shared_data, record_property
):
    paths = [*sorted((shared_data / "csv").glob("*.csv")), shared_data / "sms_spam" / "spam.csv"]
    assert len(paths) > 100
    compared = 0
    for path in paths:
        header, columns = read_by_python(path)
        report = datum.write(path, tmp_path / "out", shuffle=False, overwrite=True, progress=False)
        assert not any("no header found" in note for note in report.notes), report
        ds = datum.load(tmp_path / "out")
        rows = len(columns[0])
        assert len(ds["train"]) == rows, path
        loaders = [
            call("train", batch_size=rows)
            for call in (ds.to_numpy, ds.to_torch, ds.to_jax, ds.to_tf)
        ]
        batches = [next(iter(loader)) for loader in loaders]
        names = iter(ds.schema)
        for title, cells in zip(header, columns, strict=True):
            if all(cell == "" for cell in cells):
                continue  # left out
            name = next(names)
            assert name == title or header.count(title) > 1 or not title, path
            dtype, expected = type_by_rule(cells)
            assert ds.schema[name].dtype.rstrip("0123456789") == dtype.rstrip("0123456789"), path
            compared += sum(count_same(batch, name, dtype, expected) for batch in batches)
        assert next(names, None) is None, path
    record_property("cells", compared)
    print(f"{compared:,} cells compared in {len(paths)} files")
    assert compared > 1_000_000
