"""The files of a folder."""

import os
import sys

import pytest

from datum.errors import SourceError
from datum.sources.files import (
    FoundFile,
    as_text,
    fingerprint_of,
    list_files,
    list_folders,
    looks_like_image,
    open_folder,
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
