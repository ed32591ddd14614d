import pytest

import datum
from datum._inspect.profile.run import class_names


def labels_of(path, rows, **options):
    datum.write(rows, path, progress=False, **options)
    found = datum.profile(path)
    return [name for name, one in found.features.items() if one.is_label]


@pytest.mark.parametrize("name", ["label", "Labels", "class", "image/object/class/label", "y"])
def test_a_label_is_told_by_its_name(tmp_path, name):
    rows = [{name: n % 3, "other": n % 2} for n in range(30)]
    assert labels_of(tmp_path / "out", rows) == [name]


def test_numbers_and_ids_are_no_labels(tmp_path):
    rows = [{"label": n, "class": n / 7, "shelf": n % 3} for n in range(30)]
    assert labels_of(tmp_path / "out", rows) == []


def test_the_one_text_of_few_values_is_a_label(tmp_path):
    rows = [{"v1": "ham" if n % 4 else "spam", "v2": f"text {n}"} for n in range(40)]
    assert labels_of(tmp_path / "out", rows) == ["v1"]


def test_two_texts_of_few_values_are_none(tmp_path):
    rows = [{"sex": "fm"[n % 2], "shirt": "sml"[n % 3], "n": n} for n in range(40)]
    assert labels_of(tmp_path / "out", rows) == []


def test_names_of_classes_come_from_the_metadata():
    assert class_names({"class_names": ["cat", "dog"]}) == {0: "cat", 1: "dog"}
    assert class_names({"vocabulary": ["cat"]}) == {}
    assert class_names({"class_names": None}) == {}
