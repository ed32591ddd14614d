"""Readers that are left half way, by whatever door: no thread, file or lock stays behind."""

from __future__ import annotations

import gc
import itertools
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from datum import CorruptRecordError, Feature, Schema, SchemaError
from datum.format import encode, parse, read_batches
from tests.hostile.shards import flipped
from tests.signals import usual_signals

SCHEMA = Schema({"x": Feature("int64", (200,))})
ROWS = [{"x": list(range(i, i + 200))} for i in range(300)]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "shard.tfrecord"
    path.write_bytes(encode(ROWS, SCHEMA).to_bytes())
    return path


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    before = set(threading.enumerate())
    files = open_files()
    yield
    gc.collect()
    left = set(threading.enumerate()) - before
    assert not left
    assert open_files() <= files


def open_files() -> set[str]:
    """The shards that this process has open or mapped, where the system tells."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return set()
    links = (str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    mapped = (line.split(maxsplit=5)[-1] for line in maps.read_text().splitlines())
    return {name.strip() for name in (*links, *mapped) if ".tfrecord" in name}


@pytest.mark.parametrize("threads", [1, 4])
def test_a_reader_that_is_read_to_its_end(path, threads):
    batches = list(read_batches(path, SCHEMA, batch_size=10, threads=threads))
    assert [int(batch["x"][0, 0]) for batch in batches] == list(range(0, 300, 10))


@pytest.mark.parametrize("threads", [1, 4])
def test_a_reader_that_is_never_started(path, threads):
    iter(read_batches(path, SCHEMA, batch_size=10, threads=threads))


@pytest.mark.parametrize("threads", [1, 4])
def test_a_reader_that_is_dropped_half_way(path, threads):
    batches = iter(read_batches(path, SCHEMA, batch_size=10, threads=threads))
    for _ in range(3):
        next(batches)
    del batches


@pytest.mark.parametrize("threads", [1, 4])
def test_a_reader_that_is_closed_half_way(path, threads):
    batches = iter(read_batches(path, SCHEMA, batch_size=10, threads=threads))
    next(batches)
    batches.close()
    with pytest.raises(StopIteration):
        next(batches)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_a_consumer_that_fails(path, threads, error):
    def consume() -> None:
        for number, _ in enumerate(read_batches(path, SCHEMA, batch_size=10, threads=threads)):
            if number == 2:
                raise error

    with pytest.raises(error):
        consume()


@pytest.mark.parametrize("threads", [1, 4])
def test_a_record_that_does_not_fit(path, threads):
    rows = [{"x": [1]} if i == 55 else row for i, row in enumerate(ROWS)]
    path.write_bytes(encode(rows, Schema({"x": Feature("int64", (None,))})).to_bytes())
    batches = iter(read_batches(path, SCHEMA, batch_size=10, threads=threads))
    assert len(list(itertools.islice(batches, 5))) == 5
    with pytest.raises(SchemaError, match=r"shard\.tfrecord: record 55 at byte \d+, feature 'x'"):
        next(batches)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_record_that_is_damaged(path, threads):
    shard = path.read_bytes()
    path.write_bytes(flipped(shard, 4 * len(shard)))
    with pytest.raises(CorruptRecordError, match="payload checksum"):
        list(read_batches(path, SCHEMA, batch_size=10, threads=threads))


@pytest.mark.parametrize("threads", [1, 4])
def test_a_file_that_is_missing_among_others(path, threads):
    paths = [path, path.with_name("missing.tfrecord")]
    with pytest.raises(FileNotFoundError, match="missing"):
        list(read_batches(paths, SCHEMA, batch_size=10, threads=threads))


def test_two_readings_of_one_reader_at_once(path):
    reader = read_batches(path, SCHEMA, batch_size=10, threads=2)
    for one, other in zip(reader, reader, strict=True):
        assert (one["x"] == other["x"]).all()


def test_parsing_with_many_threads(path):
    records = encode(ROWS * 20, SCHEMA).records()
    expected = parse(records, SCHEMA, threads=1)["x"]
    for threads in (2, 3, 64, 10_000, 2**31):
        assert (parse(records, SCHEMA, threads=threads)["x"] == expected).all()


@pytest.mark.parametrize("threads", [0, -1])
def test_thread_counts_that_are_none_are_refused(path, threads):
    for use in (
        lambda: parse([b""], SCHEMA, threads=threads),
        lambda: encode(ROWS, SCHEMA, threads=threads),
        lambda: list(read_batches(path, SCHEMA, threads=threads)),
    ):
        with pytest.raises(ValueError, match="threads"):
            use()


def test_an_interrupt_from_the_keyboard_ends_the_process(path):
    code = """
import os, signal, sys
from datum import Feature, Schema
from datum.format import read_batches
schema = Schema({"x": Feature("int64", (200,))})
for batch in read_batches([sys.argv[1]] * 1000, schema, batch_size=10, threads=3):
    os.kill(os.getpid(), signal.SIGINT)"""
    with usual_signals():
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=120
        )
    assert "KeyboardInterrupt" in done.stderr
    assert done.returncode == -signal.SIGINT


def test_a_reader_left_open_does_not_keep_the_process(path):
    code = """
import sys
from datum import Feature, Schema
from datum.format import read_batches
schema = Schema({"x": Feature("int64", (200,))})
batches = iter(read_batches([sys.argv[1]] * 1000, schema, batch_size=10, threads=3))
next(batches)
print("done")"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
