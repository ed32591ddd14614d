"""What is paid once: only what can be told is told."""

import os

import datum
from datum._inspect.measure import contenders
from datum._inspect.measure.timing import take_sample
from datum._load.options import LoadOptions


def test_a_few_bytes_tell_nothing_of_a_disk(numbers):
    assert contenders.measure_disk(take_sample(numbers["train"], 96).pieces, seconds=1) is None


def large(tmp_path):
    datum.write({"x": [os.urandom(2**16)] * 40}, tmp_path / "d", progress=False)
    return take_sample(datum.load(tmp_path / "d")["train"], 40).pieces


def test_bytes_that_come_as_fast_as_from_memory_tell_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(contenders, "_read_whole", lambda parts: 0.5)
    assert contenders.measure_disk(large(tmp_path), seconds=1) is None


def test_the_speed_is_that_of_the_first_read(tmp_path, monkeypatch):
    pieces = large(tmp_path)
    total = sum(piece.end - piece.start for piece in pieces)
    times = iter([2.0, 0.1] * contenders.ROUNDS)
    monkeypatch.setattr(contenders, "_read_whole", lambda parts: next(times))
    assert contenders.measure_disk(pieces, seconds=1) == total / 2.0


def test_no_more_is_forgotten_than_need_be(tmp_path, monkeypatch):
    pieces = large(tmp_path)
    monkeypatch.setattr(contenders, "MAX_BYTES", 1000)
    ((path, start, end),) = contenders._some(pieces)
    assert (path, start, end) == (pieces[0].path, 0, 1000)


def test_reading_goes_through_all_parts(tmp_path):
    parts = contenders._some(large(tmp_path))
    contenders._forget(parts)
    assert contenders._read_whole(parts) > 0


def test_only_compressed_files_are_inflated(numbers, squeezed):
    assert contenders.inflating_s(take_sample(numbers["train"], 10)) is None
    assert contenders.inflating_s(take_sample(squeezed["train"], 10)) > 0


def test_opening_is_told_for_one_shard(numbers):
    assert contenders.opening_s(numbers["train"], LoadOptions()) >= 0
