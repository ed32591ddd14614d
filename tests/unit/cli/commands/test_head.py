"""`datum head` as a user calls it."""

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import datum
from datum import Feature
from datum.cli import main
from datum.cli.app import app
from datum.format import Index, RecordWriter


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A dataset of six records in two shards, and one to validate with."""
    monkeypatch.chdir(tmp_path)
    rows = [{"x": i, "text": f"text {i}", "label": i % 2} for i in range(6)]
    datum.write(
        {"train": rows, "val": rows[:1]},
        "ds",
        schema={"x": Feature("int64"), "text": Feature("str"), "label": Feature("int64")},
        shuffle=False,
        shards={"train": 2, "val": 1},
        progress=False,
    )
    return tmp_path / "ds"


def head(*arguments):
    found = CliRunner().invoke(app, ["head", *map(str, arguments)])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found


def numbers(found):
    return [json.loads(line)["features"]["x"] for line in found.stdout.splitlines()]


def test_records_are_shown_with_their_place_and_a_line_for_each_feature(folder):
    found = head("ds", "-n", "2")
    assert found.exit_code == 0
    assert found.stdout.splitlines()[:4] == [
        "train 0  train-00000-of-00002.tfrecord, record 0",
        "  x      int64  0",
        '  text   str    "text 0"',
        "  label  int64  0",
    ]
    assert found.stderr == "2 of 6 records of train; other splits: val (1)\n"


def test_records_are_chosen_by_number_from_either_end_and_by_ranges(folder):
    assert numbers(head("ds", "--json", "-i", "3", "-i", "-1", "--index", "0:2")) == [3, 5, 0, 1]
    assert numbers(head("ds", "--json", "-i", "4,2")) == [4, 2]
    assert numbers(head("ds", "--json", "--split", "train[-2:]")) == [4, 5]
    assert numbers(head("ds", "--json", "--split", "val+train", "-n", "3")) == [0, 0, 1]


def test_the_same_seed_gives_the_same_random_records(folder):
    first = numbers(head("ds", "--json", "--seed", "1", "-n", "3"))
    assert numbers(head("ds", "--json", "--random", "--seed", "1", "-n", "3")) == first
    assert len(set(first)) == 3


def test_json_lines_tell_place_and_features(folder):
    line = json.loads(head("ds", "--json", "-i", "4").stdout)
    assert line == {
        "split": "train",
        "number": 4,
        "file": "ds/train-00001-of-00002.tfrecord",
        "record": 1,
        "features": {"x": 4, "text": "text 4", "label": 0},
    }


def test_columns_are_chosen_and_misspelt_ones_told(folder):
    assert list(json.loads(head("ds", "-n1", "--json", "-c", "label,x").stdout)["features"]) == [
        "label",
        "x",
    ]
    found = head("ds", "-c", "labl")
    assert found.exit_code == 1
    assert "did you mean 'label'?" in found.stderr
    found = head("ds/val-00000-of-00001.tfrecord", "-c", "labl")
    assert found.exit_code == 2
    assert "did you mean 'label'?" in found.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--index", "9"], "expected a number within 6 records, got 9"),
        (["--index", "-9"], "expected a number within 6 records, got -9"),
        (["--index", "x"], "expected a number such as 17 or -1, or 10:20, got 'x'"),
        (["--index", "1", "--random"], "expected --index or --random, got both"),
        (["--picture", "ansi"], "'blocks'"),
    ],
)
def test_a_wrong_call_says_what_was_expected(folder, options, told):
    found = head("ds", *options)
    assert found.exit_code == 2
    assert told in found.stderr


def test_a_file_alone_is_read_without_its_dataset(folder):
    found = head("ds/train-00001-of-00002.tfrecord", "-n", "1")
    assert found.stdout.startswith("record 0  train-00001-of-00002.tfrecord\n")
    assert "text 3" in found.stdout
    assert numbers(head("ds/train-00001-of-00002.tfrecord", "-i", "-1", "--json")) == [5]


def test_a_damaged_record_is_told_in_its_place(folder):
    shard = folder / "train-00000-of-00002.tfrecord"
    data = bytearray(shard.read_bytes())
    data[int(Index.load(Index.path_for(shard)).offsets[1]) + 20] ^= 1
    shard.write_bytes(data)
    for path, name in (("ds", "train"), (shard, "record")):
        found = head(path, "-n", "3")
        assert found.exit_code == 1
        assert f"{name} 1  train-00000" in found.stdout
        assert "  damaged: payload checksum, bytes " in found.stdout
        assert "text 0" in found.stdout
        assert "text 2" in found.stdout
        assert "`datum verify` lists all damage" in found.stderr
    lines = [json.loads(line) for line in head("ds", "-n", "3", "--json").stdout.splitlines()]
    assert [line["number"] for line in lines] == [0, 1, 2]
    assert lines[1]["error"].startswith("damaged: payload checksum")


def test_records_that_are_no_examples_are_shown_as_what_they_are(tmp_path):
    path = tmp_path / "odd.tfrecord"
    with RecordWriter(path) as writer:
        for payload in (b"hello", b"\x08\x05\x12\x03abc", bytes(range(200, 240))):
            writer.write(payload)
    found = head(path)
    assert found.exit_code == 0
    assert 'text of 5 bytes: "hello"' in found.stdout
    assert "a protobuf message of 7 bytes, no tf.train.Example:" in found.stdout
    assert '    2: "abc"' in found.stdout
    assert "000000  c8 c9 ca" in found.stdout
    assert json.loads(head(path, "--json", "-n", "1").stdout)["payload"] == {
        "bytes": 5,
        "text": "hello",
    }


def test_what_is_no_record_file_and_what_is_empty_is_told(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"no records at all, but long enough for a header")
    found = head(tmp_path / "a.tfrecord")
    assert found.exit_code == 1
    assert "expected a TFRecord file" in found.stderr
    (tmp_path / "b.tfrecord").write_bytes(b"")
    found = head(tmp_path / "b.tfrecord")
    assert found.exit_code == 0
    assert "there are no records" in found.stderr


def test_images_are_shown_where_they_are_asked_for(tmp_path):
    pixels = np.full((4, 6, 3), 255, np.uint8)
    datum.write([{"image": Image.fromarray(pixels)}], tmp_path / "ds", progress=False)
    assert "▀" not in head(tmp_path / "ds").stdout  # no terminal
    assert "▀▀" in head(tmp_path / "ds", "--picture", "blocks").stdout
    assert "@@" in head(tmp_path / "ds", "--picture", "ascii").stdout
    assert "\x1b_Ga=T" in head(tmp_path / "ds", "--picture", "kitty").stdout
    assert "▀" not in head(tmp_path / "ds", "--picture", "blocks", "--no-picture").stdout


def test_main_ends_with_the_code_of_the_command(folder, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["head", "ds", "--index", "17"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: split 'train': expected a number")


def test_every_foreign_file_is_shown_or_told(shared_data):
    files = sorted(
        path for path in (shared_data / "foreign_tfrecords").rglob("*") if path.is_file()
    )
    for path in files:
        found = head(path, "-n", "2", "--picture", "blocks", "--width", "80")
        is_other = "not_tfrecord" in path.parts or path.suffix == ".tsv"
        assert found.exit_code == int(is_other), path
        assert "error" in found.stderr if is_other else found.stdout or "no records" in found.stderr
        for line in head(path, "-n", "2", "--json").stdout.splitlines():
            json.loads(line)


@pytest.mark.parametrize("asked", [["-n", 0], ["--index", "5:2"]])
def test_none_of_the_records_is_not_told_as_no_records(folder, asked):
    assert "no records were asked for" in head("ds", *asked).stderr
