"""Folders of images with a table of labels."""

import pickle

import numpy as np
import pytest

import datum
from datum import Feature
from datum.errors import SourceError
from datum.sources.image_files import IMAGE
from datum.sources.labelled_images import LabelledImages, LabelledSplit
from tests.unit.images.samples import pixels, save


def make(root, split, table, *names):
    for name in names:
        save(root / split / name, pixels(4, 4), "PNG")
    (root / f"{split}.csv").write_text(table)
    return root


def read_all(part):
    return part.read(np.arange(len(part)))


def test_the_layout_of_the_paper_is_read(tmp_path):
    make(tmp_path, "train", "filename,label_1,label_2\nb,1,0.5\na,2,1.5\n", "a.jpg", "b.jpg")
    make(tmp_path, "val", "filename,label_1,label_2\nc,3,2\n", "c.jpg")
    parts = LabelledImages(tmp_path).parts()
    assert list(parts) == ["train", "val"]
    part = parts["train"]
    assert dict(part.schema) == {
        "image": IMAGE,
        "label_1": Feature("int64"),
        "label_2": Feature("float64"),
        "filename": Feature("str"),
    }
    assert read_all(part).data == [
        {"image": tmp_path / "train/b.jpg", "label_1": 1, "label_2": 0.5, "filename": "b"},
        {"image": tmp_path / "train/a.jpg", "label_1": 2, "label_2": 1.5, "filename": "a"},
    ]
    assert list(part.keys) == ["b", "a"]
    assert not part.is_slow_python
    assert part.stored_bytes > 0


def test_labels_of_any_kind_are_kept(tmp_path):
    table = "filename,id,name,score,none\na,01,cat,,\nb,02,,0.25,\n"
    part = LabelledImages(make(tmp_path, "train", table, "a.png", "b.png")).parts()["train"]
    assert part.schema["id"] == Feature("str")
    assert part.schema["name"] == Feature("str", optional=True)
    assert part.schema["score"] == Feature("float64", optional=True)
    assert "none" not in part.schema
    first, second = read_all(part).data
    assert (first["id"], first["name"], first["score"]) == ("01", "cat", None)
    assert (second["id"], second["name"], second["score"]) == ("02", None, 0.25)
    assert "none" not in first


def test_file_names_may_have_extensions_and_folders(tmp_path):
    table = "filename,x\na.PNG,1\nsub/b,2\nc.jpeg,3\n"
    make(tmp_path, "train", table, "a.PNG", "sub/b.webp", "c.jpeg")
    rows = read_all(LabelledImages(tmp_path).parts()["train"]).data
    assert [row["image"].name for row in rows] == ["a.PNG", "b.webp", "c.jpeg"]
    assert [row["filename"] for row in rows] == ["a.PNG", "sub/b", "c.jpeg"]


def test_every_option_of_a_split_is_used(tmp_path):
    save(tmp_path / "photos/a.png", pixels(4, 4))
    save(tmp_path / "photos/a.jpg", pixels(4, 4))
    (tmp_path / "labels.csv").write_text("filename,x\na,1\n")
    options = {"csv_path": "labels.csv", "image_dir": "photos", "extension": ".png"}
    for given in (options, LabelledSplit(**options)):
        part = LabelledImages(tmp_path, splits={"all": given}).parts()["all"]
        assert read_all(part).data[0]["image"] == tmp_path / "photos/a.png"
    with pytest.raises(SourceError, match="'csvpath'\nhint: did you mean 'csv_path'"):
        LabelledImages(tmp_path, splits={"all": {"csvpath": "x"}}).parts()


def test_records_that_cannot_be_made_are_rejected_with_their_line(tmp_path):
    table = "filename,x\na,1\ngone,2\n,3\nb\nboth,4\n../train/a,5\n"
    make(tmp_path, "train", table, "a.jpg", "b.jpg", "both.png", "both.jpg")
    block = read_all(LabelledImages(tmp_path).parts()["train"])
    assert [row["filename"] for row in block.data] == ["a"]
    assert block.numbers.tolist() == [0]
    found = {reject.key: (reject.where, reject.reason) for reject in block.rejects}
    csv_path = tmp_path / "train.csv"
    assert found["gone"] == (
        f"{csv_path}, line 3",
        f"expected an image 'gone', got no such file in {tmp_path / 'train'}",
    )
    assert found["line 4"] == (f"{csv_path}, line 4", "expected a file name, got an empty cell")
    assert found["b"] == (f"{csv_path}, line 5", "expected 2 cells, got 1")
    assert "both.jpg and both.png" in found["both"][1]
    assert "no such file" in found["../train/a"][1]


def test_images_without_labels_are_told(tmp_path):
    make(tmp_path, "train", "filename,x\na,1\n", "a.jpg", "extra.jpg")
    assert "extra.jpg" in LabelledImages(tmp_path).parts()["train"].warnings[0]


def test_a_column_called_image_is_refused(tmp_path):
    make(tmp_path, "train", "filename,image\na,1\n", "a.jpg")
    with pytest.raises(SourceError, match="expected no column 'image'"):
        LabelledImages(tmp_path).parts()


def test_a_folder_of_another_layout_is_refused_with_a_hint(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "labels.csv").write_text("filename\n")
    with pytest.raises(SourceError, match=r"train\.csv and train/, got none\nhint: splits="):
        LabelledImages(tmp_path).parts()


def test_the_fingerprint_tells_changes(tmp_path):
    make(tmp_path, "train", "filename,x\na,1\n", "a.jpg")
    first = LabelledImages(tmp_path).parts()["train"].fingerprint
    assert LabelledImages(tmp_path).parts()["train"].fingerprint == first
    (tmp_path / "train.csv").write_text("filename,x\na,22\n")
    second = LabelledImages(tmp_path).parts()["train"].fingerprint
    save(tmp_path / "train/a.jpg", pixels(9, 9))
    third = LabelledImages(tmp_path).parts()["train"].fingerprint
    assert len({first, second, third}) == 3


def test_a_part_can_be_sent_to_another_process(tmp_path):
    make(tmp_path, "train", "filename,x\na,1\n", "a.jpg")
    part = pickle.loads(pickle.dumps(LabelledImages(tmp_path).parts()["train"]))
    assert read_all(part).data[0]["x"] == 1


def test_images_that_no_row_names_are_a_warning(tmp_path):
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        save(tmp_path / "data/train" / name, pixels(4, 4))
    (tmp_path / "data/train/notes.txt").write_text("no image")
    (tmp_path / "data/train.csv").write_text("filename,label\na,1\n")
    report = datum.write(tmp_path / "data", tmp_path / "out", progress=False)
    assert report.warnings == (
        "2 images are left out, as no row of train.csv names them: b.jpg, c.jpg",
    )
    assert report.skipped == ("notes.txt",)
