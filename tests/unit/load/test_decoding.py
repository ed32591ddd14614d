"""Images of batches, decoded as `datum.images.decode` decodes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datum._load.cache import RecordCache
from datum._load.decode import BatchImages, encoded_images, find_decoders
from datum._load.options import LoadOptions
from datum.columns import BytesColumn, Masked
from datum.errors import SourceError
from datum.images import ImageError, decode
from datum.schema import Feature, Schema
from tests.unit.images.samples import encoded, palette_image, pixels, png_of_16_bits
from tests.unit.load.memory_source import MemorySource, finish, load, plan

ANY = Feature("uint8", (None, None, 3), encoding="image")
FIXED = Feature("uint8", (16, 24, 3), encoding="image")
OPTIONAL = Feature("uint8", (None, None, 3), encoding="image", optional=True)


def jpeg(height: int = 16, width: int = 24, channels: int = 3) -> bytes:
    return encoded(pixels(height, width, channels), "JPEG")


def png(height: int = 16, width: int = 24, channels: int = 3) -> bytes:
    return encoded(pixels(height, width, channels), "PNG")


def source_of(images: list[bytes | None], feature: Feature) -> MemorySource:
    rows = [{"x": n, "image": image} for n, image in enumerate(images)]
    return MemorySource(rows, {"x": Feature("int64"), "image": feature})


def batch_of(images: list[bytes | None], feature: Feature, **options: Any) -> dict[str, Any]:
    (batch,) = load(source_of(images, feature), list(range(len(images))), **options)
    return batch


@pytest.mark.parametrize("feature", [ANY, FIXED])
@pytest.mark.parametrize("change", [None, lambda record: record])
@pytest.mark.parametrize("cache", [False, True])
def test_images_of_one_shape_make_one_array(feature: Feature, change: Any, cache: bool) -> None:
    images = [jpeg(), png(), jpeg(channels=1), encoded(pixels(16, 24), "BMP")]
    kept = RecordCache(4) if cache else None
    batch = batch_of(images, feature, map=change, cache=kept)
    assert batch["image"].shape == (4, 16, 24, 3)
    for got, image in zip(batch["image"], images, strict=True):
        np.testing.assert_array_equal(got, decode(image, feature))


@pytest.mark.parametrize("change", [None, lambda record: record])
def test_images_of_differing_shapes_make_a_list(change: Any) -> None:
    images = [jpeg(), jpeg(20, 24), png(5, 6)]
    batch = batch_of(images, ANY, map=change)
    assert isinstance(batch["image"], list)
    for got, image in zip(batch["image"], images, strict=True):
        np.testing.assert_array_equal(got, decode(image, ANY))


def test_what_is_given_can_be_written_to() -> None:
    for images in ([png(), png()], [png(), png(5, 6)]):
        for image in batch_of(images, ANY)["image"]:
            assert image.flags.writeable


@pytest.mark.parametrize("channels", [1, 3, 4, None])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_channels_and_types_are_those_of_the_feature(channels: int | None, dtype: str) -> None:
    feature = Feature(dtype, (None, None, channels), encoding="image")
    images = [jpeg(), jpeg(channels=1), png(), png(channels=4)]
    batch = batch_of(images, feature)
    for got, image in zip(batch["image"], images, strict=True):
        wanted = decode(image, feature)
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


def test_palettes_and_deep_pixels_keep_their_values() -> None:
    ids = pixels(8, 8, 1)
    grey = Feature("uint8", (None, None, 1), encoding="image")
    batch = batch_of([encoded(palette_image(ids), "PNG")], grey)
    np.testing.assert_array_equal(batch["image"][0, ..., 0], ids)
    deep = pixels(8, 8, 1, dtype=np.uint16, most=65535)
    feature = Feature("uint16", (8, 8, 1), encoding="image")
    batch = batch_of([png_of_16_bits(deep)], feature)
    np.testing.assert_array_equal(batch["image"][0, ..., 0], deep)


def test_absent_images_are_zeros_of_the_shape_of_the_others() -> None:
    batch = batch_of([jpeg(), None, png()], OPTIONAL)
    assert batch["image"].shape == (3, 16, 24, 3)
    assert not batch["image"][1].any()
    assert batch["image"][0].any()
    assert batch["image_present"].tolist() == [True, False, True]


def test_absent_images_are_empty_in_a_list() -> None:
    batch = batch_of([jpeg(), None, png(3, 4)], OPTIONAL)
    assert [image.shape for image in batch["image"]] == [(16, 24, 3), (0, 0, 3), (3, 4, 3)]


def test_images_that_are_all_absent_are_empty() -> None:
    assert batch_of([None, None], OPTIONAL)["image"].shape == (2, 0, 0, 3)
    fixed = Feature("uint8", (2, 3, 1), encoding="image", optional=True)
    assert batch_of([None, None], fixed)["image"].shape == (2, 2, 3, 1)


def test_an_absent_image_is_empty_to_map() -> None:
    seen = []
    batch_of([None, jpeg()], OPTIONAL, map=lambda r: seen.append(r["image"].shape) or r, threads=0)
    assert seen == [(0, 0, 3), (16, 24, 3)]


def test_memory_of_a_batch_is_aligned() -> None:
    for _ in range(5):
        assert batch_of([jpeg()] * 3, FIXED)["image"].ctypes.data % 64 == 0


# What is decoded.


def test_undecoded_images_are_bytes() -> None:
    image = jpeg()
    assert batch_of([image], ANY, decode=False)["image"].tolist() == [image]
    assert batch_of([image], ANY, decode={"image": False})["image"].tolist() == [image]


@pytest.mark.parametrize("dtype", ["bytes"])
def test_bytes_can_be_decoded_as_an_image(dtype: str) -> None:
    batch = batch_of([jpeg(channels=1)], Feature(dtype), decode={"image": True})
    np.testing.assert_array_equal(batch["image"][0], decode(jpeg(channels=1), ANY))


def test_a_function_decodes_bytes_in_its_own_way() -> None:
    batch = batch_of([b"ab", b"cd"], Feature("bytes"), decode={"image": list})
    assert batch["image"].tolist() == [[97, 98], [99, 100]]
    batch = batch_of([jpeg(), jpeg()], ANY, decode={"image": len}, map=lambda record: record)
    assert batch["image"].tolist() == [len(jpeg())] * 2


def test_a_function_gets_no_bytes_for_what_is_absent() -> None:
    batch = batch_of([b"ab", None], Feature("bytes", optional=True), decode={"image": len})
    assert batch["image"].tolist() == [2, 0]
    assert batch["image_present"].tolist() == [True, False]


@pytest.mark.parametrize("how", ["yes", None, 1])
def test_what_does_not_say_how_to_decode_is_refused(how: object) -> None:
    with pytest.raises(TypeError, match="`decode` of 'image' to be True, False or a function"):
        batch_of([jpeg()], ANY, decode={"image": how})


def test_only_bytes_can_be_decoded() -> None:
    schema = Schema({"x": Feature("int64")})
    with pytest.raises(ValueError, match="expected `decode` of a feature that holds the bytes"):
        find_decoders(schema, LoadOptions(decode={"x": True}))


# What cannot be.


def broken(image: bytes) -> bytes:
    return image[:30] + b"\x00" * 40 + image[70:]


def test_an_undecodable_image_is_an_error_that_says_where() -> None:
    for feature in (ANY, FIXED):
        with pytest.raises(SourceError) as caught:
            batch_of([jpeg(), b"no image"], feature)
        message = str(caught.value)
        assert message.startswith("memory: record 1 at byte 10, feature 'image': expected a JPEG")
        assert "hint: on_error='skip'" in message


@pytest.mark.parametrize("data", [jpeg(17, 24), png(17, 24), jpeg(8, 8)])
def test_an_image_of_another_shape_than_the_feature_is_an_error(data: bytes) -> None:
    with pytest.raises(SourceError, match=r"expected an image of shape \(16, 24, 3\), got"):
        batch_of([jpeg(), data], FIXED)


@pytest.mark.parametrize("feature", [ANY, FIXED])
@pytest.mark.parametrize("change", [None, lambda record: record])
def test_undecodable_images_can_be_skipped(feature: Feature, change: Any) -> None:
    source = source_of([jpeg(), b"\xff\xd8\xffno", png(), b""], feature)
    plans = [plan([1, 0, 2, 3]), plan([1, 3])]
    first, second = finish(source, plans, on_error="skip", map=change)
    assert first.batch["x"].tolist() == [0, 2]
    assert first.batch["image"].shape == (2, 16, 24, 3)
    np.testing.assert_array_equal(first.batch["image"][0], decode(jpeg(), ANY))
    assert [(d.kind, d.record, d.offset) for d in first.damage] == [
        ("image", 1, 10),
        ("image", 3, 30),
    ]
    assert (first.records, second.records) == (2, 0)
    assert len(second.batch["image"]) == 0


def test_skipped_images_are_replaced_with_pad() -> None:
    source = source_of([jpeg(), b"no"], FIXED)
    options: Any = {"on_error": "skip", "remainder": "pad"}
    (found,) = finish(source, [plan([1, 0, 0], real=2)], **options)
    assert found.batch["batch_mask"].tolist() == [False, True, False]
    for image in found.batch["image"]:
        np.testing.assert_array_equal(image, decode(jpeg(), ANY))
    assert found.records == 1


def test_pictures_tell_an_image_error_of_their_own() -> None:
    pictures = BatchImages(ANY, encoded_images(BytesColumn.from_values([b"xx"])))
    with pytest.raises(ImageError):
        pictures.decode(0)


def test_bytes_are_seen_where_they_lie() -> None:
    column = BytesColumn.from_values([b"ab", b"", b"cde"])
    views = encoded_images(Masked(column, np.array([True, False, True])))
    assert [None if view is None else bytes(view) for view in views] == [b"ab", None, b"cde"]
    assert views[0] is not None
    assert views[0].obj is column.buffer


def test_real_images_of_all_kinds_are_decoded_or_refused_alike(shared_data: Path) -> None:
    odd = sorted((shared_data / "odd_images").iterdir())[::3]
    files = [*odd, *sorted((shared_data / "pets").rglob("*.jpg"))[:5]]
    for feature in (ANY, Feature("uint8", (None, None, 1), encoding="image")):
        for file in files:
            data = file.read_bytes()
            pictures = BatchImages(feature, [memoryview(data)])
            try:
                wanted = decode(data, feature)
            except ImageError:
                with pytest.raises(ImageError):
                    pictures.decode(0)
            else:
                pictures.decode(0)
                np.testing.assert_array_equal(pictures.value(0, np.zeros(0)), wanted)
