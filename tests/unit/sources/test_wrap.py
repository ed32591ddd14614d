"""Sources around sources."""

import array
import pickle
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest

from datum import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SourceError, SplitError
from datum.schema import Feature, Schema
from datum.sources import Block, IndexedPart, PartInfo, Reject, StreamedPart, python
from datum.sources.protocol import SparseRows, as_slice, take_rows
from datum.sources.wrap import limit_source, map_source


@dataclass
class Indexed:
    """Records 0 to `records`, each with its number."""

    records: int
    schema: Schema | None = field(default_factory=lambda: Schema({"n": Feature("int64")}))
    metadata: dict = field(default_factory=lambda: {"n": {"unit": "m"}})
    fingerprint: str | None = "abc"
    stored_bytes: int | None = 1000
    is_slow_python: bool = True

    @property
    def keys(self):
        return [f"k{n}" for n in range(self.records)]

    def __len__(self):
        return self.records

    def read(self, numbers):
        rows = [{"n": int(n)} for n in numbers]
        return Block(rows, numbers, [f"k{n}" for n in numbers])


@dataclass
class Streamed(PartInfo):
    """The same, one block after the other."""

    made: list
    schema: Schema | None = None
    metadata: dict = field(default_factory=dict)
    fingerprint: str | None = None
    is_repeatable: bool = True

    def blocks(self):
        yield from self.made


@dataclass
class Parts:
    by_split: dict

    def parts(self):
        return self.by_split


def rows_block(first, last, rejects=()):
    bad = {reject.record for reject in rejects}
    numbers = [n for n in range(first, last) if n not in bad]
    rows = [{"n": n} for n in numbers]
    return Block(rows, np.array(numbers, np.int64), [f"k{n}" for n in numbers], rejects)


def read_all(part):
    return [row["n"] for block in part.blocks() for row in block.data]


def test_an_indexed_split_stops_after_its_count():
    part = limit_source(Parts({"train": Indexed(10)}), {"train": 4}).parts()["train"]
    assert isinstance(part, IndexedPart)
    assert len(part) == 4
    assert part.keys == ["k0", "k1", "k2", "k3"]
    assert part.read(np.array([3, 0])).data == [{"n": 3}, {"n": 0}]
    assert part.stored_bytes == 400
    assert part.is_slow_python
    assert part.schema == Schema({"n": Feature("int64")})
    assert part.metadata == {"n": {"unit": "m"}}
    assert part.fingerprint == "abc, the first 4"


def test_what_an_indexed_split_does_not_know_stays_unknown():
    whole = Indexed(3, fingerprint=None, stored_bytes=None)
    part = limit_source(Parts({"train": whole}), {"train": 3}).parts()["train"]
    assert (part.fingerprint, part.stored_bytes) == (None, None)


def test_a_streamed_split_stops_within_a_block():
    made = [rows_block(0, 4), rows_block(4, 8), rows_block(8, 9)]
    part = limit_source(Parts({"train": Streamed(made)}), {"train": 6}).parts()["train"]
    assert isinstance(part, StreamedPart)
    assert not isinstance(part, IndexedPart)
    assert read_all(part) == read_all(part) == [0, 1, 2, 3, 4, 5]
    last = list(part.blocks())[-1]
    assert list(last.keys) == ["k4", "k5"]
    assert last.numbers.tolist() == [4, 5]


def test_nothing_is_read_beyond_the_last_record_that_is_wanted():
    def blocks():
        yield rows_block(0, 4)
        pytest.fail("read too far")

    part = Streamed([])
    part.blocks = blocks
    assert read_all(limit_source(Parts({"a": part}), {"a": 4}).parts()["a"]) == [0, 1, 2, 3]
    assert read_all(limit_source(Parts({"a": part}), {"a": 0}).parts()["a"]) == []


def test_records_that_cannot_be_read_count_too():
    rejects = [Reject(1, "k1", "", "bad"), Reject(5, "k5", "", "bad")]
    part = limit_source(Parts({"a": Streamed([rows_block(0, 8, rejects)])}), {"a": 4}).parts()["a"]
    (block,) = part.blocks()
    assert [row["n"] for row in block.data] == [0, 2, 3]
    assert list(block.rejects) == rejects[:1]


def test_columns_of_every_kind_are_cut():
    columns = {
        "array": np.arange(6).reshape(3, 2),
        "list": ["a", "b", "c"],
        "text": BytesColumn.from_values(["a", "b", "c"]),
        "ragged": Ragged(np.arange(4), np.array([0, 1, 1, 4])),
        "sparse": Sparse(np.array([[0, 1], [2, 0]]), np.array([5, 6]), (3, 2)),
        "masked": Masked(np.arange(3), np.array([True, False, True])),
        "masked sparse": Masked(
            Sparse(np.array([[2, 0]]), np.array([6]), (3, 2)), np.array([False, True, True])
        ),
    }
    part = Streamed([Block(columns, np.arange(3))])
    (block,) = limit_source(Parts({"a": part}), {"a": 2}).parts()["a"].blocks()
    cut = block.data
    assert len(block) == 2
    assert cut["array"].tolist() == [[0, 1], [2, 3]]
    assert cut["list"] == ["a", "b"]
    assert cut["text"].to_list() == ["a", "b"]
    assert cut["ragged"].to_list() == [[0], []]
    assert cut["sparse"].to_list() == [[0, 5], [0, 0]]
    assert cut["masked"].to_list() == [0, None]
    assert cut["masked sparse"].values.dense_shape == (2, 2)


def test_an_indexed_split_with_fewer_records_names_both_numbers():
    limited = limit_source(Parts({"val": Indexed(3)}), {"val": 1234})
    with pytest.raises(SourceError, match="split 'val': expected 1,234 records, got 3\nhint: pass"):
        limited.parts()


def test_a_streamed_split_with_fewer_records_names_both_numbers():
    rejects = [Reject(1, None, "", "bad")]
    part = Streamed([rows_block(0, 3, rejects)])
    limited = limit_source(Parts({"val": part}), {"val": 5}).parts()["val"]
    with pytest.raises(SourceError, match="split 'val': expected 5 records, got 3"):
        list(limited.blocks())


def test_splits_without_a_count_stay_whole():
    whole = Indexed(3)
    parts = limit_source(Parts({"train": whole, "val": Indexed(3)}), {"val": 1}).parts()
    assert parts["train"] is whole
    assert len(parts["val"]) == 1


def test_an_unknown_split_names_the_nearest():
    limited = limit_source(Parts({"train": Indexed(3)}), {"trian": 1})
    with pytest.raises(SplitError, match="got 'trian'\nhint: did you mean 'train'"):
        limited.parts()
    limited = limit_source(Parts({"train": Indexed(3)}), {"x": 1})
    with pytest.raises(SplitError, match="hint: there are train"):
        limited.parts()


@pytest.mark.parametrize("count", [-1, 1.5, "3", True, None])
def test_a_count_that_is_none_is_refused(count):
    with pytest.raises(SplitError, match="split 'train': expected a number of records, got"):
        limit_source(Parts({"train": Indexed(3)}), {"train": count})


def test_whether_a_stream_can_be_read_again_is_handed_on():
    for is_repeatable in (True, False):
        part = Streamed([rows_block(0, 3)], is_repeatable=is_repeatable)
        limited = limit_source(Parts({"a": part}), {"a": 1}).parts()["a"]
        assert limited.is_repeatable is is_repeatable


def test_a_limited_part_can_be_sent_to_another_process():
    part = limit_source(Parts({"train": Indexed(10)}), {"train": 4}).parts()["train"]
    assert len(pickle.loads(pickle.dumps(part))) == 4


@dataclass
class IndexedRows:
    records: int = 3
    schema: Schema | None = field(
        default_factory=lambda: Schema({"n": Feature("int64"), "m": Feature("str")})
    )
    metadata: dict = field(default_factory=lambda: {"n": {"unit": "m"}})
    fingerprint: str | None = "abc"
    keys: list = field(default_factory=lambda: ["a", "b", "c"])
    stored_bytes: int | None = 10
    is_slow_python: bool = True

    def __len__(self):
        return self.records

    def read(self, numbers):
        return Block([{"n": int(n)} for n in numbers], numbers)


@dataclass
class StreamedRows(PartInfo):
    schema: None = None
    metadata: dict = field(default_factory=dict)
    fingerprint: None = None
    is_repeatable: bool = True

    def blocks(self):
        yield Block([{"n": 1}], np.arange(1))
        yield Block([{"n": 2}], np.arange(1, 2))


@dataclass
class RowParts:
    part: object

    def parts(self):
        return {"train": self.part}


def double(block):
    return replace(block, data=[{"n": 2 * row["n"]} for row in block.data])


def test_records_in_any_order_are_changed_when_they_are_read():
    features = {"n": Feature("float32"), "other": Feature("str")}
    part = map_source(RowParts(IndexedRows()), double, name="doubled", features=features).parts()[
        "train"
    ]
    assert isinstance(part, IndexedPart)
    assert len(part) == 3
    assert part.read(np.array([2, 1])).data == [{"n": 4}, {"n": 2}]
    assert part.schema == Schema({"n": Feature("float32"), "m": Feature("str")})
    assert part.fingerprint == "abc, doubled"
    assert part.metadata == {"n": {"unit": "m"}}
    assert (part.keys, part.stored_bytes, part.is_slow_python) == (["a", "b", "c"], 10, True)


def test_streamed_records_are_changed_as_they_come():
    part = map_source(RowParts(StreamedRows()), double, name="doubled").parts()["train"]
    assert isinstance(part, StreamedPart)
    assert not isinstance(part, IndexedPart)
    for _ in range(2):
        assert [block.data for block in part.blocks()] == [[{"n": 2}], [{"n": 4}]]
    assert (part.schema, part.fingerprint) == (None, None)


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_whether_a_mapped_stream_can_be_read_again_is_handed_on(is_repeatable):
    given = StreamedRows(is_repeatable=is_repeatable)
    assert (
        map_source(RowParts(given), double, name="x").parts()["train"].is_repeatable
        is is_repeatable
    )


def test_a_changed_part_can_be_sent_to_another_process():
    part = map_source(RowParts(IndexedRows()), double, name="doubled").parts()["train"]
    assert pickle.loads(pickle.dumps(part)).read(np.array([1])).data == [{"n": 2}]


def as_list(column):
    if isinstance(column, np.ndarray):
        return column.tolist()
    return column if isinstance(column, list) else column.to_list()


COLUMNS = {
    "numbers": np.array([10, 20, 30, 40]),
    "matrix": np.arange(8.0).reshape(4, 2),
    "texts": BytesColumn.from_values(["a", "", "ccc", "d"]),
    "pairs of texts": BytesColumn(
        b"abcdefgh", np.array([[i, 1] for i in range(8)]), is_text=True, shape=(4, 2)
    ),
    "ragged": Ragged.from_rows([[1], [], [2, 3], [4, 5, 6]]),
    "nested": Ragged.from_rows([[[1], [2, 3]], [], [[]], [[4]]], levels=2),
    "ragged texts": Ragged.from_rows([["a"], ["b", "c"], [], ["d"]]),
    "masked": Masked(np.array([1, 0, 3, 4]), np.array([True, False, True, True])),
    "list": [{"x": 1}, None, "c", 4],
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("numbers", [[0, 1, 2, 3], [1, 2], [3, 0], [2, 2, 1], []])
def test_rows_are_those_of_the_numbers_in_their_order(name, numbers):
    column = COLUMNS[name]
    wanted = [as_list(column)[number] for number in numbers]
    numbers = np.array(numbers, np.int64)
    assert as_list(take_rows(column, numbers)) == wanted
    assert as_list(take_rows(column, numbers, as_slice(numbers))) == wanted


def test_a_run_of_rows_is_a_view():
    column = np.arange(10)
    numbers = np.arange(3, 7)
    taken = take_rows(column, numbers, as_slice(numbers))
    assert np.shares_memory(taken, column)


def test_texts_are_not_copied():
    column = BytesColumn.from_values(["a", "b", "c"])
    assert take_rows(column, np.array([2, 0])).buffer is column.buffer


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([4, 5, 6], slice(4, 7)),
        ([4], slice(4, 5)),
        ([], slice(0, 0)),
        ([4, 6, 5], None),
        ([4, 4, 6], None),
        ([3, 2, 1], None),
        ([-1, 0], None),
    ],
)
def test_only_numbers_one_after_the_other_are_a_slice(numbers, expected):
    assert as_slice(np.array(numbers, np.int64)) == expected


def test_sparse_rows_are_found_whatever_the_order_of_their_values():
    indices = np.array([[2, 1], [0, 3], [2, 0], [0, 1]])
    sparse = Sparse(indices, np.array([1.0, 2.0, 3.0, 4.0]), (3, 4))
    taken = take_rows(SparseRows(sparse), np.array([2, 1, 0, 2]))
    assert taken.to_dense().tolist() == sparse.to_dense()[[2, 1, 0, 2]].tolist()
    assert take_rows(sparse, np.array([1])).to_dense().tolist() == [[0, 0, 0, 0]]


def test_sparse_rows_beyond_the_shape_are_refused():
    with pytest.raises(ValueError, match="expected indices within"):
        SparseRows(Sparse(np.array([[5, 0]]), np.array([1.0]), (3, 4)))


def take_snapshots(rows, limit=100):
    items = []
    python.take_snapshots(iter(rows), items, limit)
    return items


def reuse(make, change, count=3):
    """The same object again and again, changed each time."""
    value = make()
    for i in range(count):
        change(value, i)
        yield value


@dataclass
class Point:
    x: int
    tags: list


@dataclass(slots=True)
class SlottedPoint:
    tags: list


class Pair(NamedTuple):
    tags: list


CASES = {
    "dataclass with slots": (lambda: SlottedPoint([]), lambda row, i: row.tags.append(i)),
    "named tuple": (lambda: Pair([]), lambda row, i: row.tags.append(i)),
    "dict": (lambda: {"x": 0}, lambda row, i: row.update(x=i)),
    "array": (lambda: {"x": np.zeros(2)}, lambda row, i: row["x"].fill(i)),
    "list": (lambda: {"x": []}, lambda row, i: row["x"].append(i)),
    "nested lists": (lambda: {"x": [[0]]}, lambda row, i: row["x"][0].append(i)),
    "nested dicts": (lambda: {"x": {"y": 0}}, lambda row, i: row["x"].update(y=i)),
    "bytearray": (lambda: {"x": bytearray(b"a")}, lambda row, i: row["x"].append(i)),
    "pair": (lambda: ("key", {"x": 0}), lambda row, i: row[1].update(x=i)),
    "ordered dict": (lambda: OrderedDict(x=[0]), lambda row, i: row["x"].append(i)),
    "dataclass": (lambda: Point(0, []), lambda row, i: row.tags.append(i)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_row_stays_as_it_was(case):
    make, change = CASES[case]
    found = take_snapshots(reuse(make, change))
    one_by_one = [repr(row) for row in reuse(make, change)]
    found = [dict(row) if case == "ordered dict" else row for row in found]
    if case == "ordered dict":
        one_by_one = [repr(dict(row)) for row in reuse(make, change)]
    elif case == "bytearray":
        one_by_one = [repr({"x": bytes(row["x"])}) for row in reuse(make, change)]
    assert [repr(row) for row in found] == one_by_one
    assert len(set(one_by_one)) == 3


def test_what_cannot_change_is_not_copied():
    text = "a text that is not interned".upper()
    row = {"a": text, "b": np.float32(1), "c": MappingProxyType({"d": text})}
    (found,) = take_snapshots([row])
    assert found["a"] is text
    assert found["b"] is row["b"]
    assert found["c"]["d"] is text


def test_what_holds_itself_is_left_to_others():
    row = {}
    row["x"] = row
    assert take_snapshots([row])[0] is row


def test_arrays_of_other_packages_are_copied():
    numbers = array.array("d", [0.0])

    def change(row, i):
        row["x"][0] = i

    found = take_snapshots(reuse(lambda: {"x": numbers}, change))
    assert [row["x"].tolist() for row in found] == [[0.0], [1.0], [2.0]]
    lists = np.empty(1, object)
    lists[0] = []
    found = take_snapshots(reuse(lambda: {"x": lists}, lambda row, i: row["x"][0].append(i)))
    assert [row["x"] for row in found] == [[[0]], [[0, 1]], [[0, 1, 2]]]


def test_what_is_no_row_passes():
    thing = object()
    assert (take_snapshots([None, 5, thing])) == [None, 5, thing]


def test_what_nobody_else_holds_is_not_copied():
    ids = []

    def fresh():
        for i in range(3):
            row = {"x": [i], "y": {"z": i}}
            ids.append((id(row), id(row["x"])))
            kept, row = row, None
            yield kept

    def inline():
        yield from ({"x": [i]} for i in range(3))

    assert take_snapshots(fresh()) == [{"x": [i], "y": {"z": i}} for i in range(3)]
    assert take_snapshots(inline()) == [{"x": [0]}, {"x": [1]}, {"x": [2]}]


def test_a_view_of_memory_that_is_used_again_is_copied():
    buffer = np.zeros(2)

    def views():
        for i in range(3):
            buffer[:] = i
            yield {"x": buffer[:]}

    assert [row["x"].tolist() for row in take_snapshots(views())] == [[0, 0], [1, 1], [2, 2]]


def test_items_that_came_before_an_error_are_there():
    def broken():
        yield {"x": 1}
        raise RuntimeError("gone")

    items = []
    with pytest.raises(RuntimeError, match="gone"):
        python.take_snapshots(broken(), items, 10)
    assert items == [{"x": 1}]


def test_only_as_many_are_taken_as_asked_for():
    rows = iter([{"x": i} for i in range(5)])
    assert len(take_snapshots(rows, 3)) == 3
    assert next(rows) == {"x": 3}
