"""Trials, their times, and the figures made of them."""

import gc
import json
from collections.abc import Iterator

import pytest

from datum._inspect.measure import run
from datum._inspect.measure.advice import CACHED, LARGER_BATCHES, MORE_THREADS
from datum._inspect.measure.contenders import ImageSizes
from datum._inspect.measure.measurement import Machine
from datum._inspect.measure.timing import ROUNDS, Contender, Timing, calibrate, race, take_sample
from datum._load.options import LoadOptions
from tests.unit.measure.made import make_measurement


class Watch:
    """A clock that stands still unless it is told to go on."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def contender(name="one", *, takes=1.0, starts=0.0, batches=2, log=None, **more):
    """Each batch takes some time by the watch, and starting does."""
    watch = Watch()

    def run(passes):
        if log is not None:
            log.append(name)
        watch.now += starts
        for _ in range(passes * batches + more.get("lead", 0)):
            watch.now += takes
            yield

    return Contender(name, run, batches, clock=watch, **more)


def test_the_time_of_a_pass_is_told_for_each_turn():
    found = race([contender(takes=0.25, passes=3)], seconds=100)
    assert found["one"].seconds == (0.5,) * ROUNDS


def test_a_pass_of_several_epochs_counts_as_several():
    found = race([contender(takes=0.25, epochs=5)], seconds=100)
    assert found["one"].median == pytest.approx(0.1)


def test_what_leads_in_is_not_timed():
    found = race([contender(takes=0.25, starts=50.0, lead=2)], seconds=100)
    assert found["one"].seconds == (0.5,) * ROUNDS


def test_contenders_take_turns_and_every_round_starts_with_the_next():
    log = []
    race([contender(name, log=log) for name in "abc"], seconds=100)
    assert "".join(log) == "abcbcacababcbca"


def test_progress_is_told_before_every_turn():
    told = []
    race(
        [contender("a"), contender("b")],
        seconds=100,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(at, 2 * ROUNDS) for at in range(2 * ROUNDS)]


def test_other_batches_than_expected_are_no_result():
    wrong = Contender("short", lambda passes: range(passes), 2)
    with pytest.raises(RuntimeError, match="short: expected 2 batches, got 1"):
        race([wrong], seconds=1)


def test_a_slow_contender_sits_out(monkeypatch):
    watch = Watch()
    monkeypatch.setattr("datum._inspect.measure.timing.time.perf_counter", watch)

    def run(passes):
        watch.now += 10.0
        yield

    found = race([Contender("slow", run, 1)], seconds=1.0)
    assert len(found["slow"].seconds) == 1


def test_a_quick_contender_has_all_its_turns(monkeypatch):
    watch = Watch()
    monkeypatch.setattr("datum._inspect.measure.timing.time.perf_counter", watch)

    def run(passes):
        watch.now += 0.2
        yield

    assert len(race([Contender("quick", run, 1)], seconds=1.0)["quick"].seconds) == ROUNDS


def test_calibrating_finds_how_many_passes_fill_a_turn():
    assert calibrate(contender(takes=0.05, batches=1), turn_s=1.0) == 20
    assert calibrate(contender(takes=5.0, batches=1), turn_s=1.0) == 1


def test_the_first_pass_does_not_count_where_there_is_time_for_another():
    watch = Watch()
    takes = iter([0.5, 0.1])

    def run(passes):
        watch.now += next(takes)
        yield

    assert calibrate(Contender("cold", run, 1, clock=watch), turn_s=1.0) == 10


def test_no_time_at_all_still_gives_a_bounded_number_of_passes():
    assert calibrate(contender(takes=0.0, batches=1), turn_s=1.0) == 10_000


@pytest.mark.parametrize(
    ("seconds", "median", "spread"),
    [
        ((2.0,), 2.0, 0.0),
        ((1.0, 3.0), 2.0, 0.25),
        ((1.0, 2.0, 3.0, 4.0, 100.0), 3.0, 1 / 3),
        ((0.0, 0.0), 0.0, 0.0),
    ],
)
def test_median_and_spread(seconds, median, spread):
    timing = Timing(seconds)
    assert timing.median == median
    assert timing.spread == pytest.approx(spread)


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    """As in a program of its own: what was there before the tests is frozen."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("nothing_frozen")
def test_the_garbage_collector_is_left_as_it_was():
    seen = []

    def run(passes):
        seen.append(gc.get_freeze_count())
        yield

    race([Contender("one", run, 1)], seconds=100)
    assert seen[0] > 0
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("nothing_frozen")
def test_what_somebody_froze_stays_frozen():
    gc.freeze()
    try:
        race([contender()], seconds=100)
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


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


def test_a_summary_names_stages_loaders_bottleneck_and_advice():
    text = str(make_measurement())
    assert text.startswith("photos: split 'train': 12,345 records, 10 shards, 1.2 GB\n")
    assert "  decode            90%      900.00 us a record         1,000 records/s so far" in text
    assert "to_tf graph     not measured: no such <format>" in text
    assert "decoding takes 90 % of the time" in text
    assert "- images fit in memory: ds.to_numpy(..., cache=True) (12.3x, measured)" in text
    assert text.endswith("the machine is busy")


def test_a_summary_without_loaders_has_stages_alone():
    text = str(
        make_measurement(speeds=(), advice=(), bottleneck=None, notes=(), compression="zlib")
    )
    assert text.count("\n") == 3
    assert "1.2 GB, zlib" in text


def test_json_has_every_figure_as_plain_values():
    found = json.loads(json.dumps(make_measurement().to_json()))
    assert found["records_per_s"] == 1000.0
    assert [stage["name"] for stage in found["stages"]] == ["read", "parse", "decode"]
    assert found["stages"][2] == {
        "name": "decode",
        "us_per_record": 900.0,
        "share": 0.9,
        "records_per_s": 1000.0,
        "mb_per_s": 100.0,
        "spread": 0.03,
    }
    assert found["speeds"][2]["problem"] == "no such <format>"
    assert found["speeds"][2]["records_per_s"] is None
    assert found["machine"]["versions"] == {"Python": "3.12.1"}
    assert found["paid"]["disk_mb_per_s"] == 500.0
    assert found["bottleneck"]["stage"] == "decode"
    assert found["advice"][0]["basis"] == "measured"
    assert found["missing"] == ["jax"]
    assert found["options"]["batch_size"] == 64


def test_the_best_is_the_fastest_loader_of_datum():
    from dataclasses import replace

    found = make_measurement()
    assert found.best.name == "to_numpy"
    slow = replace(found.speeds[0], records_per_s=1.0)
    assert make_measurement(speeds=(slow, found.speeds[1])).best.name == "to_numpy"
    assert make_measurement(speeds=()).best is None
