"""Numbers that a manifest or a schema claims: checked before any memory is sized by them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import datum
from datum import Feature, Schema
from datum.errors import ManifestError, SchemaError, SourceError
from datum.format import encode, parse
from tests.hostile.shards import MIB, run_measured

ROWS = [{"x": i, "words": ["a"] * (i % 4)} for i in range(60)]


def claim(folder: Any, records: int, nbytes: int | None = None) -> None:
    """Let the manifest of a dataset tell another number of records."""
    file = folder / "datum.json"
    found = json.loads(file.read_text())
    shard = found["splits"]["train"]["shards"][0]
    shard["records"] = records
    shard["bytes"] = shard["bytes"] if nbytes is None else nbytes
    file.write_text(json.dumps({**found, "checksum": None}))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"on_error": "skip"},
        {"cache": True, "on_error": "skip"},
        {"bucket_by": "words", "on_error": "skip"},
        {"batch_tokens": 64, "bucket_by": "words", "on_error": "skip"},
        {"shuffle": True, "on_error": "skip"},
    ],
    ids=str,
)
def test_records_that_a_file_cannot_hold_are_refused_before_memory_is_taken(tmp_path, options):
    datum.write(ROWS, tmp_path / "a")
    for records in (3 * 10**8, 10**11):
        claim(tmp_path / "a", records, 16 * records)
        body = """
import datum
try:
    for _ in datum.load(args[0]).to_numpy("train", batch_size=8, **eval(args[1])):
        pass
except datum.DatumError as error:
    return [type(error).__name__, str(error)]"""
        (kind, text), growth = run_measured(body, tmp_path / "a", repr(options))
        assert kind == "CorruptRecordError"
        assert f"expected {records:,} records, as the manifest says, got a file of" in text
        assert "hint: restore the file" in text
        assert growth < 64 * MIB


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_a_compressed_shard_cannot_claim_more_than_it_can_inflate_to(tmp_path, compression):
    datum.write(ROWS, tmp_path / "a", compression=compression)
    claim(tmp_path / "a", 10**7)
    with pytest.raises(
        ManifestError, match=r"records: expected at most [\d,]+, the capacity of [\d,]+ bytes"
    ):
        datum.load(tmp_path / "a")


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("kept", [0.0, 0.4])
def test_what_a_cut_shard_lacks_is_counted_as_skipped(tmp_path, compression, kept):
    datum.write(ROWS, tmp_path / "a", compression=compression, shuffle=False)
    (shard,) = (tmp_path / "a").glob("train-*")
    data = shard.read_bytes()
    shard.write_bytes(data[: int(kept * len(data))])
    loader = datum.load(tmp_path / "a").to_numpy("train", batch_size=8, on_error="skip")
    found = [x for batch in loader for x in batch["x"].tolist()]
    assert found == list(range(len(found)))
    assert (len(found) > 0) == (kept > 0)
    assert loader.report.skipped == len(ROWS) - len(found)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64", "float64"])
@pytest.mark.parametrize("full", [1, 3])
def test_large_values_before_a_record_without_any_stay_in_their_memory(dtype, full):
    """The mean record is far smaller than the required value: room for all rows is never made."""
    schema = Schema({"x": Feature(dtype, (100_000,))})
    whole = list(encode([{"x": np.arange(100_000).astype(dtype)}], schema))
    small = list(encode([{"y": 1}], Schema({"y": Feature("int64")})))
    with pytest.raises(SchemaError, match=f"record {full}, feature 'x': expected a value"):
        parse(whole * full + small * 50, schema)


@pytest.mark.parametrize("size", [10**9, 10**12])
def test_absent_values_of_a_claimed_shape_are_an_error_not_memory(tmp_path, size):
    datum.write([*ROWS, {"x": 1, "words": [], "rare": [1, 2, 3]}], tmp_path / "a")
    file = tmp_path / "a" / "datum.json"
    found = json.loads(file.read_text())
    found["schema"]["rare"]["shape"] = [size]
    file.write_text(json.dumps({**found, "checksum": None}))
    dataset = datum.load(tmp_path / "a")
    told = r"feature 'rare': absent values of shape \(\d+,\) in \d+ records need too much memory"
    with pytest.raises(SchemaError, match=told):
        next(iter(dataset.to_numpy("train", batch_size=32)))
    with pytest.raises(SchemaError, match=told):
        list(dataset["train"])


def test_an_image_of_a_claimed_size_takes_no_memory_before_one_is_absent(tmp_path):
    picture = np.zeros((4, 4, 3), np.uint8)
    schema = Schema({"image": Feature("uint8", (4, 4, 3), encoding="image")})
    datum.write([{"image": picture}], tmp_path / "a", schema=schema)
    file = tmp_path / "a" / "datum.json"
    found = json.loads(file.read_text())
    found["schema"]["image"]["shape"] = [10**6, 10**5, 3]
    file.write_text(json.dumps({**found, "checksum": None}))
    with pytest.raises(SourceError, match=r"expected an image of shape .* got \(4, 4, 3\)"):
        next(iter(datum.load(tmp_path / "a").to_numpy("train", batch_size=1)))
