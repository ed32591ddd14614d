"""Detection as Pascal VOC has it."""

import pickle

import numpy as np
import pytest

import datum
from datum import Feature
from datum.errors import SourceError
from datum.sources import IndexedPart
from datum.sources.voc import VocDetection, VocSplit
from tests.unit.images.samples import pixels, save


def annotate(root, name, *objects, size=(20, 10), folder="Annotations"):
    """An XML file; objects are (name, xmin, ymin, xmax, ymax)."""
    boxes = "".join(
        f"<object><name>{label}</name><bndbox><xmin>{x0}</xmin><ymin>{y0}</ymin>"
        f"<xmax>{x1}</xmax><ymax>{y1}</ymax></bndbox></object>"
        for label, x0, y0, x1, y1 in objects
    )
    width, height = size or (0, 0)
    sizes = f"<size><width>{width}</width><height>{height}</height></size>" if size else ""
    path = root / folder / f"{name}.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<annotation>{sizes}{boxes}</annotation>")


def photograph(root, *names, folder="JPEGImages"):
    for name in names:
        save(root / folder / f"{name}.jpg", pixels(10, 20))


def enlist(root, split, *lines, folder="ImageSets"):
    path = root / folder / f"{split}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def read_all(part):
    return part.read(np.arange(len(part)))


@pytest.fixture
def root(tmp_path):
    photograph(tmp_path, "a", "b", "c")
    annotate(tmp_path, "a", ("dog", 2, 1, 10, 5), ("cat", 0, 0, 20, 10))
    annotate(tmp_path, "b")
    annotate(tmp_path, "c", ("cat", 4, 4, 6, 6))
    enlist(tmp_path, "train", "a", "b")
    enlist(tmp_path, "val", "c")
    return tmp_path


def test_boxes_are_fractions_of_the_image(root):
    parts = VocDetection(root).parts()
    assert list(parts) == ["train", "val"]
    part = parts["train"]
    assert isinstance(part, IndexedPart)
    assert part.is_slow_python
    assert part.metadata == {"labels": {"class_names": ["background", "cat", "dog"]}}
    first, second = read_all(part).data
    assert first == {
        "image": root / "JPEGImages/a.jpg",
        "xmin": [0.1, 0.0],
        "xmax": [0.5, 1.0],
        "ymin": [0.1, 0.0],
        "ymax": [0.5, 1.0],
        "area": [pytest.approx(0.16), 1.0],
        "pose": ["Unspecified", "Unspecified"],
        "labels": [2, 1],
        "is_truncated": [False, False],
        "labels_difficult": [False, False],
        "filename": "a.jpg",
    }
    assert second["xmin"] == second["labels"] == []
    assert list(part.schema) == list(first)
    assert part.schema["xmin"] == Feature("float32", (None,))
    assert part.schema["labels"] == Feature("int64", (None,))
    assert list(part.keys) == ["a", "b"]


def test_the_lists_of_main_are_used_too(root):
    for name in ("train", "val"):
        (root / f"ImageSets/{name}.txt").unlink()
    enlist(root, "test", "c  1", "a -1", folder="ImageSets/Main")
    parts = VocDetection(root).parts()
    assert list(parts["test"].keys) == ["c", "a"]


def test_without_lists_all_annotations_are_one_split(root):
    for path in (root / "ImageSets").iterdir():
        path.unlink()
    photograph(root, "extra")
    part = VocDetection(root).parts()["train"]
    assert list(part.keys) == ["a", "b", "c"]
    assert part.skipped == ("extra.jpg",)


def test_every_option_of_a_split_is_used(tmp_path):
    photograph(tmp_path, "a", folder="photos")
    save(tmp_path / "photos/a.png", pixels(10, 20))
    annotate(tmp_path, "a", ("dog", 2, 1, 10, 5), folder="xmls")
    enlist(tmp_path, "all", "a", folder="lists")
    options = {"image_dir": "photos", "annotation_dir": "xmls", "extension": ".png"}
    for extra in ({"set_dir": "lists"}, {"set_path": "lists/all.txt"}):
        given = {**options, **extra}
        for split in (given, VocSplit(**given)):
            part = VocDetection(tmp_path, splits={"all": split}).parts()["all"]
            assert read_all(part).data[0]["filename"] == "a.png"
    with pytest.raises(SourceError, match="unknown option 'images'"):
        VocDetection(tmp_path, splits={"all": {"images": "photos"}}).parts()
    with pytest.raises(SourceError, match="nowhere.*expected a file"):
        VocDetection(tmp_path, splits={"all": {**options, "set_dir": "nowhere"}}).parts()


def test_classes_come_from_their_file_in_its_order(root):
    (root / "classes.names").write_text("zebra\ndog\n\ncat\n")
    part = VocDetection(root).parts()["train"]
    assert part.metadata["labels"]["class_names"] == ["background", "zebra", "dog", "cat"]
    assert read_all(part).data[0]["labels"] == [2, 3]


def test_classes_can_be_given(root):
    part = VocDetection(root, classes=["dog", "Cat"]).parts()["train"]
    assert part.metadata["labels"]["class_names"] == ["background", "dog", "Cat"]
    assert read_all(part).data[0]["labels"] == [1, 2]
    with pytest.raises(SourceError, match="got 'dog' twice"):
        VocDetection(root, classes=["dog", "dog"]).parts()


def test_many_classes_are_compared_a_few_times_each(root):
    compared = 0

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    names = [Name(f"class {number}") for number in range(1000)]
    part = VocDetection(root, classes=["dog", "cat", *names]).parts()["train"]
    assert part.metadata["labels"]["class_names"][-1] == "class 999"
    assert compared < 10 * len(names)


def test_the_background_is_class_0_wherever_it_is_named(root):
    annotate(root, "b", ("background", 1, 1, 2, 2))
    part = VocDetection(root).parts()["train"]
    assert part.metadata["labels"]["class_names"] == ["background", "cat", "dog"]
    assert read_all(part).data[1]["labels"] == [0]


def test_an_unknown_class_is_rejected_and_the_nearest_named(root):
    block = read_all(VocDetection(root, classes=["cat", "dogs"]).parts()["train"])
    (reject,) = block.rejects
    assert reject.key == "a"
    assert reject.reason == "expected one of the classes, got 'dog', near to 'dogs'"
    assert reject.where == str(root / "Annotations/a.xml")


def test_boxes_are_cut_at_the_border_and_kept_without_area(root):
    annotate(root, "a", ("cat", -3, 2, 25, 12.5), ("cat", 5, 5, 5, 5))
    first = read_all(VocDetection(root).parts()["train"]).data[0]
    assert (first["xmin"][0], first["xmax"][0]) == (0.0, 1.0)
    assert (first["ymin"][0], first["ymax"][0]) == (0.2, 1.0)
    assert (first["xmin"][1], first["xmax"][1], first["area"][1]) == (0.25, 0.25, 0.0)


@pytest.mark.parametrize("box", [(21, 0, 25, 5), (0, 11, 5, 12), (-5, 0, -1, 5), (0, -5, 5, -1)])
def test_a_box_outside_is_rejected(root, box):
    annotate(root, "a", ("cat", *box))
    (reject,) = read_all(VocDetection(root).parts()["train"]).rejects
    assert "object 'cat': expected a box within 20 x 10, got" in reject.reason


def test_a_missing_size_is_that_of_the_image(root):
    annotate(root, "a", ("cat", 0, 0, 10, 5), size=None)
    first = read_all(VocDetection(root).parts()["train"]).data[0]
    assert (first["xmax"], first["ymax"]) == ([0.5], [0.5])
    (root / "JPEGImages/a.jpg").write_bytes(b"no image")
    (reject,) = read_all(VocDetection(root).parts()["train"]).rejects
    assert "expected a JPEG" in reject.reason


def test_an_image_without_annotation_is_rejected_or_empty(root):
    (root / "Annotations/b.xml").unlink()
    (reject,) = read_all(VocDetection(root).parts()["train"]).rejects
    assert (reject.record, reject.key) == (1, "b")
    assert "expected an annotation b.xml" in reject.reason
    block = read_all(VocDetection(root, unannotated="empty").parts()["train"])
    assert block.data[1]["labels"] == []
    with pytest.raises(SourceError, match="expected `unannotated` to be 'reject' or 'empty'"):
        VocDetection(root, unannotated="drop")


def test_a_split_without_any_annotation_is_unlabelled(root):
    (root / "Annotations/c.xml").unlink()
    block = read_all(VocDetection(root).parts()["val"])
    assert block.rejects == ()
    assert block.data[0]["labels"] == []


def test_an_annotation_without_image_is_rejected_with_its_line(root):
    (root / "JPEGImages/b.jpg").unlink()
    (reject,) = read_all(VocDetection(root).parts()["train"]).rejects
    assert reject.where == f"{root / 'ImageSets/train.txt'}, line 2"
    assert "expected an image 'b', got no such file" in reject.reason


def test_an_entity_bomb_costs_one_record(root):
    text = '<!DOCTYPE a [<!ENTITY x "y">]><annotation>&x;</annotation>'
    (root / "Annotations/a.xml").write_text(text)
    block = read_all(VocDetection(root).parts()["train"])
    assert [row["filename"] for row in block.data] == ["b.jpg"]
    assert block.rejects[0].reason.startswith("expected XML without entities")


def test_the_fingerprint_tells_changes(root):
    def fingerprint(**options):
        return VocDetection(root, **options).parts()["train"].fingerprint

    first = fingerprint()
    assert fingerprint() == first
    others = {fingerprint(classes=["dog", "cat"]), first}
    annotate(root, "a", ("dog", 2, 1, 10, 6.25))
    others.add(fingerprint())
    enlist(root, "train", "b", "a")
    others.add(fingerprint())
    assert len(others) == 4


def test_a_part_can_be_sent_to_another_process(root):
    part = pickle.loads(pickle.dumps(VocDetection(root).parts()["train"]))
    assert read_all(part).data[0]["labels"] == [2, 1]


def test_missing_folders_are_named(tmp_path):
    with pytest.raises(SourceError, match="JPEGImages: expected a folder"):
        VocDetection(tmp_path).parts()


def test_real_detection_sets_are_read(shared_data):
    parts = VocDetection(shared_data / "bccd_voc").parts()
    assert {name: len(part) for name, part in parts.items()} == {
        "test": 72,
        "train": 205,
        "val": 87,
    }
    blocks = [read_all(part) for part in parts.values()]
    assert all(block.rejects == () for block in blocks)
    rows = [row for block in blocks for row in block.data]
    assert sum(len(row["labels"]) for row in rows) == 4888
    assert sum(area == 0 for row in rows for area in row["area"]) == 2
    for name in ("xmin", "xmax", "ymin", "ymax"):
        assert all(0 <= value <= 1 for row in rows for value in row[name])


def test_other_real_layouts_are_read(shared_data):
    options = {"image_dir": "images", "annotation_dir": "annotations/xmls"}
    part = VocDetection(shared_data / "pets", splits={"train": options}).parts()["train"]
    block = read_all(part)
    assert (len(block), len(block.rejects)) == (333, 0)
    assert part.metadata["labels"]["class_names"] == ["background", "cat", "dog"]
    root = shared_data / "formats/voc_dataset"
    parts = VocDetection(root / "voc_dataset1").parts()
    assert read_all(parts["train"]).data[0]["labels"] == [1, 2]
    assert read_all(parts["test"]).data[0]["labels"] == []
    assert len(VocDetection(root / "voc_dataset3").parts()["train"]) == 1


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ((10, 20), "expected the size 20 x 10 of the image, got 10 x 20, width and height swapped"),
        ((20, 20), "expected the size 20 x 10 of the image, got 20 x 20"),
    ],
)
def test_a_size_that_contradicts_the_image_is_rejected(root, size, message):
    annotate(root, "a", ("dog", 2, 1, 8, 5), size=size)
    block = read_all(VocDetection(root).parts()["train"])
    (reject,) = block.rejects
    assert message in reject.reason
    assert reject.hint.startswith("VocDetection(path, sizes='image')")
    assert reject.where == str(root / "Annotations" / "a.xml")
    rows = read_all(VocDetection(root, sizes="image").parts()["train"]).data
    assert rows[0]["xmax"] == [0.4]
    assert rows[0]["ymax"] == [0.5]
    with pytest.raises(SourceError, match="expected `sizes` to be 'check' or 'image'"):
        VocDetection(root, sizes="xml")


def test_the_boxes_of_an_image_that_was_resized_hold(root):
    annotate(root, "a", ("dog", 200, 100, 800, 500), size=(2000, 999))
    rows = read_all(VocDetection(root).parts()["train"]).data
    assert rows[0]["xmax"] == [0.4]


def test_sizes_that_contradict_are_counted_in_the_report(root, tmp_path):
    annotate(root, "a", ("dog", 2, 1, 8, 5), size=(10, 20))
    report = datum.write(root, tmp_path / "out", on_error="quarantine", progress=False)
    assert report.splits["train"].rejected == 1
    assert "the size 20 x 10" in (tmp_path / "out" / "quarantine.jsonl").read_text()


def test_folders_of_images_and_annotations_are_found_under_other_names(tmp_path):
    photograph(tmp_path / "data", "raccoon-1", "raccoon-2", folder="images")
    for name in ("raccoon-1", "raccoon-2"):
        annotate(tmp_path / "data", name, ("raccoon", 2, 1, 8, 5), folder="annotations")
    for source in (tmp_path / "data", VocDetection(tmp_path / "data")):
        out = tmp_path / f"out {type(source).__name__}"
        assert datum.write(source, out, progress=False).records == 2
        assert datum.load(out).metadata["labels"]["class_names"] == ["background", "raccoon"]
