"""Which source fits a path."""

import os

import pytest

from datum.errors import SourceError
from datum.sources.open import detect
from tests.unit.images.samples import pixels, save


def images(root, *names):
    for name in names:
        save(root / name, pixels(4, 4), "PNG")


def texts(root, *names, content="filename\n"):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def kind(path, problem=None):
    return type(detect(path, problem)).__name__


def test_class_folders_are_told_by_two_folders_of_images(tmp_path):
    images(tmp_path, "cat/1.jpg", "dog/2.png")
    assert kind(tmp_path) == kind(str(tmp_path), "image_clf") == "ClassFolders"


def test_splits_of_class_folders_are_told(tmp_path):
    images(tmp_path, "train/cat/1.jpg", "train/dog/2.png", "val/cat/3.jpg")
    assert kind(tmp_path) == "ClassFolders"


def test_a_table_beside_a_folder_of_its_name_is_the_layout_of_the_paper(tmp_path):
    images(tmp_path, "train/1.jpg", "val/2.jpg")
    texts(tmp_path, "train.csv", "val.csv")
    assert kind(tmp_path) == kind(tmp_path, "image_clf") == "LabelledImages"


def test_a_table_says_more_than_names_of_folders(tmp_path):
    images(tmp_path, "train/cat/1.jpg", "train/dog/2.jpg")
    texts(tmp_path, "train.csv")
    assert kind(tmp_path) == kind(tmp_path, "image_clf") == "LabelledImages"


def test_voc_is_told_by_its_folders(tmp_path):
    images(tmp_path, "JPEGImages/1.jpg")
    texts(tmp_path, "Annotations/1.xml")
    assert kind(tmp_path) == kind(tmp_path, "image_det") == "VocDetection"


def test_masks_are_told_by_their_folders(tmp_path):
    images(tmp_path, "JPEGImages/1.jpg", "SegmentationClass/1.png")
    assert kind(tmp_path) == kind(tmp_path, "image_seg") == "SegmentationMasks"


def test_masks_are_told_by_lists_of_pairs(tmp_path):
    images(tmp_path, "train/1.png", "trainannot/1.png")
    texts(tmp_path, "train.txt", content="/train/1.png /trainannot/1.png\n")
    assert kind(tmp_path) == "SegmentationMasks"


def test_boxes_and_masks_at_once_must_be_chosen_from(tmp_path):
    images(tmp_path, "JPEGImages/1.jpg", "SegmentationClass/1.png")
    texts(tmp_path, "Annotations/1.xml")
    with pytest.raises(
        SourceError,
        match=r"several that fit: .*\nhint: pass problem='image_det' or problem='image_seg'",
    ):
        detect(tmp_path)
    assert kind(tmp_path, "image_det") == "VocDetection"
    assert kind(tmp_path, "image_seg") == "SegmentationMasks"


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.CSV", "a.csv.gz", "a.parquet", "a.feather", "a.jsonl", "a.json"]
)
def test_files_are_told_by_their_ending(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    expected = {"csv": "CsvTable", "tsv": "CsvTable", "jsonl": "JsonLines", "json": "JsonText"}
    assert kind(tmp_path / name) == expected.get(name.lower().split(".")[1], "ArrowTable")


def test_files_of_one_kind_are_a_table_with_a_split_for_each(tmp_path):
    texts(tmp_path, "train.csv", "test.csv", content="x\n1\n")
    source = detect(tmp_path)
    assert type(source).__name__ == "CsvTable"
    assert sorted(source.parts()) == ["test", "train"]


def test_numbered_files_belong_to_their_split(tmp_path):
    names = ("train-0-of-2.csv", "train-1-of-2.csv", "test-0-of-1.csv")
    texts(tmp_path, *names, content="x\n1\n")
    parts = detect(tmp_path).parts()
    assert {name: len(part) for name, part in parts.items()} == {"test": 1, "train": 2}


def test_files_of_other_names_are_one_split(tmp_path):
    texts(tmp_path, "part-0.csv", "part-1.csv", content="x\n1\n")
    (part,) = detect(tmp_path).parts().values()
    assert len(part) == 2


def test_text_can_be_asked_for(tmp_path):
    texts(tmp_path, "train.json", content="{}")
    assert kind(tmp_path) == kind(tmp_path, "text_clf") == "JsonText"
    with pytest.raises(SourceError, match="expected JPEGImages/ or images/, and Annotations/"):
        detect(tmp_path, "image_det")


@pytest.mark.parametrize(
    "names",
    [
        ("images/1.jpg", "annotations/1.png"),
        ("images/train/1.jpg",),
        ("train/1.jpg", "val/2.jpg"),
        ("1.jpg", "2.jpg"),
        ("cat/1.jpg",),
        (),
    ],
)
def test_what_fits_nothing_is_refused_with_what_was_found(tmp_path, names):
    images(tmp_path, *names)
    found = ", ".join(sorted({name.split("/")[0] + "/" * ("/" in name) for name in names}))
    message = f"expected folders named after classes.*, got {found or 'nothing'}\nhint: "
    with pytest.raises(SourceError, match=message):
        detect(tmp_path)


def test_images_beside_a_table_of_another_name_get_a_hint(tmp_path):
    images(tmp_path, "images/1.jpg")
    texts(tmp_path, "labels.csv")
    with pytest.raises(SourceError, match=r"hint: .*LabelledImages.*ImageTable\('labels.csv'"):
        detect(tmp_path)


def test_many_entries_are_told_in_short(tmp_path):
    texts(tmp_path, *(f"{number:03}.dat" for number in range(50)))
    with pytest.raises(SourceError, match="007.dat and 42 more"):
        detect(tmp_path)


def test_hidden_files_do_not_count(tmp_path):
    images(tmp_path, "cat/1.jpg", "dog/2.jpg")
    texts(tmp_path, ".DS_Store", ".cache/x.csv")
    assert kind(tmp_path) == "ClassFolders"


@pytest.mark.parametrize("problem", ["image_cls", "text", 5])
def test_a_wrong_problem_names_the_right_ones(tmp_path, problem):
    with pytest.raises(SourceError, match="expected `problem` image_clf, image_det, image_seg"):
        detect(tmp_path, problem)
    with pytest.raises(SourceError, match="hint: did you mean 'image_clf'"):
        detect(tmp_path, "image_cls")


def test_a_path_to_nothing_is_named(tmp_path):
    with pytest.raises(SourceError, match="gone: expected a file or a folder, got nothing there"):
        detect(tmp_path / "gone")


@pytest.mark.parametrize("problem", [None, "image_clf", "image_det", "image_seg", "text_clf"])
def test_a_file_of_another_kind_is_refused(tmp_path, problem):
    images(tmp_path, "a.jpg")
    texts(tmp_path, "a.pkl")
    for name in ("a.jpg", "a.pkl"):
        with pytest.raises(SourceError, match=f"{name}: expected a folder"):
            detect(tmp_path / name, problem)


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.bin")
    with pytest.raises(SourceError, match="a.bin: expected a folder"):
        detect(tmp_path / "a.bin")


def test_real_folders_are_told(shared_data):
    assert kind(shared_data / "clothing") == "ClassFolders"
    assert kind(shared_data / "bccd_voc") == "VocDetection"
    assert kind(shared_data / "formats/imagenet_dataset") == "ClassFolders"
    assert kind(shared_data / "formats/camvid_dataset") == "SegmentationMasks"
    for other in ("pets", "odd_images", "formats/coco_dataset/coco", "formats/yolo_dataset/strict"):
        with pytest.raises(SourceError, match="hint: "):
            detect(shared_data / other)
