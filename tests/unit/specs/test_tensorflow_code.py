"""The code for TensorFlow reads what Datum reads."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datum
from datum import Feature, Sparse, specs
from tests.unit.specs.kinds import CONTEXT, IMAGES, SEQUENCES, write_kinds

tf = pytest.importorskip("tensorflow")


def run(code: str, folder: Path) -> Any:
    """The dataset that the code makes, as a file of its own."""
    script = folder / "parse_records.py"
    script.write_text(code, encoding="utf-8")
    return runpy.run_path(str(script))["dataset"]


def rows_of(batches: Any) -> list[dict[str, Any]]:
    """The records of batches, as plain values."""
    rows: list[dict[str, Any]] = []
    for batch in batches:
        columns = {name: plain_column(column) for name, column in batch.items()}
        rows += (
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        )
    return rows


def plain_column(column: Any) -> list[Any]:
    if isinstance(column, tf.RaggedTensor):
        return column.to_list()
    if isinstance(column, tf.SparseTensor):
        rows: list[Any] = [[] for _ in range(int(column.dense_shape[0]))]
        for (row, *place), value in zip(
            column.indices.numpy().tolist(), column.values.numpy().tolist(), strict=True
        ):
            rows[row].append((place, value))
        return rows
    return list(map(plain_tensor, column))


def plain_tensor(value: Any) -> Any:
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    array = value.numpy()
    return array if isinstance(array, bytes) else array.tolist()


def expected_rows(split: Any, schema: Any) -> list[dict[str, Any]]:
    """What Datum reads, in TensorFlow's terms: bytes for texts, counts of units for times."""
    rows = []
    for record in split:
        row = {}
        for name, value in record.items():
            feature = schema[name]
            if feature.optional and feature.default is None:
                row[f"{name}_present"] = value is not None
            row[name] = None if value is None else plain(value, feature)
        rows.append(row)
    return rows


def plain(value: Any, feature: Any) -> Any:
    if isinstance(value, Sparse):
        pairs = zip(value.indices.tolist(), np.asarray(value.values).tolist(), strict=True)
        return [(place, item) for place, item in pairs]
    if isinstance(value, list):
        return [plain(item, feature) for item in value]
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    array = np.asarray(value)
    if array.dtype.kind in "mM":
        array = array.astype(np.int64)
    if array.dtype == object:
        return [plain(item, feature) for item in array.tolist()]
    return array.tolist()


def assert_alike(got: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(got) == len(expected)
    for left, right in zip(got, expected, strict=True):
        assert set(left) == set(right)
        for name, value in right.items():
            if value is not None:
                assert left[name] == value, name


def check(ds: datum.Dataset, **options: Any) -> str:
    pattern = str(ds.path / "train-*.tfrecord")
    code = specs.tensorflow(ds.schema, files=pattern, metadata=ds.metadata, **options)
    assert_alike(rows_of(run(code, ds.path.parent)), expected_rows(ds["train"], ds.schema))
    return code


def test_the_code_reads_every_kind_of_feature_in_batches(tmp_path: Path) -> None:
    code = check(write_kinds(tmp_path / "ds", CONTEXT), batch_size=3)
    assert "tf.io.parse_example(" in code
    assert ".batch(3).map(parse" in code


def test_the_code_reads_sequences_in_batches(tmp_path: Path) -> None:
    code = check(write_kinds(tmp_path / "ds", CONTEXT, SEQUENCES), batch_size=4)
    assert "tf.io.parse_sequence_example(" in code


def test_the_code_decodes_images_one_by_one_and_makes_ragged_batches(tmp_path: Path) -> None:
    code = check(write_kinds(tmp_path / "ds", CONTEXT, IMAGES), batch_size=4)
    assert "tf.io.parse_single_example(" in code
    assert ".ragged_batch(4)" in code


def test_the_code_reads_images_beside_sequences(tmp_path: Path) -> None:
    check(write_kinds(tmp_path / "ds", IMAGES, SEQUENCES, CONTEXT))


def test_patterns_files_and_compression_are_those_given(tmp_path: Path) -> None:
    schema = {"x": Feature("int64")}
    datum.write([{"x": 7}], tmp_path / "ds", schema=schema, compression="zlib", progress=False)
    files = [str(tmp_path / "ds" / "train-00000-of-00001.tfrecord")]
    code = specs.tensorflow(schema, files=files, compression="zlib", batch_size=None)
    assert [int(record["x"]) for record in run(code, tmp_path)] == [7]
    assert 'list_files(["a-*", "b-*"], shuffle=False)' in specs.tensorflow(
        schema, files=["a-*", "b-*"]
    )
    with pytest.raises(ValueError, match="expected `compression` None, gzip or zlib"):
        specs.tensorflow(schema, compression="xz")  # type: ignore[arg-type]


def test_class_names_and_notes_are_in_the_code() -> None:
    schema = {"label": Feature("int64"), "when": Feature("datetime64[s]")}
    code = specs.tensorflow(schema, metadata={"label": {"class_names": ["cat", "dog"]}})
    assert 'class_names = {\n    "label": ["cat", "dog"],\n}' in code
    assert '# "when": seconds since 1970-01-01, in UTC' in code
    assert "return tf.io.parse_example(serialized, feature_spec)" in code


def test_a_name_cannot_become_code() -> None:
    name = 'x"\nimport os  # \u2028'
    code = specs.tensorflow({name: Feature("datetime64[s]")})
    assert not any(line.startswith("import os") for line in code.splitlines())
