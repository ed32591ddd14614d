"""Tables and values of other packages: each is written, or refused with a hint."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import datum
from datum import Feature
from datum.errors import DatumError, SourceError


@pytest.fixture
def write(tmp_path):
    """Write a source; give the report and the dataset."""

    def write(source, **options):
        report = datum.write(
            source, tmp_path / "out", shuffle=False, progress=False, overwrite=True, **options
        )
        return report, datum.load(tmp_path / "out")

    return write


# pandas


def test_an_index_of_texts_is_kept(write):
    pandas = pytest.importorskip("pandas")
    _, ds = write(pandas.DataFrame({"x": [1, 2]}, index=["a", "b"]))
    assert [row["index"] for row in ds["train"]] == ["a", "b"]
    pairs = pandas.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    _, ds = write(pandas.DataFrame({"x": [1, 2]}, index=pairs))
    assert list(ds.schema) == ["index_0", "index_1", "x"]
    _, ds = write(pandas.DataFrame({"index": [1, 2]}, index=["a", "b"]))
    assert list(ds.schema) == ["index_of_frame", "index"]


def test_an_index_of_row_numbers_is_left_out_with_a_note(write):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1, 2, 3]})
    report, ds = write(frame)
    assert not report.notes
    report, ds = write(frame[frame.x > 1])
    assert list(ds.schema) == ["x"]
    assert "the index of the DataFrame, integers without a name, is left out" in str(report)
    _, ds = write(frame[frame.x > 1].reset_index())
    assert [row["index"] for row in ds["train"]] == [1, 2]


# Polars


def test_categories_of_polars_are_ids_with_names(write):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {
            "category": polars.Series(["a", "b"], dtype=polars.Categorical),
            "enum": polars.Series(["v", "u"], dtype=polars.Enum(["u", "v", "w"])),
            "text": ["x", None],
            "pair": polars.Series([[1, 2], [3, 4]], dtype=polars.Array(polars.Int32, 2)),
        }
    )
    _, ds = write(frame)
    assert ds.metadata["enum"]["class_names"] == ["u", "v", "w"]
    assert [row["enum"] for row in ds["train"]] == [1, 0]
    names = ds.metadata["category"]["class_names"]
    assert [names[row["category"]] for row in ds["train"]] == ["a", "b"]
    assert ds.schema["pair"] == Feature("int32", (2,))
    assert ds.schema["text"].optional


def test_wide_integers_of_polars_are_int64_or_refused(write):
    polars = pytest.importorskip("polars")
    _, ds = write(polars.DataFrame({"x": polars.Series([1, -2], dtype=polars.Int128)}))
    assert [row["x"] for row in ds["train"]] == [1, -2]
    with pytest.raises(SourceError, match=r"64 bits, got larger ones\nhint: "):
        write(polars.DataFrame({"x": polars.Series([1, 2**70], dtype=polars.Int128)}))


def test_a_series_and_a_lazy_frame_of_polars(write):
    polars = pytest.importorskip("polars")
    _, ds = write(polars.Series("q", [1, 2]))
    assert list(ds.schema) == ["q"]
    with pytest.raises(SourceError, match=r"got a LazyFrame\nhint: frame.collect\(\)"):
        write(polars.LazyFrame({"x": [1]}))


# Decimals

DECIMALS = [Decimal("1.50"), Decimal("2.25")]


def decimal_sources(folder):
    table = pa.table({"x": DECIMALS})
    pyarrow.parquet.write_table(table, folder / "x.parquet")
    yield [{"x": value} for value in DECIMALS]
    yield lambda: ({"x": value} for value in DECIMALS)
    yield {"x": DECIMALS}
    yield table
    yield folder / "x.parquet"
    yield pytest.importorskip("pandas").DataFrame({"x": DECIMALS})
    yield pytest.importorskip("polars").DataFrame({"x": DECIMALS})


@pytest.mark.parametrize("at", range(7))
def test_decimals_are_what_the_schema_says(write, tmp_path, at):
    source = list(decimal_sources(tmp_path))[at]
    with pytest.raises(DatumError, match=r"[dD]ecimal.*\nhint: schema="):
        write(source)
    for dtype, wanted in (("float32", [1.5, 2.25]), ("float64", [1.5, 2.25])):
        _, ds = write(source, schema={"x": Feature(dtype)})
        assert [row["x"] for row in ds["train"]] == wanted
        assert datum.plan(source, schema={"x": Feature(dtype)}).schema["x"].dtype == dtype
    _, ds = write(source, schema={"x": Feature("str")})
    assert [Decimal(row["x"]) for row in ds["train"]] == DECIMALS
    with pytest.raises(DatumError):
        write(source, schema={"x": Feature("int64")})


# Files of arrays


def test_sparse_matrices_that_scipy_saved_are_read(write, tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.array([[0, 1.5, 0], [2, 0, 0]], np.float32)
    for kind in ("csr", "coo", "csc"):
        sparse.save_npz(tmp_path / "m.npz", sparse.coo_array(dense).asformat(kind))
        _, ds = write(tmp_path / "m.npz")
        assert ds.schema["x"] == Feature("float32", (3,), encoding="sparse")
        assert [row["x"].to_dense().tolist() for row in ds["train"]] == dense.tolist()


@pytest.mark.parametrize("pattern", ["{feature}_{split}", "{split}_{feature}"])
def test_arrays_named_after_splits_are_splits(write, tmp_path, pattern):
    arrays = {}
    for split, count in (("train", 4), ("test", 2)):
        for feature in ("x", "y"):
            name = pattern.format(feature=feature, split=split)
            arrays[name] = np.arange(count, dtype=np.int32)
    np.savez(tmp_path / "mnist.npz", **arrays)
    _, ds = write(tmp_path / "mnist.npz")
    assert {name: len(ds[name]) for name in ds.splits} == {"train": 4, "test": 2}
    assert dict(ds.schema) == {"x": Feature("int32"), "y": Feature("int32")}
    with pytest.raises(SourceError, match="hint: splits are a dict of tables"):
        write(arrays)


def test_one_name_like_a_split_is_a_column(write, tmp_path):
    np.savez(tmp_path / "a.npz", x_train=np.arange(3), weight=np.arange(3))
    _, ds = write(tmp_path / "a.npz")
    assert set(ds.schema) == {"x_train", "weight"}


# Tensors


def test_sparse_tensors_of_tensorflow(write):
    tf = pytest.importorskip("tensorflow")
    dense = [[1, 0, 2], [0, 0, 3]]
    for source in (
        {"x": tf.sparse.from_dense(dense)},
        [{"x": tf.sparse.from_dense(row)} for row in dense],
        {"x": tf.SparseTensor([[1, 2], [0, 2], [0, 0]], [3, 2, 1], [2, 3])},  # in no order
    ):
        _, ds = write(source)
        assert ds.schema["x"] == Feature("int32", (3,), encoding="sparse")
        assert [row["x"].to_dense().tolist() for row in ds["train"]] == dense


def test_tensors_of_tensorflow_of_other_kinds(write):
    tf = pytest.importorskip("tensorflow")
    _, ds = write([{"x": tf.ragged.constant([[1], [2, 3]])}])
    assert [row.tolist() for row in ds["train"][0]["x"]] == [[1], [2, 3]]
    _, ds = write(tf.zeros((3, 2)))
    assert ds.schema["x"] == Feature("float32", (2,))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_tensors_of_torch(write):
    torch = pytest.importorskip("torch")
    dense = torch.tensor([[1.0, 0, 2], [0, 0, 3]])
    for source in (
        {"x": dense.to_sparse()},
        {"x": dense.to_sparse_csr()},
        [{"x": row.to_sparse()} for row in dense],
    ):
        _, ds = write(source)
        assert ds.schema["x"] == Feature("float32", (3,), encoding="sparse")
        assert [row["x"].to_dense().tolist() for row in ds["train"]] == dense.tolist()


def test_other_tensors_of_torch(write):
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    half = torch.tensor([[1.5, -2.0], [3.0, 0.1]], dtype=torch.bfloat16)
    for source in ({"x": half}, [{"x": row} for row in half], {"x": half.T.contiguous().T}):
        _, ds = write(source)
        assert ds.schema["x"] == Feature("bfloat16", (2,))
        found = [row["x"].astype(np.float32).tolist() for row in ds["train"]]
        assert found == half.float().tolist()
    rows = [torch.tensor([1, 2]), torch.tensor([3])]
    nested = torch.nested.nested_tensor(rows, layout=torch.jagged)
    _, ds = write({"x": nested})
    assert [row["x"].tolist() for row in ds["train"]] == [[1, 2], [3]]
    _, ds = write(torch.zeros(3, 2))
    assert ds.schema["x"] == Feature("float32", (2,))
