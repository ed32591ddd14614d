"""Images of a split: how large, and among bytes that do not say so."""

import io

import pytest
from PIL import Image

import datum
from datum._inspect.measure.contenders import decode_encoded, find_image_sizes
from datum._load.options import LoadOptions


def test_the_size_of_images_is_that_of_their_pixels(photos):
    found = find_image_sizes(photos["train"], LoadOptions(batch_size=4))
    assert found.side == 320
    assert found.bytes == 320 * 320 * 3


def test_there_is_no_size_without_images(numbers, photos):
    assert find_image_sizes(numbers["train"], LoadOptions()) is None
    assert find_image_sizes(photos["train"], LoadOptions(columns=["label"])) is None


def encoded(kind, size=(6, 4)):
    buffer = io.BytesIO()
    Image.new("RGB", size).save(buffer, kind)
    return buffer.getvalue()


def split_of(tmp_path, values):
    schema = {"data": datum.Feature("bytes")}
    datum.write({"data": values}, tmp_path / "d", schema=schema, progress=False)
    return datum.load(tmp_path / "d")["train"]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP"])
def test_bytes_that_are_images_are_decoded(tmp_path, kind):
    split = split_of(tmp_path, [encoded(kind)] * 3)
    options, notes = decode_encoded(split, LoadOptions())
    assert options.decode == {"data": True}
    assert "'data'" in notes[0]
    assert find_image_sizes(split, options).side == 6


@pytest.mark.parametrize(
    "values", [[b"text", b"more"], [b"\xff\xd8\xff but no more"] * 2, [b"", b""]]
)
def test_other_bytes_are_left_alone(tmp_path, values):
    options = LoadOptions()
    assert decode_encoded(split_of(tmp_path, values), options) == (options, ())


def test_one_that_is_no_image_leaves_all_alone(tmp_path):
    options = LoadOptions()
    split = split_of(tmp_path, [encoded("PNG"), b"none"])
    assert decode_encoded(split, options) == (options, ())


def test_images_that_say_so_need_no_note(photos):
    options = LoadOptions()
    assert decode_encoded(photos["train"], options) == (options, ())
