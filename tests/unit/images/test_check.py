"""Whether images are whole."""

import zlib

import pytest

from datum.images import ImageError, ImageHeader, check_decodes, read_header
from datum.images import check as module
from tests.unit.images.samples import encoded, palette_image, pixels, png, png_chunk

FORMATS = ["BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP"]


@pytest.fixture
def decoded(monkeypatch):
    """The images that were decoded, by format."""
    seen = []
    real = module.decode_pixels
    monkeypatch.setattr(
        module,
        "decode_pixels",
        lambda data, channels: seen.append(data[:3]) or real(data, channels),
    )
    return seen


@pytest.mark.parametrize("name", FORMATS)
def test_a_whole_image_is_not_decoded(name, decoded):
    assert read_header(encoded(pixels(20, 30), name)).format == name.lower()
    assert decoded == []


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_an_image_cut_anywhere_is_refused(name):
    data = encoded(pixels(16, 16), name)
    first = next(end for end in range(len(data), 0, -1) if _is_refused(data[:end]))
    # What may follow the pixels: a WebP's padding, the directory's end of a TIFF, an end marker.
    assert first > len(data) - 12
    for end in range(0, first, 7):
        with pytest.raises(ImageError):
            read_header(data[:end])


def _is_refused(data):
    try:
        read_header(data)
    except ImageError:
        return True
    return False


def test_a_jpeg_without_its_end_marker_is_decoded_to_decide(decoded):
    data = encoded(pixels(20, 30), "JPEG")
    with pytest.raises(ImageError, match="expected a whole JPEG image, got a damaged one"):
        read_header(data[: len(data) - 200])
    assert len(decoded) == 1


@pytest.mark.parametrize("name", ["GIF", "JPEG", "PNG"])
@pytest.mark.parametrize("extra", [b"\0" * 100, b"\0"])
def test_bytes_after_the_end_do_no_harm(name, extra, decoded):
    data = encoded(pixels(20, 30), name)
    assert read_header(data + extra) == read_header(data)
    assert decoded == []


def test_packed_text_that_would_fill_the_memory_is_refused():
    text = png_chunk(b"zTXt", b"note\0\0" + zlib.compress(b"\0" * 2**24))
    with pytest.raises(ImageError, match="too large"):
        read_header(png(1, 1, 8, 0, b"\0\0", text))


def test_packed_text_of_ordinary_size_is_fine(decoded):
    text = png_chunk(b"zTXt", b"note\0\0" + zlib.compress(b"hello"))
    assert read_header(png(1, 1, 8, 0, b"\0\0", text)).width == 1
    assert len(decoded) == 1


def test_damage_within_is_found_by_decoding():
    data = bytearray(encoded(pixels(40, 40), "PNG"))
    data[len(data) // 2] ^= 255
    header = read_header(bytes(data))
    with pytest.raises(ImageError, match="expected a whole PNG image, got a damaged one"):
        check_decodes(bytes(data), header)


def test_whole_images_decode():
    for name in FORMATS:
        data = encoded(pixels(20, 30), name)
        check_decodes(data, read_header(data))


@pytest.mark.filterwarnings("ignore")
def test_odd_images_are_read_or_refused(shared_data):
    read, refused = {}, {}
    for path in sorted((shared_data / "odd_images").iterdir()):
        data = path.read_bytes()
        try:
            header = read_header(data)
            check_decodes(data, header)
            read[path.name] = header
        except ImageError as error:
            refused[path.name] = str(error)
    assert len(read) > 180
    assert read["hopper_gray.jpg"] == ImageHeader("jpeg", 128, 128, 1)
    assert read["16bit.MM.cropped.tif"] == ImageHeader("tiff", 64, 64, 1, "uint16")
    assert read["tiff_tiled_planar_16bit_RGB.tiff"].dtype == "uint16"
    assert read["tiff_strip_cmyk_jpeg.tif"].channels == 3
    assert read["sugarshack.mpo"].format == "jpeg"
    assert read["pil123p.png"].channels == 4
    expected = {"LICENSE", "broken.png", "truncated_image.png", "truncated_jpeg.jpg"}
    expected |= {"png_decompression_dos.png", "libtiff_segfault.tif", "l2rgb_read.bmp"}
    assert expected <= set(refused)


def test_a_palette_is_no_reason_to_decode(decoded):
    assert read_header(encoded(palette_image(pixels(5, 5, 1)), "PNG")).has_palette
    assert decoded == []
