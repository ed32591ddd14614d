"""Datasets as tables of pandas, Polars and Arrow."""

import json
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image

import datum
from datum import CorruptRecordError, Feature, Schema, SchemaError, Sparse
from datum._read.tables import to_arrow, type_of
from datum.format import encode, parse

FRAME = pd.DataFrame(
    {
        "small": np.arange(4, dtype="int16"),
        "number": [1.5, np.nan, -2.0, 3.0],
        "text": ["a", "é", "", "d"],
        "maybe": pd.array([1, None, 2**60, 4], "Int64"),
        "flag": pd.array([True, None, False, True], "boolean"),
        "kind": pd.Categorical(["x", "y", None, "x"], categories=["x", "y", "unused"]),
        "when": pd.to_datetime(["2020-01-01", None, "2021-05-05", "2022-01-01"]),
        "span": pd.to_timedelta([1, 2, 3, None], "s"),
        "data": [b"a", b"", b"\xff\x00", b"z"],
        "grid": [np.full((2, 3), n, "float32") for n in range(4)],
        "list": [np.array([1]), np.array([], int), np.array([1, 2]), np.array([3])],
        "note": pd.array(["a", None, "b", "c"], "string"),
        "wave": [1j, 2j, 3, 4],
    }
)


def split_of(folder, source, **options):
    datum.write(source, folder, shuffle=False, progress=False, **options)
    return datum.load(folder)["train"]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    return split_of(tmp_path_factory.mktemp("tables") / "mixed", FRAME)


def test_a_frame_comes_back_as_it_was_written(mixed, tmp_path):
    frame = mixed.to_pandas()
    expected = FRAME.astype({"text": "string", "number": "float32"})
    pd.testing.assert_frame_equal(frame, expected)
    assert frame["grid"][1].shape == (2, 3)
    assert frame["grid"][1].dtype == np.float32
    again = split_of(tmp_path / "again", frame)
    assert again.schema == mixed.schema
    assert again.metadata["kind"] == mixed.metadata["kind"]
    pd.testing.assert_frame_equal(again.to_pandas(), frame)


def test_a_table_comes_back_as_it_was_written(tmp_path):
    columns = {
        "small": pa.array([1, 2, 3], pa.uint8()),
        "maybe": pa.array([1, None, 2**60], pa.int64()),
        "flag": pa.array([True, None, False]),
        "half": pa.array(np.array([0.5, 1, 2], np.float16)),
        "text": pa.array(["a", None, "ö"]),
        "data": pa.array([b"", b"\xff", None]),
        "list": pa.array([[1], None, []], pa.list_(pa.int64())),
        "texts": pa.array([["a", "b"], [], ["c"]]),
        "deep": pa.array([[[1.0], []], [], [[2.0, 3.0]]], pa.list_(pa.list_(pa.float32()))),
        "pair": pa.array([[1, 2], [3, 4], None], pa.list_(pa.int32(), 2)),
        "day": pa.array([0, None, 20000], pa.date32()),
        "when": pa.array([0, 1, None], pa.timestamp("ms")),
        "span": pa.array([0, None, -5], pa.duration("ns")),
        "kind": pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int32()), ["a", "b"]),
    }
    table = pa.table(columns)
    found = split_of(tmp_path / "table", table).to_arrow()
    found.validate(full=True)
    assert found.to_pydict() == table.to_pydict()
    assert found.schema.types == table.schema.types


def test_the_records_are_those_of_the_split_in_its_order(tmp_path):
    folder = tmp_path / "counted"
    datum.write({"x": range(50)}, folder, shards=3, seed=4, progress=False)
    ds = datum.load(folder)
    for name in ("train", "train[7:31]", "train[-5:]"):
        expected = [int(record["x"]) for record in ds[name]]
        assert ds[name].to_pandas()["x"].tolist() == expected
        assert ds[name].to_arrow()["x"].to_pylist() == expected
    assert ds["train"][10:12].to_pandas().index.tolist() == [0, 1]


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_large_table_is_made_of_chunks(tmp_path, monkeypatch, compression):
    monkeypatch.setattr("datum._read.tables.BATCH_RECORDS", 16)
    names = [f"class {n}" for n in range(5)]
    kinds = pd.Categorical.from_codes(np.arange(50) % 5, names)
    split = split_of(tmp_path / "x", {"x": range(50), "kind": kinds}, compression=compression)
    table = split.to_arrow()
    assert [len(chunk) for chunk in table["x"].chunks] == [16, 16, 16, 2]
    assert table["x"].to_pylist() == list(range(50))
    frame = split.to_pandas()
    assert frame["x"].dtype == np.int64
    assert frame["kind"].tolist() == table["kind"].to_pylist() == kinds.tolist()


def test_an_empty_part_has_the_types_of_the_whole(mixed):
    none = mixed[:0]
    assert len(none.to_pandas()) == none.to_arrow().num_rows == 0
    pd.testing.assert_series_equal(none.to_pandas().dtypes, mixed.to_pandas().dtypes)
    assert none.to_arrow().schema == mixed.to_arrow().schema


def test_columns_are_chosen_in_the_order_asked_for(mixed):
    assert list(mixed.to_pandas(columns=["text", "small"])) == ["text", "small"]
    assert mixed.to_arrow(["text", "small"]).column_names == ["text", "small"]
    assert list(mixed.to_pandas("text")) == ["text"]
    for make in (mixed.to_pandas, mixed.to_arrow):
        with pytest.raises(SchemaError, match=r"got 'smal'\nhint: did you mean 'small'\?"):
            make(columns=["smal"])
        with pytest.raises(ValueError, match="`columns` to name at least one feature"):
            make(columns=[])


def test_class_names_are_categories_unless_ids_are_asked_for(mixed):
    assert mixed.to_pandas()["kind"].cat.categories.tolist() == ["x", "y", "unused"]
    ids = mixed.to_pandas(class_names=False)["kind"]
    assert ids.dtype == "Int64"
    assert ids.tolist() == [0, 1, pd.NA, 0]
    assert mixed.to_arrow()["kind"].to_pylist() == ["x", "y", None, "x"]
    table = mixed.to_arrow(class_names=False)
    assert table["kind"].to_pylist() == [0, 1, None, 0]
    assert table["kind"].type == pa.int64()
    told = json.loads(table.schema.metadata[b"datum"])
    assert told["metadata"]["kind"]["class_names"] == ["x", "y", "unused"]


def test_an_id_without_a_name_is_told_with_its_record(tmp_path, monkeypatch):
    monkeypatch.setattr("datum._read.tables.BATCH_RECORDS", 2)
    kinds = pd.Categorical(["x", "y", "x", "y"])
    split = split_of(tmp_path / "x", {"kind": kinds})
    split.metadata = {"kind": {"class_names": ["x"]}}
    for make in (split.to_pandas, split.to_arrow):
        with pytest.raises(SchemaError, match=r"record 1, feature 'kind': expected a class of 0"):
            make()
        assert len(make(class_names=False)) == 4


@pytest.mark.parametrize("names", [["x", "x"], [], "xy", [1, 2], None, {"x": 0}])
def test_ids_stay_where_names_are_none(tmp_path, names):
    split = split_of(tmp_path / "x", {"kind": pd.Categorical(["x", "y"])})
    split.metadata = {"kind": {"class_names": names}}
    assert split.to_pandas()["kind"].tolist() == [0, 1]
    assert split.to_arrow()["kind"].to_pylist() == [0, 1]


def test_images_are_the_bytes_that_are_stored(tmp_path):
    pictures = [Image.new("RGB", (4, 3), (n, 0, 0)) for n in range(2)]
    split = split_of(tmp_path / "x", [{"image": picture} for picture in pictures])
    stored = split.read([0, 1])["image"].to_list()
    assert stored[0].startswith(b"\x89PNG")
    assert split.to_pandas()["image"].tolist() == stored
    assert split.to_arrow()["image"].to_pylist() == stored
    assert split.to_arrow()["image"].type == pa.binary()


def test_sparse_values_are_sparse(tmp_path):
    value = Sparse(np.array([[1], [4]]), np.array([0.5, 2.0], np.float32), (6,))
    schema = Schema({"x": Feature("float32", (6,), encoding="sparse")})
    split = split_of(tmp_path / "x", [{"x": value}, {"x": value}], schema=schema)
    cell = split.to_pandas()["x"][1]
    assert isinstance(cell, Sparse)
    np.testing.assert_array_equal(cell.to_dense(), [0, 0.5, 0, 0, 2, 0])
    assert split.to_arrow()["x"].to_pylist() == [{"indices": [1, 4], "values": [0.5, 2.0]}] * 2


def test_what_may_be_absent_is_missing_and_never_zero(tmp_path):
    dtypes = ["bool", "uint8", "int64", "float16", "float32", "float64", "complex64"]
    dtypes += [
        "str",
        "bytes",
        "datetime64[D]",
        "datetime64[h]",
        "timedelta64[m]",
        "timedelta64[ns]",
    ]
    schema = Schema({dtype: Feature(dtype, optional=True) for dtype in dtypes})
    split = split_of(tmp_path / "x", [{}, {}], schema=schema)
    frame, table = split.to_pandas(), split.to_arrow()
    assert frame.isna().all(axis=None)
    assert all(column.null_count == 2 for column in table.columns)
    assert [str(dtype) for dtype in frame.dtypes] == [
        *("boolean", "UInt8", "Int64", "float16", "float32", "float64", "complex64"),
        *("string", "object", "datetime64[s]", "datetime64[s]", "timedelta64[s]"),
        "timedelta64[ns]",
    ]


def test_a_default_takes_the_place_of_what_is_absent(tmp_path):
    schema = Schema({"x": Feature("int32", default=7)})
    split = split_of(tmp_path / "x", [{}, {"x": 3}], schema=schema)
    assert split.to_pandas()["x"].tolist() == [7, 3]
    assert split.to_pandas()["x"].dtype == np.int32
    assert split.to_arrow()["x"].to_pylist() == [7, 3]


def test_bfloat16_is_float32(tmp_path):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    schema = Schema({"x": Feature("bfloat16")})
    split = split_of(tmp_path / "x", [{"x": bfloat16(0.5)}, {"x": bfloat16(3)}], schema=schema)
    assert split.to_pandas()["x"].dtype == np.float32
    assert split.to_pandas()["x"].tolist() == [0.5, 3.0]


def damage(folder):
    """Change a byte in the middle of the one shard."""
    (shard,) = folder.glob("*.tfrecord*")
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 0x5A
    shard.write_bytes(data)


def test_damage_is_an_error_as_in_reading(tmp_path):
    split = split_of(tmp_path / "x", {"x": range(100)})
    damage(tmp_path / "x")
    for make in (split.to_pandas, split.to_arrow):
        with pytest.raises(CorruptRecordError, match=r"record \d+"):
            make()


def test_damage_that_the_dataset_leaves_out_is_left_out(tmp_path):
    split_of(tmp_path / "x", {"x": range(100)})
    damage(tmp_path / "x")
    (tmp_path / "x/datum.json").unlink()  # now files that nobody described
    with pytest.warns(UserWarning, match="damage|skip|left out"):
        split = datum.load(tmp_path / "x", on_error="skip")["train"]
    expected = [int(record["x"]) for record in split]
    assert 90 < len(expected) < 100
    assert split.to_pandas()["x"].tolist() == expected
    assert split.to_arrow()["x"].to_pylist() == expected


def test_without_pandas_it_is_told_what_to_install(mixed, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(datum.MissingDependencyError, match=r"Split\.to_pandas.*\n?.*pandas"):
        mixed.to_pandas()


def test_a_dataset_tells_that_its_splits_are_tables(tmp_path):
    datum.write({"x": [1]}, tmp_path / "x", progress=False)
    ds = datum.load(tmp_path / "x")
    for name in ("to_pandas", "to_arrow"):
        with pytest.raises(AttributeError, match=rf"hint: ds\['train'\]\.{name}\(\)"):
            getattr(ds, name)
    with pytest.raises(AttributeError, match="no attribute 'to_pands'$"):
        ds.to_pands()


BF16 = pytest.importorskip("ml_dtypes").bfloat16

CASES = [
    (Feature("bool"), [True, False], pa.bool_(), None),
    (Feature("uint64"), [2**64 - 1, 0], pa.uint64(), None),
    (Feature("float16"), [0.5, 1.5], pa.float16(), None),
    (Feature("bfloat16"), [BF16(0.5), BF16(3)], pa.float32(), [0.5, 3.0]),
    (Feature("float64", (2,)), [[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2), None),
    (
        Feature("int8", (2, 1)),
        [[[1], [2]], [[3], [4]]],
        pa.list_(pa.list_(pa.int8(), 1), 2),
        None,
    ),
    (Feature("int64", (None,)), [[], [1, 2]], pa.list_(pa.int64()), None),
    (
        Feature("float32", (None, None)),
        [[[1.0], []], [[2.0, 3.0]]],
        pa.list_(pa.list_(pa.float32())),
        None,
    ),
    (
        Feature("float32", (None, 2)),
        [[], [[1.0, 2.0]]],
        pa.list_(pa.list_(pa.float32(), 2)),
        None,
    ),
    (Feature("str"), ["a", "ä"], pa.string(), None),
    (Feature("bytes", (2,)), [[b"a", b""], [b"\xff", b"b"]], pa.list_(pa.binary(), 2), None),
    (Feature("str", (None,)), [["a"], []], pa.list_(pa.string()), None),
    (Feature("int64", (0,)), [[], []], pa.list_(pa.int64(), 0), None),
    (
        Feature("complex64"),
        [1 + 2j, 0j],
        pa.struct([("real", pa.float32()), ("imag", pa.float32())]),
        [{"real": 1.0, "imag": 2.0}, {"real": 0.0, "imag": 0.0}],
    ),
    (Feature("int64", optional=True), [None, 4], pa.int64(), None),
    (Feature("str", optional=True), [None, "a"], pa.string(), None),
    (Feature("int64", (None,), optional=True), [None, [4]], pa.list_(pa.int64()), None),
    (Feature("float32", (2,), optional=True), [None, [1.0, 2.0]], pa.list_(pa.float32(), 2), None),
    (
        Feature("uint8", (None, 1, None), encoding="raw"),
        [np.ones((2, 1, 2), np.uint8), np.zeros((0, 1, 3), np.uint8)],
        pa.list_(pa.list_(pa.list_(pa.uint8()), 1)),
        [[[[1, 1]], [[1, 1]]], []],
    ),
    (
        Feature("uint8", (None, None), encoding="raw", optional=True),
        [np.ones((2, 1), np.uint8), None],
        pa.list_(pa.list_(pa.uint8())),
        [[[1], [1]], None],
    ),
]


@pytest.mark.parametrize(("feature", "values", "kind", "expected"), CASES, ids=lambda one: str(one))
def test_columns_have_the_type_of_their_feature_and_its_values(feature, values, kind, expected):
    assert type_of(feature) == kind
    schema = Schema({"x": feature})
    rows = [{} if value is None else {"x": value} for value in values]
    array = to_arrow(parse(encode(rows, schema), schema)["x"], feature)
    assert array.type == kind
    array.validate(full=True)
    assert array.to_pylist() == (values if expected is None else expected)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("datetime64[ns]", pa.timestamp("ns")),
        ("datetime64[us]", pa.timestamp("us")),
        ("datetime64[h]", pa.timestamp("s")),
        ("datetime64[D]", pa.date32()),
        ("timedelta64[ms]", pa.duration("ms")),
        ("timedelta64[D]", pa.duration("s")),
    ],
)
def test_times_are_times(dtype, kind):
    feature = Feature(dtype)
    values = np.array([3, -4, np.iinfo(np.int64).min]).view(dtype)
    array = to_arrow(values, feature)
    assert array.type == type_of(feature) == kind
    assert array.null_count == 1
    back = array.to_numpy(zero_copy_only=False)[:2]
    assert (back == values[:2]).all()


def test_sparse_rows_are_indices_and_values():
    feature = Feature("float32", (5,), encoding="sparse")
    schema = Schema({"x": feature})
    rows = [{"x": np.array([0, 0, 2, 0, 1], np.float32)}, {"x": np.zeros(5, np.float32)}]
    from datum import Sparse

    given = [{"x": Sparse(np.argwhere(row["x"]), row["x"][row["x"] != 0], (5,))} for row in rows]
    array = to_arrow(parse(encode(given, schema), schema)["x"], feature)
    assert array.to_pylist() == [
        {"indices": [2, 4], "values": [2.0, 1.0]},
        {"indices": [], "values": []},
    ]
    assert array.type == type_of(feature)


def test_sparse_places_in_two_dimensions_are_pairs():
    feature = Feature("int64", (3, 4), encoding="sparse")
    from datum import Sparse

    column = Sparse(np.array([[0, 1, 2], [1, 0, 3]]), np.array([7, 8]), (2, 3, 4))
    array = to_arrow(column, feature)
    assert array.to_pylist() == [
        {"indices": [[1, 2]], "values": [7]},
        {"indices": [[0, 3]], "values": [8]},
    ]
    assert array.type == type_of(feature)


def test_images_are_their_bytes():
    assert type_of(Feature("uint8", (None, None, 3), encoding="image")) == pa.binary()
