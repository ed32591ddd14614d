import bz2
import gzip
import lzma
import os
from pathlib import Path

import pytest

from datum.errors import SourceError
from datum.sources.files import (
    find_files,
    find_split_files,
    fingerprint_files,
    open_file,
    unpacked_suffix,
)


@pytest.fixture
def folder(tmp_path):
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_a_path_is_a_file_of_its_own(folder):
    assert find_files(folder / "a.csv") == [folder / "a.csv"]
    assert find_files(str(folder / "a.csv")) == [folder / "a.csv"]


def test_a_pattern_gives_its_files_sorted(folder):
    assert [file.name for file in find_files(str(folder / "*.csv"))] == ["a.csv", "b.csv"]


def test_a_list_keeps_its_order(folder):
    files = find_files([folder / "b.csv", str(folder / "a*")])
    assert [file.name for file in files] == ["b.csv", "a.csv"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path):
    odd = tmp_path / "a[1].csv"
    odd.write_text("x")
    (tmp_path / "a1.csv").write_text("y")
    assert find_files(odd) == [odd]


def test_splits_have_files_of_their_own(folder):
    found = find_split_files({"train": folder / "a.csv", "test": [folder / "b.csv"]}, "all")
    assert found == {"train": [folder / "a.csv"], "test": [folder / "b.csv"]}
    assert find_split_files(folder / "a.csv", "all") == {"all": [folder / "a.csv"]}


@pytest.mark.parametrize("paths", [[], {}, 5, {"x"}, None])
def test_what_names_no_file_is_refused(paths):
    with pytest.raises(SourceError, match="expected"):
        find_split_files(paths, "train")


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"gone.csv: expected a file, got: no such file"):
        find_files(tmp_path / "gone.csv")
    with pytest.raises(SourceError, match=r"\*.csv: expected files of this pattern, got none"):
        find_files(str(tmp_path / "*.csv"))
    with pytest.raises(SourceError, match="expected a file, got a folder"):
        find_files(tmp_path)
    with pytest.raises(SourceError, match="expected a file, got"):
        find_files("a\0b")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="expected a file, got something else"):
        find_files(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_packed_files_are_unpacked(tmp_path, suffix, pack):
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(pack(b"content"))
    with open_file(path) as file:
        assert file.read() == b"content"
    assert unpacked_suffix(path) == ".csv"


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_damage_in_packed_files_is_told(tmp_path, suffix, pack):
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(pack(os.urandom(1000))[:-20])
    with pytest.raises(SourceError, match="a.csv"), open_file(path) as file:
        file.read()


def test_the_fingerprint_changes_with_a_file_and_with_the_options(folder):
    path = folder / "a.csv"
    first = fingerprint_files([path], "key")
    assert fingerprint_files([path], "key") == first
    assert fingerprint_files([path], "other") != first
    path.write_text("another content")
    assert fingerprint_files([path], "key") != first


def test_a_suffix_in_capitals_counts():
    assert unpacked_suffix(Path("A.JSONL.GZ")) == ".jsonl"
