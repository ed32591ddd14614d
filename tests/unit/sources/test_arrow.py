"""Arrow tables, their columns and their files."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import datum.sources.arrow as arrow_source
from datum import Feature, Masked, Ragged, Schema
from datum.errors import SourceError
from datum.sources import ArrowTable, IndexedPart, Source, StreamedPart
from datum.sources.arrow_columns import combine, convert_table
from datum.sources.arrow_files import open_arrow

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


def convert(array, type=None):
    column = pa.chunked_array([pa.array(array, type)]) if isinstance(array, list) else array
    return convert_table(pa.table({"x": column}))


def values_of(column):
    return column.tolist() if isinstance(column, np.ndarray) else column.to_list()


PLAIN = [
    ([1, -2, 3], pa.int8(), "int8"),
    ([1, 2, 2**64 - 1], pa.uint64(), "uint64"),
    ([0.5, 1.5], pa.float16(), "float16"),
    ([0.5, float("inf")], pa.float32(), "float32"),
    ([0.1], pa.float64(), "float64"),
    ([True, False, True], pa.bool_(), "bool"),
]


@pytest.mark.parametrize(("values", "type", "dtype"), PLAIN)
def test_numbers_keep_their_type(values, type, dtype):
    column = convert(values, type).columns["x"]
    assert column.dtype.name == dtype
    assert column.tolist() == pytest.approx(values)


def test_numbers_are_views_of_arrows_memory():
    array = pa.array(np.arange(100))
    column = convert(pa.chunked_array([array])).columns["x"]
    assert column.ctypes.data == array.buffers()[1].address


TEXTS = [
    (["a", "", "é"], pa.string()),
    (["a", "", "é"], pa.large_string()),
    (["a", "", "a text that does not fit into a view"], pa.string_view()),
    ([b"a", b"\xff"], pa.binary()),
    ([b"a", b"\xff"], pa.large_binary()),
    ([b"ab", b"cd"], pa.binary(2)),
]


@pytest.mark.parametrize(("values", "type"), TEXTS)
def test_texts_and_bytes_stay_what_they_are(values, type):
    column = convert([*values, None], type).columns["x"]
    assert column.to_list() == [*values, None]
    assert column.values.is_text == isinstance(values[0], str)
    assert convert(values, type).columns["x"].to_list() == values


def test_a_slice_of_texts_begins_where_it_should():
    array = pa.array(["a", None, "ccc", "dd"]).slice(1, 3)
    assert convert(pa.chunked_array([array])).columns["x"].to_list() == [None, "ccc", "dd"]


def test_no_texts_at_all_are_a_column_too():
    assert convert([], pa.string()).columns["x"].to_list() == []
    assert convert([None, ""], pa.string()).columns["x"].to_list() == [None, ""]


TIMES = [
    ([dt.datetime(2020, 1, 2, 3, 4, 5, 6)], pa.timestamp("us"), "datetime64[us]"),
    ([dt.datetime(2020, 1, 2, 3)], pa.timestamp("s"), "datetime64[s]"),
    ([dt.date(2020, 2, 29)], pa.date32(), "datetime64[D]"),
    ([dt.date(2020, 2, 29)], pa.date64(), "datetime64[ms]"),
    ([dt.timedelta(seconds=5)], pa.duration("ms"), "timedelta64[ms]"),
    ([dt.time(1, 2, 3)], pa.time32("s"), "timedelta64[s]"),
    ([dt.time(1, 2, 3, 4)], pa.time64("us"), "timedelta64[us]"),
]


@pytest.mark.parametrize(("values", "type", "dtype"), TIMES)
def test_times_become_those_of_numpy(values, type, dtype):
    column = convert([*values, None], type).columns["x"]
    assert column.values.dtype == dtype
    assert column.present.tolist() == [True, False]
    number = pa.array(values, type).cast(pa.int32() if type.bit_width == 32 else pa.int64())
    assert column.values[:1].view(np.int64)[0] == number[0].as_py()


def test_moments_with_a_zone_are_told_in_utc():
    noon = dt.datetime(2020, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    column = convert([noon], pa.timestamp("us", "Europe/Paris")).columns["x"]
    assert column.tolist() == [dt.datetime(2020, 7, 1, 10)]


LISTS = [
    ([[1], [], [2, 3]], pa.list_(pa.int16())),
    ([[1], [], [2, 3]], pa.large_list(pa.float64())),
    ([["a"], ["b", "c"], []], pa.list_(pa.string())),
    ([[[1], [2, 3]], [], [[]]], pa.list_(pa.list_(pa.int64()))),
    ([[[1, 2]], [], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int64(), 2))),
    ([[1], [], [2, 3]], pa.list_view(pa.int64())),
]


@pytest.mark.parametrize(("values", "type"), LISTS)
def test_lists_become_ragged(values, type):
    column = convert(values, type).columns["x"]
    assert isinstance(column, Ragged)
    assert column.to_list() == values
    masked = convert([None, *values], type).columns["x"]
    assert masked.to_list() == [None, *values]
    assert len(masked.values.values) == len(column.values)


FIXED = [
    ([[1, 2], [3, 4]], pa.list_(pa.int32(), 2), (2, 2)),
    ([["a", "b"], ["", "d"]], pa.list_(pa.string(), 2), (2, 2)),
    ([[[1, 2], [3, 4]]], pa.list_(pa.list_(pa.int8(), 2), 2), (1, 2, 2)),
]


@pytest.mark.parametrize(("values", "type", "shape"), FIXED)
def test_lists_of_one_size_become_dimensions(values, type, shape):
    column = convert(values, type).columns["x"]
    assert column.shape == shape
    assert values_of(column) == values
    masked = convert([None, *values], type).columns["x"]
    assert masked.to_list() == [None, *values]


def test_lists_of_one_size_that_hold_ragged_ones_are_ragged():
    values = [[[1], [2, 3]], [[], [4]]]
    column = convert(values, pa.list_(pa.list_(pa.int64()), 2)).columns["x"]
    assert column.to_list() == values


def test_a_null_within_a_list_names_its_record():
    with pytest.raises(SourceError, match="record 1: column 'x': expected a list without nulls"):
        convert([[1], [2, None], [3]], pa.list_(pa.int64()))


def test_a_dictionary_of_texts_becomes_ids_with_names():
    array = pa.array(["b", "a", None, "b"]).dictionary_encode()
    found = convert(pa.chunked_array([array]))
    assert found.columns["x"].to_list() == [0, 1, None, 0]
    assert found.columns["x"].values.dtype == np.int64
    assert found.metadata == {"x": {"class_names": ["b", "a"]}}


def test_chunks_with_dictionaries_of_their_own_get_common_ids():
    chunks = [pa.array(texts).dictionary_encode() for texts in (["a", "b"], ["b", "c"])]
    found = convert(pa.chunked_array(chunks))
    names = found.metadata["x"]["class_names"]
    assert [names[at] for at in found.columns["x"]] == ["a", "b", "b", "c"]


@pytest.mark.parametrize("values", [[3, 1, 3], [None, 1.5, 1.5]])
def test_a_dictionary_of_numbers_is_as_good_as_its_values(values):
    found = convert(pa.chunked_array([pa.array(values).dictionary_encode()]))
    assert values_of(found.columns["x"]) == values
    assert found.metadata == {}


def test_structs_are_flattened():
    rows = [{"a": 1, "b": {"c": "x"}}, None, {"a": 3, "b": None}]
    found = convert(rows, pa.struct({"a": pa.int64(), "b": pa.struct({"c": pa.string()})}))
    assert found.columns["x/a"].to_list() == [1, None, 3]
    assert found.columns["x/b/c"].to_list() == ["x", None, None]


def test_lists_of_structs_become_a_list_for_each_field():
    rows = [[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], [], None]
    found = convert(rows, pa.list_(pa.struct({"a": pa.int64(), "b": pa.string()})))
    assert found.columns["x/a"].to_list() == [[1, 2], [], None]
    assert found.columns["x/b"].to_list() == [["x", "y"], [], None]


def test_a_column_of_nulls_is_left_out_and_told():
    found = convert_table(pa.table({"x": pa.nulls(2), "y": [1, 2]}))
    assert list(found.columns) == ["y"]
    assert found.metadata == {"x": {"left_out": "no record has a value"}}


def test_a_typed_column_without_any_value_stays():
    column = convert([None, None], pa.int32()).columns["x"]
    assert isinstance(column, Masked)
    assert column.values.dtype == np.int32
    assert not column.present.any()


@pytest.mark.parametrize(
    ("values", "type", "hint"),
    [
        ([decimal.Decimal("1.5")], pa.decimal128(5, 2), "schema="),
        ([[("a", 1)]], pa.map_(pa.string(), pa.int64()), "convert it to a struct"),
    ],
)
def test_other_types_are_refused_with_a_way_out(values, type, hint):
    with pytest.raises(SourceError, match=rf"(?s)column 'x': expected .*hint: {hint}"):
        convert(values, type)


def test_run_ends_are_unpacked():
    array = pa.RunEndEncodedArray.from_arrays([2, 3], [7, 9])
    assert convert(pa.chunked_array([array])).columns["x"].tolist() == [7, 7, 9]


def test_tensors_of_one_shape_keep_it():
    tensors = np.arange(12).reshape(2, 3, 2)
    array = pa.FixedShapeTensorArray.from_numpy_ndarray(tensors)
    assert convert(pa.chunked_array([array])).columns["x"].tolist() == tensors.tolist()


def test_names_that_meet_are_refused():
    with pytest.raises(SourceError, match="expected columns of different names, got 'x' twice"):
        convert_table(pa.table([[1], [2]], names=["x", "x"]))
    table = pa.table({"x": [{"a": 1}], "x/a": [2]})
    with pytest.raises(SourceError, match="got 'x/a' twice"):
        convert_table(table)


def test_chunks_are_joined_and_record_batches_taken():
    assert combine(pa.chunked_array([[1], [2, 3]])).to_pylist() == [1, 2, 3]
    assert len(combine(pa.chunked_array([], pa.string()))) == 0
    batch = pa.record_batch({"x": [1, 2]})
    assert convert_table(batch).columns["x"].tolist() == [1, 2]


FILE_TABLE = pa.table({"a": list(range(100)), "b": [None, "x"] * 50, "c": [[1], []] * 50})


def write_parquet_file(path):
    pa.parquet.write_table(FILE_TABLE, path, row_group_size=30)


def write_feather(path):
    pa.feather.write_feather(FILE_TABLE, path, compression="lz4")


def write_mapped(path):
    pa.feather.write_feather(FILE_TABLE, path, compression="uncompressed")


def write_stream(path):
    with pa.ipc.new_stream(path, FILE_TABLE.schema) as writer:
        writer.write_table(FILE_TABLE, max_chunksize=30)


WRITERS = [write_parquet_file, write_feather, write_mapped, write_stream]


@pytest.mark.parametrize("write", WRITERS)
def test_files_are_told_apart_by_what_they_hold(tmp_path, write):
    path = tmp_path / "table"
    write(str(path))
    file = open_arrow(path, None)
    assert file.schema.names == ["a", "b", "c"]
    assert file.read().to_pydict() == FILE_TABLE.to_pydict()
    joined = pa.Table.from_batches(file.batches())
    assert joined.to_pydict() == FILE_TABLE.to_pydict()
    assert file.nbytes > 0


@pytest.mark.parametrize("write", WRITERS)
def test_only_the_columns_asked_for_are_read(tmp_path, write):
    path = tmp_path / "table"
    write(str(path))
    file = open_arrow(path, ["c", "a"])
    assert file.read().column_names == ["c", "a"]
    assert next(file.batches(["a"])).schema.names == ["a"]
    with pytest.raises(SourceError, match=r"expected a column 'aa'\nhint: did you mean 'a'"):
        open_arrow(path, ["aa"])


def test_an_arrow_file_in_one_piece_can_be_mapped(tmp_path):
    for write, is_mapped in zip(WRITERS, [False, False, True, False], strict=True):
        path = tmp_path / write.__name__
        write(str(path))
        assert open_arrow(path, None).is_mapped == is_mapped


def test_parquet_tells_how_many_nulls_there_are(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet_file(path)
    file = open_arrow(path, None)
    assert file.null_count("a") == 0
    assert file.null_count("b") == 50
    assert file.null_count("c") is None


def test_columns_that_cannot_be_null_have_none(tmp_path):
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(str(path), schema) as writer:
        writer.write_table(pa.table({"a": [1]}, schema=schema))
    assert open_arrow(path, None).null_count("a") == 0


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1 and no more PAR1", b"ARROW1\0\0", b"x" * 99]
)
def test_files_of_something_else_are_refused(tmp_path, content):
    path = tmp_path / "table"
    path.write_bytes(content)
    with pytest.raises(SourceError, match="table: expected a Parquet or Arrow file"):
        open_arrow(path, None)


def test_a_file_that_is_cut_off_is_told(tmp_path):
    path = tmp_path / "table"
    write_stream(str(path))
    path.write_bytes(path.read_bytes()[:-700])
    with pytest.raises(SourceError, match="table: expected"):
        open_arrow(path, None).read()


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(pa.table([[1], [2]], names=["x", "x"]), path)
    with pytest.raises(SourceError, match="expected columns of different names, got 'x' twice"):
        open_arrow(path, None)
