"""Some records of a part."""

import numpy as np
import pytest

from datum import SourceError
from datum._write import preview
from datum._write.preview import sample_part
from datum.sources import as_source


def part_of(source):
    (part,) = as_source(source).parts().values()
    return part


def numbers(sample):
    return [number for block in sample.held for number in block.numbers.tolist()]


def test_small_parts_are_read_whole():
    for source in ({"x": np.arange(50)}, [{"x": 1}] * 50, lambda: [{"x": 1}] * 50):
        sample = sample_part(part_of(source))
        assert sample.is_whole
        assert sample.seen == 50
        assert sorted(numbers(sample)) == list(range(50))


def test_large_parts_are_looked_at_all_over():
    sample = sample_part(part_of({"x": np.arange(100_000)}))
    assert not sample.is_whole
    found = numbers(sample)
    assert len(found) == len(set(found)) <= preview.SAMPLE_RECORDS + 32
    assert min(found) == 0
    assert max(found) == 99_999


def test_large_records_are_few():
    sample = sample_part(part_of({"x": np.zeros((200, 1000, 1000), np.uint8)}))
    assert sample.seen <= 32 + 10


def test_slow_records_are_few(monkeypatch):
    class Slow:
        def __len__(self):
            return 1000

        def __getitem__(self, number):
            clock[0] += 0.1
            return {"x": number}

    clock = [0.0]
    monkeypatch.setattr("datum._write.preview.time.monotonic", lambda: clock[0])
    assert sample_part(part_of(Slow())).seen < 60


def test_the_first_records_of_a_stream_are_read_and_the_rest_is_counted(monkeypatch):
    def stream():
        for number in range(20_000):
            yield {"x": number}

    monkeypatch.setattr(preview, "COUNT_SECONDS", 1e9)  # however busy the machine is
    sample = sample_part(part_of(stream))
    assert not sample.is_whole
    assert sample.total == 20_000
    assert numbers(sample) == list(range(4096))
    monkeypatch.setattr(preview, "COUNT_SECONDS", -1.0)
    assert sample_part(part_of(stream)).total is None


def test_a_sample_can_be_read_again():
    sample = sample_part(part_of([{"x": 1}] * 5))
    assert [len(block) for block in sample.blocks()] == [len(block) for block in sample.blocks()]


def test_an_iterator_is_refused():
    with pytest.raises(SourceError, match="got an iterator"):
        sample_part(part_of(iter([{"x": 1}])))


def test_no_records_are_a_sample_too():
    sample = sample_part(part_of({"x": np.arange(0)}))
    assert (sample.seen, sample.is_whole) == (0, True)
