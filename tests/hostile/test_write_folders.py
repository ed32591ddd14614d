"""Folders full of what should not be there: damaged images, bombs, pipes, loops, odd names."""

import json
import os
import shutil
import struct
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image

import datum
from datum._write import blocks
from datum.sources import ClassFolders, VocDetection
from tests.unit.write.datasets import digests, picture, read, write

BOX = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>4</xmax><ymax>5</ymax></bndbox>"


@pytest.fixture
def photos(tmp_path):
    """Three sound images in each of two folders."""
    for label in ("cat", "dog"):
        for number in range(3):
            picture(tmp_path / "photos" / label / f"{number}.png", number)
    return tmp_path / "photos"


def told(out):
    """The rejects of a dataset, by key."""
    lines = (out / "quarantine.jsonl").read_text(encoding="utf-8").splitlines()
    return {found["key"]: found for found in map(json.loads, lines)}


def test_real_odd_images_are_kept_right_or_told(tmp_path, shared_data):
    names = sorted(path.name for path in (shared_data / "odd_images").iterdir())
    for number, name in enumerate(names):
        place = tmp_path / "photos" / f"class {number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(shared_data / "odd_images" / name, place)
    found = []
    for options in ({"workers": 1}, {"workers": 3}, {"verify": True}):
        out = tmp_path / "out"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's own, about what the files hold
            report = write(
                tmp_path / "photos", out, on_error="quarantine", overwrite=True, **options
            )
            rows = read(out)  # every image that was kept can be decoded
        assert report.records + report.quarantined["train"] + len(report.skipped) == len(names)
        assert all(one["reason"].startswith("expected") for one in told(out).values())
        assert len(rows) == report.records > 200
        found.append((digests(out), set(told(out))))
    assert found[0] == found[1]
    assert found[1][1] <= found[2][1]


def save_kinds(place):
    """Images of modes and formats that are not often met, and what they must decode to."""
    rng = np.random.default_rng(0)
    grey = rng.integers(0, 256, (5, 7), np.uint8)
    colour = rng.integers(0, 256, (5, 7, 3), np.uint8)
    deep = rng.integers(0, 65536, (5, 7), np.uint16)
    place.mkdir(parents=True)
    Image.fromarray(grey).save(place / "grey.png")
    Image.fromarray(colour).save(place / "colour.webp", lossless=True)
    Image.fromarray(colour).save(place / "misnamed.jpg", "PNG")
    Image.fromarray(colour).save(place / "UPPER.BMP")
    Image.fromarray(colour).save(place / "no_extension", "PNG")
    return {
        "grey.png": np.repeat(grey[..., None], 3, 2),
        "colour.webp": colour,
        "misnamed.jpg": colour,
        "UPPER.BMP": colour,
        "no_extension": colour,
    }, deep


def test_images_are_told_by_their_content(tmp_path):
    expected, _ = save_kinds(tmp_path / "photos" / "a")
    picture(tmp_path / "photos" / "b" / "other.png", 3, (7, 5))
    write(tmp_path / "photos", tmp_path / "out", verify=True)
    rows = {row["filename"]: row for row in read(tmp_path / "out")}
    for name, pixels in expected.items():
        assert (rows[f"a/{name}"]["image"] == pixels).all(), name


def test_sixteen_bits_and_cmyk_among_others_are_kept_right_or_told(tmp_path):
    _, deep = save_kinds(tmp_path / "photos" / "a")
    Image.fromarray(deep).save(tmp_path / "photos" / "a" / "deep.png")
    rng = np.random.default_rng(1)
    inks = Image.fromarray(rng.integers(0, 256, (8, 8, 4), np.uint8), "CMYK")
    inks.save(tmp_path / "photos" / "a" / "inks.jpg")
    inks.save(tmp_path / "photos" / "a" / "inks.tif")
    frames = [Image.new("RGB", (7, 5), (shade, 0, 0)) for shade in (10, 20, 30)]
    frames[0].save(
        tmp_path / "photos" / "a" / "moving.gif", save_all=True, append_images=frames[1:]
    )
    picture(tmp_path / "photos" / "b" / "other.png", 3)
    out = tmp_path / "out"
    report = write(tmp_path / "photos", out, on_error="quarantine", verify=True)
    rows = {row["filename"]: row["image"] for row in read(out)}
    rejected = told(out) if report.quarantine else {}
    assert len(rows) + len(rejected) == 10
    if "a/deep.png" in rows:
        assert (rows["a/deep.png"][..., 0] == deep).all()
    if "a/moving.gif" in rows:
        assert rows["a/moving.gif"].shape[:2] == (5, 7)


def png_of_size(width, height):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("size", [(50_000, 50_000), (2**31 - 1, 2**31 - 1), (0, 5)])
def test_an_image_that_claims_a_monstrous_size_is_told(tmp_path, photos, size):
    (photos / "cat" / "huge.png").write_bytes(png_of_size(*size))
    for options in ({}, {"verify": True}, {"max_side": 16}):
        out = tmp_path / "out"
        report = write(photos, out, on_error="quarantine", overwrite=True, **options)
        assert report.records == 6
        assert set(told(out)) == {"cat/huge.png"}


def voc_folder(root, annotations):
    for name, text in annotations.items():
        picture(root / "JPEGImages" / f"{name}.jpg", 1, (8, 8))
        path = root / "Annotations" / f"{name}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def good(name):
    return (
        f"<annotation><filename>{name}.jpg</filename>"
        f"<object><name>cat</name>{BOX}</object></annotation>"
    )


def bombs(secret):
    laughs = "".join(
        f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' if n else '<!ENTITY l0 "lol">' for n in range(10)
    )
    return {
        "laughs": f"<!DOCTYPE a [{laughs}]><annotation><filename>&l9;</filename></annotation>",
        "square": f'<!DOCTYPE a [<!ENTITY a "{"a" * 10_000}">]><annotation>{"&a;" * 10_000}'
        "</annotation>",
        "external": f'<!DOCTYPE a [<!ENTITY x SYSTEM "file://{secret}">]><annotation><object>'
        f"<name>&x;</name>{BOX}</object></annotation>",
        "parameter": f'<!DOCTYPE a [<!ENTITY % x SYSTEM "file://{secret}">%x;]><annotation/>',
        "net": '<!DOCTYPE a [<!ENTITY x SYSTEM "http://127.0.0.1:9/">]><annotation>&x;</annotation>',
        "deep": "<annotation>" * 200_000,
        "open": "<annotation><object>",
        "empty": "",
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_annotations_that_attack_are_told_and_reveal_nothing(tmp_path, monkeypatch, workers):
    monkeypatch.setattr(blocks, "BLOCK_RECORDS", 5)  # so that processes are worth it
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    annotations = {f"good {number}": good(f"good {number}") for number in range(3)}
    root = voc_folder(tmp_path / "voc", {**annotations, **bombs(secret)})
    elsewhere = f'<!DOCTYPE annotation SYSTEM "file://{secret}">{good("good 0")}'  # not followed
    (root / "Annotations" / "good 0.xml").write_text(elsewhere)
    out = tmp_path / "out"
    report = write(VocDetection(root), out, on_error="quarantine", workers=workers)
    assert report.records == 3
    assert set(told(out)) == set(bombs(secret))
    for path in [*out.glob("*.*"), *out.glob("index/*")]:
        assert b"hunter2" not in path.read_bytes()
    with pytest.raises(datum.SourceError, match="xml"):
        write(VocDetection(root), tmp_path / "none", workers=workers)


def test_loops_pipes_sockets_and_broken_links_do_not_hold_it_up(tmp_path, photos):
    import socket

    cat = photos / "cat"
    os.mkfifo(cat / "pipe.png")
    os.mkfifo(cat / "pipe")
    (cat / "self.png").symlink_to("self.png")
    (cat / "gone.png").symlink_to("nowhere")
    (cat / "zero.png").symlink_to("/dev/zero")
    (cat / "up").symlink_to(photos)
    (cat / "round").symlink_to("round")
    (cat / "folder.png").mkdir()
    (cat / "again").symlink_to(photos / "dog")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(cat, os.O_RDONLY)
        try:
            listener.bind(f"/proc/self/fd/{here}/socket.png")
        finally:
            os.close(here)
        out = tmp_path / "out"
        report = write(photos, out, on_error="quarantine")
    assert {row["filename"] for row in read(out)} >= {
        *(f"{label}/{number}.png" for label in ("cat", "dog") for number in range(3)),
        *(f"cat/again/{number}.png" for number in range(3)),
    }
    assert report.records == 9
    expected = {"cat/pipe.png", "cat/self.png", "cat/gone.png", "cat/zero.png", "cat/socket.png"}
    assert set(told(out)) == expected


ODD_NAMES = [
    b"-x.png",
    b"a b.png",
    b"new\nline.png",
    b"tab\t.png",
    b"x" * 251 + b".png",
    b"\xff\xfe.png",
    b"\xc3\xa9.png",
    b"e\xcc\x81.png",
    b"q?*[]{}.png",
    b"'\"`$(true).png",
    b"back\\slash.png",
    b"a.png.png",
    b"..png",
    b"\xed\xa0\x80.png",
]


def test_names_of_any_bytes_are_read_and_told_apart(tmp_path):
    folders = [b"-rf", b"a b", b"new\nline", b"\xff", b"\xc3\xa9", b"e\xcc\x81"]
    content = picture(tmp_path / "one.png", 1).read_bytes()
    root = os.fsencode(tmp_path / "photos")
    for folder in folders:
        os.makedirs(root + b"/" + folder)  # noqa: PTH103 - a name of bytes
        for name in ODD_NAMES:
            with open(root + b"/" + folder + b"/" + name, "wb") as file:
                file.write(content)
    kept = [name for name in ODD_NAMES if not name.startswith(b".")]
    out = tmp_path / "out"
    assert write(tmp_path / "photos", out).records == len(folders) * len(kept)
    rows = read(out)
    assert len({row["filename"] for row in rows}) == len(rows)
    names = datum.load(out).metadata["label"]["class_names"]
    assert len(set(names)) == len(folders)
    assert datum.load(out).verify().is_sound


@pytest.mark.parametrize("name", ODD_NAMES)
def test_damaged_files_of_any_name_are_told(tmp_path, photos, name):
    with open(os.fsencode(photos) + b"/cat/" + name, "wb") as file:
        file.write(b"damaged")
    out = tmp_path / "out"
    is_hidden = name.startswith(b".")
    report = write(photos, out, on_error="quarantine")
    assert report.quarantined["train"] == (0 if is_hidden else 1)
    if not is_hidden:
        with pytest.raises(datum.SourceError, match="cat/"):
            write(photos, tmp_path / "none")


CHANGES = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "other": lambda path: picture(path, 200, (9, 9)),
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "link": lambda path: (path.unlink(), path.symlink_to(path)),
    "longer": lambda path: path.write_bytes(path.read_bytes() + bytes(10_000)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_after_it_was_listed_is_told_or_read_whole(tmp_path, photos, change):
    class Changing:
        def parts(self):
            found = ClassFolders(photos).parts()
            CHANGES[change](photos / "cat" / "1.png")
            return found

    out = tmp_path / "out"
    report = write(Changing(), out, on_error="quarantine")
    assert report.records + report.quarantined["train"] == 6
    rows = read(out)
    assert len(rows) == report.records
    if change not in ("other", "longer"):
        assert set(told(out)) == {"cat/1.png"}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_table_that_shrinks_or_goes_before_it_is_read_again_is_told(
    tmp_path, monkeypatch, suffix
):
    from datum.sources import csv

    monkeypatch.setattr(csv, "MAX_MEMORY_BYTES", 1000)
    path = tmp_path / f"rows{suffix}"
    lines = [f"{n}" if suffix == ".csv" else json.dumps({"x": n}) for n in range(9000)]
    for change in (lambda: path.write_text(""), lambda: path.write_text("x\n1,2,3\n"), path.unlink):
        path.write_text("\n".join(["x", *lines] if suffix == ".csv" else lines) + "\n")
        source = (datum.sources.CsvTable if suffix == ".csv" else datum.sources.JsonLines)(path)
        part = source.parts()["train"]
        change()

        class Listed:
            def parts(self, part=part):
                return {"train": part}

        with pytest.raises(datum.SourceError):
            write(Listed(), tmp_path / "out", on_error="skip")


def test_more_links_and_folders_than_anyone_needs_end_somewhere(tmp_path, photos):
    deep = photos / "cat"
    for _ in range(100):
        deep = deep / "d"
    deep.mkdir(parents=True)
    picture(deep / "far.png", 1)
    for number in range(12):  # each names all folders: every path of them would be 12!
        folder = photos / "dog" / f"{number}"
        folder.mkdir()
        for other in range(12):
            (folder / f"link{other}").symlink_to(photos / "dog" / f"{other}")
    try:
        report = write(photos, tmp_path / "out")
    except datum.SourceError as error:
        assert "link" in str(error) or "folder" in str(error)  # noqa: PT017
    else:
        assert report.records >= 6
