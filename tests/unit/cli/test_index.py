import json

import numpy as np
import pytest
from typer.testing import CliRunner

import datum
from datum.cli.app import app
from datum.format import Index, RecordFile, frame
from tests.unit.read.foreign.files_written import write_file
from tests.unit.read.written import write_numbered


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, count in (("a.tfrecord", 3), ("b.rec", 5)):
        write_file(tmp_path / "logs" / name, [{"x": n} for n in range(count)])
    return tmp_path / "logs"


def index(*arguments):
    found = CliRunner().invoke(app, ["index", *map(str, arguments)])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found


def test_a_dataset_is_described_for_tfds(logs):
    datum.write([{"x": [[1], []]}], "made", progress=False)
    found = index("made", "--tfds")
    assert found.exit_code == 0
    assert found.stdout.splitlines() == [
        "made: tfds.builder_from_directory('made') reads it",
        "  tfds: 'x' comes as it is stored, values and row lengths: 'x', 'x_lengths_1'",
    ]
    assert (logs.parent / "made/features.json").is_file()


def test_files_that_datum_did_not_write_are_not_described_for_tfds(logs):
    found = index("logs", "--tfds")
    assert found.exit_code == 1
    assert "expected a dataset with datum.json, got none" in found.stderr
    assert index("logs", "--tfds", "--check").exit_code == 2


def states(*arguments):
    found = index(*arguments, "--json")
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    return found.exit_code, [(one["index"], one["records"], one["state"]) for one in lines]


def test_indexes_are_written_to_a_folder_beside_the_files(logs):
    found = index("logs")
    assert found.exit_code == 0
    assert "2 indexes: 2 written; 8 records" in found.stdout
    for file, place in (("a.tfrecord", "index/of-a.index"), ("b.rec", "index/of-b,rec.index")):
        expected = RecordFile(logs / file, use_index=False).index
        assert Index.load(logs / place).to_bytes() == expected.to_bytes()


def test_indexes_that_are_there_and_sound_are_left_alone(logs):
    index("logs")
    before = (logs / "index/of-a.index").stat().st_ino
    expected = [("logs/index/of-a.index", 3, "sound"), ("logs/index/of-b,rec.index", 5, "sound")]
    assert states("logs") == (0, expected)
    assert (logs / "index/of-a.index").stat().st_ino == before
    assert states("logs", "--force") == (0, [(*one[:2], "replaced") for one in expected])
    assert (logs / "index/of-a.index").stat().st_ino != before


@pytest.mark.parametrize("content", [b"DATUMIDX", Index(np.array([0]), 50).to_bytes()])
def test_an_index_that_is_damaged_or_of_other_records_is_replaced(logs, content):
    (logs / "index").mkdir()
    (logs / "index/of-a.index").write_bytes(content)
    assert states("logs/a.tfrecord", "--check") == (1, [("logs/index/of-a.index", 3, "wrong")])
    assert (logs / "index/of-a.index").read_bytes() == content
    assert states("logs/a.tfrecord") == (0, [("logs/index/of-a.index", 3, "replaced")])
    assert states("logs/a.tfrecord", "--check") == (0, [("logs/index/of-a.index", 3, "sound")])


def test_a_file_of_another_kind_is_written_over_only_by_force(logs):
    (logs / "index").mkdir()
    (logs / "index/of-a.index").write_text("of another tool")
    found = index("logs/a.tfrecord")
    assert found.exit_code == 1
    assert "a file of another kind is there; --force writes over it" in found.stdout
    assert (logs / "index/of-a.index").read_text() == "of another tool"
    assert states("logs/a.tfrecord", "--force") == (0, [("logs/index/of-a.index", 3, "replaced")])


def test_a_check_writes_nothing(logs):
    found = index("logs", "--check", "--out", "elsewhere")
    assert found.exit_code == 1
    assert "2 missing" in found.stdout
    assert "hint: without --check they are written" in found.stderr
    assert not (logs.parent / "elsewhere").exists()


def test_text_for_other_readers_is_written(logs):
    found = index("logs", "--format", "text", "--out", "new/idx")
    assert found.exit_code == 0
    for file in ("a.tfrecord", "b.rec"):
        text = (logs.parent / "new/idx" / f"{file}.idx").read_text()
        assert text == RecordFile(logs / file).index.to_text()
    assert states("logs", "--format", "text", "--out", "new/idx", "--check")[0] == 0
    assert sorted(path.name for path in logs.iterdir()) == ["a.tfrecord", "b.rec"]


def test_text_beside_files_does_not_hide_them(logs):
    index("logs", "--format", "text")
    assert (logs / "a.tfrecord.idx").is_file()
    assert states("logs", "--format", "text", "--check")[0] == 0
    assert datum.load("logs").splits["train"].records == 8


def test_text_of_another_kind_is_written_over_only_by_force(logs):
    place = logs / "a.tfrecord.idx"
    place.write_bytes(b"\x00\x00\x08\x01 handwritten digits")
    assert states("logs/a.tfrecord", "--format", "text")[1][0][2] == "refused"
    assert place.read_bytes().startswith(b"\x00")
    assert states("logs/a.tfrecord", "--format", "text", "--force")[1][0][2] == "replaced"


def test_of_compressed_files_only_our_own_index_is_written(tmp_path):
    path = write_file(tmp_path / "a.tfrecord.gz", [{"x": 1}] * 4, compression="gzip")
    found = index(path, "--format", "text")
    assert found.exit_code == 1
    assert "gzip: DALI and tfrecord read files that are not compressed" in found.stdout
    assert "hint: datum reshard" in found.stderr
    assert not Index.text_path_for(path).exists()
    assert index(path).exit_code == 0
    assert len(Index.load(Index.path_for(path))) == 4


def test_a_damaged_file_is_refused_and_the_others_are_not(logs):
    path = logs / "b.rec"
    path.write_bytes(path.read_bytes()[:-1])
    code, found = states("logs")
    assert code == 1
    assert found == [
        ("logs/index/of-a.index", 3, "written"),
        ("logs/index/of-b,rec.index", None, "refused"),
    ]
    assert "hint: datum verify tells all damage" in index("logs").stderr


def test_a_dataset_gets_back_an_index_that_it_lost(tmp_path):
    write_numbered(tmp_path)
    place = tmp_path / "index/of-val-00000-of-00001.index"
    lost = place.read_bytes()
    place.unlink()
    assert "3 sound, 1 written" in index(tmp_path).stdout
    assert place.read_bytes() == lost


def test_records_of_any_kind_can_be_indexed(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(frame([b"\xff", b"text"]).to_bytes())
    assert states(path) == (0, [(str(tmp_path / "index/of-a.index"), 2, "written")])


def test_files_of_one_name_cannot_share_a_folder(tmp_path):
    for split in ("train", "test"):
        write_file(tmp_path / "data" / split / "a.tfrecord", [{"x": 1}])
    found = index(tmp_path / "data", "--out", tmp_path / "idx")
    assert found.exit_code == 2
    assert "expected an index for each file" in found.stderr
    assert not (tmp_path / "idx").exists()
    assert index(tmp_path / "data").exit_code == 0


def test_many_files_are_shown_in_short_with_trouble_first(tmp_path, monkeypatch):
    monkeypatch.setattr("datum.cli.commands.index.MAX_SHOWN", 2)
    for n in range(5):
        write_file(tmp_path / f"{n}.tfrecord", [{"x": n}])
    (tmp_path / "index").mkdir()
    (tmp_path / "index/of-4.index").write_text("of another tool")
    lines = index(tmp_path).stdout.splitlines()
    assert "of-4.index" in lines[1]
    assert "refused" in lines[1]
    assert "3 more are listed by --json" in lines
    assert lines[-1] == "5 indexes: 4 written, 1 refused; 5 records"


def test_what_is_no_record_file_is_an_error(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"something else")
    found = index(tmp_path / "a.tfrecord")
    assert found.exit_code == 1
    assert found.stderr.startswith("error: ")
    assert index(tmp_path / "a.tfrecord", "--format", "avro").exit_code == 2


def test_an_empty_path_is_not_the_folder_one_is_in(logs):
    for words in (["logs", "--out", ""], [""]):
        found = index(*words)
        assert found.exit_code == 2
        assert "got an empty" in found.stderr
    assert sorted(path.name for path in logs.parent.iterdir()) == ["logs"]
