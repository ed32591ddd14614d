"""Random schemas and values: what is encoded is what is parsed, from rows and from columns."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from datum import BytesColumn, Feature, Masked, Ragged, Schema, Sparse
from datum.format import RecordFile, encode, parse
from datum.schema import DTYPES, numpy_dtype
from datum.schema.feature import EXACT_LISTS, STRINGS, TIMES

NUMBERS = [dtype for dtype in DTYPES if dtype not in (*STRINGS, *TIMES)]
LISTED = [dtype for dtype in EXACT_LISTS if dtype not in TIMES]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
LENGTHS = st.integers(0, 3)


# Schemas.


@st.composite
def features(draw: st.DrawFn) -> Feature:
    """Every dtype, shape, encoding and flag that a feature can have."""
    encoding = draw(st.sampled_from(["values", "raw", "sparse"]))
    dtype = draw(st.sampled_from(NUMBERS if encoding == "raw" else LISTED))
    inner = draw(st.lists(st.integers(1, 3), max_size=2))
    optional = draw(st.booleans())
    if encoding == "sparse":
        return Feature(dtype, inner or [4], encoding=encoding, optional=optional)
    sequence = draw(st.booleans())
    if sequence:
        ragged = draw(st.integers(1, 2 if encoding == "values" else 1))
    else:
        ragged = draw(st.integers(0, 3))
    shape: list[int | None] = [None] * ragged + inner
    if not ragged and draw(st.booleans()):
        shape = draw(st.permutations([0, *shape]))
    if encoding == "raw" and not sequence and len(shape) > 1 and draw(st.booleans()):
        shape = draw(st.permutations([None, *shape[1:]]))
        if None in shape[:1] and 0 in shape:
            shape = [n or None for n in shape]
    feature = Feature(dtype, shape, encoding=encoding, sequence=sequence, optional=optional)
    return _with_default(draw, feature)


def _with_default(draw: st.DrawFn, feature: Feature) -> Feature:
    can_have_one = not (
        feature.sequence
        or feature.dtype.startswith("complex")
        or (feature.is_string and feature.shape)
        or None in feature.shape[1:]
    )
    if not can_have_one or draw(st.integers(0, 3)):
        return feature
    return replace(feature, optional=True, default=draw(values(feature)))


def schemas() -> st.SearchStrategy[Schema]:
    return st.lists(features(), min_size=1, max_size=4).map(
        lambda found: Schema(dict(zip("abcd", found, strict=False)))
    )


# Values in one form: lists for the outer ragged dimensions, arrays or lists of strings within.


def values(feature: Feature) -> st.SearchStrategy[Any]:
    if feature.encoding == "sparse":
        return _sparse_rows(feature)
    if feature.encoding == "raw" and None in feature.shape[1:]:
        shape = st.tuples(*(LENGTHS if n is None else st.just(n) for n in feature.shape))
        return shape.flatmap(lambda lengths: _arrays(feature.dtype, lengths))
    return _nested(feature.dtype, feature.shape)


def _nested(dtype: str, shape: tuple[int | None, ...]) -> st.SearchStrategy[Any]:
    if shape[:2] == (None, None):
        return st.lists(_nested(dtype, shape[1:]), max_size=3)
    if shape[:1] == (None,):
        return LENGTHS.flatmap(lambda length: _arrays(dtype, (length, *shape[1:])))
    return _arrays(dtype, shape)


def _arrays(dtype: str, shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    count = math.prod(shape)
    if dtype in ("bytes", "str"):
        word = TEXT if dtype == "str" else st.binary(max_size=4)
        words = st.lists(word, min_size=count, max_size=count)
        return words.map(lambda found: _nest(found, shape))
    size = count * numpy_dtype(dtype).itemsize
    return st.binary(min_size=size, max_size=size).map(
        lambda bits: _number_array(bits, dtype, shape)
    )


def _nest(flat: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    step = math.prod(shape[1:])
    return [_nest(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def _number_array(bits: bytes, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == "bool":
        return (np.frombuffer(bits, np.uint8) & 1).astype(bool).reshape(shape)
    array = np.frombuffer(bits, numpy_dtype(dtype)).reshape(shape).copy()
    if dtype.startswith("complex"):
        for part in (array.real, array.imag):
            part[np.isnan(part)] = np.nan
    elif "float" in dtype:
        array[np.isnan(array)] = np.nan  # one of many: Python's own cannot tell them apart
    return array


@st.composite
def _sparse_rows(draw: st.DrawFn, feature: Feature) -> tuple[np.ndarray, Any]:
    place = st.tuples(*(st.integers(0, n - 1) for n in feature.shape))
    places = draw(st.lists(place, max_size=4, unique=True))
    indices = np.array(sorted(places), np.int64).reshape(-1, len(feature.shape))
    return indices, draw(_arrays(feature.dtype, (len(places),)))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, list[dict[str, Any]]]:
    """A schema, and rows of it; what an optional feature lacks is None."""
    schema = draw(schemas())
    rows = []
    for _ in range(draw(st.integers(0, 4))):
        row = {}
        for name, feature in schema.items():
            is_absent = feature.optional and draw(st.booleans())
            row[name] = None if is_absent else draw(values(feature))
        rows.append(row)
    return schema, rows


# Forms that users have: rows and columns.


def as_user_gives(value: Any, style: int) -> Any:
    """The same value as arrays, lists, tuples, or arrays in a memory layout of another kind."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(as_user_gives(part, style) for part in value)
    if isinstance(value, list):
        items = [as_user_gives(item, style) for item in value]
        return tuple(items) if style == 2 else items
    if not isinstance(value, np.ndarray) or style == 0 or 0 in value.shape[:-1]:
        return value
    if style == 3:
        return value.astype(value.dtype.newbyteorder(">"))
    if style == 4:
        return np.asfortranarray(np.repeat(value[None], 2, 0))[1]
    if value.dtype.name == "bfloat16":
        value = value.astype(np.float32)
    listed = value.tolist()
    return tuple(listed) if style == 2 and value.ndim else listed


def as_column(feature: Feature, given: list[Any]) -> Any:
    """The column that holds the values, built without the code under test."""
    present = np.array([value is not None for value in given], bool)
    if feature.encoding == "sparse":
        column = _sparse_column(feature, given)
    elif feature.encoding == "raw" and None in feature.shape[1:]:
        column = np.empty(len(given), object)
        for i, value in enumerate(given):
            column[i] = value
    elif feature.ragged_rank:
        rows = [[] if value is None else value for value in given]
        column = _ragged_column(feature, rows, feature.ragged_rank)
    else:
        rows = [_blank(feature) if value is None else value for value in given]
        column = _dense_column(feature, rows, feature.shape)
    return Masked(column, present) if feature.optional else column


def _blank(feature: Feature) -> Any:
    if not feature.is_string:
        return np.zeros(feature.shape, numpy_dtype(feature.dtype))
    string = "" if feature.dtype == "str" else b""
    return _nest([string] * math.prod(feature.shape), feature.shape)


def _dense_column(feature: Feature, items: list[Any], inner: tuple[int | None, ...]) -> Any:
    if feature.is_string:
        flat = items
        for _ in inner:
            flat = [string for item in flat for string in item]
        column, is_text = BytesColumn.from_values(flat), feature.dtype == "str"
        shape = (len(items), *inner)
        return BytesColumn(column.buffer, column.slices, is_text=is_text, shape=shape)
    return np.array(items, numpy_dtype(feature.dtype)).reshape(len(items), *inner)


def _ragged_column(feature: Feature, rows: list[Any], levels: int) -> Ragged:
    splits = np.cumsum([0, *map(len, rows)])
    items = [item for row in rows for item in row]
    if levels > 1:
        return Ragged(_ragged_column(feature, items, levels - 1), splits)
    return Ragged(_dense_column(feature, items, feature.shape[feature.ragged_rank :]), splits)


def _sparse_column(feature: Feature, given: list[Any]) -> Sparse:
    indices = [np.empty((0, len(feature.shape) + 1), np.int64)]
    items: list[Any] = []
    for row, value in enumerate(given):
        if value is not None:
            indices.append(np.insert(value[0], 0, row, axis=1))
            items += list(value[1])
    return Sparse(
        np.concatenate(indices), _dense_column(feature, items, ()), (len(given), *feature.shape)
    )


# Comparing bit by bit.


def exact(value: Any) -> Any:
    """Something that is equal only for values that are the same to the last bit."""
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.tobytes()
    if isinstance(value, (Ragged, list)):
        return [exact(item) for item in value]
    if isinstance(value, BytesColumn):
        return exact(value.to_list())
    if isinstance(value, tuple):
        return tuple(map(exact, value))
    return exact(np.asarray(value)) if isinstance(value, np.generic) else value


def values_of(feature: Feature, column: Any) -> list[Any]:
    if isinstance(column, Masked) and isinstance(column.values, Sparse):
        values = zip(values_of(feature, column.values), column.present, strict=True)
        return [value if is_there else None for value, is_there in values]
    if isinstance(column, Sparse):
        rows = column.indices[:, 0]
        return [
            (column.indices[rows == row, 1:], column.values[rows == row])
            for row in range(len(column))
        ]
    if isinstance(column, Masked):
        return [column[i] for i in range(len(column))]
    if feature.ragged_rank or feature.is_string or None in feature.shape:
        return [column[i] for i in range(len(column))]
    return [np.asarray(column[i]) for i in range(len(column))]


def expected_value(feature: Feature, value: Any) -> Any:
    """What parsing gives for a value that was encoded."""
    if value is None and feature.default is not None:
        default = feature.default
        if feature.is_string:
            return default
        shape = (len(default), *feature.shape[1:]) if None in feature.shape else feature.shape
        return np.array(default, numpy_dtype(feature.dtype)).reshape(shape)
    return value


# The properties.


@given(tables(), st.integers(0, 4))
def test_rows_come_back_bit_by_bit(table, style):
    schema, rows = table
    given_rows = [
        {name: as_user_gives(value, style) for name, value in row.items()} for row in rows
    ]
    framed = encode(given_rows, schema, threads=1)
    for threads in (1, 4):
        batch = parse(framed, schema, threads=threads)
        assert list(batch) == list(schema)
        for name, feature in schema.items():
            expected = [expected_value(feature, row[name]) for row in rows]
            assert exact(values_of(feature, batch[name])) == exact(expected)


@given(tables(), st.integers(0, 4))
def test_rows_in_any_form_and_columns_give_the_same_bytes(table, style):
    schema, rows = table
    expected = encode(rows, schema, threads=1).to_bytes()
    given_rows = [
        {name: as_user_gives(value, style) for name, value in row.items() if value is not None}
        for row in rows
    ]
    columns = {name: as_column(schema[name], [row[name] for row in rows]) for name in schema}
    lists = {name: [row[name] for row in rows] for name in schema}
    for threads in (1, 4):
        assert encode(given_rows, schema, threads=threads).to_bytes() == expected
        assert encode(columns, schema, threads=threads).to_bytes() == expected
        assert encode(lists, schema, threads=threads).to_bytes() == expected


@given(tables())
def test_what_was_parsed_is_encoded_to_the_same_bytes(table):
    schema, rows = table
    schema = Schema({name: replace(feature, default=None) for name, feature in schema.items()})
    framed = encode(rows, schema)
    assert encode(parse(framed, schema), schema).to_bytes() == framed.to_bytes()


@given(tables(), st.data())
def test_a_selection_of_columns_is_that_of_all(table, data):
    schema, rows = table
    names = data.draw(st.lists(st.sampled_from(list(schema)), unique=True))
    framed = encode(rows, schema)
    whole, part = parse(framed, schema), parse(framed, schema, columns=names)
    assert list(part) == names
    for name in names:
        feature = schema[name]
        assert exact(values_of(feature, part[name])) == exact(values_of(feature, whole[name]))


@given(tables(), st.data())
def test_any_records_of_a_file_in_any_order(table, data):
    schema, rows = table
    file = RecordFile(encode(rows, schema).to_bytes())
    numbers = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5)) if rows else []
    batch = parse(file.records(numbers), schema)
    for name, feature in schema.items():
        expected = [expected_value(feature, rows[i][name]) for i in numbers]
        assert exact(values_of(feature, batch[name])) == exact(expected)


@given(schemas())
def test_a_schema_survives_json(schema):
    found = Schema.from_json(schema.to_json())
    assert found == schema
    assert found.to_json() == schema.to_json()


@given(st.lists(TEXT, min_size=1, max_size=5, unique=True))
def test_features_may_have_any_name(names):
    schema = Schema({name: Feature("int64") for name in names})
    row = {name: i for i, name in enumerate(names)}
    batch = parse(encode([row], schema), schema)
    assert {name: int(column[0]) for name, column in batch.items()} == row
