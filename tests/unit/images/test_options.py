"""What may be asked for images."""

import pytest

from datum.images import ImageError, ImageOptions


def test_nothing_is_changed_by_default():
    assert not ImageOptions().changes_bytes
    assert not ImageOptions(verify=True).changes_bytes


@pytest.mark.parametrize("option", [{"max_side": 8}, {"quality": 90}, {"format": "png"}])
def test_options_that_change_images_say_so(option):
    assert ImageOptions(**option).changes_bytes


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "8", 2**31])
def test_a_side_is_a_positive_integer(value):
    with pytest.raises(ImageError, match="expected `max_side` to be an integer of 1 to 2147483647"):
        ImageOptions(max_side=value)


@pytest.mark.parametrize("value", [0, 101, 95.0])
def test_a_quality_is_1_to_100(value):
    with pytest.raises(ImageError, match="expected `quality` to be an integer of 1 to 100"):
        ImageOptions(quality=value)


def test_a_misspelt_format_names_the_nearest():
    with pytest.raises(ImageError, match="got 'JPG'\nhint: did you mean 'jpeg'"):
        ImageOptions(format="JPG")
    with pytest.raises(ImageError, match="expected `format` jpeg, png or webp, got 'tiff'$"):
        ImageOptions(format="tiff")
