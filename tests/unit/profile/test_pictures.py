import io

import numpy as np
import pytest
from PIL import Image

from datum import BytesColumn
from datum._inspect.profile.tally import ImageTally, holds_images, tally_images


def encoded(kind, size=(30, 20), mode="RGB"):
    file = io.BytesIO()
    Image.new(mode, size).save(file, kind)
    return file.getvalue()


def result(images):
    return tally_images(BytesColumn.from_values(images)).result(is_exact=True)


def test_images_are_told_by_their_headers():
    found = result([encoded("JPEG"), encoded("PNG", (7, 5), "L"), encoded("PNG", (9, 5))])
    assert found.formats == {"png": 2, "jpeg": 1}
    assert found.channels == {3: 2, 1: 1}
    assert (found.width.lowest, found.width.highest) == (7, 30)
    assert (found.height.lowest, found.height.highest) == (5, 20)
    assert found.pixels.highest == 600
    assert found.unreadable == 0


@pytest.mark.parametrize("kind", ["GIF", "BMP", "WEBP", "TIFF"])
def test_other_formats_are_known_too(kind):
    assert result([encoded(kind)]).formats == {kind.lower(): 1}


def test_what_is_no_image_is_counted():
    found = result([encoded("PNG"), b"none", b"", encoded("PNG")[:20]])
    assert found.unreadable == 3
    assert found.width.count == 1


def test_a_header_behind_much_else_is_found():
    plain = encoded("JPEG")
    comment = b"\xff\xfe" + (50_000).to_bytes(2, "big") + bytes(49_998)
    found = result([plain[:2] + comment + plain[2:]])
    assert found.formats == {"jpeg": 1}


def test_byte_strings_that_start_as_images_do_hold_images():
    assert holds_images(BytesColumn.from_values([b"", encoded("PNG")]))
    assert not holds_images(BytesColumn.from_values([b"", b"text"]))
    assert not holds_images(BytesColumn(b"", np.empty((0, 2), np.int64)))


def test_parts_together_are_as_the_whole():
    tally = ImageTally()
    for size in ((3, 4), (5, 6)):
        tally = tally.merge(tally_images(BytesColumn.from_values([encoded("PNG", size)])))
    found = tally.scaled(10).result(is_exact=True)
    assert found.formats == {"png": 20}
    assert (found.pixels.lowest, found.pixels.highest) == (12, 30)
