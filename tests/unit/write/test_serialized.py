from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from datum._write.serialized import serialized_source
from datum.errors import SchemaError, SourceError
from datum.format import encode
from datum.schema import Feature, Schema
from datum.sources import Block, PartInfo, Reject, StreamedPart

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
    with pytest.raises(SourceError, match="split 'train': expected the same messages each time"):
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
