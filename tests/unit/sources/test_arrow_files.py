import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from datum.errors import SourceError
from datum.sources.arrow_files import open_arrow

TABLE = pa.table({"a": list(range(100)), "b": [None, "x"] * 50, "c": [[1], []] * 50})


def write_parquet(path):
    pa.parquet.write_table(TABLE, path, row_group_size=30)


def write_feather(path):
    pa.feather.write_feather(TABLE, path, compression="lz4")


def write_mapped(path):
    pa.feather.write_feather(TABLE, path, compression="uncompressed")


def write_stream(path):
    with pa.ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=30)


WRITERS = [write_parquet, write_feather, write_mapped, write_stream]


@pytest.mark.parametrize("write", WRITERS)
def test_files_are_told_apart_by_what_they_hold(tmp_path, write):
    path = tmp_path / "table"
    write(str(path))
    file = open_arrow(path, None)
    assert file.schema.names == ["a", "b", "c"]
    assert file.read().to_pydict() == TABLE.to_pydict()
    joined = pa.Table.from_batches(file.batches())
    assert joined.to_pydict() == TABLE.to_pydict()
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
    write_parquet(path)
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
