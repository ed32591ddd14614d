"""Images in folders named after their class."""

import os
import pickle
import sys

import numpy as np
import pytest

import datum
from datum.errors import SourceError
from datum.sources import IndexedPart
from datum.sources.class_folders import ClassFolders
from tests.unit.images.samples import pixels, save


def make(root, *names):
    for name in names:
        save(root / name, pixels(4, 4), "PNG")
    return root


def read_all(part):
    return part.read(np.arange(len(part)))


def labels(part):
    block = read_all(part)
    return {row["filename"]: row["label"] for row in block.data}


def test_a_folder_is_a_class(tmp_path):
    make(tmp_path, "dog/1.png", "cat/2.png", "cat/3.png")
    parts = ClassFolders(tmp_path).parts()
    assert list(parts) == ["train"]
    part = parts["train"]
    assert isinstance(part, IndexedPart)
    assert part.metadata == {"label": {"class_names": ["cat", "dog"]}}
    assert labels(part) == {"cat/2.png": 0, "cat/3.png": 0, "dog/1.png": 1}
    assert list(part.keys) == ["cat/2.png", "cat/3.png", "dog/1.png"]
    assert list(part.schema) == ["image", "label", "filename"]
    assert read_all(part).data[2]["image"] == tmp_path / "dog/1.png"
    assert part.stored_bytes == sum(path.stat().st_size for path in tmp_path.rglob("*.png"))
    assert not part.is_slow_python


def test_reading_touches_no_file(tmp_path):
    make(tmp_path, "dog/1.png", "cat/2.png")
    part = ClassFolders(tmp_path).parts()["train"]
    (tmp_path / "dog/1.png").unlink()
    assert len(read_all(part)) == 2


def test_folders_of_splits_share_their_classes(tmp_path):
    make(tmp_path, "train/cat/1.png", "train/dog/2.png", "val/dog/3.png", "val/emu/4.png")
    parts = ClassFolders(tmp_path).parts()
    assert list(parts) == ["train", "val"]
    for part in parts.values():
        assert part.metadata["label"]["class_names"] == ["cat", "dog", "emu"]
    assert labels(parts["val"]) == {"val/dog/3.png": 1, "val/emu/4.png": 2}


def test_a_split_of_another_name_counts_beside_known_ones(tmp_path):
    make(tmp_path, "train/cat/1.png", "extra/dog/2.png")
    assert list(ClassFolders(tmp_path).parts()) == ["extra", "train"]


def test_nested_folders_count_for_their_class(tmp_path):
    make(tmp_path, "cat/1.png", "cat/old/2.png", "dog/a/b/3.png")
    assert labels(ClassFolders(tmp_path).parts()["train"]) == {
        "cat/1.png": 0,
        "cat/old/2.png": 0,
        "dog/a/b/3.png": 1,
    }


def test_a_class_may_be_called_as_a_split(tmp_path):
    make(tmp_path, "train/1.png", "car/2.png")
    parts = ClassFolders(tmp_path).parts()
    assert parts["train"].metadata["label"]["class_names"] == ["car", "train"]


def test_splits_beside_folders_of_images_must_be_named(tmp_path):
    make(tmp_path, "train/cat/1.png", "train/dog/2.png", "test/3.png")
    with pytest.raises(SourceError, match=r"folders and test with images.*\n.*\['train'\]"):
        ClassFolders(tmp_path).parts()
    assert list(ClassFolders(tmp_path, splits=["train"]).parts()) == ["train"]
    flat = ClassFolders(tmp_path, splits={"train": "."}).parts()["train"]
    assert flat.metadata["label"]["class_names"] == ["test", "train"]


def test_splits_without_classes_are_no_classes(tmp_path):
    make(tmp_path, "train/1.png", "test/2.png")
    with pytest.raises(SourceError, match="got test, train with images but no folders"):
        ClassFolders(tmp_path).parts()


def test_splits_can_be_given_with_their_folders(tmp_path):
    make(tmp_path, "a/cat/1.png", "b/c/dog/2.png")
    parts = ClassFolders(tmp_path, splits={"train": "a", "val": "b/c"}).parts()
    assert labels(parts["val"]) == {"b/c/dog/2.png": 1}
    with pytest.raises(SourceError, match="expected `splits` as a list or a dict, got 'train'"):
        ClassFolders(tmp_path, splits="train").parts()
    with pytest.raises(SourceError, match="gone: expected a folder"):
        ClassFolders(tmp_path, splits=["gone"]).parts()


def test_files_that_are_no_images_are_told(tmp_path):
    make(tmp_path, "cat/1.png", "dog/2.png", "loose.png", "cat/noname")
    (tmp_path / "cat/Thumbs.db").write_bytes(b"\xd0\xcf")
    (tmp_path / "cat/info.json").write_text("{}")
    (tmp_path / "cat/.DS_Store").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    part = ClassFolders(tmp_path).parts()["train"]
    assert part.skipped == ("cat/Thumbs.db", "cat/info.json")
    assert "loose.png" in part.warnings[0]
    assert list(part.keys) == ["cat/1.png", "cat/noname", "dog/2.png"]
    assert part.metadata["label"]["class_names"] == ["cat", "dog"]


def test_a_file_called_an_image_counts_even_if_it_is_none(tmp_path):
    make(tmp_path, "cat/1.png")
    (tmp_path / "cat/broken.jpeg").write_bytes(b"no image")
    (tmp_path / "cat/gone.jpg").symlink_to(tmp_path / "nowhere")
    part = ClassFolders(tmp_path).parts()["train"]
    assert list(part.keys) == ["cat/1.png", "cat/broken.jpeg", "cat/gone.jpg"]


def test_a_pipe_is_listed_and_never_opened(tmp_path):
    make(tmp_path, "cat/1.png")
    os.mkfifo(tmp_path / "cat/pipe.jpg")
    os.mkfifo(tmp_path / "cat/pipe")
    part = ClassFolders(tmp_path).parts()["train"]
    assert list(part.keys) == ["cat/1.png", "cat/pipe.jpg"]
    assert part.skipped == ("cat/pipe",)


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux alone")
def test_odd_names_are_kept(tmp_path):
    make(tmp_path, "c a\nt/ü \\ 1.png", "dog/2.png")
    odd = tmp_path / "dog" / os.fsdecode(b"\xff.png")
    save(tmp_path / "dog/x.png", pixels(2, 2)).rename(odd)
    block = read_all(ClassFolders(tmp_path).parts()["train"])
    assert block.keys == ["c a\nt/ü \\ 1.png", "dog/2.png", r"dog/\xff.png"]
    assert all(row["image"].exists() for row in block.data)


def test_links_in_circles_end(tmp_path):
    make(tmp_path, "cat/1.png", "dog/2.png")
    (tmp_path / "cat/loop").symlink_to(tmp_path, target_is_directory=True)
    assert len(ClassFolders(tmp_path).parts()["train"]) == 2


def test_the_fingerprint_tells_changes(tmp_path):
    make(tmp_path, "train/cat/1.png", "train/dog/2.png")
    part = ClassFolders(tmp_path).parts()["train"]
    assert part.fingerprint == ClassFolders(str(tmp_path)).parts()["train"].fingerprint
    os.utime(tmp_path / "train/cat/1.png", ns=(1, 1))
    touched = ClassFolders(tmp_path).parts()["train"].fingerprint
    make(tmp_path, "val/emu/1.png")  # another class: ids have changed
    assert (
        len({part.fingerprint, touched, ClassFolders(tmp_path).parts()["train"].fingerprint}) == 3
    )


def test_a_folder_without_images_is_refused(tmp_path):
    (tmp_path / "cat").mkdir()
    with pytest.raises(SourceError, match=r"expected folders of images.*\nhint: "):
        ClassFolders(tmp_path).parts()
    with pytest.raises(SourceError, match="gone: expected a folder, got nothing there"):
        ClassFolders(tmp_path / "gone").parts()


def test_a_part_can_be_sent_to_another_process(tmp_path):
    make(tmp_path, "cat/1.png")
    part = pickle.loads(pickle.dumps(ClassFolders(tmp_path).parts()["train"]))
    assert read_all(part).data[0]["filename"] == "cat/1.png"


def test_real_class_folders_are_read(shared_data):
    parts = ClassFolders(shared_data / "clothing").parts()
    assert {name: len(part) for name, part in parts.items()} == {"train": 400, "validation": 120}
    assert len(parts["train"].metadata["label"]["class_names"]) == 10
    for part in parts.values():
        for row in read_all(part).data:
            names = part.metadata["label"]["class_names"]
            assert row["image"].parent.name == names[row["label"]]


def test_images_beside_class_folders_are_a_warning(tmp_path):
    for name in ("cat/1.jpg", "cat/2.jpg", "dog/3.jpg", "dog/4.jpg", "a.jpg", "b.png", "c.jpg"):
        save(tmp_path / "data" / name, pixels(4, 4))
    (tmp_path / "data/notes.txt").write_text("no image")
    report = datum.write(tmp_path / "data", tmp_path / "out", progress=False)
    (warning,) = report.warnings
    assert warning == (
        "3 images are left out, as they lie beside the folders of classes: a.jpg, b.png, c.jpg"
    )
    assert f"warning: {warning}" in str(report)
    assert report.skipped == ("notes.txt",)
    plan = datum.plan(tmp_path / "data")
    assert plan.warnings == (warning,)
    assert plan.skipped == ("notes.txt",)


def test_images_beside_the_folders_of_splits_are_a_warning(tmp_path):
    for name in ("train/cat/1.jpg", "train/dog/2.jpg", "train/a.jpg", "test/cat/3.jpg", "b.jpg"):
        save(tmp_path / "data" / name, pixels(4, 4))
    report = datum.write(tmp_path / "data", tmp_path / "out", progress=False)
    text = " ".join(report.warnings)
    assert "train/a.jpg" in text
    assert "b.jpg" in text
    assert report.records == 3


def test_many_images_beside_few_in_folders_are_refused(tmp_path):
    names = [f"{number:02}.jpg" for number in range(50)]
    for name in ("cat/1.jpg", "cat/2.jpg", "dog/3.jpg", *names):
        save(tmp_path / "data" / name, pixels(4, 4))
    message = r"got 3 in cat/, dog/ and 50 beside them, such as 00.jpg\nhint: problem='image_clf'"
    with pytest.raises(SourceError, match=message):
        datum.plan(tmp_path / "data")
    with pytest.raises(SourceError, match=message):
        datum.write(tmp_path / "data", tmp_path / "out", progress=False)
    report = datum.write(tmp_path / "data", tmp_path / "out", problem="image_clf", progress=False)
    assert report.records == 3
    assert "50 images are left out" in report.warnings[0]
