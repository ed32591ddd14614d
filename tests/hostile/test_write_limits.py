"""Writes that meet the limits of the system: full disks, few open files, folders of others."""

import errno
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import datum
from datum._write import spill
from datum.sources import ClassFolders
from tests.unit.write.datasets import digests, read, write

IS_ROOT = os.geteuid() == 0
NOBODY = 65534


def columns():
    return {"x": np.arange(20_000) / 3, "text": np.array([f"record {i}" for i in range(20_000)])}


def rows():
    return ({"x": number, "text": f"record {number}"} for number in range(20_000))


def in_child(work):
    """What a piece of work says in a process of its own: None if it succeeds."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as pipe:
        said = pipe.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1), f"ended with {code}"
    return said if code else None


def limit(kind, value):
    resource.setrlimit(kind, (value, value))


@pytest.mark.parametrize("nbytes", [0, 10, 300, 40_000, 200_000])
@pytest.mark.parametrize("source", [columns, rows])
@pytest.mark.parametrize("held_bytes", [spill.HELD_BYTES, 50_000])
def test_a_file_that_may_not_grow_is_told_and_the_old_dataset_stays(
    tmp_path, monkeypatch, source, held_bytes, nbytes
):
    monkeypatch.setattr(spill, "HELD_BYTES", held_bytes)
    write([{"old": 1}], tmp_path / "out")
    before = digests(tmp_path / "out")

    def work():
        limit(resource.RLIMIT_FSIZE, nbytes)
        write(source(), tmp_path / "out", shards=2, workers=1, overwrite=True)

    said = in_child(work)
    assert said.startswith("WriteError: ")
    assert os.strerror(errno.EFBIG) in said
    assert "hint: the same call" in said
    assert digests(tmp_path / "out") == before
    write(source(), tmp_path / "out", shards=2, workers=1, overwrite=True)
    write(source(), tmp_path / "fresh", shards=2, workers=1)
    assert digests(tmp_path / "out") == digests(tmp_path / "fresh")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "fresh"}


@pytest.mark.parametrize("source", [columns, rows])
def test_few_open_files_suffice_for_many_shards_and_a_spill(tmp_path, monkeypatch, source):
    monkeypatch.setattr(spill, "HELD_BYTES", 50_000)
    write(source(), tmp_path / "fresh", shards=200)

    def work():
        inherited = len(list(Path("/dev/fd").iterdir()))  # whatever the tests before left open
        limit(resource.RLIMIT_NOFILE, inherited + 60)
        write(source(), tmp_path / "out", shards=200, workers=4)

    assert in_child(work) is None
    assert digests(tmp_path / "out") == digests(tmp_path / "fresh")


def test_no_open_files_at_all_is_told(tmp_path):
    def work():
        data = columns()
        limit(resource.RLIMIT_NOFILE, 4)
        write(data, tmp_path / "out", workers=1)

    said = in_child(work)
    assert said.startswith("WriteError: ")
    assert os.strerror(errno.EMFILE) in said
    write(columns(), tmp_path / "out")
    assert len(read(tmp_path / "out")) == 20_000


class NoTerminal:
    """What a program may have put in the place of stderr."""

    def write(self, text):
        raise OSError(errno.EIO, "hung up")

    def flush(self):
        raise OSError(errno.EIO, "hung up")


def closed_file():
    file = open(os.devnull, "w")  # noqa: SIM115 - to be closed
    file.close()
    return file


@pytest.mark.parametrize("stream", [None, NoTerminal(), closed_file()])
@pytest.mark.parametrize("progress", [None, True])
def test_a_terminal_that_is_gone_does_not_stop_a_write(tmp_path, monkeypatch, stream, progress):
    from datum._write import report as shown

    monkeypatch.setattr(shown, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", stream)
    for source in (columns(), rows()):
        datum.write(source, tmp_path / "out", overwrite=True, progress=progress)
    assert len(read(tmp_path / "out")) == 20_000


def as_nobody(work):
    def with_little_power():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        work()

    return in_child(with_little_power)


@pytest.fixture
def open_folder():
    """A folder that others may look into, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


@pytest.mark.skipif(not IS_ROOT, reason="only root can become someone else")
def test_a_parent_that_may_not_be_written_is_told_at_once(open_folder):
    parent = open_folder / "parent"
    parent.mkdir()
    write([{"x": 1}], parent / "old")
    before = digests(parent / "old")
    parent.chmod(0o555)
    asked = [
        ("new", {}),
        ("deep/er/new", {}),
        ("old", {"overwrite": True}),
        ("old", {"append": True}),
    ]

    def unread():
        raise AssertionError("it was read")
        yield

    for name, options in asked:
        said = as_nobody(lambda: write(unread(), parent / name, **options))  # noqa: B023
        assert said.startswith("WriteError: "), said
        assert os.strerror(errno.EACCES) in said
        assert str(parent) in said
    assert digests(parent / "old") == before
    assert [path.name for path in parent.iterdir()] == ["old"]


@pytest.mark.skipif(not IS_ROOT, reason="only root can become someone else")
def test_a_folder_that_may_not_be_looked_into_is_told(open_folder):
    (open_folder / "closed").mkdir(mode=0o700)
    said = as_nobody(lambda: write([{"x": 1}], open_folder / "closed" / "out"))
    assert said.startswith("WriteError: ")
    assert os.strerror(errno.EACCES) in said


@pytest.mark.skipif(not IS_ROOT, reason="only root can become someone else")
def test_files_that_may_not_be_read_are_rejected_by_name(open_folder):
    from PIL import Image

    for label in ("cat", "dog"):
        (open_folder / "photos" / label).mkdir(parents=True)
        for number in range(3):
            Image.new("RGB", (4, 4)).save(open_folder / "photos" / label / f"{number}.png")
    (open_folder / "photos" / "cat" / "1.png").chmod(0)
    (open_folder / "work").mkdir()
    (open_folder / "work").chmod(0o777)

    out = open_folder / "work" / "out"
    said = as_nobody(lambda: write(open_folder / "photos", out))
    assert said.startswith("SourceError: ")
    assert "1.png" in said
    assert "permission denied" in said
    assert as_nobody(lambda: write(open_folder / "photos", out, on_error="quarantine")) is None
    assert len(read(out)) == 5
    assert "cat/1.png" in (out / "quarantine.jsonl").read_text()

    (open_folder / "photos" / "cat").chmod(0)  # a whole folder is no single record
    photos = ClassFolders(open_folder / "photos")
    said = as_nobody(lambda: write(photos, out, on_error="quarantine", overwrite=True))
    assert said.startswith("SourceError: ")
    assert "permission denied" in said


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if not IS_ROOT or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
@pytest.mark.parametrize("source", [columns, rows])
def test_a_full_disk_is_told_and_the_write_goes_on_once_there_is_room(
    small_disk, tmp_path, monkeypatch, source
):
    monkeypatch.setattr(spill, "HELD_BYTES", 50_000)
    write([{"old": 1}], small_disk / "out")
    before = digests(small_disk / "out")
    with pytest.raises(datum.WriteError, match=os.strerror(errno.ENOSPC)):
        write(source(), small_disk / "out", shards=8, overwrite=True)
    assert digests(small_disk / "out") == before
    subprocess.run(["mount", "-o", "remount,size=9m", str(small_disk)], check=True)
    report = write(source(), small_disk / "out", shards=8, overwrite=True)
    assert (report.resumed_shards > 0) == (source is columns)
    write(source(), tmp_path / "fresh", shards=8)
    assert digests(small_disk / "out") == digests(tmp_path / "fresh")
    assert [path.name for path in small_disk.iterdir()] == ["out"]


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
def test_an_empty_mount_point_can_be_the_target(small_disk):
    write([{"x": 1}], small_disk)
    assert [row["x"] for row in read(small_disk)] == [1]
    write([{"x": 2}], small_disk, append=True)
    write([{"x": 3}], small_disk, overwrite=True)
    assert [row["x"] for row in read(small_disk)] == [3]
    assert {path.suffix for path in small_disk.iterdir()} == {
        ".json",
        "",  # the folder of the indexes
        ".tfrecord",
    }
