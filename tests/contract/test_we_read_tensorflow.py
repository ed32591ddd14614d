"""What TensorFlow and protobuf write, we read equal; what tf.io refuses, we refuse too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import Feature, Masked, SchemaError
from datum.format import RecordFile, parse
from tests.contract.oracle import (
    assert_reads_as_protobuf,
    make_example,
    make_sequence_example,
    read_protobuf,
    rows_of,
    tf,
    write_tfrecords,
)
from tests.contract.strategies import (
    examples,
    message_lists,
    message_maps,
    stored_values,
)

TYPES = {
    "bytes": ("bytes", tf.string),
    "float": ("float32", tf.float32),
    "int64": ("int64", tf.int64),
}
KINDS = st.sampled_from(list(TYPES))


@examples(100)
@given(message_maps())
def test_examples_of_protobuf_read_equal(maps: list[dict[str, Any]]) -> None:
    payloads = [make_example(context) for context in maps]
    if any(value for context in maps for value in context.values()):
        assert_reads_as_protobuf(payloads, [read_protobuf(payload) for payload in payloads])


@examples(100)
@given(message_maps(), message_lists())
def test_sequence_examples_of_protobuf_read_equal(
    maps: list[dict[str, Any]], lists: list[dict[str, Any]]
) -> None:
    pairs = list(zip(maps, lists, strict=False))
    payloads = [make_sequence_example(*pair) for pair in pairs]
    steps = [step for _, keys in pairs for listed in keys.values() for step in listed]
    if any(steps) or any(value for context, _ in pairs for value in context.values()):
        messages = [read_protobuf(payload, is_sequence=True) for payload in payloads]
        assert_reads_as_protobuf(payloads, messages)


@examples(20)
@given(payloads=st.lists(st.binary(max_size=40), max_size=8))
@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_files_of_tensorflow_read_equal(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], compression: Any
) -> None:
    path = tmp_path_factory.mktemp("theirs") / "records"
    file = RecordFile(write_tfrecords(path, payloads, compression=compression))
    assert file.compression == (compression if path.stat().st_size else None)
    assert list(file) == payloads


# The same feature by tf.io and by us: the same values, or a refusal by both.


def _rows_or_refusal(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (SchemaError, tf.errors.InvalidArgumentError) as error:
        return type(error)


def _assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(ours, type) or isinstance(theirs, type):
        assert (ours, theirs) == (SchemaError, tf.errors.InvalidArgumentError)
    else:
        assert ours == theirs


def _parse_ours(payloads: list[bytes], feature: Feature) -> Any:
    column = parse(payloads, {"a": feature})["a"]
    return column.values if isinstance(column, Masked) else column


def _compare_examples(payloads: list[bytes], feature: Feature, spec: Any) -> None:
    def read_theirs() -> Any:
        serialized = tf.constant(payloads, tf.string, shape=(len(payloads),))
        found = tf.io.parse_example(serialized, {"a": spec})["a"]
        if isinstance(spec, tf.io.VarLenFeature):
            found = tf.RaggedTensor.from_sparse(found)
        return rows_of(found)

    _assert_same(
        _rows_or_refusal(lambda: rows_of(_parse_ours(payloads, feature))),
        _rows_or_refusal(read_theirs),
    )


@st.composite
def _examples_of(draw: st.DrawFn, kind: str) -> list[bytes]:
    records = st.one_of(st.just({}), stored_values(kind).map(lambda value: {"a": value}))
    return [make_example(record) for record in draw(st.lists(records, max_size=4))]


@st.composite
def _records_of_one_length(draw: st.DrawFn, kind: str, count: int) -> list[bytes]:
    """Records most of which fit a fixed length; the rest are anything."""
    item = {"bytes": st.binary(max_size=4), "int64": st.integers(-5, 5)}
    values = st.lists(item.get(kind, st.floats(width=32)), min_size=count, max_size=count)
    fitting = values.map(lambda found: make_example({"a": (kind, found)}))
    others = draw(_examples_of(kind)) if draw(st.integers(0, 3)) == 0 else []
    return draw(st.permutations([*draw(st.lists(fitting, max_size=3)), *others]))


@examples(60)
@given(st.data(), KINDS, st.sampled_from([(), (1,), (2,), (2, 2)]))
def test_fixed_length_features_agree(data: Any, kind: str, shape: tuple[int, ...]) -> None:
    ours, theirs = TYPES[kind]
    payloads = data.draw(_records_of_one_length(kind, int(np.prod(shape, dtype=int))))
    _compare_examples(payloads, Feature(ours, shape), tf.io.FixedLenFeature(shape, theirs))


@examples(60)
@given(st.data(), st.sampled_from(["float", "int64"]), st.sampled_from([(), (2,)]))
def test_fixed_length_features_with_a_default_agree(
    data: Any, kind: str, shape: tuple[int, ...]
) -> None:
    ours, theirs = TYPES[kind]
    payloads = data.draw(_records_of_one_length(kind, int(np.prod(shape, dtype=int))))
    default = np.full(shape, 7).tolist()
    spec = tf.io.FixedLenFeature(shape, theirs, default_value=default)
    _compare_examples(payloads, Feature(ours, shape, default=default), spec)


@examples(50)
@given(_records_of_one_length("bytes", 1))
def test_strings_with_a_default_agree(payloads: list[bytes]) -> None:
    spec = tf.io.FixedLenFeature((), tf.string, default_value=b"none")
    _compare_examples(payloads, Feature("bytes", default=b"none"), spec)


@examples(60)
@given(st.data(), KINDS)
def test_variable_length_features_agree(data: Any, kind: str) -> None:
    ours, theirs = TYPES[kind]
    payloads = data.draw(_examples_of(kind))
    feature = Feature(ours, (None,), optional=True)
    _compare_examples(payloads, feature, tf.io.RaggedFeature(theirs))
    # A SparseTensor cannot tell how many empty rows there are at the end of no rows at all.
    if payloads:
        _compare_examples(payloads, feature, tf.io.VarLenFeature(theirs))


@examples(60)
@given(st.data(), KINDS, st.sampled_from([(), (2,)]))
def test_padded_features_agree(data: Any, kind: str, shape: tuple[int, ...]) -> None:
    ours, theirs = TYPES[kind]
    payloads = data.draw(_examples_of(kind))
    spec = tf.io.FixedLenSequenceFeature(shape, theirs, allow_missing=True)
    feature = Feature(ours, (None, *shape), optional=True)
    fill = b"" if kind == "bytes" else 0

    def read_theirs() -> Any:
        serialized = tf.constant(payloads, tf.string, shape=(len(payloads),))
        return rows_of(tf.io.parse_example(serialized, {"a": spec})["a"])

    _assert_same(
        _rows_or_refusal(lambda: rows_of(_parse_ours(payloads, feature).to_padded(fill=fill))),
        _rows_or_refusal(read_theirs),
    )


@examples(100)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=5)),
            st.one_of(st.none(), st.lists(st.integers(0, 3), max_size=4)),
        ),
        max_size=3,
    )
)
def test_row_lengths_agree(rows: list[tuple[list[int] | None, list[int] | None]]) -> None:
    def stored(items: list[int] | None) -> Any:
        return None if items is None else ("int64", items)

    payloads = [make_example({"v": stored(row[0]), "n": stored(row[1])}) for row in rows]
    spec = tf.io.RaggedFeature(
        tf.int64,
        value_key="v",
        partitions=[tf.io.RaggedFeature.RowLengths("n")],
        validate=True,
    )
    feature = Feature("int64", (None, None), keys=("v", "n"), optional=True)
    # tf.io looks at the sums over the batch, we at each record: only lengths that fit compare.
    if all(len(values or []) == sum(lengths or []) for values, lengths in rows):
        _compare_examples(payloads, feature, spec)
    else:
        with pytest.raises(SchemaError, match="expected row lengths"):
            _parse_ours(payloads, feature)


@st.composite
def _sparse_examples(draw: st.DrawFn) -> list[bytes]:
    cells = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.floats(width=32)))
    made = []
    for row in draw(st.lists(cells.map(lambda found: found[:4]), min_size=1, max_size=3)):
        columns = list(zip(*row, strict=True)) or [(), (), ()]
        kinds = ("int64", "int64", "float")
        stored = {
            key: (kind, found) for key, kind, found in zip("ijv", kinds, columns, strict=True)
        }
        if not row and draw(st.booleans()):
            stored = draw(st.sampled_from([{}, {"v": None}]))
        made.append(make_example(stored))
    return made


@examples(40)
@given(_sparse_examples())
def test_sparse_features_agree(payloads: list[bytes]) -> None:
    flat = tf.io.SparseFeature("i", "v", tf.float32, 4)
    _compare_examples(payloads, Feature("float32", (4,), encoding="sparse", keys=("i", "v")), flat)
    deep = tf.io.SparseFeature(["i", "j"], "v", tf.float32, [4, 3])
    feature = Feature("float32", (4, 3), encoding="sparse", keys=("i", "j", "v"))
    _compare_examples(payloads, feature, deep)


@st.composite
def _sequences_of(draw: st.DrawFn, kind: str, count: int | None) -> list[bytes]:
    fitting = st.lists(
        {"bytes": st.binary(max_size=4), "int64": st.integers(-5, 5)}.get(
            kind, st.floats(width=32)
        ),
        min_size=count or 0,
        max_size=3 if count is None else count,
    ).map(lambda values: (kind, values))
    odd = draw(st.integers(0, 3)) == 0
    step = st.one_of(fitting, stored_values(kind)) if odd else fitting
    lists = st.one_of(st.just({}), st.lists(step, max_size=3).map(lambda steps: {"a": steps}))
    records = draw(st.lists(lists, min_size=1, max_size=4))
    return [make_sequence_example({}, record) for record in records]


def _compare_sequences(payloads: list[bytes], feature: Feature, spec: Any) -> None:
    def read_theirs() -> Any:
        serialized = tf.constant(payloads, tf.string)
        _, found, lengths = tf.io.parse_sequence_example(serialized, None, {"a": spec})
        rows = rows_of(found["a"])
        if "a" not in lengths:
            return rows
        return [row[:n] for row, n in zip(rows, lengths["a"].numpy().tolist(), strict=True)]

    _assert_same(
        _rows_or_refusal(lambda: rows_of(_parse_ours(payloads, feature))),
        _rows_or_refusal(read_theirs),
    )


@examples(60)
@given(st.data(), KINDS, st.sampled_from([(), (2,)]), st.booleans())
def test_sequences_of_fixed_steps_agree(
    data: Any, kind: str, shape: tuple[int, ...], optional: bool
) -> None:
    ours, theirs = TYPES[kind]
    payloads = data.draw(_sequences_of(kind, int(np.prod(shape, dtype=int))))
    spec = tf.io.FixedLenSequenceFeature(shape, theirs, allow_missing=optional)
    feature = Feature(ours, (None, *shape), sequence=True, optional=optional)
    _compare_sequences(payloads, feature, spec)


@examples(60)
@given(st.data(), KINDS)
def test_sequences_of_variable_steps_agree(data: Any, kind: str) -> None:
    ours, theirs = TYPES[kind]
    payloads = data.draw(_sequences_of(kind, None))
    feature = Feature(ours, (None, None), sequence=True, optional=True)
    _compare_sequences(payloads, feature, tf.io.RaggedFeature(theirs))
