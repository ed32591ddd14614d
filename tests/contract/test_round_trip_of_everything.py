"""Rows of any mix of values, in any blocks: they come back bit by bit, or are refused.

Floats come back as float32 where that is asked for and can serve them.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from datum import Feature, Schema, SchemaError, Sparse
from datum.format import EncodedBlock, Framed, RowEncoder, encode, parse, reencode, stores_alike
from datum.schema import EXACT, FloatRule, SchemaGuess, infer_schema, plain_row
from tests.contract.any_values import expected, found, rows

RULES = st.sampled_from([EXACT, FloatRule()])


def split(made: list[Any], cuts: list[int]) -> list[list[Any]]:
    bounds = [0, *sorted(cut % (len(made) + 1) for cut in cuts), len(made)]
    return [made[start:stop] for start, stop in itertools.pairwise(bounds)]


def write(blocks: list[list[Any]], rule: FloatRule = EXACT) -> tuple[Schema, list[EncodedBlock]]:
    encoder = RowEncoder(rule=rule, keeps_exact=True, threads=1)
    written = [encoder.encode(block) for block in blocks]
    return encoder.schema, written


def finish(block: EncodedBlock, schema: Schema) -> Framed:
    if stores_alike(block.schema, schema):
        return block.framed
    exact = None if block.exact is None else (block.exact.framed.records(), block.exact.schema)
    return reencode(block.framed.records(), block.schema, schema, exact=exact, threads=1)


def write_and_finish(
    blocks: list[list[Any]], rule: FloatRule = EXACT
) -> tuple[Schema, list[Framed]]:
    schema, written = write(blocks, rule)
    return schema, [finish(block, schema) for block in written]


def has_rounded_integers(value: Any) -> bool:
    """Whether there are integers that a float would round."""
    if isinstance(value, dict):
        return any(map(has_rounded_integers, plain_row(value).values()))
    if isinstance(value, (list, tuple)):
        return any(map(has_rounded_integers, value))
    if isinstance(value, Sparse):
        value = value.values
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "iu" and has_rounded_integers(value.reshape(-1).tolist())
    return isinstance(value, int) and value != int(float(value))


@given(rows(), st.lists(st.integers(0, 6), max_size=3), RULES)
def test_rows_come_back_bit_by_bit_however_they_are_parted(made, cuts, rule):
    blocks = split(made, cuts)
    try:
        wanted = infer_schema(made, floats=rule.floats)
    except SchemaError:
        event("refused")
        with pytest.raises(SchemaError, match="expected .*"):
            write_and_finish(blocks, rule)
        return
    try:
        schema, framed = write_and_finish(blocks, rule)
    except SchemaError:
        event("refused when written")
        assert "\\ud800" in repr(made) or has_rounded_integers(made)
        return
    event("written")
    assert schema == wanted
    numbers = itertools.count()
    for one in framed:
        columns = parse(one, schema, threads=1)
        for i in range(len(one)):
            row = plain_row(made[next(numbers)])
            for name, feature in schema.items():
                if row.get(name) is not None:
                    assert found(columns[name], i) == expected(row[name], feature), name
                elif feature.encoding != "sparse":  # which is as good as one without values
                    assert found(columns[name], i) is None
    assert next(numbers) == len(made)


@given(rows(), st.lists(st.integers(0, 6), max_size=3), RULES)
def test_records_written_again_are_those_written_at_once(made, cuts, rule):
    try:
        schema, framed = write_and_finish(split(made, cuts), rule)
    except SchemaError:
        return
    at_once = encode(made, schema, threads=1)
    assert b"".join(one.to_bytes() for one in framed) == at_once.to_bytes()


@given(rows())
def test_lists_of_values_are_written_like_rows(made):
    names = list(dict.fromkeys(name for row in made for name in row))
    columns = {name: [row.get(name) for row in made] for name in names}
    try:
        wanted = RowEncoder(threads=1).encode(made)
    except SchemaError:
        with pytest.raises(SchemaError):
            RowEncoder(threads=1).encode(columns)
        return
    if names:
        block = RowEncoder(threads=1).encode(columns)
        assert dict(block.schema) == dict(wanted.schema)
        assert block.framed.to_bytes() == wanted.framed.to_bytes()
        assert block.statistics.records == wanted.statistics.records
        assert dict(block.statistics.features) == dict(wanted.statistics.features)


@given(rows(), st.integers(0, 6))
def test_what_was_parsed_is_written_again_without_a_schema(made, at):
    try:
        schema, (block,) = write([made])
    except SchemaError:
        return
    columns = parse(block.framed, schema, threads=1)
    if not columns:
        return
    encoder = RowEncoder(rule=EXACT, threads=1)
    at = min(at, len(made))
    parts = [
        {name: column[part] for name, column in columns.items()}
        for part in (slice(0, at), slice(at, len(made)))
    ]
    written = [encoder.encode(part) for part in parts]
    framed = [finish(part, encoder.schema) for part in written]
    again = [parse(one, encoder.schema, threads=1) for one in framed]
    for name, column in columns.items():
        wanted = [found(column, i) for i in range(len(made))]
        got = [
            found(part[name], i)
            for part, one in zip(again, framed, strict=True)
            for i in range(len(one))
        ]
        assert got == wanted, name


@given(rows(), st.lists(st.integers(0, 6), max_size=3))
def test_guesses_merge_to_the_same_in_any_order(made, cuts):
    def guess_of(part: list[Any]) -> SchemaGuess:
        guess = SchemaGuess()
        guess.add_rows(part)
        return guess

    def merge(order: list[SchemaGuess]) -> dict[str, Feature] | None:
        merged = SchemaGuess()
        try:
            for guess in order:
                merged = merged.merge(SchemaGuess.from_json(guess.to_json()))
        except SchemaError:
            return None
        return dict(merged.to_schema())

    try:
        parts = [guess_of(part) for part in split(made, cuts)]
    except SchemaError:
        return
    found_first = merge(parts)
    assert found_first == merge(parts[::-1])
    if len(parts) > 2:
        try:
            tail = [parts[0], parts[1].merge(parts[2]), *parts[3:]]
        except SchemaError:
            assert found_first is None
        else:
            assert found_first == merge(tail)


@given(rows(), st.integers(0, 6))
def test_a_row_that_is_refused_leaves_the_encoder_as_it_was(made, at):
    clean = RowEncoder(threads=1)
    try:
        wanted = clean.encode(made)
    except SchemaError:
        return
    encoder = RowEncoder(threads=1)
    spoilt = [*made[:at], {"a": {1, 2}}, *made[at:]]
    with pytest.raises(SchemaError) as caught:
        encoder.encode(spoilt)
    assert caught.value.record == min(at, len(made))
    block = encoder.encode(made)
    assert block.framed.to_bytes() == wanted.framed.to_bytes()
    assert block.schema == wanted.schema
    assert block.statistics == wanted.statistics


def _explode() -> None:
    raise AssertionError("unpickled")


class Bomb:
    def __reduce__(self) -> Any:
        return _explode, ()


@pytest.mark.parametrize(
    "value",
    [
        Bomb(),
        [Bomb()],
        np.array([Bomb()], object),
        np.array(Bomb(), object),
    ],
    ids=["object", "list", "array", "scalar array"],
)
def test_objects_are_refused_and_never_pickled(value):
    with pytest.raises(SchemaError, match="record 1, feature 'x': expected .*, got .*Bomb"):
        RowEncoder().encode([{"x": 1}, {"x": value}])
    with pytest.raises(SchemaError, match="record 0, feature 'x': expected .*, got .*Bomb"):
        RowEncoder().encode({"x": [value]})


def test_an_object_array_is_what_it_holds():
    made = [{"x": np.array([1, 2], object)}, {"x": np.array([[1, 2], [3]], object)[1]}]
    schema, (block,) = write([made])
    assert schema == Schema({"x": Feature("int64", (None,))})
    assert parse(block.framed, schema)["x"].to_list() == [[1, 2], [3]]


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (
            [2**64],
            "record 0, feature 'x': expected an integer of 64 bits, got 18446744073709551616",
        ),
        ([1, -(2**63) - 1], "record 1, feature 'x': expected an integer of 64 bits"),
        ([-1, 2**63], "record 1, feature 'x': expected integers from 0 on"),
        (["a", "\ud800"], "record 1, feature 'x': expected text that UTF-8 can encode"),
        ([0.5, 2**53 + 1], "record 1, feature 'x': expected float64, got 9007199254740993"),
        ([2**53 + 1, 0.5], "record 0, feature 'x': expected float64, got 9007199254740993"),
        ([1, "a"], "record 1, feature 'x': expected int64, got str"),
    ],
)
def test_what_no_type_holds_is_refused_and_named(made, problem):
    with pytest.raises(SchemaError, match=problem) as caught:
        RowEncoder().encode([{"x": value} for value in made])
    assert caught.value.record == int(problem[len("record ")])
    assert caught.value.feature == "x"
