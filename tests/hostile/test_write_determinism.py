"""The same bytes whatever the workers, the hash seed, the order of listings, the place."""

import csv
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import LabelEncoder

import datum
from datum._write import blocks
from tests.unit.write.datasets import digests, picture, write

COUNT = 4500  # more than one block
WORDS = ["red", "green", "blue", "grün", ""]
FRACTIONS = {"train": 0.7, "val": 0.2, "test": 0.1}


def make_row(number):
    """A record of many types; the later ones widen the schema, and some are bad."""
    row = {
        "id": f"record {number}",
        "whole": number if number < 4200 else number / 8,
        "real": (number - 2000) / 7,
        "text": " ".join(WORDS[(number >> shift) % 5] for shift in range(4)),
        "list": list(range(number % 5 if number > 4300 else 3)),
        "label": WORDS[number % 3],
    }
    if number % 1000 == 0:
        row["rare"] = number
    if number % 997 == 5:
        row["whole"] = "bad"
    return row


def rows(place):
    return [(f"key {number % 4490}", make_row(number)) for number in range(COUNT)]


def iterator(place):
    return lambda: (make_row(number) for number in range(COUNT))


def columns(place):
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.integers(-9, 9, COUNT)
    return {
        "x": rng.standard_normal(COUNT) * scale,  # sums depend on their order
        "single": (rng.standard_normal((COUNT, 3)) * scale[:, None]).astype(np.float32),
        "text": np.array(WORDS)[rng.integers(0, 5, COUNT)],
        "label": rng.integers(0, 4, COUNT),
        "time": np.arange(COUNT).astype("M8[s]"),
    }


def csv_file(place):
    with (place / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["id", "whole", "real", "text", "label"])
        writer.writeheader()
        for number in range(COUNT):
            row = make_row(number)
            writer.writerow({name: row[name] for name in writer.fieldnames})
            if number % 1000 == 7:
                file.write("too,few\r\n")
    return place / "rows.csv"


def json_lines(place):
    lines = [json.dumps(make_row(number), ensure_ascii=False) for number in range(COUNT)]
    lines[77] = "{"
    (place / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return place / "rows.jsonl"


def class_folders(place):
    for number in range(60):
        label = ["Zebra", "apple", "Äpfel", "10", "9"][number % 5]
        picture(place / "photos" / label / f"{number}.png", number, (number % 4 + 1, 3))
    (place / "photos" / "9" / "bad.png").write_bytes(b"bad")
    (place / "photos" / "9" / "notes.txt").write_text("not an image")
    return place / "photos"


def voc(place):
    root = place / "voc"
    for number in range(60):
        picture(root / "JPEGImages" / f"{number}.jpg", number, (8, 8))
        box = "".join(f"<{name}>{at}</{name}>" for at, name in enumerate(BOX, 1))
        objects = "".join(
            f"<object><name>{WORDS[(number + at) % 3]}</name><bndbox>{box}</bndbox></object>"
            for at in range(number % 4)
        )
        path = root / "Annotations" / f"{number}.xml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"<annotation><filename>{number}.jpg</filename>{objects}</annotation>")
    (root / "Annotations" / "7.xml").write_text("<bad")
    return root


BOX = ("xmin", "ymin", "xmax", "ymax")
SOURCES = [rows, iterator, columns, csv_file, json_lines, class_folders, voc]
SCALES = {"on_error": "quarantine", "shards": 3}


def label_of(source):
    return "label" if source is not voc else None


def options_of(source, kind):
    if kind == "plain":
        return {}
    if kind == "divided":
        return {"splits": FRACTIONS, "compression": "gzip"}
    if kind == "stratified":
        return {"splits": FRACTIONS, "stratify": label_of(source), "shuffle": False}
    return {"encoders": {"text": TfidfVectorizer(), "label": LabelEncoder()}, "seed": 3}


def kinds_of(source):
    if source is voc:
        return ["plain", "divided"]
    if source is class_folders:
        return ["plain", "divided", "stratified"]
    if source in (iterator, json_lines):
        return ["plain", "divided", "stratified"]
    return ["plain", "divided", "stratified", "encoded"]


CASES = [(source, kind) for source in SOURCES for kind in kinds_of(source)]


@pytest.mark.parametrize(("source", "kind"), CASES)
def test_any_number_of_workers_gives_the_same_bytes(tmp_path, monkeypatch, source, kind):
    made = source(tmp_path)
    if source is voc:
        monkeypatch.setattr(blocks, "BLOCK_RECORDS", 16)  # so that processes are worth it
    for workers in (1, 2, 8):
        options = {**SCALES, **options_of(source, kind), "workers": workers}
        write(made, tmp_path / "out" / f"{workers}", **options)
    found = [digests(path) for path in sorted((tmp_path / "out").iterdir())]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 6


PROGRAM = """
import sys
from pathlib import Path
from tests.hostile.test_write_determinism import *
place, out = map(Path, sys.argv[1:])
for source, kind in CASES:
    if kind != "stratified":
        options = {**SCALES, **options_of(source, kind), "workers": 2}
        write(source(place), out / f"{source.__name__} {kind}", **options)
datum.write(rows(place), out / "rows plain", append=True, on_error="skip", progress=False)
"""


def run_elsewhere(place, out, cwd, **environment):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(place), str(out)],
        cwd=cwd,
        env={
            **os.environ,
            "PYTHONPATH": f"{Path(datum.__file__).parents[1]}:{root}",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def all_digests(out):
    """Of all datasets below, with the paths of the machine left out of what was rejected."""
    found = {}
    for path in sorted(out.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(out))] = digests(path.parent)[path.name]
    return found


def test_hash_seeds_time_zones_languages_and_places_leave_no_trace(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "cwd").mkdir()
    settings = [
        ({"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C"}, "a/out", tmp_path),
        (
            {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "de_DE.UTF-8"},
            "another place/ö",
            tmp_path / "cwd",
        ),
    ]
    found = []
    for environment, name, cwd in settings:
        run_elsewhere(place, tmp_path / name, cwd, **environment)
        found.append(all_digests(tmp_path / name))
    assert found[0] == found[1]
    assert len(found[0]) > 50


@pytest.fixture
def shuffled_listings(monkeypatch):
    """A file system that lists names in another order each time."""
    rng = random.Random(1)
    real_scandir, real_listdir = os.scandir, os.listdir

    class Entries:
        def __init__(self, path="."):
            with real_scandir(path) as entries:
                self.entries = list(entries)
            rng.shuffle(self.entries)

        def __iter__(self):
            return iter(self.entries)

        def __next__(self):
            return self.entries.pop()

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def close(self):
            pass

    def listdir(path="."):
        return rng.sample(found := real_listdir(path), len(found))

    monkeypatch.setattr(os, "scandir", Entries)
    monkeypatch.setattr(os, "listdir", listdir)


@pytest.mark.parametrize("source", [class_folders, voc, csv_file, json_lines])
def test_the_order_of_listings_leaves_no_trace(tmp_path, source, request):
    made = source(tmp_path)
    write(made, tmp_path / "sorted", **SCALES)
    request.getfixturevalue("shuffled_listings")
    for attempt in ("once", "twice"):
        write(made, tmp_path / attempt, **SCALES)
        assert digests(tmp_path / attempt) == digests(tmp_path / "sorted")


def test_the_order_of_tables_in_a_folder_leaves_no_trace(tmp_path, request):
    tables = tmp_path / "tables"
    tables.mkdir()
    for number in range(12):
        (tables / f"{number}.csv").write_text(f"x,y\n{number},{number / 2}\n")
    write(tables, tmp_path / "sorted")
    write(str(tables / "*.csv"), tmp_path / "pattern")
    request.getfixturevalue("shuffled_listings")
    for attempt in ("once", "twice"):
        write(tables, tmp_path / attempt)
        assert digests(tmp_path / attempt) == digests(tmp_path / "sorted")
    assert digests(tmp_path / "pattern") == digests(tmp_path / "sorted")


def test_links_behind_links_are_followed_alike_in_any_order(tmp_path, request):
    outside, photos = tmp_path / "outside", tmp_path / "photos"
    for name in ("a", "b", "c"):
        picture(outside / name / f"{name}.png", 1)
        for other in ("a", "b", "c"):
            (outside / name / f"to {other}").symlink_to(outside / other)
    for label in ("cat", "dog"):
        picture(photos / label / "1.png", 2)
    (photos / "cat" / "more").symlink_to(outside)
    write(photos, tmp_path / "sorted")
    request.getfixturevalue("shuffled_listings")
    for attempt in range(8):
        write(photos, tmp_path / f"{attempt}")
        assert digests(tmp_path / f"{attempt}") == digests(tmp_path / "sorted")


def test_the_age_of_files_and_the_name_of_their_folder_leave_no_trace(tmp_path):
    for name, age in (("one", 0), ("two", 10**9)):
        place = tmp_path / name
        place.mkdir()
        photos = class_folders(place)
        (photos / "9" / "bad.png").unlink()  # the list of rejects names files in full
        for path in photos.rglob("*.png"):
            os.utime(path, (age, age))
        write(photos, tmp_path / f"{name} out", shards=3)
    assert digests(tmp_path / "one out") == digests(tmp_path / "two out")


def test_appends_are_the_same_for_any_number_of_workers(tmp_path):
    for workers in (1, 2, 8):
        out = tmp_path / f"{workers}"
        for source in (columns, columns):
            made = source(tmp_path)
            is_first = not out.exists()
            write(made, out, workers=workers, shards=2, append=not is_first)
    assert digests(tmp_path / "1") == digests(tmp_path / "2") == digests(tmp_path / "8")


def test_images_made_here_are_the_same_for_any_number_of_workers(tmp_path):
    rng = np.random.default_rng(0)
    pictures = [
        {"x": Image.fromarray(rng.integers(0, 256, (9, 9, 3), np.uint8)), "n": number}
        for number in range(50)
    ]
    pictures += [{"n": 1}] + [{"x": rng.integers(0, 256, (5, 5, 3), np.uint8)} for _ in range(50)]
    for workers in (1, 2, 8):
        write(pictures, tmp_path / f"{workers}", workers=workers)
    assert digests(tmp_path / "1") == digests(tmp_path / "2") == digests(tmp_path / "8")
