import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SourceError, SplitError
from datum.schema import Feature, Schema
from datum.sources import Block, IndexedPart, PartInfo, Reject, StreamedPart
from datum.sources.wrap import limit_source


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
    with pytest.raises(SourceError, match="split 'val': expected 1,234 records, got 3\nhint: ask"):
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
