"""Where a dataset is made before anyone sees it."""

import contextlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from datum import Feature, Schema, WriteError, _core
from datum._write import staging as staging_module
from datum._write.staging import check_target, open_staging
from datum.format import Index
from datum.format.durable import hold_folder
from datum.format.manifest import Manifest, ShardInfo, SplitInfo


def fill(staging, text, *, name="train-00000-of-00001.tfrecord"):
    """Put a dataset of one shard into a staging folder."""
    content = text.encode() * 16
    (staging.data / name).write_bytes(content)
    shard = ShardInfo(name, 1, len(content), 0)
    Manifest(Schema({"x": Feature("int64")}), {"train": SplitInfo((shard,))}).save(staging.data)


def publish(target, text, *, overwrite=False):
    with open_staging(target) as staging:
        staging.begin(None)
        fill(staging, text)
        staging.publish(overwrite=overwrite)


def text_of(target):
    return (target / "train-00000-of-00001.tfrecord").read_text()[0]


def finish(staging, name, content=b"1234"):
    """Put a shard of no records into a staging folder, and note that it is done."""
    (staging.data / name).write_bytes(content)
    Index(np.empty(0, np.int64), 0).save(Index.path_for(staging.data / name))
    staging.save_done(name, {"shard": {"bytes": len(content), "records": 0}})


def names_in(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_a_dataset_appears_and_nothing_else(tmp_path):
    publish(tmp_path / "out", "a")
    assert names_in(tmp_path) == ["out"]
    assert names_in(tmp_path / "out") == ["datum.json", "train-00000-of-00001.tfrecord"]


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    publish(tmp_path / "out", "a")
    assert text_of(tmp_path / "out") == "a"


def test_the_current_folder_is_filled_and_replaced_in_place(tmp_path, monkeypatch):
    moved = []
    replace = Path.replace

    def note(self, target):
        moved.append(target.name)
        return replace(self, target)

    target = tmp_path / "out"
    target.mkdir()
    monkeypatch.chdir(target)
    monkeypatch.setattr(Path, "replace", note)
    publish(target, "a")
    assert moved[-1] == "datum.json"
    (target / "notes.txt").write_text("mine")
    publish(target, "b", overwrite=True)
    assert moved[-1] == "datum.json"
    assert Path.cwd() == target
    assert text_of(target) == "b"
    assert (target / "notes.txt").read_text() == "mine"


def test_a_folder_that_was_filled_meanwhile_is_not_touched(tmp_path):
    target = tmp_path / "out"
    with open_staging(target) as staging:
        staging.begin(None)
        fill(staging, "a")
        target.mkdir()
        (target / "theirs").write_text("theirs")
        with pytest.raises(WriteError, match="got files that appeared during the write"):
            staging.publish(overwrite=False)
    assert names_in(target) == ["theirs"]


class Killed(BaseException):
    """As if the process ended here: nothing is cleared up."""


@pytest.mark.parametrize("can_exchange", [True, False])
def test_an_overwrite_that_ends_after_the_swap_loses_nothing(tmp_path, monkeypatch, can_exchange):
    target = tmp_path / "out"
    publish(target, "a")
    (target / "notes.txt").write_text("mine")
    if not can_exchange:
        monkeypatch.setattr(staging_module, "exchange", lambda *_: False)

    def end(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(staging_module.Staging, "remove", lambda self: None)
        with contextlib.suppress(Killed), open_staging(target) as staging:
            staging.begin("p")
            fill(staging, "b")
            staging.save_done("train-00000-of-00001.tfrecord", {"shard": {"bytes": 16}})
            patch.setattr(staging_module.Staging, "_rescue", end)
            staging.publish(overwrite=True)
    assert text_of(target) == "b"
    with open_staging(target) as staging:
        staging.begin("p")
        assert staging.load_done("train-00000-of-00001.tfrecord") is None
    assert (target / "notes.txt").read_text() == "mine"


def test_links_in_the_staging_folder_are_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    staging_folder = tmp_path / ".out.partial"
    os.close(hold_folder(staging_folder))
    for name in ("data", "done.jsonl", "spill", "other"):
        (staging_folder / name).symlink_to(precious)
    publish(tmp_path / "out", "a")
    assert (precious / "file").read_text() == "mine"
    staging_folder.symlink_to(precious)
    with pytest.raises(WriteError, match="got a link"):
        publish(tmp_path / "out", "b", overwrite=True)
    assert names_in(precious) == ["file"]


def test_rubbish_in_the_staging_folder_is_removed(tmp_path):
    with open_staging(tmp_path / "out") as staging:
        staging.begin("p")
        (staging.data / "folder/deep").mkdir(parents=True)
        (staging.folder / "rubbish").write_text("x")
        staging.begin("p")
        assert names_in(staging.data) == []
        assert names_in(staging.folder) == [".datum-staging", "data", "done.jsonl", "plan.json"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_an_old_dataset_is_replaced_and_other_files_stay(tmp_path, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(staging_module, "exchange", lambda *_: False)
    publish(tmp_path / "out", "a")
    (tmp_path / "out/notes.txt").write_text("mine")
    publish(tmp_path / "out", "b", overwrite=True)
    assert text_of(tmp_path / "out") == "b"
    assert (tmp_path / "out/notes.txt").read_text() == "mine"
    assert names_in(tmp_path) == ["out"]


def test_a_second_writer_of_the_same_target_is_refused(tmp_path):
    with open_staging(tmp_path / "out"):
        with pytest.raises(WriteError, match="another process"), open_staging(tmp_path / "out"):
            pass
        with open_staging(tmp_path / "other"):
            pass
    with open_staging(tmp_path / "out"):
        pass


def test_what_is_done_is_kept_for_the_same_plan_alone(tmp_path):
    name = "train-00000-of-00002.tfrecord"
    for plan, expected in [("p", None), ("p", True), ("q", None), (None, None), (None, None)]:
        with open_staging(tmp_path / "out") as staging:
            staging.begin(plan)
            found = staging.load_done(name)
            assert (found is not None) == bool(expected)
            finish(staging, name)
            assert staging.load_done(name) == {"shard": {"bytes": 4, "records": 0}}


@pytest.mark.parametrize("content", [b"123", b"", None])
def test_a_shard_that_is_not_as_it_was_is_made_again(tmp_path, content):
    name = "train-00000-of-00002.tfrecord"
    with open_staging(tmp_path / "out") as staging:
        staging.begin("p")
        finish(staging, name)
        if content is None:
            (staging.data / name).unlink()
        else:
            (staging.data / name).write_bytes(content)
        staging.begin("p")
        assert staging.load_done(name) is None


@pytest.mark.parametrize("content", [b"", b"rubbish", None])
def test_a_shard_whose_index_is_not_as_it_was_is_made_again(tmp_path, content):
    name = "train-00000-of-00002.tfrecord"
    with open_staging(tmp_path / "out") as staging:
        staging.begin("p")
        finish(staging, name)
        index = Index.path_for(staging.data / name)
        index.unlink()
        if content is not None:
            index.write_bytes(content)
        staging.begin("p")
        assert staging.load_done(name) is None


def noted(value):
    """A line of the journal whose checksum is right."""
    text = json.dumps(value).encode()
    return b"%08x %s\n" % (_core.crc32c(text), text)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"{",
        b"\xff\0",
        b"00000000 []\n",
        bytes(4096),
        noted([]),
        noted(["x", 5, 6]),
        noted({"x": 5}),
        noted([["x"], {}]),
        noted(["x", []]),
        noted(["x", {"shard": 5}]),
        noted(["../x", {"shard": {"bytes": 4, "records": 0}}]),
        noted(["x", {"shard": {"bytes": "4", "records": None}}]),
    ],
)
def test_a_note_that_cannot_be_read_counts_for_nothing(tmp_path, content):
    with open_staging(tmp_path / "out") as staging:
        staging.begin("p")
        finish(staging, "y")
        with (staging.folder / "done.jsonl").open("ab") as journal:
            journal.write(content)
        staging.begin("p")
        assert staging.load_done("x") is None
        assert staging.load_done("y") is not None


def test_notes_are_believed_as_far_as_a_torn_journal_tells_them(tmp_path):
    """A kill or a power cut may end it anywhere: shards not noted are made again, and no others."""
    names = [f"train-0000{number}-of-00003.tfrecord" for number in range(3)]
    with open_staging(tmp_path / "out") as staging:
        staging.begin("p")
        ends = []
        for name in names:
            finish(staging, name)
            ends.append((staging.folder / "done.jsonl").stat().st_size)
        whole = (staging.folder / "done.jsonl").read_bytes()
        for size in range(len(whole), -1, -7):
            (staging.folder / "done.jsonl").write_bytes(whole[:size])
            staging.begin("p")
            told = [name for name in names if staging.load_done(name) is not None]
            # A line that lacks nothing but its end is whole.
            assert told == [n for n, end in zip(names, ends, strict=True) if end - 1 <= size]
            again = names[len(told)] if len(told) < 3 else "more"
            finish(staging, again)  # what comes after a torn line is not lost with it
            staging.begin("p")
            assert staging.load_done(again) is not None
            for name in names:
                finish(staging, name)


def test_the_target_must_be_free(tmp_path):
    target = tmp_path / "out"
    check_target(target, overwrite=False, append=False)
    target.write_text("a file")
    with pytest.raises(WriteError, match="expected a folder, got a file"):
        check_target(target, overwrite=True, append=False)
    target.unlink()
    target.mkdir()
    check_target(target, overwrite=False, append=False)
    (target / "notes.txt").write_text("mine")
    with pytest.raises(WriteError, match="not empty: notes.txt"):
        check_target(target, overwrite=True, append=False)
    with pytest.raises(WriteError, match="expected a dataset to append to"):
        check_target(target, overwrite=False, append=True)
    (target / "datum.json").write_text("{}")
    with pytest.raises(WriteError, match="overwrite=True replaces it, append=True adds"):
        check_target(target, overwrite=False, append=False)
    check_target(target, overwrite=True, append=False)
    check_target(target, overwrite=False, append=True)


def test_a_lock_whose_folder_was_removed_is_taken_anew(tmp_path, monkeypatch):
    real_open = os.open
    calls = []

    def open_then_remove(path, *args, **kwargs):
        descriptor = real_open(path, *args, **kwargs)
        if not calls:
            calls.append(path)
            Path(path).rmdir()
        return descriptor

    monkeypatch.setattr(staging_module.os, "open", open_then_remove)
    with open_staging(tmp_path / "out") as staging:
        assert staging.folder.is_dir()


def test_a_dataset_with_a_damaged_manifest_can_be_replaced(tmp_path):
    publish(tmp_path / "out", "a")
    shard = tmp_path / "out/train-00000-of-00001.tfrecord"
    Index(np.empty(0, np.int64), 0).save(Index.path_for(shard))
    (tmp_path / "out/datum.json").write_text("{")
    (tmp_path / "out/notes.txt").write_text("mine")
    publish(tmp_path / "out", "b", overwrite=True)
    assert text_of(tmp_path / "out") == "b"
    assert "notes.txt" in names_in(tmp_path / "out")


# Whose files they are.


@pytest.mark.parametrize("name", [".out.partial", "out/.datum.partial"])
def test_a_folder_of_somebody_else_is_not_taken_for_the_staging_folder(tmp_path, monkeypatch, name):
    folder = tmp_path / name
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "thesis.txt").write_text("mine")
    (folder / "plan.json").write_text("mine, too")
    if name.startswith("out"):
        monkeypatch.setattr(staging_module, "_place_of", lambda target: folder)
    with pytest.raises(WriteError, match=r"got a folder with other files\nhint: move it"):
        publish(tmp_path / "out", "a")
    assert (folder / "data" / "thesis.txt").read_text() == "mine"
    assert names_in(folder) == ["data", "plan.json"]
    with pytest.raises(WriteError, match=r"the target folder is not empty: .*partial"):
        check_target(folder.parent, overwrite=False, append=False)


def test_an_empty_folder_is_what_a_write_killed_at_once_leaves(tmp_path):
    (tmp_path / ".out.partial").mkdir()
    publish(tmp_path / "out", "a")
    assert names_in(tmp_path) == ["out"]


def test_removal_that_is_cut_off_leaves_a_folder_of_ours(tmp_path, monkeypatch):
    with open_staging(tmp_path / "out") as staging:
        staging.begin("p")
        finish(staging, "a")
        monkeypatch.setattr(shutil, "rmtree", lambda *args, **options: None)
        staging.remove()
        assert names_in(staging.folder) == [".datum-staging", "data"]


def test_a_call_that_is_refused_leaves_what_another_can_go_on_with(tmp_path):
    target = tmp_path / "out"
    with contextlib.suppress(Killed), open_staging(target) as staging:
        staging.begin("p")
        finish(staging, "train-00000-of-00002.tfrecord")
        raise Killed
    with pytest.raises(WriteError, match="refused"), open_staging(target):
        raise WriteError("refused before it began")
    with open_staging(target) as staging:
        staging.begin("p")
        assert staging.load_done("train-00000-of-00002.tfrecord") is not None


def test_an_overwrite_that_ends_between_two_renames_loses_no_dataset(tmp_path, monkeypatch):
    target = tmp_path / "out"
    publish(target, "a")
    with monkeypatch.context() as patch:
        patch.setattr(staging_module, "exchange", lambda *_: False)
        patch.setattr(staging_module.Staging, "remove", lambda self: None)
        rename = Path.rename

        def end_before_the_second(self, place):
            if self.name == "data":
                raise Killed
            return rename(self, place)

        patch.setattr(Path, "rename", end_before_the_second)
        with contextlib.suppress(Killed), open_staging(target) as staging:
            staging.begin(None)
            fill(staging, "b")
            staging.publish(overwrite=True)
    assert not target.exists()
    with open_staging(target):
        assert text_of(target) == "a"
    assert text_of(target) == "a"
