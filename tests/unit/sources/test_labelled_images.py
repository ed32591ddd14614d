"""Images with their labels in a file beside them."""

import pickle

import numpy as np
import pytest

import datum
from datum import Feature
from datum.errors import SourceError
from datum.sources.image_files import IMAGE
from datum.sources.labelled_images import (
    LabelledImages,
    LabelledSplit,
    feature_of_values,
    read_label_csv,
    type_cells,
)
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
    with pytest.raises(
        SourceError, match=r"train\.csv and train/, got none\nhint: datum.sources.LabelledImages"
    ):
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


def read(tmp_path, content, needed="filename"):
    path = tmp_path / "train.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_label_csv(path, needed=needed)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "-20", "0"], [1, -20, 0]),
        (["1", "", "3"], [1, None, 3]),
        (["1", "2.5"], [1.0, 2.5]),
        (["1e3", ".5", "-2."], [1000.0, 0.5, -2.0]),
        (["1", "nan"], None),
        (["-0", "1"], [-0.0, 1.0]),
        (["01", "2"], ["01", "2"]),
        (["007.5", "2"], ["007.5", "2"]),
        (["cat", "1"], ["cat", "1"]),
        (["nan", "inf"], ["nan", "inf"]),
        (["True", "false", ""], [True, False, None]),
        (["1", "true"], ["1", "true"]),
        ([" 1", "2 "], [1, 2]),
        ([" a", "b "], [" a", "b "]),
        (["9223372036854775807"], [2**63 - 1]),
        (["9223372036854775808", "1"], [2.0**63, 1.0]),
        (["1_000", "2"], ["1_000", "2"]),
        (["٣"], ["٣"]),
        (["", " "], [None, None]),
        (["NA", "1", "null"], [None, 1, None]),
        (["NA", "cat"], ["NA", "cat"]),
        (["NA", ""], ["NA", None]),
        ([], []),
    ],
)
def test_a_column_has_one_type(cells, values):
    found = type_cells(cells)
    if values is None:
        assert found[0] == 1.0
        assert np.isnan(found[1])
        return
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("values", "feature"),
    [
        ([1, 2], Feature("int64")),
        ([1, None], Feature("int64", optional=True)),
        ([0.5, float("nan")], Feature("float64")),
        ([True], Feature("bool")),
        (["a", None], Feature("str", optional=True)),
        ([None], None),
    ],
)
def test_a_column_is_a_feature(values, feature):
    assert feature_of_values(values) == feature


def test_rows_and_lines_are_read(tmp_path):
    table = read(tmp_path, 'filename,label\n\na,1\n"b\nc",2\n')
    assert table.columns == {"filename": ["a", "b\nc"], "label": [1, 2]}
    assert table.lines == [3, 5]
    assert table.faults == {}


def test_file_names_stay_text(tmp_path):
    assert read(tmp_path, "filename,x\n001,1\n2,1\n").columns["filename"] == ["001", "2"]
    assert read(tmp_path, "filename,x\n1,1\n,1\n").columns["filename"] == ["1", None]


def test_spaces_after_commas_are_no_part_of_names(tmp_path):
    table = read(tmp_path, "filename, label_1, label_2\na, 1, 1.5\n")
    assert table.columns == {"filename": ["a"], "label_1": [1], "label_2": [1.5]}


def test_a_column_without_a_name_gets_one(tmp_path):
    assert read(tmp_path, ",filename\n0,a\n").columns == {"column_0": [0], "filename": ["a"]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_other_delimiters_are_found(tmp_path, delimiter):
    content = "filename,label\na,1\n".replace(",", delimiter)
    assert read(tmp_path, content).columns == {"filename": ["a"], "label": [1]}


@pytest.mark.parametrize(
    "content",
    ["\ufefffilename,x\nä,é\n".encode(), "filename,x\nä,é\n".encode("cp1252")],
    ids=["utf-8 with a mark", "windows"],
)
def test_encodings_are_found(tmp_path, content):
    assert read(tmp_path, content).columns == {"filename": ["ä"], "x": ["é"]}


def test_bytes_of_no_encoding_are_still_text(tmp_path):
    assert read(tmp_path, b"filename\n\x81\n").columns == {"filename": ["\x81"]}


def test_rows_of_another_length_are_told(tmp_path):
    table = read(tmp_path, "filename,x\na\nb,1\nc,1,2\n")
    assert table.faults == {0: "expected 2 cells, got 1", 2: "expected 2 cells, got 3"}
    assert table.columns["filename"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name,x\n", "expected a column 'filename', got columns 'name', 'x'"),
        ("", "expected a column 'filename', got an empty file"),
        ("filename,x,x\n", "got 'x' twice"),
        ("filename\n" + "a" * 200_000, "line 2: expected CSV, got: field larger"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(tmp_path, content, message):
    with pytest.raises(SourceError, match=message):
        read(tmp_path, content)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(SourceError, match="gone.csv: expected a file"):
        read_label_csv(tmp_path / "gone.csv", needed="x")
