"""Every encoding, byte for byte, and that docs/concepts/format.md shows the same bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from datum import Feature, Schema
from datum.format import Index, RecordFile, RecordWriter, encode, frame, parse
from tests.contract.oracle import rows_of

DOCUMENT = Path(__file__).parents[2] / "docs/concepts/format.md"

# (feature, value, payload) for a schema of the one feature "a".
ONE_FEATURE: dict[str, tuple[Feature, Any, str]] = {
    "integer": (Feature("int64"), 300, "0a0d0a0b0a0161 1206 1a04 0a02 ac02"),
    "integers": (
        Feature("int64", (3,)),
        [1, -1, 2**63 - 1],
        "0a1f0a1d0a0161 1218 1a16 0a14 01 ffffffffffffffffff01 ffffffffffffffff7f",
    ),
    "small integers": (
        Feature("int8", (2,)),
        [-128, 127],
        "0a160a140a0161 120f 1a0d 0a0b 80ffffffffffffffff01 7f",
    ),
    "unsigned": (
        Feature("uint64", (2,)),
        np.array([2**64 - 1, 2**63], np.uint64),
        "0a1f0a1d0a0161 1218 1a16 0a14 ffffffffffffffffff01 80808080808080808001",
    ),
    "bools": (Feature("bool", (2,)), [True, False], "0a0d0a0b0a0161 1206 1a04 0a02 01 00"),
    "matrix": (
        Feature("uint8", (2, 2)),
        [[1, 2], [3, 4]],
        "0a0f0a0d0a0161 1208 1a06 0a04 01 02 03 04",
    ),
    "nothing in a fixed shape": (Feature("int64", (0,)), [], "0a090a070a0161 1202 1a00"),
    "floats": (
        Feature("float32", (2,)),
        np.array([1.0, -0.0], np.float32),
        "0a130a110a0161 120c 120a 0a08 0000803f 00000080",
    ),
    "NaN bits": (
        Feature("float32", (2,)),
        np.array([0x7FC12345, 0xFF800001], np.uint32).view(np.float32),
        "0a130a110a0161 120c 120a 0a08 4523c17f 010080ff",
    ),
    "float16": (
        Feature("float16", (2,)),
        np.array([0.5, 2**-24], np.float16),
        "0a130a110a0161 120c 120a 0a08 0000003f 00008033",
    ),
    "bfloat16": (
        Feature("bfloat16"),
        np.array(1.5, ml_dtypes.bfloat16),
        "0a0f0a0d0a0161 1208 1206 0a04 0000c03f",
    ),
    "times": (
        Feature("datetime64[s]", (2,)),
        np.array(["1970-01-01T00:00:05", "NaT"], "datetime64[s]"),
        "0a160a140a0161 120f 1a0d 0a0b 05 80808080808080808001",
    ),
    "image": (
        Feature("uint8", (None, None, 3), encoding="image"),
        b"\xff\xd8\xff\xd9",
        "0a0f0a0d0a0161 1208 0a06 0a04 ffd8ffd9",
    ),
    "bytes": (Feature("bytes"), b"\xff\0", "0a0d0a0b0a0161 1206 0a04 0a02 ff00"),
    "text": (Feature("str", (2,)), ["é", ""], "0a0f0a0d0a0161 1208 0a06 0a02c3a9 0a00"),
    "ragged": (Feature("int64", (None,)), [5, 6], "0a0d0a0b0a0161 1206 1a04 0a02 05 06"),
    "ragged, empty": (Feature("float32", (None,)), [], "0a090a070a0161 1202 1200"),
    "ragged rows": (
        Feature("float32", (None, 2)),
        [[1.0, 2.0], [3.0, 4.0]],
        "0a1b0a190a0161 1214 1212 0a10 0000803f 00000040 00004040 00008040",
    ),
    "nested": (
        Feature("int64", (None, None)),
        [[7], [], [8, 9]],
        "0a26 0a0c0a0161 1207 1a05 0a03 0708090a160a0b615f6c656e677468735f31 1207 1a05 0a03 010002",
    ),
    "nested, raw": (
        Feature("float64", (None, None), encoding="values"),
        [[1.0], [], [-2.0]],
        (
            "0a33 0a190a0161 1214 0a12 0a10 000000000000f03f 00000000000000c0"
            "0a160a0b615f6c656e677468735f31 1207 1a05 0a03 010001"
        ),
    ),
    "nested twice": (
        Feature("bytes", (None, None, None)),
        [[[b"x"], []], [[b"y", b"z"]]],
        (
            "0a41 0a100a0161 120b 0a09 0a0178 0a0179 0a017a"
            "0a150a0b615f6c656e677468735f31 1206 1a04 0a02 0201"
            "0a160a0b615f6c656e677468735f32 1207 1a05 0a03 010002"
        ),
    ),
    "raw": (
        Feature("float64", (2,)),
        [1.0, -2.0],
        "0a1b0a190a0161 1214 0a12 0a10 000000000000f03f 00000000000000c0",
    ),
    "raw complex": (
        Feature("complex64"),
        1 - 2j,
        "0a130a110a0161 120c 0a0a 0a08 0000803f 000000c0",
    ),
    "raw vector": (
        Feature("uint16", (None,), encoding="raw"),
        np.array([1, 0x203], np.uint16),
        "0a0f0a0d0a0161 1208 0a06 0a04 0100 0302",
    ),
    "raw vector of nothing": (Feature("float64", (None,)), [], "0a0b0a090a0161 1204 0a02 0a00"),
    "raw tensor": (
        Feature("uint8", (None, None), encoding="raw"),
        np.array([[1, 2, 3], [4, 5, 6]], np.uint8),
        "0a24 0a0f0a0161 120a 0a08 0a06 010203040506 0a110a07615f7368617065 1206 1a04 0a02 0203",
    ),
    "raw tensor of nothing": (
        Feature("uint8", (None, None), encoding="raw"),
        np.zeros((0, 3), np.uint8),
        "0a1e 0a090a0161 1204 0a02 0a00 0a110a07615f7368617065 1206 1a04 0a02 0003",
    ),
    "sparse": (
        Feature("float32", (5,), encoding="sparse"),
        ([3, 1], [2.0, 1.0]),
        (
            "0a2c 0a110a07615f696e646578 1206 1a04 0a02 0103"
            "0a170a07615f76616c7565 120c 120a 0a08 0000803f 00000040"
        ),
    ),
    "sparse, raw": (
        Feature("float64", (5,), encoding="sparse"),
        ([1, 3], [1.0, -2.0]),
        (
            "0a34 0a110a07615f696e646578 1206 1a04 0a02 0103"
            "0a1f0a07615f76616c7565 1214 0a12 0a10 000000000000f03f 00000000000000c0"
        ),
    ),
    "sparse matrix": (
        Feature("int64", (2, 3), encoding="sparse"),
        ([[1, 2], [0, 1]], [9, 8]),
        (
            "0a3d 0a130a09615f696e6465785f30 1206 1a04 0a02 0001"
            "0a130a09615f696e6465785f31 1206 1a04 0a02 0102"
            "0a110a07615f76616c7565 1206 1a04 0a02 0809"
        ),
    ),
    "sparse, empty": (
        Feature("bytes", (5,), encoding="sparse"),
        ([], []),
        "0a1e 0a0d0a07615f696e646578 1202 1a00 0a0d0a07615f76616c7565 1202 0a00",
    ),
    "sequence": (
        Feature("int64", (None,), sequence=True),
        [5, 6],
        "0a00 1215 0a130a0161 120e 0a051a030a0105 0a051a030a0106",
    ),
    "sequence of vectors": (
        Feature("float32", (None, 2), sequence=True),
        [[1.0, 2.0]],
        "0a00 1215 0a130a0161 120e 0a0c120a0a08 0000803f 00000040",
    ),
    "sequence of lists": (
        Feature("bytes", (None, None), sequence=True),
        [[b"x", b"y"], []],
        "0a00 1215 0a130a0161 120e 0a080a06 0a0178 0a0179 0a020a00",
    ),
    "sequence, raw": (
        Feature("float64", (None,), sequence=True),
        [1.0],
        "0a00 1215 0a130a0161 120e 0a0c0a0a0a08 000000000000f03f",
    ),
    "sequence without steps": (
        Feature("int64", (None,), sequence=True),
        [],
        "0a00 1207 0a050a0161 1200",
    ),
    "sequence, absent": (
        Feature("int64", (None,), sequence=True, optional=True),
        None,
        "0a00 1200",
    ),
    "other keys": (
        Feature("int64", (None, None), keys=("v", "n")),
        [[1]],
        "0a18 0a0a0a016e 1205 1a03 0a01 01 0a0a0a0176 1205 1a03 0a01 01",
    ),
}
_ONE = "12051a030a0101"
SEVERAL: dict[str, tuple[dict[str, Feature], dict[str, Any], str]] = {
    "no features": ({}, {}, "0a00"),
    "absent": (
        {"a": Feature("int64", optional=True), "b": Feature("int64")},
        {"a": None, "b": 1},
        f"0a0c 0a0a0a0162 {_ONE}",
    ),
    "sorted keys": (
        {name: Feature("bool") for name in ("b", "a", "ä", "B", "aa")},
        dict.fromkeys(("b", "a", "ä", "B", "aa"), True),
        (
            f"0a3e 0a0a0a0142 {_ONE} 0a0a0a0161 {_ONE} 0a0b0a026161 {_ONE} 0a0a0a0162 {_ONE}"
            f"0a0b0a02c3a4 {_ONE}"
        ),
    ),
    "sequence with context": (
        {"a": Feature("int64", (None,), sequence=True), "b": Feature("int64")},
        {"a": [5], "b": 1},
        f"0a0c 0a0a0a0162 {_ONE} 120e 0a0c0a0161 1207 0a051a030a0105",
    ),
}
PAYLOADS = {
    **{
        name: (Schema({"a": feature}), {"a": value}, bytes.fromhex(payload))
        for name, (feature, value, payload) in ONE_FEATURE.items()
    },
    **{
        name: (Schema(features), row, bytes.fromhex(payload))
        for name, (features, row, payload) in SEVERAL.items()
    },
}
FRAME = bytes.fromhex("0900000000000000 37f97139 313233343536373839 e5b08ac7")
INDEX = bytes.fromhex(
    "444154554d494458 01000000 00000000 0200000000000000 2300000000000000"
    "5c25f1ca 02545f90 0000000000000000 1300000000000000"
)


@pytest.mark.parametrize(("schema", "row", "payload"), PAYLOADS.values(), ids=PAYLOADS)
def test_rows_encode_to_these_bytes(schema: Schema, row: dict[str, Any], payload: bytes) -> None:
    assert [found.hex() for found in encode([row], schema)] == [payload.hex()]


@pytest.mark.parametrize(("schema", "row", "payload"), PAYLOADS.values(), ids=PAYLOADS)
def test_columns_encode_to_these_bytes(schema: Schema, row: dict[str, Any], payload: bytes) -> None:
    if schema:  # no columns, no rows
        columns = {name: [row[name]] * 3 for name in schema}
        assert list(encode(columns, schema)) == [payload] * 3


@pytest.mark.parametrize(("schema", "row", "payload"), PAYLOADS.values(), ids=PAYLOADS)
def test_these_bytes_parse_to_what_was_encoded(
    schema: Schema, row: dict[str, Any], payload: bytes
) -> None:
    batch = parse([payload], schema)
    again = parse(encode([row], schema), schema)
    assert list(batch) == list(schema)
    for name in schema:
        assert rows_of(batch[name], exact=True) == rows_of(again[name], exact=True)
    if schema:
        assert list(encode(batch, schema)) == [payload]


def test_a_frame_has_its_length_and_masked_checksums_around_it() -> None:
    crc = 0xE3069283  # of "123456789", by every implementation of CRC-32C
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32
    assert FRAME[-4:] == masked.to_bytes(4, "little")
    assert frame([b"123456789"]).to_bytes() == FRAME
    assert list(RecordFile(FRAME)) == [b"123456789"]


def test_an_empty_record_is_a_frame_of_sixteen_bytes() -> None:
    empty = bytes.fromhex("0000000000000000 29039807 d8ea82a2")
    assert frame([b""]).to_bytes() == empty
    assert list(RecordFile(empty)) == [b""]


def test_an_index_is_laid_out_as_documented() -> None:
    framed = frame([b"abc", b""])
    assert framed.index.to_bytes() == INDEX
    loaded = Index.from_bytes(INDEX)
    assert (loaded.offsets.tolist(), loaded.stream_bytes) == ([0, 19], 35)
    assert framed.nbytes == 35


def test_an_index_of_no_records_is_its_header() -> None:
    empty = Index(np.empty(0, np.int64), 0).to_bytes()
    assert len(empty) == 40
    assert empty[:36] == b"DATUMIDX" + bytes([1]) + bytes(23) + bytes.fromhex("d8ea82a2")


@pytest.mark.parametrize(("compression", "header"), [("gzip", "1f8b0800 00000000"), ("zlib", "78")])
def test_compressed_files_hold_neither_name_nor_time(compression: Any, header: str) -> None:
    with RecordWriter(compression=compression) as writer:
        writer.write(b"abc")
    assert writer.getvalue().startswith(bytes.fromhex(header))


def test_the_document_shows_these_bytes() -> None:
    blocks = re.findall(
        r'```hex title="([^"]+)"\n(.*?)```', DOCUMENT.read_text(encoding="utf-8"), re.DOTALL
    )
    shown = {name: bytes.fromhex(re.sub("#.*", "", lines)) for name, lines in blocks}
    assert len(shown) == len(blocks)
    golden = {name: payload for name, (_, _, payload) in PAYLOADS.items()}
    golden |= {"frame": FRAME, "index": INDEX}
    assert {name: content.hex() for name, content in shown.items()} == {
        name: golden[name].hex() for name in shown
    }
    rows = ["integer", "ragged, empty", "nested", "raw", "raw tensor", "sparse", "absent"]
    lists = ["sequence", "sequence of lists", "sequence without steps", "sequence, absent"]
    assert {"frame", "index", *rows, *lists} <= set(shown)
