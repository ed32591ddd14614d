"""Datasets shown in a notebook and as text."""

import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import datum
from datum import Feature, Schema, Sparse
from datum._read.contents import Contents, summarize
from datum.format import Manifest, ShardInfo, SplitInfo

TAGS = {"div", "b", "code", "span", "table", "thead", "tbody", "tr", "th", "td", "bdi", "img"}
HOSTILE = [
    "<script>alert(1)</script>",
    "\"quoted\" 'single' onload=alert(1) <img src=x onerror=alert(1)>",
    "&amp; </td></table>",
    "ltr \u202ertl\u202c \x1b[31mred\x00 \u2028line",
]


class Page(HTMLParser):
    """The tags, attributes and text of some HTML; unbalanced tags are an error."""

    def __init__(self, text):
        super().__init__()
        self.text, self.tags, self.attributes, self._open = "", [], [], []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(name, value.replace("\u00d7", "x")) for name, value in attributes]
        if tag != "img":
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data.replace("\u00d7", "x")  # the sign between the sides of a shape

    @property
    def pictures(self):
        sources = [value for name, value in self.attributes if name == "src"]
        found = []
        for source in sources:
            media, data = re.fullmatch(r"data:image/(png|jpeg);base64,(.*)", source).groups()
            found.append(Image.open(io.BytesIO(base64.b64decode(data))))
            assert found[-1].format.lower() == media
        return found


def shown(thing):
    page = Page(thing._repr_html_())
    assert set(page.tags) <= TAGS
    assert {name for name, _ in page.attributes} <= {"style", "src", "alt", "title"}
    assert not re.search("[\x00-\x1f\u202a-\u202e\u2066-\u2069\u2028]", page.text)
    assert "url(" not in thing._repr_html_()
    return page


def load(folder, source, **options):
    datum.write(source, folder, shuffle=False, progress=False, **options)
    return datum.load(folder)


def test_a_dataset_shows_its_splits_and_features(tmp_path):
    rows = {
        "image_name": ["a", "b", "c", "d"],
        "kind": pd.Categorical(["cat", "dog", "cat", "dog"]),
        "grid": np.zeros((4, 2, 3)),
        "age": pd.array([1, None, 2, 3], "Int64"),
    }
    ds = load(tmp_path / "animals", rows, splits={"train": 0.75, "val": 0.25})
    text = shown(ds).text
    assert str(tmp_path / "animals") in text
    for part in ("train3", "val1", "float322 x 3", "2 classes: cat, dog", "optional"):
        assert part in text, part
    assert not shown(ds).pictures


def test_a_split_shows_its_first_records(tmp_path):
    rows = [
        {
            "kind": n % 2,
            "text": f"text {n}",
            "list": list(range(n * 10)),
            "grid": np.full((2, 3), n + 0.5),
            "when": np.datetime64("2024-05-01", "D") + n,
            "maybe": None if n else 7,
            "data": b"\x00\xff" * n,
            "tags": ["x", "y"],
        }
        for n in range(9)
    ]
    split = load(tmp_path / "x", rows)["train"]
    split.metadata = {"kind": {"class_names": ["cat", "dog"]}}
    text = shown(split).text
    for part in (
        *("train", "9 records", "text 3", "0 cat", "1 dog", "2024-05-03", "absent", "x, y"),
        *("0, 1, 2, 3, 4, 5, … 20", "1.5, 1.5, 1.5, 1.5, 1.5, 1.5 2 x 3", r"b'\x00\xff' 2 B"),
    ):
        assert part in text, part
    assert "text 4" not in text
    assert "train[2:4]" in shown(split[2:4]).text
    assert "text 2" in shown(split[2:4]).text


def test_ragged_and_sparse_values_are_told(tmp_path):
    schema = Schema(
        {
            "deep": Feature("int64", (None, None)),
            "texts": Feature("str", (None, None)),
            "raw": Feature("uint8", (None, None), encoding="raw"),
            "sparse": Feature("float32", (1000,), encoding="sparse"),
            "share": Feature("float32", default=0.25),
        }
    )
    value = Sparse(np.array([[1], [4]]), np.array([0.5, 2.0], np.float32), (1000,))
    row = {
        "deep": [[1, 2], [3]],
        "texts": [["a"], ["<b>", "c"]],
        "raw": np.ones((2, 1), np.uint8),
        "sparse": value,
    }
    text = shown(load(tmp_path / "x", [row], schema=schema)["train"]).text
    for part in ("[1, 2], [3]", "'<b>'", "1, 1 2 x 1", "2 values of 1,000", "default 0.25"):
        assert part in text, part


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_or_value_is_taken_for_html(tmp_path, text):
    schema = Schema({text: Feature("str"), "kind": Feature("int64"), "b": Feature("bytes")})
    rows = [{text: text, "kind": 0, "b": text.encode()}] * 2
    ds = load(tmp_path / "x", rows, schema=schema)
    split = ds["train"]
    split.name, split.metadata = text, {"kind": {"class_names": [text, text]}}
    visible = text if text.isprintable() else r"\u202ertl\u202c \x1b[31mred\x00 \u2028line"
    page = shown(split)
    assert page.text.count(visible) >= 4
    assert "img" not in page.tags
    assert visible in shown(ds).text


def test_a_folder_of_any_name_is_text(tmp_path):
    folder = tmp_path / "<i onclick='x'>&\u202e"
    assert "<i onclick='x'>&\\u202e" in shown(load(folder, {"x": [1]})).text


def test_images_are_shown_small(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {
            "photo": Image.fromarray(rng.integers(0, 256, (300, 200, 3), np.uint8)),
            "mask": Image.fromarray(np.full((20, 30), n, np.uint8)),
            "clear": Image.new("RGBA", (40, 40), (255, 0, 0, 100)),
            "deep": Image.fromarray(np.full((4, 4), 60_000, np.uint16)),
        }
        for n in range(9)
    ]
    split = load(tmp_path / "x", rows)["train"]
    page = shown(split)
    assert len(page.pictures) == 8  # of two features; the others are told by their size
    assert {picture.size for picture in page.pictures} == {(64, 96), (30, 20)}
    assert [picture.getpixel((0, 0)) for picture in page.pictures[4:]] == [0, 255, 254, 255]
    assert "300 x 200 x 3" in [value for name, value in page.attributes if name == "alt"]
    assert len(split._repr_html_()) < 100_000
    only = shown(
        load(tmp_path / "y", [{k: row[k] for k in ("clear", "deep")} for row in rows])["train"]
    )
    assert [picture.mode for picture in only.pictures] == ["RGBA"] * 4 + ["L"] * 4
    assert only.pictures[-1].getpixel((0, 0)) == 60_000 // 257


def test_an_image_that_cannot_be_decoded_is_told_as_text(tmp_path, monkeypatch):
    schema = Schema({"image": Feature("uint8", (None, None, 3), encoding="image", optional=True)})
    good = io.BytesIO()
    Image.new("RGB", (8, 8)).save(good, "png")
    broken = [good.getvalue()[:40], b"<script>no image</script>", b""]
    from datum.format import RecordWriter, encode

    with RecordWriter(tmp_path / "x.tfrecord") as writer:
        rows = [{"image": data} for data in broken] + [{}, {"image": good.getvalue()}]
        writer.write_framed(encode(rows, schema))
    split = datum.load(tmp_path / "x.tfrecord", schema=schema)["train"]
    page = shown(split)
    assert not page.pictures
    assert "absent" in page.text
    assert "25 B" in page.text
    assert len(shown(split[4:]).pictures) == 1
    monkeypatch.setattr("datum._read.notebook.MAX_DECODED_PIXELS", 63)
    assert "8 x 8 pixels: too large to show here" in shown(split[4:]).text


def test_damage_is_told_instead_of_records(tmp_path):
    ds = load(tmp_path / "x", {"x": range(100)})
    (shard,) = (tmp_path / "x").glob("*.tfrecord*")
    data = bytearray(shard.read_bytes())
    data[13] ^= 0x5A
    shard.write_bytes(data)
    assert "the first records cannot be read" in shown(ds["train"]).text
    shard.unlink()
    assert "the first records cannot be read" in shown(ds["train"]).text
    shown(ds)


def test_a_part_of_what_is_compressed_is_not_read_for_a_look(tmp_path):
    ds = load(tmp_path / "x", {"x": range(100)}, compression="gzip")
    assert "· 100 records" in shown(ds["train"]).text
    assert "[3]" in shown(ds["train"]).text
    assert "would have to be read" in shown(ds["train[50:]"]).text
    assert "gzip" in shown(ds).text


def test_nothing_is_shown_of_an_empty_part(tmp_path):
    ds = load(tmp_path / "x", {"x": range(3)})
    assert "0 records" in shown(ds["train"][:0]).text


def test_much_is_cut(tmp_path):
    columns = {f"feature {n}": np.zeros((3, 50)) for n in range(300)}
    columns |= {"kind": pd.Categorical.from_codes([0, 1, 59_999], [f"c{n}" for n in range(60_000)])}
    columns = {"kind": columns.pop("kind"), "text": ["x" * 10**6] * 3, **columns}
    ds = load(tmp_path / "x", columns)
    for thing in (ds, ds["train"]):
        page = shown(thing)
        assert len(thing._repr_html_()) < 150_000
        assert "60,000 classes: c0, c1, c2, …" in page.text
        assert "and 252 features more" in page.text
    assert "59999 c59999" in shown(ds["train"]).text
    splits = load(tmp_path / "y", {"x": range(60)}, splits={f"s{n}": 1 / 30 for n in range(30)})
    assert "and 10 splits more" in shown(splits).text


SHARDS = tuple(ShardInfo(f"train-{i}", 600, 60_000_000, 0) for i in range(2))


def test_a_summary_tells_splits_and_features():
    schema = Schema({"image": Feature("bytes"), "label": Feature("int64", optional=True)})
    splits = {"train": SplitInfo(SHARDS), "v": SplitInfo(())}
    metadata = {"label": {"class_names": ["cat", "dog"]}, "image": {"class_names": 3}}
    manifest = Manifest(schema, splits, metadata, compression="gzip")
    assert summarize(Contents.of_manifest(Path("photos"), manifest)).splitlines() == [
        "Dataset('photos', gzip)",
        "  splits:",
        "    train  1,200 records, 2 shards, 120.0 MB",
        "    v      0 records, 0 shards, 0 B",
        "  features:",
        "    image  'bytes'",
        "    label  'int64', optional=True, 2 classes: cat, dog",
    ]


def test_many_classes_are_not_all_shown():
    manifest = Manifest(
        Schema({"x": Feature("int64")}), {}, {"x": {"class_names": [str(i) for i in range(1000)]}}
    )
    text = summarize(Contents.of_manifest(Path("x"), manifest))
    assert text.endswith("'int64', 1,000 classes: 0, 1, 2, 3, 4, ...")


def test_a_summary_tells_who_wrote_it_if_it_was_not_this_library():
    contents = Contents(Path("x"), Schema({}), {}, compression="zlib", writer="tfrecord files")
    assert summarize(contents).startswith("Dataset('x', zlib, tfrecord files)\n")
