"""The code for the package `tfrecord` reads what Datum reads."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datum
from datum import Feature, Sparse, specs
from tests.unit.specs.kinds import CONTEXT, IMAGES, SEQUENCES, write_kinds

if not all(map(importlib.util.find_spec, ("tfrecord", "torch"))):
    pytest.skip("the packages tfrecord and torch are not installed", allow_module_level=True)

# The package and TensorFlow define the same messages, and cannot both be loaded.
RUN = """
import pickle, runpy, sys
found = [list(runpy.run_path(script)["dataset"]) for script in sys.argv[2:]]
open(sys.argv[1], "wb").write(pickle.dumps(found))
"""


def read_with_package(*datasets: datum.Dataset) -> list[Any]:
    """The records of each dataset, read in a process of its own."""
    scripts = []
    for ds in datasets:
        files = str(ds.path / "train-*.tfrecord")
        script = ds.path.with_suffix(".py")
        code = specs.tfrecord(ds.schema, files=files, compression=ds.compression)
        script.write_text(code, encoding="utf-8")
        scripts.append(str(script))
    answer = datasets[0].path.with_suffix(".pickle")
    subprocess.run([sys.executable, "-c", RUN, str(answer), *scripts], check=True, timeout=240)
    found: list[Any] = pickle.loads(answer.read_bytes())
    return found


def assert_alike(got: Any, expected: Any) -> None:
    if isinstance(expected, Sparse):
        assert_alike(got[0], expected.indices)
        assert_alike(list(got[1]), list(expected.values))
    elif isinstance(expected, list):
        assert len(got) == len(expected)
        for left, right in zip(got, expected, strict=True):
            assert_alike(left, right)
    elif isinstance(got, list) and not got:
        assert len(expected) == 0  # of how many dimensions, an empty list does not say
    elif isinstance(expected, np.ndarray):
        assert np.asarray(got).shape == expected.shape
        assert np.asarray(got).dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    else:
        assert type(got) is type(expected)
        assert got == expected


def test_the_code_reads_every_kind_of_feature(tmp_path: Path) -> None:
    required = {"x": Feature("int64"), "steps": Feature("float32", (None,), sequence=True)}
    rows = [{"x": 1, "steps": [0.5]}, {"x": 2, "steps": []}]
    datum.write(rows, tmp_path / "required", schema=required, shuffle=False, progress=False)
    assert "sequence_description=sequence_description" in specs.tfrecord(required)
    datasets = [
        write_kinds(tmp_path / "context", CONTEXT),
        write_kinds(tmp_path / "images", IMAGES, compression="gzip"),
        write_kinds(tmp_path / "all", CONTEXT, IMAGES, SEQUENCES),
        datum.load(tmp_path / "required"),
    ]
    for ds, got in zip(datasets, read_with_package(*datasets), strict=True):
        expected = list(ds["train"])
        assert len(got) == len(expected)
        for left, right in zip(got, expected, strict=True):
            assert list(left) == list(right)
            for name in right:
                assert_alike(left[name], right[name])


def test_zlib_is_told_to_be_out_of_reach() -> None:
    assert "reads no zlib" in specs.tfrecord({"x": Feature("int64")}, compression="zlib")


def test_several_patterns_and_plain_files_are_listed() -> None:
    schema = {"x": Feature("int64")}
    assert 'for pattern in ("a-*", "b-*")' in specs.tfrecord(schema, files=["a-*", "b-*"])
    code = specs.tfrecord(schema, files=["a.tfrecord", "b.tfrecord"])
    assert 'files = ["a.tfrecord", "b.tfrecord"]' in code
    assert "glob" not in code


def test_colours_of_16_bits_are_noted() -> None:
    deep = Feature("uint16", (None, None, 3), encoding="image")
    mask = Feature("uint16", (None, None, 1), encoding="image")
    assert "# Pillow gives only 8 bits" in specs.tfrecord({"photo": deep})
    assert "# Pillow" not in specs.tfrecord({"mask": mask})
