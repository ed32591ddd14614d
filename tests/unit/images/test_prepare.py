"""Images as they are stored."""

import io
import os

import numpy as np
import pytest
from PIL import Image

from datum import Feature
from datum.images import (
    ImageError,
    ImageHeader,
    ImageOptions,
    decode,
    decode_pixels,
    prepare,
)
from datum.images.header import parse_header
from tests.unit.images.samples import (
    encoded,
    palette,
    palette_image,
    pixels,
    png_of_16_bits,
    save,
    tiff_of_16_bits,
)

OPEN = Feature("uint8", (None, None, None), encoding="image")
MASK = Feature("uint8", (None, None, 1), encoding="image")
COLOUR = Feature("uint8", (None, None, 3), encoding="image")


def opened(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize("name", ["BMP", "GIF", "JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("feature", [None, OPEN, COLOUR])
def test_encoded_bytes_are_kept_as_they_are(name, feature):
    data = encoded(pixels(20, 30), name)
    for value in (data, bytearray(data), memoryview(data)):
        prepared = prepare(value, feature)
        assert prepared.data == data
        assert prepared.header.format == name.lower()


def test_a_path_is_read(tmp_path):
    path = save(tmp_path / "a.jpg", pixels(20, 30))
    assert prepare(path).data == path.read_bytes()


def test_a_misnamed_file_is_what_it_holds(tmp_path):
    path = save(tmp_path / "a.jpg", pixels(20, 30), "PNG")
    assert prepare(path).header.format == "png"


def test_errors_name_the_file(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"a\.jpg: expected a JPEG, PNG"):
        prepare(tmp_path / "a.jpg")
    with pytest.raises(ImageError, match=r"gone\.jpg: expected a file"):
        prepare(tmp_path / "gone.jpg")


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.jpg")
    with pytest.raises(ImageError, match="got a pipe"):
        prepare(tmp_path / "a.jpg")


@pytest.mark.parametrize(
    "array",
    [
        pixels(7, 5, 1),
        pixels(7, 5, 1)[..., None],
        pixels(7, 5, 3),
        pixels(7, 5, 4),
        pixels(7, 5, 1, dtype=np.uint16, most=65535),
        pixels(14, 10, 3)[::2, ::-2],
    ],
    ids=["grey", "one channel", "rgb", "rgba", "16 bits", "not contiguous"],
)
def test_arrays_become_png_and_come_back(array):
    prepared = prepare(array)
    assert prepared.header.format == "png"
    channels = prepared.header.channels
    feature = Feature(array.dtype, (None, None, channels), encoding="image")
    np.testing.assert_array_equal(decode(prepared.data, feature), array.reshape(7, 5, channels))
    assert prepare(array.copy()).data == prepared.data


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 3, 2), np.uint8),
        np.zeros((3, 3), np.float32),
        np.zeros((3, 3), np.int64),
        np.zeros((3, 3, 2), np.uint16),
        np.zeros((0, 3), np.uint8),
        np.zeros(3, np.uint8),
        np.zeros((2, 3, 3, 3), np.uint8),
        np.zeros((3, 3), bool),
    ],
)
def test_other_arrays_are_refused_with_what_to_do(array):
    with pytest.raises(ImageError, match=r"expected an array of uint8.*\n?.*encoding='raw'"):
        prepare(array)


@pytest.mark.parametrize("value", [None, 3, "a.jpg", [1, 2], object()])
def test_what_is_no_image_is_refused(value):
    with pytest.raises(ImageError, match="expected an image as a path, bytes, an array"):
        prepare(value)


def test_pillow_images_are_stored_exactly():
    array = pixels(7, 5, 3)
    prepared = prepare(Image.fromarray(array))
    np.testing.assert_array_equal(decode(prepared.data, COLOUR), array)
    ids = pixels(7, 5, 1, most=9)
    prepared = prepare(palette_image(ids))
    np.testing.assert_array_equal(decode(prepared.data, MASK)[..., 0], ids)


@pytest.mark.parametrize("mode", ["1", "CMYK", "HSV", "I;16", "L", "LA", "P", "RGBA", "YCbCr"])
def test_pillow_images_of_every_mode_are_taken(mode):
    image = Image.fromarray(pixels(7, 5, 3))
    image = image.convert("I").convert("I;16") if mode == "I;16" else image.convert(mode)
    before = image.tobytes()
    for options in (ImageOptions(), ImageOptions(max_side=4)):
        assert prepare(image, OPEN, options).header.format == "png"
    assert image.tobytes() == before


@pytest.mark.parametrize("mode", ["F", "I", "LAB"])
def test_pillow_images_that_cannot_be_kept_exactly_are_refused(mode):
    with pytest.raises(ImageError, match=f"got mode '{mode}'\nhint: convert it"):
        prepare(Image.new(mode, (5, 5)))


def test_a_pillow_image_of_16_bit_colours_is_refused():
    image = Image.open(io.BytesIO(png_of_16_bits(pixels(5, 5, dtype=np.uint16))))
    with pytest.raises(ImageError, match="pass the path of its file"):
        prepare(image)


def test_a_pillow_image_that_is_cut_off_is_refused():
    image = Image.open(io.BytesIO(encoded(pixels(50, 50), "PNG")[:2000]))
    with pytest.raises(ImageError, match="expected a whole image, got a damaged one"):
        prepare(image)


def test_an_array_can_be_stored_as_jpeg_or_webp():
    for name in ("jpeg", "webp"):
        prepared = prepare(pixels(20, 30), None, ImageOptions(format=name))
        assert (prepared.header.format, prepared.header.width) == (name, 30)
    low = prepare(pixels(20, 30), None, ImageOptions(format="jpeg", quality=10))
    high = prepare(pixels(20, 30), None, ImageOptions(format="jpeg"))
    assert len(low.data) < len(high.data)


@pytest.mark.parametrize("name", ["BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("feature", [OPEN, COLOUR])
def test_a_large_image_is_shrunk_in_its_own_format(name, feature):
    stored = name.lower() if name in ("JPEG", "WEBP") else "png"
    data = encoded(pixels(40, 60), name)
    prepared = prepare(data, feature, ImageOptions(max_side=30))
    assert prepared.header.format == stored
    assert (prepared.header.height, prepared.header.width) == (20, 30)
    assert not prepared.header.has_palette
    unchanged = prepare(data, feature, ImageOptions(max_side=60))
    assert unchanged == prepare(data, feature)


@pytest.mark.parametrize(("size", "expected"), [((1000, 3), (30, 1)), ((45, 60), (23, 30))])
def test_sides_are_rounded_and_never_vanish(size, expected):
    data = encoded(pixels(*size), "PNG")
    header = prepare(data, OPEN, ImageOptions(max_side=30)).header
    assert (header.height, header.width) == expected


@pytest.mark.parametrize("size", [(333, 500), (101, 77), (64, 65), (299, 1)])
def test_an_image_and_its_mask_shrink_to_one_size(size):
    options = ImageOptions(max_side=50)
    image = prepare(encoded(pixels(*size), "JPEG"), OPEN, options).header
    mask = prepare(encoded(pixels(*size, 1), "PNG"), MASK, options).header
    assert (image.height, image.width) == (mask.height, mask.width)


@pytest.mark.parametrize("feature", [MASK, None])
def test_a_shrunk_mask_keeps_its_ids(feature):
    ids = np.repeat(np.repeat(pixels(10, 15, 1, most=20), 4, axis=0), 4, axis=1)
    data = encoded(palette_image(ids), "PNG")
    prepared = prepare(data, feature, ImageOptions(max_side=15))
    np.testing.assert_array_equal(decode(prepared.data, MASK)[..., 0], ids[2::4, 2::4])
    if feature is None:
        assert opened(prepared.data).getpalette()[:60] == palette()[:60]


@pytest.mark.parametrize("name", ["BMP", "GIF", "PNG"])
@pytest.mark.parametrize("most", [3, 255])
def test_the_ids_of_a_palette_are_stored_as_grey_where_ids_are_meant(name, most):
    ids = pixels(10, 10, 1, most=most)
    image = palette_image(ids)
    for value in (encoded(image, name), image):
        prepared = prepare(value, MASK)
        assert prepared.header == ImageHeader("png", 10, 10, 1)
        # Pillow numbers the colours of a GIF anew.
        stored = np.asarray(opened(value)) if isinstance(value, bytes) else ids
        np.testing.assert_array_equal(np.asarray(opened(prepared.data)), stored)
        assert prepare(value, OPEN).header.has_palette


@pytest.mark.parametrize("feature", [MASK, None])
@pytest.mark.parametrize("name", ["jpeg", "webp"])
def test_what_may_be_ids_is_never_stored_with_loss(feature, name):
    options = ImageOptions(format=name, quality=50)
    ids = pixels(10, 10, 1, most=5)
    data = encoded(palette_image(ids), "PNG")
    assert prepare(data, feature, options).data == prepare(data, feature).data
    assert prepare(ids, feature, options).header.format == "png"
    as_bmp = encoded(palette_image(ids), "BMP")
    prepared = prepare(as_bmp, feature, options)
    assert prepared.header.format == "png"
    np.testing.assert_array_equal(decode(prepared.data, MASK)[..., 0], ids)


def test_grey_photos_of_an_open_feature_may_lose():
    data = encoded(pixels(10, 10, 1), "PNG")
    assert prepare(data, OPEN, ImageOptions(format="jpeg")).header.format == "jpeg"
    assert prepare(encoded(pixels(10, 10, 1), "JPEG"), MASK, ImageOptions(quality=20)).header == (
        prepare(encoded(pixels(10, 10, 1), "JPEG")).header
    )


def test_16_bits_are_shrunk_without_mixing():
    array = pixels(20, 20, 1, dtype=np.uint16, most=65535)
    for name in ("PNG", "TIFF"):
        prepared = prepare(encoded(array, name), OPEN, ImageOptions(max_side=10))
        assert prepared.header.dtype == "uint16"
        feature = Feature("uint16", (None, None, 1), encoding="image")
        assert set(decode(prepared.data, feature).ravel()) <= set(array.ravel())
    colours = png_of_16_bits(pixels(20, 20, dtype=np.uint16))
    with pytest.raises(ImageError, match="expected 8-bit colour to shrink"):
        prepare(colours, OPEN, ImageOptions(max_side=10))
    assert prepare(colours, OPEN).data == colours


@pytest.mark.parametrize("name", ["JPEG", "WEBP"])
def test_quality_makes_jpeg_and_webp_anew(name):
    data = encoded(pixels(40, 60), name, quality=95)
    prepared = prepare(data, OPEN, ImageOptions(quality=30))
    assert len(prepared.data) < len(data)
    assert prepared.header.format == name.lower()


def test_quality_leaves_png_alone():
    data = encoded(pixels(40, 60), "PNG")
    assert prepare(data, OPEN, ImageOptions(quality=30)).data == data


@pytest.mark.parametrize("stored", ["jpeg", "png", "webp"])
def test_all_images_can_be_made_one_format(stored):
    for name in ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP"):
        data = encoded(pixels(20, 30), name)
        prepared = prepare(data, OPEN, ImageOptions(format=stored))
        assert prepared.header.format == stored
        if name.lower() == stored:
            assert prepared.data == data


def test_jpeg_drops_transparency_and_converts_cmyk():
    options = ImageOptions(format="jpeg")
    assert prepare(encoded(pixels(8, 8, 4), "PNG"), OPEN, options).header.channels == 3
    cmyk = encoded(Image.fromarray(pixels(8, 8)).convert("CMYK"), "JPEG")
    prepared = prepare(cmyk, OPEN, ImageOptions(quality=90))
    assert opened(prepared.data).mode == "RGB"


@pytest.mark.parametrize("stored", ["jpeg", "png", "webp"])
def test_the_orientation_stays_beside_the_pixels(stored):
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "maker"
    data = encoded(pixels(40, 60), "JPEG", exif=exif)
    prepared = prepare(data, OPEN, ImageOptions(max_side=30, format=stored))
    assert (prepared.header.height, prepared.header.width) == (20, 30)
    assert dict(opened(prepared.data).getexif()) == {0x0112: 6}


def test_profiles_and_comments_are_dropped_from_what_is_made_anew():
    data = encoded(pixels(40, 60), "PNG", icc_profile=b"profile" * 100)
    prepared = prepare(data, OPEN, ImageOptions(max_side=30))
    assert "icc_profile" not in opened(prepared.data).info
    data = encoded(pixels(40, 60), "JPEG", comment=b"a comment")
    prepared = prepare(data, OPEN, ImageOptions(max_side=30))
    assert b"a comment" not in prepared.data


def test_verifying_finds_damage_within():
    data = bytearray(encoded(pixels(64, 64), "PNG"))
    data[len(data) // 2] ^= 255
    assert prepare(bytes(data)).data == data
    with pytest.raises(ImageError, match="got a damaged one"):
        prepare(bytes(data), None, ImageOptions(verify=True))


def test_verifying_keeps_the_bytes():
    for name in ("GIF", "JPEG", "PNG"):
        data = encoded(pixels(64, 64), name)
        assert prepare(data, None, ImageOptions(verify=True)).data == data


def test_damage_is_found_when_an_image_is_made_anew():
    data = bytearray(encoded(pixels(64, 64), "PNG"))
    data[len(data) // 2] ^= 255
    with pytest.raises(ImageError, match="got a damaged one"):
        prepare(bytes(data), OPEN, ImageOptions(max_side=10))


def test_a_feature_of_a_fixed_size_is_checked():
    feature = Feature("uint8", (20, 30, 3), encoding="image")
    assert prepare(encoded(pixels(20, 30), "PNG"), feature)
    with pytest.raises(ImageError, match="expected a width of 30 pixels, got 31"):
        prepare(encoded(pixels(20, 31), "PNG"), feature)


@pytest.mark.filterwarnings("ignore")
def test_odd_images_are_shrunk_or_refused(shared_data):
    options = ImageOptions(max_side=20)
    shrunk = 0
    for path in sorted((shared_data / "odd_images").iterdir()):
        for feature in (OPEN, MASK):
            try:
                header = prepare(path, feature, options).header
            except ImageError:
                continue
            assert max(header.height, header.width) <= 20
            shrunk += 1
    assert shrunk > 350


def odd_files():
    """Files of which not every reader gives the same pixels."""
    grey = pixels(9, 7, 1)
    cut = bytearray(encoded(palette_image(grey), "GIF"))
    cut[6:8] = (20).to_bytes(2, "little")  # a screen wider than the first frame
    return {
        "TIFF": encoded(pixels(9, 7), "TIFF"),
        "16-bit TIFF": tiff_of_16_bits(pixels(9, 7, dtype=np.uint16, most=65535)),
        "grey 16-bit TIFF": encoded(pixels(9, 7, 1, dtype=np.uint16, most=65535), "TIFF"),
        "1-bit TIFF": encoded(Image.fromarray(grey).convert("1"), "TIFF"),
        "palette TIFF": encoded(palette_image(grey), "TIFF"),
        "CMYK TIFF": encoded(Image.fromarray(pixels(9, 7)).convert("CMYK"), "TIFF"),
        "grey GIF": encoded(np.arange(256, dtype=np.uint8).reshape(16, 16), "GIF"),
        "transparent GIF": encoded(palette_image(grey), "GIF", transparency=int(grey[0, 0])),
        "GIF with a small frame": bytes(cut),
        "1-bit BMP": encoded(Image.fromarray(grey).convert("1"), "BMP"),
        "palette BMP": encoded(palette_image(grey), "BMP"),
        "grey BMP": encoded(grey, "BMP"),
        "32-bit BMP": encoded(pixels(9, 7, 4), "BMP"),
        "JPEG with junk": b"\xff\xd8\xff\xff\x00\x00" + encoded(pixels(9, 7), "JPEG")[2:],
    }


@pytest.mark.parametrize("name", odd_files())
def test_what_readers_differ_on_is_stored_as_a_png_of_the_same_pixels(name):
    data = odd_files()[name]
    header = parse_header(data)
    for feature in (None, OPEN):
        prepared = prepare(data, feature)
        assert prepared.header.format == "png"
        assert prepared.converted == header.format
        assert (prepared.header.channels, prepared.header.dtype) == (header.channels, header.dtype)
        expected = decode_pixels(data, header.channels)
        np.testing.assert_array_equal(decode_pixels(prepared.data, header.channels), expected)


@pytest.mark.parametrize("name", ["PNG", "WEBP", "BMP"])
def test_colours_in_a_feature_of_one_channel_are_stored_as_grey(name):
    data = encoded(pixels(9, 7), name)
    prepared = prepare(data, MASK)
    assert (prepared.header.format, prepared.header.channels) == ("png", 1)
    np.testing.assert_array_equal(decode_pixels(prepared.data, 1), decode_pixels(data, 1))
    assert prepare(encoded(pixels(9, 7), "JPEG"), MASK).converted is None
    cmyk = encoded(Image.fromarray(pixels(9, 7)).convert("CMYK"), "JPEG")
    assert prepare(cmyk, COLOUR).data == cmyk
    assert prepare(cmyk, MASK).converted == "jpeg"


@pytest.mark.parametrize("channels", [3, 4])
def test_arrays_of_16_bit_colours_are_kept(channels):
    array = pixels(9, 7, channels, dtype=np.uint16, most=65535)
    prepared = prepare(array)
    assert prepared.header == ImageHeader("png", 9, 7, channels, "uint16")
    np.testing.assert_array_equal(decode_pixels(prepared.data, channels), array)
    with pytest.raises(ImageError, match="16-bit colour\nhint"):
        prepare(array, options=ImageOptions(max_side=5))


def test_16_bit_colours_are_no_ids():
    with pytest.raises(ImageError, match="one channel, got 16-bit colour\nhint"):
        prepare(pixels(9, 7, dtype=np.uint16), MASK)
    deep = png_of_16_bits(pixels(9, 7, dtype=np.uint16))
    with pytest.raises(ImageError, match="one channel, got 16-bit colour\nhint"):
        prepare(deep, MASK)
