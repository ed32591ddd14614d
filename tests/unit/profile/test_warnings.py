import numpy as np
import pytest

import datum
from datum._inspect.profile.results import KINDS
from datum._inspect.profile.warnings import find_warnings

MIB = 2**20


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "plain"
    datum.write({"x": np.arange(100)}, path, progress=False)
    return datum.profile(path)


def kinds(found):
    return [warning.kind for warning in found]


def of_shards(profile, sizes):
    return kinds(find_warnings(profile, shard_bytes={"train": sizes}, failures={}))


def test_a_sound_dataset_has_no_warnings(plain):
    assert plain.warnings == ()


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ([10_000], []),
        ([10_000] * 15, []),
        ([10_000] * 16, ["small-shards"]),
        ([2 * MIB] * 100, []),
        ([1025 * MIB], ["large-shards"]),
        ([128 * MIB] * 9 + [3 * MIB], []),
        ([10 * MIB] * 4 + [100 * MIB], ["uneven-shards"]),
        ([1 * MIB] * 4 + [10 * MIB], []),
        ([10 * MIB, 100 * MIB], []),
        ([], []),
    ],
)
def test_odd_sizes_of_shards_are_warned_of(plain, sizes, found):
    assert of_shards(plain, sizes) == found


def test_records_in_two_splits_are_the_gravest_but_for_damage(tmp_path):
    splits = {"train": [{"x": n} for n in range(50)], "val": [{"x": n} for n in range(48, 60)]}
    datum.write(None, tmp_path / "out", splits=splits, shuffle=False, progress=False)
    (warning,) = datum.profile(tmp_path / "out").warnings
    assert (warning.kind, warning.split) == ("leakage", "val")
    assert warning.text == (
        "2 records of val (16.7 %) are in train too: record 0 is record 48 of train, for one"
    )
    assert warning.title == KINDS["leakage"]


def test_a_few_copies_within_a_split_are_no_alarm(tmp_path):
    values = [*range(149), 0]  # one of 150, as iris has it
    datum.write({"x": values}, tmp_path / "few", shuffle=False, progress=False)
    found = datum.profile(tmp_path / "few")
    assert found.duplicates[0].records == 1
    assert found.warnings == ()
    datum.write({"x": [*range(90), *range(10)]}, tmp_path / "many", shuffle=False, progress=False)
    (warning,) = datum.profile(tmp_path / "many").warnings
    assert warning.kind == "duplicates"
    assert "10 records of train (10.0 %) are copies of others: record 90" in warning.text


def test_of_a_sample_at_least_so_many_are_copies(tmp_path):
    datum.write({"x": np.zeros(1000, np.int64)}, tmp_path / "out", progress=False)
    found = datum.profile(tmp_path / "out", sample=100)
    text = next(one.text for one in found.warnings if one.kind == "duplicates")
    assert text.startswith("at least 99 records of train")


def test_a_split_without_records_is_warned_of(tmp_path):
    source = {"train": [{"x": 1}], "val": []}
    datum.write(None, tmp_path / "out", splits=source, progress=False)
    found = datum.profile(tmp_path / "out")
    assert kinds(found.warnings) == ["empty-split"]
    assert found.warnings[0].split == "val"


def test_damage_comes_first_and_names_the_shard(tmp_path):
    datum.write({"x": np.zeros(100, np.int64)}, tmp_path / "out", shards=2, progress=False)
    path = tmp_path / "out" / "train-00001-of-00002.tfrecord"
    data = bytearray(path.read_bytes())
    data[14] ^= 1
    path.write_bytes(data)
    found = datum.profile(tmp_path / "out")
    assert found.seen == 50
    assert found.warnings[0].kind == "damage"
    assert found.warnings[0].text.startswith("train-00001-of-00002.tfrecord: record 0 at byte 0")
    assert f"datum verify {tmp_path / 'out'}" in found.warnings[0].hint


def test_every_kind_that_is_told_is_known(plain):
    source = KINDS
    assert list(source)[:2] == ["damage", "leakage"]
    assert all(title and title == title.strip() for title in source.values())
