import os

import pytest

from datum.errors import ManifestError
from datum.format import manifest
from datum.format.durable import hold_folder
from datum.format.manifest import read_manifest


def test_a_folder_or_its_manifest_is_read(tmp_path):
    path = tmp_path / "datum.json"
    path.write_bytes(b"{}")
    assert read_manifest(tmp_path) == read_manifest(path) == (path, b"{}")


def test_a_folder_without_a_manifest_was_never_published(tmp_path):
    for path in (tmp_path, tmp_path / "datum.json"):
        with pytest.raises(
            ManifestError, match=r"never published: it has no datum\.json"
        ) as caught:
            read_manifest(path)
        assert str(caught.value).startswith(f"{tmp_path}: ")


def test_what_an_unfinished_write_left_is_pointed_at(tmp_path, monkeypatch):
    os.close(hold_folder(tmp_path / ".photos.partial"))
    with pytest.raises(ManifestError, match=r"did not finish.*\.photos\.partial"):
        read_manifest(tmp_path / "photos")
    (tmp_path / "photos").mkdir()
    monkeypatch.chdir(tmp_path / "photos")
    for path in (tmp_path / "photos", manifest.Path("."), manifest.Path("datum.json")):
        with pytest.raises(ManifestError, match=r"never published(.|\n)*\.photos\.partial"):
            read_manifest(path)


def test_a_path_to_nothing_is_told(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "photos", tmp_path / "file" / "datum.json"):
        with pytest.raises(ManifestError, match="no such folder or file"):
            read_manifest(path)


@pytest.mark.usefixtures("permissions_count")
def test_a_manifest_that_may_not_be_read_is_told(tmp_path):
    path = tmp_path / "datum.json"
    path.touch(mode=0)
    with pytest.raises(ManifestError, match=r"datum\.json.*Permission denied"):
        read_manifest(path)
