"""Pascal VOC folders and annotations."""

import os
import pickle

import numpy as np
import pytest

import datum
from datum import Feature
from datum.errors import SourceError
from datum.sources import IndexedPart, voc
from datum.sources.image_files import UnusableRecordError
from datum.sources.voc import Annotation, VocDetection, VocObject, VocSplit, read_annotation
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
    assert reject.reason == "expected one of the classes, got 'dog', similar to 'dogs'"
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
    assert reject.hint.startswith("datum.sources.VocDetection(path, sizes='image')")
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


BOX = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3.5</xmax><ymax>4</ymax></bndbox>"
SIZE = "<size><width>20</width><height>10</height><depth>3</depth></size>"


def read(tmp_path, content):
    path = tmp_path / "a.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_annotation(path)


def annotation(*objects, size=SIZE):
    return f"<annotation>{size}{''.join(objects)}</annotation>"


def test_objects_are_read(tmp_path):
    flags = "<pose>Left</pose><truncated>1</truncated><difficult>0</difficult>"
    content = annotation(f"<object><name> cat </name>{flags}{BOX}</object>")
    assert read(tmp_path, content) == Annotation(
        20.0, 10.0, [VocObject("cat", "Left", True, False, 1.0, 2.0, 3.5, 4.0)]
    )


def test_what_is_missing_has_a_default(tmp_path):
    found = read(tmp_path, annotation(f"<object><name>cat</name>{BOX}</object>", size=""))
    assert (found.width, found.height) == (0, 0)
    assert found.objects == [VocObject("cat", "Unspecified", False, False, 1, 2, 3.5, 4)]
    assert read(tmp_path, annotation(size="<size/>")) == Annotation(0.0, 0.0, [])


def test_parts_of_objects_are_no_objects(tmp_path):
    part = f"<part><name>head</name>{BOX}</part>"
    found = read(tmp_path, annotation(f"<object><name>person</name>{BOX}{part}</object>"))
    assert [item.name for item in found.objects] == ["person"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "expected XML, got a damaged file"),
        ("<annotation>", "expected XML, got a damaged file"),
        (b"\xff\xfe\x00", "expected XML, got a damaged file"),
        (annotation("<object><name/></object>"), "expected every object to have a name"),
        (annotation("<object><name>a</name></object>"), "object 'a': expected a bndbox"),
        (
            annotation(f"<object><name>a</name>{BOX.replace('3.5', 'x')}</object>"),
            "xmax: expected a number, got 'x'",
        ),
        (
            annotation(f"<object><name>a</name>{BOX.replace('3.5', 'nan')}</object>"),
            "xmax: expected a number, got 'nan'",
        ),
        (
            annotation(f"<object><name>a</name>{BOX.replace('3.5', '1e999')}</object>"),
            "xmax: expected a number",
        ),
        (
            annotation(f"<object><name>a</name>{BOX.replace('3.5', '0')}</object>"),
            "expected xmin <= xmax and ymin <= ymax, got 1, 2, 0, 4",
        ),
        (annotation(size="<size><width>wide</width></size>"), "width: expected a number"),
    ],
)
def test_a_damaged_annotation_is_refused_with_its_reason(tmp_path, content, reason):
    with pytest.raises(UnusableRecordError, match=reason) as caught:
        read(tmp_path, content)
    assert caught.value.where == str(tmp_path / "a.xml")


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 20))


@pytest.mark.parametrize(
    "declaration",
    [
        f'<!ENTITY l0 "lol">{LAUGHS}',
        '<!ENTITY l19 SYSTEM "file:///etc/passwd">',
        '<!ENTITY % outer SYSTEM "http://127.0.0.1:1/x.dtd"> %outer;',
    ],
    ids=["bomb", "file", "network"],
)
def test_entities_are_refused_at_once(tmp_path, declaration):
    content = f"<!DOCTYPE a [{declaration}]><annotation>&l19;</annotation>"
    with pytest.raises(UnusableRecordError, match="expected XML without entities"):
        read(tmp_path, content)


def test_deep_nesting_is_read_or_refused(tmp_path):
    content = "<annotation>" + "<a>" * 100_000 + "</a>" * 100_000 + "</annotation>"
    try:
        assert read(tmp_path, content).objects == []
    except UnusableRecordError as error:
        assert "expected XML" in str(error)  # noqa: PT017 - either is fine, a crash is not


def test_a_huge_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(voc, "MAX_XML_BYTES", 10)
    with pytest.raises(UnusableRecordError, match="expected at most 10 bytes of XML"):
        read(tmp_path, annotation())


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.xml")
    with pytest.raises(UnusableRecordError, match="expected a regular file, got a pipe"):
        read_annotation(tmp_path / "a.xml")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_file_of_endless_tags_is_refused_before_it_is_parsed(tmp_path, monkeypatch, encoding):
    monkeypatch.setattr(voc, "MAX_TAGS", 100)
    many = annotation("<a/>" * 101)
    with pytest.raises(UnusableRecordError, match="expected at most 100 tags of XML, got more"):
        read(tmp_path, many.encode(encoding))
    assert read(tmp_path, annotation("<a/>" * 80, size="").encode(encoding)).objects == []
