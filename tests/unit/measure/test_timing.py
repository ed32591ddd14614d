"""Contenders take turns; what is told is a median."""

import gc
from collections.abc import Iterator

import pytest

from datum._inspect.measure.timing import ROUNDS, Contender, Timing, calibrate, race


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
