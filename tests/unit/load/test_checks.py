"""What is refused of an option, and in which words."""

import numpy as np
import pytest

from datum._load.checks import check_function, check_known
from datum._options import check_choice, check_count, check_kind


def test_a_known_name_passes():
    check_known("columns", ["a"], ["a", "b"])


def test_an_unknown_name_is_told_with_the_nearest():
    with pytest.raises(ValueError, match="`columns`.*got 'lable'\nhint: did you mean 'label'\\?"):
        check_known("columns", ["lable"], ["image", "label"])


def test_a_name_near_to_none_is_told_with_all():
    with pytest.raises(ValueError, match="got 'zzz'\nhint: there are image, label"):
        check_known("columns", ["zzz"], ["image", "label"])


def test_names_that_are_no_text_are_unknown():
    with pytest.raises(ValueError, match="got 3\n"):
        check_known("columns", [3], ["image"])


@pytest.mark.parametrize("value", [1, 5, np.int64(3)])
def test_whole_numbers_pass(value):
    number = check_count("batch_size", value, least=1)
    assert type(number) is int
    assert number == value


@pytest.mark.parametrize("value", [0, -1, True])
def test_numbers_that_are_too_small_are_refused(value):
    with pytest.raises(ValueError, match="expected `batch_size` of 1 or more, got"):
        check_count("batch_size", value, least=1)


@pytest.mark.parametrize("value", [1.0, "1", None, [1]])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(TypeError, match="expected `batch_size` to be a whole number, got"):
        check_count("batch_size", value, least=1)


def test_a_hint_comes_with_the_message():
    with pytest.raises(ValueError, match="got 0\nhint: more"):
        check_count("epochs", 0, least=1, hint="more")


def test_choices_are_told():
    check_choice("on_error", "skip", ("raise", "skip"))
    with pytest.raises(ValueError, match="expected `on_error` to be 'raise' or 'skip', got 'x'"):
        check_choice("on_error", "x", ("raise", "skip"))


def test_another_type_is_refused():
    check_kind("cache", True, bool, "True or False")
    with pytest.raises(TypeError, match="expected `cache` to be True or False, got 'yes'"):
        check_kind("cache", "yes", bool, "True or False")


def test_only_what_can_be_called_is_a_function():
    check_function("map", None)
    check_function("map", len)
    with pytest.raises(TypeError, match="expected `map` to be a function, got 3"):
        check_function("map", 3)
