"""Whether a table names image files."""

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from PIL import Image

import datum
from datum.sources.path_column import find_path_column


@pytest.fixture
def photos(tmp_path):
    for name in ("a.png", "b.png"):
        (tmp_path / "photos").mkdir(exist_ok=True)
        Image.new("RGB", (4, 3)).save(tmp_path / "photos" / name)
    return tmp_path


TABLE = {"file": ["photos/a.png", None, "photos/b.png"], "label": ["cat", "dog", "x.png"]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_column_of_a_csv_file_names_images(photos, delimiter):
    rows = [list(TABLE), *zip(*TABLE.values(), strict=True)]
    text = "\n".join(delimiter.join(cell or "" for cell in row) for row in rows)
    (photos / "items.csv").write_text(text, encoding="utf-8-sig")
    assert find_path_column(photos / "items.csv") == "file"


def test_a_column_of_other_tables_names_images(photos):
    table = pa.table(TABLE)
    pyarrow.parquet.write_table(table, photos / "items.parquet")
    pyarrow.feather.write_feather(table, photos / "items.arrow", compression="uncompressed")
    assert find_path_column(photos / "items.parquet") == "file"
    assert find_path_column(photos / "items.arrow") == "file"


@pytest.mark.parametrize(
    "text",
    [
        "file\nphotos/gone.png\n",  # not there
        "file\nphotos/a.txt\n",  # no image
        "file,other\nphotos/a.png,photos/b.png\n",  # which of them?
        "file\n",
        "",
        "\0\0\0",
    ],
)
def test_other_tables_name_none(photos, text):
    (photos / "items.csv").write_text(text)
    assert find_path_column(photos / "items.csv") is None


def test_such_a_table_is_written_with_its_images(photos):
    (photos / "items.csv").write_text("file,label\nphotos/a.png,1\nphotos/b.png,2\n")
    datum.write(photos / "items.csv", photos / "out", progress=False)
    ds = datum.load(photos / "out")
    assert ds.schema["image"].shape == (3, 4, 3)
    assert sorted(row["filename"] for row in ds["train"]) == ["photos/a.png", "photos/b.png"]
    datum.write(datum.sources.CsvTable(photos / "items.csv"), photos / "names", progress=False)
    assert datum.load(photos / "names").schema["file"].dtype == "str"
