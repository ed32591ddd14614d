import re

import pytest

from datum import CorruptRecordError, DatumError, Feature, Schema, SchemaError
from datum.format import DiscoveredFeature, RecordFile, RecordWriter, discover, encode, parse

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
        "hint: read it with a schema of your own, or leave it out with `columns`"
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
        " got bytes that are no such message"
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
