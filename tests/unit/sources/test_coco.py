"""COCO's annotations, held against pycocotools where it can judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as oracle

import datum
from datum.images.regions import box_of_mask, mask_of_counts, mask_of_polygons
from datum.sources import CocoAnnotations

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

HEIGHT, WIDTH = 30, 40
CATEGORIES = [{"id": 0, "name": "zero"}, {"id": 7, "name": "seven"}, {"id": 90, "name": "ninety"}]


def draw(path: Path, size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (10, 20, 30)).save(path)


def image(number: int, name: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "file_name": name, "width": WIDTH, "height": HEIGHT, **more}


def box(number: int, image_id: int, *, category: int = 7, at=(4, 6, 8, 3), **more: Any) -> dict:
    left, top, width, height = at
    return {
        "id": number,
        "image_id": image_id,
        "category_id": category,
        "bbox": [left, top, width, height],
        "area": width * height,
        "iscrowd": 0,
        **more,
    }


def save(path: Path, images: list, annotations: list, categories: list = CATEGORIES) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"images": images, "annotations": annotations, "categories": categories}
    path.write_text(json.dumps(content))


def read(source: Any, out: Path, **options: Any) -> datum.Dataset:
    datum.write(source, out, shuffle=False, progress=False, **options)
    return datum.load(out)


@pytest.mark.parametrize("kind", ["any", "whole", "rounded", "degenerate"])
def test_polygons_cover_the_pixels_that_pycocotools_says(kind):
    random = np.random.default_rng(0)
    for _ in range(200):
        height, width = (int(n) for n in random.integers(1, 60, 2))
        points = random.integers(3, 12)
        polygon = random.uniform(-10, 70, 2 * points)
        if kind == "whole":
            polygon = np.round(polygon)
        elif kind == "rounded":
            polygon = np.round(polygon, 2)
        elif kind == "degenerate":
            polygon = np.repeat(np.round(polygon[::2]), 2)
        wanted = oracle.decode(oracle.frPyObjects([polygon.tolist()], height, width))[:, :, 0]
        assert np.array_equal(mask_of_polygons([polygon.tolist()], height, width), wanted)


def test_run_lengths_are_read_packed_and_plain():
    random = np.random.default_rng(1)
    for _ in range(100):
        mask = (random.random((int(random.integers(1, 40)), 23)) < 0.3).astype(np.uint8)
        packed = oracle.encode(np.asfortranarray(mask))
        height, width = packed["size"]
        flat = mask.T.ravel()
        runs = np.diff([0, *(np.flatnonzero(np.diff(flat)) + 1), flat.size]).tolist()
        plain = runs if not flat[0] else [0, *runs]
        for counts in (packed["counts"], packed["counts"].decode(), plain):
            assert np.array_equal(mask_of_counts(counts, height, width), mask)
        assert box_of_mask(mask) == tuple(oracle.toBbox(packed).astype(int))


def test_objects_of_a_split_come_with_class_names_and_masks(tmp_path):
    root = tmp_path / "coco"
    for name in ("a.jpg", "b.jpg", "not listed.jpg"):
        draw(root / "train2017" / name)
    polygon = [4.0, 6.0, 12.0, 6.0, 12.0, 9.0, 4.0, 9.0]
    crowd = oracle.encode(np.asfortranarray(np.eye(HEIGHT, WIDTH, dtype=np.uint8)))
    counts = crowd["counts"].decode()
    save(
        root / "annotations/instances_train2017.json",
        [image(5, "a.jpg"), image(3, "b.jpg")],
        [
            box(11, 5, category=90, segmentation=[polygon]),
            box(2, 5, category=0, segmentation={"counts": counts, "size": [30, 40]}, iscrowd=1),
        ],
    )
    ds = read(root, tmp_path / "out")
    assert list(ds.splits) == ["train"]
    assert ds.metadata["labels"]["class_names"] == ["background", "zero", "seven", "ninety"]
    assert ds.metadata["labels"]["coco_ids"] == [None, 0, 7, 90]
    first, second = (one for one in ds["train"])
    assert first["image"].shape == (HEIGHT, WIDTH, 3)
    assert (first["image_id"], first["filename"]) == (5, "a.jpg")
    assert first["labels"].tolist() == [3, 1]
    assert first["annotation_id"].tolist() == [11, 2]
    assert first["is_crowd"].tolist() == [False, True]
    assert np.allclose(first["xmin"], 4 / WIDTH)
    assert np.allclose(first["xmax"], 12 / WIDTH)
    assert np.allclose(first["ymin"], 6 / HEIGHT)
    assert np.allclose(first["ymax"], 9 / HEIGHT)
    assert np.allclose(first["area"], 24 / (WIDTH * HEIGHT))
    wanted = oracle.decode(oracle.frPyObjects([polygon], HEIGHT, WIDTH))[:, :, 0]
    assert np.array_equal(first["masks"][0][:, :, 0], wanted)
    assert np.array_equal(first["masks"][1][:, :, 0], np.eye(HEIGHT, WIDTH))
    assert second["labels"].tolist() == []
    assert len(second["masks"]) == 0


LAYOUTS = {
    "train2017 beside annotations": ("annotations/instances_{}2017.json", "{}2017/{}"),
    "images by split": ("annotations/instances_{}.json", "images/{}/{}"),
    "one folder of images": ("annotations/instances_{}.json", "images/{1}"),
    "data": ("{}.json", "data/{1}"),
    "Roboflow": ("{}/_annotations.coco.json", "{}/{}"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_recognised_from_the_path(layout, tmp_path):
    annotations, images = LAYOUTS[layout]
    root = tmp_path / "coco"
    for number, split in enumerate(("train", "val")):
        name = f"{number}.png"
        draw(root / images.format(split, name))
        save(root / annotations.format(split), [image(number, name)], [box(1, number)])
    ds = read(root, tmp_path / "out")
    assert {split: len(ds[split]) for split in ds.splits} == {"train": 1, "val": 1}
    assert ds["val"][0]["filename"] == "1.png"
    assert "COCO annotations: 3 classes" in str(datum.plan(root))


def test_one_file_of_annotations_is_a_source(tmp_path):
    draw(tmp_path / "coco/images/a.png")
    file = tmp_path / "coco/annotations/instances_default.json"
    save(file, [image(1, "a.png")], [box(1, 1)])
    assert read(file, tmp_path / "out")["train"][0]["labels"].tolist() == [2]
    assert read(tmp_path / "coco", tmp_path / "all")["train"][0]["labels"].tolist() == [2]


def test_keypoints_keep_their_names_and_skeleton(tmp_path):
    names = ["nose", "left eye"]
    person = {"id": 1, "name": "person", "keypoints": names, "skeleton": [[1, 2]]}
    draw(tmp_path / "coco/images/a.png")
    save(
        tmp_path / "coco/annotations/person_keypoints_val2017.json",
        [image(1, "a.png")],
        [box(1, 1, category=1, keypoints=[10, 15, 2, 0, 0, 0], num_keypoints=1)],
        [person],
    )
    ds = read(tmp_path / "coco", tmp_path / "out")
    assert ds.metadata["keypoints"] == {"names": names, "skeleton": [[1, 2]]}
    record = ds["val"][0]
    assert record["keypoints"].tolist() == [[[0.25, 0.5], [0.0, 0.0]]]
    assert record["keypoints_visible"].tolist() == [[2, 0]]


def test_captions_and_the_choice_of_a_task(tmp_path):
    root = tmp_path / "coco"
    draw(root / "images/a.png")
    save(root / "annotations/instances_train.json", [image(1, "a.png")], [box(1, 1)])
    captions = [{"id": n, "image_id": 1, "caption": text} for n, text in enumerate(["one", "two"])]
    save(root / "annotations/captions_train.json", [image(1, "a.png")], captions, [])
    assert "labels" in read(root, tmp_path / "objects").schema
    assert "COCO annotations (instances, not captions): 3 classes" in str(datum.plan(root))
    described = read(CocoAnnotations(root, task="captions"), tmp_path / "texts")
    assert described["train"][0]["captions"] == ["one", "two"]
    assert set(described.schema) == {"image", "image_id", "filename", "captions"}
    with pytest.raises(datum.SourceError, match="caption_<split>.json") as raised:
        CocoAnnotations(root, task="caption").parts()
    assert raised.value.hint == "did you mean 'captions'?"


def test_panoptic_masks_hold_the_place_of_each_segment(tmp_path):
    root = tmp_path / "coco"
    draw(root / "images/a.png")
    ids = np.zeros((HEIGHT, WIDTH), np.uint32)
    ids[:10], ids[20:] = 70_000, 300
    colours = np.stack([ids % 256, ids // 256 % 256, ids // 65536], axis=2).astype(np.uint8)
    (root / "annotations/panoptic_val").mkdir(parents=True)
    Image.fromarray(colours).save(root / "annotations/panoptic_val/a.png")
    segments = [
        {"id": 300, "category_id": 90, "bbox": [0, 20, WIDTH, 10], "area": 400, "iscrowd": 0},
        {"id": 70_000, "category_id": 7, "bbox": [0, 0, WIDTH, 10], "area": 400, "iscrowd": 1},
    ]
    annotation = {"image_id": 1, "file_name": "a.png", "segments_info": segments}
    save(root / "annotations/panoptic_val.json", [image(1, "a.png")], [annotation])
    record = read(root, tmp_path / "out")["val"][0]
    assert record["labels"].tolist() == [3, 2]
    assert record["segments"].dtype == np.uint16
    assert np.array_equal(record["segments"][:, :, 0], np.select([ids == 300, ids > 300], [1, 2]))
    assert record["is_crowd"].tolist() == [False, True]


def test_what_does_not_fit_is_counted_or_set_aside(tmp_path):
    root = tmp_path / "coco"
    for name in ("good.png", "cut.png", "text.png", "other.png"):
        draw(root / "images" / name)
    draw(root / "images/turned.png", (HEIGHT, WIDTH))
    names = ["good.png", "cut.png", "missing.png", "turned.png", "text.png", "other.png"]
    save(
        root / "annotations/instances_train.json",
        [image(number, name) for number, name in enumerate(names)],
        [
            box(1, 0, at=(1, 1, 0, 5)),  # without area: kept
            box(2, 1, at=(-5, 2, 20, 90)),  # beyond the border: cut
            box(3, 3),  # of an image whose size is another
            box(4, 4, segmentation=[["a", "b", "c", "d", "e", "f"]]),
            box(5, 5, category=8),  # not in the list
            box(6, 99),  # of no image
        ],
    )
    out = tmp_path / "out"
    report = datum.write(root, out, on_error="quarantine", shuffle=False, progress=False)
    lines = (out / "quarantine.jsonl").read_text().splitlines()
    reasons = {one["key"]: one["reason"] for one in map(json.loads, lines)}
    assert set(reasons) == {"missing.png", "turned.png", "text.png", "other.png"}
    assert "no such file" in reasons["missing.png"]
    assert "EXIF" in reasons["turned.png"]
    assert "polygon of numbers" in reasons["text.png"]
    assert "category of the list, got 8" in reasons["other.png"]
    cut = datum.load(out)["train"][1]
    assert (cut["xmin"][0], cut["ymax"][0]) == (0.0, 1.0)
    shown = str(report)
    assert "1 annotation of images that are not listed" in shown
    assert "1 box cut at the border" in shown
    assert "1 box without area" in shown


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"images": [], "annotations": ', "expected JSON"),
        ('{"images": {}, "annotations": []}', "'images' to be a list of objects"),
        ('{"images": [{"id": 1}], "annotations": []}', "an `id` and a `file_name`"),
        (
            '{"images": [{"id": 1, "file_name": "a"}, {"id": 1, "file_name": "b"}]}',
            "got 1 twice",
        ),
        (
            '{"images": [], "annotations": [], "categories": [{"id": "x", "name": "y"}]}',
            "categories with an `id` and a `name`",
        ),
    ],
)
def test_files_that_are_no_annotations_are_refused(content, problem, tmp_path):
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/instances_train.json").write_text(content)
    with pytest.raises(datum.SourceError, match=problem):
        CocoAnnotations(tmp_path).parts()


def test_files_must_agree_on_the_name_of_a_category(tmp_path):
    save(tmp_path / "annotations/instances_train.json", [], [], [{"id": 1, "name": "cat"}])
    save(tmp_path / "annotations/instances_val.json", [], [], [{"id": 1, "name": "dog"}])
    with pytest.raises(datum.SourceError, match="category 1: expected 'cat'.*got 'dog'"):
        CocoAnnotations(tmp_path).parts()


def test_run_lengths_of_another_size_are_refused():
    for counts in ([5, 7], [-1, 13], [2**62, 2**62], "0000", "~~~", ["a"], None, 3):
        with pytest.raises(datum.SourceError):
            mask_of_counts(counts, 4, 4)


def test_real_annotations(shared_data, tmp_path):
    found = {}
    for folder in sorted((shared_data / "formats/coco_dataset").iterdir()):
        if folder.name != "coco_panoptic":  # its masks are not of the size of its images
            found[folder.name] = sorted(read(folder, tmp_path / folder.name).schema)
    assert "captions" in found["coco_captions"]
    assert "keypoints" in found["coco_person_keypoints"]
    assert "masks" in found["coco_stuff"]
    assert found["coco_image_info"] == ["filename", "image", "image_id"]
    assert found["coco_roboflow"] == found["mmdet_coco"] == found["coco_instances"]
