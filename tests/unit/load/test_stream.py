"""Which records each batch has, and the position in them."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum._load.epoch_order import BLOCKS_PER_WINDOW, Order, key_of
from datum._load.stream import PassProgress, Place, Stream, check_state, fingerprint, to_state
from datum._read.shards import ShardRange
from datum.errors import SplitError, StateError
from datum.format import ShardInfo

SIZES = st.integers(1, 60)
HOSTS = st.integers(1, 5)
BATCH = st.integers(1, 9)


def streams(records, batch_size, hosts, **options):
    order = Order(records, "full", 3)
    return [Stream(order, batch_size, (host, hosts), **options) for host in range(hosts)]


def taken(plans):
    return [n for plan in plans for n in plan.numbers[: plan.real].tolist()]


@given(records=SIZES, batch_size=BATCH, hosts=HOSTS, epochs=st.integers(1, 3))
def test_all_hosts_together_take_every_record_once_an_epoch(records, batch_size, hosts, epochs):
    parts = [list(s.plans(Place())) for s in streams(records, batch_size, hosts, epochs=epochs)]
    assert sorted(n for part in parts for n in taken(part)) == sorted([*range(records)] * epochs)


@pytest.mark.parametrize("remainder", ["keep", "drop", "pad", "wrap"])
@given(records=SIZES, batch_size=BATCH, hosts=HOSTS, epochs=st.integers(1, 3))
def test_every_host_has_as_many_batches_as_count_tells(
    remainder, records, batch_size, hosts, epochs
):
    if remainder == "drop":
        records += batch_size * hosts
    made = streams(records, batch_size, hosts, epochs=epochs, remainder=remainder)
    counts = {len(list(stream.plans(Place()))) for stream in made}
    assert counts == {made[0].count(Place())}


@given(records=SIZES, batch_size=BATCH, hosts=HOSTS)
def test_padded_batches_are_full_and_their_real_records_come_once(records, batch_size, hosts):
    parts = [list(s.plans(Place())) for s in streams(records, batch_size, hosts, remainder="pad")]
    assert {len(plan.numbers) for part in parts for plan in part} == {batch_size}
    assert sorted(n for part in parts for n in taken(part)) == list(range(records))


@given(records=SIZES, batch_size=BATCH, hosts=HOSTS)
def test_wrapped_batches_are_full_and_have_every_record(records, batch_size, hosts):
    parts = [list(s.plans(Place())) for s in streams(records, batch_size, hosts, remainder="wrap")]
    assert {plan.real for part in parts for plan in part} == {batch_size}
    assert {n for part in parts for n in taken(part)} == set(range(records))


@given(records=st.integers(45, 99), batch_size=BATCH, hosts=HOSTS)
def test_dropping_leaves_out_less_than_one_batch_of_all_hosts(records, batch_size, hosts):
    parts = [list(s.plans(Place())) for s in streams(records, batch_size, hosts, remainder="drop")]
    given_out = [n for part in parts for n in taken(part)]
    assert len(set(given_out)) == len(given_out) > records - batch_size * hosts


@given(
    records=SIZES,
    before=st.tuples(BATCH, HOSTS),
    after=st.tuples(BATCH, HOSTS),
    batches=st.integers(0, 20),
)
def test_going_on_with_other_hosts_takes_what_is_left(records, before, after, batches):
    first = streams(records, *before)
    batches = min(batches, first[0].count(Place()))
    done = [n for s in first for plan in list(s.plans(Place()))[:batches] for n in taken([plan])]
    place = first[0].after(Place(), batches)
    if place.epoch == 0:
        rest = [n for s in streams(records, *after) for n in taken(s.plans(place))]
        assert sorted(done + rest) == list(range(records))
    else:
        assert sorted(done) == list(range(records))


@given(
    records=SIZES,
    batch_size=BATCH,
    hosts=HOSTS,
    remainder=st.sampled_from(["keep", "drop", "pad", "wrap"]),
    batches=st.integers(0, 40),
)
def test_after_many_batches_is_where_going_through_them_leads(
    records, batch_size, hosts, remainder, batches
):
    records += batch_size * hosts
    stream = streams(records, batch_size, hosts, remainder=remainder, epochs=None)[0]
    plans = stream.plans(Place())
    place = [next(plans) for _ in range(batches + 1)][-1]
    assert stream.after(Place(), batches) == Place(place.epoch, place.start)


@given(records=SIZES, batch_size=BATCH, workers=st.integers(1, 4), epochs=st.integers(1, 3))
def test_workers_in_turn_give_the_batches_of_one(records, batch_size, workers, epochs):
    stream = Stream(Order(records, "full", 3), batch_size, epochs=epochs)
    alone = [plan.numbers.tolist() for plan in stream.plans(Place())]
    shares = [
        [plan.numbers.tolist() for plan in stream.plans(Place(), worker=(index, workers))]
        for index in range(workers)
    ]
    assert [shares[i % workers][i // workers] for i in range(len(alone))] == alone
    assert sum(map(len, shares)) == len(alone)


def test_a_worker_goes_on_after_what_it_has_done():
    stream = Stream(Order(50), 4, epochs=2)
    whole = list(stream.plans(Place(), worker=(1, 3)))
    rest = list(stream.plans(Place(), worker=(1, 3), done=2))
    assert [p.numbers.tolist() for p in rest] == [p.numbers.tolist() for p in whole[2:]]


def test_one_order_serves_any_number_of_hosts():
    alone = [plan.numbers for plan in Stream(Order(48, "full", 1), 12).plans(Place())]
    hosts = [Stream(Order(48, "full", 1), 4, (host, 3)) for host in range(3)]
    together = zip(*(stream.plans(Place()) for stream in hosts), strict=True)
    joined = [np.concatenate([plan.numbers for plan in plans]) for plans in together]
    assert [batch.tolist() for batch in joined] == [batch.tolist() for batch in alone]


def test_batches_follow_one_another_and_end_with_the_epoch():
    plans = list(Stream(Order(10), 4, epochs=2).plans(Place()))
    assert [(p.epoch, p.start, p.stop) for p in plans] == [
        (0, 0, 4),
        (0, 4, 8),
        (0, 8, 10),
        (1, 0, 4),
        (1, 4, 8),
        (1, 8, 10),
    ]
    assert all(a.stop == b.start or b.start == 0 for a, b in pairwise(plans))


def test_a_pass_of_several_epochs_ends_where_it_would_have_ended():
    stream = Stream(Order(10), 5, epochs=3)
    assert [plan.epoch for plan in stream.plans(Place(1, 5))] == [1, 2, 2]
    assert stream.next_pass(Place(1, 5)) == Place(3, 0)


def test_no_end_has_no_count():
    assert Stream(Order(10), 5, epochs=None).count(Place()) is None


def test_nothing_gives_no_batches():
    assert list(Stream(Order(0), 5, epochs=None).plans(Place())) == []


def test_dropping_everything_is_an_error():
    with pytest.raises(SplitError, match="at least 6 records.*got 5"):
        next(Stream(Order(5), 3, (0, 2), remainder="drop", epochs=None).plans(Place()))


def test_the_end_of_a_pass_is_not_yet_the_start_of_the_next():
    stream = Stream(Order(10), 4, epochs=2)
    reached = [stream.reached(Place(), batches) for batches in range(7)]
    first, last = [Place(0, 0), Place(0, 4), Place(0, 8)], [Place(1, 0), Place(1, 4), Place(1, 8)]
    assert reached == [*first, *last, Place(1, 10)]
    assert stream.reached(Place(1, 10), 0) == Place(1, 10)
    assert list(stream.plans(Place(1, 10))) == []
    assert stream.next_pass(Place(1, 10)) == Place(2, 0)


def test_without_end_a_place_is_never_one():
    stream = Stream(Order(10), 5, epochs=None)
    assert [stream.reached(Place(), batches) for batches in (1, 2)] == [Place(0, 5), Place(1, 0)]
    assert stream.next_pass(Place(3, 5)) == Place(4, 0)


MODES = ["none", "full", "blocks"]
KEY = 5533503609948066460
FULL = [0, 1, 3, 2, 5, 6, 4, 7]
BLOCKS = [7, 4, 2, 3, 1, 6, 5, 0]


def all_of(order: Order, epoch: int = 0) -> list[int]:
    return order.numbers(epoch, np.arange(order.records)).tolist()


@pytest.mark.parametrize("mode", MODES)
@given(
    records=st.integers(1, 700),
    seed=st.integers(0, 2**70),
    epoch=st.integers(0, 5),
    window=st.integers(1, 300),
)
def test_every_record_comes_exactly_once(mode, records, seed, epoch, window):
    assert sorted(all_of(Order(records, mode, seed, window), epoch)) == list(range(records))


@pytest.mark.parametrize("mode", MODES)
@given(data=st.data())
def test_a_part_of_the_order_is_what_the_whole_has_there(mode, data):
    records = data.draw(st.integers(1, 3000))
    order = Order(records, mode, 7, window=data.draw(st.integers(64, 1000)))
    positions = np.array(data.draw(st.lists(st.integers(0, records - 1))), np.int64)
    whole = np.array(all_of(order, 2))
    assert order.numbers(2, positions).tolist() == whole[positions].tolist()


def test_without_a_shuffle_records_come_as_they_were_written():
    assert all_of(Order(9)) == list(range(9))


@pytest.mark.parametrize("mode", ["full", "blocks"])
def test_another_seed_or_epoch_gives_another_order(mode):
    orders = [all_of(Order(500, mode, seed), epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert len({tuple(order) for order in orders}) == 4
    assert all_of(Order(500, mode, 3), 1) == all_of(Order(500, mode, 3), 1)


@pytest.mark.parametrize("mode", ["full", "blocks"])
def test_an_order_that_is_not_reshuffled_is_that_of_the_first_epoch(mode):
    order = Order(500, mode, 3, reshuffles=False)
    assert all_of(order, 4) == all_of(Order(500, mode, 3), 0)


def test_a_billion_records_need_no_table():
    order = Order(10**9, "full", 1)
    found = order.numbers(0, np.arange(10**9 - 1000, 10**9))
    assert len(set(found.tolist())) == 1000
    assert found.min() >= 0
    assert found.max() < 10**9


def test_full_order_mixes_like_chance():
    found = np.array(all_of(Order(20_000, "full", 5)))
    correlation = np.corrcoef(found, np.arange(20_000))[0, 1]
    assert abs(correlation) < 0.05
    assert (np.abs(np.diff(found)) == 1).sum() < 20


def test_blocks_come_as_runs_of_neighbours_within_a_window():
    order = Order(100_000, "blocks", 5, window=6400)
    size = 6400 // BLOCKS_PER_WINDOW
    found = order.numbers(0, np.arange(6400 - size))
    assert len(np.unique(found // size)) <= BLOCKS_PER_WINDOW
    assert (np.diff(found) == 1).mean() < 0.1


def test_blocks_of_a_window_come_from_all_over_the_split():
    found = Order(100_000, "blocks", 5, window=6400).numbers(0, np.arange(6400))
    assert found.min() < 10_000
    assert found.max() > 90_000


def test_the_order_of_released_versions_stays_the_same():
    """A state that was saved must go on in the same order after an upgrade."""
    assert key_of(0, 0, "order") == KEY
    assert all_of(Order(8, "full", 0)) == FULL
    assert all_of(Order(8, "blocks", 0, window=4)) == BLOCKS


@pytest.mark.parametrize("records", [2, 50, 1003])
def test_a_window_of_any_size_can_be_asked_for(records):
    positions = np.arange(records)
    whole = Order(records, "blocks", 1, BLOCKS_PER_WINDOW * records).numbers(3, positions)
    for window in (BLOCKS_PER_WINDOW * records + 1, 10**9, 2**63, 10**30):
        found = Order(records, "blocks", 1, window).numbers(3, positions)
        np.testing.assert_array_equal(found, whole)


def test_orders_that_differ_are_described_differently():
    described = {Order(9, mode, 0, window).description for mode in MODES for window in (64, 128)}
    assert described == {"none", "full", "blocks of 64", "blocks of 128"}
    assert Order(9, "full", reshuffles=False).description == "full, once"


IDENTITY = {"records": "abc", "order": "full", "seed": 3}
ALONE = (0, 1)


def check(state, *, worker=ALONE, identity=IDENTITY):
    return check_state(state, identity, records=1000, worker=worker, where="split 'train'")


def shard(name: str = "a.tfrecord", **changes) -> ShardInfo:
    return ShardInfo(**{"name": name, "records": 5, "bytes": 100, "crc32c": 7} | changes)


def test_a_state_comes_back_from_json():
    progress = PassProgress(Place(2, 640))
    state = json.loads(json.dumps(to_state(IDENTITY, progress)))
    assert state == {
        "version": 1,
        "records": "abc",
        "order": "full",
        "seed": 3,
        "epoch": 2,
        "position": 640,
    }
    assert check(state) == progress


def test_a_worker_tells_its_own_batches():
    progress = PassProgress(Place(1, 8), (2, 3), 5)
    state = json.loads(json.dumps(to_state(IDENTITY, progress)))
    assert check(state, worker=(2, 3)) == progress


def test_a_state_of_all_serves_every_worker():
    state = to_state(IDENTITY, PassProgress(Place(1, 8)))
    assert check(state, worker=(1, 2)) == PassProgress(Place(1, 8), (1, 2))


@pytest.mark.parametrize("worker", [ALONE, (1, 3), (2, 4)])
def test_the_state_of_one_worker_serves_no_other(worker):
    state = to_state(IDENTITY, PassProgress(Place(1, 8), (2, 3), 5))
    with pytest.raises(StateError, match="the state of worker .*got .*\nhint: .*batches=n"):
        check(state, worker=worker)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"records": "abd"}, "expected state of the same records, records 'abc', got 'abd'"),
        ({"order": "none"}, "expected state of the same `shuffle`, order 'full', got 'none'"),
        ({"seed": 4}, "expected state of the same `seed`, seed 3, got 4"),
        ({"version": 2}, "expected state of version 1, got 2"),
        ({"seed": True}, "expected state of the same `seed`, seed 3, got True"),
        ({"seed": np.array([3, 3])}, "expected state of the same `seed`, seed 3, got array"),
        ({"version": 1.0}, "expected state of version 1, got 1.0"),
        ({"epoch": -1}, "expected `epoch` of 0 to 9,007,199,254,740,992, got -1"),
        ({"epoch": 2**64}, "expected `epoch` of 0 to 9,007,199,254,740,992, got 184467"),
        ({"position": 1001}, "expected `position` of 0 to 1,000, got 1001"),
        ({"position": 2**100}, "expected `position` of 0 to 1,000, got 12676"),
        ({"position": "8"}, "expected `position` of 0 to 1,000, got '8'"),
        ({"position": 1.5}, "expected `position` of 0 to 1,000, got 1.5"),
        ({"position": math.nan}, "expected `position` of 0 to 1,000, got nan"),
        ({"position": None}, "expected `position` of 0 to 1,000, got None"),
        ({"position": np.array([8, 9])}, "expected `position` of 0 to 1,000, got array"),
        ({"position": True}, "expected `position` of 0 to 1,000, got True"),
    ],
)
def test_what_does_not_fit_is_told(changed, expected):
    state = to_state(IDENTITY, PassProgress()) | changed
    with pytest.raises(StateError) as caught:
        check(state)
    assert str(caught.value).startswith(f"split 'train': {expected}")


@pytest.mark.parametrize("state", [None, 3, [], {}, {"version": 1}, {"epoch": 0, "position": 0}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(StateError, match="expected a state from `state_dict`, got"):
        check(state)


@pytest.mark.parametrize(
    "part",
    [
        {"worker": 3},
        {"worker": None},
        {"worker": [0, 2]},
        {"worker": [0, math.nan], "batches": 1},
        {"worker": np.array([[0, 2], [0, 2]]), "batches": 1},
        {"worker": [0, 2], "batches": -1},
        {"worker": [0, 2], "batches": 2**70},
    ],
)
def test_a_damaged_state_of_a_worker_is_refused(part):
    state = to_state(IDENTITY, PassProgress()) | part
    with pytest.raises(StateError):
        check(state, worker=(0, 2))


def test_numbers_of_numpy_serve_as_those_of_python():
    state = to_state(IDENTITY, PassProgress(Place(2, 640))) | {"seed": np.int64(3)}
    assert check(state | {"position": np.int64(640)}) == PassProgress(Place(2, 640))


def test_a_state_error_is_a_value_error_too():
    assert issubclass(StateError, ValueError)


def test_the_fingerprint_is_of_the_records_wherever_they_lie():
    here = fingerprint([ShardRange(shard("data/a.tfrecord"), 0, 5)])
    assert here == fingerprint([ShardRange(shard("elsewhere/a.tfrecord"), 0, 5)])


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [ShardRange(shard("b.tfrecord"), 0, 5)],
        [ShardRange(shard(bytes=101), 0, 5)],
        [ShardRange(shard(crc32c=8), 0, 5)],
        [ShardRange(shard(records=6), 0, 5)],
        [ShardRange(shard(), 1, 5)],
        [ShardRange(shard(), 0, 4)],
        [ShardRange(shard(), 0, 5), ShardRange(shard(), 0, 5)],
    ],
)
def test_other_records_have_another_fingerprint(runs):
    assert fingerprint(runs) != fingerprint([ShardRange(shard(), 0, 5)])
