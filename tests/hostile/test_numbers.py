"""Numbers at the edges of their types: kept exactly, or refused; never changed in silence."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import datum
from datum import Feature

MOMENT, SPAN = np.datetime64, np.timedelta64
FAR = MOMENT("9999-01-01", "D")


def read_back(source: Any, folder: Any, **options: Any) -> list[Any]:
    datum.write(source, folder, shuffle=False, progress=False, **options)
    return [record["x"] for record in datum.load(folder).to_numpy("train", batch_size=None)]


INTEGERS = [-(2**63), -(2**63) + 1, -1, 0, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]
TOO_LARGE = [-(2**63) - 1, 2**64, 2**100, -(10**40)]
SOURCES = {
    "rows": lambda value, _: [{"x": value}],
    "lists": lambda value, _: [{"x": [value]}],
    "nested": lambda value, _: [{"x": [[value], [value]]}],
    "columns": lambda value, _: {"x": [value]},
    "objects": lambda value, _: {"x": np.array([value], object)},
    "jsonl": lambda value, folder: written(folder / "a.jsonl", json.dumps({"x": value}) + "\n"),
    "csv": lambda value, folder: written(folder / "a.csv", f"x,y\n{value},1\n"),
}


def written(path: Any, text: str) -> Any:
    path.write_text(text)
    return path


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("value", [*INTEGERS, *TOO_LARGE])
def test_an_integer_is_kept_or_refused_whatever_holds_it(tmp_path, kind, value):
    source = SOURCES[kind](value, tmp_path)
    if value in TOO_LARGE and kind != "csv":  # whose cells stay text then
        with pytest.raises(datum.DatumError, match=r"'x'.*64 bits"):
            read_back(source, tmp_path / "out")
        return
    (found,) = read_back(source, tmp_path / "out")
    flat = np.asarray(found).reshape(-1).tolist()
    assert [int(one) for one in flat] == [value] * len(flat)


DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "float32", "float64"])
@pytest.mark.parametrize("kind", ["rows", "lists", "array", "arrow", "objects"])
def test_a_number_fits_the_dtype_of_its_schema_or_is_refused(tmp_path, dtype, kind):
    """Floats may be rounded to narrower ones, but neither overflow nor become integers."""
    numbers = [*INTEGERS, *TOO_LARGE, 1.5, -0.5, 1e300, math.nan, math.inf, 70000, 2**24 + 1, 300]
    for at, value in enumerate(numbers):
        is_large = isinstance(value, int) and not -(2**63) <= value < 2**64
        if is_large and kind in ("array", "arrow"):
            continue
        is_unsigned = isinstance(value, int) and value >= 2**63
        makes: dict[str, Any] = {
            "rows": lambda one: [{"x": one}],
            "lists": lambda one: [{"x": [one]}],
            "array": lambda one: {"x": np.array([one])},
            "arrow": lambda one, big=is_unsigned: pa.table(
                {"x": pa.array([one], pa.uint64() if big else None)}
            ),
            "objects": lambda one: {"x": np.array([one], object)},
        }
        shape = (1,) if kind == "lists" else ()
        schema = {"x": Feature(dtype, shape)}
        try:
            (found,) = read_back(makes[kind](value), tmp_path / f"{at}", schema=schema)
        except datum.DatumError:
            continue
        (got,) = np.asarray(found).reshape(-1).tolist()
        if isinstance(value, int):
            assert int(got) == value
        elif math.isfinite(value):
            assert math.isfinite(got), (value, got)
            assert got == np.dtype(dtype).type(value), (value, got)
        else:
            assert repr(got) == repr(value)


UNITS = ["D", "h", "m", "s", "ms", "us", "ns"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_times_of_every_unit_keep_every_bit(tmp_path, unit, kind):
    ticks = [-(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 1]
    array = np.array(ticks, f"{kind}[{unit}]")
    sources: dict[str, Any] = {"array": {"x": array}, "rows": [{"x": one} for one in array]}
    if unit in ("s", "ms", "us", "ns"):
        sources["arrow"] = pa.table({"x": pa.array(array)})
        sources["frame"] = pd.DataFrame({"x": array})
    for name, source in sources.items():
        found = read_back(source, tmp_path / name)
        assert np.array(found).astype(np.int64).tolist() == ticks, name


def mixed(*times: Any) -> list[Any]:
    """The same times as values of rows, in a list, in lists of lists, and as arrays."""
    return [
        [{"x": one} for one in times],
        [{"x": list(times)}],
        [{"x": [[one] for one in times]}],
        [{"x": [np.array([one]) for one in times]}],
        {"x": list(times)},
        {"x": [list(times)]},
        [{"x": [list(times)[:1], list(times)]}],
    ]


@pytest.mark.parametrize(
    "times",
    [
        (MOMENT(1, "ns"), FAR),
        (FAR, MOMENT(1, "ns")),
        (MOMENT(1, "ns"), dt.datetime(9999, 1, 1)),
        (MOMENT(1, "us"), MOMENT(2**62, "s")),
        (SPAN(1, "ns"), SPAN(2**62, "s")),
        (SPAN(1, "ns"), dt.timedelta(days=200_000)),
        (SPAN(1, "h"), SPAN(2**63 - 1, "D")),
    ],
    ids=str,
)
def test_times_that_no_common_unit_holds_are_refused(tmp_path, times):
    for at, source in enumerate(mixed(*times)):
        with pytest.raises(datum.DatumError, match="expected"):
            read_back(source, tmp_path / f"{at}")


def test_times_that_a_common_unit_holds_are_equal_in_it(tmp_path):
    times = MOMENT(1, "s"), MOMENT("2020-02-29", "D"), MOMENT(7, "us"), MOMENT("NaT", "ms")
    for at, source in enumerate(mixed(*times)):
        for found in read_back(source, tmp_path / f"{at}"):
            flat = found.values if isinstance(found, datum.Ragged) else np.asarray(found)
            for one in flat.reshape(-1):
                assert any(np.array_equal(one, time, equal_nan=True) for time in times)


@pytest.mark.parametrize(
    "value",
    [FAR, dt.datetime(9999, 1, 1), pd.Timestamp("9999-01-01").as_unit("s"), [FAR], [[FAR]]],
    ids=str,
)
def test_a_time_beyond_the_unit_of_its_schema_is_refused(tmp_path, value):
    shape = np.shape(value)
    schema = {"x": Feature("datetime64[ns]", shape, encoding="raw")}
    with pytest.raises(datum.SchemaError, match=r"expected datetime64\[ns\], got"):
        read_back([{"x": value}], tmp_path / "a", schema=schema)
    finer = [{"x": np.full(shape, MOMENT(1, "ns"))}]
    schema = {"x": Feature("datetime64[us]", shape, encoding="raw")}
    with pytest.raises(datum.SchemaError, match=r"expected datetime64\[us\], got"):
        read_back(finer, tmp_path / "b", schema=schema)


@pytest.mark.parametrize("value", [decimal.Decimal(10) ** 30, decimal.Decimal("0.5")])
def test_a_decimal_that_is_no_integer_of_64_bits_is_refused_as_one(tmp_path, value):
    with pytest.raises(datum.DatumError):
        read_back(pa.table({"x": [value]}), tmp_path / "a", schema={"x": Feature("int64")})


FALSE_COUNTS = [-1, 2**100, 1.5, math.nan, math.inf, "3", [3], True]


@pytest.mark.parametrize("value", FALSE_COUNTS, ids=repr)
def test_options_of_a_write_are_whole_numbers_in_their_range(tmp_path, value):
    for name in ("shards", "workers", "records_per_shard", "shard_bytes"):
        if value == 2**100 and name != "shards":
            continue  # nothing is sized by it
        with pytest.raises((ValueError, TypeError), match=name):
            datum.write([{"x": 1}], tmp_path / "a", **{name: value})


@pytest.mark.parametrize("value", FALSE_COUNTS, ids=repr)
def test_options_of_a_loader_are_whole_numbers_in_their_range(tmp_path, value):
    datum.write([{"x": i} for i in range(10)], tmp_path / "a")
    dataset = datum.load(tmp_path / "a")
    is_large = value == 2**100
    for name in () if is_large else ("batch_size", "epochs", "seed"):
        with pytest.raises((ValueError, TypeError), match=name):
            dataset.to_numpy("train", **({"batch_size": 2} | {name: value}))
    for host in ((value, 3), (0, value)):
        with pytest.raises((ValueError, TypeError), match="host"):
            dataset.to_numpy("train", batch_size=2, host=host)
    loader = dataset.to_numpy("train", batch_size=2)
    with pytest.raises((ValueError, TypeError), match="epoch"):
        loader.set_epoch(value)
    with pytest.raises((ValueError, TypeError), match="batches"):
        loader.state_dict(batches=value)


def test_a_seed_of_any_size_gives_an_order_of_its_own(tmp_path):
    datum.write([{"x": i} for i in range(100)], tmp_path / "a", shuffle=False)
    dataset = datum.load(tmp_path / "a")
    seeds = [0, 2**31, 2**32, 2**63, 2**64, 2**100]
    orders = {
        tuple(next(iter(dataset.to_numpy("train", batch_size=100, shuffle=True, seed=seed)))["x"])
        for seed in seeds
    }
    assert len(orders) == len(seeds)
