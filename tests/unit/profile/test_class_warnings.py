import numpy as np
import pytest

import datum


def profiled(path, source=None, **options):
    options = {"shuffle": False, "progress": False} | options
    datum.write(source, path, **options)
    return datum.profile(path, sample=options.pop("sample", None))


def kinds(found):
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
    told = kinds(profiled(tmp_path / "out", rows(labels)))
    assert [kind for kind in told if kind != "constant"] == found


def test_imbalance_names_the_classes(tmp_path):
    labels = ["cat"] * 90 + ["dog"] * 3
    (warning,) = profiled(tmp_path / "out", rows(labels), shuffle=True).warnings
    assert warning.text == "'cat' is 30 times as frequent as 'dog' (90 to 3)"
    assert (warning.feature, warning.figure) == ("label", "30 to 1")


def test_what_is_no_label_may_be_as_uneven_as_it_likes(tmp_path):
    source = [{"id": n, "shelf": int(n == 0)} for n in range(100)]
    assert kinds(profiled(tmp_path / "out", source)) == []


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
    assert kinds(profiled(tmp_path / "out", splits=splits)) == []


def test_of_a_sample_nothing_is_said_of_labels_that_were_not_seen(tmp_path):
    labels = [*mixed([40] * 30), 30]
    splits = {"train": rows(labels), "val": rows([30] * 3, 5000)}
    datum.write(None, tmp_path / "out", splits=splits, progress=False)
    assert "unseen-label" not in kinds(datum.profile(tmp_path / "out", sample=100))


def test_records_in_the_order_of_their_labels_are_warned_of(tmp_path):
    labels = np.repeat(np.arange(5), 40).tolist()
    (warning,) = profiled(tmp_path / "out", rows(labels)).warnings
    assert (warning.kind, warning.feature, warning.split) == ("order", "label", "train")
    assert warning.figure == "98.0 %"


def test_a_sample_of_blocks_shows_the_order_too(tmp_path):
    labels = np.repeat(np.arange(5), 2000).tolist()
    datum.write(rows(labels), tmp_path / "out", shuffle=False, progress=False)
    assert "order" in kinds(datum.profile(tmp_path / "out", sample=1000))


def test_shuffled_records_are_not(tmp_path):
    labels = np.repeat(np.arange(5), 40).tolist()
    assert kinds(profiled(tmp_path / "out", rows(labels), shuffle=True)) == []


def test_two_classes_of_which_one_is_frequent_repeat_by_chance(tmp_path):
    assert kinds(profiled(tmp_path / "out", rows(mixed([190, 20])))) == []


def test_an_ordered_split_to_validate_with_does_no_harm(tmp_path):
    splits = {
        "train": rows(mixed([60, 60])),
        "val": rows([0] * 60 + [1] * 60, 1000),
    }
    assert kinds(profiled(tmp_path / "out", splits=splits)) == []
