"""Every kind of image as bytes that can be seen."""

import io

import numpy as np
import pytest
from PIL import Image

from datum.images import ImageError
from datum.tensorboard.drawing import MAX_SIDE, NOT_FINITE, Pixels, Scale, fit_size, read_ids

RANDOM = np.random.default_rng(5)
PHOTO = RANDOM.integers(0, 256, (10, 12, 3)).astype(np.uint8)
PHOTO[0, 0], PHOTO[0, 1] = 0, 255
CAFFE_MEAN = [103.939, 116.779, 123.68]


def seen(*images):
    """The images as they are shown together."""
    pixels = [Pixels.of(image) for image in images]
    scale = Scale.of(pixels)
    return [scale.apply(one) for one in pixels]


def test_bytes_are_shown_as_they_are():
    assert np.array_equal(seen(PHOTO)[0], PHOTO)


def test_grey_gets_three_channels_with_or_without_its_own():
    grey = PHOTO[..., 0]
    for given in (grey, grey[..., None]):
        assert np.array_equal(seen(given)[0], np.stack([grey] * 3, axis=-1))


def test_transparency_is_kept():
    image = np.dstack([PHOTO, PHOTO[..., 0]])
    assert np.array_equal(seen(image)[0], image)


@pytest.mark.parametrize(
    "given",
    [
        PHOTO / 255,
        PHOTO / np.float32(127.5) - 1,
        PHOTO.astype(np.float64),
        PHOTO.astype(np.int32),
        PHOTO.astype(np.uint16) * 257,
        (PHOTO[..., ::-1] - np.array(CAFFE_MEAN)).astype(np.float32),
        (PHOTO / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225],
        (PHOTO.astype(np.float32) - 1000) * 7,
    ],
    ids=["0..1", "-1..1", "0..255", "int32", "uint16", "caffe", "torch", "anything"],
)
def test_normalised_images_look_like_the_original(given):
    assert np.abs(seen(given)[0].astype(int) - PHOTO).max() <= 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_shown(dtype):
    import ml_dtypes

    dtype = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    assert np.abs(seen((PHOTO / 255).astype(dtype))[0].astype(int) - PHOTO).max() <= 2


def test_bools_are_black_and_white():
    assert seen(np.eye(4, dtype=bool))[0][..., 0].tolist() == (np.eye(4) * 255).tolist()


def test_twelve_bits_of_sixteen_are_seen():
    image = np.array([[0, 4095]], np.uint16)
    assert seen(image)[0][..., 0].tolist() == [[0, 255]]


def test_negative_integers_are_stretched():
    assert seen(np.array([[-100, -40, 100]], np.int16))[0][0, :, 0].tolist() == [0, 76, 255]


def test_images_share_one_scale_so_that_a_dark_one_stays_dark():
    dark, light = seen(np.full((2, 2), 0.1), np.full((2, 2), 0.8))
    assert (dark[0, 0, 0], light[0, 0, 0]) == (26, 204)
    half, _ = seen(np.full((2, 2), 0.5), np.full((2, 2), -0.9))
    assert half[0, 0, 0] == 191


def test_augmentation_may_leave_the_range_a_little():
    assert seen(np.array([[-0.2, 0.5, 1.2]]))[0][0, :, 0].tolist() == [0, 128, 255]


def test_one_value_everywhere_is_no_division_by_zero():
    assert seen(np.full((2, 2), 1e30))[0].max() == 0
    assert seen(np.full((2, 2), 0.0))[0].max() == 0


def test_values_that_are_not_finite_are_marked_and_counted():
    image = np.full((4, 4, 3), 0.5)
    image[1, 2] = np.nan
    image[3, 0, 1] = np.inf
    pixels = Pixels.of(image)
    assert pixels.not_finite == 4
    shown = Scale.of([pixels]).apply(pixels)
    assert tuple(shown[1, 2]) == tuple(shown[3, 0]) == NOT_FINITE
    assert tuple(shown[0, 0]) == (128, 128, 128)


def test_an_image_of_nothing_finite_is_all_marked():
    shown = seen(np.full((3, 3), np.nan))[0]
    assert (shown == NOT_FINITE).all()
    assert (seen(np.array([[1e300]]))[0] == NOT_FINITE).all()


def test_a_single_nan_is_still_seen_in_a_large_image():
    image = np.zeros((2000, 2000), np.float32)
    image[777, 888] = np.nan
    assert (seen(image)[0] == NOT_FINITE).all(-1).any()


def test_large_images_are_made_smaller_at_once():
    pixels = Pixels.of(np.full((1000, 2000, 3), 9, np.uint8))
    assert pixels.values.shape == (256, MAX_SIDE, 3)
    assert pixels.size == (1000, 2000)
    assert (pixels.values == 9).all()
    assert Pixels.of(np.zeros((2000, 1))).values.shape == (MAX_SIDE, 1, 1)


def test_encoded_images_are_decoded():
    file = io.BytesIO()
    Image.fromarray(PHOTO).save(file, "png")
    assert np.array_equal(Pixels.of(file.getvalue()).values, PHOTO)


def test_the_given_array_is_left_as_it_is():
    image = np.full((3, 3), np.nan, np.float32)
    seen(image)
    assert np.isnan(image).all()


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 4, 2)),
        np.zeros((0, 4, 3)),
        np.zeros(4),
        np.zeros((1, 4, 4, 3)),
        np.zeros((4, 4, 3), complex),
        np.full((4, 4, 3), "a"),
        b"not an image",
    ],
)
def test_what_is_no_image_is_told(image):
    with pytest.raises(ImageError, match="expected a"):
        Pixels.of(image)


@pytest.mark.parametrize(
    ("size", "side", "shown"),
    [
        ((8, 8), 512, (256, 256)),
        ((28, 14), 512, (252, 126)),
        ((129, 129), 512, (129, 129)),
        ((8, 8), 96, (96, 96)),
        ((512, 100), 512, (512, 100)),
        ((1024, 100), 512, (512, 50)),
        ((100000, 1), 512, (512, 1)),
    ],
)
def test_small_images_grow_by_whole_numbers_and_large_ones_shrink(size, side, shown):
    assert fit_size(size, side) == shown


def test_masks_become_ids():
    ids = np.array([[0, 1], [255, 7]], np.uint8)
    for given in (ids, ids[..., None], ids.astype(np.float32) + 0.2, ids.astype(np.int64)):
        assert read_ids(given).tolist() == ids.tolist()
    assert read_ids(np.eye(2, dtype=bool)).tolist() == [[1, 0], [0, 1]]
    assert read_ids(np.array([[np.nan, np.inf]])).tolist() == [[0, 2**53]]
    assert read_ids(np.array([[3, -1]], np.float16)).tolist() == [[3, -1]]


def test_the_ids_of_a_palette_are_kept():
    image = Image.fromarray(np.array([[0, 2]], np.uint8))
    image.putpalette([9, 9, 9, 8, 8, 8, 7, 7, 7])
    file = io.BytesIO()
    image.save(file, "png")
    assert read_ids(file.getvalue()).tolist() == [[0, 2]]


@pytest.mark.parametrize("mask", [np.zeros((2, 2, 3)), np.zeros(4), np.zeros((0, 2))])
def test_what_is_no_mask_is_told(mask):
    with pytest.raises(ImageError, match="expected a mask"):
        read_ids(mask)
