"""Manifests."""

import json
import math
import os
import pickle
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import Feature, Schema, _core
from datum.errors import ManifestError, SchemaError
from datum.format import Manifest, ShardInfo, SplitInfo, manifest, strict_json
from datum.format.durable import hold_folder
from datum.format.manifest import read_manifest

SCHEMA = Schema({"image": Feature("bytes"), "label": Feature("int64"), "a": Feature("str")})
SHARD = ShardInfo("train-00000-of-00001.tfrecord", records=2, bytes=40, crc32c=0xE3069283)


def full_manifest(**changes) -> Manifest:
    whole = {
        "schema": SCHEMA,
        "splits": {"val": SplitInfo(()), "train": SplitInfo((SHARD,))},
        "metadata": {"label": {"class_names": ["nan", "dög"], "weight": math.nan}},
        "statistics": {"train": {"label": {"min": 0, "max": math.inf}}},
    }
    return Manifest(**{**whole, **changes})


def test_a_manifest_comes_back_as_it_was():
    found = Manifest.from_bytes(full_manifest().to_bytes())
    assert found == full_manifest()
    assert found.schema == SCHEMA
    assert found.splits["train"] == SplitInfo((SHARD,))
    assert found.metadata["label"]["class_names"] == ["nan", "dög"]
    assert math.isnan(found.metadata["label"]["weight"])
    assert found.statistics["train"]["label"]["max"] == math.inf


def test_a_split_sums_its_shards():
    other = replace(SHARD, name="b", records=3, bytes=60)
    split = SplitInfo((SHARD, other))
    assert (split.records, split.bytes) == (5, 100)


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_every_shard_is_compressed_as_the_manifest_says(compression):
    shards = SplitInfo((replace(SHARD, compression="gzip"), replace(SHARD, name="other")))
    manifest = Manifest(Schema({}), {"train": shards}, compression=compression)
    for found in (manifest, Manifest.from_bytes(manifest.to_bytes())):
        assert [s.compression for s in found.splits["train"].shards] == [compression] * 2
    assert b'"compression"' not in manifest.to_bytes().partition(b'"splits"')[2]


def test_the_order_of_features_and_splits_is_kept():
    found = Manifest.from_bytes(full_manifest().to_bytes())
    assert list(found.schema) == ["image", "label", "a"]
    assert list(found.splits) == ["val", "train"]
    turned = full_manifest(splits=dict(reversed(full_manifest().splits.items())))
    assert turned != full_manifest()


def test_the_order_of_other_names_has_no_meaning():
    first = full_manifest(metadata={"a": {"x": 1, "y": 2}, "b": {}})
    second = full_manifest(metadata={"b": {}, "a": {"y": 2, "x": 1}})
    assert first.to_bytes() == second.to_bytes()
    assert hash(first) == hash(second)


def test_a_file_is_readable_json_in_utf8_that_ends_its_last_line():
    data = full_manifest().to_bytes()
    assert data.endswith(b"\n}\n")
    assert "dög".encode() in data
    assert json.loads(data)["splits"]["train"]["shards"][0]["crc32c"] == "e3069283"


def test_the_checksum_is_that_of_the_file_with_zeros_in_its_place():
    data = full_manifest().to_bytes()
    stored = json.loads(data)["checksum"]
    zeroed = data.replace(stored.encode(), b"00000000", 1)
    assert int(stored, 16) == _core.crc32c(zeroed)


def test_a_checksum_of_any_digits_is_found():
    for count in range(300):  # some begin with zeros
        made = full_manifest(metadata={"a": {"count": count}})
        assert Manifest.from_bytes(made.to_bytes()) == made


def test_tuples_and_mappings_are_taken_as_json_has_them():
    found = full_manifest(metadata={"label": {"class_names": ("a", "b")}})
    assert found.metadata == {"label": {"class_names": ["a", "b"]}}
    assert full_manifest(schema=dict(SCHEMA)) == full_manifest()


def test_what_is_given_is_copied():
    classes = ["a"]
    made = full_manifest(metadata={"label": {"class_names": classes}})
    classes.append("b")
    assert made.metadata["label"]["class_names"] == ["a"]


def test_a_manifest_can_be_pickled():
    assert pickle.loads(pickle.dumps(full_manifest())) == full_manifest()


def test_a_manifest_is_not_equal_to_its_bytes():
    assert full_manifest() != full_manifest().to_bytes()


@given(
    st.lists(
        st.tuples(st.integers(0, 2**20), st.integers(0, 2**32), st.integers(0, 2**32 - 1)),
        max_size=5,
    ),
    st.sampled_from([None, "gzip", "zlib"]),
)
def test_any_shards_come_back(shards, compression):
    infos = [
        ShardInfo(f"{i}", n, 16 * n + extra if n or compression else 0, crc)
        for i, (n, extra, crc) in enumerate(shards)
    ]
    made = full_manifest(splits={"train": SplitInfo(tuple(infos))}, compression=compression)
    assert Manifest.from_bytes(made.to_bytes()).splits == made.splits
    assert made.splits["train"].records == sum(n for n, _, _ in shards)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"version": 2}, r"\$\.version: expected at most 1, got 2: a newer Datum"),
        ({"version": 0}, r"\$\.version"),
        ({"version": True}, r"\$\.version"),
        ({"compression": "zstd"}, r"\$\.compression: expected null, gzip or zlib, got 'zstd'"),
        ({"metadata": {"a": 1}}, r"\$\.metadata\.a: expected an object, got 1"),
        ({"metadata": {"a": {"b": b""}}}, r"\$\.metadata\.a\.b: expected a JSON value, got bytes"),
        ({"metadata": [1]}, r"\$\.metadata: expected an object, got a list"),
        ({"metadata": {1: {}}}, r"\$\.metadata: expected names that are text"),
        ({"statistics": {"test": {}}}, r"\$\.statistics\.test: expected the name of a split"),
        ({"splits": {"all": SplitInfo(())}}, r"\$\.splits\.all: .*every split"),
        ({"splits": {"a/b": SplitInfo(())}}, r"\$\.splits\['a/b'\]"),
        (
            {"splits": {"a": SplitInfo((SHARD,)), "b": SplitInfo((SHARD,))}},
            r"\$\.splits\.b\.shards\[0\]\.name: expected a file of its own",
        ),
        (
            {"splits": {"a": SplitInfo((SHARD, replace(SHARD, name=SHARD.name.upper())))}},
            "a file of its own",
        ),
        ({"splits": {"a": SplitInfo((replace(SHARD, name="x\ud800"),))}}, "the same folder"),
        (
            {"splits": {"a": SplitInfo((replace(SHARD, name="x", bytes=2**53), SHARD))}},
            r"\$\.splits: expected at most 2\^53 bytes in all",
        ),
        (
            {"splits": {"a": SplitInfo((replace(SHARD, bytes=31),))}},
            "at most 1, the capacity of 31 bytes",
        ),
        ({"splits": {"a": SplitInfo((replace(SHARD, records=0),))}}, "no bytes for no records"),
        ({"splits": {"a": SplitInfo((replace(SHARD, crc32c=2**32),))}}, r"\.crc32c: expected"),
        ({"splits": {"a": SplitInfo((replace(SHARD, crc32c=None),))}}, r"\.crc32c: expected"),
    ],
)
def test_what_cannot_be_is_refused(changes, problem):
    with pytest.raises(ManifestError, match=problem):
        full_manifest(**changes)


def test_a_newer_version_says_what_to_do():
    with pytest.raises(ManifestError, match="hint: upgrade"):
        full_manifest(version=2)


def edited(**changes) -> bytes:
    found = json.loads(full_manifest().to_bytes())
    return json.dumps({**found, "checksum": None, **changes}).encode()


def test_a_file_edited_by_hand_is_refused_until_it_says_so():
    data = full_manifest().to_bytes().replace(b'"records": 2', b'"records": 1')
    with pytest.raises(ManifestError, match=r"a\.json: \$\.checksum: .*changed or damaged"):
        Manifest.from_bytes(data, file="a.json")
    checksum = json.loads(data)["checksum"].encode()
    meant = data.replace(b'"' + checksum + b'"', b"null")
    assert Manifest.from_bytes(meant).splits["train"].records == 1


def test_fields_of_later_additions_are_passed_by():
    assert Manifest.from_bytes(edited(note={"more": [1]})) == full_manifest()


def test_what_no_reader_takes_is_not_written(monkeypatch):
    made = full_manifest()
    monkeypatch.setattr(strict_json, "MAX_BYTES", len(made.to_bytes()) - 1)
    with pytest.raises(ManifestError, match="at most"):
        made.to_bytes()
    monkeypatch.undo()
    monkeypatch.setattr(strict_json, "MAX_VALUES", 20)
    with pytest.raises(ManifestError, match="at most 20 values"):
        made.to_bytes()


def test_a_default_of_many_values_is_refused_on_both_sides(monkeypatch):
    schema = Schema({"x": Feature("int64", (5,), default=1)})
    data = full_manifest(schema=schema).to_bytes()
    monkeypatch.setattr("datum.format.manifest.MAX_DEFAULT_VALUES", 4)
    with pytest.raises(SchemaError, match="default of at most 4 values"):
        full_manifest(schema=schema)
    with pytest.raises(ManifestError, match=r"\$\.schema\.x: expected a default of at most 4"):
        Manifest.from_bytes(data)


def test_a_manifest_is_saved_to_a_folder_or_a_file(tmp_path):
    full_manifest().save(tmp_path)
    assert Manifest.load(tmp_path) == Manifest.load(tmp_path / "datum.json") == full_manifest()
    full_manifest().save(tmp_path / "other.json")
    assert (tmp_path / "other.json").read_bytes() == full_manifest().to_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["datum.json", "other.json"]


def test_the_example_of_the_documentation_is_written_so():
    page = (Path(__file__).parents[3] / "docs/concepts/format.md").read_text()
    (block,) = re.findall(
        r"^```json title=.datum.json.\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    example = Manifest(
        Schema({"image": Feature("bytes"), "label": Feature("int64", optional=True)}),
        {"train": SplitInfo((ShardInfo("train-00000-of-00001.tfrecord", 2, 99, 0x0A1B2C3D),))},
        {"label": {"class_names": ["cat", "dog"]}},
        {"train": {"label": {"max": 1, "mean": math.nan}}},
    )
    assert example.to_bytes().decode() == block


def test_a_folder_or_its_manifest_is_read(tmp_path):
    path = tmp_path / "datum.json"
    path.write_bytes(b"{}")
    assert read_manifest(tmp_path) == read_manifest(path) == (path, b"{}")


def test_a_folder_without_a_manifest_was_never_published(tmp_path):
    for path in (tmp_path, tmp_path / "datum.json"):
        with pytest.raises(
            ManifestError, match=r"never published: it has no datum\.json"
        ) as caught:
            read_manifest(path)
        assert str(caught.value).startswith(f"{tmp_path}: ")


def test_what_an_unfinished_write_left_is_pointed_at(tmp_path, monkeypatch):
    os.close(hold_folder(tmp_path / ".photos.partial"))
    with pytest.raises(ManifestError, match=r"did not finish.*\.photos\.partial"):
        read_manifest(tmp_path / "photos")
    (tmp_path / "photos").mkdir()
    monkeypatch.chdir(tmp_path / "photos")
    for path in (tmp_path / "photos", manifest.Path("."), manifest.Path("datum.json")):
        with pytest.raises(ManifestError, match=r"never published(.|\n)*\.photos\.partial"):
            read_manifest(path)


def test_a_path_to_nothing_is_told(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "photos", tmp_path / "file" / "datum.json"):
        with pytest.raises(ManifestError, match="no such folder or file"):
            read_manifest(path)


@pytest.mark.usefixtures("permissions_count")
def test_a_manifest_that_may_not_be_read_is_told(tmp_path):
    path = tmp_path / "datum.json"
    path.touch(mode=0)
    with pytest.raises(ManifestError, match=r"datum\.json.*Permission denied"):
        read_manifest(path)
