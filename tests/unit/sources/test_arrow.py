import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import datum.sources.arrow as arrow_source
from datum import Feature, Schema
from datum.errors import SourceError
from datum.sources import ArrowTable, IndexedPart, Source, StreamedPart

ROWS = 1000
TABLE = pa.table(
    {
        "id": [f"k{i}" for i in range(ROWS)],
        "x": np.arange(ROWS),
        "gap": [None if i % 9 == 0 else i / 4 for i in range(ROWS)],
        "label": pa.array([f"class {i * i % 5}" for i in range(ROWS)]).dictionary_encode(),
        "list": [[i] * (i % 3) for i in range(ROWS)],
        "nothing": pa.nulls(ROWS),
        "pair": [{"a": i, "b": None if i % 2 else "x"} for i in range(ROWS)],
    }
)


def write_parquet(path):
    pa.parquet.write_table(TABLE, path, row_group_size=300)


def write_batches(path):
    with pa.ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=100)


def plain(column):
    return column.tolist() if isinstance(column, np.ndarray) else column.to_list()


def read(part):
    if isinstance(part, IndexedPart):
        blocks = [part.read(np.arange(len(part)))]
    else:
        blocks = list(part.blocks())
    found = {}
    for block in blocks:
        for name, column in block.data.items():
            found.setdefault(name, []).extend(plain(column))
    return found


@pytest.mark.parametrize("write", [write_parquet, write_batches])
def test_small_and_large_tables_have_the_same_records(tmp_path, monkeypatch, write):
    path = tmp_path / "table"
    write(str(path))
    source = ArrowTable(path, key="id")
    assert isinstance(source, Source)
    small = source.parts()["train"]
    assert isinstance(small, IndexedPart)
    monkeypatch.setattr(arrow_source, "MAX_MEMORY_BYTES", 0)
    large = source.parts()["train"]
    assert isinstance(large, StreamedPart)
    assert not isinstance(large, IndexedPart)
    assert small.schema == large.schema
    assert small.metadata == large.metadata
    assert read(small) == read(large)
    assert [key for block in large.blocks() for key in block.keys] == list(small.keys)
    assert [n for block in large.blocks() for n in block.numbers] == list(range(ROWS))


def test_types_come_from_the_file(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path)
    part = ArrowTable(path).parts()["train"]
    assert part.schema == Schema(
        {
            "id": Feature("str"),
            "x": Feature("int64"),
            "gap": Feature("float64", optional=True),
            "label": Feature("int64"),
            "list": Feature("int64", (None,)),
            "pair/a": Feature("int64"),
            "pair/b": Feature("str", optional=True),
        }
    )
    names = part.metadata["label"]["class_names"]
    assert [names[at] for at in read(part)["label"]] == TABLE["label"].to_pylist()
    assert part.metadata["nothing"] == {"left_out": "no record has a value"}


def test_dictionaries_that_differ_between_batches_get_common_ids(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_source, "MAX_MEMORY_BYTES", 0)
    batches = [["a", "b"], ["c", None, "a"]]
    schema = pa.schema({"x": pa.dictionary(pa.int32(), pa.string())})
    path = tmp_path / "a.arrow"
    with pa.ipc.new_stream(str(path), schema) as writer:
        for texts in batches:
            array = pa.array(texts).dictionary_encode()
            writer.write_batch(pa.record_batch([array], schema=schema))
    part = ArrowTable(path).parts()["train"]
    assert part.metadata == {"x": {"class_names": ["a", "b", "c"]}}
    assert read(part) == {"x": [0, 1, 2, None, 0]}
    assert part.schema == Schema({"x": Feature("int64", optional=True)})


def test_several_files_are_one_table_if_they_are_alike(tmp_path):
    for name, values in (("1.parquet", [1, 2]), ("2.parquet", [3])):
        pa.parquet.write_table(pa.table({"x": values}), tmp_path / name)
    assert read(ArrowTable(str(tmp_path / "*.parquet")).parts()["train"]) == {"x": [1, 2, 3]}
    pa.parquet.write_table(pa.table({"x": ["a"]}), tmp_path / "3.parquet")
    with pytest.raises(SourceError, match=r"3.parquet: expected the columns of .*1.parquet"):
        ArrowTable(str(tmp_path / "*.parquet")).parts()


def test_splits_have_files_of_their_own(tmp_path):
    for name in ("train", "test"):
        pa.parquet.write_table(pa.table({"x": [name]}), tmp_path / f"{name}.parquet")
    parts = ArrowTable({name: tmp_path / f"{name}.parquet" for name in ("train", "test")}).parts()
    assert {name: read(part) for name, part in parts.items()} == {
        "train": {"x": ["train"]},
        "test": {"x": ["test"]},
    }


def test_a_large_file_in_one_piece_is_mapped_and_read_in_any_order(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_source, "MAX_MEMORY_BYTES", 0)
    path = tmp_path / "a.feather"
    pa.feather.write_feather(TABLE, str(path), compression="uncompressed")
    before = pa.total_allocated_bytes()
    part = ArrowTable(path, columns=["x", "id"]).parts()["train"]
    assert isinstance(part, IndexedPart)
    assert pa.total_allocated_bytes() - before < 1000
    block = part.read(np.array([999, 3]))
    assert block.data["x"].tolist() == [999, 3]
    assert block.data["id"].to_list() == ["k999", "k3"]


@pytest.mark.parametrize("max_bytes", [0, 2**20])
def test_a_key_need_not_be_a_feature_and_may_be_a_category(tmp_path, monkeypatch, max_bytes):
    monkeypatch.setattr(arrow_source, "MAX_MEMORY_BYTES", max_bytes)
    path = tmp_path / "a.parquet"
    names = pa.array(["b", "a"]).dictionary_encode()
    pa.parquet.write_table(pa.table({"id": names, "x": [1, 2]}), path)
    part = ArrowTable(path, columns=["x"], key="id").parts()["train"]
    assert list(part.schema) == ["x"]
    assert part.metadata == {}
    block = part.read(np.arange(2)) if isinstance(part, IndexedPart) else next(part.blocks())
    assert block.keys == ["b", "a"]
    assert list(block.data) == ["x"]
    part = ArrowTable(path, key="id").parts()["train"]
    assert list(part.schema) == ["id", "x"]


def test_small_files_are_not_mapped(tmp_path):
    path = tmp_path / "a.feather"
    pa.feather.write_feather(TABLE, str(path), compression="uncompressed")
    part = ArrowTable(path).parts()["train"]
    path.write_bytes(b"")  # a file that was mapped would be gone
    assert part.read(np.array([5])).data["x"].tolist() == [5]


def test_a_key_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path)
    with pytest.raises(SourceError, match="expected a key among .*, got 'name'"):
        ArrowTable(path, key="name").parts()
    with pytest.raises(SourceError, match="expected `columns` to be a list"):
        ArrowTable(path, columns="x")


def test_the_fingerprint_changes_with_the_file(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path)
    first = ArrowTable(path).parts()["train"].fingerprint
    assert ArrowTable(path).parts()["train"].fingerprint == first
    pa.parquet.write_table(TABLE.slice(1), path)
    assert ArrowTable(path).parts()["train"].fingerprint != first
