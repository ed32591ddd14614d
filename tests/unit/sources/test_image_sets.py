"""Lists of the images of splits."""

import pytest

from datum.errors import SourceError
from datum.sources.image_files import SetLine, find_set_files, read_set_file, set_file_of

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
    found = set_file_of(tmp_path, "x", set_dir=None, set_path=None, folders=FOLDERS)
    assert found == tmp_path / "ImageSets/Main/x.txt"
    found = set_file_of(tmp_path, "x", set_dir="lists", set_path=None, folders=FOLDERS)
    assert found == tmp_path / "lists/x.txt"
    found = set_file_of(tmp_path, "x", set_dir="lists", set_path="ids.txt", folders=FOLDERS)
    assert found == tmp_path / "ids.txt"
    assert set_file_of(tmp_path, "y", set_dir=None, set_path=None, folders=FOLDERS) is None


def test_a_split_without_a_list_beside_others_that_have_one_is_refused(tmp_path):
    write(tmp_path / "ImageSets/val.txt")
    with pytest.raises(SourceError, match="got those of val\nhint: did you mean 'val'"):
        set_file_of(tmp_path, "vall", set_dir=None, set_path=None, folders=FOLDERS)
    with pytest.raises(SourceError, match="hint: give its `set_dir` or `set_path`"):
        set_file_of(tmp_path, "xyz", set_dir=None, set_path=None, folders=FOLDERS)


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
