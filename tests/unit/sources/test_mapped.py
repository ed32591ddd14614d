import pickle
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from datum.schema import Feature, Schema
from datum.sources import Block, IndexedPart, PartInfo, StreamedPart
from datum.sources.wrap import map_source


@dataclass
class Indexed:
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
class Streamed(PartInfo):
    schema: None = None
    metadata: dict = field(default_factory=dict)
    fingerprint: None = None
    is_repeatable: bool = True

    def blocks(self):
        yield Block([{"n": 1}], np.arange(1))
        yield Block([{"n": 2}], np.arange(1, 2))


@dataclass
class Parts:
    part: object

    def parts(self):
        return {"train": self.part}


def double(block):
    return replace(block, data=[{"n": 2 * row["n"]} for row in block.data])


def test_records_in_any_order_are_changed_when_they_are_read():
    features = {"n": Feature("float32"), "other": Feature("str")}
    part = map_source(Parts(Indexed()), double, name="doubled", features=features).parts()["train"]
    assert isinstance(part, IndexedPart)
    assert len(part) == 3
    assert part.read(np.array([2, 1])).data == [{"n": 4}, {"n": 2}]
    assert part.schema == Schema({"n": Feature("float32"), "m": Feature("str")})
    assert part.fingerprint == "abc, doubled"
    assert part.metadata == {"n": {"unit": "m"}}
    assert (part.keys, part.stored_bytes, part.is_slow_python) == (["a", "b", "c"], 10, True)


def test_streamed_records_are_changed_as_they_come():
    part = map_source(Parts(Streamed()), double, name="doubled").parts()["train"]
    assert isinstance(part, StreamedPart)
    assert not isinstance(part, IndexedPart)
    for _ in range(2):
        assert [block.data for block in part.blocks()] == [[{"n": 2}], [{"n": 4}]]
    assert (part.schema, part.fingerprint) == (None, None)


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_whether_a_stream_can_be_read_again_is_handed_on(is_repeatable):
    given = Streamed(is_repeatable=is_repeatable)
    assert (
        map_source(Parts(given), double, name="x").parts()["train"].is_repeatable is is_repeatable
    )


def test_a_changed_part_can_be_sent_to_another_process():
    part = map_source(Parts(Indexed()), double, name="doubled").parts()["train"]
    assert pickle.loads(pickle.dumps(part)).read(np.array([1])).data == [{"n": 2}]
