"""Files that are on the disk, whole, or not there at all."""

import stat

import pytest

from datum.format import durable
from datum.format.durable import replace_file


def test_a_replaced_file_has_the_new_content_and_ordinary_rights(tmp_path):
    path = tmp_path / "datum.json"
    path.write_bytes(b"old")
    before = stat.S_IMODE(path.stat().st_mode)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path, monkeypatch, failing):
    path = tmp_path / "datum.json"
    path.write_bytes(b"old")

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable.os, failing, fail)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_in_no_folder_cannot_be_written(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        replace_file(tmp_path / "missing" / "datum.json", b"new")
