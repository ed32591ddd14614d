"""Loaders and their options."""

# ruff: noqa: NPY002 (generators that a program shares)
import gc
import inspect
import json
import pickle
import random
import re
import threading
from dataclasses import fields
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import datum
from datum import StateError
from datum._load.functions import check_function
from datum._load.loader import MAX_LISTED, Loader, LoadReport
from datum._load.options import LoadKeywords, LoadOptions, present_name
from datum._load.stream import order_split
from datum._options import check_choice, check_count, check_kind, check_known
from datum.errors import Damage
from datum.mixing import Mix
from datum.schema import Feature, Schema

RECORDS = 23


@pytest.fixture
def ds(tmp_path):
    rows = {"id": np.arange(RECORDS), "items": [list(range(i % 5)) for i in range(RECORDS)]}
    datum.write(rows, tmp_path / "d", shuffle=False, shards=3, progress=False)
    return datum.load(tmp_path / "d")


def ids(batches):
    return [batch["id"].tolist() for batch in batches]


def flat(batches):
    return [i for batch in ids(batches) for i in batch]


def test_batches_come_in_order_and_the_last_is_short(ds):
    loader = ds.to_numpy(batch_size=8)
    assert ids(loader) == [list(range(8)), list(range(8, 16)), list(range(16, 23))]


@pytest.mark.parametrize(
    ("policy", "sizes"), [("drop", [8, 8]), ("pad", [8] * 3), ("wrap", [8] * 3)]
)
def test_remainders_are_what_was_asked_for(ds, policy, sizes):
    loader = ds.to_numpy(batch_size=8, remainder=policy)
    batches = list(loader)
    assert [len(batch["id"]) for batch in batches] == sizes
    assert len(ds.to_numpy(batch_size=8, remainder=policy)) == len(sizes)
    if policy == "pad":
        assert batches[0]["batch_mask"].all()
        assert batches[-1]["batch_mask"].tolist() == [True] * 7 + [False]
        assert loader.report.records == RECORDS
    else:
        assert "batch_mask" not in batches[0]


def test_each_iteration_is_the_next_epoch(ds):
    loader = ds.to_numpy(batch_size=8, shuffle=True)
    passes = [flat(loader) for _ in range(3)]
    assert passes[0] != passes[1] != passes[2]
    assert all(sorted(one) == list(range(RECORDS)) for one in passes)
    whole = ds.to_numpy(batch_size=8, shuffle=True, epochs=3)
    assert flat(whole) == [i for one in passes for i in one]


def test_len_is_that_of_a_whole_pass_and_remaining_what_is_left_of_it(ds):
    loader = ds.to_numpy(batch_size=8, epochs=2)
    assert len(loader) == loader.remaining == len(list(loader)) == 6
    loader.load_state_dict(loader.state_dict() | {"epoch": 4, "position": 16})
    assert len(loader) == 6
    assert loader.remaining == 4
    left = []
    for _ in loader:
        left.append(loader.remaining)
        assert len(loader) == 6
    assert left == [3, 2, 1, 0]
    assert loader.remaining == 6  # of the next pass


def test_naming_the_epoch_of_a_state_that_was_just_loaded_keeps_its_place(ds):
    loader = ds.to_numpy(batch_size=8, shuffle=True)
    epochs = [ids(loader) for _ in range(3)]
    loader.load_state_dict(loader.state_dict() | {"epoch": 1, "position": 8})
    seen = []
    for epoch in range(1, 3):  # as a program does that resumes
        loader.set_epoch(epoch)
        seen.append(ids(loader))
    assert seen == [epochs[1][1:], epochs[2]]
    loader.set_epoch(1)
    assert ids(loader) == epochs[1]
    loader.load_state_dict(loader.state_dict() | {"epoch": 1, "position": 8})
    loader.set_epoch(2)
    assert ids(loader) == epochs[2]


def test_no_end_has_no_len(ds):
    loader = ds.to_numpy(batch_size=8, epochs=None)
    with pytest.raises(TypeError, match="expected a number of `epochs`, got None"):
        len(loader)
    assert loader.remaining is None
    assert len(list(islice(loader, 10))) == 10


def test_a_peek_takes_nothing_from_the_pass_that_follows(ds):
    loader = ds.to_numpy(batch_size=8, shuffle=True)
    next(iter(loader))
    assert sorted(flat(loader)) == list(range(RECORDS))


def test_a_pass_that_was_broken_off_is_followed_by_the_next(ds):
    loader = ds.to_numpy(batch_size=8, shuffle=True)
    epochs = [flat(loader) for _ in range(3)]
    loader.set_epoch(0)
    for _ in loader:
        break
    assert loader.state_dict() == loader.state_dict() | {"epoch": 0, "position": 8}
    assert flat(loader) == epochs[1]
    next(iter(loader))
    loader.set_epoch(1)
    assert flat(loader) == epochs[1]
    assert flat(loader) == epochs[2]


def test_a_loaded_place_is_where_the_next_pass_starts_even_after_a_break(ds):
    loader = ds.to_numpy(batch_size=8)
    for _ in loader:
        break
    state = loader.state_dict()
    next(iter(loader))
    loader.load_state_dict(state)
    assert ids(loader)[0] == list(range(8, 16))


def test_after_the_last_batch_the_rest_of_the_pass_is_empty(ds):
    loader = ds.to_numpy(batch_size=8, epochs=2)
    iterator = iter(loader)
    for _ in range(6):
        next(iterator)
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (1, RECORDS)
    iterator.close()
    other = ds.to_numpy(batch_size=8, epochs=2)
    other.load_state_dict(state)
    assert other.remaining == 0
    assert ids(other) == []
    assert other.state_dict()["epoch"] == 2
    assert len(ids(other)) == 6


def test_set_epoch_gives_the_order_of_that_epoch(ds):
    loader = ds.to_numpy(batch_size=8, shuffle=True)
    epochs = [flat(loader) for _ in range(3)]
    for epoch in (2, 0, 1):
        loader.set_epoch(epoch)
        assert loader.state_dict()["epoch"] == epoch
        assert flat(loader) == epochs[epoch]


@pytest.mark.parametrize("epoch", [-1, True])
def test_an_epoch_that_cannot_be_is_refused(ds, epoch):
    with pytest.raises(ValueError, match="expected `epoch` of 0 or more"):
        ds.to_numpy().set_epoch(epoch)


def test_the_state_is_a_few_plain_values(ds):
    state = ds.to_numpy(seed=2**70).state_dict()
    assert len(json.dumps(state)) < 200
    assert json.loads(json.dumps(state)) == state


def test_the_state_is_plain_whatever_numbers_were_given(ds):
    loader = ds.to_numpy(batch_size=np.uint8(200), seed=np.int64(3), shuffle=np.int16(5))
    loader.set_epoch(np.int64(2))
    assert json.loads(json.dumps(loader.state_dict()))["epoch"] == 2
    assert json.loads(json.dumps(loader.state_dict(batches=np.int64(0))))["seed"] == 3
    host = ds.to_numpy(batch_size=np.uint8(200), host=(0, 2))
    assert len(ids(host)) == len(host) == 1


def test_the_state_is_after_the_last_batch_that_was_given_whatever_is_made_ahead(ds):
    loader = ds.to_numpy(batch_size=2, prefetch=8, threads=2)
    iterator = iter(loader)
    for given in range(1, 5):
        next(iterator)
        assert loader.state_dict()["position"] == 2 * given
    iterator.close()


def test_a_state_can_be_loaded_while_an_iteration_is_under_way(ds):
    loader = ds.to_numpy(batch_size=8)
    state = loader.state_dict()
    for batch in loader:
        if batch["id"][0] == 8:
            loader.load_state_dict(state)
    assert flat(loader) == list(range(RECORDS))


@pytest.mark.parametrize(
    "changed", [{"shuffle": "blocks"}, {"seed": 1}, {"bucket_by": "items"}, {"reshuffle": False}]
)
def test_a_state_of_another_order_is_refused(ds, changed):
    state = ds.to_numpy(shuffle=True).state_dict()
    other = ds.to_numpy(**({"shuffle": True} | changed))
    with pytest.raises(StateError, match="split 'train': expected state of the same"):
        other.load_state_dict(state)


def test_a_bucketed_order_goes_on_with_the_same_global_batch_only(ds):
    loader = ds.to_numpy(batch_size=4, shuffle=True, bucket_by="items")
    whole = ids(loader)
    loader.set_epoch(0)
    iterator = iter(loader)
    first = ids(islice(iterator, 2))
    state = loader.state_dict()
    iterator.close()
    same = ds.to_numpy(batch_size=4, shuffle=True, bucket_by="items")
    same.load_state_dict(state)
    assert first + ids(same) == whole
    with pytest.raises(StateError):
        ds.to_numpy(batch_size=5, shuffle=True, bucket_by="items").load_state_dict(state)


def test_bucketed_hosts_share_batches_of_one_length(ds):
    options = dict(batch_size=2, shuffle=True, bucket_by="items", columns=["id"], remainder="wrap")
    alone = ids(ds.to_numpy(**options | {"batch_size": 4}))
    hosts = [ids(ds.to_numpy(**options, host=(host, 2))) for host in range(2)]
    assert [a + b for a, b in zip(*hosts, strict=True)] == alone


@pytest.mark.parametrize("records", [23, 24])
def test_several_hosts_have_only_full_batches_unless_asked_otherwise(tmp_path, records):
    datum.write({"id": range(records)}, tmp_path / "d", shuffle=False, progress=False)
    ds = datum.load(tmp_path / "d")
    parts = [ids(ds.to_numpy(batch_size=3, host=(host, 4))) for host in range(4)]
    assert [[len(batch) for batch in part] for part in parts] == [[3, 3]] * 4
    order = [i for turn in zip(*parts, strict=True) for batch in turn for i in batch]
    assert order == [*range(records), *range(24 - records)]


def test_short_batches_on_several_hosts_are_warned_of_once(ds):
    options = dict(batch_size=3, host=(1, 4), remainder="keep", epochs=1)
    loader = ds.to_numpy(**options)
    with pytest.warns(UserWarning, match="batches of 2, 3, 3, 3 records on hosts 0 to 3.*\n.*wrap"):
        assert [len(batch) for batch in ids(loader)] == [3, 3]
    ids(loader)
    with pytest.warns(UserWarning, match="batches of 0, 1, 1, 1 records"):
        ids(ds.to_numpy(**options | {"batch_size": 5}))
    ids(ds.to_numpy(**options | {"batch_size": 1, "host": (0, 23)}))  # full ones


def test_functions_that_draw_from_the_generators_of_the_program_repeat(ds):
    def shift(record):
        return {"id": record["id"], "x": random.random() + np.random.rand()}

    def flip(batch):
        return {**batch, "sign": random.choice([-1, 1]) * np.random.rand()}

    def found(threads, map=shift, batch_map=flip, resume=0):
        loader = ds.to_numpy(
            batch_size=4, shuffle=True, epochs=2, threads=threads, map=map, batch_map=batch_map
        )
        if resume:
            loader.load_state_dict(loader.state_dict(batches=resume))
        return [(batch["x"].tolist(), batch.get("sign")) for batch in loader]

    random.seed(5)
    np.random.seed(5)
    expected = found(1)
    assert len({x for batch, _ in expected for x in batch}) == 2 * RECORDS
    after = random.random(), np.random.rand()
    random.seed(5)
    np.random.seed(5)
    assert after == (random.random(), np.random.rand())  # those of the program go on undisturbed
    assert found(4) == expected
    assert found(3, resume=7) == expected[7:]
    alone = [batch for batch, _ in expected]
    assert [batch for batch, _ in found(4, batch_map=dict)] == alone


def test_functions_that_draw_nothing_are_called_by_threads(ds):
    main, names = threading.main_thread(), []

    def note(record):
        names.append(threading.current_thread() is main)
        return record

    loader = ds.to_numpy(batch_size=4, map=note)
    list(loader)
    assert names.count(True) == 4  # the first batch, which told
    list(loader)
    assert names.count(True) == 4


# Single records.
def one_by_one(loader):
    return [int(record["id"]) for record in loader]


@pytest.mark.parametrize("shuffle", [False, True])
def test_single_records_come_in_the_order_of_batches(ds, shuffle):
    loader = ds.to_numpy(batch_size=None, shuffle=shuffle, epochs=2)
    assert one_by_one(loader) == flat(ds.to_numpy(batch_size=8, shuffle=shuffle, epochs=2))
    assert len(loader) == loader.remaining == 2 * RECORDS
    assert loader.report.records == 2 * RECORDS
    assert "one at a time" in repr(loader)
    record = next(iter(loader))
    assert record["id"].shape == ()
    assert isinstance(record["items"], np.ndarray)


@pytest.mark.parametrize("remainder", ["keep", "wrap", "drop"])
@pytest.mark.parametrize("workers", [1, 2])
def test_hosts_and_workers_take_single_records_in_turn(ds, remainder, workers):
    options = LoadOptions(batch_size=None, shuffle=True, epochs=2, remainder=remainder)
    ordered = order_split(ds["train"], options)
    order = [flat(ds.to_numpy(batch_size=8, shuffle=True, epochs=2))[n * 23 :][:23] for n in (0, 1)]
    for hosts in (2, 3, 4):
        for host in range(hosts):
            expected = []
            for epoch in order:
                end = {"keep": 23, "drop": 23 - 23 % hosts, "wrap": 23 + -23 % hosts}[remainder]
                expected += [(epoch * 2)[at] for at in range(host, end, hosts)]
            given = Loader(ordered, options, find_host=partial(tuple, (host, hosts)))
            assert len(given) == len(expected)
            assert one_by_one(given) == expected
            parts = [
                one_by_one(
                    Loader(
                        ordered,
                        options,
                        find_host=partial(tuple, (host, hosts)),
                        find_worker=lambda worker=worker: (worker, workers),
                    )
                )
                for worker in range(workers)
            ]
            assert sorted(i for part in parts for i in part) == sorted(expected)


def test_single_records_go_on_after_any_of_them_and_with_other_hosts(ds):
    options = dict(batch_size=None, shuffle=True, epochs=2)
    whole = one_by_one(ds.to_numpy(**options))
    loader = ds.to_numpy(**options)
    for at, _ in enumerate(loader, 1):
        state = json.loads(json.dumps(loader.state_dict()))
        assert loader.remaining == 2 * RECORDS - at
        other = ds.to_numpy(**options)
        other.load_state_dict(state)
        assert one_by_one(other) == whole[at:]
    loader = ds.to_numpy(**options, host=(0, 2))
    taken = [int(record["id"]) for record in islice(loader, 5)]
    state = loader.state_dict()
    assert state["position"] == 10
    assert taken == whole[0:10:2]
    batches = ds.to_numpy(batch_size=4, shuffle=True)
    batches.load_state_dict(state)
    assert flat(batches) == whole[10:23]


def test_single_records_that_map_made(ds):
    def pair(record, rng):
        return record["id"] + rng.integers(100), {"text": "x" * int(record["id"])}

    options = dict(shuffle=True, map=pair)
    (ints, texts) = zip(*ds.to_numpy(batch_size=None, **options), strict=True)
    batches = list(ds.to_numpy(batch_size=8, **options))
    assert list(ints) == [i for batch in batches for i in batch[0].tolist()]
    assert [text["text"] for text in texts] == [t for batch in batches for t in batch[1]["text"]]


def test_a_single_record_that_is_lost_keeps_its_position(tmp_path):
    datum.write({"id": range(9)}, tmp_path / "d", shuffle=False, progress=False)
    (shard,) = (tmp_path / "d").glob("*.tfrecord")
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    loader = datum.load(tmp_path / "d").to_numpy(batch_size=None, on_error="skip")
    positions = {int(record["id"]): loader.state_dict()["position"] for record in loader}
    assert positions == {i: i + 1 for i in range(9) if i != 4}
    assert (loader.report.records, loader.report.skipped) == (8, 1)


def test_the_report_counts_the_current_pass(ds):
    loader = ds.to_numpy(batch_size=8)
    list(loader)
    assert str(loader.report) == "23 records in 3 batches, 0 skipped"
    iterator = iter(loader)
    next(iterator)
    assert (loader.report.batches, loader.report.records) == (1, 8)
    iterator.close()


def running() -> set[threading.Thread]:
    return set(threading.enumerate())


def test_threads_end_with_the_iteration(ds):
    before = running()
    loader = ds.to_numpy(batch_size=2, threads=3, map=lambda record: record)
    list(loader)
    assert running() <= before
    for _ in loader:
        break
    gc.collect()
    assert running() <= before


def test_closing_ends_an_iteration_that_is_under_way(ds):
    before = running()
    with ds.to_numpy(batch_size=2, threads=3, map=lambda record: record, epochs=None) as loader:
        iterator = iter(loader)
        next(iterator)
    assert running() <= before
    iterator.close()


def test_an_error_of_a_function_comes_out_and_leaves_no_threads(ds):
    def fail(record):
        raise ArithmeticError(f"record {record['id']}")

    before = running()
    with pytest.raises(ArithmeticError):
        list(ds.to_numpy(batch_size=2, threads=3, map=fail))
    gc.collect()
    assert running() <= before


def test_a_pickled_loader_goes_on_where_it_was(ds):
    loader = ds.to_numpy(batch_size=8, shuffle=True)
    list(loader)
    other = pickle.loads(pickle.dumps(loader))
    assert other.state_dict() == loader.state_dict()
    assert ids(other) == ids(loader)


def test_converting_is_the_last_step(ds):
    options = LoadOptions(batch_size=8, columns=["id"])
    ordered = order_split(ds["train"], options)
    loader = Loader(ordered, options, convert=lambda batch: batch["id"].sum())
    assert list(loader) == [28, 92, 133]


def test_host_and_worker_are_asked_for_when_it_is_iterated(ds):
    options = LoadOptions(batch_size=4)
    ordered = order_split(ds["train"], options)
    place = {"host": (0, 1), "worker": (0, 1)}
    loader = Loader(
        ordered,
        options,
        find_host=lambda: place["host"],
        find_worker=lambda: place["worker"],
    )
    assert len(ids(loader)) == 6
    loader.set_epoch(0)
    place["host"] = (1, 2)
    assert ids(loader)[0] == [4, 5, 6, 7]
    loader.set_epoch(0)
    place["worker"] = (1, 2)
    assert ids(loader)[0] == [12, 13, 14, 15]


def test_a_worker_tells_and_takes_its_own_state(ds):
    options = LoadOptions(batch_size=4)
    ordered = order_split(ds["train"], options)

    def make():
        return Loader(ordered, options, find_worker=lambda: (1, 2))

    whole = ids(make())
    loader = make()
    iterator = iter(loader)
    next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    iterator.close()
    assert (state["worker"], state["batches"]) == ([1, 2], 1)
    other = make()
    other.load_state_dict(state)
    assert ids(other) == whole[1:]


def test_a_program_with_workers_tells_the_place_by_its_batches(ds):
    loader = ds.to_numpy(batch_size=4)
    state = loader.state_dict(batches=3)
    loader.load_state_dict(state)
    assert ids(loader)[0] == [12, 13, 14, 15]


def test_an_empty_split_gives_no_batches(tmp_path):
    datum.write([{"x": 1}], tmp_path / "d", splits={"a": 0.5, "b": 0.5}, progress=False)
    ds = datum.load(tmp_path / "d")
    (empty,) = (name for name in ds if not len(ds[name]))
    loader = ds.to_numpy(empty, epochs=None)
    assert list(loader) == []
    assert loader.state_dict()["epoch"] == 1


def test_the_repr_tells_what_it_gives(ds):
    loader = ds.to_numpy(batch_size=8, shuffle=True, seed=3, host=(1, 2))
    assert repr(loader) == (
        "Loader('train', 23 records, batches of 8, order full, seed 3, epoch 0, host 1 of 2)"
    )


def test_without_a_seed_each_loader_has_an_order_of_its_own(ds):
    first, second = (ds.to_numpy(shuffle=True, seed=None) for _ in range(2))
    assert [b["id"].tolist() for b in first] != [b["id"].tolist() for b in second]


@pytest.mark.parametrize("options", [{}, {"bucket_by": "items"}])
def test_a_state_brings_its_seed_to_a_loader_without_one(ds, options):
    options = {"batch_size": 7, "shuffle": True, "seed": None, **options}
    loader = ds.to_numpy(**options)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    rest = [batch["id"].tolist() for batch in batches]
    again = ds.to_numpy(**options)
    again.load_state_dict(state)
    assert [batch["id"].tolist() for batch in again] == rest


def test_several_hosts_need_a_seed(ds):
    with pytest.raises(ValueError, match="expected a `seed` on 2 hosts"):
        iter(ds.to_numpy(shuffle=True, seed=None, host=(0, 2)))


SCHEMA = Schema({"image": Feature("uint8"), "label": Feature("int64")})


def test_keywords_and_options_are_the_same():
    options = [option.name for option in fields(LoadOptions) if option.init]
    assert sorted(LoadKeywords.__annotations__) == sorted(options)


def test_a_misspelt_option_names_the_nearest():
    with pytest.raises(
        TypeError, match="to_numpy: got an unknown option `bach_size`\nhint: did you"
    ):
        LoadOptions.of({"bach_size": 3}, caller="to_numpy")


def test_an_option_like_none_lists_all():
    with pytest.raises(TypeError, match="hint: there are batch_size, shuffle, seed"):
        LoadOptions.of({"zzz": 3}, caller="to_numpy")


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": 0},
        {"batch_size": -1},
        {"batch_size": True},
        {"epochs": 0},
        {"seed": -1},
        {"threads": 0},
        {"prefetch": 0},
        {"shuffle": -1},
        {"shuffle": "fully"},
        {"remainder": "dorp"},
        {"on_error": "ignore"},
        {"pad": 0},
        {"host": (2, 2)},
        {"host": (-1, 2)},
        {"host": (0, 0)},
        {"drop_remainder": True, "remainder": "pad"},
    ],
)
def test_values_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match="expected"):
        LoadOptions(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pad": True},
        {"bucket_by": "x"},
        {"batch_map": len},
        {"remainder": "pad"},
    ],
)
def test_single_records_take_nothing_that_is_about_batches(wrong):
    with pytest.raises(ValueError, match="expected a `batch_size` with .* got None for single"):
        LoadOptions(batch_size=None, **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": 1.5},
        {"shuffle": 0.5},
        {"shuffle": None},
        {"cache": "memory"},
        {"drop_remainder": 1},
        {"reshuffle": 0},
        {"decode": "image"},
        {"pad": 1.5},
        {"pad": "longest"},
        {"map": "function"},
        {"batch_map": 3},
        {"host": 3},
        {"host": (0, 1, 2)},
        {"host": ("a", "b")},
        {"columns": 3},
    ],
)
def test_values_of_another_type_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(TypeError, match=f"expected `{name}`"):
        LoadOptions(**wrong)


def test_numbers_of_numpy_become_plain_ones():
    options = LoadOptions(
        batch_size=np.uint8(200),
        host=(np.int32(0), np.int32(2)),
        seed=np.uint64(2**63),
        epochs=np.int64(2),
        shuffle=np.int16(9),
        threads=np.int8(1),
    )
    found = [options.batch_size, *options.host, options.seed, options.epochs, options.shuffle]
    assert found == [200, 0, 2, 2**63, 2, 9]
    assert {type(number) for number in (*found, options.threads)} == {int}


def test_a_host_from_an_iterator_is_kept():
    assert LoadOptions(host=iter([1, 2])).host == (1, 2)


@pytest.mark.parametrize("wrong", [1.5, None, [3], np.True_])
def test_all_ways_to_shuffle_are_told(wrong):
    with pytest.raises(TypeError, match="True, False, 'full', 'blocks', 'shards' or a number"):
        LoadOptions(shuffle=wrong)


def test_drop_remainder_is_a_remainder():
    assert LoadOptions(drop_remainder=True).remainder == "drop"
    assert LoadOptions(drop_remainder=True, remainder="drop").remainder == "drop"


def test_columns_choose_features():
    assert list(LoadOptions().selected(SCHEMA)) == ["image", "label"]
    assert list(LoadOptions(columns=["label"]).selected(SCHEMA)) == ["label"]
    assert list(LoadOptions(columns="label").selected(SCHEMA)) == ["label"]


def test_columns_from_an_iterator_can_be_looked_through_again():
    options = LoadOptions(columns=(name for name in ["label"]))
    assert list(options.selected(SCHEMA)) == list(options.selected(SCHEMA)) == ["label"]
    assert options == LoadOptions(columns=["label"])


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["lable"]},
        {"decode": {"lable": False}},
        {"bucket_by": "lable"},
    ],
)
def test_names_that_the_schema_lacks_are_refused(options):
    with pytest.raises(ValueError, match="got 'lable'\nhint: did you mean 'label'"):
        LoadOptions(**options).selected(SCHEMA)


def test_no_columns_are_refused():
    with pytest.raises(ValueError, match="at least one feature"):
        LoadOptions(columns=[]).selected(SCHEMA)


def test_a_feature_with_the_name_of_the_mask_is_refused_only_where_there_is_one():
    schema = Schema({"batch_mask": Feature("bool"), "x": Feature("int64")})
    LoadOptions().selected(schema)
    LoadOptions(remainder="pad", columns=["x"]).selected(schema)
    with pytest.raises(ValueError, match="no feature 'batch_mask' with remainder='pad'"):
        LoadOptions(remainder="pad").selected(schema)


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Feature("float32"), None),
        (Feature("float32", optional=True), "x_present"),
        (Feature("float32", optional=True, default=1.0), None),
    ],
)
def test_presence_is_told_where_nothing_else_tells_it(feature, expected):
    assert present_name("x", feature) == expected


def test_the_guide_lists_every_option():
    guide = (Path(__file__).parents[3] / "docs/guides/loading.md").read_text()
    listed = re.findall(r"^\| `(\w+)` ", guide.partition("## All options")[2], re.MULTILINE)
    assert sorted(listed) == sorted(LoadKeywords.__annotations__)


@pytest.mark.parametrize("owner", [datum.Dataset, Mix])
@pytest.mark.parametrize("name", ["to_numpy", "to_torch", "to_jax"])
def test_help_lists_every_option_with_its_text(owner, name):
    method = getattr(owner, name)
    parameters = inspect.signature(method).parameters
    for option in LoadKeywords.__annotations__:
        assert parameters[option].kind is inspect.Parameter.KEYWORD_ONLY
        assert re.search(rf"^    {option}: \S", method.__doc__, re.MULTILINE), option
    assert parameters["batch_size"].default == 32
    assert parameters["epochs"].annotation == "int | None"
    assert "options" not in parameters


def test_a_seed_of_none_is_drawn():
    first, second = LoadOptions(seed=None), LoadOptions(seed=None)
    assert first.seed != second.seed
    assert first.is_seed_drawn
    assert not LoadOptions(seed=0).is_seed_drawn


def test_a_known_name_passes():
    check_known("columns", ["a"], ["a", "b"])


def test_an_unknown_name_is_told_with_the_nearest():
    with pytest.raises(ValueError, match="`columns`.*got 'lable'\nhint: did you mean 'label'\\?"):
        check_known("columns", ["lable"], ["image", "label"])


def test_a_name_near_to_none_is_told_with_all():
    with pytest.raises(ValueError, match="got 'zzz'\nhint: there are image, label"):
        check_known("columns", ["zzz"], ["image", "label"])


def test_names_that_are_no_text_are_unknown():
    with pytest.raises(ValueError, match="got 3\n"):
        check_known("columns", [3], ["image"])


@pytest.mark.parametrize("value", [1, 5, np.int64(3)])
def test_whole_numbers_pass(value):
    number = check_count("batch_size", value, least=1)
    assert type(number) is int
    assert number == value


@pytest.mark.parametrize("value", [0, -1, True])
def test_numbers_that_are_too_small_are_refused(value):
    with pytest.raises(ValueError, match="expected `batch_size` of 1 or more, got"):
        check_count("batch_size", value, least=1)


@pytest.mark.parametrize("value", [1.0, "1", None, [1]])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(TypeError, match="expected `batch_size` to be a whole number, got"):
        check_count("batch_size", value, least=1)


def test_a_hint_comes_with_the_message():
    with pytest.raises(ValueError, match="got 0\nhint: more"):
        check_count("epochs", 0, least=1, hint="more")


def test_choices_are_told():
    check_choice("on_error", "skip", ("raise", "skip"))
    with pytest.raises(ValueError, match="expected `on_error` to be 'raise' or 'skip', got 'x'"):
        check_choice("on_error", "x", ("raise", "skip"))


def test_another_type_is_refused():
    check_kind("cache", True, bool, "True or False")
    with pytest.raises(TypeError, match="expected `cache` to be True or False, got 'yes'"):
        check_kind("cache", "yes", bool, "True or False")


def test_only_what_can_be_called_is_a_function():
    check_function("map", None)
    check_function("map", len)
    with pytest.raises(TypeError, match="expected `map` to be a function, got 3"):
        check_function("map", 3)


def damage(record: int) -> Damage:
    return Damage("a.tfrecord", record * 10, record * 10 + 10, record, "payload checksum")


def test_batches_records_and_damage_add_up():
    report = LoadReport()
    report.add(4, [])
    report.add(3, [damage(5)])
    assert (report.batches, report.records, report.skipped) == (2, 7, 1)
    assert report.damage == [damage(5)]


def test_all_damage_is_counted_and_the_first_is_listed():
    report = LoadReport()
    for first in range(0, 3000, 300):
        report.add(0, map(damage, range(first, first + 300)))
    assert report.skipped == 3000
    assert report.damage == [damage(record) for record in range(MAX_LISTED)]


def test_the_report_reads_well():
    report = LoadReport()
    report.add(1, [])
    assert str(report) == "1 record in 1 batch, 0 skipped"
    report.add(1200, [damage(7)])
    assert str(report) == (
        "1,201 records in 2 batches, 1 skipped\n"
        "  a.tfrecord: record 7, bytes 70-80: payload checksum"
    )


def test_long_lists_are_cut_short():
    report = LoadReport()
    report.add(0, map(damage, range(8)))
    lines = str(report).splitlines()
    assert len(lines) == 7
    assert lines[-1] == "  and 3 more"
