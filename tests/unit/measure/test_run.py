"""The course of a measurement; request.py is what a user calls."""

import pytest

from datum._inspect.measure import run
from datum._inspect.measure.run import Asked, measure_records
from datum._load.options import LoadOptions


def asked(dataset, **options):
    return Asked(
        name="given",
        dataset=dataset,
        split=dataset["train"],
        options=LoadOptions(batch_size=16, **options),
        seconds=0.01,
        workers=1,
        progress=None,
    )


def test_to_numpy_is_always_there_to_compare_with(numbers):
    found = measure_records(asked(numbers), [])
    assert [speed.name for speed in found.speeds] == ["to_numpy"]
    assert found.path == "given"


def test_a_loader_that_fails_keeps_nothing_from_being_measured(numbers, monkeypatch):
    def entries(framework, sample, settings):
        def fail():
            raise OSError("no processes\nhere")

        yield run.Entry("numpy", "broken", "", fail)
        yield from run_entries(framework, sample, settings)

    run_entries = run.loader_entries
    monkeypatch.setattr(run, "loader_entries", entries)
    broken, sound = measure_records(asked(numbers), ["numpy"]).speeds
    assert (broken.name, broken.problem) == ("broken", "no processes")
    assert sound.records_per_s > 0


def test_what_is_missing_is_listed(numbers, monkeypatch):
    versions = {"numpy": "2"}
    monkeypatch.setattr(run, "find_version", lambda name, is_needed: versions.get(name))
    found = measure_records(asked(numbers), None)
    assert found.missing == ("torch", "jax", "tf")


def test_records_are_chosen_by_how_long_they_take(numbers, monkeypatch):
    monkeypatch.setattr(run, "_probe", lambda few, options, long_s: long_s / 20)
    assert measure_records(asked(numbers), []).measured_records == 32


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([1.0, 1.5, 3.0], 2.0 / 4 / 10),  # what the first pass took to open is left out
        ([1.0, 9.0], 8.0 / 1 / 10),
        ([5.0, 4.0], 4.0 / 8 / 10),  # noise: not less than a part of it
    ],
)
def test_the_time_of_a_record_is_found_by_growing_passes(numbers, monkeypatch, times, expected):
    few = run.take_sample(numbers["train"], 10)
    taken = iter(times)
    monkeypatch.setattr(run, "_pass_s", lambda sample, options, epochs: next(taken))
    assert run._probe(few, LoadOptions(), long_s=2.0) == pytest.approx(expected)
