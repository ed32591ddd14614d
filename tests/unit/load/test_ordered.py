"""Which order the options ask for, and what a state of it has to agree with."""

import numpy as np
import pytest

import datum
from datum._load import stream
from datum._load.epoch_order import WINDOW_RECORDS, Order
from datum._load.options import LoadOptions
from datum._load.stream import OrderWithout, make_order, order_split


@pytest.mark.parametrize(
    ("shuffle", "expected"),
    [
        (False, Order(9)),
        (0, Order(9)),
        (True, Order(9, "full", 4)),
        ("full", Order(9, "full", 4)),
        ("blocks", Order(9, "blocks", 4, WINDOW_RECORDS)),
        (1, Order(9, "blocks", 4, 1)),
        (500, Order(9, "blocks", 4, 500)),
        (np.int64(500), Order(9, "blocks", 4, 500)),
    ],
)
def test_shuffle_names_an_order(shuffle, expected):
    assert make_order(9, LoadOptions(shuffle=shuffle, seed=4)) == expected


def test_one_order_for_all_epochs_can_be_asked_for():
    order = make_order(9, LoadOptions(shuffle=True, reshuffle=False))
    assert order == Order(9, "full", 0, reshuffles=False)


@pytest.fixture
def ds(tmp_path):
    datum.write(
        {"x": range(20)}, tmp_path / "d", shards=2, splits={"a": 0.5, "b": 0.5}, progress=False
    )
    return datum.load(tmp_path / "d")


def test_a_split_is_told_by_name_records_and_places(ds):
    stream = order_split(ds["a+b"], LoadOptions())
    assert stream.name == "a+b"
    assert stream.order.records == 20
    assert sum(len(run) for _, run in stream.parts) == 20
    assert set(stream.identity) == {"records", "order", "seed"}


@pytest.mark.parametrize(
    ("split", "options"),
    [
        ("b", {}),
        ("a[:3]", {}),
        ("a+b", {}),
        ("a", {"shuffle": True}),
        ("a", {"shuffle": 7}),
        ("a", {"seed": 1}),
    ],
)
def test_another_split_or_order_has_another_identity(ds, split, options):
    plain = order_split(ds["a"], LoadOptions()).identity
    assert order_split(ds[split], LoadOptions(**options)).identity != plain


@pytest.mark.parametrize("options", [{"batch_size": 7}, {"threads": 3}, {"host": (1, 2)}])
def test_batches_threads_and_hosts_are_no_part_of_the_identity(ds, options):
    plain = order_split(ds["a"], LoadOptions()).identity
    assert order_split(ds["a"], LoadOptions(**options)).identity == plain


@pytest.mark.parametrize("mode", ["none", "full", "blocks"])
@pytest.mark.parametrize("lost", [[], [0], [49], [3, 4, 5, 17], list(range(50))])
def test_the_others_come_in_the_order_they_had(mode, lost, monkeypatch):
    monkeypatch.setattr(stream, "SEARCHED_RECORDS", 7)
    order = Order(50, mode, seed=3, window=16)
    rest = OrderWithout(order, np.array(lost, np.int64))
    assert rest.records == 50 - len(lost)
    for epoch in (0, 1, 0):
        whole = order.numbers(epoch, np.arange(50))
        expected = [n for n in whole.tolist() if n not in lost]
        assert rest.numbers(epoch, np.arange(rest.records)).tolist() == expected
        if len(expected) > 9:
            some = np.array([9, 2])
            assert rest.numbers(epoch, some).tolist() == [expected[9], expected[2]]
