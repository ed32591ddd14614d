import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from datum._read import local
from datum._read.local import (
    cache_folder,
    check_unchanged,
    keep,
    keep_for_now,
    name_for,
    places,
)
from datum.errors import CorruptRecordError, WriteError
from datum.format import ShardInfo

SHARD = ShardInfo("shard", 1, 3, None)


def write(target):
    target.write(b"abc")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DATUM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_cache_directory_is_told_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DATUM_CACHE", "~/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("DATUM_CACHE")
    assert cache_folder() == Path("/xdg/datum")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache_folder() == tmp_path / ".cache" / "datum"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "datum"


def test_who_has_no_home_keeps_files_for_now(monkeypatch):
    monkeypatch.delenv("DATUM_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def find_no_home(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", find_no_home)
    assert cache_folder() is None
    path = keep("a", write)
    assert path in places("a")
    assert path.read_bytes() == b"abc"


def test_a_file_is_kept_whole_and_under_its_name_alone(cache):
    assert keep("a", write) == cache / "a" == places("a")[0]
    assert keep("a", write).read_bytes() == b"abc"
    assert list(cache.iterdir()) == [cache / "a"]


def test_what_fails_leaves_nothing(cache):
    def fail(target):
        target.write(b"half")
        raise ValueError("cut short")

    with pytest.raises(ValueError, match="cut short"):
        keep("a", fail)
    assert list(cache.iterdir()) == []


def test_where_nothing_can_be_written_files_are_kept_for_now(cache):
    cache.write_text("a file where the folder should be")
    path = keep("a", write)
    assert path.read_bytes() == b"abc"
    assert path.parent != cache
    assert path in places("a")
    assert cache.read_text() == "a file where the folder should be"


@pytest.mark.parametrize("make", [keep, keep_for_now])
def test_a_full_disk_is_told_with_what_to_do(cache, monkeypatch, make):
    def find_full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(local.os, "fsync", find_full)
    with pytest.raises(WriteError, match=r"No space left on device\nhint: set DATUM_CACHE"):
        make("a", write)
    assert not cache.exists() or list(cache.iterdir()) == []


def test_a_shard_that_changed_has_another_name(tmp_path):
    path, link = tmp_path / "shard", tmp_path / "link"
    path.write_bytes(b"abc")
    link.symlink_to(path)
    name = name_for(path, SHARD)
    assert name == name_for(path, SHARD) == name_for(link, SHARD)
    os.utime(path, ns=(5, 5))
    assert name_for(path, SHARD) != name
    os.utime(path, ns=(7, 7))
    later = name_for(path, SHARD)
    path.write_bytes(b"abcd")
    os.utime(path, ns=(7, 7))
    assert name_for(path, SHARD) != later


def test_a_shard_replaced_at_the_same_size_and_time_has_another_name(tmp_path):
    path, other = tmp_path / "shard", tmp_path / "other"
    for one, content in ((path, b"abc"), (other, b"xyz")):
        one.write_bytes(content)
        os.utime(one, ns=(7, 7))
    name = name_for(path, SHARD)
    other.replace(path)
    assert name_for(path, SHARD) != name


def test_what_was_made_of_a_file_that_changed_meanwhile_is_refused(tmp_path):
    path = tmp_path / "shard"
    path.write_bytes(b"abc")
    name = name_for(path, SHARD)
    check_unchanged(path, SHARD, name)
    path.write_bytes(b"xyz")
    with pytest.raises(CorruptRecordError, match="shard: the file was changed while it was read"):
        check_unchanged(path, SHARD, name)


RUN = """
import multiprocessing, sys
from datum._read.local import keep_for_now

def make(name):
    return print(keep_for_now(name, lambda target: target.write(b"abc")), flush=True)

if __name__ == "__main__":
    make("parent")
    worker = multiprocessing.get_context(sys.argv[1]).Process(target=make, args=("worker",))
    worker.start()
    worker.join()
    make("again")
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_is_kept_for_now_goes_with_its_process(tmp_path, method):
    script = tmp_path / "run.py"
    script.write_text(RUN)
    command = [sys.executable, script, method]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    parent, worker, again = map(Path, ran.stdout.split())
    assert parent.parent == again.parent != worker.parent
    assert not parent.parent.exists()
    assert not worker.parent.exists()


KILLED = """
import os, signal
from datum._read.local import keep, keep_for_now

def fill(target):
    target.write(b"half")
    target.flush()
    os.kill(os.getpid(), signal.SIGKILL)

keep_for_now("whole", lambda target: target.write(b"abc"))
keep("a", fill)
"""


def test_what_killed_processes_left_is_removed_by_the_next(cache, tmp_path):
    for _ in range(2):
        environment = {**os.environ, "DATUM_CACHE": str(cache), "TMPDIR": str(tmp_path)}
        ran = subprocess.run([sys.executable, "-c", KILLED], check=False, env=environment)
        assert ran.returncode < 0
        assert len(list(cache.iterdir())) == 1
        assert len(list(tmp_path.glob("datum-cache-*"))) == 1
    keep("b", write)
    assert [path.name for path in cache.iterdir()] == ["b"]
