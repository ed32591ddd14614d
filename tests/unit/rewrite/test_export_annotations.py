"""Boxes, masks and keypoints exported as COCO, YOLO and Pascal VOC, and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as oracle
from pycocotools.coco import COCO

import datum

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

HEIGHT, WIDTH = 30, 40
SIDES = ("xmin", "xmax", "ymin", "ymax")


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    """Two splits of objects with masks; ids have gaps, and one name is on both splits."""
    root = tmp_path / "coco"
    for split in ("train", "val"):
        (root / split).mkdir(parents=True)
        images, found = [], []
        for number, name in enumerate(["a b.png", "c.jpg", "none.png"], 5):
            Image.new("RGB", (WIDTH, HEIGHT), (number, 20, 30)).save(root / split / name)
            size = {"width": WIDTH, "height": HEIGHT}
            images.append({"id": number, "file_name": name, **size})
            for at in range(0 if name == "none.png" else 2):
                left, top = 3.5 + at, 2.25
                outline = [left, top, left + 10, top, left + 10, top + 7, left, top + 7]
                found.append(
                    {
                        "id": 10 * number + at,
                        "image_id": number,
                        "category_id": (3, 90)[at],
                        "bbox": [left, top, 10, 7],
                        "area": 70,
                        "iscrowd": at,
                        "segmentation": [outline],
                    }
                )
        categories = [{"id": 3, "name": "a: b"}, {"id": 90, "name": "été & <x>"}]
        content = {"images": images, "annotations": found, "categories": categories}
        file = root / f"annotations/instances_{split}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(content))
    return root


@pytest.fixture
def ds(coco: Path, tmp_path: Path) -> datum.Dataset:
    datum.write(coco, tmp_path / "ds", shuffle=False, progress=False)
    return datum.load(tmp_path / "ds")


def back(out: Path, made: Path) -> datum.Dataset:
    datum.write(out, made, shuffle=False, progress=False)
    return datum.load(made)


def assert_same(one: Any, other: Any, names: tuple[str, ...]) -> None:
    assert list(one.splits) == list(other.splits)
    for split in one.splits:
        for first, second in zip(one[split], other[split], strict=True):
            assert np.array_equal(first["image"], second["image"])
            for name in names:
                assert np.allclose(first[name], second[name], atol=1e-6), name


def test_coco_comes_back_whole(ds, tmp_path):
    report = datum.export_to(ds, tmp_path / "out", format="coco")
    assert (report.records, report.files) == (6, 8)
    again = back(tmp_path / "out", tmp_path / "again")
    assert again.metadata["labels"] == ds.metadata["labels"]
    same = (*SIDES, "labels", "area", "is_crowd", "annotation_id", "image_id")
    assert_same(ds, again, same)
    for one, other in zip(ds["train"], again["train"], strict=True):
        assert np.array_equal(one["masks"], other["masks"])


def test_pycocotools_reads_the_coco_export(ds, coco, tmp_path):
    datum.export_to(ds, tmp_path / "out", format="coco")
    first = COCO(coco / "annotations/instances_val.json")
    second = COCO(tmp_path / "out/annotations/instances_val.json")
    assert first.getCatIds() == second.getCatIds()
    for number in first.getAnnIds():
        (one,), (other,) = first.loadAnns([number]), second.loadAnns([number])
        assert np.allclose(one["bbox"], other["bbox"], atol=1e-4)
        assert np.array_equal(first.annToMask(one), second.annToMask(other))
        assert oracle.area(other["segmentation"]) == first.annToMask(one).sum()


@pytest.mark.parametrize("format", ["yolo", "voc"])
def test_boxes_and_class_names_come_back(format, ds, tmp_path):
    columns = ["image", *SIDES, "labels", "filename"]
    datum.export_to(ds, tmp_path / "out", format=format, columns=columns)
    again = back(tmp_path / "out", tmp_path / "again")
    assert again.metadata["labels"]["class_names"] == ["background", "a: b", "été & <x>"]
    assert_same(ds, again, (*SIDES, "labels"))


def test_keypoints_come_back_from_coco_and_yolo(tmp_path):
    file = tmp_path / "coco/annotations/person_keypoints_train.json"
    file.parent.mkdir(parents=True)
    (tmp_path / "coco/images").mkdir()
    Image.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / "coco/images/a.png")
    size = {"width": WIDTH, "height": HEIGHT}
    one = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 10, 20]}
    one |= {"keypoints": [4, 3, 2, 0, 0, 0], "num_keypoints": 1}
    person = {"id": 1, "name": "person", "keypoints": ["nose", "eye"], "skeleton": [[1, 2]]}
    images = [{"id": 1, "file_name": "a.png", **size}]
    content = {"images": images, "annotations": [one], "categories": [person]}
    file.write_text(json.dumps(content))
    datum.write(tmp_path / "coco", tmp_path / "ds", progress=False)
    ds = datum.load(tmp_path / "ds")
    for format in ("coco", "yolo"):
        columns = ["image", *SIDES, "labels", "filename", "keypoints", "keypoints_visible"]
        datum.export_to(ds, tmp_path / f"as {format}", format=format, columns=columns)
        again = back(tmp_path / f"as {format}", tmp_path / f"{format} again")
        assert_same(ds, again, ("keypoints", "keypoints_visible", *SIDES))
    coco = datum.load(tmp_path / "coco again")
    assert coco.metadata["keypoints"] == ds.metadata["keypoints"]


def test_features_that_a_format_cannot_hold_are_refused(ds, tmp_path):
    with pytest.raises(datum.SchemaError, match="features that yolo can hold, got .*masks") as got:
        datum.export_to(ds, tmp_path / "out", format="yolo")
    assert "columns=['image', 'filename', 'xmin'" in got.value.hint
    assert not (tmp_path / "out").exists()
    datum.write({"x": [1]}, tmp_path / "numbers", progress=False)
    with pytest.raises(datum.SchemaError, match="got no image"):
        datum.export_to(tmp_path / "numbers", tmp_path / "out", format="coco")


def test_an_existing_export_is_kept_unless_overwritten(ds, tmp_path):
    datum.export_to(ds, tmp_path / "out", format="coco")
    with pytest.raises(datum.WriteError, match="what is there already"):
        datum.export_to(ds, tmp_path / "out", format="coco")
    datum.export_to(ds, tmp_path / "out", format="coco", overwrite=True)
