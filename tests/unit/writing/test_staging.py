"""Where a dataset is made before anyone sees it."""

import errno
import os
from pathlib import Path

import pytest

from datum import Feature, Schema, WriteError
from datum.format.manifest import Manifest, ShardInfo, SplitInfo
from datum.writing import staging as staging_module
from datum.writing.staging import check_target, open_staging


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


def test_a_folder_that_cannot_be_replaced_is_filled_the_manifest_last(tmp_path, monkeypatch):
    moved = []
    replace = staging_module.Path.replace

    def refuse(self, target):
        raise OSError(errno.EBUSY, "a mount point")

    def note(self, target):
        moved.append(target.name)
        return replace(self, target)

    (tmp_path / "out").mkdir()
    with open_staging(tmp_path / "out") as staging:
        staging.begin(None)
        fill(staging, "a")
        monkeypatch.setattr(staging_module.Path, "rename", refuse)
        monkeypatch.setattr(staging_module.Path, "replace", note)
        staging.publish(overwrite=False)
    assert moved[-1] == "datum.json"
    assert text_of(tmp_path / "out") == "a"


@pytest.mark.parametrize("can_exchange", [True, False])
def test_an_old_dataset_is_replaced_and_other_files_stay(tmp_path, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(staging_module, "_exchange", lambda *_: False)
    publish(tmp_path / "out", "a")
    (tmp_path / "out/notes.txt").write_text("mine")
    publish(tmp_path / "out", "b", overwrite=True)
    assert text_of(tmp_path / "out") == "b"
    assert (tmp_path / "out/notes.txt").read_text() == "mine"
    assert names_in(tmp_path) == ["out"]


def test_a_second_writer_of_the_same_target_is_refused(tmp_path):
    with open_staging(tmp_path / "out"):
        with pytest.raises(WriteError, match="another writer"), open_staging(tmp_path / "out"):
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
            (staging.data / name).write_bytes(b"1234")
            staging.save_done(name, {"shard": {"bytes": 4}})
            assert staging.load_done(name) == {"shard": {"bytes": 4}}


@pytest.mark.parametrize("content", [b"123", b"", None])
def test_a_shard_that_is_not_as_it_was_is_made_again(tmp_path, content):
    name = "train-00000-of-00002.tfrecord"
    with open_staging(tmp_path / "out") as staging:
        staging.begin("p")
        (staging.data / name).write_bytes(b"1234")
        staging.save_done(name, {"shard": {"bytes": 4}})
        if content is None:
            (staging.data / name).unlink()
        else:
            (staging.data / name).write_bytes(content)
        assert staging.load_done(name) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"shard": 5}', b"\xff"])
def test_a_note_that_cannot_be_read_counts_for_nothing(tmp_path, content):
    with open_staging(tmp_path / "out") as staging:
        staging.begin("p")
        (staging.folder / "done/x.json").write_bytes(content)
        assert staging.load_done("x") is None


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
    with pytest.raises(WriteError, match="got notes.txt"):
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
