"""The cases that TensorFlow tests its fast Example parser with, put to ours."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import Feature, SchemaError
from datum.format import discover, parse
from tests.contract.oracle import (
    assert_reads_as_protobuf,
    make_example,
    read_protobuf,
    rows_of,
    tf,
)
from tests.contract.strategies import FLOAT32S, INT64S, LISTS, examples
from tests.contract.wire import FIXED32, FIXED64, VARINT, delimited, entry, example, float_list, tag

MISSING = "expected a value, got none"


def _assert_same(payload: bytes) -> None:
    message = read_protobuf(payload)
    assert message is not None
    assert_reads_as_protobuf([payload], [message])


# Messages.

EXTRAS = b"".join(
    [
        delimited(1337, b"some_str"),
        tag(1338, VARINT) + b"\x7b",
        tag(1339, FIXED32) + bytes(4),
        tag(1340, FIXED64) + bytes(8),
        tag(1341, VARINT) + b"\xff" * 9 + b"\x01",
        delimited(1342, struct.pack("<2d", 5.67, 6.78)),
        delimited(1343, entry(b"extra", float_list())),
    ]
)
AGE = make_example({"age": ("int64", [13])})
ZIP = make_example({"zipcode": ("int64", [94043])})
ALL_KINDS = {
    "": None,
    "empty bytes": ("bytes", []),
    "empty floats": ("float", []),
    "empty ints": ("int64", []),
    "bytes": ("bytes", [b"bytes1", b"bytes2"]),
    "floats": ("float", [1.0, 2.0]),
    "ints": ("int64", [3, 270, 86942]),
}
MESSAGES = {
    "unknown fields before": EXTRAS + AGE + ZIP,
    "unknown fields between": AGE + EXTRAS + ZIP,
    "unknown fields after": AGE + ZIP + EXTRAS,
    "two messages in one": AGE + ZIP,
    "the same key in both": AGE + make_example({"age": ("int64", [15])}),
    "packed": bytes.fromhex("0a0e 0a0c 0a03616765 1205 1a03 0a010d"),
    "not packed": bytes.fromhex("0a0d 0a0b 0a03616765 1204 1a02 080d"),
    "value before key": bytes.fromhex("0a12 0a10 1209 0a07 0a0576616c7565 0a036b6579"),
    "one value each": make_example(
        {"age": ("int64", [0]), "flo": ("float", [1.1]), "byt": ("bytes", [b"Yo"])}
    ),
    "several values each": make_example(
        {
            "age": ("int64", [0, 13, 23]),
            "flo": ("float", [1.1, 1.2, 1.3]),
            "byt": ("bytes", [b"Yo", b"Yo\n"]),
        }
    ),
    "all kinds, empty and not": make_example(ALL_KINDS),
}


@pytest.mark.parametrize("payload", MESSAGES.values(), ids=MESSAGES)
def test_messages_parse_as_protobuf_parses_them(payload: bytes) -> None:
    _assert_same(payload)


@examples(40)
@given(
    st.lists(
        st.dictionaries(
            st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=3),
            st.sampled_from(list(LISTS)).flatmap(
                lambda kind: LISTS[kind].filter(len).map(lambda found: (kind, found))
            ),
            min_size=1,
            max_size=20,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_messages_in_one_parse_as_protobuf_parses_them(parts: list[dict[str, Any]]) -> None:
    _assert_same(b"".join(make_example(part) for part in parts))


@pytest.mark.parametrize("payload", [b"", example(), EXTRAS])
def test_a_record_without_features_has_none(payload: bytes) -> None:
    column = parse([payload], {"a": Feature("int64", optional=True)})["a"]
    assert rows_of(column) == [None]
    with pytest.raises(SchemaError, match=MISSING):
        parse([payload], {"a": Feature("int64")})


def test_discovery_counts_features_and_values() -> None:
    found = discover([make_example(ALL_KINDS)] * 13)
    assert found.records == 13
    assert len(found.features) == 7
    kinds = [feature for feature in found.features.values() if feature.kinds]
    assert len(kinds) == 6
    assert sum(feature.lengths[1] for feature in kinds) == 7


def test_no_records_give_empty_columns() -> None:
    batch = parse([], {"a": Feature("bytes", (None,)), "b": Feature("float32", (2, 3))})
    assert (batch["a"].to_list(), batch["b"].shape) == ([], (0, 2, 3))


# Fixed lengths.


@pytest.mark.parametrize(("wanted", "count"), [(1, 5), (1, 10_000), (3, 1), (2, 3)])
def test_another_number_of_floats_is_refused(wanted: int, count: int) -> None:
    one = tag(1, FIXED32) + struct.pack("<f", 1.0)
    whole = delimited(1, struct.pack("<f", 1.0) * count)
    for values in (one * count, whole, whole[:0] + one + delimited(1, b"\0" * 4 * (count - 1))):
        payload = example(entry(b"f", float_list(values)))
        with pytest.raises(SchemaError, match=f"'f': expected {wanted} values, got {count}"):
            parse([payload], {"f": Feature("float32", (wanted,))})


def test_absent_features_get_their_defaults() -> None:
    schema = {
        "ragged": Feature("int64", (None,), optional=True),
        "row": Feature("int64", (1, 3), default=[[0, 42, 0]]),
        "c:has_a_tricky_name": Feature("float32", (2,), default=[0.5, -0.0]),
    }
    for payload in (b"", make_example({"row": None, "ragged": None})):
        batch = parse([payload] * 2, schema)
        assert rows_of(batch["ragged"]) == [None, None]
        assert batch["row"].tolist() == [[[0, 42, 0]]] * 2
        assert np.signbit(batch["c:has_a_tricky_name"]).tolist() == [[False, True]] * 2


def test_a_feature_without_kind_or_key_is_required_all_the_same() -> None:
    schema = {"a": Feature("int64", default=1), "c": Feature("float32", (2,))}
    for payload in (make_example({"c": None}), make_example({}), b""):
        with pytest.raises(SchemaError, match=f"feature 'c': {MISSING}"):
            parse([payload], schema)


def test_the_record_that_does_not_fit_is_named() -> None:
    payloads = [make_example({"a": ("float", row)}) for row in ([1, 1, 3], [-1, -1])]
    with pytest.raises(SchemaError, match="record 1, feature 'a': expected 3 values, got 2"):
        parse(payloads, {"a": Feature("float32", (1, 3))})


def test_tricky_names_and_many_dimensions() -> None:
    name = "b*has+a:tricky_name"
    payloads = [
        make_example({"a": ("float", [1, 1]), name: ("bytes", [b"b0_str"])}),
        make_example({"a": ("float", [-1, -1]), name: ("bytes", [b""])}),
    ]
    schema = {"a": Feature("float32", (1, 2, 1)), name: Feature("bytes", (1, 1, 1, 1))}
    batch = parse(payloads, schema)
    assert batch["a"].tolist() == [[[[1.0], [1.0]]], [[[-1.0], [-1.0]]]]
    assert batch[name].to_list() == [[[[[b"b0_str"]]]], [[[[b""]]]]]


def test_the_last_of_two_joined_messages_wins() -> None:
    first = make_example({"a": ("float", [10, 10])}) + make_example(
        {"a": ("float", [1, 1]), "b": ("bytes", [b"b0"])}
    )
    second = make_example({"b": ("bytes", [b"b100"])}) + make_example(
        {"a": ("float", [-1, -1]), "b": ("bytes", [b"b1"])}
    )
    batch = parse([first, second], {"a": Feature("float32", (2,)), "b": Feature("bytes")})
    assert batch["a"].tolist() == [[1.0, 1.0], [-1.0, -1.0]]
    assert batch["b"].to_list() == [b"b0", b"b1"]


def test_defaults_stand_in_record_by_record() -> None:
    records = [{"a": ("float", [1, 1])}, {"b": ("bytes", [b"b1"])}, {"b": None}]
    schema = {
        "a": Feature("float32", (1, 2, 1), default=[[[3.0], [-3.0]]]),
        "b": Feature("bytes", default=b"tmp_str"),
    }
    batch = parse([make_example(record) for record in records], schema)
    assert batch["a"].reshape(3, 2).tolist() == [[1, 1], [3, -3], [3, -3]]
    assert batch["b"].to_list() == [b"tmp_str", b"b1", b"tmp_str"]


# Variable lengths.

RAGGED = [
    {"c": ("float", [3, 4])},
    {"c": ("float", [])},
    {"d": None},
    {"c": ("float", [1, 2, -1]), "d": ("bytes", [b"hi"])},
]


@pytest.mark.parametrize("copies", [1, 64])
def test_variable_lengths_in_batches_of_any_size(copies: int) -> None:
    payloads = [make_example(record) for record in RAGGED] * copies
    schema = {
        "c": Feature("float32", (None,), optional=True),
        "d": Feature("bytes", (None,), optional=True),
    }
    batch = parse(payloads, schema)
    assert batch["c"].values.to_list() == [[3.0, 4.0], [], [], [1.0, 2.0, -1.0]] * copies
    assert batch["c"].present.tolist() == [True, True, False, True] * copies
    assert batch["d"].values.to_list() == [[], [], [], [b"hi"]] * copies
    assert batch["d"].present.tolist() == [False, False, False, True] * copies


@pytest.mark.parametrize("count", [1, 10, 20, 100, 256])
def test_padding_to_the_longest(count: int) -> None:
    words = [[b"foo%d" % i, b"bar%d" % i][: (2, 1, 2, 0)[i % 4]] for i in range(count)]
    payloads = [make_example({"a": ("int64", [i]), "b": ("bytes", words[i])}) for i in range(count)]
    batch = parse(payloads, {"a": Feature("int64", (None,)), "b": Feature("bytes", (None,))})
    assert batch["a"].to_padded(fill=-1).tolist() == [[i] for i in range(count)]
    padded = [row + [b"default"] * (2 - len(row)) for row in words]
    assert batch["b"].to_padded(fill=b"default").tolist() == padded


def test_values_that_do_not_fill_their_rows_are_refused() -> None:
    payloads = [make_example({"b": ("bytes", [b"x"] * count)}) for count in (2, 4, 3)]
    with pytest.raises(SchemaError, match="record 2, feature 'b': expected a multiple of 2"):
        parse(payloads, {"b": Feature("bytes", (None, 2, 1, 1))})


def test_row_lengths_nest() -> None:
    records = [
        {"v": ("float", range(1, 8)), "n2": ("int64", [1, 2, 0, 1]), "n3": ("int64", [1, 2, 1, 3])},
        {"v": ("float", range(1, 9)), "n2": ("int64", [2, 3]), "n3": ("int64", [3, 1, 1, 1, 2])},
        {"v": ("float", []), "n2": ("int64", []), "n3": ("int64", [])},
    ]
    feature = Feature("float32", (None, None, None), keys=("v", "n2", "n3"))
    batch = parse([make_example(record) for record in records], {"x": feature})
    assert batch["x"].to_list() == [
        [[[1.0]], [[2.0, 3.0], [4.0]], [], [[5.0, 6.0, 7.0]]],
        [[[1.0, 2.0, 3.0], [4.0]], [[5.0], [6.0], [7.0, 8.0]]],
        [],
    ]


def test_row_lengths_that_fit_only_over_the_batch_are_refused() -> None:
    records = [
        {"v": ("float", []), "n": ("int64", [5])},
        {"v": ("float", [1, 2, 3, 4, 5]), "n": ("int64", [])},
    ]
    feature = Feature("float32", (None, None), keys=("v", "n"))
    with pytest.raises(SchemaError, match="record 0, feature 'x': expected row lengths"):
        parse([make_example(record) for record in records], {"x": feature})


@pytest.mark.parametrize("lengths", [[-1, 2], [2**63 - 1, 2**63 - 1, 3], [1, 2**63 - 1], [2]])
def test_row_lengths_that_do_not_sum_up_are_refused(lengths: list[int]) -> None:
    payload = make_example({"x": ("int64", [7]), "x_lengths_1": ("int64", lengths)})
    with pytest.raises(SchemaError, match="record 1, feature 'x': expected row lengths"):
        parse(
            [make_example({"x": ("int64", [1]), "x_lengths_1": ("int64", [1])}), payload],
            {"x": Feature("int64", (None, None))},
        )


# Sparse.


def test_sparse_values_out_of_order_are_sorted() -> None:
    records = [
        {"v": ("float", [3, 4]), "i": ("int64", [5, 10]), "j": ("int64", [0, 2])},
        {"v": ("float", []), "i": ("int64", []), "j": ("int64", [])},
        {"v": None},
        {"v": ("float", [1, 2, -1]), "i": ("int64", [0, 9, 3]), "j": ("int64", [1, 0, 2])},
    ]
    payloads = [make_example(record) for record in records]
    flat = Feature("float32", (13,), encoding="sparse", keys=("i", "v"))
    column = parse(payloads, {"x": flat})["x"]
    assert column.indices.tolist() == [[0, 5], [0, 10], [3, 0], [3, 3], [3, 9]]
    assert column.values.tolist() == [3.0, 4.0, 1.0, -1.0, 2.0]
    assert column.dense_shape == (4, 13)
    deep = Feature("float32", (13, 3), encoding="sparse", keys=("i", "j", "v"))
    column = parse(payloads, {"x": deep})["x"]
    expected = [[0, 5, 0], [0, 10, 2], [3, 0, 1], [3, 3, 2], [3, 9, 0]]
    assert column.indices.tolist() == expected
    assert column.values.tolist() == [3.0, 4.0, 1.0, -1.0, 2.0]


def test_indices_serve_one_feature_at_a_time() -> None:
    payload = make_example(
        {"v": ("float", [3, 4]), "w": ("bytes", [b"5", b"6"]), "i": ("int64", [5, 2])}
    )
    first = Feature("float32", (7,), encoding="sparse", keys=("i", "v"))
    second = Feature("bytes", (7,), encoding="sparse", keys=("i", "w"))
    with pytest.raises(SchemaError, match="use the same key 'i'"):
        parse([payload], {"first": first, "second": second})
    assert parse([payload], {"first": first})["first"].values.tolist() == [4.0, 3.0]
    assert parse([payload], {"second": second})["second"].values.to_list() == [b"6", b"5"]
    assert parse([payload], {"i": Feature("int64", (2,))})["i"].tolist() == [[5, 2]]


BAD_PLACES = {"outside": [5, 7], "negative": [-1, 2], "too few": [1], "too many": [1, 2, 3]}


@pytest.mark.parametrize("places", BAD_PLACES.values(), ids=BAD_PLACES)
def test_indices_that_do_not_fit_are_refused(places: list[int]) -> None:
    good = make_example({"x_value": ("int64", [1, 1]), "x_index": ("int64", [0, 0])})
    payload = make_example({"x_value": ("int64", [1, 1]), "x_index": ("int64", places)})
    with pytest.raises(SchemaError, match="record 1, feature 'x': expected"):
        parse([good, payload], {"x": Feature("int64", (7,), encoding="sparse")})


# Raw bytes.


def test_raw_bytes_are_little_endian() -> None:
    payload = make_example({"x": ("bytes", [b"\x01\x23\x00\x00\x00\x00\x00\x80"])})
    batch = parse([payload], {"x": Feature("int32", (2,), encoding="raw")})
    assert batch["x"].tolist() == [[0x2301, -(2**31)]]


@pytest.mark.parametrize("shape", [(2,), (None,), (None, 3)])
def test_raw_bytes_that_are_no_whole_items_are_refused(shape: tuple[int | None, ...]) -> None:
    for count in (1, 7, 9):
        payload = make_example({"x": ("bytes", [bytes(count)])})
        with pytest.raises(SchemaError, match=rf"bytes of float32, got {count}"):
            parse([payload], {"x": Feature("float32", shape, encoding="raw")})


def test_raw_bytes_in_two_values_are_refused() -> None:
    payload = make_example({"x": ("bytes", [bytes(4), bytes(4)])})
    with pytest.raises(SchemaError, match="feature 'x': expected"):
        parse([payload], {"x": Feature("float32", (2,), encoding="raw")})


@given(INT64S, FLOAT32S)
def test_numbers_survive(number: int, real: float) -> None:
    payload = make_example({"i": ("int64", [number]), "f": ("float", [real])})
    batch = parse([payload], {"i": Feature("int64"), "f": Feature("float32")})
    found = tf.io.parse_single_example(
        payload,
        {"i": tf.io.FixedLenFeature((), tf.int64), "f": tf.io.FixedLenFeature((), tf.float32)},
    )
    assert batch["i"].tolist() == [number] == [found["i"].numpy()]
    assert batch["f"].tobytes() == found["f"].numpy().tobytes()
