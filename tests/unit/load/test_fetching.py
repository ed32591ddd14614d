"""Columns of batches, read or kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from datum._load.cache import RecordCache
from datum.images import decode
from datum.schema import Feature
from tests.unit.images.samples import encoded, pixels
from tests.unit.load.memory_source import MemorySource, finish, load, plan

IMAGE = Feature("uint8", (None, None, 3), encoding="image", optional=True)
SCHEMA = {
    "x": Feature("int64"),
    "v": Feature("float32", (2,)),
    "words": Feature("str", (None,)),
    "image": IMAGE,
    "grid": Feature("float32", (None, None), encoding="raw"),
}


def image_of(number: int) -> bytes | None:
    name = "JPEG" if number % 2 else "PNG"
    return None if number == 7 else encoded(pixels(8 + number % 3, 8), name)


def make_source(**settings: Any) -> MemorySource:
    rows = [
        {
            "x": n,
            "v": [n, n],
            "words": [f"w{n}"] * (n % 3),
            "image": image_of(n) if n != 9 else b"no image",
            "grid": np.full((1, n % 2 + 1), n, np.float32),
        }
        for n in range(12)
    ]
    return MemorySource(rows, SCHEMA, **settings)


def check(batch: dict[str, Any], numbers: list[int]) -> None:
    assert batch["x"].tolist() == numbers
    assert batch["v"][:, 0].tolist() == numbers
    assert batch["words"].to_list() == [[f"w{n}"] * (n % 3) for n in numbers]
    assert [grid.max() for grid in batch["grid"]] == numbers
    for image, n in zip(batch["image"], numbers, strict=True):
        data = image_of(n)
        if data is not None:
            np.testing.assert_array_equal(image, decode(data, IMAGE))
    assert batch["image_present"].tolist() == [n != 7 for n in numbers]


@pytest.mark.parametrize("change", [None, lambda record: record])
def test_later_epochs_read_and_decode_nothing(change: Any) -> None:
    source, cache = make_source(), RecordCache(12)
    first, second = load(source, [0, 1, 2], [7, 4, 3], cache=cache, map=change)
    check(first, [0, 1, 2])
    check(second, [7, 4, 3])
    read = len(source.submitted)
    source.payloads = [b""] * 12
    for numbers in ([4, 0, 7], [1], [3, 3, 2, 1], [0, 3]):
        (batch,) = load(source, numbers, cache=cache, map=change)
        check(batch, numbers)
    assert len(source.submitted) == read


def test_only_what_is_missing_is_read() -> None:
    source, cache = make_source(), RecordCache(12)
    load(source, [0, 1, 2], cache=cache)
    (batch,) = load(source, [5, 1, 7, 0, 6], cache=cache)
    check(batch, [5, 1, 7, 0, 6])
    assert source.submitted[1:] == [[5, 7, 6]]
    (batch,) = load(source, [6, 5, 2], cache=cache)
    check(batch, [6, 5, 2])
    assert len(source.submitted) == 2


def test_what_a_function_changes_in_place_is_not_kept() -> None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        record["v"][:] = -1
        record["image"][:] = 0
        record["grid"][:] = 0
        return record

    source, cache = make_source(), RecordCache(12)
    for numbers in ([1, 4], [4, 1], [4, 2], [2]):
        (batch,) = load(source, numbers, cache=cache, map=change)
        assert not any(image.any() for image in batch["image"])
        assert (batch["v"] == -1).all()
    (batch,) = load(source, [4, 2, 1], cache=cache)
    check(batch, [4, 2, 1])


def test_what_is_done_to_a_batch_is_not_kept() -> None:
    source, cache = make_source(), RecordCache(12)
    for numbers in ([1, 4], [1], [4, 3], [3], [4, 1]):
        (batch,) = load(source, numbers, cache=cache)
        check(batch, numbers)
        for image in batch["image"]:
            image[:] = 0
        for grid in batch["grid"]:
            grid[:] = 0
        batch["v"][:] = 0


def test_lost_records_stay_lost_without_being_read_again() -> None:
    source, cache = make_source(lost=(3,)), RecordCache(12)
    for _ in range(2):
        plans = [plan([0, 3, 1, 9, 2]), plan([9, 3])]
        first, second = finish(source, plans, cache=cache, on_error="skip", threads=0)
        check(first.batch, [0, 1, 2])
        kinds = [(damage.record, damage.kind) for damage in first.damage]
        assert kinds == [(3, "payload checksum"), (9, "image")]
        assert second.records == 0
        assert [damage.record for damage in second.damage] == [9, 3]
    assert [numbers for numbers in source.submitted if numbers] == [[0, 3, 1, 9, 2], [9, 3]]


def test_records_that_fill_up_are_kept_once() -> None:
    source, cache = make_source(), RecordCache(12)
    (found,) = finish(source, [plan([1, 2, 1, 1], real=2)], cache=cache, remainder="pad")
    check(found.batch, [1, 2, 1, 1])
    assert len(cache) == 2


def test_an_empty_batch_can_be_asked_of_an_empty_cache() -> None:
    (batch,) = load(make_source(), [], cache=RecordCache(12))
    assert len(batch["x"]) == len(batch["image"]) == 0


def test_threads_can_share_a_cache() -> None:
    source, cache = make_source(), RecordCache(12)
    some = [0, 1, 2, 3, 4, 5]
    for batch in load(source, *([some] * 20), cache=cache, threads=4):
        check(batch, some)
    assert len(cache) == 6
