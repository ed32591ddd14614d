"""Labels of YOLO in the layouts of Ultralytics, Roboflow and Darknet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import datum
from datum.sources import YoloLabels

HEIGHT, WIDTH = 20, 40
BOX = "1 0.5 0.5 0.25 0.4"


def draw(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (WIDTH, HEIGHT), (10, 20, 30)).save(path)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def read(source: Any, out: Path, **options: Any) -> datum.Dataset:
    datum.write(source, out, shuffle=False, progress=False, **options)
    return datum.load(out)


def ultralytics(root: Path) -> None:
    put(root / "data.yaml", "path: .\ntrain: images/train\nval: images/val\nnames: {0: a, 1: b}\n")
    for split in ("train", "val"):
        draw(root / f"images/{split}/{split}.png")
        put(root / f"labels/{split}/{split}.txt", BOX)


def roboflow(root: Path) -> None:
    text = "train: ../train/images\nval: ../valid/images\nnc: 2\nnames: ['a', 'b']\n"
    put(root / "data.yaml", text)
    for split, folder in (("train", "train"), ("val", "valid")):
        draw(root / f"{folder}/images/{split}.png")
        put(root / f"{folder}/labels/{split}.txt", BOX)


def of_another_machine(root: Path) -> None:
    ultralytics(root)
    text = "path: /home/other/data\ntrain: /home/other/data/images/train\nval: images/val\n"
    put(root / "data.yaml", f"{text}names: [a, b]\n")


def lists(root: Path) -> None:
    ultralytics(root)
    put(root / "data.yaml", "train: [train.txt]\nval: val.txt\nnames: [a, b]\n")
    put(root / "train.txt", "./images/train/train.png\n")
    put(root / "val.txt", "images/val/val.png\n")


def darknet(root: Path) -> None:
    put(
        root / "obj.data",
        "classes = 2\ntrain = data/train.txt\nvalid = data/val.txt\n"
        "names = data/obj.names\nbackup = backup/\n",
    )
    put(root / "obj.names", "a\nb\n")
    for split in ("train", "val"):
        put(root / f"{split}.txt", f"data/obj_data/{split}.png\n")
        draw(root / f"obj_data/{split}.png")
        put(root / f"obj_data/{split}.txt", BOX)


def loose(root: Path) -> None:
    ultralytics(root)
    (root / "data.yaml").unlink()
    put(root / "classes.txt", "a\nb\n")


@pytest.mark.parametrize(
    "layout", [ultralytics, roboflow, of_another_machine, lists, darknet, loose]
)
def test_layouts_are_recognised_from_the_path(layout, tmp_path):
    layout(tmp_path / "yolo")
    ds = read(tmp_path / "yolo", tmp_path / "out")
    assert {split: len(ds[split]) for split in ds.splits} == {"train": 1, "val": 1}
    assert ds.metadata["labels"]["class_names"] == ["background", "a", "b"]
    for split in ("train", "val"):
        record = ds[split][0]
        assert record["filename"] == f"{split}.png"
        assert record["labels"].tolist() == [2]
        sides = [record[name].item() for name in ("xmin", "xmax", "ymin", "ymax")]
        assert np.allclose(sides, [0.375, 0.625, 0.3, 0.7])
    assert "YOLO labels: 2 classes" in str(datum.plan(tmp_path / "yolo"))


def test_an_image_without_labels_has_no_objects(tmp_path):
    ultralytics(tmp_path / "yolo")
    draw(tmp_path / "yolo/images/train/empty.png")
    draw(tmp_path / "yolo/images/train/none.png")
    put(tmp_path / "yolo/labels/train/empty.txt", "\n")
    ds = read(tmp_path / "yolo", tmp_path / "out")
    assert {one["filename"]: len(one["labels"]) for one in ds["train"]} == {
        "train.png": 1,
        "empty.png": 0,
        "none.png": 0,
    }


def test_outlines_become_masks(tmp_path):
    ultralytics(tmp_path / "yolo")
    put(tmp_path / "yolo/labels/train/train.txt", "0 0.25 0.25 0.75 0.25 0.75 0.75\n" + BOX)
    record = read(tmp_path / "yolo", tmp_path / "out")["train"][0]
    triangle, rectangle = record["masks"][:, :, :, 0]
    assert triangle.sum() == pytest.approx(0.5 * 20 * 10, abs=12)
    assert triangle[6, 29]
    assert not triangle[13, 12]
    assert np.array_equal(np.argwhere(rectangle)[[0, -1]], [[6, 15], [13, 24]])
    assert np.allclose(record["xmin"], [0.25, 0.375])
    assert np.allclose(record["ymax"], [0.75, 0.7])


def test_oriented_boxes_keep_their_corners(tmp_path):
    ultralytics(tmp_path / "yolo")
    line = "1 0.5 0.2 0.8 0.5 0.5 0.8 0.2 0.5"
    for split in ("train", "val"):
        put(tmp_path / f"yolo/labels/{split}/{split}.txt", line)
    record = read(tmp_path / "yolo", tmp_path / "out")["train"][0]
    assert np.allclose(record["corners"], [[[0.5, 0.2], [0.8, 0.5], [0.5, 0.8], [0.2, 0.5]]])
    assert np.allclose([record["xmin"], record["ymax"]], [[0.2], [0.8]])
    drawn = read(YoloLabels(tmp_path / "yolo", task="segment"), tmp_path / "masks")["train"][0]
    assert drawn["masks"].shape == (1, HEIGHT, WIDTH, 1)


@pytest.mark.parametrize(("numbers", "visible"), [(3, [2, 0]), (2, [2, 2])])
def test_poses_become_keypoints(numbers, visible, tmp_path):
    root = tmp_path / "yolo"
    ultralytics(root)
    put(root / "data.yaml", (root / "data.yaml").read_text() + f"kpt_shape: [2, {numbers}]\n")
    points = [[0.5, 0.25, 2][:numbers], [0.125, 0.5, 0][:numbers]]
    for split in ("train", "val"):
        text = " ".join(str(value) for point in points for value in point)
        put(root / f"labels/{split}/{split}.txt", f"{BOX} {text}")
    record = read(root, tmp_path / "out")["train"][0]
    assert record["keypoints"].tolist() == [[[0.5, 0.25], [0.125, 0.5]]]
    assert record["keypoints_visible"].tolist() == [visible]


BAD = {
    "word": ("1 0.5 x 0.25 0.4", "a class and at least four numbers"),
    "short": ("1 0.5 0.5", "a class and at least four numbers"),
    "fraction": ("0.5 0.5 0.5 0.25 0.4", "a class and at least four numbers"),
    "not finite": ("1 nan 0.5 0.25 0.4", "a class and at least four numbers"),
    "unknown": ("2 0.5 0.5 0.25 0.4", "a class from 0 to 1, got 2"),
    "pixels": ("1 200 100 50 40", "an object within the image"),
}


def test_bad_labels_are_set_aside_with_a_reason(tmp_path):
    root = tmp_path / "yolo"
    ultralytics(root)
    for name, (line, _) in BAD.items():
        draw(root / f"images/train/{name}.png")
        put(root / f"labels/train/{name}.txt", f"{BOX}\n{line}\n")
    put(root / "train.txt", "images/train/train.png\nimages/train/missing.png\n")
    datum.write(root, tmp_path / "out", on_error="quarantine", progress=False)
    lines = (tmp_path / "out/quarantine.jsonl").read_text().splitlines()
    reasons = {one["key"]: one["reason"] for one in map(json.loads, lines)}
    assert reasons.keys() == {f"{name}.png" for name in BAD}
    for name, (_, reason) in BAD.items():
        assert reason in reasons[f"{name}.png"]


def test_a_missing_image_of_a_list_is_set_aside(tmp_path):
    lists(tmp_path / "yolo")
    put(tmp_path / "yolo/train.txt", "images/train/train.png\nimages/train/missing.png\n")
    ds = read(tmp_path / "yolo", tmp_path / "out", on_error="quarantine")
    assert len(ds["train"]) == 1
    assert "no such file" in (tmp_path / "out/quarantine.jsonl").read_text()


def test_boxes_beyond_the_border_are_cut_and_counted(tmp_path):
    ultralytics(tmp_path / "yolo")
    put(tmp_path / "yolo/labels/train/train.txt", "0 0.9 0.5 0.5 1.0")
    report = datum.write(tmp_path / "yolo", tmp_path / "out", progress=False)
    assert "1 object cut at the border" in str(report)
    assert datum.load(tmp_path / "out")["train"][0]["xmax"].tolist() == [1.0]


def test_folders_without_any_label_are_warned_about(tmp_path):
    ultralytics(tmp_path / "yolo")
    (tmp_path / "yolo/labels/val/val.txt").unlink()
    assert "no image has a file of labels" in str(
        datum.write(tmp_path / "yolo", tmp_path / "out", progress=False)
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("names: 3\ntrain: images", "`names` to be a list"),
        ("names: [a]\ntrain: nowhere", "'nowhere', got no such file or folder"),
        ("names: [a]\ntrain: images\nkpt_shape: [x]", "`kpt_shape` such as"),
    ],
)
def test_descriptions_that_cannot_be_followed_are_refused(text, problem, tmp_path):
    draw(tmp_path / "images/a.png")
    put(tmp_path / "data.yaml", text)
    with pytest.raises(datum.SourceError, match=problem):
        YoloLabels(tmp_path).parts()


def test_real_labels(shared_data, tmp_path):
    for name in ("labels", "annotations", "strict"):
        ds = read(shared_data / "formats/yolo_dataset" / name, tmp_path / name)
        assert ds["train"][0]["labels"].tolist() == [3, 5]
        assert ds.metadata["labels"]["class_names"][3] == "label_2"
