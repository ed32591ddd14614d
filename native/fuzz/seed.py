"""Writes what fuzzing starts from: native/fuzz/seed.py DIRECTORY makes a folder for each target."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import through_python

from datum import DatumError, Feature, Schema
from datum.format import Index, RecordFile, encode, frame

MAX_SEED_BYTES = 16 * 1024  # longer inputs are slow and seldom find more
MAX_REAL_SEEDS = 200  # for each target


def write_all(folder: Path, seeds: Iterable[bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        (folder / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)


def make_examples() -> list[bytes]:
    """Records with the keys of example.cc, "a" to "h", of every kind and length."""
    numbers = np.array([0, 1, -1, 127, 128, 2**31, -(2**63), 2**63 - 1])
    values = [
        [1], [1.5], [b"text"], [b"\0\1\2\3"], [1, 2, 3], [0.5, -2.0], [b"", b"x"], [],
        numbers, np.arange(300), np.arange(40, dtype=np.float32), [b"long" * 40],
    ]  # fmt: skip
    payloads = []
    for first in range(len(values)):
        row = {key: values[(first + i) % len(values)] for i, key in enumerate("abcdefgh")}
        payloads += encode([row])
        payloads += encode([dict(list(row.items())[:2])])
    return payloads


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field, by hand."""
    return bytes([number << 3 | 2, len(content)]) + content


def make_odd_examples() -> list[bytes]:
    """Messages in forms that protobuf reads but Datum does not write."""
    unpacked = field(3, b"\x08\x01\x08\x80\x02"), field(2, b"\x0d\0\0\x80\x3f\x0d\0\0\0\x40")
    split = field(3, field(1, b"\1\2") + b"\x08\3") + field(3, field(1, b"\4"))
    replaced = field(2, field(1, bytes(4))) + field(3, field(1, b"\5"))
    unknown = b"\x7b\x08\1\x7c" + field(3, field(1, b"\1")) + b"\x78\1\x7d\0\0\0\0"
    payloads = []
    for value in (*unpacked, split, replaced, unknown, b""):
        entry = field(1, b"a") + field(2, value)
        backward = field(2, value) + field(1, b"e")
        payloads += [
            field(1, field(1, entry)),
            field(1, field(1, entry) + field(1, backward) + field(1, entry)),
            field(1, field(1, entry)) + b"\x78\1" + field(1, field(1, backward)),
            field(2, field(1, field(1, b"a") + field(2, field(1, value) + field(1, value)))),
        ]
    return payloads


def make_sequences() -> list[bytes]:
    """Records with the keys of sequence.cc: lists "a" to "d", and "a" in the context."""
    steps = [[[1], [2]], [[]], [], [[1, 2, 3], [], [4]]]
    payloads = []
    for dtype in ("int64", "float32", "bytes"):
        schema = Schema(
            {
                **{key: Feature(dtype, (None, None), sequence=True) for key in "bcd"},
                "list": Feature(dtype, (None, None), sequence=True, keys=("a",)),
                "a": Feature("int64", (None,)),
            }
        )
        for first in range(len(steps)):
            row: dict[str, object] = {"a": [1, 2]}
            for i, key in enumerate(("list", "b", "c", "d")):
                found = steps[(first + i) % len(steps)]
                if dtype == "bytes":
                    found = [[bytes([n]) * 3 for n in step] for step in found]
                row[key] = found
            payloads += encode([row], schema)
    return payloads


def find_files() -> list[Path]:
    """Small real files, if there are any beside the repository."""
    shared = os.environ.get("DATUM_SHARED") or Path(__file__).parents[3] / "shared"
    folder = Path(shared) / "data" / "foreign_tfrecords"
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".tsv")


def read_payloads(paths: Iterable[Path]) -> Iterator[bytes]:
    """The first short payloads of each file."""
    for path in paths:
        try:
            payloads = [payload for chunk in RecordFile(path).chunks(8) for payload in chunk]
        except DatumError:
            continue
        yield from sorted(payloads, key=len)[:2]


def with_head(head: bytes, payloads: Iterable[bytes]) -> Iterator[bytes]:
    """Inputs of parsing.h: two bytes choose the columns, two say where the second record starts."""
    kept = [payload for payload in payloads if len(payload) <= MAX_SEED_BYTES]
    for first, second in zip(kept, [*kept, b""][1:], strict=True):
        yield head + len(first).to_bytes(2, "little") + first + second


def framing_seeds(payloads: list[bytes], paths: Iterable[Path]) -> Iterator[bytes]:
    files = [frame(payloads[i : i + 3]).to_bytes() for i in range(0, len(payloads), 3)]
    files += [path.read_bytes() for path in paths if path.stat().st_size <= MAX_SEED_BYTES]
    files += [frame([]).to_bytes(), frame([b""]).to_bytes(), frame([b"", b"x", b""]).to_bytes()]
    for file in files:
        yield b"\0" + file
        damaged = bytearray(file)
        if damaged:
            damaged[len(damaged) // 2] ^= 4
        yield b"\3\7\1\5" + bytes(damaged)
        yield b"\x42\1\x20" + file[: len(file) * 2 // 3]


def make_csv() -> list[bytes]:
    """Tables with the head that csv.cc takes: limits, threads, sizes, a place to cut at."""
    tables = [
        b"a,b\n1,2.5\n-0,nan\n,NA\n",
        b'id,text\r\n01,"x ""y"", z"\r\n2,"two\r\nlines"\r\n3\r\n',
        b"x\rtrue\rfalse\r\r9223372036854775808\r",
        'n\u00e4me,q\n"open,1e400\n5" pipe,\n'.encode(),
        b'a,b\r"\n""x",1\r2,"y\r""\n"\r\n',
    ]
    return [bytes([255, 0, 8, 128, 0]) + table for table in tables]


def main(out: Path) -> None:
    paths = find_files()
    real = list(read_payloads(paths))[:MAX_REAL_SEEDS]
    odd = make_odd_examples()
    examples, sequences = make_examples() + odd, make_sequences() + odd
    write_all(out / "fuzz_framing", framing_seeds([*examples, *sequences], paths))
    for shift in range(0, 24, 4):
        write_all(out / "fuzz_example", with_head(bytes([shift, 0]), examples))
    write_all(out / "fuzz_example", with_head(b"\0\0", real))
    for shift in range(0, 13, 3):
        write_all(out / "fuzz_sequence", with_head(bytes([shift, 0]), sequences))
    write_all(out / "fuzz_sequence", with_head(b"\0\0", real))
    counts = [0, 1, 2, 100]
    write_all(out / "fuzz_index", [frame([b"x"] * n).index.to_bytes() for n in counts])
    write_all(out / "fuzz_index", [Index(np.array([0, 2**40]), 2**41).to_bytes()])
    write_all(out / "fuzz_csv", make_csv())
    generator = np.random.default_rng(0)
    for target in ("fuzz_encode", "fuzz_png_filter", "fuzz_summary"):
        write_all(out / target, [generator.bytes(n) for n in (8, 64, 256, 1024) for _ in "abcd"])
    for target, seed in through_python.seeds():
        write_all(out / f"python_{target}", [seed])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
