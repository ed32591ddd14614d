import json

import numpy as np
import pytest
from typer.testing import CliRunner

import datum
from datum.cli.app import app
from datum.format import Manifest, RecordWriter


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    datum.write(
        {"x": np.arange(300, dtype=np.float32), "y": np.arange(300) % 5}, "out", progress=False
    )
    return tmp_path


def stats(*arguments):
    found = CliRunner().invoke(app, ["stats", *map(str, arguments)])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found


def test_every_feature_has_a_block(folder):
    found = stats("out")
    assert found.exit_code == 0
    assert "\nx  float32  float list\n" in found.stdout
    assert "\ny  int64  int64 list\n" in found.stdout


def test_some_features_can_be_chosen(folder):
    assert list(json.loads(stats("out", "--columns", "y", "--json").stdout)["features"]) == ["y"]
    found = stats("out", "--columns", "z")
    assert found.exit_code == 1
    assert "expected a feature of the schema, got 'z'" in found.stderr


def test_json_holds_the_whole_profile(folder):
    document = json.loads(stats("out", "--json").stdout)
    assert document["complete"]
    assert document["features"]["y"]["counts"]["distinct"] == 5


def test_a_sample_is_told_as_such(folder):
    assert "looked at 10 of 300 records" in stats("out", "--sample", 10).stdout


def test_statistics_can_be_kept(folder):
    manifest = Manifest.load("out")
    Manifest(manifest.schema, manifest.splits).save("out")
    found = stats("out", "--save", "--json")
    assert found.exit_code == 0
    assert "saved: " in found.stderr
    assert Manifest.load("out").statistics == manifest.statistics


def test_there_is_no_place_to_keep_those_of_bare_files(folder):
    for file in (folder / "out").glob("*.json"):
        file.unlink()
    found = stats("out", "--save")
    assert found.exit_code == 1
    assert "hint:" in found.stderr


def test_records_of_another_kind_are_told_by_their_bytes(folder):
    with RecordWriter("text.tfrecord") as writer:
        writer.write(b"only text")
    found = stats("text.tfrecord")
    assert found.exit_code == 0
    assert "plain text" in found.stdout


def test_it_names_no_option_that_it_has_not(folder):
    found = stats("out", "--sample", 10)
    assert "looked at 10 of 300 records" in found.stdout
    assert "--full" not in found.stdout
