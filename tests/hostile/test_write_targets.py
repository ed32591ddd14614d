"""Targets of every kind: links, odd names, folders in use, and what must not be touched."""

import os
import shutil
from pathlib import Path

import pytest

import datum
from tests.unit.write.datasets import digests, picture, read, values, write

ROW = [{"x": 1}]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The working folder is an empty one."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize(
    "out",
    [
        "out",
        "out/",
        "./out",
        "deep/er/and/deeper/out",
        "with space",
        "-rf",
        "*?[]",
        "é",
        "🙂",
        "new\nline",
        "out.tfrecord",
        ".hidden",
        "x" * 200,
    ],
)
def test_relative_and_odd_names_are_folders_like_others(elsewhere, out):
    report = write(ROW, out)
    assert report.path == Path(out)
    assert values(out) == [1]
    write([{"x": 2}], out, append=True)
    write([{"x": 3}], Path(out), overwrite=True)
    assert values(out) == [3]
    left = {path for path in elsewhere.rglob("*") if "partial" in path.name}
    assert not left


def test_a_name_that_is_not_text_is_a_folder_like_others(tmp_path):
    out = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    assert "1 record" in str(write(ROW, out))
    assert values(out) == [1]


def test_a_name_that_is_too_long_is_told_before_anything_is_read(tmp_path):
    def rows():
        raise AssertionError("it was read")
        yield

    for name in ("x" * 255, "x" * 256, "x" * 5000):
        try:
            write(rows(), tmp_path / name)
        except datum.WriteError as error:
            assert "name" in str(error).lower()  # noqa: PT017 - or it is written, if it fits
        except datum.SourceError:
            pytest.fail("its records were read first")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("out", ["", "a\0b"])
def test_a_name_that_is_none_is_told(elsewhere, out):
    with pytest.raises((datum.WriteError, ValueError), match="expected|null"):
        write(ROW, out)
    assert not list(elsewhere.iterdir())


def test_the_working_folder_stays_where_it_is(elsewhere):
    write(ROW, ".")
    assert Path.cwd() == elsewhere
    assert values(".") == [1]
    write([{"x": 2}], ".", append=True)
    write([{"x": 3}], ".", overwrite=True)
    assert Path.cwd() == elsewhere
    assert Path("datum.json").exists()
    assert values(elsewhere) == [3]


def test_a_home_that_is_meant_is_not_a_folder_called_tilde(elsewhere, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    try:
        write(ROW, "~/out")
    except datum.WriteError as error:
        assert "~" in str(error)  # noqa: PT017 - to refuse is as good
    else:
        assert values(tmp_path / "home" / "out") == [1]
    assert not (elsewhere / "~").exists()


def test_a_link_to_a_folder_stays_one(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write(ROW, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    write([{"x": 2}], tmp_path / "link", overwrite=True)
    write([{"x": 3}], tmp_path / "link", append=True)
    assert sorted(values(tmp_path / "real")) == [2, 3]
    assert (tmp_path / "link").is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"real", "link"}


def test_a_link_that_leads_nowhere_yet_leads_to_the_dataset(tmp_path):
    (tmp_path / "link").symlink_to("later")
    write(ROW, tmp_path / "link")
    assert values(tmp_path / "later") == [1]
    assert (tmp_path / "link").is_symlink()


def test_a_link_to_itself_is_told(tmp_path):
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(datum.WriteError):
        write(ROW, tmp_path / "link")
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"append": True}])
def test_what_is_no_dataset_is_not_touched(tmp_path, options):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "folder", "pipe"):
        with pytest.raises(datum.WriteError):
            write(ROW, tmp_path / name, **options)
    with pytest.raises(datum.WriteError):
        write(ROW, tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "mine"
    assert (tmp_path / "folder" / "notes.txt").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("manifest", ["", "{}", "[" * 100_000, '{"version": 99}'])
def test_a_dataset_whose_manifest_is_damaged_is_replaced_only_on_request(tmp_path, manifest):
    out = tmp_path / "out"
    write([{"x": 1}], out)
    (out / "datum.json").write_text(manifest)
    (out / "notes.txt").write_text("mine")
    for options in ({}, {"append": True}):
        with pytest.raises((datum.WriteError, datum.ManifestError)):
            write([{"x": 2}], out, **options)
        assert (out / "datum.json").read_text() == manifest
    write([{"x": 3}], out, overwrite=True)
    assert values(out) == [3]
    assert (out / "notes.txt").read_text() == "mine"


def test_files_of_others_in_a_dataset_survive_its_replacement(tmp_path):
    out = tmp_path / "out"
    write([{"x": number} for number in range(100)], out, shards=5)
    (out / "README.md").write_text("mine")
    (out / "train-00000-of-00099.tfrecord").write_text("mine too")
    (out / "folder").mkdir()
    (out / "folder" / "deep").write_text("mine three")
    (out / "link").symlink_to("/nowhere")
    (out / "index" / "mine").mkdir()
    (out / "index" / "mine" / "deep").write_text("mine four")
    write([{"x": 1}], out, overwrite=True)
    write([{"x": 2}], out, append=True)
    assert sorted(values(out)) == [1, 2]
    assert {path.name for path in out.iterdir()} == {
        "README.md",
        "datum.json",
        "folder",
        "link",
        "index",
        "train-00000-of-00001.tfrecord",
        "train-00000-of-00099.tfrecord",
        *(path.name for path in out.glob("train.1-*")),
    }
    assert not list(out.rglob("*-of-00005*"))
    assert {path.name for path in (out / "index").iterdir()} == {
        "mine",
        "of-train-00000-of-00001.index",
        "of-train,1-00000-of-00001.index",
    }
    assert (out / "index" / "mine" / "deep").read_text() == "mine four"
    assert (out / "README.md").read_text() == "mine"
    assert (out / "train-00000-of-00099.tfrecord").read_text() == "mine too"
    assert (out / "folder" / "deep").read_text() == "mine three"


def test_files_that_only_end_like_ours_survive_a_replacement(tmp_path):
    out = tmp_path / "out"
    write([{"x": 1}], out)
    for name in ("notes.new", ".draft.new", ".datum.json.12345678.new", "index/mine.new"):
        (out / name).write_text("mine")
    (out / "mnist-train.tfrecord-00000-of-00001").write_text("mine")
    (out / ".datum.json.12345678.datum-new").write_text("of an interrupted write")
    (out / "datum.json").write_text("{}")
    write([{"x": 2}], out, overwrite=True)
    assert values(out) == [2]
    for name in ("notes.new", ".draft.new", ".datum.json.12345678.new", "index/mine.new"):
        assert (out / name).read_text() == "mine"
    assert (out / "mnist-train.tfrecord-00000-of-00001").read_text() == "mine"
    assert not (out / ".datum.json.12345678.datum-new").exists()


NUMBERS = {"schema": {"x": datum.Feature("int64")}, "shards": 2, "on_error": "quarantine"}


@pytest.mark.parametrize(
    "name",
    [
        "train-00001-of-00002.tfrecord",
        "index/of-train-00001-of-00002.index",
        "quarantine.jsonl",
        "shard_info.json",
        "features.json",
    ],
)
@pytest.mark.parametrize("way", ["overwrite", "append"])
def test_a_file_of_somebody_else_with_a_name_of_ours_is_not_replaced(tmp_path, name, way):
    out, rows = tmp_path / "out", [{"x": 1}, {"x": 2}, {"x": "none"}]
    write([{"x": 1}], out)
    if way == "append":
        name = name.replace("train-", "train.1-").replace("of-train.1", "of-train,1")
    (out / name).write_text("mine")
    options = {**NUMBERS, "sidecars": ["older", "tfds"], way: True}
    with pytest.raises(datum.WriteError, match="this file is not from Datum.*\nhint: move"):
        write(rows, out, **options)
    assert (out / name).read_text() == "mine"
    assert values(out) == [1]
    (out / name).rename(tmp_path / "elsewhere")
    write(rows, out, **options)
    assert 2 in values(out)
    write(rows, out, **{**options, "append": False, "overwrite": True})  # these are our own
    assert sorted(values(out)) == [1, 2]


@pytest.mark.parametrize("options", [{"overwrite": True}, {"append": True}])
def test_a_file_in_the_place_of_the_index_folder_is_told(tmp_path, options):
    out = tmp_path / "out"
    write([{"x": 1}], out)
    shutil.rmtree(out / "index")
    (out / "index").write_text("mine")
    with pytest.raises(datum.WriteError, match="expected a folder of indexes, got a file"):
        write([{"x": 2}], out, **options)
    assert (out / "index").read_text() == "mine"
    assert values(out) == [1]


@pytest.mark.parametrize("name", ["link", "README.md", "folder", "index/mine"])
def test_files_of_others_survive_a_replacement_that_is_cut_off(tmp_path, monkeypatch, name):
    """The process ends at any step of publishing; the next write must not take them along."""
    for step in range(1, 40):
        out = tmp_path / f"{step}" / "out"
        write([{"x": 1}], out)
        precious = out / name
        if name == "link":
            precious.symlink_to("/nowhere")
        elif name == "folder":
            (precious / "deep").mkdir(parents=True)
        else:
            precious.write_text("mine")
        child = os.fork()
        if child == 0:
            cut_off(step)
            write([{"x": 2}], out, overwrite=True)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert values(out) in ([1], [2])
        write([{"x": 3}], out, overwrite=True)
        assert values(out) == [3]
        assert precious.is_symlink() or precious.exists(), f"lost at step {step}"
        assert [path.name for path in out.parent.iterdir()] == ["out"]
        if code == 0:
            return
    pytest.fail("it never came to its end")


def cut_off(step):
    """End the process before the n-th time that a name changes from the manifest on."""
    import ctypes
    import sys

    state = {"left": step, "is_late": False}
    plain = ctypes.CDLL

    def count():
        state["left"] -= state["is_late"]
        if state["left"] <= 0:
            os._exit(9)

    def hook(event, args):
        if event == "os.rename" and str(args[1]).endswith("datum.json"):
            state["is_late"] = True
        if event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.symlink"):
            count()

    class Counted:
        """The exchange is one such step, and so is its end."""

        def __init__(self, *args, **kwargs):
            self.found = plain(*args, **kwargs)

        def __getattr__(self, name):
            real = getattr(self.found, name)

            def called(*args):
                count()
                result = real(*args)
                count()
                return result

            return called

    ctypes.CDLL = Counted
    sys.addaudithook(hook)


def test_a_dataset_of_the_same_size_is_not_taken_for_the_new_one(tmp_path):
    """As above, with an old dataset whose shards are as large as the new ones."""
    import numpy as np

    def columns(version):
        return {"x": np.full(300, float(version))}

    for step in range(1, 40):
        out = tmp_path / f"{step}" / "out"
        write(columns(1), out, shards=2)
        child = os.fork()
        if child == 0:
            cut_off(step)
            write(columns(2), out, shards=2, overwrite=True)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert set(values(out)) in ({1.0}, {2.0})
        assert datum.load(out).verify().is_sound
        write(columns(2), out, shards=2, overwrite=True)
        assert set(values(out)) == {2.0}
        assert datum.load(out).verify().is_sound, f"at step {step}"
        if code == 0:
            return
    pytest.fail("it never came to its end")


def test_a_target_within_the_source_is_not_read(tmp_path):
    photos = tmp_path / "photos"
    for label in ("cat", "dog"):
        for number in range(3):
            picture(photos / label / f"{number}.png", number)
    write(photos, tmp_path / "fresh")
    for _ in range(2):
        report = write(photos, photos / "out", overwrite=True)
        assert report.records == 6
        found = digests(photos / "out")
        assert found == digests(tmp_path / "fresh")
    with pytest.raises(datum.WriteError, match="the target folder is not empty"):
        write(photos, photos)
    with pytest.raises(datum.WriteError, match="the target folder is not empty"):
        write(photos, photos / "cat", overwrite=True)
    assert len(list((photos / "cat").iterdir())) == 3


def test_a_target_among_tables_is_not_read(tmp_path):
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "rows.jsonl").write_text('{"x": 1}\n{"x": "a"}\n{"x": 2}\n')
    for _ in range(2):
        report = write(tables, tables / "out", on_error="quarantine", overwrite=True)
        assert (report.records, report.quarantined) == (2, {"train": 1})
    assert sorted(values(tables / "out")) == [1, 2]


def test_overwrite_and_append_at_once_are_refused_or_append(tmp_path):
    write(ROW, tmp_path / "out")
    with pytest.raises((ValueError, datum.WriteError), match="append|overwrite"):
        write([{"x": 2}], tmp_path / "out", append=True, overwrite=True)
    assert values(tmp_path / "out") == [1]


def test_a_dataset_that_was_moved_or_copied_is_the_same(tmp_path):
    write(ROW, tmp_path / "out")
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    (tmp_path / "out").rename(tmp_path / "moved")
    assert read(tmp_path / "copy") == read(tmp_path / "moved") == ROW
    write([{"x": 2}], tmp_path / "copy", append=True)
    assert sorted(values(tmp_path / "copy")) == [1, 2]
