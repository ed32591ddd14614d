"""Rows as they were when they came."""

import array
from collections import OrderedDict
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest

from datum.sources import python


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
