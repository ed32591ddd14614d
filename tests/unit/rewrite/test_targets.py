"""Where a dataset that is made of another may be written."""

import pytest

import datum
from datum._rewrite.reshard import check_free
from tests.unit.rewrite.damaged import write_numbers


def test_a_folder_that_is_not_there_or_empty_is_free(tmp_path):
    assert check_free(tmp_path / "new", overwrite=False) == (tmp_path / "new").resolve()
    (tmp_path / "empty").mkdir()
    check_free(tmp_path / "empty", overwrite=False)


def test_links_and_the_home_of_the_user_are_followed(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert check_free(tmp_path / "link", overwrite=False) == (tmp_path / "there").resolve()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert check_free("~/new", overwrite=False) == (tmp_path / "new").resolve()


def test_a_dataset_is_free_only_to_be_replaced(tmp_path):
    write_numbers(tmp_path / "in", count=3)
    with pytest.raises(datum.WriteError, match=r"got one\nhint: overwrite=True replaces it$"):
        check_free(tmp_path / "in", overwrite=False)
    check_free(tmp_path / "in", overwrite=True)


@pytest.mark.parametrize("out", ["", "a\0b", "s3://bucket/x"])
def test_what_is_no_path_of_a_folder_is_refused(out):
    with pytest.raises(datum.WriteError, match="expected the path of a folder on this computer"):
        check_free(out, overwrite=False)


def test_files_and_folders_of_others_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(datum.WriteError, match="expected a folder, got a file"):
        check_free(tmp_path / "file", overwrite=True)
    with pytest.raises(datum.WriteError, match="expected an empty folder or none"):
        check_free(tmp_path, overwrite=True)
