"""Paths that are no plain files, files that change, and files that were closed."""

from __future__ import annotations

import array
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from datum import Feature, Schema
from datum.format import RecordFile, discover, encode, frame, parse, read_batches
from tests.hostile.shards import framed

SCHEMA = Schema({"x": Feature("int64")})
ROWS = [{"x": i} for i in range(10)]


def test_a_fifo_is_refused_without_waiting(tmp_path):
    path = tmp_path / "fifo.tfrecord"
    os.mkfifo(path)
    code = "import sys; from datum.format import RecordFile; RecordFile(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=120
    )
    assert "OSError" in done.stderr
    assert "expected a regular file" in done.stderr


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the names of sockets must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(OSError, match="socket"):
            RecordFile("socket")


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/random"])
def test_a_device_is_refused(device):
    for use in (RecordFile, discover, lambda path: list(read_batches(path, SCHEMA))):
        with pytest.raises(OSError, match="expected a regular file"):
            use(device)


def test_a_folder_is_refused(tmp_path):
    for use in (RecordFile, discover, lambda path: list(read_batches(path, SCHEMA))):
        with pytest.raises(OSError, match=tmp_path.name):
            use(tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    for use in (RecordFile, discover, lambda path: list(read_batches(path, SCHEMA))):
        with pytest.raises(FileNotFoundError, match="missing"):
            use(tmp_path / "missing.tfrecord")


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="a"):
        RecordFile(tmp_path / "a")


@pytest.mark.parametrize("name", ["with space", "new\nline", "ümlaut", "-rf", "%s{0}", "a.index"])
def test_files_of_odd_names_are_read(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(framed(b"one"))
    assert list(RecordFile(path)) == [b"one"]
    assert RecordFile(path)[0] == b"one"


def test_a_name_with_a_null_is_refused():
    with pytest.raises(ValueError, match="null"):
        RecordFile("a\0b")


@pytest.mark.parametrize("source", [None, 5, 1.5, [], {}, ["a"], object()])
def test_what_is_neither_path_nor_memory_is_refused(source):
    with pytest.raises(TypeError):
        list(RecordFile(source))


def test_memory_of_any_form_is_read_byte_by_byte():
    shard = framed(b"one", b"four", bytes(9))
    assert len(shard) % 8 == 0
    for memory in (
        bytearray(shard),
        memoryview(shard),
        np.frombuffer(shard, np.uint8),
        np.frombuffer(shard, np.int64),
        array.array("I", shard),
    ):
        file = RecordFile(memory)
        assert list(file) == [b"one", b"four", bytes(9)]
        assert file[1] == b"four"
        assert next(file.chunks())[1] == b"four"


def test_memory_with_gaps_is_refused():
    shard = memoryview(framed(b"one") * 2)[::2]
    with pytest.raises((BufferError, ValueError, TypeError, NotImplementedError)):
        list(RecordFile(shard))


def test_a_file_replaced_while_it_is_read_stays_what_it_was(tmp_path):
    path, other = tmp_path / "shard.tfrecord", tmp_path / "other"
    path.write_bytes(encode(ROWS, SCHEMA).to_bytes())
    other.write_bytes(framed(b"something else"))
    file = RecordFile(path)
    chunks = file.chunks(3)
    first = parse(next(chunks), SCHEMA)["x"].tolist()
    other.replace(path)
    rest = [x for records in chunks for x in parse(records, SCHEMA)["x"].tolist()]
    assert first + rest == list(range(10))
    assert list(RecordFile(path)) == [b"something else"]


def test_a_file_deleted_while_it_is_read_stays_what_it_was(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(framed(b"one", b"two"))
    file = RecordFile(path)
    path.unlink()
    assert list(file) == [b"one", b"two"]


def test_a_file_that_grows_while_it_is_read_ends_where_it_ended(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(framed(b"one", b"two"))
    file = RecordFile(path)
    with path.open("ab") as end:
        end.write(framed(b"three"))
    assert list(file) == [b"one", b"two"]
    assert list(RecordFile(path)) == [b"one", b"two", b"three"]


def test_a_file_cut_while_it_is_open_is_an_error_not_a_crash(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(framed(*[b"x" * 5000] * 10))
    code = """
import os, sys
from datum import CorruptRecordError
from datum.format import RecordFile
file = RecordFile(sys.argv[1])
len(file)
chunks = RecordFile(sys.argv[1]).chunks(2)
first = next(chunks)
os.truncate(sys.argv[1], 100)
caught = 0
for use in (lambda: list(file), lambda: file[9], lambda: list(chunks)):
    try:
        use()
    except CorruptRecordError as error:
        assert sys.argv[1] in str(error), error
        caught += 1
print(caught)"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode != -signal.SIGBUS, "the process was killed"
    assert done.stdout == "3\n", done.stderr


def test_a_closed_file_is_refused_in_every_way(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(framed(b"one", b"two", b"three"))
    content = path.read_bytes()
    for source in (path, content):
        file = RecordFile(source)
        begun = file.chunks(1)
        assert next(begun)[0] == b"one"
        assert len(file) == 3
        file.close()
        file.close()
        for use in (
            lambda file=file: list(file),
            lambda file=file: list(file.chunks()),
            lambda file=file: file[0],
            lambda file=file: file[:],
            lambda file=file: file.records([0]),
        ):
            with pytest.raises(ValueError, match="closed"):
                use()
        assert [records[0] for records in begun] == [b"two", b"three"]  # it has its own hold


def test_what_was_read_outlives_the_file(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(encode([{"x": b"abc" * 50}] * 5).to_bytes())
    with RecordFile(path) as file:
        records = next(file.chunks())
        column = parse(records, Schema({"x": Feature("bytes")}))["x"]
    path.unlink()
    assert column.to_list() == [b"abc" * 50] * 5
    assert len(list(records)) == 5


def test_what_was_written_outlives_its_rows():
    framed_records = frame([b"x" * 100 for _ in range(100)])
    records = framed_records.records()
    del framed_records
    assert list(records) == [b"x" * 100] * 100


@pytest.mark.parametrize("recovery", ["", "STRICT", None, "skip ", 1])
def test_a_recovery_mode_that_does_not_exist_is_refused(recovery, tmp_path):
    with pytest.raises(ValueError, match="recovery"):
        RecordFile(b"", recovery=recovery)
    with pytest.raises(ValueError, match="recovery"):
        list(read_batches(tmp_path, SCHEMA, recovery=recovery))


@pytest.mark.parametrize("count", [0, -1])
def test_counts_below_one_are_refused(count, tmp_path):
    with pytest.raises(ValueError, match="max_records"):
        RecordFile(b"").chunks(count)
    with pytest.raises(ValueError, match="batch_size"):
        read_batches(tmp_path, SCHEMA, batch_size=count)


@pytest.mark.parametrize("limit", [-1, -(2**63)])
def test_a_negative_limit_is_refused(limit):
    with pytest.raises(ValueError, match="limit"):
        discover([b"", b""], limit=limit)


@pytest.mark.parametrize("numbers", [[10], [-11], [0, 99], [2**62], [-(2**63)], [2**63], [2**100]])
def test_numbers_outside_the_file_are_refused(numbers):
    file = RecordFile(encode(ROWS, SCHEMA).to_bytes())
    with pytest.raises((IndexError, OverflowError, TypeError)):
        file.records(numbers)
    with pytest.raises((IndexError, OverflowError, TypeError)):
        file[numbers[-1]]


@pytest.mark.parametrize("numbers", [[1.5], ["a"], [None], [[0, 1]], [True, False]])
def test_what_are_no_numbers_is_refused(numbers):
    file = RecordFile(encode(ROWS, SCHEMA).to_bytes())
    with pytest.raises((TypeError, ValueError, IndexError)):
        file.records(numbers)
