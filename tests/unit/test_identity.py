"""Whether a file is still the one that was looked at before."""

import os
import shutil

import pytest

from datum import _identity
from datum._identity import PAGE_BYTES, SAMPLED_PAGES, identify, version_of

LARGE = 10 * SAMPLED_PAGES * PAGE_BYTES


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(LARGE))
    return path


def restore(path, status):
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_file_that_stays_as_it_is_is_the_same(path, tmp_path):
    before = identify(path)
    path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    assert identify(path) == identify(str(path)) == identify(tmp_path / "link") == before


@pytest.mark.parametrize("at", [0, LARGE // 2 + 1, LARGE - 1])
def test_a_byte_that_changes_makes_another_file_though_its_time_is_restored(path, at):
    status, before = path.stat(), identify(path)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"x")
    restore(path, status)
    assert identify(path) != before


def test_a_file_put_in_its_place_is_another_though_all_looks_alike(path, tmp_path):
    status, before = path.stat(), identify(path)
    shutil.copy2(path, tmp_path / "copy")
    (tmp_path / "copy").replace(path)
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert identify(path) != before


@pytest.mark.parametrize("size", [1, PAGE_BYTES, SAMPLED_PAGES * PAGE_BYTES])
def test_small_files_are_told_by_all_their_content_where_the_system_tells_nothing(
    path, monkeypatch, size
):
    monkeypatch.setattr(_identity, "version_of", lambda status: 0)
    found = set()
    for at in {0, size // 2, size - 1}:
        data = bytearray(size)
        data[at] = 1
        path.write_bytes(data)
        found.add(identify(path))
    path.write_bytes(bytes(size))
    found.add(identify(path))
    assert len(found) == len({0, size // 2, size - 1}) + 1


def test_head_and_tail_tell_large_files_where_the_system_tells_nothing(path, monkeypatch):
    monkeypatch.setattr(_identity, "version_of", lambda status: 0)
    found = [identify(path)]
    for at in (0, PAGE_BYTES - 1, LARGE - PAGE_BYTES, LARGE - 1):
        data = bytearray(LARGE)
        data[at] = 1
        path.write_bytes(data)
        found.append(identify(path))
    path.write_bytes(bytes(LARGE + 1))
    found.append(identify(path))
    assert len(set(found)) == 6


def test_an_empty_file_and_a_pipe_are_told_without_waiting(tmp_path):
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    assert identify(tmp_path / "empty") != identify(tmp_path / "pipe")


def test_versions_differ_with_either_time_and_the_inode():
    def version(**changes):
        facts = {"st_ino": 1, "st_mtime_ns": 2, "st_ctime_ns": 3} | changes
        return version_of(type("Status", (), facts))

    others = [version(st_ino=9), version(st_mtime_ns=9), version(st_ctime_ns=9)]
    assert len({version(), *others}) == 4
    assert version() == version()
