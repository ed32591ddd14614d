"""Files that are on the disk, whole, or not there at all."""

import errno
import os
import re
import stat
import subprocess
import sys

import pytest

from datum.format import durable
from datum.format.durable import (
    exchange,
    find_abandoned,
    hold_folder,
    is_own_folder,
    new_file,
    remove_folder,
    rename_new,
    replace_file,
)

ANY = re.compile(".*")
KILLED = """
import os, pathlib, signal, sys
from datum.format.durable import hold_folder, new_file

folder = pathlib.Path(sys.argv[1])
hold_folder(folder / "work")
(folder / "work" / "half").write_text("half")
with new_file(folder / "datum.json") as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def left(tmp_path):
    """What a process left that was killed while it made a file and a folder."""
    ran = subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    assert ran.returncode < 0
    durable._swept.clear()
    assert len(names_in(tmp_path)) == 2
    return tmp_path


def test_a_replaced_file_has_the_new_content_and_ordinary_rights(tmp_path):
    path = tmp_path / "datum.json"
    path.write_bytes(b"old")
    before = stat.S_IMODE(path.stat().st_mode)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path, monkeypatch, failing):
    path = tmp_path / "datum.json"
    path.write_bytes(b"old")

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable.os, failing, fail)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_in_no_folder_cannot_be_written(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        replace_file(tmp_path / "missing" / "datum.json", b"new")


def test_a_file_that_is_there_is_not_replaced_unless_it_may_be(tmp_path, monkeypatch):
    path = tmp_path / "datum.json"
    replace_file(path, b"old", overwrite=False)
    with pytest.raises(FileExistsError):
        replace_file(path, b"new", overwrite=False)
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["datum.json"]

    def have_no_links(*args, **options):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(durable.os, "link", have_no_links)
    with pytest.raises(FileExistsError):
        replace_file(path, b"new", overwrite=False)
    replace_file(tmp_path / "other", b"new", overwrite=False)
    assert path.read_bytes() == b"old"
    assert (tmp_path / "other").read_bytes() == b"new"


def test_a_rename_replaces_neither_files_nor_folders_nor_links(tmp_path):
    for kind in ("file", "folder"):
        for there in ("a file", "a folder", "an empty folder", "a link"):
            made, place = tmp_path / kind / there / "made", tmp_path / kind / there / "place"
            made.mkdir(parents=True)
            (made / "new").touch()
            if kind == "file":
                remove = made / "new"
                remove.unlink()
                made.rmdir()
                made.write_text("new")
            if there == "a file":
                place.write_text("mine")
            elif there == "a link":
                place.symlink_to("/nowhere")
            else:
                place.mkdir()
                (place / "mine").touch() if there == "a folder" else None
            before = place.lstat()
            with pytest.raises(FileExistsError):
                rename_new(made, place)
            assert os.path.samestat(place.lstat(), before)
            rename_new(made, tmp_path / kind / there / "free")


def test_what_a_killed_process_left_is_removed_by_the_next_run(left):
    replace_file(left / "other", b"new")
    assert names_in(left) == ["other", "work"]
    for folder in find_abandoned(left, ANY):
        remove_folder(folder)
    assert names_in(left) == ["other"]


def test_a_folder_whose_maker_was_killed_before_it_was_marked_is_found(tmp_path):
    (tmp_path / "work").mkdir()
    for folder in find_abandoned(tmp_path, re.compile("work")):
        remove_folder(folder)
    assert names_in(tmp_path) == []


def test_what_another_process_is_busy_with_is_not_removed(tmp_path):
    held = hold_folder(tmp_path / "work")
    with new_file(tmp_path / "a") as file:
        durable._swept.clear()
        replace_file(tmp_path / "b", b"new")
        file.write(b"whole")
        assert list(find_abandoned(tmp_path, ANY)) == []
    assert (tmp_path / "a").read_bytes() == b"whole"
    assert names_in(tmp_path) == ["a", "b", "work"]
    os.close(held)


def test_a_file_that_was_removed_before_it_was_locked_is_made_anew(tmp_path, monkeypatch):
    lock, removed = durable._lock, []

    def be_late(descriptor, **options):
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        return lock(descriptor, **options)

    monkeypatch.setattr(durable, "_lock", be_late)
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names_in(tmp_path) == ["a"]


def test_nothing_of_others_is_cleared_away(tmp_path):
    durable._swept.clear()
    (tmp_path / "notes.new").write_text("mine")
    (tmp_path / ".notes.12345678.new").write_text("mine")
    (tmp_path / ".dir.datum-new" / "mine").mkdir(parents=True)
    (tmp_path / ".link.datum-new").symlink_to(tmp_path / "notes.new")
    os.mkfifo(tmp_path / ".pipe.datum-new")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    before = names_in(tmp_path)
    replace_file(tmp_path / "a", b"new")
    assert list(find_abandoned(tmp_path, ANY)) == []
    remove_folder(tmp_path / "folder")
    assert names_in(tmp_path) == sorted([*before, "a"])


def test_a_folder_is_ours_if_it_was_made_or_found_empty(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        held = hold_folder(tmp_path / name)
        assert is_own_folder(tmp_path / name)
        with pytest.raises(BlockingIOError):
            hold_folder(tmp_path / name)
        os.close(held)
        (tmp_path / name / "deep").mkdir()
        remove_folder(tmp_path / name)
    assert names_in(tmp_path) == []


def test_what_is_not_ours_is_not_held(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "link").symlink_to(tmp_path / "full")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    for name in ("file", "full", "link", "nowhere"):
        with pytest.raises(FileExistsError):
            hold_folder(tmp_path / name)
    assert names_in(tmp_path / "full") == ["mine"]


@pytest.mark.skipif(sys.platform != "linux", reason="others have no such call")
def test_two_names_are_swapped(tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").mkdir()
    if exchange(tmp_path / "a", tmp_path / "b"):
        assert (tmp_path / "b").read_text() == "a"
    assert not exchange(tmp_path / "a", tmp_path / "missing")
