"""Paths that lead out of a folder: links among shards, and tables that a stranger wrote."""

from __future__ import annotations

import pytest

import datum
from datum.errors import ManifestError


def move_out(folder, name, to):
    """Put a file elsewhere, and a link in its place."""
    to.parent.mkdir(exist_ok=True)
    (folder / name).rename(to)
    (folder / name).symlink_to(to)


def test_a_shard_that_is_a_link_out_of_the_folder_is_refused_unless_asked_for(tmp_path):
    datum.write({"x": [1, 2, 3]}, tmp_path / "a", shuffle=False)
    (shard,) = (tmp_path / "a").glob("train-*")
    move_out(tmp_path / "a", shard.name, tmp_path / "elsewhere" / shard.name)
    for path in (tmp_path / "a", tmp_path / "a" / "datum.json", [shard], tmp_path / "a" / "tr*"):
        with pytest.raises(ManifestError, match="got a link to") as caught:
            datum.load(path)
        hint = str(caught.value).partition("hint: ")[2].partition(", if")[0]
        dataset = eval(hint, {"datum": datum})
        assert dataset["train"][2]["x"] == 3
        assert len(datum.load(path, follow_links=True)["train"]) == 3


def test_links_within_the_folder_and_to_the_folder_are_no_matter(tmp_path):
    datum.write({"x": [1, 2, 3]}, tmp_path / "a", shuffle=False)
    (shard,) = (tmp_path / "a").glob("train-*")
    move_out(tmp_path / "a", shard.name, tmp_path / "a" / "stored")
    (tmp_path / "b").symlink_to(tmp_path / "a", target_is_directory=True)
    assert len(datum.load(tmp_path / "b")["train"]) == 3


def test_files_that_nothing_describes_are_read_through_links(tmp_path):
    datum.write({"x": [1, 2, 3]}, tmp_path / "a", shuffle=False)
    (shard,) = (tmp_path / "a").glob("train-*")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / shard.name).symlink_to(shard)
    assert len(datum.load(tmp_path / "b")["train"]) == 3
