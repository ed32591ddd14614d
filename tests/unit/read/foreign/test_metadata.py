import os

import pytest

from datum._read.foreign.record_files import check_member, expect, read_json, size_of
from datum.errors import ManifestError


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "expected JSON, got an empty file"),
        (b"{", "line 1, column 2"),
        (b"\xff", "expected UTF-8"),
        (b"[]", r"\$: expected an object, got a list"),
        (b'{"a": 1, "a": 2}', "expected each name once"),
        (b'{"a": NaN}', "finite"),
        (b'{"a": 99999999999999999999}', "64 bits"),
        (b"[" * 100_000, "nesting"),
    ],
)
def test_json_that_is_not_sound_is_refused_naming_the_file(tmp_path, text, problem):
    path = tmp_path / "shard_info.json"
    path.write_bytes(text)
    with pytest.raises(ManifestError, match=rf"shard_info\.json: .*{problem}"):
        read_json(path)


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("pipe.json", "missing.json"):
        with pytest.raises(ManifestError):
            read_json(tmp_path / name)


def test_an_object_is_read(tmp_path):
    (tmp_path / "x.json").write_text('{"a": [1, "b"]}')
    assert read_json(tmp_path / "x.json") == {"a": [1, "b"]}


def test_only_regular_files_have_a_size(tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    assert size_of(tmp_path / "a") == 3
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "missing", ".", "x" * 5000, "nul\0"):
        assert size_of(tmp_path / name) is None


def test_a_truth_value_is_no_number():
    assert expect(3, int, "x") == 3
    assert expect(True, bool, "x") is True
    with pytest.raises(ManifestError, match="x: expected an integer, got true"):
        expect(True, int, "x")


@pytest.mark.parametrize("name", ["a", "a-00000-of-00001", "train/a.tfrecord", "..a", "a..b/c"])
def test_files_below_a_folder_are_members(name):
    assert check_member(name, "x") == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "/etc/passwd", "../a", "a/../../b", "..", "a\\b", "C:a", "a\0b", "a\nb", "//host/a"],
)
def test_files_elsewhere_are_no_members(name):
    with pytest.raises(ManifestError, match="x: expected the name of a file in this folder, got"):
        check_member(name, "x")
