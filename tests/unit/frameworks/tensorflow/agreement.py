"""Schemas of all kinds with rows that fit them, and batches of the graph beside native ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from datum import Feature, Schema
from datum._frameworks.tensorflow.parse import GraphParser
from datum._load.options import present_name
from datum.format import parse
from datum.schema.feature import FLOATS_ON_WIRE, INTEGERS, TIMES
from tests.contract.oracle import rows_of
from tests.contract.strategies import KEYS, NUMBERS, arrays, features, values

_INNER = st.lists(st.integers(1, 3), max_size=2).map(tuple)
_NOT_LISTED = ("float64", "complex64", "complex128")


@st.composite
def odd_features(draw: st.DrawFn) -> Feature:
    """Of the kinds that `features` of the contract does not make."""
    form = draw(st.sampled_from(["default", "time", "nested raw", "sparse raw", "shaped", "image"]))
    optional = draw(st.booleans())
    inner = draw(_INNER)
    if form == "default":
        return draw(_with_default(inner))
    if form == "time":
        shape = draw(st.sampled_from([inner, (None, *inner), (None, None)]))
        encoding = draw(st.sampled_from(["values", "raw"]))
        dtype = draw(st.sampled_from(TIMES))
        return Feature(dtype, shape, encoding=encoding, optional=optional)
    dtype = draw(st.sampled_from(_NOT_LISTED))
    if form == "nested raw":
        return Feature(dtype, (None, None, *inner), encoding="values", optional=optional)
    if form == "sparse raw":
        return Feature(dtype, inner or (4,), encoding="sparse", optional=optional)
    if form == "image":
        return Feature("uint8", (None, None, 3), encoding="image", optional=optional)
    shapes = [(2, None), (None, None, 2), (None, 2, None, 1), (2, None, 0), (0, None)]
    dtype = draw(st.sampled_from(NUMBERS))
    return Feature(dtype, draw(st.sampled_from(shapes)), encoding="raw", optional=optional)


@st.composite
def _with_default(draw: st.DrawFn, inner: tuple[int, ...]) -> Feature:
    if draw(st.integers(0, 4)) == 0:
        return draw(
            st.sampled_from([Feature("str", default="ö"), Feature("bytes", default=b"\xff")])
        )
    encoding = draw(st.sampled_from(["values", "raw"]))
    dtypes = [*INTEGERS, *FLOATS_ON_WIRE, *(["float64"] if encoding == "raw" else [])]
    dtype = draw(st.sampled_from(dtypes))
    is_ragged = draw(st.booleans())
    first = (draw(st.integers(0, 2)),) if is_ragged else ()
    default = draw(arrays(dtype, (*first, *inner)))
    if not np.isfinite(default.astype(np.float64)).all():  # one NaN is as good as another
        default = np.zeros_like(default)
    return Feature(dtype, (*((None,) * is_ragged), *inner), encoding=encoding, default=default)


@st.composite
def tables(draw: st.DrawFn, *, rows: st.SearchStrategy[int]) -> tuple[Schema, list[Any]]:
    """A schema of up to four features, and rows that fit it."""
    names = draw(st.lists(KEYS, min_size=1, max_size=4, unique=True))
    any_feature = st.one_of(features(), odd_features())
    schema = Schema({name: draw(any_feature) for name in names})
    if draw(st.booleans()):
        schema = Schema({name: _moved(name, feature) for name, feature in schema.items()})
    count = draw(rows)
    made = [{name: draw(row_values(schema[name])) for name in schema} for _ in range(count)]
    return schema, made


def _moved(name: str, feature: Feature) -> Feature:
    """The same feature under keys that have nothing to do with its name but being its own."""
    found = Feature.from_json({**feature.to_json(), "keys": []})
    for count in itertools.count(1):
        keys = [f"{name}/elsewhere {number}" for number in range(count)]
        try:
            return Feature.from_json({**found.to_json(), "keys": keys})
        except ValueError:
            continue
    raise AssertionError


@st.composite
def row_values(draw: st.DrawFn, feature: Feature) -> Any:
    if feature.encoding == "image":
        is_absent = feature.optional and draw(st.booleans())
        return None if is_absent else draw(st.binary(max_size=5))
    return draw(values(feature))


def storable(schema: Schema) -> Schema:
    """The schema whose rows hold images as the bytes that they are stored as."""
    return Schema(
        {
            name: Feature("bytes", optional=feature.optional, keys=feature.keys)
            if feature.encoding == "image"
            else feature
            for name, feature in schema.items()
        }
    )


def assert_agrees(schema: Schema, payloads: list[bytes], batch: dict[str, Any]) -> None:
    """What the graph made of records has every bit that the native parser finds in them."""
    native = parse(payloads, schema)
    beside = [present_name(name, feature) for name, feature in schema.items()]
    assert list(batch) == [
        name for pair in zip(schema, beside, strict=True) for name in pair if name is not None
    ]
    for name, feature in schema.items():
        expected = _as_bytes(rows_of(native[name], exact=True))
        found = rows_of(batch[name], exact=True)
        present = present_name(name, feature)
        if present is not None:
            is_there = batch[present].numpy()
            assert is_there.dtype == np.bool_
            absent = [row for row, there in zip(found, is_there, strict=True) if not there]
            assert all(map(is_blank, absent)), name
            found = [row if there else None for row, there in zip(found, is_there, strict=True)]
        assert found == expected, name


def _as_bytes(row: Any) -> Any:
    if isinstance(row, (list, tuple)):
        return type(row)(map(_as_bytes, row))
    return row.encode() if isinstance(row, str) else row


def is_blank(row: Any) -> bool:
    """Whether all that a row of `rows_of` holds is zero."""
    return all(map(is_blank, row)) if isinstance(row, list) else not any(row)


def parse_eagerly(
    schema: Schema, payloads: list[bytes], *, is_trusted: bool = False
) -> dict[str, Any]:
    parser = GraphParser(schema, is_trusted=is_trusted)
    return parser.parse(tf.constant(payloads, tf.string, shape=(len(payloads),)))


def parse_in_dataset(
    schema: Schema, payloads: list[bytes], *, drop_remainder: bool = True
) -> tuple[Any, dict[str, Any]]:
    """The element_spec of a dataset that parses one batch of all records, and that batch."""
    records = tf.data.Dataset.from_tensor_slices(
        tf.constant(payloads, tf.string, shape=(len(payloads),))
    )
    batches = records.batch(len(payloads), drop_remainder=drop_remainder)
    parsed = batches.map(GraphParser(schema).parse, num_parallel_calls=2)
    (batch,) = parsed
    return parsed.element_spec, batch


@st.composite
def damaged(draw: st.DrawFn, schema: Schema, payload: bytes) -> bytes:
    """The record with something under one of its keys changed, in most cases for the worse."""
    is_sequence = any(feature.sequence for feature in schema.values())
    message = (tf.train.SequenceExample if is_sequence else tf.train.Example).FromString(payload)
    context = (message.context if is_sequence else message.features).feature
    lists = message.feature_lists.feature_list if is_sequence else {}
    names = [(key, None) for key in context] + [(key, "list") for key in lists]
    if not names:
        return payload
    key, kind = draw(st.sampled_from(sorted(names, key=str)))
    if kind is None:
        _change_map(draw, context, key)
    elif draw(st.booleans()) or not lists[key].feature:
        del lists[key]
    else:
        _change_list(draw, draw(st.sampled_from(list(lists[key].feature))))
    changed: bytes = message.SerializeToString()
    return changed


def _change_map(draw: st.DrawFn, features: Any, key: str) -> None:
    if draw(st.integers(0, 3)):
        _change_list(draw, features[key])
    else:
        del features[key]


def _change_list(draw: st.DrawFn, feature: Any) -> None:
    change = draw(st.sampled_from(["kindless", "kind", "empty", "longer", "shorter", "other"]))
    member = feature.WhichOneof("kind")
    if change == "kindless" or member is None:
        feature.Clear()
        return
    if change == "kind":
        other = draw(st.sampled_from(["bytes_list", "float_list", "int64_list"]))
        getattr(feature, other).SetInParent()
        return
    found = getattr(feature, member).value
    items = list(found)
    if change == "empty":
        items = []
    elif change == "longer":
        items = [*items, *(items or [b"" if member == "bytes_list" else 0])]
    elif change == "shorter":
        items = items[:-1]
    elif member == "bytes_list":
        items = [draw(st.sampled_from([item + b"\2", item[:-1]])) for item in items]
    elif member == "int64_list":
        items = [draw(st.sampled_from([-1, item, 2**40, 2])) for item in items]
    else:
        items = [draw(st.sampled_from([1e6, 3.4028234663852886e38, 0.1])) for _ in items]
    del found[:]
    found.extend(items)
