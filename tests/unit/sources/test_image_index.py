"""Images found by the names that lists give them."""

import pytest

from datum.errors import SourceError
from datum.sources.image_files import ImageIndex, UnusableRecordError


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
    with pytest.raises(UnusableRecordError, match=r"got c\.jpg and c\.png\nhint: give"):
        index.find("c")
    with pytest.raises(UnusableRecordError, match="got no such file"):
        index.find("c", ".webp")


def test_a_file_has_a_path(index):
    assert index.path_of(index.find("sub/f")) == index.folder / "sub/f.jpg"


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(SourceError, match="gone: expected a folder"):
        ImageIndex.of_folder(tmp_path / "gone")
