"""One thread or eight: the same bytes, the same columns, the same error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import CorruptRecordError, DatumError, Feature, Schema, SchemaError
from datum.format import Framed, RecordWriter, encode, frame, parse, read_batches
from tests.contract.oracle import rows_of
from tests.contract.strategies import examples

THREADS = range(1, 9)
# A thread is given 256 KiB at least: only batches of more than 2 MiB go to all eight.
ROWS, BLOB_BYTES = 400, 12_000
SCHEMA = Schema(
    {
        "blob": Feature("bytes"),
        "id": Feature("int64"),
        "pair": Feature("float32", (2,), optional=True),
        "words": Feature("str", (None,), optional=True),
        "nested": Feature("int16", (None, None)),
        "raw": Feature("float64", (None,)),
        "tensor": Feature("uint8", (None, None), encoding="raw", optional=True),
        "cells": Feature("float32", (50,), encoding="sparse"),
    }
)
STEPS = Schema(
    {
        "blob": Feature("bytes"),
        "steps": Feature("int64", (None, 2), sequence=True),
        "lists": Feature("bytes", (None, None), sequence=True, optional=True),
    }
)


def _rows(schema: Schema, seed: int) -> list[dict[str, Any]]:
    """Rows of very different sizes, so that threads get very different numbers of them."""
    rng = np.random.default_rng(seed)
    make = {
        "blob": lambda i: rng.bytes(int(rng.integers(0, BLOB_BYTES * 2)) if i % 7 else 0),
        "id": lambda i: i,
        "pair": lambda i: rng.random(2, np.float32) if i % 3 else None,
        "words": lambda i: [f"word {j}" for j in range(i % 5)] if i % 4 else None,
        "nested": lambda i: [list(range(j)) for j in range(i % 4)],
        "raw": lambda i: rng.random(i % 6),
        "tensor": lambda i: np.full((i % 3, 2), i % 256, np.uint8) if i % 5 else None,
        "cells": lambda i: (rng.integers(0, 50, i % 4), rng.random(i % 4, np.float32)),
        "steps": lambda i: [[i, j] for j in range(i % 5)],
        "lists": lambda i: [[b"x"] * j for j in range(i % 3)] if i % 2 else None,
    }
    return [{name: make[name](i) for name in schema} for i in range(ROWS)]


def _columns(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: rows_of(column, exact=True) for name, column in batch.items()}


@pytest.mark.parametrize("seed", [10, 11])
@pytest.mark.parametrize("schema", [SCHEMA, STEPS], ids=["Example", "SequenceExample"])
def test_any_number_of_threads_makes_the_same_of_records(schema: Schema, seed: int) -> None:
    rows = _rows(schema, seed)
    framed = encode(rows, schema, threads=1)
    assert framed.nbytes > 8 * 256 * 1024
    expected = _columns(parse(framed, schema, threads=1))
    assert expected["blob"] == [row["blob"] for row in rows]
    for threads in THREADS[1:]:
        again = encode(rows, schema, threads=threads)
        assert again.to_bytes() == framed.to_bytes()
        assert again.offsets.tolist() == framed.offsets.tolist()
        assert _columns(parse(framed, schema, threads=threads)) == expected


@examples(10)
@given(st.data())
def test_any_number_of_threads_reports_the_first_bad_record(data: Any) -> None:
    payloads = list(encode(_rows(STEPS, 0), STEPS))
    places = data.draw(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=4))
    broken = [b"\xff", b"", payloads[1][:-1]]
    for place in places:
        payloads[place] = data.draw(st.sampled_from(broken))
    messages = set()
    for threads in THREADS:
        with pytest.raises(DatumError) as caught:
            parse(payloads, STEPS, threads=threads)
        messages.add((type(caught.value), str(caught.value)))
    assert len(messages) == 1
    assert f"record {min(places)}" in messages.pop()[1]


def _write_shards(folder: Path, framed: Framed) -> list[Path]:
    payloads = list(framed)
    paths = []
    for number, (first, last) in enumerate([(0, 150), (150, 150), (150, 151), (151, ROWS)]):
        paths.append(folder / f"shard-{number}")
        compression = "gzip" if number % 2 else None
        with RecordWriter(paths[-1], compression=compression) as writer:
            writer.write_framed(frame(payloads[first:last]))
    return paths


@pytest.mark.parametrize("batch_size", [1, 7, 150, ROWS, ROWS + 1])
def test_any_number_of_threads_reads_the_same_batches(tmp_path: Path, batch_size: int) -> None:
    paths = _write_shards(tmp_path, encode(_rows(SCHEMA, 1), SCHEMA))
    for drop in (False, True):
        found = [
            [
                batch["id"].tolist()
                for batch in read_batches(
                    paths, SCHEMA, batch_size=batch_size, threads=threads, drop_remainder=drop
                )
            ]
            for threads in (1, 2, 8)
        ]
        ids = list(range(ROWS))
        expected = [ids[i : i + batch_size] for i in range(0, ROWS, batch_size)]
        if drop and len(expected[-1]) < batch_size:
            expected.pop()
        assert found == [expected] * 3


def test_any_number_of_threads_meets_damage_at_the_same_batch(tmp_path: Path) -> None:
    paths = _write_shards(tmp_path, encode(_rows(SCHEMA, 2), SCHEMA))
    content = bytearray(paths[0].read_bytes())
    content[len(content) // 2] ^= 1
    paths[0].write_bytes(content)
    seen = set()
    for threads in (1, 2, 3, 8):
        reader = iter(read_batches(paths, SCHEMA, batch_size=10, threads=threads))
        first_ids = []
        with pytest.raises(CorruptRecordError) as caught:
            first_ids.extend(batch["id"][0] for batch in reader)
        with pytest.raises(StopIteration):
            next(reader)
        seen.add((tuple(first_ids), str(caught.value)))
    assert len(seen) == 1
    ((batches, _),) = seen
    assert batches[:2] == (0, 10)


def test_any_number_of_threads_skips_the_same_damage(tmp_path: Path) -> None:
    paths = _write_shards(tmp_path, encode(_rows(SCHEMA, 3), SCHEMA))
    content = bytearray(paths[0].read_bytes())
    content[len(content) // 2] ^= 1
    paths[0].write_bytes(content)
    seen = []
    for threads in (1, 2, 8):
        reader = read_batches(paths, SCHEMA, batch_size=10, threads=threads, recovery="skip")
        ids = [number for batch in reader for number in batch["id"].tolist()]
        seen.append((ids, reader.damage))
    assert seen == [seen[0]] * 3
    assert len(seen[0][0]) == ROWS - 1
    assert len(seen[0][1]) == 1


def test_any_number_of_threads_refuses_the_same_row() -> None:
    rows = _rows(STEPS, 4)
    rows[200]["steps"] = [[1, 2, 3]]
    for threads in THREADS:
        with pytest.raises(SchemaError, match="record 200, feature 'steps'"):
            encode(rows, STEPS, threads=threads)
