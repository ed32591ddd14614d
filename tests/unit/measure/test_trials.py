"""What is tried beside what was asked for."""

import pytest

from datum._inspect.measure import run
from datum._inspect.measure.advice import CACHED, LARGER_BATCHES, MORE_THREADS
from datum._inspect.measure.contenders import ImageSizes
from datum._inspect.measure.measurement import Machine
from datum._inspect.measure.timing import take_sample
from datum._load.options import LoadOptions


def tried(dataset, options, *, sizes=None, memory=10**9, records=96):
    sample = take_sample(dataset["train"], 96)
    machine = Machine("cpu", 2, memory, "Linux")
    return list(
        run.trial_contenders(sample, options, records=records, sizes=sizes, machine=machine)
    )


def names(*args, **options):
    return [contender.name for contender in tried(*args, **options)]


def test_larger_batches_are_tried_where_there_are_records_for_one(numbers):
    assert names(numbers, LoadOptions(batch_size=8)) == [LARGER_BATCHES]
    assert names(numbers, LoadOptions(batch_size=64)) == []


def test_a_batch_of_images_or_mapped_records_is_large_enough(numbers):
    sizes = ImageSizes(100, 10**12)
    assert LARGER_BATCHES not in names(numbers, LoadOptions(batch_size=17), sizes=sizes)
    assert LARGER_BATCHES in names(numbers, LoadOptions(batch_size=8), sizes=sizes)


@pytest.mark.parametrize(("memory", "expected"), [(10**9, [CACHED]), (10**3, []), (None, [])])
def test_a_cache_is_tried_where_memory_suffices(photos, memory, expected):
    sizes = ImageSizes(320, 300_000)
    assert names(photos, LoadOptions(), sizes=sizes, memory=memory) == expected


def test_more_threads_are_tried_where_fewer_were_asked_for(numbers, monkeypatch):
    monkeypatch.setattr(run, "thread_count", lambda threads: 4)
    assert names(numbers, LoadOptions(batch_size=64, threads=1)) == [MORE_THREADS]
    assert names(numbers, LoadOptions(batch_size=64, threads=4)) == []


def test_a_trial_goes_through_all_records(numbers):
    (trial,) = tried(numbers, LoadOptions(batch_size=8))
    assert trial.batches == 2
    assert len(list(trial.run(3))) == 6
