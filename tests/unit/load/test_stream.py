"""Which records each batch has: every record once, the same number of batches everywhere."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum._load.epoch_order import Order
from datum._load.stream import Place, Stream
from datum.errors import SplitError

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
