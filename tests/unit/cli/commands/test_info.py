import json

import numpy as np
import pytest
from typer.testing import CliRunner

import datum
from datum.cli.app import app
from datum.format import RecordWriter


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"x": np.arange(300) / 7, "label": np.arange(300) % 5}
    datum.write(columns, "out", splits={"train": 0.9, "val": 0.1}, progress=False)
    return tmp_path


def info(*arguments):
    found = CliRunner().invoke(app, ["info", *map(str, arguments)])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found


def test_a_dataset_is_shown(folder):
    found = info("out")
    assert found.exit_code == 0
    assert found.stdout.startswith("out  Datum dataset (format 1) · 300 records")
    assert "label  5 values · balanced" in found.stdout
    assert found.stderr == ""


def test_json_is_one_document(folder):
    found = json.loads(info("out", "--json").stdout)
    assert found["records"] == 300
    assert list(found["features"]) == ["x", "label"]
    assert found["unknown"] is None


def test_one_split_is_shown(folder):
    assert json.loads(info("out", "--split", "val", "--json").stdout)["splits"].keys() == {"val"}
    assert info("out", "--split", "tran").exit_code == 1


def test_how_much_to_look_at_can_be_said(folder):
    assert json.loads(info("out", "--sample", 10, "--json").stdout)["seen"] == 20
    assert json.loads(info("out", "--full", "--json").stdout)["complete"]
    assert info("out", "--full", "--sample", 10).exit_code == 2
    assert info("out", "--sample", 0).exit_code == 2


def test_classes_are_as_many_as_asked_for(folder):
    assert "… 3 more" in info("out", "--class-balance", 2).stdout
    assert "balanced" not in info("out", "--class-balance", 0).stdout


def test_records_of_another_kind_are_shown_with_the_reason(folder):
    with RecordWriter("text.tfrecord") as writer:
        writer.write(b"only text")
    found = info("text.tfrecord")
    assert found.exit_code == 0
    assert "! no features are known" in found.stdout
    assert "got bytes that are no such message" in found.stdout
    assert "records  plain text · 9 bytes" in found.stdout
    document = json.loads(info("text.tfrecord", "--json").stdout)
    assert "expected a tf.train.Example" in document["unknown"]
    assert document["splits"]["train"]["payloads"]["kind"] == "text"


def test_a_file_without_records_is_shown(folder):
    (folder / "empty.tfrecord").write_bytes(b"")
    found = info("empty.tfrecord")
    assert found.exit_code == 0
    assert "train has no records" in found.stdout


def test_what_is_no_dataset_is_an_error(folder):
    (folder / "notes.txt").write_text("some notes")
    found = info("notes.txt")
    assert found.exit_code == 1
    assert found.stdout == ""
    assert "error: notes.txt: expected a TFRecord file" in found.stderr


def test_piped_all_features_are_shown(folder):
    datum.write({f"f{n:03}": np.arange(5) for n in range(120)}, "wide", progress=False)
    found = info("wide")
    assert "f119" in found.stdout
    assert "more feature" not in found.stdout


def test_damage_is_shown_beside_what_is_known(folder):
    path = folder / "out" / "train-00000-of-00001.tfrecord"
    path.write_bytes(path.read_bytes()[:-5])
    found = info("out")
    assert found.exit_code == 0
    assert "! damaged shards" in found.stdout
    assert "x" in found.stdout


def test_every_foreign_file_is_shown(shared_data):
    files = [
        path for path in sorted((shared_data / "foreign_tfrecords").iterdir()) if path.is_file()
    ]
    for path in files[::8]:
        found = info(path)
        assert found.exit_code == (1 if path.suffix == ".tsv" else 0), path
        assert found.stdout or found.stderr


def test_what_was_rounded_is_told(folder):
    assert "rounded to float32: x\n" in info("out").stdout
    assert json.loads(info("out", "--json").stdout)["rounded"] == ["x"]
    datum.write({"x": [0.5, 1e300]}, "wide", progress=False)
    line = "kept as float64: x, as float32 cannot hold 1e+300 (record 1 of 'train')"
    assert line in info("wide").stdout
