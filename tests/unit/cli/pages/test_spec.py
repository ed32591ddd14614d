import ast
import io
import sys

import pytest
from typer.testing import CliRunner

import datum
from datum import Feature
from datum.cli.app import app
from datum.cli.info_page import make_spec, print_spec


@pytest.fixture
def ds(tmp_path):
    rows = [{"größe": i, "x": [i / 2] * 3} for i in range(6)]
    schema = {"größe": Feature("int64"), "x": Feature("float32", (3,))}
    datum.write(
        {"val": rows[:2], "train": rows},
        tmp_path / "ds",
        schema=schema,
        shards={"train": 3, "val": 1},
        compression="gzip",
        progress=False,
    )
    return datum.load(tmp_path / "ds")


def test_the_code_names_the_shards_to_train_with_and_their_compression(ds):
    code = make_spec(ds, "tf")
    assert f'list_files("{ds.path}/train-0000*-of-00003.tfrecord"' not in code
    assert f'list_files("{ds.path}/train-*-of-00003.tfrecord", shuffle=False)' in code
    assert 'compression_type="GZIP"' in code
    for dialect in ("tf", "dali", "tfrecord"):
        ast.parse(make_spec(ds, dialect))


def test_a_pattern_that_would_find_other_files_is_not_used(ds):
    (ds.path / "train-9-of-00003.tfrecord").touch()
    code = make_spec(ds, "tfrecord")
    assert "glob" not in code
    assert all(f"train-0000{i}-of-00003" in code for i in range(3))


def test_a_single_file_is_named(ds):
    one = datum.load(ds.path / "val-00000-of-00001.tfrecord")
    assert f'files = ["{ds.path / "val-00000-of-00001.tfrecord"}"]' in make_spec(one, "tf")


def test_an_unknown_dialect_is_refused(ds):
    with pytest.raises(ValueError, match="expected one of tf, dali, tfrecord, got 'jax'"):
        make_spec(ds, "jax")


def test_a_file_of_the_code_is_in_utf_8_whatever_the_stream_is(ds, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii", errors="replace"))
    print_spec(ds, "tf")
    assert raw.getvalue().decode() == make_spec(ds, "tf")
    assert '"größe"'.encode() in raw.getvalue()


def test_info_prints_it(ds):
    found = CliRunner().invoke(app, ["info", str(ds.path), "--spec", "tf"])
    assert found.exit_code == 0
    assert found.stdout == make_spec(ds, "tf")
