"""Records kept in memory."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum._load.cache import RecordCache, copy_column, join_columns
from datum._load.collate import as_objects
from datum.columns import BytesColumn, Ragged, Sparse
from datum.errors import Damage

COUNT = 50


def columns_of(numbers: list[int]) -> dict[str, Any]:
    """One column of each kind, whose rows tell the number."""
    places = np.array([[row, number % 3] for row, number in enumerate(numbers)]).reshape(-1, 2)
    words = Ragged.from_rows([[f"w{number}"] * (number % 3) for number in numbers])
    if not len(words.values):
        words = Ragged(BytesColumn(b"", np.empty((0, 2), np.int64), is_text=True), words.row_splits)
    return {
        "x": np.array(numbers),
        "text": as_objects([f"t{number}" for number in numbers]),
        "image": as_objects([np.full((number % 2 + 1, 2), number) for number in numbers]),
        "tokens": Ragged.from_rows([[number] * (number % 4) for number in numbers], dtype=np.int64),
        "words": words,
        "bag": Sparse(places, np.array(numbers, np.float64), (len(numbers), 3)),
    }


def as_lists(columns: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [image.tolist() for image in column]
        if name == "image"
        else (column.tolist() if isinstance(column, np.ndarray) else column.to_list())
        for name, column in columns.items()
    }


def add(cache: RecordCache, numbers: list[int]) -> None:
    cache.add(np.array(numbers, np.int64), columns_of(numbers))


def gathered(cache: RecordCache, numbers: list[int]) -> dict[str, Any]:
    places = cache.find(np.array(numbers, np.int64))
    assert (places > 0).all()
    return as_lists(cache.gather(places))


def test_records_come_back_in_any_order() -> None:
    cache = RecordCache(COUNT)
    add(cache, [3, 1, 7])
    add(cache, [2])
    assert gathered(cache, [2, 7, 7, 3]) == as_lists(columns_of([2, 7, 7, 3]))
    assert len(cache) == 4


numbers_lists = st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=8)


@given(st.lists(st.tuples(numbers_lists, st.booleans()), min_size=1, max_size=20), st.randoms())
def test_any_history_of_adding_and_asking_gives_what_was_added(history: Any, chance: Any) -> None:
    cache = RecordCache(COUNT)
    known: set[int] = set()
    for numbers, asks in history:
        add(cache, numbers)
        known |= set(numbers)
        if asks:
            wanted = chance.choices(sorted(known), k=5)
            assert gathered(cache, wanted) == as_lists(columns_of(wanted))
    assert len(cache) == len(known)
    places = cache.find(np.arange(COUNT))
    assert set(np.flatnonzero(places > 0).tolist()) == known


def test_only_what_was_added_is_known() -> None:
    cache = RecordCache(COUNT)
    add(cache, [3])
    assert (cache.find(np.array([3, 4])) > 0).tolist() == [True, False]


def test_lost_records_are_remembered() -> None:
    cache = RecordCache(COUNT)
    damage = [Damage("file", 1, 2, n, "image") for n in (5, 6)]
    cache.add_lost(np.array([5, 6]), damage)
    cache.add_lost(np.array([6]), [Damage("other", 1, 2, 6, "image")])
    places = cache.find(np.array([6, 5]))
    assert (places < 0).all()
    assert cache.damage_at(places) == damage[::-1]


def test_few_parts_are_left_however_records_came() -> None:
    cache = RecordCache(10_000)
    for number in range(1000):
        cache.add(np.array([number]), {"x": np.array([number])})
        cache.gather(cache.find(np.array([0, number])))
    assert len(cache._tiers[0]) <= 11
    assert cache.gather(cache.find(np.arange(1000)))["x"].tolist() == list(range(1000))


def test_an_interrupt_while_records_are_joined_loses_none(monkeypatch: Any) -> None:
    cache = RecordCache(COUNT)
    add(cache, [1, 2])
    gathered(cache, [1])
    add(cache, [3])
    add(cache, [4, 5])
    calls = iter(range(100))

    def interrupted(columns: list[Any]) -> Any:
        if next(calls) == 8:  # in the midst of the second join
            raise KeyboardInterrupt
        return join_columns(columns)

    monkeypatch.setattr("datum._load.cache.join_columns", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gathered(cache, [3])
    add(cache, [6])
    assert gathered(cache, [6, 3, 1, 5]) == as_lists(columns_of([6, 3, 1, 5]))
    assert len(cache) == 6


def test_what_is_gathered_can_be_changed() -> None:
    cache = RecordCache(COUNT)
    add(cache, [1, 2])
    found = cache.gather(cache.find(np.array([1, 2])))
    found["x"][:] = 0
    found["tokens"].values[:] = 0
    assert gathered(cache, [1, 2]) == as_lists(columns_of([1, 2]))


def test_a_cache_stays_with_its_process() -> None:
    cache = RecordCache(COUNT)
    add(cache, [1])
    assert len(pickle.loads(pickle.dumps(cache))) == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_a_cache_of_its_own_even_if_a_lock_was_held() -> None:
    cache = RecordCache(COUNT)
    add(cache, [1])
    with cache._lock:
        child = os.fork()
        if child == 0:
            os._exit(7 if not cache.find(np.array([1])).any() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_columns_are_joined_one_after_the_other() -> None:
    parts = [columns_of([1, 2]), columns_of([3]), columns_of([4, 5, 6])]
    for name in parts[0]:
        joined = join_columns([part[name] for part in parts])
        assert as_lists({name: joined}) == as_lists({name: columns_of([1, 2, 3, 4, 5, 6])[name]})
    nested = Ragged(Ragged(np.array([1, 2]), np.array([0, 1, 2])), np.array([0, 2]))
    assert [row.to_list() for row in join_columns([nested, nested])] == [[[1], [2]]] * 2


def test_copies_share_no_memory_with_the_records() -> None:
    buffer = b"junk" * 100 + b"ab"
    words = BytesColumn(buffer, np.array([[400, 1], [401, 1]]), is_text=True)
    ragged = Ragged(words, np.array([0, 1, 2]))
    copied = copy_column(ragged, np.array([1, 0]))
    assert copied.to_list() == [["b"], ["a"]]
    assert len(memoryview(copied.values.buffer)) == 2
    image = np.ones(3)
    objects = as_objects([image, None])
    assert not np.shares_memory(copy_column(objects, np.arange(2))[0], image)
