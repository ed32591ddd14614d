"""Batches put together: their columns, what is lost, what fills up."""

from __future__ import annotations

import numpy as np
import pytest

from datum.errors import CorruptRecordError
from tests.unit.load.memory_source import SCHEMA, MemorySource, finish, load, make_rows, plan


@pytest.fixture
def source() -> MemorySource:
    return MemorySource(make_rows(40), SCHEMA)


def test_columns_are_finished_in_the_order_of_the_schema(source: MemorySource) -> None:
    (batch,) = load(source, [4, 1])
    assert list(batch) == [
        *("x", "text", "raw", "tokens", "words", "age", "age_present", "name", "name_present"),
        *("grid", "grid_present", "bag", "day"),
    ]
    assert batch["x"].tolist() == [4, 1]
    assert batch["text"].tolist() == ["t4", "t1"]
    assert batch["raw"].tolist() == [b"\x04", b"\x01"]
    assert batch["tokens"].to_list() == [[], [0]]
    assert batch["words"].to_list() == [["w"], ["w"]]
    assert batch["age"].tolist() == [2, 0]
    assert batch["age_present"].tolist() == [True, False]
    assert batch["name"].tolist() == ["someone", ""]
    assert batch["bag"].to_dense().argmax(axis=1).tolist() == [4, 1]
    assert batch["day"].dtype == "datetime64[D]"


def test_tensors_of_one_shape_are_stacked_and_others_listed(source: MemorySource) -> None:
    alike, differing = load(source, [4, 4, 1], [4, 6, 1])
    assert alike["grid"].shape == (3, 2, 4)
    assert not alike["grid"][2].any()
    assert [array.shape for array in differing["grid"]] == [(2, 4), (2, 6), (0, 0)]


def test_an_empty_batch_has_columns_of_no_rows(source: MemorySource) -> None:
    (batch,) = load(source, [])
    assert batch["x"].shape == (0,)
    assert len(batch["tokens"]) == len(batch["bag"]) == len(batch["grid"]) == 0


def test_an_empty_batch_after_map_looks_like_those_before(source: MemorySource) -> None:
    _, batch = load(source, [1, 2], [], map=lambda r: {"y": r["x"] * 0.5, "z": (r["tokens"],)})
    assert batch["y"].dtype == np.float64
    assert len(batch["y"]) == len(batch["z"][0]) == 0


@pytest.mark.parametrize("change", [None, lambda record: record])
def test_lost_records_make_a_batch_shorter(change) -> None:
    source = MemorySource(make_rows(20), SCHEMA, lost=(3, 5))
    plans = [plan([1, 3, 4]), plan([5, 3]), plan([6])]
    first, second, third = finish(source, plans, on_error="skip", map=change)
    assert first.batch["x"].tolist() == [1, 4]
    assert (first.records, [d.record for d in first.damage]) == (2, [3])
    assert len(second.batch["x"]) == second.records == 0
    assert [d.record for d in second.damage] == [5, 3]
    assert third.records == 1


def test_with_pad_lost_records_are_replaced_and_masked() -> None:
    source = MemorySource(make_rows(20), SCHEMA, lost=(3,))
    plans = [plan([3, 4, 5, 3], real=3), plan([6, 7, 8, 9])]
    for change in (None, lambda record: record):
        options = {"on_error": "skip", "remainder": "pad", "map": change}
        first, second = finish(source, plans, **options)
        assert first.batch["x"].tolist() == [4, 4, 5, 4]
        assert first.batch["tokens"].to_list() == [[], [], [0], []]
        assert first.batch["batch_mask"].tolist() == [False, True, True, False]
        assert (first.records, len(first.damage)) == (2, 1)
        assert second.batch["batch_mask"].all()


def test_with_pad_a_batch_without_a_sound_record_is_an_error() -> None:
    source = MemorySource(make_rows(5), SCHEMA, lost=(3,))
    with pytest.raises(CorruptRecordError, match="expected a sound record to fill up a batch"):
        finish(source, [plan([3, 3], real=1)], on_error="skip", remainder="pad")


def test_with_pad_the_mask_tells_which_records_fill_up(source: MemorySource) -> None:
    (found,) = finish(source, [plan([1, 2, 0, 0], real=2)], remainder="pad")
    assert found.batch["batch_mask"].tolist() == [True, True, False, False]
    assert found.records == 2


def test_with_pad_map_has_to_return_dicts(source: MemorySource) -> None:
    with pytest.raises(ValueError, match="expected dicts from `map` with remainder='pad'"):
        load(source, [1], remainder="pad", map=lambda record: (record["x"],))
