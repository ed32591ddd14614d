"""The cases that TensorFlow tests its SequenceExample parser with, put to ours."""

from __future__ import annotations

from typing import Any

import pytest

from datum import Feature, SchemaError
from datum.format import parse
from tests.contract.oracle import make_sequence_example, rows_of, tf


def _record(context: dict[str, Any] | None = None, **lists: Any) -> bytes:
    return make_sequence_example(context or {}, lists)


def _ints(*steps: list[int]) -> list[Any]:
    return [("int64", step) for step in steps]


def _floats(*steps: list[float]) -> list[Any]:
    return [("float", step) for step in steps]


def _strings(*steps: list[bytes]) -> list[Any]:
    return [("bytes", step) for step in steps]


def test_context_features_are_those_of_an_example() -> None:
    payload = _record({"c": ("float", [3, 4]), "v": ("float", [3, 4])})
    schema = {
        "v": Feature("float32", (None,)),
        "a": Feature("int64", (1, 3), default=[[1, 2, 3]]),
        "c": Feature("float32", (2,)),
    }
    batch = parse([payload], schema)
    assert batch["v"].to_list() == [[3.0, 4.0]]
    assert (batch["a"].tolist(), batch["c"].tolist()) == ([[[1, 2, 3]]], [[3.0, 4.0]])


def test_lists_of_differing_numbers_of_steps() -> None:
    payload = _record(
        a=_ints([-1, 0, 1], [2, 3, 4], [5, 6, 7], [8, 9, 10]),
        b=_strings([b"r00", b"r01", b"r10", b"r11"]),
        c=_floats([3, 4], [-1, 2]),
    )
    schema = {
        "a": Feature("int64", (None, 1, 3), sequence=True),
        "b": Feature("bytes", (None, 2, 2), sequence=True),
        "c": Feature("float32", (None, 2), sequence=True),
        "d": Feature("float32", (None, 5), sequence=True, optional=True),
    }
    batch = parse([payload], schema)
    assert batch["a"].to_list() == [[[[-1, 0, 1]], [[2, 3, 4]], [[5, 6, 7]], [[8, 9, 10]]]]
    assert batch["b"].to_list() == [[[[b"r00", b"r01"], [b"r10", b"r11"]]]]
    assert batch["c"].to_list() == [[[3.0, 4.0], [-1.0, 2.0]]]
    assert (rows_of(batch["d"]), batch["d"].values.to_list()) == ([None], [[]])


def test_steps_of_differing_lengths() -> None:
    payload = _record(
        a=_ints([3, 4], [1, 0]),
        b=_floats([3, 4], [5], []),
        c=_strings([b"a"], [], [], [b"b", b"c"]),
    )
    nested = {"b": "float32", "c": "bytes", "d": "int64"}
    schema = {
        "a": Feature("int64", (None, 2), sequence=True),
        **{
            name: Feature(dtype, (None, None), sequence=True, optional=True)
            for name, dtype in nested.items()
        },
    }
    batch = parse([payload], schema)
    assert batch["a"].to_list() == [[[3, 4], [1, 0]]]
    assert batch["b"].values.to_list() == [[[3.0, 4.0], [5.0], []]]
    assert batch["c"].values.to_list() == [[[b"a"], [], [], [b"b", b"c"]]]
    assert batch["d"].values.to_list() == [[]]
    assert [batch[name].present.tolist() for name in nested] == [[True], [True], [False]]


def test_a_step_without_kind_is_an_empty_one_where_lengths_differ() -> None:
    payload = _record(a=[("float", [3, 4]), None, ("float", [5])])
    batch = parse([payload], {"a": Feature("float32", (None, None), sequence=True)})
    assert batch["a"].to_list() == [[[3.0, 4.0], [], [5.0]]]
    payload = _record(a=[("float", [3]), None])
    with pytest.raises(SchemaError, match="feature 'a', step 1: expected a value, got none"):
        parse([payload], {"a": Feature("float32", (None,), sequence=True)})


WRONG = {
    "another kind": (_floats([2, 3]), "step 0: expected int64 values, got float values"),
    "another kind later": (
        [*_ints([3, 4], [1, 2]), *_floats([2, 3])],
        "step 2: expected int64 values, got float values",
    ),
    "another number of values": (_ints([2, 3], [2, 3, 4]), "step 1: expected 2 values, got 3"),
    "the right number of values in all": (_ints([2], [2, 3, 4]), "step 0: expected 2 values"),
}


@pytest.mark.parametrize(("steps", "message"), WRONG.values(), ids=WRONG)
def test_a_step_that_does_not_fit_is_named(steps: list[Any], message: str) -> None:
    good = _record(a=_ints([1, 2]))
    with pytest.raises(SchemaError, match=f"record 1, feature 'a', {message}"):
        parse([good, _record(a=steps)], {"a": Feature("int64", (None, 2), sequence=True)})
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.io.parse_single_sequence_example(
            _record(a=steps),
            sequence_features={"a": tf.io.FixedLenSequenceFeature((2,), tf.int64)},
        )


def test_a_list_that_is_missing_is_named() -> None:
    schema = {"a": Feature("int64", (None, 2), sequence=True)}
    for payload in (_record(), _record({"a": ("int64", [1, 2])}), b""):
        with pytest.raises(SchemaError, match="feature 'a': expected a value, got none"):
            parse([payload], schema)


def test_a_list_of_no_steps_is_there() -> None:
    schema = {"a": Feature("int64", (None, 2), sequence=True, optional=True)}
    batch = parse([_record(a=[]), _record()], schema)
    assert batch["a"].present.tolist() == [True, False]
    assert batch["a"].values.to_list() == [[], []]


def test_batches_pad_to_the_most_steps() -> None:
    first = _record(a=_ints([-1, 0, 1], [2, 3, 4]))
    second = _record({"c": ("float", [7])}, a=_ints([21, 2, 11]), b=_ints([5]))
    schema = {
        "c": Feature("float32", default=-1),
        "a": Feature("int64", (None, 1, 3), sequence=True),
        "b": Feature("int64", (None,), sequence=True, optional=True),
    }
    batch = parse([first, second], schema)
    assert batch["c"].tolist() == [-1.0, 7.0]
    padded = [[[[-1, 0, 1]], [[2, 3, 4]]], [[[21, 2, 11]], [[0, 0, 0]]]]
    assert batch["a"].to_padded().tolist() == padded
    assert batch["b"].values.to_padded().tolist() == [[0], [5]]
    assert batch["a"].row_lengths.tolist() == [2, 1]


@pytest.mark.parametrize("copies", [1, 64])
def test_ragged_steps_in_batches_of_any_size(copies: int) -> None:
    payloads = [
        _record({"a": ("float", [3, 4])}, b=_floats([5], [3]), c=_ints([6, 7, 8, 9])),
        _record({"a": ("float", [9])}, b=[], c=_ints([], [1, 2, 3])),
        _record(b=_floats([1], [1, 2], [1, 2, 3])),
        _record({"a": None}, b=[None], c=_ints([3, 3, 3])),
    ] * copies
    schema = {
        "a": Feature("float32", (None,), optional=True),
        "b": Feature("float32", (None, None), sequence=True),
        "c": Feature("int64", (None, None), sequence=True, optional=True),
    }
    batch = parse(payloads, schema)
    assert batch["a"].values.to_list() == [[3.0, 4.0], [9.0], [], []] * copies
    assert (
        batch["b"].to_list()
        == [[[5.0], [3.0]], [], [[1.0], [1.0, 2.0], [1.0, 2.0, 3.0]], [[]]] * copies
    )
    expected = [[[6, 7, 8, 9]], [[], [1, 2, 3]], [], [[3, 3, 3]]]
    assert batch["c"].values.to_list() == expected * copies
    assert batch["c"].present.tolist() == [True, True, False, True] * copies


def test_the_same_name_in_context_and_lists_is_two_features() -> None:
    payload = _record({"a": ("int64", [1])}, a=_ints([2], [3]))
    assert parse([payload], {"a": Feature("int64")})["a"].tolist() == [1]
    listed = Feature("int64", (None,), sequence=True)
    assert parse([payload], {"a": listed})["a"].to_list() == [[2, 3]]
    both = {"a": Feature("int64"), "steps": Feature("int64", (None,), sequence=True, keys=("a",))}
    batch = parse([payload], both)
    assert (batch["a"].tolist(), batch["steps"].to_list()) == ([1], [[2, 3]])


@pytest.mark.parametrize("shape", [(None, 0), (None, 2, 0), (None, None, 0)])
def test_steps_of_no_values_are_refused(shape: tuple[int | None, ...]) -> None:
    with pytest.raises(SchemaError, match="rows of no values"):
        Feature("float32", shape, sequence=True)


def test_raw_steps_are_one_byte_string_each() -> None:
    schema = {"a": Feature("int16", (None, 2), encoding="raw", sequence=True)}
    payload = _record(a=_strings([b"\x01\x00\x02\x00"], [b"\xff\xff\x00\x80"]))
    assert parse([payload], schema)["a"].to_list() == [[[1, 2], [-1, -32768]]]
    for steps in (_strings([b"\x01\x00"]), _strings([b"\0" * 4, b"\0" * 4]), _strings([])):
        with pytest.raises(SchemaError, match="feature 'a', step 0: expected"):
            parse([_record(a=steps)], schema)
