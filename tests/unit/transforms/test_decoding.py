"""Image files decoded in a graph."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import datum
from datum import Feature
from datum.images import ImageError, decode
from datum.transforms import decode_image
from datum.transforms.decoding import (
    Wanted,
    decode_any,
    decode_bmp,
    decode_gif,
    decode_jpeg,
    decode_other,
    decode_png,
    decode_simple_png,
    decode_webp,
    is_jpeg,
    is_simple_png,
)
from tests.unit.images.samples import encoded, palette_image, pixels
from tests.unit.transforms.pictures import (
    animation,
    ids_png,
    in_graph,
    photo,
    png_images,
    webp_images,
)


@pytest.mark.parametrize("name", ["BMP", "PNG", "WEBP"])
def test_the_format_is_told_by_the_content(name):
    array = pixels(9, 7)
    data = encoded(array, name, **({"lossless": True} if name == "WEBP" else {}))
    found = in_graph(decode_image())(data)
    np.testing.assert_array_equal(found, array)


def test_exact_is_for_jpeg():
    data = photo()
    exact, fast = (decode_image(exact=is_exact)(data).numpy() for is_exact in (True, False))
    feature = datum.Feature("uint8", (None, None, 3), encoding="image")
    np.testing.assert_array_equal(exact, datum.images.decode(data, feature))
    assert not np.array_equal(exact, fast)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_the_shape_is_known_as_far_as_it_can_be(channels):
    dataset = tf.data.Dataset.from_tensors(photo()).map(decode_image(channels))
    assert dataset.element_spec == tf.TensorSpec([None, None, channels], tf.uint8)


def test_no_bytes_give_an_image_without_pixels():
    assert in_graph(decode_image(4))(b"").shape == (0, 0, 4)
    fixed = decode_any(b"", Wanted(3), shape=(5, 6, 3))
    np.testing.assert_array_equal(fixed, np.zeros((5, 6, 3), np.uint8))


@pytest.mark.parametrize("data", [b"", b"x", b"RIFF", b"II*\0 a TIFF", b"<svg/>" * 20])
def test_what_is_no_image_is_an_error_within_the_graph(data):
    with pytest.raises(tf.errors.InvalidArgumentError):
        in_graph(lambda data: decode_other(data, Wanted()))(data)


def test_a_tiff_is_named_in_the_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="TIFF"):
        in_graph(decode_image())(encoded(pixels(3, 4), "TIFF"))


def test_functions_of_others_find_nothing_to_rewrite():
    calls = []

    def prepare(data):
        image = decode_image()(data)
        calls.append(image)
        if tf.shape(image)[0] > 50:  # AutoGraph makes a graph of this
            image = image[:50]
        return image

    dataset = tf.data.Dataset.from_tensors(photo(60, 80)).map(prepare)
    assert next(iter(dataset)).shape == (50, 80, 3)
    assert len(calls) == 1


@pytest.mark.parametrize("channels", [0, 2, "3"])
def test_other_channels_are_refused_at_once(channels):
    with pytest.raises(datum.SchemaError, match="`channels` of 1, 3, 4 or None"):
        decode_image(channels)


CHANNELS = [1, 3, 4, None]


def expected(data, channels):
    return decode(data, Feature("uint8", (None, None, channels), encoding="image"))


def decoder(function, channels, **options):
    return in_graph(lambda data: function(data, Wanted(channels, **options)))


def test_a_jpeg_is_told_by_its_first_bytes():
    assert is_jpeg(photo())
    assert not is_jpeg(b"")
    assert not is_jpeg(encoded(pixels(3, 3), "PNG"))


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("settings", [{}, {"progressive": True}, {"subsampling": 0}])
def test_an_exact_jpeg_is_pillows_to_the_last_bit(channels, settings):
    data = photo(**settings)
    found = decoder(decode_jpeg, channels, exact=True)(data)
    np.testing.assert_array_equal(found, expected(data, channels))


@pytest.mark.parametrize("channels", CHANNELS)
def test_a_grey_jpeg_is_pillows_too(channels):
    data = encoded(Image.fromarray(pixels(40, 50)).convert("L"), "JPEG")
    found = decoder(decode_jpeg, channels, exact=True)(data)
    np.testing.assert_array_equal(found, expected(data, channels))


def test_the_fast_way_to_decode_a_jpeg_differs_slightly():
    data = photo()
    found = decoder(decode_jpeg, 3)(data).numpy().astype(int)
    assert 0 < np.abs(found - expected(data, 3)).mean() < 2


def test_a_cmyk_jpeg_differs_by_one_at_most():
    data = encoded(Image.fromarray(pixels(40, 50)).convert("CMYK"), "JPEG")
    found = decoder(decode_jpeg, 3, exact=True)(data).numpy().astype(int)
    assert np.abs(found - expected(data, 3)).max() <= 1


def test_a_window_of_a_jpeg_is_that_part_of_it():
    data = photo(64, 96, subsampling=0)
    part = decode_jpeg(data, Wanted(3, exact=True), window=[16, 24, 32, 40])
    np.testing.assert_array_equal(part, expected(data, 3)[16:48, 24:64])


@pytest.mark.parametrize("ratio", [2, 4, 8])
def test_a_window_of_a_shrunk_jpeg_counts_in_its_own_pixels(ratio):
    data = photo(256, 320, subsampling=0)
    window = [8, 4, 20, 12]
    part = decode_jpeg(data, Wanted(3, exact=True), window=window, ratio=ratio).numpy()
    whole = expected(data, 3).reshape(256 // ratio, ratio, 320 // ratio, ratio, 3).mean((1, 3))
    assert part.shape == (20, 12, 3)
    # Red and green rise evenly: their averages tell where a pixel comes from.
    assert np.abs(part[..., :2] - whole[8:28, 4:16, :2]).max() < 3


@pytest.mark.parametrize("channels", CHANNELS)
def test_every_kind_of_webp_decodes_as_pillow_decodes_it(channels):
    found = decoder(decode_webp, channels)
    for name, data in webp_images().items():
        np.testing.assert_array_equal(found(data), expected(data, channels), err_msg=name)


def test_animations_without_transparency_do_no_harm_however_often():
    found = decoder(decode_webp, 3)
    data = animation("WEBP", 3)
    for _ in range(50):
        np.testing.assert_array_equal(found(data), expected(data, 3))


@pytest.mark.parametrize("kept", [12, 15, 20, 24, 30])
def test_a_webp_that_is_cut_off_is_an_error_that_can_be_shown(kept):
    for data in webp_images().values():
        with pytest.raises(tf.errors.InvalidArgumentError):
            decoder(decode_webp, 3)(data[:kept])


@pytest.mark.parametrize("channels", [3, 4])
def test_an_opaque_gif_gives_its_first_frame(channels):
    for data in (encoded(palette_image(pixels(9, 7, 1)), "GIF"), encoded(pixels(9, 7), "GIF")):
        found = decoder(decode_gif, channels)(data)
        np.testing.assert_array_equal(found, expected(data, channels))
    found = decoder(decode_gif, 3)(animation("GIF", 3))
    np.testing.assert_array_equal(found, expected(animation("GIF", 3), 3))


def test_what_tensorflow_does_not_tell_of_a_gif_is_refused():
    plain = encoded(palette_image(pixels(9, 7, 1)), "GIF")
    with pytest.raises(tf.errors.InvalidArgumentError, match="grey values or ids, got a GIF"):
        decoder(decode_gif, 1)(plain)
    clear = encoded(Image.fromarray(pixels(9, 7, 4)), "GIF")
    for channels in (4, None):
        with pytest.raises(tf.errors.InvalidArgumentError, match="opaque"):
            decoder(decode_gif, channels)(clear)
    wider = plain[:6] + b"\x09" + plain[7:]
    with pytest.raises(tf.errors.InvalidArgumentError, match="first frame fills it"):
        decoder(decode_gif, 3)(wider)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("mode", ["L", "P", "RGB", "RGBA"])
def test_a_bmp_decodes_as_pillow_decodes_it(mode, channels):
    image = Image.fromarray(pixels(9, 7, 4)).convert(mode)
    if mode == "P":
        image = palette_image(pixels(9, 7, 1))
    data = encoded(image, "BMP")
    found = decoder(decode_bmp, channels)(data)
    np.testing.assert_array_equal(found, expected(data, channels))


def test_other_kinds_of_bmp_are_refused():
    plain = encoded(pixels(9, 7), "BMP")
    for changed in (plain[:28] + b"\x10" + plain[29:], plain[:30] + b"\x03" + plain[31:]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="BMP of 8, 24 or 32 bits"):
            decoder(decode_bmp, 3)(changed)
    far = encoded(palette_image(pixels(9, 7, 1)), "BMP")
    for size in (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff"):
        with pytest.raises(tf.errors.InvalidArgumentError):
            decoder(decode_bmp, 3)(far[:14] + size + far[18:])


IMAGES = png_images()


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("channels", [1, 3, 4, None])
def test_all_kinds_decode_as_pillow_decodes_them_or_are_refused_alike(channels, dtype):
    feature = Feature(dtype, (None, None, channels), encoding="image")
    found = in_graph(lambda data: decode_png(data, Wanted(channels, dtype)))
    for name, data in IMAGES.items():
        try:
            expected = decode(data, feature)
        except ImageError:
            with pytest.raises(tf.errors.InvalidArgumentError, match="expected"):
                found(data)
            continue
        np.testing.assert_array_equal(found(data), expected, err_msg=name)
        assert found(data).dtype == dtype


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_those_that_are_simple_decode_alike_without_a_look_at_their_header(channels):
    wanted = Wanted(channels)
    simple = {name for name, data in IMAGES.items() if is_simple_png(data, wanted)}
    assert {"L", "LA"} <= simple
    assert not any("16" in name or "of 4 bits" in name for name in simple)
    assert ("RGB" in simple) == (channels > 1)
    for name in simple:
        expected = decode_png(IMAGES[name], wanted)
        np.testing.assert_array_equal(decode_simple_png(IMAGES[name], wanted), expected)


def test_ids_survive_whatever_the_palette_says_of_transparency():
    for settings in ({}, {"transparency": 1}, {"transparency": b"\0\1"}):
        data = ids_png(8, **settings)
        found = in_graph(lambda data: decode_png(data, Wanted(1)))(data)
        feature = Feature("uint8", (None, None, 1), encoding="image")
        np.testing.assert_array_equal(found, decode(data, feature))


@pytest.mark.parametrize("kept", [8, 24, 26, 33, 60])
def test_a_png_that_is_cut_off_is_an_error_that_can_be_shown(kept):
    for channels in (1, 3, 4, None):
        found = in_graph(lambda data, n=channels: decode_png(data, Wanted(n)))
        with pytest.raises(tf.errors.InvalidArgumentError):
            found(ids_png(8)[:kept])
