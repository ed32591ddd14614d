import pytest

from datum.frameworks.tensorflow.options import TfOptions
from datum.frameworks.tensorflow.readers import ReadRequest, RecordSteps
from datum.frameworks.tensorflow.windowed import WindowedReader
from tests.unit.frameworks.tensorflow.written import numbers, write_numbers


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    return write_numbers(tmp_path_factory.mktemp("numbers"), 103)["train"]


def reader(split, host=(0, 1), **options):
    request = ReadRequest(split=split, schema=split.schema, options=TfOptions(**options), host=host)
    return WindowedReader(request)


def same(records):
    return records


AS_READ = RecordSteps(decode=None, finish=same)


def test_a_host_reads_its_stretch_of_the_split(split):
    parts = [reader(split, (index, 3), batch_size=10) for index in range(3)]
    assert [part.batches_per_epoch for part in parts] == [4, 4, 4]
    assert [n for part in parts for n in numbers(part.batches())] == list(range(103))
    assert [n for part in parts for n in numbers(part.records(AS_READ))] == list(range(103))


def test_batches_are_those_of_all_epochs(split):
    made = reader(split, epochs=2, batch_size=50).batches()
    assert [len(batch["x"]) for batch in made] == [50, 50, 3] * 2
    assert len(numbers(reader(split, epochs=2).records(AS_READ))) == 206


def test_records_are_decoded_before_they_are_kept(split):
    calls = []

    def decode(record):
        calls.append(record)
        return {"x": record["x"] + 1}

    kept = reader(split, cache=True, shuffle=True).records(RecordSteps(decode=decode, finish=same))
    first, second = numbers(kept), numbers(kept)
    assert sorted(first) == sorted(second) == list(range(1, 104))
    assert first != second
