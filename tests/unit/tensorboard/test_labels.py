"""Labels of every form in words."""

import numpy as np
import pytest

from datum.errors import SchemaError
from datum.tensorboard.records import ClassNames, count_names, describe_label, name_class

NAMES = ["cat", "dog", "cow"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.int64(1), "dog"),
        (np.array([2]), "cow"),
        (np.float32(1), "dog"),
        (np.float32(0.25), "0.25"),
        (np.uint8(9), "9"),
        (-1, "-1"),
        (b"a bird", "a bird"),
        ("\u732b", "\u732b"),
        (b"\xff", "\ufffd"),
        (np.array([0, 1, 0]), "dog"),
        (np.array([0.0, 0.0, 1.0]), "cow"),
        (np.array([True, False, True]), "cat, cow"),
        (np.array([0, 0, 0]), "none"),
        (np.array([0.9, 0.05, 0.05]), "cat 0.90, dog 0.05, cow 0.05"),
        (np.array([0.96, 0.02, 0.02]), "cat 0.96"),
        (np.array([2, 0]), "cow, cat"),
        (np.array([b"x", b"y"], object), "x, y"),
        (["x", "y"], "x, y"),
        (np.array(["x", "y"]), "x, y"),
        ([], "none"),
        (None, "no label"),
    ],
)
def test_labels_are_told_by_the_names_of_classes(value, words):
    assert describe_label(value, NAMES) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (7, "7"),
        (2**63, str(2**63)),
        (True, "true"),
        (np.bool_(False), "false"),
        (np.array([0, 1, 0, 0]), "1"),
        (np.array([1, 0]), "1, 0"),
        (np.array([12.5, -3.0]), "12.5, -3"),
        (np.float32("nan"), "nan"),
        (np.float32("inf"), "inf"),
        (np.array([np.nan, 0.5]), "nan, 0.5"),
        (np.zeros((2, 2)), "float64 of shape (2, 2)"),
        (10**400, "1" + "0" * 400),
        (np.array(["a", None], object), "a, None"),
    ],
)
def test_without_names_labels_are_numbers(value, words):
    assert describe_label(value) == words


def test_a_long_list_is_cut():
    assert describe_label(np.arange(5, 1000)) == "5, 6, 7, 8, 9, 10, 11, 12 and 987 more"
    assert describe_label(np.ones(20)).endswith(", 7 and 12 more")


def test_names_of_one_list_are_those_of_every_feature():
    names = ClassNames.read(NAMES)
    assert names.of("label") == names.of("mask") == NAMES
    assert ClassNames.read(None).of("label") is None
    assert ClassNames.read(np.array(["a", "b"])).of("label") == ["a", "b"]


def test_names_by_feature_are_found_and_so_is_the_metadata_of_a_dataset():
    metadata = {"label": {"class_names": NAMES}, "image": {"channels": [3, 3]}}
    for given in ({"label": NAMES}, metadata):
        names = ClassNames.read(given)
        assert names.of("label") == NAMES
        assert names.of("image") is None


def test_a_tuple_that_lost_the_name_gets_the_names_of_the_label():
    assert ClassNames.read({"breed": ["a"]}).of("targets") == ["a"]
    assert ClassNames.read({"label": ["a"], "mask": ["b"]}).of("targets") == ["a"]
    assert ClassNames.read({"one": ["a"], "two": ["b"]}).of("targets") is None


@pytest.mark.parametrize("given", ["cat", 5, {"label": "cat"}])
def test_names_that_are_no_list_are_told(given):
    with pytest.raises(SchemaError, match="`class_names.*: expected a list of names"):
        ClassNames.read(given)


def test_ids_start_at_zero_and_others_stay_numbers():
    assert [name_class(id, NAMES) for id in (-1, 0, 2, 3)] == ["-1", "cat", "cow", "3"]


def test_classes_are_counted_the_most_frequent_first():
    assert count_names(["b", "a", "b", "a", "c", "b"]) == "3 b, 2 a, 1 c"
