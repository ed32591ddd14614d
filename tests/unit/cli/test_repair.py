"""`datum repair`."""

import json
import shutil

import pytest

import datum
from datum.cli import main
from datum.format import RecordWriter
from tests.unit.rewrite.damaged import flip, shard_of, write_numbers


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder: its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["repair", *map(str, words)])
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def broken(tmp_path):
    write_numbers(tmp_path / "in")
    flip(shard_of(tmp_path / "in"), 500)
    shard_of(tmp_path / "in", 2).unlink()
    return tmp_path / "in"


def test_it_lists_what_was_lost_and_says_it_loudly(run, broken):
    code, out, err = run("in", "out")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["train-00000-of-00003.tfrecord"],
        ["record", "byte", "lost", "size", "why"],
        ["10", "460", "1", "47", "B", "payload", "checksum"],
        [],
        ["train-00002-of-00003.tfrecord"],
        ["lost", "size", "why"],
        ["30", "1.4", "kB", "missing", "file"],
        [],
        ["split", "saved", "lost"],
        ["train", "59", "31"],
    ]
    assert err.splitlines() == [
        "lost: 31 records lost, 59 records saved to out",
        "hint: datum verify out",
    ]
    assert datum.load("out").verify().is_sound


def test_it_says_that_nothing_was_lost(run, tmp_path):
    write_numbers(tmp_path / "in")
    code, out, err = run("in", "out")
    assert code == 0
    assert out.splitlines()[-1].split() == ["train", "90", "0"]
    assert err.splitlines()[0] == "whole: nothing was lost, 90 records saved to out"


def test_where_nobody_counted_the_lost_are_not_known(run, broken):
    (broken / "datum.json").unlink()
    shutil.rmtree(broken / "index")
    code, out, err = run("in", "out")
    assert code == 0
    assert out.splitlines()[-1].split() == ["train", "59", "?"]
    assert err.splitlines()[0] == "lost: some records were lost, 59 records saved to out"


@pytest.mark.parametrize("has_losses", [False, True])
def test_what_a_lost_manifest_told_is_listed(run, broken, tmp_path, has_losses):
    folder = broken if has_losses else tmp_path / "sound"
    if not has_losses:
        write_numbers(folder)
    (folder / "datum.json").write_text("no JSON")
    code, out, err = run(folder, "out")
    lines = out.splitlines()
    assert code == 0
    assert lines[-4].startswith("lost: 'text': kept as str, inferred from the records; whether")
    assert lines[-3].startswith("lost: 'x': kept as int64, inferred from the records; whether")
    assert lines[-2] == "lost: class names, encoders and other metadata of features"
    assert lines[-1].startswith("note: datum.json is damaged")
    part = "part of the schema or metadata"
    told = f"31 records lost, {part} lost" if has_losses else f"{part}, no records"
    saved = f"{59 if has_losses else 90} records saved to out"
    assert err.splitlines() == [
        f"lost: {told}, {saved}",
        "hint: pass the features you know, in Python: datum.repair(path, out, schema={...})",
        "hint: datum verify out",
    ]


def test_a_report_for_programs(run, broken):
    code, out, _ = run("in", "out", "--json", "--deep", "--workers", 1)
    found = json.loads(out)
    assert code == 0
    assert (found["kept"], found["lost"]) == ({"train": 59}, {"train": 31})
    assert [loss["kind"] for loss in found["losses"]] == ["payload checksum", "missing file"]


def test_many_losses_are_cut_with_a_word_on_where_all_are(run, tmp_path):
    write_numbers(tmp_path / "in", shards=1)
    shard = shard_of(tmp_path / "in")
    size = shard.stat().st_size
    for at in range(20, size, size // 30):
        flip(shard, at)
    code, out, _ = run("in", "out")
    assert code == 0
    assert "more are listed by --json" in out


def test_records_of_other_kinds_are_saved_as_files(run, tmp_path):
    with RecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"\xff\xff")
    code, out, err = run("a.tfrecord", "out")
    assert code == 0
    assert "note: what is whole was written as plain TFRecord files" in out
    assert err.splitlines()[-1] == "hint: datum verify 'out/*'"


def test_nothing_to_save_ends_with_1(run, broken):
    for shard in broken.glob("*.tfrecord"):
        shard.write_bytes(b"?" * 100)
    code, out, err = run("in", "out")
    assert (code, out) == (1, "")
    assert "error: in: expected records to save, got none that is whole in 3 files" in err


@pytest.mark.parametrize("out", ["in", "."])
def test_the_source_is_never_written_to(run, broken, out):
    code, _, err = run("in", out, "--overwrite")
    assert code == 1
    assert "expected a folder apart from what is repaired" in err


def test_a_target_that_is_there_is_replaced_only_if_asked(run, broken):
    assert run("in", "out")[0] == 0
    code, _, err = run("in", "out")
    assert (code, err.splitlines()[-1]) == (1, "hint: --overwrite replaces it")
    assert run("in", "out", "--overwrite")[0] == 0


def test_names_that_would_steer_a_terminal_are_spelt_out(run, tmp_path):
    write_numbers(tmp_path / "in", shards=1)
    (tmp_path / "in" / "datum.json").unlink()
    shard = shard_of(tmp_path / "in").rename(tmp_path / "in" / "a\x1b[2J.tfrecord")
    flip(shard, 500)
    _, out, _ = run("in", "out")
    assert "\x1b" not in out
    assert "a\\x1b[2J.tfrecord" in out
