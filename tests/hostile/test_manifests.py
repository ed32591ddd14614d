"""Manifests that are damaged, lie, or reach for what is not theirs."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datum import Feature, Schema
from datum.errors import CorruptRecordError, ManifestError
from datum.format import Manifest, ShardInfo, SplitInfo, strict_json
from datum.reader import load
from tests.hostile.shards import MIB, flipped, run_measured
from tests.unit.read.written import write_numbered

MANIFEST = Manifest(
    Schema(
        {
            "image": Feature("uint8", (None, None, 3), encoding="raw"),
            "label": Feature("int64", default=-1),
            "words": Feature("str", (None,), optional=True),
            "bag": Feature("float32", (100,), encoding="sparse", keys=("at", "what")),
        }
    ),
    {
        "train": SplitInfo(
            (
                ShardInfo("train-00000-of-00002.tfrecord", 3, 400, 0x01234567),
                ShardInfo("train-00001-of-00002.tfrecord", 2, 300, 0xFEDCBA98),
            )
        ),
        "val": SplitInfo((ShardInfo("val-00000-of-00001.tfrecord", 0, 0, 0),)),
    },
    metadata={"label": {"class_names": ["cat", "dög"], "weights": [0.5, float("inf")]}},
    statistics={"train": {"label": {"mean": 0.25, "min": 0}}},
)
DATA = MANIFEST.to_bytes()
PLAIN = {**json.loads(DATA), "checksum": None}  # so that nothing but the content speaks
FIRST_SHARD = "$.splits.train.shards[0]"


def with_changed(path: str, value: Any) -> bytes:
    """The manifest with one value replaced; `value` of None in brackets removes it."""
    found = copy.deepcopy(PLAIN)
    *parents, last = [
        int(part) if part.isdigit() else part for part in re.findall(r"[^$.\[\]]+", path)
    ]
    inner: Any = found
    for part in parents:
        inner = inner[part]
    if value is REMOVED:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(found).encode()


REMOVED = object()


def refusal(data: bytes) -> str:
    with pytest.raises(ManifestError) as caught:
        Manifest.from_bytes(data, file="x/datum.json")
    message = str(caught.value)
    assert message.startswith("x/datum.json: ")
    assert len(message) < 1000
    return message


def test_the_manifest_that_is_changed_here_is_sound():
    assert Manifest.from_bytes(DATA) == Manifest.from_bytes(json.dumps(PLAIN).encode()) == MANIFEST


def test_every_flipped_bit_is_noticed():
    for bit in range(8 * len(DATA)):
        refusal(flipped(DATA, bit))


def test_every_cut_is_noticed():
    for cut in range(len(DATA) - 1):
        refusal(DATA[:cut])


@pytest.mark.parametrize(
    "name",
    [
        "../train.tfrecord", "..", ".", "", "/etc/passwd", "a/b", "..\\x", "C:\\x", "C:x", "a\0b",
        "a\nb", "file:///etc/passwd", "https://example.com/a", "s3://bucket/a", ".hidden", "~/x/y",
        "datum.json", "DATUM.JSON", "x.", "x ", "x" * 256, "é" * 128, "a*", "a?b", "NUL:", "|cat",
    ],
)  # fmt: skip
def test_a_shard_is_a_file_of_the_same_folder(name):
    message = refusal(with_changed(f"{FIRST_SHARD}.name", name))
    assert f"{FIRST_SHARD}.name: expected a file of the same folder" in message


@pytest.mark.parametrize("field", ["records", "bytes"])
@pytest.mark.parametrize("count", [-1, 1.5, 1.0, True, None, "3", [], {}, 2**53 + 1, 2**63, 2**64])
def test_a_count_is_a_whole_number_that_can_be(field, count):
    assert f"{FIRST_SHARD}.{field}" in refusal(with_changed(f"{FIRST_SHARD}.{field}", count))


def test_counts_that_cannot_be_together_are_refused():
    assert "no bytes for no records" in refusal(with_changed(f"{FIRST_SHARD}.records", 0))
    assert "the capacity of 400 bytes" in refusal(with_changed(f"{FIRST_SHARD}.records", 30))
    assert "in all" in refusal(with_changed(f"{FIRST_SHARD}.bytes", 2**53))


@pytest.mark.parametrize("crc", ["", "0123456", "0123456G", "0123456A", "012345678", 5, None, []])
def test_a_checksum_is_eight_digits(crc):
    assert f"{FIRST_SHARD}.crc32c" in refusal(with_changed(f"{FIRST_SHARD}.crc32c", crc))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.format", "other"), ("$.format", None), ("$.format", ["datum"]),
        ("$.version", "1"), ("$.version", 1.0), ("$.version", True), ("$.version", -1),
        ("$.checksum", 5), ("$.checksum", "01234567"), ("$.checksum", ""), ("$.checksum", {}),
        ("$.compression", "zstd"), ("$.compression", 5), ("$.compression", ["gzip"]),
        ("$.schema", []), ("$.schema", "x"), ("$.schema.label", 5), ("$.schema.label", {}),
        ("$.schema.label", {"dtype": "int65"}), ("$.schema.label", {"dtype": "int64", "x": 1}),
        ("$.schema.label", {"dtype": "int64", "shape": [-1]}),
        ("$.schema.label", {"dtype": "int64", "shape": [2**64 - 1]}),
        ("$.schema.label", {"dtype": "int64", "default": {"a": 1}}),
        ("$.schema.label", {"dtype": "int64", "default": "x"}),
        ("$.splits", []), ("$.splits", None), ("$.splits.train", []), ("$.splits.train", {}),
        ("$.splits.train.shards", {}), ("$.splits.train.shards", [5]),
        ("$.splits.train.shards", [[]]), ("$.metadata", []), ("$.metadata.label", 5),
        ("$.metadata.label", None), ("$.metadata.label", {"$float": "x"}),
        ("$.statistics", 5), ("$.statistics.train", []), ("$.statistics.unknown", {}),
        ("$.metadata.label", {"$float": "nan"}), ("$.metadata", {"$float": "nan"}),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused_where_it_is(path, value):
    assert path in refusal(with_changed(path, value))


@pytest.mark.parametrize(
    "name", ["", "all", "../x", "a/b", ".x", "a\0", "train-00000", "é", "x" * 999]
)
def test_a_split_needs_a_name_that_files_can_have(name):
    assert "$.splits" in refusal(with_changed("$.splits", {name: {"shards": []}}))


def test_every_field_must_be_there():
    for name in PLAIN:
        assert f"{name!r}, got none" in refusal(with_changed(name, REMOVED)) or name == "format"
    for name in PLAIN["splits"]["train"]["shards"][0]:
        assert f"{name!r}, got none" in refusal(with_changed(f"{FIRST_SHARD}.{name}", REMOVED))


def test_a_newer_version_says_to_upgrade():
    assert "upgrade" in refusal(with_changed("$.version", 2))


def test_a_name_that_occurs_twice_is_refused():
    text = json.dumps(PLAIN)
    twice = text.replace('"records": 3,', '"records": 3, "records": 2,')
    assert f"{FIRST_SHARD}: expected each name once, got 'records' twice" in refusal(twice.encode())


def test_two_shards_in_one_file_are_refused():
    for name in ("train-00001-of-00002.tfrecord", "TRAIN-00001-OF-00002.tfrecord"):
        assert "a file of its own" in refusal(with_changed(f"{FIRST_SHARD}.name", name))


@pytest.mark.parametrize("literal", [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400"])
def test_numbers_that_are_not_finite_are_refused(literal):
    data = json.dumps(PLAIN).encode().replace(b"0.25", literal)
    assert "$.statistics.train.label.mean: expected a finite number" in refusal(data)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b"[]", b"null", b"1", b'"x"', b"\0", b"{" * 100, DATA + b"x", DATA + DATA,
        b"\xef\xbb\xbf" + DATA, DATA.decode().encode("utf-16"), DATA.decode().encode("latin-1"),
        b"<xml/>", DATA.replace(b"\n", b"\r\n"), DATA[:-1], b" " + DATA,
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(data):
    refusal(data)


@pytest.mark.parametrize("where", ["schema", "splits", "metadata", "statistics", "unknown"])
@pytest.mark.parametrize("depth", [80, 500, 900, 100_000])
@pytest.mark.parametrize("kind", ["lists", "objects"])
def test_deep_nesting_is_refused_or_passed_by(where, depth, kind):
    opening, closing = (b"[", b"]") if kind == "lists" else (b'{"label":', b"}")
    inner = opening * depth + b"5" + closing * depth
    data = json.dumps({**PLAIN, where: "HERE"}).encode().replace(b'"HERE"', inner)
    if where != "unknown" or depth == 100_000:
        refusal(data)
        return
    with contextlib.suppress(ManifestError):  # how deep the interpreter goes is its own affair
        assert Manifest.from_bytes(data) == MANIFEST


def test_a_default_nested_without_end_is_refused():
    value: Any = 5
    for _ in range(300):
        value = [value]
    feature = {"dtype": "int64", "default": value}
    assert "$.schema" in refusal(with_changed("$.schema.label", feature))


def test_a_huge_manifest_is_not_read(tmp_path):
    body = """
found = []
for path in args:
    try:
        Manifest.load(path)
    except ManifestError as error:
        found.append(str(error))
return found"""
    path = tmp_path / "datum.json"
    with path.open("wb") as file:
        file.truncate(strict_json.MAX_BYTES + 1)
    found, growth = run_measured("from datum.errors import ManifestError\n" + body, tmp_path)
    assert "expected at most 268435456 bytes" in found[0]
    assert growth < 16 * MIB


def test_a_small_manifest_cannot_ask_for_much_memory(tmp_path):
    body = """
from datum.errors import ManifestError
found = []
for path in args:
    try:
        Manifest.load(path)
    except ManifestError as error:
        found.append(str(error)[:200])
return found"""
    shapes = [[2**40], [2**30], [2**20, 2**20]]
    for i, shape in enumerate(shapes):
        feature = {"dtype": "int64", "shape": shape, "default": 0}
        (tmp_path / f"{i}").write_bytes(with_changed("$.schema.label", feature))
    found, growth = run_measured(body, *(tmp_path / f"{i}" for i in range(len(shapes))))
    assert len(found) == len(shapes)
    assert growth < 16 * MIB


# Files that are not what they should be.


def test_a_folder_in_the_place_of_the_manifest_is_refused(tmp_path):
    (tmp_path / "datum.json").mkdir()
    with pytest.raises(ManifestError, match=r"datum\.json"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["datum.json", "other"])
def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(ManifestError, match="regular file"):
        Manifest.load(tmp_path / name)


def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "datum.json").symlink_to("datum.json")
    with pytest.raises(ManifestError, match=r"datum\.json"):
        load(tmp_path)


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_a_path_that_cannot_be_is_refused(path):
    with pytest.raises(ManifestError):
        load(path)


def test_a_shard_that_is_a_pipe_is_refused_without_waiting(tmp_path):
    MANIFEST.save(tmp_path)
    for shard in MANIFEST.splits["train"].shards:
        os.mkfifo(tmp_path / shard.name)
    dataset = load(tmp_path)
    with pytest.raises(OSError, match="regular file"):
        dataset["train"][0]
    with pytest.raises(OSError, match="regular file"):
        next(iter(dataset["train"]))
    assert len(dataset.verify().problems) == 3


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_a_shard_cut_anywhere_is_noticed(tmp_path, compression):
    manifest = write_numbered(tmp_path, compression=compression)
    dataset = load(tmp_path)
    for shard in manifest.splits["train"].shards:
        path = tmp_path / shard.name
        data = path.read_bytes()
        for cut in range(len(data)):
            path.write_bytes(data[:cut])
            problem = f"expected {len(data)} bytes.* got {cut}"
            if shard.records:
                with pytest.raises(CorruptRecordError, match=problem):
                    list(dataset["train"])
            assert not dataset.verify(threads=1).is_sound
        path.write_bytes(data)
    assert dataset.verify().is_sound


def test_a_shard_cut_anywhere_is_noticed_at_random_access(tmp_path):
    (shard,) = write_numbered(tmp_path).splits["val"].shards
    path = tmp_path / shard.name
    data = path.read_bytes()
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        with pytest.raises(CorruptRecordError, match=f"expected {len(data)} bytes.* got {cut}"):
            load(tmp_path)["val"][0]


# Changed at random.


def mutations(data: bytes) -> st.SearchStrategy[bytes]:
    """Pieces of `data` replaced, some by pieces of itself, some by what JSON is made of."""
    places = st.integers(0, len(data))
    tokens = st.sampled_from(
        [b"", b"{", b"}", b"[", b"]", b",", b":", b'"', b"null", b"-1", b"1e999", b"NaN", b'""',
         b"\\u0000", b'"../x"', b"18446744073709551616", b"0.5", b"true", b"{}", b"[]", b"\xff",
         b"\\"]
    )  # fmt: skip
    copies = st.tuples(places, st.integers(0, 40)).map(lambda at: data[at[0] : at[0] + at[1]])
    change = st.tuples(places, st.integers(0, 40), tokens | copies | st.binary(max_size=4))

    def apply(changes: list[tuple[int, int, bytes]]) -> bytes:
        changed = data
        for at, size, piece in changes:
            changed = changed[:at] + piece + changed[at + size :]
        return changed

    return st.lists(change, min_size=1, max_size=4).map(apply)


@settings(max_examples=500)
@given(mutations(DATA))
def test_a_manifest_changed_at_random_is_refused_or_the_same(data):
    try:
        found = Manifest.from_bytes(data)
    except ManifestError:
        return
    assert found == MANIFEST


@settings(max_examples=1000)
@given(mutations(json.dumps(PLAIN, indent=1).encode()))
def test_content_changed_at_random_is_refused_or_sound(data):
    try:
        found = Manifest.from_bytes(data)
    except ManifestError:
        return
    assert Manifest.from_bytes(found.to_bytes()) == found


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def all_paths(value: Any, path: str = "$") -> list[str]:
    paths = []
    if isinstance(value, dict):
        for name, item in value.items():
            paths += [f"{path}.{name}", *all_paths(item, f"{path}.{name}")]
    elif isinstance(value, list):
        for i, item in enumerate(value):
            paths += [f"{path}[{i}]", *all_paths(item, f"{path}[{i}]")]
    return paths


PATHS = [path for path in all_paths(PLAIN) if "$float" not in path]


@settings(max_examples=1000)
@given(st.sampled_from(PATHS), json_values)
def test_any_value_in_any_place_is_refused_or_sound(path, value):
    data = with_changed(path, value)
    try:
        found = Manifest.from_bytes(data)
    except ManifestError:
        return
    assert Manifest.from_bytes(found.to_bytes()) == found
