"""Functions of the user, given records and batches."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np
import pytest

from datum._load.functions import UserFunction, make_generator, row_taker
from datum.columns import BytesColumn, Ragged, Sparse
from datum.schema import Feature
from tests.unit.load.memory_source import MemorySource, finish, load, plan

SCHEMA = {
    "x": Feature("int32"),
    "v": Feature("float32", (2,)),
    "text": Feature("str"),
    "tokens": Feature("int64", (None,)),
    "words": Feature("str", (None,)),
    "deep": Feature("int64", (None, None)),
    "bag": Feature("float32", (4,), encoding="sparse"),
    "age": Feature("float32", optional=True),
}


@pytest.fixture
def source() -> MemorySource:
    rows = [
        {
            "x": n,
            "v": [n, n + 1],
            "text": f"t{n}",
            "tokens": list(range(n % 3)),
            "words": ["w"] * (n % 2),
            "deep": [[n], [n, n]],
            "bag": Sparse(np.array([[n % 4]]), np.ones(1, np.float32), (4,)),
            "age": None if n % 2 else 1.0,
        }
        for n in range(150)
    ]
    return MemorySource(rows, SCHEMA)


def test_a_record_is_a_dict_of_values_like_a_row_of_the_batch(source: MemorySource) -> None:
    seen: list[dict[str, Any]] = []
    load(source, [5], map=lambda record: seen.append(dict(record)) or record)
    (record,) = seen
    assert list(record) == [*SCHEMA, "age_present"]
    assert record["x"] == 5
    assert isinstance(record["x"], np.int32)
    assert record["v"].tolist() == [5, 6]
    assert record["text"] == "t5"
    assert record["tokens"].tolist() == [0, 1]
    assert record["words"].tolist() == ["w"]
    assert record["deep"].to_list() == [[5], [5, 5]]
    assert record["bag"].to_dense().tolist() == [0, 1, 0, 0]
    assert record["age"] == 0
    assert not record["age_present"]


def test_columns_that_a_function_leaves_alone_stay_what_they_are(source: MemorySource) -> None:
    (plain,) = load(source, [0, 3])  # of which no tokens differ in length
    (batch,) = load(source, [0, 3], map=lambda record: {**record, "new": 1})
    assert list(batch) == [*plain, "new"]
    for name in plain:
        assert type(batch[name]) is type(plain[name])
        assert getattr(batch[name], "dtype", None) == getattr(plain[name], "dtype", None)
    assert batch["tokens"].to_list() == [[], []]


def test_a_column_changed_in_one_record_is_put_together_anew(source: MemorySource) -> None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "x": 0.5} if record["x"] == 3 else record

    (batch,) = load(source, [1, 3], map=change)
    assert batch["x"].tolist() == [1, 0.5]


def test_changes_made_in_place_come_into_the_batch(source: MemorySource) -> None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        record["v"] += 1
        record["tokens"] *= 10
        record["words"][:] = "new"
        record["bag"].values[:] = 7
        record["x"] = record["x"] * 2
        return record

    (batch,) = load(source, [4, 5], map=change)
    assert batch["v"].tolist() == [[5, 6], [6, 7]]
    assert batch["tokens"].to_list() == [[0], [0, 10]]
    assert batch["words"].to_list() == [[], ["new"]]
    assert batch["bag"].to_list() == [[7, 0, 0, 0], [0, 7, 0, 0]]
    assert batch["x"].tolist() == [8, 10]


def test_what_a_function_returns_need_not_be_a_dict(source: MemorySource) -> None:
    (batch,) = load(source, [1, 2], map=lambda record: (record["x"], record["v"]))
    assert isinstance(batch, tuple)
    assert batch[0].tolist() == [1, 2]
    assert load(source, [1, 2], map=lambda record: record["x"])[0].tolist() == [1, 2]


def test_keys_that_differ_are_named(source: MemorySource) -> None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        return {"x": 1, "y": 2} if record["x"] < 3 else {"x": 1, "z": 1}

    with pytest.raises(
        ValueError, match="memory: record 3 at byte 30: expected the same keys"
    ) as e:
        load(source, [1, 3], map=change)
    assert "'y' missing, 'z' too" in str(e.value)


def test_batch_map_gets_the_batch_and_gives_anything(source: MemorySource) -> None:
    assert load(source, [1, 2], batch_map=lambda batch: int(batch["x"].sum())) == [3]


@pytest.mark.parametrize("option", ["map", "batch_map"])
def test_a_function_that_forgets_its_result_is_told(source: MemorySource, option: str) -> None:
    with pytest.raises(ValueError, match=f"expected `{option}` to return what takes the place"):
        load(source, [1], **{option: lambda given: None})


# Random numbers.


def draws(source: MemorySource, *, threads: int, size: int, epoch: int = 0) -> list[float]:
    plans = [
        plan(np.arange(at, min(at + size, 150)), start=at, epoch=epoch)
        for at in range(0, 150, size)
    ]
    found = finish(source, plans, threads=threads, map=lambda record, rng: rng.random(), seed=3)
    return [number for one in found for number in one.batch.tolist()]


def test_random_numbers_are_the_same_for_any_threads_and_batches(source: MemorySource) -> None:
    wanted = draws(source, threads=0, size=150)
    assert len(set(wanted)) == 150
    for threads, size in ((1, 7), (2, 150), (4, 50)):
        assert draws(source, threads=threads, size=size) == wanted
    assert draws(source, threads=1, size=150, epoch=1) != wanted


def test_random_numbers_follow_the_position_not_the_record(source: MemorySource) -> None:
    def draw(record: dict[str, Any], rng: np.random.Generator) -> float:
        return rng.random()

    first, second = finish(source, [plan([1, 2], start=5), plan([9, 1], start=5)], map=draw)
    assert first.batch.tolist() == second.batch.tolist()


def test_a_batch_has_random_numbers_of_its_own(source: MemorySource) -> None:
    def draw(given: Any, *, rng: np.random.Generator) -> float:
        return rng.random()

    plans = [plan([1], start=0), plan([1], start=1), plan([1], start=1, epoch=1)]
    first, second, third = (f.batch for f in finish(source, plans, batch_map=draw))
    assert len({first, second, third}) == 3
    alone = finish(source, plans[1:2], batch_map=draw, threads=0)[0].batch
    assert alone == second
    assert load(source, [1], map=draw)[0][0] != first


def test_generators_are_those_of_numpy_and_can_spawn() -> None:
    rng = make_generator(2**70, 1, 0)
    assert isinstance(rng, np.random.Generator)
    children = rng.bit_generator.seed_seq.spawn(2)
    values = [np.random.Generator(np.random.PCG64(child)).random() for child in children]
    assert len({rng.random(), *values}) == 3
    again = make_generator(2**70, 1, 0)
    again.random()
    assert pickle.loads(pickle.dumps(rng)).random() == again.random()


def test_random_numbers_do_not_change_between_versions() -> None:
    first = make_generator(0, 0, 0, 0).bit_generator.random_raw()
    assert first == 11603369025372926420


def test_random_numbers_are_given_only_to_those_who_take_them() -> None:
    def with_partial(factor: int, given: int, rng: np.random.Generator) -> int:
        return factor * given + 0 * rng.integers(2)

    partial = functools.partial(with_partial, 3)
    assert UserFunction("map", partial, seed=0)(5, epoch=0, position=0) == 15
    assert UserFunction("map", len, seed=0)("abc", epoch=0, position=0) == 3
    assert UserFunction("map", max, seed=0)([1, 2], epoch=0, position=0) == 2  # has no signature


def test_rows_are_taken_from_columns_of_all_kinds() -> None:
    text = Ragged(BytesColumn.from_values(["a", "b"]), np.array([0, 2, 2]))
    assert [row_taker(text)(row).tolist() for row in (0, 1)] == [["a", "b"], []]
    sparse = Sparse(np.array([[0, 1], [2, 0], [2, 2]]), np.array([1, 2, 3]), (3, 3))
    taken = [row_taker(sparse)(row).to_dense().tolist() for row in range(3)]
    assert taken == sparse.to_dense().tolist()
