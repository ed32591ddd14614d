"""Paths that lead out of a folder: links among shards, and tables that a stranger wrote."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import datum
from datum.cli import main
from datum.errors import ManifestError, SourceError
from datum.sources import ImageTable


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
        hint = str(caught.value).partition("hint: ")[2].partition(" if")[0]
        dataset = eval(hint, {"datum": datum})
        assert dataset["train"][2]["x"] == 3
        assert len(datum.load(path, follow_links=True)["train"]) == 3


@pytest.mark.parametrize(
    "command",
    ["info", "stats", "head", "export-to", "verify", "repair", "index", "reshard", "bench"],
)
def test_commands_follow_links_out_of_the_folder_when_asked_to(tmp_path, command, capsys):
    datum.write({"x": [1, 2, 3]}, tmp_path / "a", shuffle=False)
    (shard,) = (tmp_path / "a").glob("train-*")
    move_out(tmp_path / "a", shard.name, tmp_path / "elsewhere" / shard.name)
    arguments = [command, str(tmp_path / "a"), "--json"]
    arguments += [str(tmp_path / "out")] if command in ("export-to", "repair", "reshard") else []
    arguments += ["--seconds", "0.05", "--frameworks", "numpy"] if command == "bench" else []
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 1
    assert "hint: --follow-links, if you trust its links" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--follow-links"])
    assert ended.value.code in (0, None)
    assert capsys.readouterr().out.startswith(("{", "["))


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


@pytest.fixture
def strange(tmp_path):
    """A folder of images, and paths that lead out of it in every way; some stay inside."""
    for name in ("images/a.png", "images/b.png", "images/sub/c.png", "secret.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros((2, 2, 3), np.uint8)).save(path)
    (tmp_path / "images/link.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "images/folder").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "images/inner.png").symlink_to(tmp_path / "images/a.png")
    return tmp_path


INSIDE = ["a.png", "b.png", "sub/c.png", "sub/../b.png", "inner.png"]
OUTSIDE = ["../secret.png", "sub/../../secret.png", "link.png", "folder/secret.png"]


def paths_of(folder):
    """All paths, with absolute ones of both kinds; how many stay inside."""
    paths = [*INSIDE, str(folder / "images/a.png"), *OUTSIDE, str(folder / "secret.png")]
    return paths, len(INSIDE) + 1


@pytest.mark.parametrize("kind", ["csv", "jsonl", "dict", "frame", "rows", "iterator", "table"])
def test_paths_that_lead_out_of_the_root_are_bad_records(strange, kind):
    paths, inside = paths_of(strange)
    frame = pd.DataFrame({"path": paths, "x": range(len(paths))})
    rows = frame.to_dict("records")
    frame.to_csv(strange / "t.csv", index=False)
    (strange / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {
        "csv": strange / "t.csv",
        "jsonl": strange / "t.jsonl",
        "dict": frame.to_dict("list"),
        "frame": frame,
        "rows": rows,
        "iterator": lambda: iter(rows),
        "table": ImageTable(frame, path_column="path", root=strange / "images"),
    }[kind]
    options = {} if kind == "table" else {"root": strange / "images"}
    report = datum.write(source, strange / "out", on_error="quarantine", **options)
    assert report.records == inside
    lines = (strange / "out/quarantine.jsonl").read_text().splitlines()
    listed = [json.loads(line) for line in lines]
    assert len(listed) == len(paths) - inside
    assert all("expected a path within" in one["reason"] for one in listed)
    found = datum.load(strange / "out").to_numpy("train", batch_size=None)
    assert sorted(row["x"] for row in found) == list(range(inside))
    with pytest.raises(datum.DatumError, match="expected a path within"):
        datum.write(source, strange / "other", **options)


def test_without_a_root_paths_lead_where_they_say(strange):
    paths, _ = paths_of(strange)
    (strange / "images/t.csv").write_text("\n".join(["path", *paths]) + "\n")
    assert datum.write(strange / "images/t.csv", strange / "out").records == len(paths)


@pytest.mark.parametrize("how", ["flag", "toml"])
def test_the_command_line_takes_a_root(strange, how, capsys):
    paths, inside = paths_of(strange)
    (strange / "t.csv").write_text("\n".join(["path", *paths]) + "\n")
    root = str(strange / "images")
    (strange / "o.toml").write_text(f'root = "{root}"\non_error = "skip"\n')
    given = ["--root", root, "--on-error", "skip"] if how == "flag" else []
    given += ["--options", str(strange / "o.toml")] if how == "toml" else []
    arguments = ["write", str(strange / "t.csv"), str(strange / "out"), "--json", *given]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in (0, None)
    assert len(datum.load(strange / "out")["train"]) == inside


def test_a_root_that_is_no_folder_or_does_not_apply_is_an_error(strange):
    (strange / "t.csv").write_text("path\na.png\n")
    with pytest.raises(SourceError, match="expected `root` to be a folder"):
        datum.write(strange / "t.csv", strange / "out", root=strange / "nowhere")
    with pytest.raises(SourceError, match="expected `root` to be a path"):
        datum.plan(strange / "t.csv", root=3)
    for name in ("a", "b"):
        (strange / "classes" / name).mkdir(parents=True)
        (strange / f"images/{name}.png").rename(strange / "classes" / name / "image.png")
    with pytest.raises(SourceError, match="`root` applies to tables"):
        datum.write(strange / "classes", strange / "out", root=strange / "images")
