"""What was found at a path, in words."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datum
from datum import sources
from datum._write.preview import describe_layout, describe_origins, find_table_files
from datum.sources import ImageTable, as_source
from tests.unit.images.samples import pixels, save


def describe(given, problem=None):
    source = as_source(given, problem)
    parts = source.parts()
    files = find_table_files(given, source)
    origins = describe_origins(given, source, list(parts), files)
    return describe_layout(source, parts, files), origins


@pytest.fixture
def voc(tmp_path):
    save(tmp_path / "JPEGImages" / "a.jpg", pixels(8, 8), "JPEG")
    (tmp_path / "Annotations").mkdir()
    box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>4</xmax><ymax>4</ymax></bndbox>"
    (tmp_path / "Annotations" / "a.xml").write_text(
        "<annotation><size><width>8</width><height>8</height></size>"
        f"<object><name>cat</name>{box}</object></annotation>"
    )
    return tmp_path


def test_class_folders(tmp_path):
    save(tmp_path / "cat" / "1.png", pixels(4, 4), "PNG")
    save(tmp_path / "dog" / "1.png", pixels(4, 4), "PNG")
    assert describe(tmp_path) == ("class folders: 2 classes", {"train": str(tmp_path)})


def test_voc_and_its_lists(voc):
    assert describe(voc) == ("Pascal VOC detection: 1 class", {"train": str(voc)})
    (voc / "ImageSets" / "Main").mkdir(parents=True)
    listed = voc / "ImageSets" / "Main" / "val.txt"
    listed.write_text("a\n")
    assert describe(voc)[1] == {"val": str(listed)}


def test_masks(tmp_path):
    save(tmp_path / "JPEGImages" / "a.jpg", pixels(8, 8), "JPEG")
    save(tmp_path / "SegmentationClass" / "a.png", pixels(8, 8)[..., 0], "PNG")
    assert describe(tmp_path)[0] == "images and masks (segmentation)"


def test_images_with_a_table(tmp_path):
    save(tmp_path / "train" / "a.png", pixels(4, 4), "PNG")
    (tmp_path / "train.csv").write_text("filename,label\na,1\n")
    layout, origins = describe(tmp_path)
    assert layout == "images with a table of labels"
    assert origins == {"train": f"{tmp_path / 'train.csv'} and {tmp_path / 'train'}"}


def test_tables_in_files(tmp_path):
    for name in ("train.csv", "val.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    layout, origins = describe(tmp_path)
    assert layout == "CSV table, 2 files"
    assert origins == {name: str(tmp_path / f"{name}.csv") for name in ("train", "val")}
    assert describe(str(tmp_path / "train.csv"))[0] == "CSV table"
    layout, origins = describe(str(tmp_path / "*.csv"))
    assert (layout, list(origins)) == ("CSV table, 2 files", ["train", "val"])
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    assert describe(tmp_path / "a.parquet")[0] == "Parquet table"
    (tmp_path / "a.json").write_text('[{"text": "a"}]')
    assert describe(tmp_path / "a.json")[0] == "texts in JSON"
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    assert describe(tmp_path / "a.jsonl")[0] == "JSON lines"
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    assert describe(tmp_path / "a.npz") == ("NumPy arrays", {"train": str(tmp_path / "a.npz")})


def test_files_without_a_split_in_their_names_are_one(tmp_path):
    for name in ("a.csv", "train.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    assert describe(tmp_path)[1] == {"train": f"2 files, {tmp_path / 'a.csv'} ..."}


def test_objects_of_python():
    assert describe([{"x": 1}]) == ("rows from Python", {"train": ""})
    assert describe({"x": [1]})[0] == "columns in memory"
    assert describe(sources.CsvTable(__file__))[0] == "CSV table"


def test_a_source_of_ones_own_is_named_by_its_class():
    class Mine:
        def parts(self):
            return as_source([{"x": 1}]).parts()

    assert describe(Mine()) == ("records of Mine", {"train": ""})


def test_a_path_of_images_in_a_table(tmp_path):
    save(tmp_path / "a.png", pixels(4, 4), "PNG")
    path = Path(tmp_path / "list.csv")
    path.write_text("path,label\na.png,1\n")
    assert datum.plan(path).layout == "CSV table of image files"
    named = ImageTable(path, path_column="path")
    assert datum.plan(named).layout == "table of image files"
