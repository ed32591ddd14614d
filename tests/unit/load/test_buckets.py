"""Batches of records of like length."""

import json
import pickle
import warnings
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datum
from datum._load.buckets import WINDOW_BATCHES, Bucketed, LengthReader
from datum._load.epoch_order import Order
from datum._load.options import LoadOptions
from datum._load.stream import Place, order_split
from datum.errors import SplitError, StateError


def bucketed(records, batch, *, shuffle=True, reshuffle=True, seed=0, lengths=None):
    mode = "none" if shuffle is False else "full"
    order = Order(records, mode, seed, reshuffles=reshuffle)
    options = LoadOptions(shuffle=shuffle, seed=seed, reshuffle=reshuffle)
    return Bucketed(order, lengths or (lambda numbers: numbers % 17), batch, options)


def all_of(order, epoch=0) -> np.ndarray:
    return order.numbers(epoch, np.arange(order.records))


@given(
    records=st.integers(1, 900),
    batch=st.integers(1, 20),
    epoch=st.integers(0, 3),
    shuffle=st.booleans(),
)
def test_every_record_comes_once(records, batch, epoch, shuffle):
    order = bucketed(records, batch, shuffle=shuffle)
    assert sorted(all_of(order, epoch).tolist()) == list(range(records))


@given(data=st.data())
def test_a_part_of_the_order_is_what_the_whole_has_there(data):
    records = data.draw(st.integers(1, 900))
    order = bucketed(records, 3)
    positions = np.array(data.draw(st.lists(st.integers(0, records - 1))), np.int64)
    whole = all_of(bucketed(records, 3), 1)
    assert order.numbers(1, positions).tolist() == whole[positions].tolist()


def test_a_batch_has_about_one_length():
    batch = 16
    lengths = all_of(bucketed(batch * WINDOW_BATCHES * 2, batch)).reshape(-1, batch) % 17
    spread = lengths.max(axis=1) - lengths.min(axis=1)
    assert spread.max() <= 1


def test_batches_of_each_length_come_throughout_the_epoch():
    batch = 16
    lengths = all_of(bucketed(batch * WINDOW_BATCHES, batch)).reshape(-1, batch)[:, 0] % 17
    assert np.abs(np.corrcoef(lengths, np.arange(len(lengths)))[0, 1]) < 0.4
    assert (np.diff(lengths) < 0).any()


def test_without_a_shuffle_batches_come_by_length():
    lengths = all_of(bucketed(64, 4, shuffle=False)) % 17
    assert (np.diff(lengths) >= 0).all()


def test_the_last_batch_of_an_epoch_is_the_short_one():
    order = bucketed(70, 16)
    longest = sorted(number % 17 for number in range(70))[-6:]
    assert sorted(order.numbers(0, np.arange(64, 70)) % 17) == longest


def test_epochs_and_seeds_differ_unless_told_not_to():
    assert all_of(bucketed(500, 4), 0).tolist() != all_of(bucketed(500, 4), 1).tolist()
    assert all_of(bucketed(500, 4, seed=1)).tolist() != all_of(bucketed(500, 4)).tolist()
    once = bucketed(500, 4, reshuffle=False)
    assert all_of(once, 0).tolist() == all_of(once, 1).tolist()


def test_lengths_of_a_window_are_read_once_for_all_its_batches():
    asked = []

    def lengths(numbers):
        asked.append(len(numbers))
        return numbers % 17

    order = bucketed(4 * WINDOW_BATCHES + 10, 4, lengths=lengths)
    for first in range(0, order.records, 4):
        order.numbers(0, np.arange(first, min(first + 4, order.records)))
    assert asked == [4 * WINDOW_BATCHES, 10]


@pytest.fixture
def ordered(tmp_path):
    rows = [
        {
            "items": list(range(i % 4)),
            "nested": [[1.0] * k for k in range(i % 3)],
            "text": "é" * i,
            "maybe": "x" * i if i % 2 else None,
            "fixed": [1, 2],
            "number": i,
        }
        for i in range(10)
    ]
    datum.write(rows, tmp_path / "d", shuffle=False, progress=False)
    return order_split(datum.load(tmp_path / "d")["train"], LoadOptions())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("items", [i % 4 for i in range(10)]),
        ("nested", [i % 3 for i in range(10)]),
        ("text", [2 * i for i in range(10)]),
        ("maybe", [i if i % 2 else 0 for i in range(10)]),
    ],
)
def test_lengths_are_items_or_bytes(ordered, name, expected):
    reader = LengthReader(ordered, name, "raise")
    numbers = np.array([7, 0, 3, 9, 9])
    assert reader(numbers).tolist() == [expected[number] for number in numbers]


@pytest.mark.parametrize("name", ["fixed", "number"])
def test_what_has_one_length_is_refused(ordered, name):
    with pytest.raises(ValueError, match=f"`bucket_by` to name a feature of variable.*{name!r}"):
        LengthReader(ordered, name, "raise")


def test_a_damaged_record_has_no_length(ordered):
    (shards, run), *_ = ordered.parts
    path = shards.folder / run.shard.name
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    reader = LengthReader(ordered, "items", "skip")
    assert reader(np.array([3, 0, 2])).tolist() == [3, 0, 2]
    with pytest.raises(datum.CorruptRecordError):
        LengthReader(ordered, "items", "raise")(np.array([0]))


RECORDS = 301
LENGTHS = np.random.default_rng(3).integers(0, 70, RECORDS)
BOUNDS = [16, 32, 70]


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    rows = [
        {"id": i, "tokens": np.full(n, i), "tags": np.arange(n) % 5, "other": [1] * (i % 3)}
        for i, n in enumerate(LENGTHS.tolist())
    ]
    folder = tmp_path_factory.mktemp("budget") / "texts"
    datum.write(rows, folder, shuffle=False, shards=2, progress=False)
    return datum.load(folder)


def load(ds, **options):
    return ds.to_numpy("train", **{"bucket_by": "tokens", "batch_tokens": 350, **options})


def ids(batches):
    return [batch["id"].tolist() for batch in batches]


def longest(numbers):
    return max(1, *LENGTHS[numbers])


WAYS = {
    "tokens": {},
    "rows": {"batch_size": 7},
    "buckets": {"buckets": BOUNDS},
    "buckets and rows": {"buckets": BOUNDS, "batch_size": 5, "batch_tokens": None},
    "multiples": {"pad": datum.Pad(multiple=8)},
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@every_way
@pytest.mark.parametrize("shuffle", [False, True, "blocks"])
def test_every_record_comes_once_within_the_budget(ds, way, shuffle):
    loader = load(ds, shuffle=shuffle, epochs=2, **way)
    found = ids(loader)
    half = len(found) // 2
    for epoch in (found[:half], found[half:]):
        assert sorted(i for batch in epoch for i in batch) == list(range(RECORDS))
    for batch in found:
        assert len(batch) * longest(batch) <= (350 if "batch_tokens" not in way else 5 * 70)
        assert len(batch) <= way.get("batch_size", 350)
    assert len(loader) == len(found)
    assert (found[:half] == found[half:]) == (shuffle is False)


def test_batches_are_nearly_as_large_as_the_budget_allows(ds):
    batches = list(load(ds, shuffle=True, pad=datum.Pad(), columns=["tokens"]))
    sizes = [batch["tokens"].size for batch in batches[:-1]]
    assert np.mean(sizes) > 0.9 * 350
    there = sum(batch["tokens_mask"].sum() for batch in batches)
    assert there / sum(batch["tokens"].size for batch in batches) > 0.85


def test_the_order_follows_from_the_records_the_seed_and_the_epoch_alone(ds):
    first = ids(load(ds, shuffle=True, seed=1, threads=1))
    again = load(ds, shuffle=True, seed=1, threads=2, prefetch=9)
    assert ids(again) == first
    second = ids(again)
    assert second != first
    again.set_epoch(0)
    assert ids(again) == first
    assert ids(load(ds, shuffle=True, seed=2)) != first
    fixed = load(ds, shuffle=True, seed=1, reshuffle=False)
    assert ids(fixed) == ids(fixed)


def test_a_shuffle_brings_other_records_together_each_epoch(ds):
    loader = load(ds, shuffle=True)
    first, second = ({frozenset(batch) for batch in ids(loader)} for _ in range(2))
    assert len(first & second) < len(first) / 4


def test_without_a_shuffle_batches_come_as_they_get_full(ds):
    found = ids(load(ds, buckets=BOUNDS))
    ends = [max(batch) for batch in found[:-1]]
    assert ends == sorted(ends)


@every_way
@pytest.mark.parametrize("hosts", [2, 3])
@pytest.mark.parametrize("remainder", [None, "pad", "wrap", "drop", "keep"])
def test_hosts_share_every_batch_and_none_is_empty(ds, way, hosts, remainder):
    options = dict(shuffle=True, remainder=remainder, **way)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what "keep" does on several hosts is told elsewhere
        loaders = [load(ds, host=(host, hosts), **options) for host in range(hosts)]
        parts = [list(loader) for loader in loaders]
    assert {len(loader) for loader in loaders} == {len(part) for part in parts}
    assert len({len(part) for part in parts}) == 1
    seen = []
    for step in zip(*parts, strict=True):
        rows = {len(batch["id"]) for batch in step}
        assert min(rows) > 0
        if remainder != "keep":
            assert len(rows) == 1
        for batch in step:
            real = batch.get("batch_mask", np.ones(len(batch["id"]), bool))
            seen += batch["id"][real].tolist()
    if remainder in ("pad", "keep"):
        assert sorted(set(seen)) == list(range(RECORDS))
        assert len(seen) - RECORDS < hosts
    elif remainder == "drop":
        assert len(set(seen)) == len(seen) <= RECORDS
    else:
        assert set(seen) == set(range(RECORDS))


def test_records_that_are_too_few_for_all_hosts_are_repeated(ds):
    few = {"bucket_by": "tokens", "buckets": [70], "batch_size": 2, "remainder": "keep"}
    with pytest.warns(UserWarning, match="remainder='keep' ends each epoch with batches"):
        parts = [ids(ds.to_numpy("train[:9]", host=(host, 4), **few)) for host in range(4)]
    assert [batches[-1] for batches in parts] == [[8], [0], [1], [2]]


# Buckets.
@pytest.mark.parametrize("pad", [True, datum.Pad(), {"tokens": -1, "tags": datum.Pad()}])
def test_batches_are_padded_to_the_bound_of_their_bucket(ds, pad):
    loader = load(ds, shuffle=True, buckets=BOUNDS, pad=pad, remainder="pad", epochs=2)
    shapes = set()
    for batch in loader:
        shapes.add(batch["tokens"].shape)
        assert batch["tags"].shape == batch["tokens"].shape  # as long as it in every record
        assert len(batch["batch_mask"]) == 350 // batch["tokens"].shape[1]
        if "tokens_mask" in batch:
            assert batch["tokens_mask"].sum(axis=1).tolist() == LENGTHS[batch["id"]].tolist()
    assert shapes == {(350 // bound, bound) for bound in BOUNDS}


def test_other_columns_go_their_own_way(ds):
    pad = {"tokens": datum.Pad(), "other": datum.Pad(length=2)}
    for batch in load(ds, buckets=BOUNDS, pad=pad):
        assert batch["other"].shape[1] == 2
        assert isinstance(batch["tags"], datum.Ragged)


def test_a_bucket_without_records_makes_no_shape_of_its_own(ds):
    loader = load(ds, buckets=[16, 70, 80, 90], pad=True, columns=["tokens"])
    assert {batch["tokens"].shape[1] for batch in loader} == {16, 70}


def test_rows_that_map_makes_are_padded_to_the_bound_even_if_they_are_alike(ds):
    def cut(record):
        return {"tokens": record["tokens"][:1]}

    loader = ds.to_numpy(
        "train[1:]", bucket_by="tokens", buckets=[70], batch_size=1, pad=datum.Pad(), map=cut
    )
    assert {batch["tokens"].shape for batch in loader} == {(1, 70)}


def test_a_length_to_pad_to_is_what_counts(ds):
    loader = load(ds, pad=datum.Pad(length=70), columns=["tokens"], remainder="drop")
    assert {batch["tokens"].shape for batch in loader} == {(5, 70)}


# Places.
@every_way
@pytest.mark.parametrize("remainder", ["keep", "drop", "wrap"])
def test_a_state_goes_on_after_every_batch(ds, way, remainder):
    options = dict(shuffle=True, epochs=2, remainder=remainder, **way)
    loader = load(ds, **options)
    whole, states = [], []
    for batch in loader:
        whole.append(batch["id"].tolist())
        states.append(json.loads(json.dumps(loader.state_dict())))
    following = ids(loader)
    resumed = load(ds, **options)
    for taken, state in enumerate(states, 1):
        resumed.load_state_dict(state)
        assert resumed.remaining == len(whole) - taken
        expected = whole[taken:] if taken % 7 == 0 else whole[taken : taken + 1]
        assert ids(islice(resumed, len(expected))) == expected
    resumed.load_state_dict(states[-1])
    assert ids(resumed) == []
    assert ids(resumed) == following


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_share_the_batches_whatever_their_number(ds, workers):
    loader = load(ds, shuffle=True, epochs=2)
    stream = loader._stream()
    whole = [plan.numbers.tolist() for plan in stream.plans(Place())]
    for taken in (0, 1, len(whole) // 2, len(whole) - 1):
        start = stream.after(Place(), taken)
        found = [
            [plan.numbers.tolist() for plan in stream.plans(start, worker=(index, workers))]
            for index in range(workers)
        ]
        left = whole[taken:]
        assert found == [left[index::workers] for index in range(workers)]
    done = list(stream.plans(Place(), worker=(1, workers), done=2))
    assert done[0].numbers.tolist() == whole[1 + 2 * workers]


def test_a_state_of_another_arrangement_is_refused(ds):
    state = load(ds, shuffle=True).state_dict()
    for other in ({"batch_tokens": 351}, {"batch_size": 3}, {"buckets": BOUNDS}, {"host": (0, 2)}):
        with pytest.raises(StateError, match="in batches of"):
            load(ds, **{"shuffle": True, **other}).load_state_dict(state)


def test_passes_without_end_go_from_epoch_to_epoch(ds):
    loader = load(ds, shuffle=True, epochs=None)
    one = len(load(ds))
    batches = iter(loader)
    found = [next(batches)["id"].tolist() for _ in range(2 * one)]
    assert found[:one] != found[one:]
    assert sorted(i for batch in found[one:] for i in batch) == list(range(RECORDS))
    with pytest.raises(TypeError, match="expected a number of `epochs`"):
        len(loader)


def test_lengths_are_read_once_and_go_with_the_loader(ds, monkeypatch):
    loader = load(ds, shuffle=True)
    expected = ids(loader)
    monkeypatch.setattr(LengthReader, "read_all", lambda self: pytest.fail("read again"))
    copy = pickle.loads(pickle.dumps(loader))
    copy.set_epoch(0)
    assert ids(copy) == expected
    assert len(copy) == len(expected)


# Mixes, damage, and what is refused.
def test_a_mix_has_as_many_batches_as_its_epochs_need(ds):
    both = datum.mix({ds["train[:100]"]: 0.5, ds["train[100:]"]: 0.5})
    loader = both.to_numpy(bucket_by="tokens", batch_tokens=350, epochs=2, shuffle=True)
    found = ids(loader)
    assert len(found) == len(loader)
    assert sum(map(len, found)) == 2 * RECORDS
    assert all(len(batch) * longest(batch) <= 350 for batch in found)


def test_records_that_are_left_out_count_for_nothing(tmp_path):
    rows = [{"id": i, "tokens": [1] * (i % 9), "y": None if i % 3 else 1} for i in range(60)]
    rows.append({"id": 60, "tokens": [1] * 99, "y": None})
    datum.write(rows, tmp_path / "some", shuffle=False, progress=False)
    loader = datum.load(tmp_path / "some").to_numpy(
        bucket_by="tokens", batch_tokens=30, missing={"y": "drop"}, shuffle=True, epochs=2
    )
    found = ids(loader)
    assert len(found) == len(loader)
    assert sorted(i for batch in found for i in batch) == sorted([*range(0, 60, 3)] * 2)


def test_a_seed_that_was_drawn_is_taken_from_the_state(ds):
    loader = load(ds, shuffle=True, seed=None)
    batches = iter(loader)
    next(batches)
    other = load(ds, shuffle=True, seed=None)
    assert len(other) == len(loader)
    other.load_state_dict(loader.state_dict())
    assert ids(other) == ids(batches)


def test_a_damaged_record_is_skipped(tmp_path):
    folder = tmp_path / "damaged"
    datum.write(
        [{"id": i, "tokens": [1] * i} for i in range(20)], folder, shuffle=False, progress=False
    )
    shard = folder / datum.load(folder)["train"].runs[0].shard.name
    data = bytearray(shard.read_bytes())
    data[20] ^= 1
    shard.write_bytes(data)
    damaged = datum.load(folder)
    options = {"bucket_by": "tokens", "batch_tokens": 40}
    found = ids(damaged.to_numpy(on_error="skip", **options))
    assert sorted(i for batch in found for i in batch) == list(range(1, 20))
    with pytest.raises(datum.CorruptRecordError):
        damaged.to_numpy(**options)


def test_what_no_bucket_holds_is_named_or_cut(ds):
    first = int(np.flatnonzero(LENGTHS > 60)[0])
    count = int((LENGTHS > 60).sum())
    message = rf"record {first}, feature 'tokens': expected a length of 60 at most, the last of"
    with pytest.raises(ValueError, match=message) as caught:
        load(ds, buckets=[30, 60])
    assert f"; {count} of 301 records are longer\nhint: choose a larger" in str(caught.value)
    with pytest.raises(ValueError, match="at most, `batch_tokens`, got"):
        load(ds, batch_tokens=60)
    with pytest.raises(ValueError, match="expected `batch_tokens` of 72 or more, the length that"):
        load(ds, batch_tokens=70, pad=datum.Pad(multiple=24))
    cut = load(ds, buckets=[30, 60], pad=datum.Pad(truncate=True), columns=["tokens"])
    assert {batch["tokens"].shape[1] for batch in cut} == {30, 60}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bucket_by": None}, "expected `bucket_by` with `batch_tokens`, got None"),
        ({"batch_tokens": 0}, "expected `batch_tokens` of 1 or more, got 0"),
        ({"buckets": [20, 10]}, "expected `buckets` in rising order"),
        ({"buckets": []}, "expected `buckets` in rising order"),
        ({"buckets": [0, 10]}, "expected `buckets` of 1 or more"),
        ({"buckets": [100, 400]}, "expected `batch_tokens` of 400 or more, the last of `buckets`"),
        ({"buckets": [100], "pad": 64}, "expected `buckets` or a length to pad 'tokens' to"),
        ({"buckets": [100], "batch_size": None, "batch_tokens": None}, "batch_size"),
        ({"bucket_by": "id"}, "expected `bucket_by` to name a feature of variable length"),
    ],
)
def test_options_that_contradict_each_other_are_refused(ds, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        load(ds, **options)


def test_nested_lists_have_no_one_length_to_pad_to(tmp_path):
    rows = [{"x": [[1.0] * k for k in range(1, 1 + i % 3)]} for i in range(6)]
    datum.write(rows, tmp_path / "nested", progress=False)
    nested = datum.load(tmp_path / "nested")
    batches = list(nested.to_numpy(bucket_by="x", batch_tokens=4, pad=True))
    assert max(batch["x"].shape[0] * batch["x"].shape[1] for batch in batches) <= 4
    with pytest.raises(ValueError, match="feature 'x': expected one variable dimension"):
        nested.to_numpy(bucket_by="x", batch_tokens=4, pad=datum.Pad())


def test_dropping_all_there_is_is_refused(ds):
    few = ds.to_numpy("train[:3]", bucket_by="tokens", buckets=[70], batch_size=4, remainder="drop")
    with pytest.raises(SplitError, match="expected a full batch on every host"):
        list(few)


def test_its_name_is_told(ds):
    assert "batches of up to 350 tokens" in repr(load(ds))
