"""Findings become figures."""

import pytest

from datum._inspect.measure.contenders import Entry
from datum._inspect.measure.measurement import Machine, Paid
from datum._inspect.measure.run import Findings, first_line, make_measurement
from datum._inspect.measure.timing import Timing, take_sample
from datum._load.options import LoadOptions


def never():
    raise AssertionError("nothing is measured here")


def flip(record):
    return record


def findings(dataset, **changes):
    split = dataset["train"]
    facts = {
        "name": "numbers",
        "split": split,
        "sample": take_sample(split, 10),
        "options": LoadOptions(batch_size=5, columns=["x"], shuffle=True, threads=3),
        "seconds": 1.5,
        "workers": 2,
        "timings": {
            "read": Timing((1e-5, 3e-5, 2e-5)),
            "crc": Timing((4e-5,)),
            "parse": Timing((6e-5,)),
            "batch": Timing((1e-4,)),
            "to_numpy": Timing((5e-5, 5e-5)),
            "to_torch": Timing((1e-4, 1e-4)),
        },
        "machine": Machine("cpu", 4, 10**9, "Linux"),
        "paid": Paid(),
        "entries": (
            Entry("numpy", "to_numpy", "ds.to_numpy(...)", never),
            Entry("torch", "to_torch", "ds.to_torch(...)", never),
            Entry("torch", "DataLoader", "DataLoader(...)", never),
        ),
        "problems": {"DataLoader": "no processes"},
    }
    return Findings(**(facts | changes))


def test_stages_have_costs_a_record(numbers):
    found = make_measurement(findings(numbers))
    costs = {stage.name: stage.us_per_record for stage in found.stages}
    assert costs == pytest.approx({"read": 2.0, "crc": 2.0, "parse": 2.0, "batch": 4.0})
    assert found.records_per_s == pytest.approx(100_000)
    assert found.bottleneck.stage == "batch"


def test_loaders_have_speeds_or_a_problem(numbers):
    found = make_measurement(findings(numbers))
    numpy, torch, workers = found.speeds
    assert numpy.records_per_s == pytest.approx(200_000)
    assert numpy.us_per_record == pytest.approx(5.0)
    assert numpy.mb_per_s == pytest.approx(0.2 * found.record_bytes)
    assert torch.spread == 0.0
    once = {**findings(numbers).timings, "to_torch": Timing((1e-4,))}
    assert make_measurement(findings(numbers, timings=once)).speeds[1].spread is None
    assert (workers.records_per_s, workers.problem) == (None, "no processes")


def test_what_was_asked_is_told(numbers):
    found = make_measurement(findings(numbers))
    assert found.options == {
        "batch_size": 5,
        "shuffle": True,
        "columns": ["x"],
        "threads": 3,
        "workers": 2,
        "map": None,
        "seconds": 1.5,
    }
    assert (found.path, found.split, found.records, found.shards) == ("numbers", "train", 96, 3)
    assert found.measured_records == 10


def test_the_function_is_told_by_its_name(numbers):
    options = LoadOptions(map=flip)
    found = make_measurement(findings(numbers, options=options))
    assert found.options["map"].endswith(":flip")


def test_compression_is_told(squeezed):
    found = make_measurement(findings(squeezed, paid=Paid(inflate_us_per_record=30.0)))
    assert found.compression == "gzip"
    assert "compression" in {one.kind for one in found.advice}


def test_noise_is_told(numbers):
    noisy = {name: Timing((1e-5, 9e-5, 2e-5)) for name in ("read", "crc", "parse", "batch")}
    found = make_measurement(findings(numbers, timings=noisy))
    assert any("% apart" in note for note in found.notes)
    assert not any("% apart" in note for note in make_measurement(findings(numbers)).notes)


def test_small_splits_are_told(numbers):
    found = make_measurement(findings(numbers, options=LoadOptions(batch_size=1000)))
    assert "the split has fewer records than a batch" in found.notes


def test_a_function_that_tensorflow_went_without_is_told(numbers):
    by_hand = Entry("tf", "tf.data by hand", "", never)
    options = LoadOptions(map=flip)
    found = make_measurement(findings(numbers, options=options, entries=(by_hand,)))
    assert any("without `map`" in note for note in found.notes)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("one\ntwo"), "one"),
        (ValueError(""), "ValueError"),
        (ValueError("x" * 500), "x" * 157 + "..."),
    ],
)
def test_an_error_in_one_line(error, expected):
    assert first_line(error) == expected
