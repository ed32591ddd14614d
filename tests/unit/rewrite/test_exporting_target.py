"""Where exported files are made, and how they appear."""

import subprocess
import sys
from pathlib import Path

import pytest

from datum import WriteError
from datum._rewrite import export
from datum._rewrite.export import Names, create, open_target, safe_name


def make_files(out, *names, format="jsonl", overwrite=False, text="new"):
    with open_target(out, format, list(names), overwrite=overwrite) as folder:
        for name in names:
            if format == "images":
                (folder / name).mkdir()
                (folder / name / "a.png").write_text(text)
            else:
                (folder / f"{name}.{format}").write_text(text)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_files_appear_in_a_new_folder_and_nothing_else_does(tmp_path):
    make_files(tmp_path / "deep" / "out", "train", "val")
    assert names_in(tmp_path / "deep") == ["out"]
    assert names_in(tmp_path / "deep" / "out") == ["train.jsonl", "val.jsonl"]


def test_files_of_other_names_stay(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.md").write_text("mine")
    make_files(out, "train")
    make_files(out, "train", format="parquet")
    assert names_in(out) == ["notes.md", "train.jsonl", "train.parquet"]


def test_nothing_is_replaced_unasked(tmp_path):
    out = tmp_path / "out"
    make_files(out, "train")
    with pytest.raises(WriteError, match=r"train.jsonl: expected nothing.*\nhint: overwrite=True"):
        make_files(out, "train", text="newer")
    assert (out / "train.jsonl").read_text() == "new"
    make_files(out, "train", overwrite=True, text="newer")
    assert (out / "train.jsonl").read_text() == "newer"


def test_folders_are_replaced_as_a_whole(tmp_path):
    out = tmp_path / "out"
    make_files(out, "train", format="images")
    (out / "train" / "old.png").write_text("old")
    with pytest.raises(WriteError, match="expected nothing of that name"):
        make_files(out, "train", format="images")
    make_files(out, "train", format="images", overwrite=True)
    assert names_in(out / "train") == ["a.png"]


def test_a_dataset_is_never_written_into(tmp_path):
    (tmp_path / "datum.json").write_text("{}")
    with pytest.raises(WriteError, match="got a dataset of Datum"):
        make_files(tmp_path, "train", overwrite=True)


def test_a_file_is_one_split(tmp_path):
    make_files(tmp_path / "x.jsonl", "train")
    assert (tmp_path / "x.jsonl").read_text() == "new"
    with pytest.raises(WriteError, match="expected nothing of that name"):
        make_files(tmp_path / "x.jsonl", "train")
    with pytest.raises(WriteError, match=r"for 2 splits.*\nhint: give split='train'"):
        make_files(tmp_path / "y.jsonl", "train", "val")
    with pytest.raises(WriteError, match="expected a folder, got a file"):
        make_files(tmp_path / "x.jsonl", "train", format="parquet")
    (tmp_path / "z.jsonl").mkdir()
    with pytest.raises(WriteError, match="expected a file, got a folder"):
        make_files(tmp_path / "z.jsonl", "train", overwrite=True)


def test_an_error_leaves_nothing(tmp_path):
    with pytest.raises(WriteError, match="nothing was exported"):
        make_files(tmp_path / "out", "no/such/folder")
    assert names_in(tmp_path) == []


def test_what_was_made_meanwhile_stays(tmp_path):
    out = tmp_path / "out"
    with (
        pytest.raises(WriteError, match="train_label: expected nothing of that name"),
        open_target(out, "images", ["train"], overwrite=False) as folder,
    ):
        (folder / "train_label").mkdir(), (out / "train_label" / "mine").mkdir(parents=True)
    assert names_in(out / "train_label") == ["mine"]
    assert names_in(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["val.csv", "val.jsonl.gz", "val.jsonl"])
def test_a_folder_is_not_named_like_another_kind_of_file(tmp_path, name):
    wanted = "expected a folder for parquet, got the name of another kind of file"
    with (
        pytest.raises(WriteError, match=wanted),
        open_target(tmp_path / name, "parquet", ["val"], overwrite=False),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, pathlib, signal, sys
from datum._rewrite.export import open_target

with open_target(pathlib.Path(sys.argv[1]), "jsonl", ["train"], overwrite=False) as folder:
    (folder / "train.jsonl").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_export(out):
    ran = subprocess.run([sys.executable, "-c", KILLED, out], check=False)
    assert ran.returncode < 0


@pytest.mark.parametrize("name", ["out", "out.jsonl"])
def test_what_a_killed_export_left_is_removed_by_the_next(tmp_path, name):
    kill_export(tmp_path / name)
    assert len(names_in(tmp_path)) == 1
    make_files(tmp_path / name, "train")
    assert names_in(tmp_path) == [name]


def test_what_is_left_of_other_targets_and_what_is_under_way_stays(tmp_path):
    for name in ("out.b", "other"):
        kill_export(tmp_path / name)
    (tmp_path / ".out.abcdefgh.datum-export").mkdir()
    (tmp_path / ".out.abcdefgh.datum-export" / "mine").touch()
    (tmp_path / ".out.partial").mkdir()
    before = names_in(tmp_path)
    with open_target(tmp_path / "out", "jsonl", ["train"], overwrite=False) as folder:
        (folder / "train.jsonl").write_text("first")
        make_files(tmp_path / "out", "val")
    assert names_in(tmp_path) == sorted([*before, "out"])
    assert names_in(tmp_path / "out") == ["train.jsonl", "val.jsonl"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    target = open_target(tmp_path / "out.jsonl", "jsonl", ["train"], overwrite=False)
    folder = target.__enter__()
    (folder / "train.jsonl").write_text("new")
    (tmp_path / "out.jsonl").write_text("mine")
    with pytest.raises(WriteError, match=r"out.jsonl: expected nothing of that name"):
        target.__exit__(None, None, None)
    assert (tmp_path / "out.jsonl").read_text() == "mine"


@pytest.mark.parametrize("has_failed", [False, True])
def test_what_is_replaced_comes_back_if_nothing_was_put_in_its_place(
    tmp_path, monkeypatch, has_failed
):
    out = tmp_path / "out"
    make_files(out, "train", format="images", text="old")
    monkeypatch.setattr(export, "exchange", lambda *_: False)
    rename = Path.rename

    def fail_second(self, place):
        if has_failed and self.parent.name == "new":
            raise OSError("the disk went away")
        return rename(self, place)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", fail_second)
        if has_failed:
            with pytest.raises(WriteError, match="went away"):
                make_files(out, "train", format="images", overwrite=True)
        else:
            make_files(out, "train", format="images", overwrite=True)
    assert (out / "train" / "a.png").read_text() == ("old" if has_failed else "new")
    assert names_in(tmp_path) == ["out"]


def test_nothing_that_exists_is_opened_for_writing(tmp_path):
    with create(tmp_path / "a") as file:
        file.write(b"first")
    with pytest.raises(WriteError, match="a: expected nothing of that name"):
        create(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"first"


def test_many_things_of_one_name_get_names_of_their_own():
    names = Names()
    found = [names.choose("?" * number) for number in range(1, 20_000)]
    assert len({name.lower() for name in found}) == len(found)


@pytest.mark.parametrize(
    ("first", "second"),
    [("a", "A"), ("a/b", "a:b"), ("a.", "a_"), ("e\u0301", "\u00e9"), ("a_2", "a_2"), ("ß", "SS")],
)
def test_names_that_some_file_system_takes_for_one_are_told_apart(first, second):
    names = Names()
    found = [names.choose(first, meaning=1), names.choose(second, meaning=2)]
    assert len({name.casefold() for name in found}) == 2
    assert all(name == safe_name(name) for name in found)
    assert found == [names.choose(first, meaning=1), names.choose(second, meaning=2)]
