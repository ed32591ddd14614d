"""A split as image files."""

import json

import numpy as np
import pytest

import datum
from datum import Feature, Schema
from datum._rewrite.export_images import find_label
from tests.unit.images.samples import encoded, pixels

IMAGE = Feature("uint8", (None, None, 3), encoding="image")


def export(tmp_path, rows, metadata=None, schema=None):
    source = rows
    if metadata is not None:
        source = _Named(rows, metadata)
    fixed = {"image": IMAGE} if schema is None else schema
    datum.write(source, tmp_path / "a", shuffle=False, schema=fixed, progress=False)
    datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    return sorted(
        str(path.relative_to(tmp_path / "out"))
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    )


class _Named:
    """Rows with what is known of their features."""

    def __init__(self, rows, metadata):
        self._rows, self._metadata = rows, metadata

    def parts(self):
        part = datum.sources.as_source(self._rows).parts()["train"]
        part.metadata = self._metadata
        return {"train": part}


PNG = encoded(pixels(4, 4), "PNG")
JPEG = encoded(pixels(4, 4), "JPEG")


def test_images_without_names_or_classes_are_numbered(tmp_path):
    rows = [{"image": PNG}, {"image": JPEG}]
    assert export(tmp_path, rows) == ["train/000000.png", "train/000001.jpg"]


def test_classes_are_folders_by_their_names(tmp_path):
    rows = [{"image": PNG, "label": number} for number in (0, 1, 2, 3, 9)]
    names = {"label": {"class_names": ["cat", "a/b", "a\\b", ".hid"]}}
    assert export(tmp_path, rows, names) == [
        "train.classes.json",
        "train/9/000004.png",
        "train/_hid/000003.png",
        "train/a_b/000001.png",
        "train/a_b_2/000002.png",
        "train/cat/000000.png",
    ]


def test_texts_are_classes_and_absent_ones_are_unlabelled(tmp_path):
    rows = [{"image": PNG, "label": "red"}, {"image": PNG, "label": None}]
    assert export(tmp_path, rows) == ["train/red/000000.png", "train/unlabelled/000001.png"]


@pytest.mark.parametrize(
    "name", ["../../etc/x.png", "a b.png", ".hidden.png", "noextension", "a\0.png"]
)
def test_names_that_are_not_safe_are_replaced_or_cut(tmp_path, name):
    found = export(tmp_path, [{"image": PNG, "filename": name}])
    assert found == (["train/x.png"] if name.startswith("..") else ["train/000000.png"])


def test_a_name_that_is_taken_is_replaced(tmp_path):
    rows = [{"image": PNG, "filename": name} for name in ("a/x.png", "b/x.png", "b/X.jpg")]
    assert export(tmp_path, rows) == ["train/000001.png", "train/000002.png", "train/x.png"]


def test_an_image_that_is_absent_has_a_line_but_no_file(tmp_path):
    rows = [{"image": PNG, "n": 1}, {"image": None, "n": 2}]
    fixed = {"image": Feature("uint8", (None, None, 3), encoding="image", optional=True)}
    found = export(tmp_path, rows, schema=fixed)
    assert found == ["train.jsonl", "train.parquet", "train/000000.png"]
    lines = (tmp_path / "out" / "train.jsonl").read_text().splitlines()
    assert lines[1] == '{"file": null, "n": 2}'


def test_a_feature_that_is_called_file_stays(tmp_path):
    export(tmp_path, [{"image": PNG, "file": "mine"}])
    line = (tmp_path / "out" / "train.jsonl").read_text()
    assert line == '{"image_file": "train/000000.png", "file": "mine"}\n'


def test_bytes_are_those_of_all_files(tmp_path):
    datum.write([{"image": PNG, "n": 1}], tmp_path / "a", schema={"image": IMAGE}, progress=False)
    report = datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert report.bytes == sum(path.stat().st_size for path in files)
    assert report.files == len(files) == 3


def test_bytes_of_other_formats_keep_their_content(tmp_path):
    rows = [{"image": PNG, "thumb": b"???"}]
    found = export(tmp_path, rows)
    assert "train/000000.png" in found
    assert (tmp_path / "out" / "train" / "000000.png").read_bytes() == PNG


def test_the_label_is_found_by_its_name_or_its_classes():
    names = {"kind": {"class_names": ["a"]}, "other": {"class_names": ["a"]}}
    kinds = Schema({"kind": Feature("int64"), "x": Feature("int64")})
    assert find_label(kinds, names) == "kind"
    assert find_label(kinds, {}) is None
    assert find_label(Schema({**kinds, "other": Feature("int64")}), names) is None
    assert find_label(Schema({**kinds, "label": Feature("int64")}), names) == "label"
    assert find_label(Schema({"label": IMAGE}), {}) is None
    assert find_label(Schema({"label": Feature("int64", (None,))}), {}) is None


def test_pixels_are_as_they_were(tmp_path):
    export(tmp_path, [{"image": pixels(5, 6), "label": 1}])
    from PIL import Image

    with Image.open(tmp_path / "out/train/1/000000.png") as image:
        np.testing.assert_array_equal(np.asarray(image), pixels(5, 6))


def test_classes_that_look_alike_keep_folders_of_their_own(tmp_path):
    shades = {
        name: encoded(np.full((2, 2, 3), shade, np.uint8), "PNG")
        for shade, name in enumerate(["A", "A_2", "a", "dog", "zebra", "a/b", "a_b", "a:b"])
    }
    names = list(shades)
    rows = [{"image": data, "label": names.index(name)} for name, data in shades.items()]
    export(tmp_path, rows, {"label": {"class_names": names}})
    table = json.loads((tmp_path / "out" / "train.classes.json").read_text())
    assert sorted(table.values()) == sorted(names)
    assert len({folder.casefold() for folder in table}) == len(names)
    assert table["dog"] == "dog"
    for folder, name in table.items():
        (file,) = (tmp_path / "out" / "train" / folder).iterdir()
        assert file.read_bytes() == shades[name]


def test_texts_that_look_alike_keep_folders_of_their_own_in_every_split(tmp_path):
    texts = ["a/b", "a_b", "a:b", "unlabelled", None, "x" * 300, "x" * 301]
    rows = [{"image": PNG, "label": text} for text in texts]
    datum.write(
        None,
        tmp_path / "a",
        splits={"train": rows, "val": rows[::-1]},
        schema={"image": IMAGE},
        progress=False,
    )
    report = datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    folders = {
        split: {path.name for path in (tmp_path / "out" / split).iterdir()}
        for split in ("train", "val")
    }
    assert len(folders["train"]) == len(texts)
    assert folders["train"] == folders["val"]
    tables = [
        json.loads((tmp_path / "out" / f"{split}.classes.json").read_text()) for split in folders
    ]
    assert tables[0] == tables[1]
    assert sorted(tables[0].values()) == sorted(filter(None, texts))
    assert report.files == 2 * len(texts) + 2


def test_a_number_gives_way_to_a_file_that_is_called_like_it(tmp_path):
    rows = [
        {"image": PNG, "filename": name}
        for name in ("000002.png", "x y.png", "b c.png", "000002_2.png")
    ]
    assert len(export(tmp_path, rows)) == len(rows)


def test_a_folder_of_masks_gives_way_to_a_split_of_its_name(tmp_path):
    rows = [{"image": PNG, "mask": PNG}] * 3
    datum.write(
        None,
        tmp_path / "a",
        splits={"train": rows, "train_mask": rows},
        schema={"image": IMAGE, "mask": IMAGE},
        progress=False,
    )
    report = datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    images = list((tmp_path / "out").rglob("*.png"))
    assert len(images) == 12
    assert report.files == 14
    pairs = (tmp_path / "out" / "train.txt").read_text().splitlines()
    assert pairs[0] == "train/000000.png train_mask_2/000000.png"
