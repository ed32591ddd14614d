"""Tables with a column of paths to images."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from datum import Feature
from datum.errors import SourceError
from datum.sources import IndexedPart
from datum.sources.image_columns import ImageTable
from datum.sources.image_files import IMAGE
from tests.unit.images.samples import pixels, save

CSV = "id,path,score,name\n1,images/a.jpg,0.5,cat\n2,images/b.jpg,,01\n"


@pytest.fixture
def root(tmp_path):
    for name in ("a", "b"):
        save(tmp_path / f"images/{name}.jpg", pixels(4, 5))
    (tmp_path / "table.csv").write_text(CSV)
    return tmp_path


def columns():
    return {"path": ["images/a.jpg", "images/b.jpg"], "id": np.array([1, 2], np.int16)}


def read_all(part):
    return part.read(np.arange(len(part)))


def part_of(table, **options):
    return ImageTable(table, path_column="path", **options).parts()["train"]


def test_a_csv_file_names_images_beside_it(root):
    part = part_of(root / "table.csv")
    assert isinstance(part, IndexedPart)
    assert dict(part.schema) == {
        "image": IMAGE,
        "id": Feature("int64"),
        "score": Feature("float64", optional=True),
        "name": Feature("str"),
        "filename": Feature("str"),
    }
    block = read_all(part)
    assert block.data["image"].tolist() == [root / "images/a.jpg", root / "images/b.jpg"]
    assert block.data["id"].tolist() == [1, 2]
    assert block.data["name"].to_list() == ["cat", "01"]
    assert block.keys == ["images/a.jpg", "images/b.jpg"]
    assert part.stored_bytes == sum(path.stat().st_size for path in (root / "images").iterdir())
    assert not part.is_slow_python


def test_a_dict_of_columns_keeps_its_types(root):
    part = part_of(columns(), root=root)
    assert part.schema["id"] == Feature("int16")
    block = part.read(np.array([1, 0]))
    assert block.data["image"].tolist() == [root / "images/b.jpg", root / "images/a.jpg"]
    assert block.data["id"].tolist() == [2, 1]
    assert block.data["filename"].to_list() == ["images/b.jpg", "images/a.jpg"]


def test_a_frame_and_an_arrow_table_give_the_same(root):
    pandas = pytest.importorskip("pandas")
    import pyarrow as pa

    tables = [columns(), pandas.DataFrame(columns()), pa.table(columns())]
    blocks = [read_all(part_of(table, root=root)) for table in tables]
    for block in blocks[1:]:
        assert block.data["image"].tolist() == blocks[0].data["image"].tolist()
        assert block.data["id"].dtype == np.int16
        assert block.data["filename"].to_list() == blocks[0].data["filename"].to_list()


def test_paths_may_be_categories(root):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns()).astype({"path": "category"})
    assert read_all(part_of(frame, root=root)).keys == ["images/a.jpg", "images/b.jpg"]


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_files_of_arrow_are_read(root, suffix):
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    path = root / f"table{suffix}"
    write = pa.parquet.write_table if suffix == ".parquet" else pa.feather.write_feather
    write(pa.table(columns()), path)
    part = part_of(path)
    assert part.schema["id"] == Feature("int16")
    assert read_all(part).data["image"][0] == root / "images/a.jpg"


def test_paths_may_be_absolute_and_of_another_root(root, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "table.csv").write_text(f"path\n{root / 'images/a.jpg'}\nimages/b.jpg\n")
    images = read_all(part_of(other / "table.csv", root=root)).data["image"]
    assert images.tolist() == [root / "images/a.jpg", root / "images/b.jpg"]


def test_the_column_itself_may_be_called_image_or_filename(root):
    for name in ("image", "filename"):
        table = {name: ["images/a.jpg"], "x": [1]}
        part = ImageTable(table, path_column=name, root=root, split="all").parts()["all"]
        assert list(part.schema) == ["image", "x", "filename"]
        assert isinstance(read_all(part).data["image"][0], Path)


def test_a_table_of_paths_alone_will_do(root):
    part = part_of({"path": ["images/a.jpg"]}, root=root)
    assert list(part.schema) == ["image", "filename"]


@pytest.mark.parametrize("taken", ["image", "filename"])
def test_another_column_of_that_name_is_refused(taken):
    with pytest.raises(SourceError, match=f"expected no column {taken!r} beside 'path'"):
        part_of({"path": ["a.jpg"], taken: [1]})


def test_rows_without_a_path_have_no_image(root):
    part = part_of({"path": ["images/a.jpg", None, ""], "x": [1, 2, 3]}, root=root)
    assert part.schema["image"].optional
    block = read_all(part)
    assert block.data["image"].tolist() == [root / "images/a.jpg", None, None]
    assert block.keys == ["images/a.jpg", "record 1", "record 2"]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"path": ["images/a.jpg", float("nan"), pandas.NA]})
    assert read_all(part_of(frame, root=root)).data["image"].tolist()[1:] == [None, None]


def test_paths_that_occur_twice_name_no_record(root):
    part = part_of({"path": ["images/a.jpg", "images/a.jpg"], "x": [1, 2]}, root=root)
    assert part.keys is None
    assert len(read_all(part)) == 2


def test_rows_of_another_length_are_rejected_with_their_line(root):
    (root / "table.csv").write_text("path,x\nimages/a.jpg\nimages/b.jpg,1\n")
    block = read_all(part_of(root / "table.csv"))
    (reject,) = block.rejects
    assert reject.where == f"{root / 'table.csv'}, line 2"
    assert reject.reason == "expected 2 cells, got 1"
    assert block.keys == ["images/b.jpg"]


def test_a_missing_image_is_the_business_of_whoever_reads_it(root):
    part = part_of({"path": ["images/gone.jpg", "a\0b"]}, root=root)
    assert len(read_all(part)) == 2
    assert part.stored_bytes == 0


def test_the_fingerprint_tells_changes(root):
    first = part_of(columns(), root=root).fingerprint
    assert part_of(columns(), root=root).fingerprint == first
    second = part_of({**columns(), "id": np.array([1, 3], np.int16)}, root=root).fingerprint
    save(root / "images/a.jpg", pixels(9, 9))
    assert len({first, second, part_of(columns(), root=root).fingerprint}) == 3


def test_a_part_can_be_sent_to_another_process(root):
    part = pickle.loads(pickle.dumps(part_of(root / "table.csv")))
    assert read_all(part).data["id"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"paths": ["a.jpg"]}, "expected a column 'path' of paths, got none\nhint: did you mean"),
        ({"x": [1]}, "hint: there are x"),
        (5, "expected something with records, got int"),
        ("gone.csv", "gone.csv: expected a file"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(table, message):
    with pytest.raises(SourceError, match=message):
        part_of(table)


@pytest.mark.parametrize("name", ["table.xlsx", "table.parquet", "table.feather"])
def test_files_that_are_no_tables_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"no table")
    with pytest.raises(SourceError, match=f"{name}: expected a"):
        part_of(tmp_path / name)
