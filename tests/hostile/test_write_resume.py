"""A write that was interrupted, then asked for with one thing changed: as if it were the first."""

import errno
import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import LabelEncoder

import datum
from datum import Feature
from datum._write import shards
from datum.format.durable import hold_folder
from datum.sources import ArrowTable, CsvTable, JsonLines, LabelledImages
from tests.unit.write.datasets import digests, picture, values, write

SHARDS = 4


def interrupt(monkeypatch, source, out, *, after=2, **options):
    """Let a write fail once some shards are done."""
    finish, done = shards._finish, []

    def fail(job, writer, staging):
        if len(done) == after:
            writer.abandon()
            raise OSError(errno.EIO, "the disk went away")
        finish(job, writer, staging)
        done.append(job)

    with monkeypatch.context() as patched:
        patched.setattr(shards, "_finish", fail)
        patched.setattr(shards, "_PENDING_SHARDS", 1)  # one after the other
        with pytest.raises(datum.WriteError, match="went away"):
            write(source, out, **{"shards": SHARDS, "workers": 1, **options})


def columns(**changes):
    text = np.array(["red", "green", "blue", "red red"])
    found = {
        "x": np.arange(400.0),
        "text": text[np.arange(400) % 4],
        "key": np.array([f"key {number}" for number in range(400)]),
    }
    return {**found, **changes}


CHANGES = {
    "nothing": {},
    "seed": {"seed": 1},
    "shuffle": {"shuffle": False},
    "shards": {"shards": 5},
    "more shards": {"shards": SHARDS * 2},
    "compression": {"compression": "gzip"},
    "workers": {"workers": 2},
    "splits": {"splits": {"train": 0.5, "val": 0.5}},
    "stratify": {"splits": {"train": 0.5, "val": 0.5}, "stratify": "text"},
    "schema": {"schema": {"x": Feature("float32")}},
    "floats": {"floats": "float64"},
    "encoder": {"encoders": {"text": CountVectorizer()}},
    "other encoder": {"encoders": {"text": LabelEncoder()}},
    "on_error": {"on_error": "quarantine"},
    "sidecars": {"sidecars": ["older", "tfds"]},
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_asked_for_the_second_time_is_what_is_written(tmp_path, monkeypatch, change):
    out = tmp_path / "out"
    interrupt(monkeypatch, columns(), out)
    options = {"shards": SHARDS, "workers": 1, **CHANGES[change]}
    report = write(columns(), out, **options)
    write(columns(), tmp_path / "fresh", **options)
    assert digests(out) == digests(tmp_path / "fresh")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "fresh"}
    if change in ("nothing", "workers"):
        assert report.resumed_shards == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"encoders": {"text": CountVectorizer()}}),
        ({"encoders": {"text": CountVectorizer()}}, {}),
        (
            {"encoders": {"text": CountVectorizer()}},
            {"encoders": {"text": CountVectorizer(binary=True)}},
        ),
        (
            {"encoders": {"text": TfidfVectorizer()}},
            {"encoders": {"text": TfidfVectorizer(use_idf=False)}},
        ),
        (
            {"encoders": {"text": TfidfVectorizer().fit(["red green blue", "red"])}},
            {"encoders": {"text": TfidfVectorizer().fit(["red green blue", "green"])}},
        ),
        (
            {"encoders": {"text": TfidfVectorizer(norm="l1")}},
            {"encoders": {"text": TfidfVectorizer(norm="l2")}},
        ),
        ({"splits": {"train": 0.5, "val": 0.5}}, {"splits": {"train": 0.6, "val": 0.4}}),
        ({"splits": {"a": 0.5, "b": 0.5}}, {"splits": {"b": 0.5, "a": 0.5}}),
        ({"seed": 2**64}, {"seed": 1}),
        ({"schema": {"x": Feature("float32")}}, {"schema": {"x": Feature("float64")}}),
        ({"shards": {"train": 4}}, {"shards": 4}),
    ],
)
def test_one_plan_is_not_taken_for_another(tmp_path, monkeypatch, before, after):
    out = tmp_path / "out"
    interrupt(monkeypatch, columns(), out, after=1, **before)
    options = {"shards": SHARDS, "workers": 1, **after}
    write(columns(), out, **options)
    write(columns(), tmp_path / "fresh", **options)
    assert digests(out) == digests(tmp_path / "fresh")


@pytest.mark.parametrize(
    "changed",
    [
        {"x": np.arange(400.0) + 1},
        {"x": np.where(np.arange(400) == 399, -1.0, np.arange(400.0))},
        {"x": np.arange(400)},
        {"x": np.arange(400.0).reshape(400, 1)},
        {"x": np.arange(400.0).astype(">f8") + 1},
        {"text": np.array(["green", "red", "blue", "red red"])[np.arange(400) % 4]},
        {"y": np.arange(400.0)},
        {"text": np.array([b"red"] * 400)},
    ],
)
def test_columns_that_have_changed_are_written_anew(tmp_path, monkeypatch, changed):
    out = tmp_path / "out"
    interrupt(monkeypatch, columns(), out)
    report = write(columns(**changed), out, shards=SHARDS)
    write(columns(**changed), tmp_path / "fresh", shards=SHARDS)
    assert report.resumed_shards == 0
    assert digests(out) == digests(tmp_path / "fresh")


def test_columns_under_other_names_are_written_anew(tmp_path, monkeypatch):
    out = tmp_path / "out"
    first, second = np.arange(400.0), np.arange(400.0) * 2
    interrupt(monkeypatch, {"a": first, "b": second}, out)
    report = write({"a": second, "b": first}, out, shards=SHARDS)
    assert report.resumed_shards == 0
    assert max(values(out, "a")) == 798


def csv_files(folder, sign):
    (folder / "t.csv").write_text("x,key\n" + "".join(f"{i or sign},{i}\n" for i in range(400)))
    return CsvTable(folder / "t.csv")


def json_files(folder, sign):
    lines = [json.dumps({"x": number or sign}) for number in range(400)]
    (folder / "t.jsonl").write_text("\n".join(lines))
    return JsonLines(folder / "t.jsonl")


def image_files(folder, sign):
    for label in ("cat", "dog"):
        for number in range(20):
            picture(folder / "photos" / label / f"{number:02}.bmp", number or sign)
    return folder / "photos"


def parquet_files(folder, sign):
    table = pa.table({"x": [sign, *range(1, 400)]})
    parquet.write_table(table, folder / "t.parquet", compression="none", use_dictionary=False)
    return ArrowTable(folder / "t.parquet")


def labelled_files(folder, sign):
    rows = [f"{number:02}.bmp,{number or sign}\n" for number in range(40)]
    (folder / "train.csv").write_text("filename,x\n" + "".join(rows))
    for number in range(40):
        picture(folder / "train" / f"{number:02}.bmp", 7)
    return LabelledImages(folder)


def foreign_files(folder, sign):
    """TFRecord files that nobody described."""
    if not (folder / "t.tfrecord").exists() or sign == 2:
        made = folder.with_name(f"made {sign}")
        write([{"x": number or sign} for number in range(400)], made, shards=1, shuffle=False)
        (shard,) = made.glob("*.tfrecord")
        (folder / "t.tfrecord").write_bytes(shard.read_bytes())
        shutil.rmtree(made)
    return datum.load(folder)["train"]


FILES = [csv_files, json_files, parquet_files, image_files, labelled_files, foreign_files]


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("make_source", FILES)
@pytest.mark.parametrize("change", ["rewritten", "replaced"])
def test_files_that_changed_are_written_anew_though_size_and_time_are_as_before(
    tmp_path, monkeypatch, make_source, change
):
    out, place = tmp_path / "out", tmp_path / "place"
    place.mkdir()
    interrupt(monkeypatch, make_source(place, 1), out)
    times = {path: path.stat().st_mtime_ns for path in files_below(place)}
    sizes = {path: path.stat().st_size for path in files_below(place)}
    if change == "replaced":
        place.rename(tmp_path / "before")
        place.mkdir()
    source = make_source(place, 2)
    for path, time in times.items():
        os.utime(path, ns=(time, time))
    assert {path: path.stat().st_size for path in files_below(place)} == sizes
    if make_source is foreign_files:
        source = datum.load(place)["train"]  # which reads the files that it opened, and no others
    report = write(source, out, shards=SHARDS)
    write(source, tmp_path / "fresh", shards=SHARDS)
    assert report.resumed_shards == 0
    assert digests(out) == digests(tmp_path / "fresh")


@pytest.mark.parametrize("make_source", FILES)
def test_files_that_have_not_changed_are_gone_on_with(tmp_path, monkeypatch, make_source):
    out, place = tmp_path / "out", tmp_path / "place"
    place.mkdir()
    source = make_source(place, 1)
    interrupt(monkeypatch, source, out)
    report = write(source, out, shards=SHARDS)
    write(source, tmp_path / "fresh", shards=SHARDS)
    assert report.resumed_shards == 2
    assert digests(out) == digests(tmp_path / "fresh")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda path: CsvTable(path), lambda path: CsvTable(path, key="key")),
        (lambda path: CsvTable(path), lambda path: CsvTable(path, null_values=["7"])),
        (lambda path: CsvTable(path), lambda path: CsvTable(path, columns=["x"])),
        (lambda path: CsvTable(path, key="key"), lambda path: CsvTable(path, key="x")),
    ],
)
def test_a_table_that_is_read_in_another_way_is_written_anew(tmp_path, monkeypatch, before, after):
    out = tmp_path / "out"
    csv_files(tmp_path, 0)
    path = tmp_path / "t.csv"
    interrupt(monkeypatch, before(path), out)
    report = write(after(path), out, shards=SHARDS)
    write(after(path), tmp_path / "fresh", shards=SHARDS)
    assert report.resumed_shards == 0
    assert digests(out) == digests(tmp_path / "fresh")


def test_a_parquet_file_with_another_key_is_written_anew(tmp_path, monkeypatch):
    path, out = tmp_path / "t.parquet", tmp_path / "out"
    text = [str(number) for number in range(400)]
    parquet.write_table(pa.table({"a": text, "b": text[::-1]}), path)
    interrupt(monkeypatch, ArrowTable(path, key="a"), out)
    report = write(ArrowTable(path, key="b"), out, shards=SHARDS)
    write(ArrowTable(path, key="b"), tmp_path / "fresh", shards=SHARDS)
    assert report.resumed_shards == 0
    assert digests(out) == digests(tmp_path / "fresh")


def test_images_that_are_to_be_changed_otherwise_are_written_anew(tmp_path, monkeypatch):
    out, place = tmp_path / "out", tmp_path / "place"
    source = image_files(place, 1)
    for options in ({"max_side": 4}, {"quality": 50}, {"verify": True}, {}):
        interrupt(monkeypatch, source, out, after=1)
        write(source, out, shards=SHARDS, **options)
        write(source, tmp_path / "fresh", shards=SHARDS, **options)
        assert digests(out) == digests(tmp_path / "fresh")
        shutil.rmtree(out)
        shutil.rmtree(tmp_path / "fresh")


def test_bad_images_are_still_told_after_a_break(tmp_path, monkeypatch):
    out, place = tmp_path / "out", tmp_path / "place"
    source = image_files(place, 1)
    for number in range(0, 20, 3):
        (place / "photos" / "cat" / f"{number:02}.bmp").write_bytes(b"damaged")
    options = {"on_error": "quarantine", "shards": SHARDS}
    interrupt(monkeypatch, source, out, after=3, **options)
    report = write(source, out, **options)
    fresh = write(source, tmp_path / "fresh", **options)
    assert report.resumed_shards == 3
    assert report.quarantined == fresh.quarantined == {"train": 7}
    assert digests(out) == digests(tmp_path / "fresh")


def test_a_user_who_stops_it_is_told_how_to_go_on(tmp_path, monkeypatch, capsys):
    def stop(job, writer, staging):
        writer.abandon()
        raise KeyboardInterrupt

    finish, out = shards._finish, tmp_path / "out"
    for number, (count, hint) in enumerate([(0, "starts anew"), (2, "goes on where")]):
        done = []

        def finish_some(*args, count=count, done=done):
            done.append(args)
            return (finish if len(done) <= count else stop)(*args)

        with monkeypatch.context() as patched:
            patched.setattr(shards, "_finish", finish_some)
            patched.setattr(shards, "_PENDING_SHARDS", 1)
            with pytest.raises(KeyboardInterrupt):
                write(columns(), out, shards=SHARDS, workers=1)
        assert hint in capsys.readouterr().err
        assert bool(list(tmp_path.iterdir())) == bool(number)
    assert write(columns(), out, shards=SHARDS).resumed_shards == 2


def test_an_iterator_begins_anew(tmp_path, monkeypatch):
    out = tmp_path / "out"
    interrupt(monkeypatch, ({"x": number} for number in range(400)), out)
    report = write(({"x": -number} for number in range(400)), out, shards=SHARDS)
    assert report.resumed_shards == 0
    assert max(values(out)) == 0


def test_a_write_that_failed_can_be_followed_by_one_that_replaces(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(columns(), out, shards=2)
    before = digests(out)
    interrupt(monkeypatch, columns(x=np.arange(400.0) * 2), out, overwrite=True)
    assert digests(out) == before
    with pytest.raises(datum.WriteError, match="a dataset already exists"):
        write(columns(x=np.arange(400.0) * 2), out, shards=SHARDS)
    write(columns(x=np.arange(400.0) * 3), out, overwrite=True)
    assert max(values(out)) == 399 * 3
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_append_that_failed_can_be_done_again(tmp_path, monkeypatch):
    for changed in (columns(), columns(x=np.arange(400.0) + 1)):
        out, fresh = tmp_path / "out", tmp_path / "fresh"
        for place in (out, fresh):
            write(columns(), place, shards=2)
        before = digests(out)
        interrupt(monkeypatch, columns(), out, append=True)
        assert digests(out) == before
        write(changed, out, shards=SHARDS, append=True)
        write(changed, fresh, shards=SHARDS, append=True)
        assert digests(out) == digests(fresh)
        assert len(values(out)) == 800
        shutil.rmtree(out)
        shutil.rmtree(fresh)


# What may lie in the staging folder.


def leave_rubbish(partial, outside):
    (partial / "data" / "folder" / "deep").mkdir(parents=True)
    (partial / "data" / "train-00000-of-00004.tfrecord.tmp").write_bytes(b"rubbish")
    (partial / "data" / "datum.json").write_text("rubbish")
    (partial / "data" / "index").mkdir(exist_ok=True)
    (partial / "data" / "index" / "of-train-00009-of-00004.index").write_text("rubbish")
    (partial / "data" / "index" / "folder").mkdir()
    (partial / "data" / "index" / "link").symlink_to(outside)
    (partial / "data" / "link").symlink_to(outside)
    with (partial / "done.jsonl").open("ab") as journal:
        journal.write(b"rubbish\n00000000 []\n\0\0\0")
    (partial / "spill" / "train").mkdir(parents=True)
    (partial / "spill" / "train" / "00000.frames").write_bytes(b"rubbish")
    (partial / "spill" / "link").symlink_to(outside)
    (partial / "old").symlink_to(outside)
    (partial / "more").symlink_to(outside / "precious")


@pytest.fixture
def outside(tmp_path):
    """A folder whose content must not change."""
    place = tmp_path / "outside"
    (place / "folder").mkdir(parents=True)
    (place / "precious").write_text("mine")
    (place / "train-00000-of-00004.tfrecord").write_text("mine")
    (place / "datum.json").write_text("{}")
    yield place
    assert sorted(path.name for path in place.iterdir()) == [
        "datum.json",
        "folder",
        "precious",
        "train-00000-of-00004.tfrecord",
    ]
    assert (place / "precious").read_text() == "mine"


@pytest.mark.parametrize("source", [columns, lambda: iter([{"x": 1.0}] * 400)])
@pytest.mark.parametrize("is_resumed", [False, True])
def test_rubbish_beside_the_target_does_no_harm(tmp_path, monkeypatch, outside, source, is_resumed):
    out, partial = tmp_path / "out", tmp_path / ".out.partial"
    if is_resumed:
        interrupt(monkeypatch, source(), out)
    os.close(hold_folder(partial))
    leave_rubbish(partial, outside)
    write(source(), out, shards=SHARDS)
    write(source(), tmp_path / "fresh", shards=SHARDS)
    assert digests(out) == digests(tmp_path / "fresh")
    assert not partial.exists()


@pytest.mark.parametrize("name", ["data", "data/index", "done.jsonl", "spill", "old", "plan.json"])
@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_link_in_the_place_of_a_folder_is_not_followed(
    tmp_path, monkeypatch, outside, name, is_resumed
):
    out, partial = tmp_path / "out", tmp_path / ".out.partial"
    if is_resumed:
        interrupt(monkeypatch, columns(), out)
        if (partial / name).is_dir():
            shutil.rmtree(partial / name)
        else:
            (partial / name).unlink(missing_ok=True)
    os.close(hold_folder(partial))
    (partial / name).parent.mkdir(parents=True, exist_ok=True)
    (partial / name).symlink_to(outside)
    write(columns(), out, shards=SHARDS)
    assert not out.is_symlink()
    assert len(values(out)) == 400
    assert not partial.exists()


def test_a_staging_folder_that_is_a_link_is_refused_or_replaced(tmp_path, outside):
    (tmp_path / ".out.partial").symlink_to(outside)
    try:
        write(columns(), tmp_path / "out")
    except datum.WriteError as error:
        assert ".out.partial" in str(error)  # noqa: PT017 - to replace it is as good
    else:
        assert len(values(tmp_path / "out")) == 400


def test_a_file_in_the_place_of_the_staging_folder_is_told(tmp_path):
    (tmp_path / ".out.partial").write_text("mine")
    with pytest.raises(datum.WriteError, match=r"\.out\.partial"):
        write(columns(), tmp_path / "out")
    assert (tmp_path / ".out.partial").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["train-00000-of-00004.tfrecord", "index/of-train-00000-of-00004.index"]
)
@pytest.mark.parametrize("damage", ["gone", "cut", "folder"])
def test_a_shard_that_was_damaged_since_is_made_again(tmp_path, monkeypatch, name, damage):
    out, partial = tmp_path / "out", tmp_path / ".out.partial"
    interrupt(monkeypatch, columns(), out)
    path = partial / "data" / name
    content = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[:-1])
    elif damage == "folder":
        path.mkdir()
    write(columns(), out, shards=SHARDS)
    write(columns(), tmp_path / "fresh", shards=SHARDS)
    assert digests(out) == digests(tmp_path / "fresh")


def test_a_write_that_started_anew_for_a_float_goes_on_from_there(tmp_path, monkeypatch):
    numbers = np.append(1_700_000_000.125, np.arange(399) / 3)
    options = {"shuffle": False, "shards": SHARDS}
    interrupt(monkeypatch, {"x": numbers}, tmp_path / "out", **options)
    report = write({"x": numbers}, tmp_path / "out", **options)
    assert report.resumed_shards == 2
    assert report.floats.kept == {"x": ("train", 0, 1_700_000_000.125)}
    write({"x": numbers}, tmp_path / "whole", **options)
    assert digests(tmp_path / "out") == digests(tmp_path / "whole")
