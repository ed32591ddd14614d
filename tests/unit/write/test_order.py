"""The order of records, their splits and shards."""

import numpy as np
import pandas as pd
import pytest

import datum
from datum import Feature, Schema, SchemaError, SourceError, SplitError
from datum._write import preview
from datum._write.append import merge_schemas
from datum._write.blocks import blocks_of
from datum._write.job import known_schema, override
from datum._write.order import (
    assign_splits,
    check_fractions,
    divide_part,
    hash_records,
    order_part,
    shuffled_places,
)
from datum._write.parts import collect_parts
from datum._write.preview import sample_part
from datum.sources import as_source
from tests.unit.write.datasets import digests, rows, values, write
from tests.unit.write.parts import Numbers, NumbersSource, options


def numbers(count):
    return np.arange(count, dtype=np.int64)


def test_a_hash_depends_on_the_key_alone():
    first = hash_records(numbers(3), ["a", "b", "c"])
    second = hash_records(np.array([7, 8, 9]), ["c", "b", "a"])
    assert first.tolist() == second[::-1].tolist()


def test_the_hash_of_a_key_never_changes():
    assert hash_records(numbers(2), ["", "train/cat/1.jpg"]).tolist() == [
        17665956581633026203,
        13413280581512293152,
    ]
    assert hash_records(numbers(2), None).tolist() == [
        16294208416658607535,
        7960286522194355700,
    ]


def test_another_seed_gives_another_order():
    hashes = hash_records(numbers(1000), None)
    orders = [np.argsort(shuffled_places(hashes, seed)).tolist() for seed in (0, 1, -1)]
    assert sorted(orders[0]) == list(range(1000))
    assert orders[0] != orders[1] != orders[2]


def test_a_shuffled_order_has_no_trace_of_the_first():
    hashes = hash_records(numbers(100_000), None)
    order = np.argsort(shuffled_places(hashes, 0))
    assert abs(np.corrcoef(order, np.arange(100_000))[0, 1]) < 0.01
    neighbours = np.abs(np.diff(order))
    assert np.median(neighbours) > 20_000


def test_no_record_has_a_place_of_its_own():
    hashes = hash_records(numbers(1000), None)
    firsts = {int(np.argmin(shuffled_places(hashes, seed))) for seed in range(20)}
    assert len(firsts) > 15
    assert 0 not in firsts


def test_a_record_keeps_its_split_when_others_are_added():
    fractions = {"train": 0.8, "val": 0.1, "test": 0.1}
    few = assign_splits(hash_records(numbers(1000), None), fractions)
    many = assign_splits(hash_records(numbers(5000), None), fractions)
    assert many[:1000].tolist() == few.tolist()


def test_fractions_come_out_about_right():
    found = np.bincount(assign_splits(hash_records(numbers(100_000), None), {"a": 0.7, "b": 0.3}))
    assert abs(found[0] - 70_000) < 1000


def test_split_and_order_are_independent():
    hashes = hash_records(numbers(10_000), None)
    is_train = assign_splits(hashes, {"a": 0.5, "b": 0.5}) == 0
    places = shuffled_places(hashes, 0)
    middle = np.median(places[is_train]) / 2.0**64
    assert 0.45 < middle < 0.55


def test_stratified_splits_are_exact_in_every_class():
    labels = ["a"] * 100 + ["b"] * 10 + ["c"] * 1
    hashes = hash_records(numbers(111), None)
    splits = assign_splits(hashes, {"train": 0.8, "val": 0.2}, labels)
    assert np.bincount(splits[:100]).tolist() == [80, 20]
    assert np.bincount(splits[100:110]).tolist() == [8, 2]


@pytest.mark.parametrize("fraction", [0, -0.5, 1.5, True, "0.5", None, float("nan")])
def test_a_fraction_that_is_none_is_refused(fraction):
    with pytest.raises(SplitError, match="'val'.*fraction"):
        check_fractions({"train": 0.5, "val": fraction})


def test_fractions_that_do_not_add_up_are_refused():
    with pytest.raises(SplitError, match=r"add up to 1, got 0\.9"):
        check_fractions({"train": 0.7, "val": 0.2})
    assert check_fractions({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})


def test_no_record_is_read():
    part = Numbers(1000)
    ((name, order, duplicates),) = order_part(part, "train", None, options())
    assert part.read_numbers == []
    assert (name, sorted(order.tolist()), duplicates) == ("train", list(range(1000)), [])
    assert order.tolist() != list(range(1000))


def test_the_order_goes_by_keys_not_by_listing():
    keys = [f"k{i}" for i in range(100)]
    orders = []
    for listed in (keys, keys[::-1]):
        ((_, order, _),) = order_part(Numbers(100, keys=listed), "train", None, options())
        orders.append([listed[n] for n in order])
    assert orders[0] == orders[1]


def test_fractions_share_out_all_records():
    part = Numbers(1000)
    division = divide_part(part, {"a": 0.5, "b": 0.5}, stratify=None)
    found = list(order_part(part, "train", division, options(shuffle=False)))
    assert [name for name, _, _ in found] == ["a", "b"]
    assert sorted(np.concatenate([order for _, order, _ in found]).tolist()) == list(range(1000))
    assert all((np.diff(order) > 0).all() for _, order, _ in found)


def test_a_key_that_comes_twice():
    part = Numbers(3, keys=["a", "b", "a"])
    with pytest.raises(SourceError, match=r"record 2 \(a\)"):
        list(order_part(part, "train", None, options()))
    ((_, order, duplicates),) = order_part(part, "train", None, options(on_error="skip"))
    assert sorted(order.tolist()) == [0, 1]
    assert [reject.record for reject in duplicates] == [2]
    division = divide_part(part, {"a": 0.5, "b": 0.5}, stratify=None)
    found = list(order_part(part, "train", division, options(on_error="skip")))
    assert sum(len(order) for _, order, _ in found) == 2
    assert sum(len(duplicates) for _, _, duplicates in found) == 1


def test_fractions_divide_by_key(tmp_path):
    fractions = {"train": 0.8, "val": 0.2}
    write(rows(1000), tmp_path / "few", splits=fractions)
    write(rows(2000), tmp_path / "many", splits=fractions)
    few, many = (set(values(tmp_path / name, split="val")) for name in ("few", "many"))
    assert 150 < len(few) < 250
    assert {x for x in many if x < 1000} == few
    assert len(values(tmp_path / "few")) + len(few) == 1000


def test_columns_are_divided_like_rows(tmp_path):
    fractions = {"train": 0.8, "val": 0.2}
    write([{"x": i} for i in range(300)], tmp_path / "rows", splits=fractions)
    write({"x": np.arange(300)}, tmp_path / "columns", splits=fractions)
    assert values(tmp_path / "rows", split="val") == values(tmp_path / "columns", split="val")


@pytest.mark.parametrize("is_table", [False, True])
def test_stratified_fractions_are_exact(tmp_path, is_table):
    labels = ["a"] * 80 + ["b"] * 20
    source = {"label": labels} if is_table else [{"label": label} for label in labels]
    write(source, tmp_path / "out", splits={"train": 0.75, "val": 0.25}, stratify="label")
    found = values(tmp_path / "out", "label", "val")
    assert (found.count("a"), found.count("b")) == (20, 5)


def test_a_source_for_each_split(tmp_path):
    write(None, tmp_path / "a", splits={"train": rows(5), "val": rows(3)})
    write({"train": rows(5), "val": rows(3)}, tmp_path / "b")
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert {name: split.records for name, split in datum.load(tmp_path / "a").splits.items()} == {
        "train": 5,
        "val": 3,
    }


def test_the_schema_of_all_splits_is_one(tmp_path):
    write(None, tmp_path / "rows", splits={"train": [{"x": 1}], "val": [{"x": 0.1}]})
    write(None, tmp_path / "cols", splits={"a": {"x": np.arange(2)}, "b": {"x": np.array([0.1])}})
    for name in ("rows", "cols"):
        assert datum.load(tmp_path / name).schema["x"] == Feature("float32")


@pytest.mark.parametrize(
    ("splits", "match"),
    [
        ({"train": 0.5}, "add up to 1"),
        ({"tr/ain": 1.0}, "tr/ain"),
        ({}, "dict of fractions or sources"),
        ({"train": rows(2)}, "with `source` None"),
    ],
)
def test_splits_that_cannot_be_meant_are_refused(tmp_path, splits, match):
    with pytest.raises(SplitError, match=match):
        write(rows(2), tmp_path / "out", splits=splits)


def part_of(source):
    (part,) = as_source(source).parts().values()
    return part


def sampled_numbers(sample):
    return [number for block in sample.held for number in block.numbers.tolist()]


def test_small_parts_are_read_whole():
    for source in ({"x": np.arange(50)}, [{"x": 1}] * 50, lambda: [{"x": 1}] * 50):
        sample = sample_part(part_of(source))
        assert sample.is_whole
        assert sample.seen == 50
        assert sorted(sampled_numbers(sample)) == list(range(50))


def test_large_parts_are_looked_at_all_over():
    sample = sample_part(part_of({"x": np.arange(100_000)}))
    assert not sample.is_whole
    found = sampled_numbers(sample)
    assert len(found) == len(set(found)) <= preview.SAMPLE_RECORDS + 32
    assert min(found) == 0
    assert max(found) == 99_999


def test_large_records_are_few():
    sample = sample_part(part_of({"x": np.zeros((200, 1000, 1000), np.uint8)}))
    assert sample.seen <= 32 + 10


def test_slow_records_are_few(monkeypatch):
    class Slow:
        def __len__(self):
            return 1000

        def __getitem__(self, number):
            clock[0] += 0.1
            return {"x": number}

    clock = [0.0]
    monkeypatch.setattr("datum._write.preview.time.monotonic", lambda: clock[0])
    assert sample_part(part_of(Slow())).seen < 60


def test_the_first_records_of_a_stream_are_read_and_the_rest_is_counted(monkeypatch):
    def stream():
        for number in range(20_000):
            yield {"x": number}

    monkeypatch.setattr(preview, "COUNT_SECONDS", 1e9)  # however busy the machine is
    sample = sample_part(part_of(stream))
    assert not sample.is_whole
    assert sample.total == 20_000
    assert sampled_numbers(sample) == list(range(4096))
    monkeypatch.setattr(preview, "COUNT_SECONDS", -1.0)
    assert sample_part(part_of(stream)).total is None


def test_a_sample_can_be_read_again():
    sample = sample_part(part_of([{"x": 1}] * 5))
    assert [len(block) for block in sample.blocks()] == [len(block) for block in sample.blocks()]


def test_an_iterator_is_refused():
    with pytest.raises(SourceError, match="got an iterator"):
        sample_part(part_of(iter([{"x": 1}])))


def test_no_records_are_a_sample_too():
    sample = sample_part(part_of({"x": np.arange(0)}))
    assert (sample.seen, sample.is_whole) == (0, True)


def test_a_source_has_its_own_splits():
    part = Numbers(3)
    intake = collect_parts(NumbersSource(part), None, None)
    assert intake.parts == {"train": part}
    assert (intake.fractions, intake.splits) == (None, ["train"])


def test_fractions_name_the_splits():
    intake = collect_parts(NumbersSource(Numbers(3)), {"a": 0.5, "b": 0.5}, None)
    assert intake.splits == ["a", "b"]


@pytest.mark.parametrize(
    "value",
    [
        [{"x": 1}],
        ({"x": i} for i in range(3)),
        lambda: [{"x": 1}],
        pd.DataFrame({"x": [1]}),
        NumbersSource(Numbers(1)),
    ],
    ids=["list", "generator", "function", "table", "source"],
)
def test_a_dict_of_sources_is_told_from_columns(value):
    assert collect_parts({"a": value}, None, None).splits == ["a"]


@pytest.mark.parametrize("value", [[1, 2], ["a", "b"], [[1], [2]]])
def test_columns_are_no_dict_of_sources(value):
    assert collect_parts({"a": value}, None, None).splits == ["train"]


def test_a_source_of_several_splits_gives_the_one_that_is_asked_for():
    class Two:
        def parts(self):
            return {"train": Numbers(1), "val": Numbers(2)}

    intake = collect_parts(None, {"val": Two()}, None)
    assert len(intake.parts["val"]) == 2
    with pytest.raises(SplitError, match="'test'.*got train, val"):
        collect_parts(None, {"test": Two()}, None)
    with pytest.raises(SplitError, match="got one that has train, val"):
        collect_parts(Two(), {"a": 1.0}, None)


def test_a_source_without_splits_is_an_error():
    class Nothing:
        def parts(self):
            return {}

    with pytest.raises(SourceError, match="at least one split"):
        collect_parts(Nothing(), None, None)


def test_a_schema_is_known_if_every_part_knows_its_own():
    known = collect_parts(NumbersSource(Numbers(1)), None, None)
    assert known_schema(known, None) == Schema({"x": Feature("int64")})
    unknown = collect_parts(NumbersSource(Numbers(1, schema=None)), None, None)
    assert known_schema(unknown, None) is None
    given = Schema({"y": Feature("str")})
    assert known_schema(unknown, given) == given


def test_schemas_merge_to_one_that_holds_both():
    first = Schema({"a": Feature("int64"), "b": Feature("int64", (3,)), "c": Feature("str")})
    second = Schema({"a": Feature("float64"), "b": Feature("int64", (5,)), "d": Feature("str")})
    assert merge_schemas(first, second) == Schema(
        {
            "a": Feature("float64"),
            "b": Feature("int64", (None,)),
            "c": Feature("str", optional=True),
            "d": Feature("str", optional=True),
        }
    )
    assert merge_schemas(first, first) == first
    with pytest.raises(SchemaError):
        merge_schemas(Schema({"a": Feature("str")}), Schema({"a": Feature("int64")}))


def test_features_that_are_given_stand():
    schema = Schema({"a": Feature("int64"), "b": Feature("str")})
    assert override(schema, {"a": Feature("uint8")})["a"] == Feature("uint8")
    with pytest.raises(SchemaError, match="'c'"):
        override(schema, {"c": Feature("uint8")})


def test_blocks_do_not_depend_on_anything_but_the_part():
    sizes = [len(block) for block in blocks_of(Numbers(10_000))]
    assert sizes == [4096, 4096, 1808]
