"""Folders of image files and archives of them."""

import os
import pickle
import sys

import numpy as np
import pytest

import datum
from datum import Schema
from datum.errors import SourceError
from datum.sources import IndexedPart, Reject
from datum.sources.class_folders import ClassFolders
from datum.sources.files import (
    FoundFile,
    as_text,
    fingerprint_of,
    list_files,
    list_folders,
    looks_like_image,
    open_folder,
)
from datum.sources.image_files import (
    FilePart,
    ImageIndex,
    SetLine,
    UnusableRecordError,
    find_set_files,
    read_set_file,
    set_file_of,
)
from tests.unit.images.samples import pixels, save


def names(folder):
    return [file.name for file in list_files(folder)]


def touch(path, content=b""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_files_come_sorted_whatever_the_file_system_says(tmp_path, monkeypatch):
    for name in ("b/2.jpg", "a/1.jpg", "c.jpg", "a/b/3.jpg"):
        touch(tmp_path / name)
    expected = ["a/1.jpg", "a/b/3.jpg", "b/2.jpg", "c.jpg"]
    assert names(tmp_path) == expected
    real = os.scandir

    class Backwards:
        def __init__(self, path):
            with real(path) as entries:
                self.entries = sorted(entries, key=lambda entry: entry.name, reverse=True)

        def __enter__(self):
            return iter(self.entries)

        def __exit__(self, *args):
            return None

    monkeypatch.setattr(os, "scandir", Backwards)
    assert names(tmp_path) == expected


def test_hidden_files_and_folders_are_left_out(tmp_path):
    for name in (".DS_Store", "a/.hidden", ".git/x", "a/1.jpg"):
        touch(tmp_path / name)
    assert names(tmp_path) == ["a/1.jpg"]
    assert list_folders(tmp_path) == ["a"]


def test_a_file_has_its_size_and_a_version_that_no_restored_time_hides(tmp_path):
    path = touch(tmp_path / "a", b"12345")
    os.utime(path, ns=(5, 123456789))
    (before,) = list_files(tmp_path)
    assert (before.name, before.size) == ("a", 5)
    assert list_files(tmp_path) == [before]
    path.write_bytes(b"54321")
    os.utime(path, ns=(5, 123456789))
    assert list_files(tmp_path) != [before]


def test_links_are_followed_but_not_in_circles(tmp_path):
    touch(tmp_path / "a/1.jpg")
    (tmp_path / "a/up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "a/self").symlink_to(tmp_path / "a/self")
    (tmp_path / "b").symlink_to(tmp_path / "a", target_is_directory=True)
    assert names(tmp_path) == ["a/1.jpg", "a/self", "b/1.jpg", "b/self"]


def test_many_links_between_folders_are_no_labyrinth(tmp_path):
    for number in range(12):  # there are 12! ways through them
        touch(tmp_path / f"{number}" / "1.jpg")
        for other in range(12):
            (tmp_path / f"{number}" / f"link{other}").symlink_to(tmp_path / f"{other}")
    assert 12 <= len(names(tmp_path)) <= 12 + 144


def test_a_link_leads_to_what_is_elsewhere(tmp_path):
    touch(tmp_path / "elsewhere/deep/1.jpg")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/cat").symlink_to(tmp_path / "elsewhere")
    assert names(tmp_path / "photos") == ["cat/deep/1.jpg"]


def test_a_link_that_leads_nowhere_is_listed(tmp_path):
    (tmp_path / "a.jpg").symlink_to(tmp_path / "gone.jpg")
    assert list_files(tmp_path) == [FoundFile("a.jpg", 0, 0)]


def test_a_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(SourceError, match="gone: expected a folder, got nothing there"):
        open_folder(tmp_path / "gone")
    touch(tmp_path / "file")
    with pytest.raises(SourceError, match="file: expected a folder, got a file"):
        open_folder(tmp_path / "file")
    assert open_folder(str(tmp_path)) == tmp_path


def test_an_image_is_told_by_name_or_content(tmp_path):
    touch(tmp_path / "broken.JPG", b"no image")
    touch(tmp_path / "notes.txt", b"text")
    save(tmp_path / "noname", pixels(3, 3), "PNG")
    assert looks_like_image(tmp_path, "broken.JPG")
    assert looks_like_image(tmp_path, "noname")
    assert not looks_like_image(tmp_path, "notes.txt")


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux alone")
def test_a_name_that_is_no_text_is_made_text(tmp_path):
    (tmp_path / os.fsdecode(b"a\xff.jpg")).touch()
    (file,) = list_files(tmp_path)
    assert as_text(file.name) == r"a\xff.jpg"
    assert as_text("ä") == "ä"
    assert fingerprint_of([file])


def test_the_fingerprint_changes_with_everything():
    files = [FoundFile("a", 1, 2), FoundFile("b", 3, 4)]
    same = fingerprint_of(files, "x")
    assert same == fingerprint_of(list(files), "x")
    others = [
        fingerprint_of(files, "y"),
        fingerprint_of(files[:1], "x"),
        fingerprint_of([FoundFile("a", 1, 2), FoundFile("c", 3, 4)], "x"),
        fingerprint_of([FoundFile("a", 1, 2), FoundFile("b", 4, 4)], "x"),
        fingerprint_of([FoundFile("a", 1, 2), FoundFile("b", 3, 5)], "x"),
    ]
    assert len({same, *others}) == 6


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
    assert warning == ("3 images are left out, outside the folders of classes: a.jpg, b.png, c.jpg")
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


@pytest.fixture
def index(tmp_path):
    for name in ("a.jpg", "b.JPEG", "c.png", "c.jpg", "d.e.bmp", "sub/f.jpg", "notes.txt", "raw"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    return ImageIndex.of_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a", "a.jpg"),
        ("a.jpg", "a.jpg"),
        ("b", "b.JPEG"),
        ("c.png", "c.png"),
        ("d.e", "d.e.bmp"),
        ("sub/f", "sub/f.jpg"),
        ("sub\\f", "sub/f.jpg"),
        ("./a", "a.jpg"),
        ("raw", "raw"),
    ],
)
def test_a_name_needs_no_extension(index, name, found):
    assert index.find(name).name == found


@pytest.mark.parametrize(
    ("name", "extension", "found"),
    [
        ("a", ".jpg", "a.jpg"),
        ("a", "jpg", "a.jpg"),
        ("a.jpg", ".jpg", "a.jpg"),
        ("c", ".png", "c.png"),
        ("b", ".jpeg", "b.JPEG"),
        ("notes", ".txt", "notes.txt"),
    ],
)
def test_an_extension_chooses(index, name, extension, found):
    assert index.find(name, extension).name == found


@pytest.mark.parametrize("name", ["z", "a.png", "../a", "/a", "", "notes"])
def test_what_is_not_there_is_refused(index, name):
    with pytest.raises(UnusableRecordError, match="got no such file"):
        index.find(name)


def test_two_images_of_one_name_are_refused(index):
    with pytest.raises(UnusableRecordError, match=r"got c\.jpg and c\.png\nhint: pass"):
        index.find("c")
    with pytest.raises(UnusableRecordError, match="got no such file"):
        index.find("c", ".webp")


def test_a_file_has_a_path(index):
    assert index.path_of(index.find("sub/f")) == index.folder / "sub/f.jpg"


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(SourceError, match="gone: expected a folder"):
        ImageIndex.of_folder(tmp_path / "gone")


def make_row(number):
    if number == 1:
        raise UnusableRecordError("expected a file, got none", where="list.txt, line 2")
    return {"x": number}


def make_part():
    return FilePart(
        make_row,
        schema=Schema({}),
        keys=["a", "b", "c"],
        fingerprint="f",
        stored_bytes=1,
        metadata={},
    )


def test_it_is_an_indexed_part():
    part = make_part()
    assert isinstance(part, IndexedPart)
    assert len(part) == 3
    assert not part.is_slow_python


def test_records_come_in_the_order_asked_for_and_bad_ones_are_rejected():
    block = make_part().read(np.array([2, 1, 0]))
    assert block.data == [{"x": 2}, {"x": 0}]
    assert block.numbers.tolist() == [2, 0]
    assert block.keys == ["c", "a"]
    assert block.rejects == (Reject(1, "b", "list.txt, line 2", "expected a file, got none"),)


def test_no_numbers_give_an_empty_block():
    block = make_part().read(np.array([], np.int64))
    assert len(block) == 0
    assert block.numbers.dtype == np.int64


def test_it_can_be_sent_to_another_process():
    part = pickle.loads(pickle.dumps(make_part()))
    assert part.read(np.array([0])).data == [{"x": 0}]


FOLDERS = ("ImageSets", "ImageSets/Main")


def write(path, content="a\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_lists_of_splits_are_found_in_the_first_folder_that_has_any(tmp_path):
    main = tmp_path / "ImageSets/Main"
    for name in ("train", "val", "trainval", "cat_train", "readme"):
        write(main / f"{name}.txt")
    assert find_set_files(tmp_path, FOLDERS) == {
        "train": main / "train.txt",
        "val": main / "val.txt",
    }
    write(tmp_path / "ImageSets/test.txt")
    assert list(find_set_files(tmp_path, FOLDERS)) == ["test"]


def test_a_single_list_of_all_is_a_split(tmp_path):
    write(tmp_path / "ImageSets/trainval.txt")
    assert list(find_set_files(tmp_path, FOLDERS)) == ["trainval"]
    assert find_set_files(tmp_path / "other", FOLDERS) == {}


def test_the_list_of_a_split_is_where_it_is_said_to_be(tmp_path):
    write(tmp_path / "ImageSets/Main/x.txt")
    found = set_file_of(tmp_path, "x", None, None, FOLDERS)
    assert found == tmp_path / "ImageSets/Main/x.txt"
    found = set_file_of(tmp_path, "x", "lists", None, FOLDERS)
    assert found == tmp_path / "lists/x.txt"
    found = set_file_of(tmp_path, "x", "lists", "ids.txt", FOLDERS)
    assert found == tmp_path / "ids.txt"
    assert set_file_of(tmp_path, "y", None, None, FOLDERS) is None


def test_a_split_without_a_list_beside_others_that_have_one_is_refused(tmp_path):
    write(tmp_path / "ImageSets/val.txt")
    with pytest.raises(SourceError, match="got those of val\nhint: did you mean 'val'"):
        set_file_of(tmp_path, "vall", None, None, FOLDERS)
    with pytest.raises(SourceError, match="hint: pass its `set_dir` or `set_path`"):
        set_file_of(tmp_path, "xyz", None, None, FOLDERS)


def test_lines_are_read_without_comments_and_flags(tmp_path):
    content = "\ufeff# names\n\n 2007_1 \n2007_2 -1\r\n2007_3  1\nmy image 4\n2007_5 yes\n"
    assert read_set_file(write(tmp_path / "a.txt", content)) == [
        SetLine(("2007_1",), 3),
        SetLine(("2007_2",), 4),
        SetLine(("2007_3",), 5),
        SetLine(("my image 4",), 6),
        SetLine(("2007_5 yes",), 7),
    ]


def test_a_line_may_name_an_image_and_its_mask(tmp_path):
    path = write(tmp_path / "a.txt", "/train/a.png /trainannot/a.png\nx/b.png y/b.png")
    assert read_set_file(path) == [
        SetLine(("train/a.png", "trainannot/a.png"), 1),
        SetLine(("x/b.png", "y/b.png"), 2),
    ]


def test_other_encodings_are_read(tmp_path):
    assert read_set_file(write(tmp_path / "a.txt", b"\xe4\n")) == [SetLine(("ä",), 1)]


def test_what_is_no_list_is_refused(tmp_path):
    with pytest.raises(SourceError, match="a.txt: expected a list of names"):
        read_set_file(write(tmp_path / "a.txt", b"\0\1\2"))
    with pytest.raises(SourceError, match="gone.txt: expected a file"):
        read_set_file(tmp_path / "gone.txt")
