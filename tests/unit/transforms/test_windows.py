"""Random and central windows, decoded and resized at once."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import datum
from datum.transforms import center_crop, random_crop
from tests.unit.images.samples import encoded
from tests.unit.transforms.pictures import in_graph, photo

DRAWS = 400


def slopes(height, width) -> np.ndarray:
    """An image whose red tells the column, in 0 to 250, and whose green tells the row."""
    rows, columns = np.mgrid[0:height, 0:width]
    parts = [columns * 250 / (width - 1), rows * 250 / (height - 1), 0 * rows]
    return np.stack(parts, -1).round().astype(np.uint8)


def windows_of(images: np.ndarray) -> np.ndarray:
    """Left, right, top and bottom of the windows that images show, in 0 to 1; flips swap sides."""
    middle = images.shape[1] // 2
    red, green = images[:, middle, :, 0] / 250, images[:, :, middle, 1] / 250
    # The first and last pixel show the middle of what they cover: half a pixel inside.
    steps = [(line[:, -1] - line[:, 0]) / (line.shape[1] - 1) / 2 for line in (red, green)]
    ends = [
        end
        for line, step in zip((red, green), steps, strict=True)
        for end in (line[:, 0] - step, line[:, -1] + step)
    ]
    return np.stack(ends, axis=1)


def drawn(function, data, count=DRAWS) -> np.ndarray:
    dataset = tf.data.Dataset.from_tensors(data).repeat(count).map(function).batch(count)
    return next(iter(dataset)).numpy()


@pytest.mark.parametrize("name", ["JPEG", "PNG"])
def test_windows_lie_within_the_image_and_the_limits(name):
    settings = {"quality": 100, "subsampling": 0} if name == "JPEG" else {}
    data = encoded(slopes(300, 400), name, **settings)
    function = random_crop(20, 20, area=(0.2, 0.5), ratio=(0.5, 2.0), flip=False)
    left, right, top, bottom = windows_of(drawn(function, data)).T
    assert min(left.min(), top.min()) > -0.02
    assert max(right.max(), bottom.max()) < 1.02
    area = (right - left) * (bottom - top)
    ratio = (right - left) * 400 / ((bottom - top) * 300)
    assert 0.17 < area.min() < 0.25
    assert 0.4 < area.max() < 0.54
    assert 0.45 < ratio.min() < 0.7
    assert 1.5 < ratio.max() < 2.2
    # Every part of the image is shown.
    assert min(left.min(), top.min()) < 0.05
    assert max(right.max(), bottom.max()) > 0.95


def test_half_of_the_windows_are_mirrored():
    data = encoded(slopes(60, 80), "PNG")
    left, right, top, bottom = windows_of(drawn(random_crop(16, 16), data)).T
    assert 0.4 < np.mean(right < left) < 0.6
    assert (top < bottom).all()
    left, right, *_ = windows_of(drawn(random_crop(16, 16, flip=False), data)).T
    assert (left < right).all()


def test_flips_do_not_depend_on_the_window():
    data = encoded(slopes(60, 80), "PNG")
    left, right, top, bottom = windows_of(drawn(random_crop(16, 16), data)).T
    is_flipped = right < left
    for fact in (np.abs(right - left), bottom - top, np.minimum(left, right), top):
        assert abs(np.corrcoef(is_flipped, fact)[0, 1]) < 0.15


def test_a_seed_gives_the_same_sequence_and_another_seed_another():
    data = photo()
    first, again = (drawn(random_crop(8, 8, seed=3), data, 20) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, drawn(random_crop(8, 8, seed=4), data, 20))
    assert not np.array_equal(first[0], first[1])


@pytest.mark.parametrize("seed", [None, 7])
def test_without_a_seed_each_iteration_is_another_and_with_one_the_same(seed):
    tf.random.set_seed(None)  # a seed of the whole program would make each iteration the same
    crop = random_crop(8, 8, seed=seed)
    dataset = tf.data.Dataset.from_tensors(photo()).repeat(10).map(crop).batch(10)
    first, second = (next(iter(dataset)).numpy() for _ in range(2))
    assert np.array_equal(first, second) == (seed is not None)


def test_given_numbers_decide_all_however_many_calls_run_at_once():
    crop = random_crop(8, 8)
    assert crop.takes_seed
    data = photo()
    numbers = tf.data.Dataset.range(50).map(lambda i: tf.stack([i, 0]))
    runs = [
        list(numbers.map(lambda n: crop(data, seed=n), calls).as_numpy_iterator())
        for calls in (1, 4)
    ]
    np.testing.assert_array_equal(*runs)
    assert len({image.tobytes() for image in runs[0]}) > 45


def test_with_given_numbers_the_position_of_an_iterator_can_be_saved(tmp_path):
    crop = random_crop(8, 8)
    numbers = tf.data.Dataset.random(seed=1).batch(2)
    iterator = iter(numbers.map(lambda pair: crop(photo(), seed=pair)))
    next(iterator)
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    path = checkpoint.write(str(tmp_path / "saved"))
    expected = next(iterator)
    checkpoint.read(path)
    np.testing.assert_array_equal(next(iterator), expected)


def test_a_window_is_what_decoding_all_and_cutting_it_out_gives():
    data = photo(120, 160, subsampling=0)
    image = tf.io.decode_jpeg(data)[7:113, 27:133]  # the central 106 of 120
    expected = tf.round(tf.image.resize(image, (64, 64)))
    found = center_crop(64, 64, fraction=106 / 120)(data)
    assert found.dtype == tf.uint8
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("target", [(100, 100), (60, 60), (33, 40), (20, 10)])
def test_large_windows_are_shrunk_while_they_are_decoded_and_stay_in_place(target):
    image = slopes(480, 640)
    data = encoded(image, "JPEG", quality=100, subsampling=0)
    height, width = target
    scale = min(480 / height, 640 / width)
    box_height, box_width = round(scale * height), round(scale * width)
    top, left = (480 - box_height) // 2, (640 - box_width) // 2
    box = (left, top, left + box_width, top + box_height)
    expected = Image.fromarray(image).resize((width, height), Image.Resampling.BOX, box)
    found = center_crop(height, width, fraction=1.0)(data).numpy().astype(int)
    inner = np.s_[1:-1, 1:-1]  # borders are averaged with what lies outside, or not
    assert np.abs(found - np.asarray(expected))[inner].max() <= 4


def test_other_formats_and_absent_images_are_cropped_too():
    for data in (encoded(slopes(60, 80), "PNG"), encoded(slopes(60, 80), "WEBP"), photo()):
        for function in (random_crop(16, 24), center_crop(16, 24)):
            dataset = tf.data.Dataset.from_tensors(data).map(function)
            assert dataset.element_spec == tf.TensorSpec([16, 24, 3], tf.uint8)
            assert next(iter(dataset)).numpy().max() > 0
    assert in_graph(center_crop(5, 6))(b"").numpy().max() == 0
    assert tf.function(random_crop(5, 6))(tf.constant(b"")).shape == (5, 6, 3)


def test_tiny_and_narrow_images_are_cropped():
    for height, width in ((1, 1), (1, 50), (50, 1), (2, 3)):
        data = encoded(np.full((height, width, 3), 77, np.uint8), "PNG")
        for function in (random_crop(8, 8), center_crop(8, 8)):
            np.testing.assert_array_equal(function(data), np.full((8, 8, 3), 77))


def test_grey_and_cmyk_photos_become_colours():
    for mode in ("L", "CMYK"):
        data = encoded(Image.fromarray(slopes(60, 80)).convert(mode), "JPEG")
        assert random_crop(16, 16)(data).shape == (16, 16, 3)


def test_damaged_images_are_an_error():
    for function in (random_crop(16, 16), center_crop(16, 16)):
        for data in (photo()[:200], b"\xff\xd8\xff", b"no image"):
            with pytest.raises(tf.errors.InvalidArgumentError):
                function(data)


def test_options_are_checked_at_once():
    for options in ({"area": (0, 1)}, {"area": (0.5, 1.1)}, {"area": 0.5}, {"ratio": (2, 1)}):
        with pytest.raises(datum.SchemaError, match="two limits above 0"):
            random_crop(8, 8, **options)
    with pytest.raises(datum.SchemaError, match="`width` as a number of pixels"):
        random_crop(8, None)
    with pytest.raises(datum.SchemaError, match="`fraction` above 0"):
        center_crop(8, 8, fraction=87.5)
