"""What TensorFlow's files and caches keep."""

import os
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import datum
from datum import Feature, Schema
from datum._frameworks.tensorflow.record_keys import (
    DenseKey,
    Key,
    KeyReader,
    KeyValues,
    count_records,
    find_present,
    pad_rows,
    parse_examples,
    parse_steps,
    refuse_empty,
    refuse_missing,
    refuse_missing_steps,
)
from datum.format.layout import lower
from tests.contract.oracle import make_example, make_sequence_example
from tests.contract.wire import (
    delimited,
    entry,
    example,
    feature_lists,
    float_list,
    int64_list,
    packed,
)
from tests.unit.frameworks.tensorflow.agreement import assert_agrees, parse_eagerly
from tests.unit.frameworks.tensorflow.written import numbers, write_numbers


def _keys(**features: Feature) -> list[Key]:
    return [Key(column, item) for name, item in features.items() for column in lower(name, item)]


def _read(keys: list[Key], *records: bytes, **options: Any) -> dict[tuple[str, bool], KeyValues]:
    return KeyReader(tf.constant(records), **options).read(keys)


def test_each_key_is_found_under_its_name_and_kind() -> None:
    keys = _keys(x=Feature("int64", (None, None)), steps=Feature("int64", (None,), sequence=True))
    context = {"x": ("int64", [1]), "x_lengths_1": ("int64", [1])}
    found = _read(keys, make_sequence_example(context, {"steps": []}))
    assert set(found) == {("x", False), ("x_lengths_1", False), ("steps", True)}


def test_absent_numbers_become_rows_of_zeros_and_are_told() -> None:
    keys = _keys(x=Feature("int64", (2,), optional=True), y=Feature("bytes", optional=True))
    records = make_example({"x": ("int64", [1, 2])}), make_example({"y": ("bytes", [b"a"])})
    found = _read(keys, *records)
    assert found["x", False].values.numpy().tolist() == [[1, 2], [0, 0]]
    assert found["x", False].present.numpy().tolist() == [True, False]
    assert found["y", False].values.numpy().tolist() == [b"", b"a"]
    assert found["y", False].present.numpy().tolist() == [False, True]


@pytest.mark.parametrize("is_trusted", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_a_part_of_optional_values_is_refused(count: int, is_trusted: bool) -> None:
    record = make_example({"x": ("int64", [1] * count)})
    keys = _keys(x=Feature("int64", (2,), optional=True))
    with pytest.raises(tf.errors.InvalidArgumentError, match="key `x`: expected 2 value"):
        _read(keys, record, is_trusted=is_trusted)


def test_only_what_is_not_trusted_is_searched_for_missing_lists() -> None:
    keys = _keys(x=Feature("int64", (None,)))
    assert _read(keys, make_example({}), is_trusted=True)["x", False].splits.shape == (2,)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Feature: x .* is required"):
        _read(keys, make_example({}))


def test_rows_are_cut_off_or_filled_up() -> None:
    stored = KeyValues(tf.constant([1, 2, 3, 4]), tf.constant([0, 3, 3, 4], tf.int64))
    rows = pad_rows(stored, (3, 2), blank=tf.constant(9))
    assert rows.numpy().tolist() == [[1, 2], [9, 9], [4, 9]]


def test_records_are_counted_before_the_graph_runs_if_possible() -> None:
    assert count_records(tf.constant(["", ""])) == 2
    dynamic = tf.function(count_records, input_signature=[tf.TensorSpec((None,), tf.string)])
    assert dynamic(tf.constant(["", "", ""])).numpy() == 3


def _keys_of(feature: Feature) -> list[Key]:
    return [Key(column, feature) for column in lower("x", feature)]


@pytest.mark.parametrize(
    ("feature", "types"),
    [
        (Feature("uint8"), [tf.int64]),
        (Feature("datetime64[s]"), [tf.int64]),
        (Feature("bfloat16", (None,)), [tf.float32]),
        (Feature("str"), [tf.string]),
        (Feature("int64", (3,), encoding="raw"), [tf.string]),
        (Feature("float64", (None, None), encoding="values"), [tf.string, tf.int64]),
        (Feature("float32", (3,), encoding="sparse"), [tf.float32, tf.int64]),
    ],
)
def test_lists_are_of_the_three_types(feature: Feature, types: list[Any]) -> None:
    assert [key.dtype for key in _keys_of(feature)] == types


@pytest.mark.parametrize(
    ("feature", "shape"),
    [
        (Feature("int64", (2, 3)), (2, 3)),
        (Feature("float64", (2, 3)), ()),
        (Feature("float64", (None, 3)), ()),
        (Feature("float64", (0,)), ()),
    ],
)
def test_numbers_and_raw_strings_are_fixed(feature: Feature, shape: tuple[int, ...]) -> None:
    (key,) = _keys_of(feature)
    assert key.is_fixed
    assert key.dense_key().shape == shape


@pytest.mark.parametrize(
    "feature",
    [
        Feature("int64", (None,)),
        Feature("int64", (0,)),
        Feature("int64", (None, 2), sequence=True),
        Feature("float64", (None, 2), sequence=True),
    ],
)
def test_lists_and_shapes_without_values_are_not_fixed(feature: Feature) -> None:
    assert not _keys_of(feature)[0].is_fixed


@pytest.mark.parametrize(
    ("feature", "stored"),
    [
        (Feature("uint64", default=2**64 - 1), np.array(-1)),
        (Feature("bool", (2,), default=True), np.array([1, 1])),
        (Feature("float16", default=0.5), np.array(0.5, np.float32)),
        (Feature("str", default="ä"), b"\xc3\xa4"),
        (Feature("float64", default=1.0), b"\0\0\0\0\0\0\xf0\x3f"),
        (Feature("uint16", (None,), encoding="raw", default=[1, 2]), b"\1\0\2\0"),
    ],
)
def test_a_default_is_asked_for_as_it_would_be_stored(feature: Feature, stored: Any) -> None:
    (key,) = _keys_of(feature)
    default = key.dense_key().default.numpy()
    np.testing.assert_array_equal(default, stored)
    assert not key.is_doubtful


def test_presence_is_of_interest_only_where_it_is_told_or_decides() -> None:
    asked = {
        "told": Feature("int64", (None,), optional=True),
        "filled": Feature("int64", (None,), default=[1]),
        "sparse": Feature("int64", (3,), encoding="sparse", optional=True),
    }
    not_asked = {
        "required": Feature("int64", (None,)),
        "filled with nothing": Feature("int64", (None,), default=[]),
    }
    assert all(_keys_of(feature)[0].needs_presence for feature in asked.values())
    assert not any(_keys_of(feature)[0].needs_presence for feature in not_asked.values())
    _, lengths = _keys_of(Feature("int64", (None, None), optional=True))
    assert not lengths.needs_presence


@pytest.mark.parametrize(
    ("feature", "blank"),
    [
        (Feature("float32", optional=True), 0.0),
        (Feature("bytes", optional=True), b""),
        (Feature("float64", (2,), optional=True), bytes(16)),
        (Feature("float64", (None,), optional=True), b""),
    ],
)
def test_a_blank_is_what_an_absent_value_reads_as(feature: Feature, blank: Any) -> None:
    (key,) = _keys_of(feature)
    assert key.is_doubtful
    assert key.blank().numpy() == blank


EMPTY = entry(b"key", int64_list())
REFUSED = tf.errors.InvalidArgumentError
# Records whose list under "key" has no values, and whether they have it at all.
RECORDS = {
    "nothing": (b"", False),
    "no features": (example(), False),
    "another key": (example(entry(b"other", int64_list())), False),
    "an empty list": (example(EMPTY), True),
    "a list of an empty chunk": (example(entry(b"key", int64_list(packed()))), True),
    "no kind": (example(entry(b"key")), False),
    "the value first": (
        example(delimited(1, delimited(2, int64_list()), delimited(1, b"key"))),
        True,
    ),
    "two maps": (example(EMPTY) + example(entry(b"other", int64_list(packed(1)))), True),
    "two entries, the last without a kind": (example(EMPTY, entry(b"key")), False),
    "two entries, the last with one": (example(entry(b"key"), EMPTY), True),
    "the letters in another key": (example(entry(b"the key", int64_list())), False),
    "the letters in a text": (example(entry(b"other", delimited(1, delimited(1, b"key")))), False),
    "the record in a text": (
        example(entry(b"other", delimited(1, delimited(1, example(EMPTY))))),
        False,
    ),
    "a list of the context": (feature_lists(EMPTY), False),
}


def _present(records: list[bytes], key: str, **options: Any) -> list[bool]:
    splits = tf.zeros([len(records) + 1], tf.int64)
    found = find_present(tf.constant(records), key, splits=splits, **options)
    return [bool(there) for there in found.numpy()]


@pytest.mark.parametrize(("record", "is_there"), RECORDS.values(), ids=RECORDS)
def test_an_empty_list_is_told_from_an_absent_one(record: bytes, is_there: bool) -> None:
    assert _present([record], "key", is_sequence=False) == [is_there]
    schema = Schema({"key": Feature("int64", (None,), optional=True)})
    assert_agrees(schema, [record], parse_eagerly(schema, [record]))


def test_each_record_is_told_on_its_own() -> None:
    records = [record for record, _ in RECORDS.values()]
    expected = [is_there for _, is_there in RECORDS.values()]
    assert _present(records, "key", is_sequence=False) == expected


def test_lists_with_values_are_there_without_being_looked_at() -> None:
    found = find_present(tf.constant(["?", "?"]), "key", splits=[0, 1, 3], is_sequence=False)
    assert found.numpy().tolist() == [True, True]


def test_no_records_have_nothing() -> None:
    none = tf.constant([], tf.string)
    found = find_present(none, "key", splits=tf.constant([0]), is_sequence=False)
    assert found.shape == (0,)


# Entries that TensorFlow's parser refuses, which protobuf takes.
@pytest.mark.parametrize(
    ("content", "is_there"),
    [
        ([delimited(1, b"key")], False),
        ([delimited(1, b"key"), delimited(2, int64_list()), delimited(2)], True),
        ([delimited(1, b"other"), delimited(1, b"key"), delimited(2, int64_list())], True),
        ([delimited(1, b"key"), delimited(1, b"other"), delimited(2, int64_list())], False),
    ],
)
def test_entries_are_merged_as_protobuf_merges_them(content: list[bytes], is_there: bool) -> None:
    assert _present([example(delimited(1, *content))], "key", is_sequence=False) == [is_there]


@pytest.mark.parametrize("key", ["", "a.b", "a\0b", r"\C*", "ключ", "(", "x" * 300])
def test_keys_of_any_letters_are_found(key: str) -> None:
    record = example(entry(key.encode(), float_list()))
    assert _present([record, b""], key, is_sequence=False) == [True, False]


def test_an_empty_feature_list_is_told_from_an_absent_one() -> None:
    records = [feature_lists(EMPTY), feature_lists(entry(b"key")), example(EMPTY), b""]
    assert _present(records, "key", is_sequence=True) == [True, True, False, False]


def test_records_that_lack_a_list_are_refused() -> None:
    full = example(entry(b"key", int64_list(packed(1))))
    splits = tf.constant([0, 1, 1], tf.int64)
    records = tf.constant([full, example(EMPTY)])
    found = refuse_missing(records, "key", tf.int64, splits=splits, is_sequence=False)
    assert found.numpy().tolist() == [0, 1, 1]
    records = tf.constant([full, example()])
    with pytest.raises(REFUSED, match="Feature: key .* is required"):
        refuse_missing(records, "key", tf.int64, splits=splits, is_sequence=False)


def test_records_that_have_a_key_without_its_values_are_refused() -> None:
    keys = [DenseKey("key", (), tf.zeros([], tf.int64)), DenseKey("b", (), tf.zeros([], tf.int64))]
    present = [tf.constant([False]), tf.constant([False])]
    assert refuse_empty(tf.constant([example()]), keys, present) == present
    with pytest.raises(REFUSED, match="Key: key"):
        refuse_empty(tf.constant([example(EMPTY)]), keys, present)


def test_the_optimised_graph_still_refuses() -> None:
    def refuse(records: Any) -> Any:
        splits = tf.zeros([2], tf.int64)
        return refuse_missing(records, "key", tf.int64, splits=splits, is_sequence=False)

    records = tf.data.Dataset.from_tensors(tf.constant([b""]))
    with pytest.raises(REFUSED, match="Feature: key .* is required"):
        list(records.map(refuse))


EXAMPLES = [
    make_example({"": ("int64", [1, 2]), "list": ("bytes", [b"a"])}),
    make_example({"": ("int64", [3, 4])}),
]


def test_keys_are_parsed_together_even_an_empty_one() -> None:
    keys = [DenseKey("", (2,), tf.int64), DenseKey("no", (), tf.constant(b"blank"))]
    (numbers, blanks), ((values, splits),) = parse_examples(
        tf.constant(EXAMPLES), keys, [("list", tf.string)]
    )
    assert numbers.numpy().tolist() == [[1, 2], [3, 4]]
    assert blanks.numpy().tolist() == [b"blank", b"blank"]
    assert values.numpy().tolist() == [b"a"]
    assert splits.numpy().tolist() == [0, 1, 1]
    assert splits.dtype == tf.int64


def test_the_context_of_a_sequence_example_is_parsed_like_an_example() -> None:
    record = make_sequence_example({"x": ("int64", [5])}, {"x": [("int64", [6])]})
    (numbers,), _ = parse_examples([record], [DenseKey("x", (), tf.int64)])
    assert numbers.numpy().tolist() == [5]


def test_steps_are_parsed_with_the_splits_of_records_and_of_steps() -> None:
    steps = [("int64", [1, 2]), ("int64", []), ("int64", [3])]
    records = [make_sequence_example({}, {"x": steps}), make_sequence_example({}, {})]
    ((values, splits, inner_splits),) = parse_steps(records, [("x", tf.int64)])
    assert values.numpy().tolist() == [1, 2, 3]
    assert splits.numpy().tolist() == [0, 3, 3]
    assert inner_splits.numpy().tolist() == [0, 2, 2, 3]


def test_a_list_without_steps_is_no_missing_one() -> None:
    there, missing = make_sequence_example({}, {"x": []}), make_sequence_example({}, {"y": []})
    assert refuse_missing_steps([there, there], "x", tf.string) == 2
    assert refuse_missing_steps(tf.constant([], tf.string), "x", tf.string) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="Feature list 'x' is required"):
        refuse_missing_steps([there, missing], "x", tf.string)


def kept(folder):
    return {path.name.partition(".")[0] for path in folder.iterdir()}


@pytest.fixture
def dataset(tmp_path):
    return write_numbers(tmp_path / "set", 40)


def test_files_are_used_again_by_the_same_pipeline_alone(tmp_path, dataset):
    where = tmp_path / "caches" / "c"
    first = numbers(dataset.to_tf("train[:20]", cache=where, batch_size=10))
    (name,) = kept(tmp_path / "caches")
    assert name.startswith("c-")
    assert numbers(dataset.to_tf("train[:20]", cache=where, batch_size=10)) == first
    assert kept(tmp_path / "caches") == {name}
    assert numbers(dataset.to_tf("train[20:]", cache=where, batch_size=10)) == list(range(20, 40))
    assert len(kept(tmp_path / "caches")) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"batch_size": 4},
        {"drop_remainder": True},
        {"shuffle": True},
        {"columns": ["x"]},
        {"pad": True},
        {"map": lambda record: record},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_form_has_files_of_its_own(tmp_path, dataset, other):
    where = tmp_path / "caches" / "c"
    numbers(dataset.to_tf(cache=where, batch_size=15))
    options = {"batch_size": 15, **other}
    expected = numbers(dataset.to_tf(**options))
    found = numbers(dataset.to_tf(cache=where, **options))
    assert sorted(found) == sorted(expected)
    assert len(kept(tmp_path / "caches")) == 2


def test_a_dataset_that_was_written_anew_is_read_anew(tmp_path, dataset):
    where = tmp_path / "caches" / "c"
    numbers(dataset.to_tf(cache=where))
    rows = [{"x": -n, "items": []} for n in range(40)]
    datum.write(rows, tmp_path / "set", shuffle=False, overwrite=True, shards=4, progress=False)
    again = datum.load(tmp_path / "set").to_tf(cache=where)
    assert numbers(again) == [-n for n in range(40)]


def test_files_of_others_that_were_replaced_are_read_anew(tmp_path):
    """Though their sizes and times are those of the old ones."""
    where, folder = tmp_path / "caches" / "c", tmp_path / "bare"
    for value in (1, 2):
        rows = [{"x": value} for _ in range(40)]
        datum.write(rows, tmp_path / f"{value}", shuffle=False, shards=1, progress=False)
        folder.mkdir(exist_ok=True)
        (shard,) = (tmp_path / f"{value}").glob("*.tfrecord")
        os.utime(shard, ns=(7, 7))
        shard.replace(folder / "train.tfrecord")
        assert numbers(datum.load(folder).to_tf(cache=where)) == [value] * 40


def test_a_cache_serves_any_order(tmp_path, dataset):
    where = tmp_path / "caches" / "c"
    orders = [numbers(dataset.to_tf(cache=where, shuffle=True, seed=seed)) for seed in (1, 2)]
    assert orders[0] != orders[1]
    assert len(kept(tmp_path / "caches")) == 1


CACHED_RECORDS = 44


@pytest.fixture
def pictures(tmp_path):
    rng = np.random.default_rng(0)
    schema = {
        "id": datum.Feature("int64"),
        "items": datum.Feature("int64", (None,)),
        "image": datum.Feature("uint8", (None, None, 3), encoding="image"),
    }
    rows = [
        {
            "id": i,
            "items": [i] * (i % 3),
            "image": rng.integers(0, 256, (9 + i % 3, 8, 3), np.uint8),
        }
        for i in range(CACHED_RECORDS)
    ]
    datum.write(rows, tmp_path, schema=schema, shuffle=False, shards=2, progress=False)
    return datum.load(tmp_path), rows


def counting(calls):
    def note(record):
        called = tf.py_function(lambda i: calls.append(int(i)) or 0, [record["id"]], tf.int64)
        return {"id": record["id"] + tf.ensure_shape(called, []), "items": record["items"]}

    return note


@pytest.mark.parametrize("options", [{"epochs": 3}, {}], ids=["epochs", "passes"])
@pytest.mark.parametrize(("after", "times"), [("decode", 3), ("map", 1)])
def test_what_map_made_is_kept_where_asked_in_the_same_order(pictures, options, after, times):
    dataset, _ = pictures
    calls = []
    made = dataset.to_tf(
        batch_size=10,
        shuffle=True,
        map=counting(calls),
        cache=True,
        cache_after=after,
        remainder="pad",
        **options,
    )
    got = [batch for _ in range(3 // options.get("epochs", 1)) for batch in made]
    loader = dataset.to_numpy(batch_size=10, shuffle=True, epochs=3, remainder="pad")
    for batch, expected in zip(got, loader, strict=True):
        assert batch["id"].numpy().tolist() == expected["id"].tolist()
        assert batch["items"].to_list() == [[i] * (i % 3) for i in expected["id"].tolist()]
        assert batch["batch_mask"].numpy().tolist() == expected["batch_mask"].tolist()
    assert sorted(set(calls)) == list(range(CACHED_RECORDS))
    fillers = 0 if after == "map" else 3 * 6
    assert len(calls) == times * CACHED_RECORDS + fillers


def test_images_that_were_decoded_once_need_no_files_any_more(pictures):
    dataset, rows = pictures
    made = dataset.to_tf(batch_size=10, shuffle=True, cache=True)
    first = [i for batch in made for i in batch["id"].numpy().tolist()]
    for path in dataset.path.glob("*.tfrecord"):
        path.write_bytes(b"")
    second = []
    for batch in made:
        for number, image in zip(batch["id"].numpy().tolist(), batch["image"], strict=True):
            dense = image.to_tensor() if isinstance(image, tf.RaggedTensor) else image
            np.testing.assert_array_equal(dense.numpy(), rows[number]["image"])
            second.append(number)
    assert sorted(second) == list(range(CACHED_RECORDS))
    assert first != second


@pytest.mark.parametrize("after", ["decode", "map"])
def test_the_other_frameworks_keep_it_too(pictures, after):
    dataset, _ = pictures
    calls = []

    def note(record):
        calls.append(int(record["id"]))
        return {"id": record["id"], "sum": record["image"].sum()}

    loader = dataset.to_numpy(
        batch_size=10, shuffle=True, epochs=2, map=note, cache=True, cache_after=after
    )
    plain = dataset.to_numpy(batch_size=10, shuffle=True, epochs=2, map=note)
    for got, expected in zip(loader, plain, strict=True):
        assert got["id"].tolist() == expected["id"].tolist()
        assert got["sum"].tolist() == expected["sum"].tolist()
    assert len(calls) == CACHED_RECORDS * (2 + (1 if after == "map" else 2))
