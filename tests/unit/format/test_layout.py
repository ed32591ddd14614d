"""Names of shards and where they are found."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import CorruptRecordError, DatumError, Feature, Schema, SchemaError
from datum._core import Cell, Kind, Layout
from datum.errors import SplitError
from datum.format import DiscoveredFeature, RecordFile, RecordWriter, discover, encode, parse
from datum.format.layout import check_keys, lower
from datum.format.manifest import check_split_name, parse_shard_name, shard_name


def keys_and_roles(feature: Feature) -> list[tuple[str, str]]:
    return [(column.key, column.role) for column in lower("x", feature)]


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Feature("int64"), [("x", "values")]),
        (Feature("int64", (None,)), [("x", "values")]),
        (Feature("int8", (None, None)), [("x", "values"), ("x_lengths_1", "lengths")]),
        (
            Feature("str", (None, None, None, 2)),
            [("x", "values"), ("x_lengths_1", "lengths"), ("x_lengths_2", "lengths")],
        ),
        (Feature("int8", (None, None), sequence=True), [("x", "values")]),
        (Feature("float64", (None, 3)), [("x", "values")]),
        (Feature("float64", (None, None)), [("x", "values"), ("x_shape", "shape")]),
        (Feature("float64", (2, None)), [("x", "values"), ("x_shape", "shape")]),
        (Feature("int8", (9,), encoding="sparse"), [("x_value", "values"), ("x_index", "index")]),
        (
            Feature("int8", (9, 9), encoding="sparse"),
            [("x_value", "values"), ("x_index_0", "index"), ("x_index_1", "index")],
        ),
        (Feature("int8", keys=("k",)), [("k", "values")]),
        (Feature("int8", (None, None), keys=("k", "n")), [("k", "values"), ("n", "lengths")]),
        (Feature("float64", (None, None), keys=("k", "s")), [("k", "values"), ("s", "shape")]),
        (Feature("float64", keys=("k",)), [("k", "values")]),
        (
            Feature("float64", (None, None), encoding="values"),
            [("x", "values"), ("x_lengths_1", "lengths")],
        ),
        (Feature("uint8", (None, None, 3), encoding="image"), [("x", "values")]),
        (Feature("uint8", (9, 9, 3), encoding="image", keys=("k",)), [("k", "values")]),
        (
            Feature("int8", (9, 9), encoding="sparse", keys=("i", "j", "v")),
            [("v", "values"), ("i", "index"), ("j", "index")],
        ),
    ],
    ids=repr,
)
def test_a_feature_lies_under_these_keys(feature, expected):
    assert keys_and_roles(feature) == expected


@pytest.mark.parametrize(
    ("feature", "kind", "layout", "cell", "unit"),
    [
        (Feature("bool"), Kind.INT64, Layout.FIXED, Cell.BOOL, 1),
        (Feature("uint16", (2, 3)), Kind.INT64, Layout.FIXED, Cell.UINT16, 6),
        (Feature("float16", (None, 3)), Kind.FLOAT, Layout.VARIABLE, Cell.FLOAT32, 3),
        (Feature("bfloat16"), Kind.FLOAT, Layout.FIXED, Cell.FLOAT32, 1),
        (Feature("str", (4,)), Kind.BYTES, Layout.FIXED, Cell.SLICE, 4),
        (Feature("float64", (2,)), Kind.BYTES, Layout.FIXED, Cell.RAW, 16),
        (Feature("datetime64[us]", (2,)), Kind.INT64, Layout.FIXED, Cell.INT64, 2),
        (
            Feature("uint16", (None, None, 3), encoding="image"),
            *(Kind.BYTES, Layout.FIXED, Cell.SLICE, 1),
        ),
        (
            Feature("float64", (None, None, 2), encoding="values"),
            *(Kind.BYTES, Layout.VARIABLE, Cell.RAW, 16),
        ),
        (
            Feature("float64", (9,), encoding="sparse"),
            *(Kind.BYTES, Layout.VARIABLE, Cell.RAW, 8),
        ),
        (Feature("complex64", (None, 2)), Kind.BYTES, Layout.VARIABLE, Cell.RAW, 16),
        (Feature("int8", (None, 2), sequence=True), Kind.INT64, Layout.STEPS, Cell.INT8, 2),
        (
            Feature("int8", (None, None), sequence=True),
            Kind.INT64,
            Layout.NESTED_STEPS,
            Cell.INT8,
            1,
        ),
        (Feature("float64", (None, 2), sequence=True), Kind.BYTES, Layout.STEPS, Cell.RAW, 16),
    ],
    ids=repr,
)
def test_values_are_stored_as(feature, kind, layout, cell, unit):
    column = lower("x", feature)[0]
    assert (column.kind, column.layout, column.cell, column.unit) == (kind, layout, cell, unit)


@pytest.mark.parametrize(
    "features",
    [
        {"x": Feature("int8"), "y": Feature("int8", keys=("x",))},
        {"x": Feature("int8", (9,), encoding="sparse"), "x_index": Feature("int64")},
        {"x": Feature("int8", (None, None)), "x_lengths_1": Feature("int64")},
    ],
    ids=list,
)
def test_two_features_under_one_key_are_refused(features):
    one, other = features
    key = "x" if other == "y" else other
    with pytest.raises(SchemaError) as caught:
        check_keys(Schema(features))
    assert str(caught.value) == (
        f"features {one!r} and {other!r} use the same key {key!r}\n"
        "hint: rename one, or set its `keys`"
    )


def test_one_key_twice_in_a_feature_is_refused():
    feature = Feature("int8", (9,), encoding="sparse", keys=("k", "k"))
    with pytest.raises(SchemaError, match="'k'"):
        check_keys(Schema({"x": feature}))


def test_context_and_sequence_may_share_a_key():
    features = {"x": Feature("int8"), "y": Feature("int8", (None,), sequence=True, keys=("x",))}
    check_keys(Schema(features))


def is_split_name(name: str) -> bool:
    try:
        return check_split_name(name) == name
    except SplitError:
        return False


split_names = st.from_regex(r"[A-Za-z0-9_.-]{1,20}", fullmatch=True).filter(is_split_name)


def test_a_shard_is_named_by_split_number_and_count():
    assert shard_name("train", 7, 1024) == "train-00007-of-01024.tfrecord"


def test_appended_shards_tell_their_generation():
    assert shard_name("train", 0, 2, generation=1) == "train.1-00000-of-00002.tfrecord"


def test_names_of_many_shards_sort_in_their_order():
    names = [shard_name("train", number, 123_456) for number in (0, 9, 10, 99_999, 100_000)]
    assert names[0] == "train-000000-of-123456.tfrecord"
    assert names == sorted(names)


@pytest.mark.parametrize(("number", "count", "generation"), [(2, 2, 0), (-1, 2, 0), (0, 2, -1)])
def test_a_number_outside_is_refused(number, count, generation):
    with pytest.raises(ValueError, match="expected"):
        shard_name("train", number, count, generation=generation)


@given(split_names, st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 1000))
def test_a_name_tells_what_it_was_made_of(split, number, more, generation):
    count = number + more
    name = shard_name(split, number, count, generation=generation)
    assert parse_shard_name(name) == (split, number, count, generation)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("validation-00003-of-00128", ("validation", 3, 128, 0)),
        ("train-00000-of-01024", ("train", 0, 1024, 0)),
        ("train.tfrecord-00000-of-00010", ("train", 0, 10, 0)),
        ("x-train.tfrecord-00001-of-00002.gz", ("train", 1, 2, 0)),
        ("coco-2017-validation.tfrecord-00001-of-00002", ("validation", 1, 2, 0)),
        ("train_3-of-8.tfrec", ("train", 3, 8, 0)),
        ("my-split-0003-of-0004.tfrecords.zlib", ("my-split", 3, 4, 0)),
        ("train.2-00000-of-00001.tfrecord.gz", ("train", 0, 1, 2)),
    ],
)
def test_names_of_others_are_read(name, expected):
    assert parse_shard_name(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "",
        "train.tfrecord",
        "datum.json",
        "-00000-of-00001",
        "train-00002-of-00002.tfrecord",
        "train-00000-of-00000",
        "train-00000-of-x.tfrecord",
        "train-00000-of-00001.index.1",
        "train-\n00000-of-00001",
        ".tfrecord-00000-of-00001",
        "train-" + "0" * 5000 + "-of-1",
    ],
)
def test_other_names_are_not_taken_for_shards(name):
    assert parse_shard_name(name) is None


@given(st.text(max_size=60))
def test_any_text_is_a_shard_or_not(name):
    found = parse_shard_name(name)
    assert found is None or 0 <= found[1] < found[2]


@pytest.mark.parametrize(
    "name", ["train", "val", "test_2012", "train-clean", "train.clean", "a", "0", "_x", "x" * 128]
)
def test_ordinary_names_of_splits_are_taken(name):
    assert check_split_name(name) == name


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "letters"),
        (".train", "letters"),
        ("train.", "letters"),
        ("-train", "letters"),
        ("a/b", "letters"),
        ("..", "letters"),
        ("a\\b", "letters"),
        ("a b", "letters"),
        ("a\0", "letters"),
        ("a\n", "letters"),
        ("train[:1]", "letters"),
        ("a+b", "letters"),
        ("é", "letters"),
        ("all", "every split"),
        ("train-00000", "that of a shard"),
        ("train-00000-of-00008", "that of a shard"),
        ("train.1", "that of a shard"),
        ("x" * 129, "128 characters"),
        (None, "got NoneType"),
        (3, "got int"),
    ],
)
def test_names_that_would_mislead_are_refused(name, problem):
    with pytest.raises(SplitError, match=problem):
        check_split_name(name)


ROWS = [
    {"label": 1, "vector": [0.5, 1.5], "words": ["a", "b"], "raw": b"\xff"},
    {"label": 2, "vector": [2.5, 3.5], "words": [], "raw": b"longer", "extra": [7]},
]
SCHEMA = Schema(
    {
        "label": Feature("int64"),
        "vector": Feature("float32", (2,)),
        "words": Feature("str", (None,)),
        "raw": Feature("bytes"),
        "extra": Feature("int64", (None,), optional=True),
    }
)
FRAMED = encode(ROWS, SCHEMA)
STEPS = Schema(
    {
        "id": Feature("int64"),
        "tokens": Feature("int64", (None,), sequence=True),
        "bags": Feature("str", (None, None), sequence=True),
        "maybe": Feature("float32", (None, 2), sequence=True, optional=True),
    }
)
STEP_ROWS = [
    {"id": 1, "tokens": [1, 2, 3], "bags": [["a"], ["b", "c"]], "maybe": [[1, 2]]},
    {"id": 2, "tokens": [], "bags": [[]]},
]


def test_every_feature_is_found_with_kind_presence_and_lengths():
    found = discover(FRAMED)
    assert found.records == 2
    assert found.sequences == {}
    assert list(found.features) == ["extra", "label", "raw", "vector", "words"]
    assert found.context["label"] == DiscoveredFeature(
        kinds=("int64",),
        present=2,
        records=2,
        lengths=(1, 1),
        steps=None,
        sizes=None,
        has_unset_steps=False,
        is_text=False,
    )
    assert found.features["words"].lengths == (0, 2)
    assert found.features["words"].is_text
    assert found.features["words"].sizes == (1, 1)
    assert not found.features["raw"].is_text
    assert found.features["raw"].sizes == (1, 6)
    assert found.features["extra"].present == 1
    assert not found.features["extra"].is_sequence


def test_the_schema_reads_every_record():
    schema = discover(FRAMED).schema()
    assert schema == Schema(
        {
            "extra": Feature("int64", optional=True),
            "label": Feature("int64"),
            "raw": Feature("bytes"),
            "vector": Feature("float32", (2,)),
            "words": Feature("bytes", (None,)),
        }
    )
    batch = parse(FRAMED, schema)
    assert batch["vector"].tolist() == [[0.5, 1.5], [2.5, 3.5]]
    assert batch["words"].to_list() == [[b"a", b"b"], []]


def test_text_is_told_from_bytes_when_asked():
    schema = discover(FRAMED).schema(text=True)
    assert schema["words"].dtype == "str"
    assert schema["raw"].dtype == "bytes"


def test_feature_lists_are_found_with_their_steps():
    found = discover(encode(STEP_ROWS, STEPS))
    assert list(found.context) == ["id"]
    assert list(found.sequences) == ["bags", "maybe", "tokens"]
    assert found.sequences["tokens"].steps == (0, 3)
    assert found.sequences["tokens"].lengths == (1, 1)
    assert found.sequences["tokens"].is_sequence
    assert found.sequences["bags"].lengths == (0, 2)
    assert found.sequences["maybe"].present == 1


def test_the_schema_of_feature_lists_reads_every_record():
    framed = encode(STEP_ROWS, STEPS)
    schema = discover(framed).schema(text=True)
    assert schema["bags"] == Feature("str", (None, None), sequence=True)
    assert schema["maybe"] == Feature("float32", (None, 2), sequence=True, optional=True)
    batch = parse(framed, schema)
    assert batch["tokens"].to_list() == [[1, 2, 3], []]
    assert batch["bags"].to_list() == [[["a"], ["b", "c"]], [[]]]


def test_steps_that_never_hold_a_value_can_be_read():
    framed = encode([{"x": [[], []]}], {"x": Feature("int64", (None, None), sequence=True)})
    assert parse(framed, discover(framed).schema())["x"].to_list() == [[[], []]]


def test_feature_lists_without_steps_are_sound():
    found = discover(encode([{"x": []}], {"x": Feature("int64", (None,), sequence=True)}))
    assert found.records == 1
    assert found.sequences["x"].kinds == ()
    assert found.schema() == Schema({})


def test_lists_that_never_hold_a_value_can_be_read():
    framed = encode([{"x": []}], {"x": Feature("int64", (None,))})
    assert discover(framed).schema() == Schema({"x": Feature("int64", (None,))})


def test_a_name_in_both_places_is_the_sequence():
    schema = {"x": Feature("int64"), "y": Feature("str", (None,), sequence=True, keys=("x",))}
    found = discover(encode([{"x": 1, "y": ["a"]}], schema))
    assert found.context["x"].kinds == ("int64",)
    assert found.features["x"].is_sequence


def test_a_feature_of_two_kinds_has_no_schema():
    payloads = [*encode([{"x": 1}]), *encode([{"x": "a"}])]
    found = discover(payloads)
    assert found.features["x"].kinds == ("bytes", "int64")
    message = (
        "feature 'x': expected one kind in all records, got bytes and int64\n"
        "hint: give its type in `schema`"
    )
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        found.schema()


@pytest.mark.parametrize(("limit", "records"), [(1, 1), (2, 2), (99, 2), (None, 2)])
def test_a_limit_bounds_the_records_looked_at(limit, records):
    assert discover(FRAMED, limit=limit).records == records


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit):
    with pytest.raises(ValueError, match=f"expected `limit` of 1 or more, got {limit}"):
        discover(FRAMED, limit=limit)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_file_is_looked_through(tmp_path, compression):
    path = tmp_path / "a.tfrecord"
    with RecordWriter(path, compression=compression) as writer:
        for _ in range(2000):
            writer.write_framed(FRAMED)
    assert discover(path).records == 4000
    assert discover(str(path), limit=1500).records == 1500
    assert discover(path).schema() == discover(FRAMED).schema()


def test_records_of_every_form_are_looked_through(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(FRAMED.to_bytes())
    expected = discover(FRAMED)
    file = RecordFile(tmp_path / "a.tfrecord")
    for source in (list(FRAMED), iter(FRAMED), FRAMED.records(), next(file.chunks()), file):
        assert discover(source) == expected


def test_no_records_have_no_features():
    found = discover([])
    assert found.records == 0
    assert found.features == {}
    assert found.schema() == Schema({})


def test_empty_records_are_sound():
    assert discover([b"", b""]).records == 2


def test_bytes_that_are_no_message_are_named(tmp_path):
    path = tmp_path / "a.tfrecord"
    with RecordWriter(path) as writer:
        writer.write(next(iter(FRAMED)))
        writer.write(b"\xff\xff\xff")
    offset = RecordFile(path).index.offsets[1]
    message = (
        f"{path}: record 1 at byte {offset}: expected a tf.train.Example or SequenceExample,"
        " got other bytes"
    )
    with pytest.raises(CorruptRecordError, match=f"^{re.escape(message)}"):
        discover(path)
    with pytest.raises(CorruptRecordError, match=f"^{re.escape(message)}"):
        discover(RecordFile(path))


@pytest.mark.parametrize("payload", [b"\x18\x01", b"\x22\x03abc"])
def test_another_message_is_refused(payload):
    with pytest.raises(DatumError, match="got 1 record"):
        discover([payload])


TEXTS = Schema({"x": Feature("bytes", (None,))})


@pytest.mark.parametrize(
    "payloads",
    [
        [*FRAMED],
        [*encode(STEP_ROWS, STEPS)],
        [*FRAMED, *encode(STEP_ROWS, STEPS)],
        [*encode([{"x": []}, {"x": [b"a"]}, {"x": [b"\xff", b""]}, {"x": []}], TEXTS)],
        [*encode([{"x": 1}]), *encode([{"x": "a"}]), *encode([{"y": 1}])],
        [*encode([{"x": [[], [1, 2]]}], {"x": Feature("int64", (None, None), sequence=True)})],
        [],
    ],
)
def test_what_is_found_in_parts_is_merged_to_what_is_found_in_all(payloads):
    for cut in range(len(payloads) + 1):
        first, second = discover(payloads[:cut]), discover(payloads[cut:])
        merged = first.merge(second)
        assert merged == discover(payloads)
        assert list(merged.context) == list(discover(payloads).context)


BAD = b"\xff\xff\xff"


@pytest.mark.parametrize(
    ("limit", "records", "lost"), [(None, 3, [0, 3, 4]), (1, 0, [0]), (4, 2, [0, 3])]
)
def test_records_that_are_no_messages_may_be_passed_over(limit, records, lost):
    first, second, third = (encode([row]).records()[0] for row in ({"x": 1}, {"x": 2}, {"y": 3}))
    payloads = [BAD, first, second, BAD, BAD, third]
    malformed = []
    found = discover(payloads, limit=limit, malformed=malformed)
    assert found.records == records
    assert [one.record for one in malformed] == lost
    assert {one.kind for one in malformed} == {"malformed"}


def test_records_that_are_no_messages_are_told_with_their_place(tmp_path):
    with RecordWriter(tmp_path / "a") as writer:
        writer.write(b"")
        writer.write(BAD)
    malformed = []
    assert discover(tmp_path / "a", malformed=malformed).records == 1
    assert [(one.file, one.offset, one.end) for one in malformed] == [
        (str(tmp_path / "a"), 16, 32 + len(BAD))
    ]
    malformed = []
    assert discover([BAD], malformed=malformed).records == 0
    assert len(malformed) == 1
