"""Warnings of a profile."""

import io

import numpy as np
import pytest
from PIL import Image

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


def profiled(path, source=None, **options):
    options = {"shuffle": False, "progress": False} | options
    datum.write(source, path, **options)
    return datum.profile(path, sample=options.pop("sample", None))


def kinds_of(found):
    return [warning.kind for warning in found.warnings]


def rows(labels, start=0):
    return [{"id": start + n, "label": label} for n, label in enumerate(labels)]


def mixed(counts, seed=0):
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(seed).permutation(labels).tolist()


@pytest.mark.parametrize(
    ("counts", "found"),
    [([50, 50], []), ([90, 10], []), ([100, 10], ["imbalance"]), ([40, 2], []), ([500], [])],
)
def test_imbalance_is_ten_to_one_and_not_a_matter_of_few_records(tmp_path, counts, found):
    labels = mixed(counts)
    told = kinds_of(profiled(tmp_path / "out", rows(labels)))
    assert [kind for kind in told if kind != "constant"] == found


def test_imbalance_names_the_classes(tmp_path):
    labels = ["cat"] * 90 + ["dog"] * 3
    (warning,) = profiled(tmp_path / "out", rows(labels), shuffle=True).warnings
    assert warning.text == "'cat' is 30 times as frequent as 'dog' (90 to 3)"
    assert (warning.feature, warning.figure) == ("label", "30 to 1")


def test_what_is_no_label_may_be_as_uneven_as_it_likes(tmp_path):
    source = [{"id": n, "shelf": int(n == 0)} for n in range(100)]
    assert kinds_of(profiled(tmp_path / "out", source)) == []


def write_named(tmp_path, names, labels):
    path = tmp_path / "out"
    datum.write(rows(labels), path, progress=False)
    manifest = datum.format.Manifest.load(path)
    metadata = {"label": {"class_names": names}}
    datum.format.Manifest(manifest.schema, manifest.splits, metadata, manifest.statistics).save(
        path
    )
    return datum.profile(path)


def test_classes_without_records_are_named(tmp_path):
    (warning,) = write_named(tmp_path, ["ant", "bee", "cow"], mixed([20, 0, 20])).warnings
    assert warning.kind == "empty-class"
    assert warning.text == "bee: no records, of 3 classes"


def test_a_background_needs_no_records(tmp_path):
    assert write_named(tmp_path, ["background", "bee", "cow"], mixed([0, 20, 20])).warnings == ()


def test_labels_that_only_validation_has_are_named(tmp_path):
    splits = {"train": rows(mixed([20, 20])), "val": rows(mixed([5, 5, 5]), 1000)}
    (warning,) = profiled(tmp_path / "out", splits=splits).warnings
    assert (warning.kind, warning.split) == ("unseen-label", "val")
    assert warning.text == "2 occurs in val, never in train"


def test_every_split_to_train_on_counts(tmp_path):
    splits = {
        "train": rows(mixed([20, 20])),
        "train_extra": rows([2, 2, 2, 2], 100),
        "val": rows(mixed([5, 5, 5]), 1000),
    }
    assert kinds_of(profiled(tmp_path / "out", splits=splits)) == []


def test_of_a_sample_nothing_is_said_of_labels_that_were_not_seen(tmp_path):
    labels = [*mixed([40] * 30), 30]
    splits = {"train": rows(labels), "val": rows([30] * 3, 5000)}
    datum.write(None, tmp_path / "out", splits=splits, progress=False)
    assert "unseen-label" not in kinds_of(datum.profile(tmp_path / "out", sample=100))


def test_records_in_the_order_of_their_labels_are_warned_of(tmp_path):
    labels = np.repeat(np.arange(5), 40).tolist()
    (warning,) = profiled(tmp_path / "out", rows(labels)).warnings
    assert (warning.kind, warning.feature, warning.split) == ("order", "label", "train")
    assert warning.figure == "98.0 %"


def test_a_sample_of_blocks_shows_the_order_too(tmp_path):
    labels = np.repeat(np.arange(5), 2000).tolist()
    datum.write(rows(labels), tmp_path / "out", shuffle=False, progress=False)
    assert "order" in kinds_of(datum.profile(tmp_path / "out", sample=1000))


def test_shuffled_records_are_not(tmp_path):
    labels = np.repeat(np.arange(5), 40).tolist()
    assert kinds_of(profiled(tmp_path / "out", rows(labels), shuffle=True)) == []


def test_two_classes_of_which_one_is_frequent_repeat_by_chance(tmp_path):
    assert kinds_of(profiled(tmp_path / "out", rows(mixed([190, 20])))) == []


def test_an_ordered_split_to_validate_with_does_no_harm(tmp_path):
    splits = {
        "train": rows(mixed([60, 60])),
        "val": rows([0] * 60 + [1] * 60, 1000),
    }
    assert kinds_of(profiled(tmp_path / "out", splits=splits)) == []


def warnings_of(path, columns, **options):
    datum.write(columns, path, progress=False, **options)
    return {
        (one.kind, one.feature): one
        for one in datum.profile(path).warnings
        if one.feature is not None
    }


def test_missing_values_are_warned_of_where_they_are_many(tmp_path):
    rows = [
        {"id": n} | ({"most": n} if n > 30 else {}) | ({"some": n} if n > 1 else {})
        for n in range(100)
    ]
    found = warnings_of(tmp_path / "out", rows)
    assert list(found) == [("missing", "most")]
    assert found["missing", "most"].figure == "31.0 %"


def test_nan_and_infinities_are_warned_of(tmp_path):
    values = np.arange(100.0)
    values[[3, 4]] = np.nan
    values[5] = np.inf
    found = warnings_of(tmp_path / "out", {"x": values})
    assert found["not-finite", "x"].text == "2 NaN and 1 infinite of 100 values"


def test_constant_features_are_warned_of(tmp_path):
    columns = {
        "id": np.arange(50),
        "number": np.full(50, 7),
        "text": ["same"] * 50,
        "image": np.zeros((50, 3, 3)),
    }
    found = warnings_of(tmp_path / "out", columns)
    assert set(found) == {("constant", "number"), ("constant", "text"), ("constant", "image")}
    assert found["constant", "text"].text == "every value is same"


def test_few_records_may_be_alike(tmp_path):
    assert warnings_of(tmp_path / "out", {"id": np.arange(19), "x": np.full(19, 7)}) == {}


def test_lists_of_one_value_but_several_lengths_are_not_constant(tmp_path):
    rows = [{"x": [1] * (n % 3), "id": n} for n in range(50)]
    assert warnings_of(tmp_path / "out", rows) == {}


def test_empty_texts_are_warned_of(tmp_path):
    texts = [f"text {n}" if n % 10 else "" for n in range(100)]
    found = warnings_of(tmp_path / "out", {"x": texts, "id": np.arange(100)})
    assert found["empty-text", "x"].figure == "10.0 %"


def png(width, height):
    file = io.BytesIO()
    Image.new("L", (width, height)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    ("sizes", "kinds"),
    [
        ([(20, 20)] * 5, []),
        ([(20, 20)] * 5 + [(1, 20)], ["image-size"]),
        ([(200, 200)] * 5 + [(2500, 2000)], ["image-size"]),
        ([(2000, 2000)] * 5 + [(2500, 2000)], []),
        ([(20, 20)] * 5 + [(200, 200)], []),
    ],
)
def test_odd_sizes_of_images_are_warned_of(tmp_path, sizes, kinds):
    images = [png(*size) for size in sizes]
    rows = [{"image": data, "id": n} for n, data in enumerate(images)]
    schema = {"image": datum.Feature("bytes"), "id": datum.Feature("int64")}
    found = warnings_of(tmp_path / "out", rows, schema=schema)
    assert [kind for kind, _ in found] == kinds


def test_images_that_cannot_be_read_are_warned_of(tmp_path):
    rows = [{"image": png(9, 9), "id": 0}, {"image": b"none", "id": 1}]
    schema = {"image": datum.Feature("bytes"), "id": datum.Feature("int64")}
    found = warnings_of(tmp_path / "out", rows, schema=schema, shuffle=False)
    assert found["unreadable-images", "image"].figure == "1"
