"""Records that are serialized already, on their way to be written."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import datum
from datum._write.serialized import columns_of, copy_stored, rows_of, serialized_source
from datum.errors import SchemaError, SourceError
from datum.format import RowEncoder, encode, parse
from datum.schema import Feature, ImageBytes, Schema
from datum.sources import Block, PartInfo, Reject, StreamedPart
from datum.sources.protocol import SerializedRecords
from tests.unit.rewrite.damaged import KINDS, row

NO_EXAMPLE = "expected a serialized tf.train.Example, got other bytes"


@dataclass
class Streamed(PartInfo):
    made: list
    schema: None = None
    metadata: dict = field(default_factory=dict)
    fingerprint: None = None
    is_repeatable: bool = True

    def blocks(self):
        yield from self.made


@dataclass
class Indexed:
    rows: list
    schema: None = None
    metadata: dict = field(default_factory=dict)
    fingerprint: None = None
    keys: None = None
    stored_bytes: None = None
    is_slow_python: bool = False

    def __len__(self):
        return len(self.rows)

    def read(self, numbers):
        return Block([self.rows[n] for n in numbers], numbers)


@dataclass
class Parts:
    by_split: dict

    def parts(self):
        return self.by_split


def serialize(row):
    return bytes(next(iter(encode([row]))))


def rows_part(*rows, **options):
    return Streamed([Block(list(rows), np.arange(len(rows)), **options)])


def read(part):
    return [block for block in part.blocks() if len(block)]


def test_what_the_serializer_makes_is_what_is_written():
    source = serialized_source(
        Parts({"train": rows_part({"n": 1, "s": "a"}, {"n": 2, "s": "b"}, keys=["x", "y"])}),
        lambda row: serialize({"twice": 2 * row["n"], "text": row["s"].upper()}),
    )
    part = source.parts()["train"]
    assert isinstance(part, StreamedPart)
    assert part.schema == Schema({"text": Feature("bytes"), "twice": Feature("int64")})
    for _ in range(2):
        (block,) = read(part)
        assert block.data["twice"].tolist() == [2, 4]
        assert block.data["text"].to_list() == [b"A", b"B"]
        assert list(block.keys) == ["x", "y"]
        assert block.numbers.tolist() == [0, 1]


def test_the_schema_holds_the_records_of_all_blocks_and_splits():
    blocks = [
        Block([{"x": [1, 2]}], np.arange(1)),
        Block([{"x": [1, 2, 3], "y": 0.5}], np.arange(1, 2)),
    ]
    parts = {"train": Streamed(blocks), "val": Indexed([{"x": [1], "z": [b"a", b"b"]}])}
    made = serialized_source(Parts(parts), serialize).parts()
    expected = {
        "x": Feature("int64", (None,)),
        "y": Feature("float32", optional=True),
        "z": Feature("bytes", (2,), optional=True),
    }
    assert made["train"].schema == made["val"].schema == Schema(expected)
    (block,) = read(made["val"])
    assert block.data["x"].to_list() == [[1]]


def test_columns_are_given_row_by_row():
    columns = {"n": np.array([1, 2]), "s": ["a", "b"]}
    source = Parts({"train": Streamed([Block(columns, np.arange(2))])})
    seen = []

    def remember(row):
        seen.append(row)
        return serialize({"n": int(row["n"])})

    serialized_source(source, remember).parts()
    assert seen == [{"n": 1, "s": "a"}, {"n": 2, "s": "b"}]


def test_paths_of_images_are_given_as_text():
    source = Parts({"train": rows_part({"image": Path("a") / "b.jpg"})})
    (block,) = read(serialized_source(source, serialize).parts()["train"])
    assert block.data["image"].to_list() == [str(Path("a") / "b.jpg").encode()]


def test_records_that_the_serializer_does_not_make_are_rejected():
    def serializer(row):
        makers = {
            1: lambda: serialize({"n": 1}),
            2: lambda: 1 / 0,
            3: lambda: "text",
            4: lambda: b"\xff\xff\xff",
        }
        return makers[row["n"]]()

    earlier = Reject(9, "z", "", "lost")
    rows = [{"n": n} for n in (1, 2, 3, 4, 1)]
    part = Streamed([Block(rows, np.arange(5) * 2, list("abcde"), [earlier])])
    (block,) = read(serialized_source(Parts({"train": part}), serializer).parts()["train"])
    assert block.numbers.tolist() == [0, 8]
    assert list(block.keys) == ["a", "e"]
    assert [str(reject) for reject in block.rejects] == [
        "record 2 (b): serializer: ZeroDivisionError: division by zero",
        "record 4 (c): serializer: TypeError: expected bytes, got str",
        f"record 6 (d): serializer: ValueError: {NO_EXAMPLE}",
        "record 9 (z): lost",
    ]


def test_a_feature_of_two_kinds_is_named():
    source = Parts({"train": rows_part({"x": 1}, {"x": 0.5})})
    with pytest.raises(SchemaError, match="feature 'x': expected one kind"):
        serialized_source(source, serialize).parts()


def test_messages_that_change_are_named():
    calls = []

    def serializer(row):
        calls.append(row)
        return serialize({"x": 1 if len(calls) == 1 else 0.5})

    part = serialized_source(Parts({"train": rows_part({})}), serializer).parts()["train"]
    with pytest.raises(
        SourceError, match="split 'train': `serializer` must return the same messages"
    ):
        read(part)


def test_an_iterator_that_can_be_read_once_is_refused():
    part = rows_part({"x": 1})
    part.is_repeatable = False
    with pytest.raises(SourceError, match="(?s)split 'train': .*read twice.*hint: pass a function"):
        serialized_source(Parts({"train": part}), serialize).parts()


def test_a_split_without_records_has_an_empty_schema():
    part = serialized_source(Parts({"train": rows_part()}), serialize).parts()["train"]
    assert part.schema == Schema({})
    assert read(part) == []


SCHEMA = datum.Schema({"x": datum.Feature("int64"), "y": datum.Feature("str", optional=True)})
ROWS = [{"x": 1, "y": "a"}, {"x": 2}, {"x": 3, "y": "c"}]


def stored(rows=ROWS, schema=SCHEMA, **options):
    framed = encode(rows, options.pop("written", schema))
    return SerializedRecords(
        framed.data, framed.offsets, schema, locate=lambda at: f"place {at}", **options
    )


def copy(data, schema=None, *, is_counted=False):
    block = Block(data, np.arange(10, 10 + len(data)))
    schema = data.schema if schema is None else schema
    encoder = RowEncoder(schema, threads=1)
    made, facts = copy_stored(block, encoder, is_counted=is_counted, threads=1)
    return made, made.data.encode(), facts


def test_records_are_the_same_bytes_and_are_counted():
    data = stored()
    block, encoded, facts = copy(data)
    assert encoded.framed.to_bytes() == data.frames.tobytes()
    assert encoded.statistics.records == 3
    assert encoded.statistics.features["y"].missing == 1
    assert encoded.statistics.features["x"].numbers.total == 6
    assert block.numbers.tolist() == [10, 11, 12]
    assert facts == {}


def test_records_whose_statistics_are_known_are_not_looked_at():
    data = stored([{"x": 1.5}], written=None)
    _, encoded, _ = copy(data, is_counted=True)
    assert encoded.framed.to_bytes() == data.frames.tobytes()
    assert (encoded.statistics.records, dict(encoded.statistics.features)) == (1, {})


def test_statistics_are_those_that_writing_the_rows_has():

    rows = [row(number) for number in range(20)]
    expected = RowEncoder(KINDS).encode(rows).statistics
    _, encoded, facts = copy(stored(rows, KINDS))
    assert encoded.statistics == expected
    assert facts["image"].formats == {"jpeg": 20}
    assert facts["mask"].formats == {"png": 13}


def test_features_that_are_left_out_are_taken_from_the_records():
    data = stored(schema=SCHEMA.select(["x"]), written=SCHEMA, is_partial=True)
    _, encoded, _ = copy(data)
    assert encoded.framed.to_bytes() == encode([{"x": n} for n in (1, 2, 3)]).to_bytes()
    assert list(encoded.statistics.features) == ["x"]


def test_absent_and_empty_sparse_values_stay_apart():
    schema = datum.Schema({"s": datum.Feature("int64", (5,), encoding="sparse", optional=True)})
    rows = [{"s": ([[1]], [7])}, {}, {"s": (np.empty((0, 1), np.int64), [])}]
    for is_partial in (False, True):
        data = stored(rows, schema, is_partial=is_partial)
        _, encoded, _ = copy(data)
        assert encoded.framed.to_bytes() == data.frames.tobytes()
        assert encoded.statistics.features["s"].missing == 1
    assert [found["s"] is None for found in rows_of(stored(rows, schema))] == [False, True, False]


def test_a_schema_that_stores_them_otherwise_has_them_made_anew():
    wider = datum.Schema({"x": datum.Feature("float32"), "y": SCHEMA["y"]})
    _, encoded, _ = copy(stored(), wider)
    assert parse(encoded.framed, wider)["x"].tolist() == [1.0, 2.0, 3.0]
    assert encoded.statistics.features["x"].numbers.highest == 3.0


def test_a_schema_without_one_of_their_features_is_refused():
    with pytest.raises(datum.SchemaError, match="feature 'y': not in the schema"):
        copy(stored(), SCHEMA.select(["x"]))


def test_records_that_are_not_what_their_schema_says_are_rejects():
    parts = [encode([one]).to_bytes() for one in ({"x": 1}, {"x": "two"}, {"y": "b"}, {"x": 4})]
    parts.insert(2, datum.format.frame([b"\xff\xff"]).to_bytes())
    sizes = [len(part) for part in parts]
    data = SerializedRecords(
        np.frombuffer(b"".join(parts), np.uint8),
        np.cumsum([0, *sizes[:-1]]),
        SCHEMA,
        locate=lambda at: f"place {at}",
    )
    block, encoded, _ = copy(data)
    assert [(one.record, one.where, one.reason) for one in block.rejects] == [
        (11, "place 1", "feature 'x': expected int64 values, got bytes values"),
        (
            12,
            "place 2",
            "expected a tf.train.Example or SequenceExample, got other bytes",
        ),
        (13, "place 3", "feature 'x': expected a value, got none"),
    ]
    assert block.numbers.tolist() == [10, 14]
    assert encoded.framed.to_bytes() == parts[0] + parts[4]
    assert encoded.statistics.records == 2


def test_images_that_say_nothing_of_themselves_are_copied_all_the_same():
    schema = datum.Schema({"image": datum.Feature("uint8", (None, None, 3), encoding="image")})
    data = stored([{"image": b"no image"}], schema)
    _, encoded, facts = copy(data)
    assert encoded.framed.to_bytes() == data.frames.tobytes()
    assert not facts["image"].formats


def test_columns_and_rows_of_stored_records():
    assert columns_of(stored(), names=["x"])["x"].tolist() == [1, 2, 3]
    assert columns_of([{"x": 1}]) == [{"x": 1}]
    assert rows_of(stored()) == [{"x": 1, "y": "a"}, {"x": 2, "y": None}, {"x": 3, "y": "c"}]
    (found,) = rows_of(stored([row(1)], KINDS))
    assert isinstance(found["image"], ImageBytes)


def test_an_empty_block_stays_empty():
    _, encoded, _ = copy(stored([]))
    assert (len(encoded.framed), encoded.statistics.records) == (0, 0)
