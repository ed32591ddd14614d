"""Floats are stored as float32, which every reader reads, unless float32 cannot serve them."""

import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from sklearn.preprocessing import OneHotEncoder

import datum
from datum import Feature, Schema, SchemaError
from datum._write import spill
from datum._write.report import FloatReport
from datum.columns import Masked, Ragged
from datum.format import RecordFile
from tests.unit.write.datasets import digests, read, values, write

RARE = 1_700_000_000.125  # a time in seconds, which float32 would move by a minute


def write_csv(path, numbers):
    path.write_text("x\n" + "".join(f"{number!r}\n" for number in numbers))
    return path


def write_lines(path, numbers):
    path.write_text("".join(json.dumps({"x": number}) + "\n" for number in numbers))
    return path


def write_parquet(path, numbers):
    pq.write_table(pa.table({"x": pa.array(numbers, pa.float64())}), path)
    return path


# How numbers may come, given a folder.
SOURCES = {
    "rows": lambda folder, numbers: [{"x": number} for number in numbers],
    "generator": lambda folder, numbers: ({"x": number} for number in numbers),
    "scalars of NumPy": lambda folder, numbers: [{"x": np.float64(number)} for number in numbers],
    "columns": lambda folder, numbers: {"x": np.array(numbers)},
    "lists": lambda folder, numbers: {"x": list(numbers)},
    "pandas": lambda folder, numbers: pd.DataFrame({"x": numbers}),
    "Arrow": lambda folder, numbers: pa.table({"x": pa.array(numbers, pa.float64())}),
    "CSV": lambda folder, numbers: write_csv(folder / "in.csv", numbers),
    "JSON lines": lambda folder, numbers: write_lines(folder / "in.jsonl", numbers),
    "Parquet": lambda folder, numbers: write_parquet(folder / "in.parquet", numbers),
}


@pytest.fixture(params=list(SOURCES))
def make_source(request, tmp_path):
    """Makes a source of the feature `x` of some kind."""
    return lambda numbers: SOURCES[request.param](tmp_path, numbers)


def plain(value):
    """Nested lists of numbers."""
    if isinstance(value, (Ragged, list)):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def example(out, tf):
    """The first record of a dataset as TensorFlow reads it."""
    path = min(out.glob("train-*.tfrecord"))
    return next(iter(tf.data.TFRecordDataset(str(path))))


def test_any_source_of_doubles_is_read_as_float32_by_tensorflow(make_source, tmp_path):
    tf = pytest.importorskip("tensorflow")
    report = write(make_source([0.9876, 0.5]), tmp_path / "out", shuffle=False)
    spec = {"x": tf.io.FixedLenFeature([], tf.float32)}
    found = tf.io.parse_single_example(example(tmp_path / "out", tf), spec)
    assert found["x"].numpy() == np.float32(0.9876)
    assert report.floats.rounded == ("x",)
    assert "rounded to float32: x (floats='float64' keeps every bit)" in str(report)
    assert datum.load(tmp_path / "out").metadata["x"] == {"rounded_from": "float64"}


def test_storage_does_not_depend_on_how_many_bits_values_have(make_source, tmp_path):
    report = write(make_source([0.5, 0.25]), tmp_path / "out")
    assert datum.load(tmp_path / "out").schema["x"] == Feature("float32")
    assert report.floats.rounded == ()
    assert "float32" not in str(report)


def test_a_value_that_float32_cannot_serve_keeps_all_exact(make_source, tmp_path):
    numbers = [0.1 * i for i in range(9_000)] + [RARE, 0.3]
    report = write(make_source(numbers), tmp_path / "out", shuffle=False)
    assert datum.load(tmp_path / "out").schema["x"] == Feature("float64")
    assert values(tmp_path / "out") == numbers
    assert report.floats.rounded == ()
    assert report.floats.kept == {"x": ("train", 9_000, RARE)}
    line = f"kept as float64: x, as float32 cannot hold {RARE!r} (record 9000 of 'train')"
    assert line in str(report)
    assert datum.load(tmp_path / "out").verify(deep=True).is_sound


def test_float64_keeps_every_bit_if_asked_to(make_source, tmp_path):
    numbers = [0.1, -math.pi, 5e-324]
    report = write(make_source(numbers), tmp_path / "out", shuffle=False, floats="float64")
    assert datum.load(tmp_path / "out").schema["x"] == Feature("float64")
    assert values(tmp_path / "out") == numbers
    assert report.floats == FloatReport()
    assert "float32" not in str(report)


def test_a_schema_says_it_for_a_feature(make_source, tmp_path):
    for dtype in ("float32", "float64"):
        schema = {"x": Feature(dtype)}
        write(make_source([RARE, 0.1]), tmp_path / dtype, shuffle=False, schema=schema)
        assert datum.load(tmp_path / dtype).schema == Schema(schema)
        found = [np.dtype(dtype).type(number) for number in (RARE, 0.1)]
        assert values(tmp_path / dtype) == found
        assert datum.load(tmp_path / dtype).verify(deep=True).is_sound


def test_a_schema_of_float32_reports_what_it_rounds(make_source, tmp_path):
    report = write(make_source([0.1]), tmp_path / "out", schema=Schema({"x": Feature("float32")}))
    assert report.floats.rounded == ("x",)


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (math.inf, "float32"),
        (-math.inf, "float32"),
        (math.nan, "float32"),
        (-0.0, "float32"),
        (5e-324, "float32"),
        (1e-40, "float32"),
        (2.0**24, "float32"),
        (2.0**30, "float32"),
        (16_777_215.5, "float32"),
        (16_777_217.0, "float64"),
        (-16_777_217.0, "float64"),
        (3.5e38, "float64"),
        (-1e300, "float64"),
    ],
)
def test_only_overflow_and_changes_from_2_to_the_24_on_need_float64(number, dtype, tmp_path):
    write([{"x": 0.5}, {"x": number}], tmp_path / "rows", shuffle=False)
    write({"x": np.array([0.5, number])}, tmp_path / "columns", shuffle=False)
    for name in ("rows", "columns"):
        assert datum.load(tmp_path / name).schema["x"] == Feature(dtype)
        found = values(tmp_path / name)[1]
        assert str(found) == str(np.dtype(dtype).type(number))


@pytest.mark.parametrize("count", [1, 9_000])
@pytest.mark.parametrize(
    ("integer", "dtype"), [(7, "float32"), (2**25, "float32"), (2**24 + 1, "float64")]
)
def test_integers_among_floats_count_too(tmp_path, count, integer, dtype):
    rows = [{"x": integer}] * count + [{"x": 0.1}]
    report = write(rows, tmp_path / "rows", shuffle=False)
    write(rows[::-1], tmp_path / "reversed", shuffle=False)
    assert datum.load(tmp_path / "rows").schema["x"] == Feature(dtype)
    assert datum.load(tmp_path / "reversed").schema["x"] == Feature(dtype)
    assert values(tmp_path / "rows") == values(tmp_path / "reversed")[::-1]
    assert values(tmp_path / "rows")[0] == integer
    assert dict(report.floats.kept) == ({} if dtype == "float32" else {"x": ("train", 0, integer)})


def test_splits_agree_on_one_type(tmp_path):
    write({"train": [{"x": 0.1}] * 9, "val": [{"x": RARE}]}, tmp_path / "rows")
    columns = {"train": {"x": np.full(9, 0.1)}, "val": {"x": np.array([1, RARE])}}
    report = write(columns, tmp_path / "columns")
    for name in ("rows", "columns"):
        assert datum.load(tmp_path / name).schema["x"] == Feature("float64")
        assert set(values(tmp_path / name)) == {0.1}
    assert report.floats.kept == {"x": ("val", 1, RARE)}


def test_features_are_judged_one_by_one(tmp_path):
    columns = {name: np.full(9_000, 0.1) for name in "abcd"}
    columns["b"][4_500] = RARE
    columns["d"][8_000] = 1e300
    report = write(columns, tmp_path / "columns")
    rows = pd.DataFrame(columns).to_dict("records")
    assert write(rows, tmp_path / "rows").floats == report.floats
    assert report.floats.rounded == ("a", "c")
    assert report.floats.kept == {"b": ("train", 4_500, RARE), "d": ("train", 8_000, 1e300)}
    shard = "train-00000-of-00001.tfrecord"
    assert digests(tmp_path / "rows")[shard] == digests(tmp_path / "columns")[shard]


@pytest.mark.parametrize("is_wide", [False, True])
def test_any_number_of_workers_writes_the_same(tmp_path, is_wide):
    numbers = np.random.default_rng(0).random(20_000)
    numbers[[12_345, 17_000]] += 1e9 * is_wide
    rows = [{"x": number} for number in numbers.tolist()]
    for workers in (1, 3):
        write({"x": numbers}, tmp_path / f"columns{workers}", workers=workers, shards=3)
        write(lambda: iter(rows), tmp_path / f"rows{workers}", workers=workers, shards=3)
    first = digests(tmp_path / "columns1")
    for name in ("columns3", "rows1", "rows3"):
        found = digests(tmp_path / name)
        assert {key: found[key] for key in found if key.startswith("train")} == {
            key: first[key] for key in first if key.startswith("train")
        }
        told = datum.load(tmp_path / name).metadata
        assert told == datum.load(tmp_path / "columns1").metadata


def test_records_on_disk_are_made_exact_again(tmp_path, monkeypatch):
    monkeypatch.setattr(spill, "HELD_BYTES", 100_000)
    monkeypatch.setattr(spill, "MAX_RUN_BYTES", 3_000)
    numbers = [*np.random.default_rng(0).random(20_000).tolist(), RARE]
    for shuffle in (True, False):
        out = tmp_path / str(shuffle)
        write(({"x": x, "y": x} for x in numbers), out, schema={"y": Feature("float32")})
        assert sorted(values(out)) == sorted(numbers)
        assert sorted(values(out, "y")) == sorted(np.float32(numbers).tolist())
        assert datum.load(out).verify(deep=True).is_sound


def test_records_beside_bad_ones_are_made_exact_again(tmp_path):
    rows = [{"x": 0.1}, {"x": "no"}, {"x": 0.2}, {"x": "no"}, {"x": [0.3]}, {"x": 0.4}]
    write(rows, tmp_path / "narrow", shuffle=False, on_error="skip")
    assert values(tmp_path / "narrow") == np.float32([0.1, 0.2, 0.4]).tolist()
    write([*rows, {"x": RARE}], tmp_path / "wide", shuffle=False, on_error="skip")
    assert values(tmp_path / "wide") == [0.1, 0.2, 0.4, RARE]
    assert datum.load(tmp_path / "wide").metadata["x"]["kept_float64"]["record"] == 6


@pytest.mark.parametrize(
    ("column", "feature"),
    [
        ([[0.1, RARE], [0.2]], Feature("float64", (None,))),
        ([[[0.1], [0.2, RARE]], [[0.3]]], Feature("float64", (None, None), encoding="values")),
        ([[[0.1, RARE]], [[0.2, 0.3]]], Feature("float64", (1, 2))),
        ([np.zeros((2, 3)), np.full((3, 2), RARE)], Feature("float64", (None, None))),
        ([None, RARE], Feature("float64", optional=True)),
    ],
    ids=repr,
)
def test_values_of_any_shape_stay_exact(tmp_path, column, feature):
    write([{"x": value} for value in column], tmp_path / "out", shuffle=False)
    assert datum.load(tmp_path / "out").schema["x"] == feature
    assert [plain(found) for found in values(tmp_path / "out")] == [plain(one) for one in column]


def test_sparse_values_follow_the_rule(tmp_path):
    matrix = scipy.sparse.csr_matrix([[0, 0.1], [0.2, 0]])
    report = write({"x": matrix}, tmp_path / "narrow", shuffle=False)
    assert datum.load(tmp_path / "narrow").schema["x"] == Feature(
        "float32", (2,), encoding="sparse"
    )
    assert report.floats.rounded == ("x",)
    write([{"x": row} for row in (matrix * RARE)], tmp_path / "wide", shuffle=False)
    assert datum.load(tmp_path / "wide").schema["x"].dtype == "float64"
    found = [row["x"].to_dense().tolist() for row in read(tmp_path / "wide")]
    assert found == (matrix * RARE).toarray().tolist()


def test_what_encoders_give_follows_the_rule(tmp_path):
    rows = [{"x": "a"}, {"x": "b"}]
    for floats in ("float32", "float64"):
        encoders = {"x": OneHotEncoder(sparse_output=False)}
        write(rows, tmp_path / floats, encoders=encoders, shuffle=False, floats=floats)
        write({"x": ["a", "b"]}, tmp_path / f"columns-{floats}", encoders=encoders, floats=floats)
        for name in (floats, f"columns-{floats}"):
            ds = datum.load(tmp_path / name)
            assert ds.schema["x"] == Feature(floats, (2,))
            assert ds.metadata["x"]["stored_dtype"] == floats
        assert [row["x"].tolist() for row in read(tmp_path / floats)] == [[1, 0], [0, 1]]


def test_values_that_are_not_there_do_not_count(tmp_path):
    column = Masked(np.array([0.5, RARE]), np.array([True, False]))
    assert write({"x": column}, tmp_path / "out").floats == FloatReport()
    assert datum.load(tmp_path / "out").schema["x"] == Feature("float32", optional=True)


def test_floats_of_16_and_32_bits_stay_what_they_are(tmp_path):
    columns = {"half": np.full(2, 0.1, np.float16), "single": np.full(2, 1e30, np.float32)}
    report = write(columns, tmp_path / "out")
    assert dict(datum.load(tmp_path / "out").schema) == {
        "half": Feature("float16"),
        "single": Feature("float32"),
    }
    assert report.floats == FloatReport()


def test_large_arrays_of_floats_lie_in_lists(tmp_path):
    tf = pytest.importorskip("tensorflow")
    array = np.random.default_rng(0).random((2, 20, 30))
    write([{"x": row} for row in array], tmp_path / "out", shuffle=False)
    write({"x": array.astype(np.float32)}, tmp_path / "columns", shuffle=False)
    spec = {"x": tf.io.FixedLenFeature([20, 30], tf.float32)}
    for name in ("out", "columns"):
        assert datum.load(tmp_path / name).schema["x"] == Feature("float32", (20, 30))
        found = tf.io.parse_single_example(example(tmp_path / name, tf), spec)
        assert (found["x"].numpy() == array[0].astype(np.float32)).all()


# Adding to a dataset.


def test_records_that_are_added_take_the_type_of_those_that_are_there(make_source, tmp_path):
    write([{"x": 0.5}], tmp_path / "out", shuffle=False)
    report = write(make_source([0.1]), tmp_path / "out", append=True)
    assert values(tmp_path / "out") == [0.5, np.float32(0.1)]
    assert report.floats.rounded == ("x",)
    assert datum.load(tmp_path / "out").metadata["x"] == {"rounded_from": "float64"}


def test_floats_are_added_exactly_where_they_are_exact(make_source, tmp_path):
    write([{"x": 0.1}], tmp_path / "out", shuffle=False, floats="float64")
    write(make_source([0.2]), tmp_path / "out", append=True)
    assert values(tmp_path / "out") == [0.1, 0.2]


def test_a_value_that_cannot_be_added_is_named(make_source, tmp_path):
    write([{"x": 0.5}], tmp_path / "out", shuffle=False)
    with pytest.raises(SchemaError, match=r"record 1, feature 'x': expected .* float32.*got 17"):
        write(make_source([0.1, RARE]), tmp_path / "out", append=True)
    assert values(tmp_path / "out") == [0.5]
    write(make_source([0.1, RARE]), tmp_path / "out", append=True, schema={"x": Feature("float32")})
    assert len(values(tmp_path / "out")) == 3


def test_raw_floats_are_added_raw(tmp_path):
    schema = {"x": Feature("float32", (2,), encoding="raw")}
    write([{"x": [0.5, 1]}], tmp_path / "out", schema=schema)
    write([{"x": [0.25, 2.5]}], tmp_path / "out", append=True)
    assert datum.load(tmp_path / "out").schema == Schema(schema)


# Datasets that are written again.


def test_a_dataset_that_is_written_again_follows_the_rule(tmp_path):
    columns = {"x": np.array([0.1, 0.2]), "t": np.array([RARE, 1.5])}
    write(columns, tmp_path / "exact", floats="float64", shuffle=False)
    report = write(datum.load(tmp_path / "exact"), tmp_path / "out", shuffle=False)
    assert dict(datum.load(tmp_path / "out").schema) == {
        "x": Feature("float32"),
        "t": Feature("float64"),
    }
    assert report.floats.rounded == ("x",)
    assert report.floats.kept == {"t": ("train", 0, RARE)}
    assert values(tmp_path / "out", "t") == [RARE, 1.5]
    assert datum.load(tmp_path / "out").verify(deep=True).is_sound


def test_a_ragged_column_of_doubles_is_rounded_once(tmp_path):
    column = Ragged.from_rows([[0.1], [], [0.2, 0.3]])
    write({"x": column}, tmp_path / "out", shuffle=False)
    assert [row.tolist() for row in values(tmp_path / "out")] == [
        np.float32(row).tolist() for row in ([0.1], [], [0.2, 0.3])
    ]
    records = RecordFile(tmp_path / "out" / "train-00000-of-00001.tfrecord")
    assert len(records) == 3
