"""Rows and containers of Python objects."""

import itertools
import pickle
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import datum
from datum import Feature
from datum.errors import DatumError, SourceError
from datum.sources import IndexedPart, PythonRows, Source, StreamedPart
from datum.sources.protocol import BLOCK_RECORDS, RowBlocks
from datum.sources.python import RowReader, is_keyed


def part_of(source, **options):
    (part,) = PythonRows(source, **options).parts().values()
    return part


def rows_of(part):
    return [row for block in part.blocks() for row in block.data]


class Dataset:
    """As those of PyTorch are."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, number):
        item = self.items[number]
        if isinstance(item, Exception):
            raise item
        return item


class BatchedDataset(Dataset):
    calls = 0

    def __getitems__(self, numbers):
        self.calls += 1
        return [self[number] for number in numbers]


def make_rows(count=3):
    return [{"x": i} for i in range(count)]


def test_a_source_has_one_split():
    source = PythonRows(make_rows(), split="all")
    assert isinstance(source, Source)
    assert list(source.parts()) == ["all"]


@pytest.mark.parametrize(
    "make", [lambda: iter(make_rows()), lambda: (row for row in make_rows()), lambda: make_rows]
)
def test_iterables_and_functions_are_streamed(make):
    part = part_of(make())
    assert isinstance(part, StreamedPart)
    assert not isinstance(part, IndexedPart)
    assert rows_of(part) == make_rows()
    assert part.schema is None
    assert part.fingerprint is None


def test_blocks_are_numbered_from_the_start():
    blocks = list(part_of(iter(make_rows(10_000))).blocks())
    assert [len(block) for block in blocks] == [4096, 4096, 1808]
    assert np.concatenate([block.numbers for block in blocks]).tolist() == list(range(10_000))


def test_an_iterator_is_gone_through_once():
    part = part_of(iter(make_rows()))
    assert not part.is_repeatable
    assert rows_of(part) == make_rows()
    with pytest.raises(SourceError, match="hint: pass a function that returns a new iterator"):
        rows_of(part)


def test_a_function_is_called_each_time():
    part = part_of(make_rows)
    assert part.is_repeatable
    assert rows_of(part) == rows_of(part) == make_rows()


def test_keys_come_with_streamed_rows():
    (block,) = part_of(iter([("a", {"x": 1}), ("b", {"x": 2})])).blocks()
    assert block.keys == ["a", "b"]


def test_what_the_iterator_raises_names_the_record_and_keeps_its_cause():
    def rows():
        yield from make_rows(5000)
        raise KeyError("gone")

    with pytest.raises(SourceError, match="record 5000: the source raised KeyError") as caught:
        rows_of(part_of(rows))
    assert isinstance(caught.value.__cause__, KeyError)


def test_what_the_function_raises_is_told():
    def broken():
        raise ZeroDivisionError("no")

    with pytest.raises(SourceError, match="record 0: the source raised ZeroDivisionError: no"):
        rows_of(part_of(broken))


def test_interrupts_pass():
    def rows():
        yield {"x": 1}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rows_of(part_of(rows))


async def coroutine():
    return []


async def asynchronous():
    yield {"x": 1}


@pytest.mark.parametrize("source", [coroutine, asynchronous])
def test_asynchronous_rows_are_refused(source):
    with pytest.raises(SourceError, match="got an asynchronous one"):
        rows_of(part_of(source))


@pytest.mark.parametrize("result", [None, 5, "text", {"x": [1]}])
def test_a_function_must_return_rows(result):
    with pytest.raises(SourceError, match="expected an iterable of rows"):
        rows_of(part_of(lambda: result))


def test_a_list_is_read_by_numbers():
    part = part_of(make_rows(5))
    assert isinstance(part, IndexedPart)
    assert len(part) == 5
    assert part.read(np.array([4, 0])).data == [{"x": 4}, {"x": 0}]
    assert part.read(np.arange(1, 4)).data == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert not part.is_slow_python


def test_the_keys_of_a_list_are_known_beforehand():
    part = part_of([("a", {"x": 1}), ("b", {"x": 2}), 7])
    assert list(part.keys)[:2] == ["a", "b"]
    assert len(part.keys) == 3
    block = part.read(np.array([1, 2]))
    assert block.keys == ["b"]
    assert [reject.record for reject in block.rejects] == [2]


@pytest.mark.parametrize("kind", [Dataset, BatchedDataset])
def test_a_map_style_dataset_is_read_by_numbers(kind):
    dataset = kind([("image", 0), ("picture", 1)])
    part = part_of(dataset)
    assert part.is_slow_python
    assert part.read(np.array([1, 0])).data == [{"x": "picture", "y": 1}, {"x": "image", "y": 0}]
    assert part_of(dataset, names=["image", "label"]).read(np.array([0])).data == [
        {"image": "image", "label": 0}
    ]
    assert getattr(dataset, "calls", 2) == 2


def test_a_map_style_dataset_with_keys_is_streamed():
    part = part_of(Dataset([("a", {"x": 1}), ("b", {"x": 2})]))
    assert not isinstance(part, IndexedPart)
    (block,) = part.blocks()
    assert block.keys == ["a", "b"]


@pytest.mark.parametrize("kind", [Dataset, BatchedDataset])
def test_an_item_that_cannot_be_read_is_rejected_and_others_go_on(kind):
    part = part_of(kind([{"x": 0}, OSError("broken file"), {"x": 2}]))
    block = part.read(np.array([2, 1, 0]))
    assert block.data == [{"x": 2}, {"x": 0}]
    assert block.numbers.tolist() == [2, 0]
    assert [str(reject) for reject in block.rejects] == [
        "record 1: the source raised OSError: broken file"
    ]


def test_a_dataset_meant_to_be_iterated_is_streamed():
    class IterableDataset(Dataset):
        def __iter__(self):
            return iter(self.items)

    class Mine(IterableDataset):
        pass

    part = part_of(Mine(make_rows()))
    assert not isinstance(part, IndexedPart)
    assert rows_of(part) == make_rows()


def test_class_names_are_taken_from_datasets_that_know_them():
    hugging = Dataset(make_rows())
    hugging.features = {"label": SimpleNamespace(names=["cat", "dog"]), "x": SimpleNamespace()}
    assert part_of(hugging).metadata == {"label": {"class_names": ["cat", "dog"]}}
    vision = Dataset([(1, 0)])
    vision.classes = ["cat", "dog"]
    assert part_of(vision).metadata == {"y": {"class_names": ["cat", "dog"]}}
    named = part_of(vision, names=["image", "label"])
    assert named.metadata == {"label": {"class_names": ["cat", "dog"]}}


def test_a_part_of_a_dataset_can_be_sent_to_another_process():
    part = pickle.loads(pickle.dumps(part_of(Dataset(make_rows()))))
    assert part.read(np.array([1])).data == [{"x": 1}]


def test_an_endless_source_is_not_read_ahead():
    part = part_of({"x": i} for i in itertools.count())
    blocks = part.blocks()
    assert len(next(blocks)) == 4096
    blocks.close()


@pytest.mark.parametrize("source", [7, None, object(), Dataset])
def test_what_has_no_rows_is_refused(source):
    with pytest.raises(SourceError, match="expected"):
        part_of(source)


def test_names_are_a_list():
    with pytest.raises(SourceError, match="expected a list as `names`, got 'xy'"):
        PythonRows([], names="xy")


def test_no_rows_are_no_records():
    assert rows_of(part_of(iter([]))) == []
    assert len(part_of([])) == 0


class Point(NamedTuple):
    lat: float
    lon: float


@dataclass
class Sample:
    text: str
    label: int


def read(items, *, names=None, keyed=False):
    return RowReader(names, is_keyed=keyed).read(items, np.arange(10, 10 + len(items)))


def test_dicts_are_taken_as_they_are():
    items = [{"x": 1}, {}]
    block = read(items)
    assert block.data is items
    assert block.keys is None


@pytest.mark.parametrize(
    ("item", "row"),
    [
        (OrderedDict(a=1), {"a": 1}),
        (Sample("hi", 3), {"text": "hi", "label": 3}),
        (Point(1.5, 2.5), {"lat": 1.5, "lon": 2.5}),
        ((1, 2), {"x": 1, "y": 2}),
        ((1, 2, 3), {"0": 1, "1": 2, "2": 3}),
        ((5,), {"0": 5}),
        (("text", 5), {"x": "text", "y": 5}),
    ],
)
def test_other_rows_become_dicts(item, row):
    block = read([{"z": 0}, item])
    assert block.data == [{"z": 0}, row]
    assert type(block.data[1]) is dict


def test_tuples_have_the_names_given():
    block = read([(1, 2), (3,)], names=("image", "label"))
    assert block.data == [{"image": 1, "label": 2}]
    assert block.rejects[0].reason == "expected a tuple of 2 values, got 1"


@pytest.mark.parametrize("item", [7, None, "text", [1, 2], np.zeros(2), Sample])
def test_what_is_no_row_is_rejected_and_others_go_on(item):
    block = read([{"x": 0}, item, {"x": 2}])
    assert block.data == [{"x": 0}, {"x": 2}]
    assert block.numbers.tolist() == [10, 12]
    assert [reject.record for reject in block.rejects] == [11]
    assert block.rejects[0].reason.startswith("expected a dict of values, got ")


def test_keys_are_split_off():
    block = read([("a", {"x": 1}), (7, Sample("t", 0))], keyed=True)
    assert block.keys == ["a", "7"]
    assert block.data == [{"x": 1}, {"text": "t", "label": 0}]


def test_rows_without_a_key_among_others_are_rejected():
    block = read([("a", {"x": 1}), {"x": 2}, (1, 2)], keyed=True)
    assert block.keys == ["a"]
    assert [reject.record for reject in block.rejects] == [11, 12]
    assert block.rejects[1].reason == "expected a key and a dict, as before, got a tuple of 2"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (("a", {}), True),
        ((np.int64(3), {}), True),
        (("a", Sample("t", 0)), True),
        ((True, {}), False),
        (("a", 5), False),
        (("a", {}, 1), False),
        ({"a": 1}, False),
        (Point(1, {}), False),
        (["a", {}], False),
    ],
)
def test_a_key_and_a_record_are_a_pair(item, expected):
    assert is_keyed(item) == expected


def test_a_reader_can_be_sent_to_another_process():
    reader = RowReader(("a", "b"), is_keyed=False)
    reader.read([Sample("t", 0), (1, 2)], np.arange(2))
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.read([(1, 2)], np.arange(1)).data == [{"a": 1, "b": 2}]


def test_numbers_go_on_from_block_to_block():
    blocks = RowBlocks(has_keys=True)
    blocks.add({"x": 0}, "a")
    blocks.reject("file", "bad", "b")
    first = blocks.take()
    blocks.reject("file", "worse")
    blocks.add({"x": 3}, "d")
    second = blocks.take()
    assert first.numbers.tolist() == [0]
    assert [(reject.record, reject.key) for reject in first.rejects] == [(1, "b")]
    assert second.numbers.tolist() == [3]
    assert second.keys == ["d"]
    assert [reject.record for reject in second.rejects] == [2]
    assert len(blocks) == 0


def test_without_keys_a_block_has_none():
    blocks = RowBlocks(has_keys=False)
    blocks.add({"x": 0})
    assert blocks.take().keys is None


def test_a_block_is_full_by_rows_and_rejects_together():
    blocks = RowBlocks(has_keys=False)
    for _ in range(BLOCK_RECORDS - 1):
        blocks.add({})
    assert not blocks.is_full
    blocks.reject("", "bad")
    assert blocks.is_full
    assert len(blocks) == BLOCK_RECORDS


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
