"""One batch: fetched, decoded, mapped, finished."""

from __future__ import annotations

import functools
import gc
import pickle

# ruff: noqa: NPY002
import random
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datum
from datum._load.cache import RecordCache
from datum._load.collate import Finisher, as_objects, stack_or_list
from datum._load.decode import BatchImages, encoded_images, find_decoders
from datum._load.functions import (
    GlobalRandomness,
    UserFunction,
    make_generator,
    make_seed,
    row_taker,
)
from datum._load.options import LoadOptions
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import CorruptRecordError, SchemaError, SourceError
from datum.images import ImageError, decode
from datum.schema import Feature, Schema
from tests.unit.images.samples import encoded, palette_image, pixels, png_of_16_bits
from tests.unit.load.memory_source import (
    SCHEMA,
    MemorySource,
    finish,
    load,
    make_rows,
    open_pipeline,
    plan,
)


@pytest.fixture
def source() -> MemorySource:
    return MemorySource(make_rows(40), SCHEMA)


def test_columns_are_finished_in_the_order_of_the_schema(source: MemorySource) -> None:
    (batch,) = load(source, [4, 1])
    assert list(batch) == [
        *("x", "text", "raw", "tokens", "words", "age", "age_present", "name", "name_present"),
        *("grid", "grid_present", "bag", "day"),
    ]
    assert batch["x"].tolist() == [4, 1]
    assert batch["text"].tolist() == ["t4", "t1"]
    assert batch["raw"].tolist() == [b"\x04", b"\x01"]
    assert batch["tokens"].to_list() == [[], [0]]
    assert batch["words"].to_list() == [["w"], ["w"]]
    assert batch["age"].tolist() == [2, 0]
    assert batch["age_present"].tolist() == [True, False]
    assert batch["name"].tolist() == ["someone", ""]
    assert batch["bag"].to_dense().argmax(axis=1).tolist() == [4, 1]
    assert batch["day"].dtype == "datetime64[D]"


def test_tensors_of_one_shape_are_stacked_and_others_listed(source: MemorySource) -> None:
    alike, differing = load(source, [4, 4, 1], [4, 6, 1])
    assert alike["grid"].shape == (3, 2, 4)
    assert not alike["grid"][2].any()
    assert [array.shape for array in differing["grid"]] == [(2, 4), (2, 6), (0, 0)]


def test_an_empty_batch_has_columns_of_no_rows(source: MemorySource) -> None:
    (batch,) = load(source, [])
    assert batch["x"].shape == (0,)
    assert len(batch["tokens"]) == len(batch["bag"]) == len(batch["grid"]) == 0


def test_an_empty_batch_after_map_looks_like_those_before(source: MemorySource) -> None:
    _, batch = load(source, [1, 2], [], map=lambda r: {"y": r["x"] * 0.5, "z": (r["tokens"],)})
    assert batch["y"].dtype == np.float64
    assert len(batch["y"]) == len(batch["z"][0]) == 0


@pytest.mark.parametrize("change", [None, lambda record: record])
def test_lost_records_make_a_batch_shorter(change) -> None:
    source = MemorySource(make_rows(20), SCHEMA, lost=(3, 5))
    plans = [plan([1, 3, 4]), plan([5, 3]), plan([6])]
    first, second, third = finish(source, plans, on_error="skip", map=change)
    assert first.batch["x"].tolist() == [1, 4]
    assert (first.records, [d.record for d in first.damage]) == (2, [3])
    assert len(second.batch["x"]) == second.records == 0
    assert [d.record for d in second.damage] == [5, 3]
    assert third.records == 1


def test_with_pad_lost_records_are_replaced_and_masked() -> None:
    source = MemorySource(make_rows(20), SCHEMA, lost=(3,))
    plans = [plan([3, 4, 5, 3], real=3), plan([6, 7, 8, 9])]
    for change in (None, lambda record: record):
        options = {"on_error": "skip", "remainder": "pad", "map": change}
        first, second = finish(source, plans, **options)
        assert first.batch["x"].tolist() == [4, 4, 5, 4]
        assert first.batch["tokens"].to_list() == [[], [], [0], []]
        assert first.batch["batch_mask"].tolist() == [False, True, True, False]
        assert (first.records, len(first.damage)) == (2, 1)
        assert second.batch["batch_mask"].all()


def test_with_pad_a_batch_without_a_sound_record_is_an_error() -> None:
    source = MemorySource(make_rows(5), SCHEMA, lost=(3,))
    with pytest.raises(CorruptRecordError, match="expected an intact record to fill up a batch"):
        finish(source, [plan([3, 3], real=1)], on_error="skip", remainder="pad")


def test_with_pad_the_mask_tells_which_records_fill_up(source: MemorySource) -> None:
    (found,) = finish(source, [plan([1, 2, 0, 0], real=2)], remainder="pad")
    assert found.batch["batch_mask"].tolist() == [True, True, False, False]
    assert found.records == 2


def test_with_pad_map_has_to_return_dicts(source: MemorySource) -> None:
    with pytest.raises(ValueError, match="expected dicts from `map`, since remainder='pad'"):
        load(source, [1], remainder="pad", map=lambda record: (record["x"],))


def test_an_error_of_the_source_is_raised_by_take_of_its_batch(source: MemorySource) -> None:
    def fail(ticket: int) -> None:
        if ticket == 1:
            raise CorruptRecordError("memory: record 3: broken")

    source.before_take = fail
    for options in ({}, {"map": lambda record: record}):
        pipeline = open_pipeline(source, **options)
        for numbers in ([1], [2], [3]):
            pipeline.submit(plan(numbers))
        assert pipeline.take().batch["x"] == [1]
        with pytest.raises(CorruptRecordError, match="record 3: broken"):
            pipeline.take()
        pipeline.close()
        source.submitted.clear()


@pytest.mark.parametrize("threads", [0, 3])
def test_the_error_of_the_first_record_is_the_one_raised(threads: int) -> None:
    source = MemorySource([{"x": n} for n in range(300)], {"x": Feature("int64")})

    def change(record: dict) -> dict:
        if record["x"] in (70, 75, 200):
            raise KeyError(int(record["x"]))
        return record

    with pytest.raises(KeyError) as caught:
        load(source, list(range(300)), threads=threads, map=change)
    assert caught.value.args == (70,)
    assert "memory: record 70 at byte 700" in caught.value.__notes__[0]


def test_after_an_error_the_next_batch_is_sound(source: MemorySource) -> None:
    pipeline = open_pipeline(source, map=lambda r: r if r["x"] != 3 else None)
    for numbers in ([3], [4]):
        pipeline.submit(plan(numbers))
    with pytest.raises(ValueError, match="expected `map` to return the new value, got None"):
        pipeline.take()
    assert pipeline.take().batch["x"] == [4]
    pipeline.close()


def test_an_error_of_batch_map_keeps_its_type(source: MemorySource) -> None:
    def fail(batch: dict) -> dict:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        load(source, [1, 2], batch_map=fail)
    assert caught.value.__notes__ == ["in `batch_map`, epoch 0, batch at 0"]


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="counts no references")
def test_an_error_is_freed_once_it_is_dropped(source: MemorySource) -> None:
    class MyError(Exception):
        pass

    def fail(record: dict) -> dict:
        raise MyError

    pipeline = open_pipeline(source, map=fail)
    pipeline.submit(plan([1]))
    gc.disable()  # whatever holds it in a cycle would keep the whole batch
    try:
        pipeline.take()
    except MyError as error:
        held = weakref.ref(error)
    finally:
        gc.enable()
    assert held() is None
    pipeline.close()


IMAGE = Feature("uint8", (None, None, 3), encoding="image", optional=True)
FETCHED_SCHEMA = {
    "x": Feature("int64"),
    "v": Feature("float32", (2,)),
    "words": Feature("str", (None,)),
    "image": IMAGE,
    "grid": Feature("float32", (None, None), encoding="raw"),
}


def image_of(number: int) -> bytes | None:
    name = "JPEG" if number % 2 else "PNG"
    return None if number == 7 else encoded(pixels(8 + number % 3, 8), name)


def make_source(**settings: Any) -> MemorySource:
    rows = [
        {
            "x": n,
            "v": [n, n],
            "words": [f"w{n}"] * (n % 3),
            "image": image_of(n) if n != 9 else b"no image",
            "grid": np.full((1, n % 2 + 1), n, np.float32),
        }
        for n in range(12)
    ]
    return MemorySource(rows, FETCHED_SCHEMA, **settings)


def check(batch: dict[str, Any], numbers: list[int]) -> None:
    assert batch["x"].tolist() == numbers
    assert batch["v"][:, 0].tolist() == numbers
    assert batch["words"].to_list() == [[f"w{n}"] * (n % 3) for n in numbers]
    assert [grid.max() for grid in batch["grid"]] == numbers
    for image, n in zip(batch["image"], numbers, strict=True):
        data = image_of(n)
        if data is not None:
            np.testing.assert_array_equal(image, decode(data, IMAGE))
    assert batch["image_present"].tolist() == [n != 7 for n in numbers]


@pytest.mark.parametrize("change", [None, lambda record: record])
def test_later_epochs_read_and_decode_nothing(change: Any) -> None:
    source, cache = make_source(), RecordCache(12)
    first, second = load(source, [0, 1, 2], [7, 4, 3], cache=cache, map=change)
    check(first, [0, 1, 2])
    check(second, [7, 4, 3])
    read = len(source.submitted)
    source.payloads = [b""] * 12
    for numbers in ([4, 0, 7], [1], [3, 3, 2, 1], [0, 3]):
        (batch,) = load(source, numbers, cache=cache, map=change)
        check(batch, numbers)
    assert len(source.submitted) == read


def test_only_what_is_missing_is_read() -> None:
    source, cache = make_source(), RecordCache(12)
    load(source, [0, 1, 2], cache=cache)
    (batch,) = load(source, [5, 1, 7, 0, 6], cache=cache)
    check(batch, [5, 1, 7, 0, 6])
    assert source.submitted[1:] == [[5, 7, 6]]
    (batch,) = load(source, [6, 5, 2], cache=cache)
    check(batch, [6, 5, 2])
    assert len(source.submitted) == 2


def test_what_a_function_changes_in_place_is_not_kept() -> None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        record["v"][:] = -1
        record["image"][:] = 0
        record["grid"][:] = 0
        return record

    source, cache = make_source(), RecordCache(12)
    for numbers in ([1, 4], [4, 1], [4, 2], [2]):
        (batch,) = load(source, numbers, cache=cache, map=change)
        assert not any(image.any() for image in batch["image"])
        assert (batch["v"] == -1).all()
    (batch,) = load(source, [4, 2, 1], cache=cache)
    check(batch, [4, 2, 1])


def test_what_is_done_to_a_batch_is_not_kept() -> None:
    source, cache = make_source(), RecordCache(12)
    for numbers in ([1, 4], [1], [4, 3], [3], [4, 1]):
        (batch,) = load(source, numbers, cache=cache)
        check(batch, numbers)
        for image in batch["image"]:
            image[:] = 0
        for grid in batch["grid"]:
            grid[:] = 0
        batch["v"][:] = 0


def test_lost_records_stay_lost_without_being_read_again() -> None:
    source, cache = make_source(lost=(3,)), RecordCache(12)
    for _ in range(2):
        plans = [plan([0, 3, 1, 9, 2]), plan([9, 3])]
        first, second = finish(source, plans, cache=cache, on_error="skip", threads=0)
        check(first.batch, [0, 1, 2])
        kinds = [(damage.record, damage.kind) for damage in first.damage]
        assert kinds == [(3, "payload checksum"), (9, "image")]
        assert second.records == 0
        assert [damage.record for damage in second.damage] == [9, 3]
    assert [numbers for numbers in source.submitted if numbers] == [[0, 3, 1, 9, 2], [9, 3]]


def test_records_that_fill_up_are_kept_once() -> None:
    source, cache = make_source(), RecordCache(12)
    (found,) = finish(source, [plan([1, 2, 1, 1], real=2)], cache=cache, remainder="pad")
    check(found.batch, [1, 2, 1, 1])
    assert len(cache) == 2


def test_an_empty_batch_can_be_asked_of_an_empty_cache() -> None:
    (batch,) = load(make_source(), [], cache=RecordCache(12))
    assert len(batch["x"]) == len(batch["image"]) == 0


def test_threads_can_share_a_cache() -> None:
    source, cache = make_source(), RecordCache(12)
    some = [0, 1, 2, 3, 4, 5]
    for batch in load(source, *([some] * 20), cache=cache, threads=4):
        check(batch, some)
    assert len(cache) == 6


def test_plain_columns_are_handed_on() -> None:
    columns = {"x": np.arange(3), "r": Ragged(np.arange(2), np.array([0, 1, 1, 2]))}
    schema = Schema({"x": Feature("int64"), "r": Feature("int64", (None,))})
    finisher = Finisher(schema, encoded={})
    made = finisher.settle(finisher.finish(columns))
    assert made["x"] is columns["x"]
    assert made["r"] is columns["r"]


def test_strings_become_object_arrays_in_their_shape() -> None:
    slices = np.array([[0, 1], [1, 1], [2, 1], [3, 1]])
    column = BytesColumn(b"abcd", slices, is_text=True, shape=(2, 2))
    finisher = Finisher(Schema({"t": Feature("str", (2,))}), encoded={})
    assert finisher.finish({"t": column})["t"].tolist() == [["a", "b"], ["c", "d"]]


def test_presence_is_a_column_beside_the_values() -> None:
    schema = Schema({"a": Feature("int64", optional=True), "b": Feature("int64", default=3)})
    finisher = Finisher(schema, encoded={})
    assert finisher.names == ["a", "a_present", "b"]
    present = np.array([True, False])
    made = finisher.finish({"a": Masked(np.array([1, 0]), present), "b": np.array([3, 3])})
    assert made["a_present"] is present
    made = finisher.finish({"a": np.array([1, 0]), "b": np.array([3, 3])})
    assert made["a_present"].tolist() == [True, True]


def test_images_are_left_to_be_decoded_but_for_their_presence() -> None:
    image = Feature("uint8", (None, 4, 3), encoding="image", optional=True)
    finisher = Finisher(Schema({"i": image}), encoded={"i": image})
    column = Masked(BytesColumn.from_values([b"", b"x"]), np.array([False, True]))
    assert list(finisher.finish({"i": column})) == ["i_present"]
    assert finisher.loose["i"].shape == (0, 4, 3)


def test_a_name_for_presence_that_is_taken_is_refused() -> None:
    schema = Schema({"a_present": Feature("bool"), "a": Feature("int64", optional=True)})
    with pytest.raises(SchemaError, match="expected no feature 'a_present'") as caught:
        Finisher(schema, encoded={})
    assert caught.value.feature == "a_present"


def test_rows_are_stacked_or_listed() -> None:
    blank = np.zeros((0, 2))
    one, two = np.ones((1, 2)), np.ones((2, 2))
    assert stack_or_list(as_objects([one, one]), blank).shape == (2, 1, 2)
    assert [row.shape for row in stack_or_list(as_objects([one, two, None]), blank)] == [
        *[(1, 2), (2, 2), (0, 2)]
    ]
    assert stack_or_list(as_objects([None, None]), blank).shape == (2, 0, 2)
    assert stack_or_list(as_objects([]), blank).shape == (0, 0, 2)
    whole = np.ones((3, 3))
    assert stack_or_list(whole, blank) is whole


def test_objects_keep_arrays_as_they_are() -> None:
    arrays = [np.ones((2, 2)), np.ones((2, 2))]
    assert as_objects(arrays)[1] is arrays[1]


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


MAPPED_SCHEMA = {
    "x": Feature("int32"),
    "v": Feature("float32", (2,)),
    "text": Feature("str"),
    "tokens": Feature("int64", (None,)),
    "words": Feature("str", (None,)),
    "deep": Feature("int64", (None, None)),
    "bag": Feature("float32", (4,), encoding="sparse"),
    "age": Feature("float32", optional=True),
}


@pytest.fixture
def texts() -> MemorySource:
    rows = [
        {
            "x": n,
            "v": [n, n + 1],
            "text": f"t{n}",
            "tokens": list(range(n % 3)),
            "words": ["w"] * (n % 2),
            "deep": [[n], [n, n]],
            "bag": Sparse(np.array([[n % 4]]), np.ones(1, np.float32), (4,)),
            "age": None if n % 2 else 1.0,
        }
        for n in range(150)
    ]
    return MemorySource(rows, MAPPED_SCHEMA)


def test_a_record_is_a_dict_of_values_like_a_row_of_the_batch(texts: MemorySource) -> None:
    seen: list[dict[str, Any]] = []
    load(texts, [5], map=lambda record: seen.append(dict(record)) or record)
    (record,) = seen
    assert list(record) == [*MAPPED_SCHEMA, "age_present"]
    assert record["x"] == 5
    assert isinstance(record["x"], np.int32)
    assert record["v"].tolist() == [5, 6]
    assert record["text"] == "t5"
    assert record["tokens"].tolist() == [0, 1]
    assert record["words"].tolist() == ["w"]
    assert record["deep"].to_list() == [[5], [5, 5]]
    assert record["bag"].to_dense().tolist() == [0, 1, 0, 0]
    assert record["age"] == 0
    assert not record["age_present"]


def test_columns_that_a_function_leaves_alone_stay_what_they_are(texts: MemorySource) -> None:
    (plain,) = load(texts, [0, 3])  # of which no tokens differ in length
    (batch,) = load(texts, [0, 3], map=lambda record: {**record, "new": 1})
    assert list(batch) == [*plain, "new"]
    for name in plain:
        assert type(batch[name]) is type(plain[name])
        assert getattr(batch[name], "dtype", None) == getattr(plain[name], "dtype", None)
    assert batch["tokens"].to_list() == [[], []]


def test_a_column_changed_in_one_record_is_put_together_anew(texts: MemorySource) -> None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "x": 0.5} if record["x"] == 3 else record

    (batch,) = load(texts, [1, 3], map=change)
    assert batch["x"].tolist() == [1, 0.5]


def test_changes_made_in_place_come_into_the_batch(texts: MemorySource) -> None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        record["v"] += 1
        record["tokens"] *= 10
        record["words"][:] = "new"
        record["bag"].values[:] = 7
        record["x"] = record["x"] * 2
        return record

    (batch,) = load(texts, [4, 5], map=change)
    assert batch["v"].tolist() == [[5, 6], [6, 7]]
    assert batch["tokens"].to_list() == [[0], [0, 10]]
    assert batch["words"].to_list() == [[], ["new"]]
    assert batch["bag"].to_list() == [[7, 0, 0, 0], [0, 7, 0, 0]]
    assert batch["x"].tolist() == [8, 10]


def test_what_a_function_returns_need_not_be_a_dict(texts: MemorySource) -> None:
    (batch,) = load(texts, [1, 2], map=lambda record: (record["x"], record["v"]))
    assert isinstance(batch, tuple)
    assert batch[0].tolist() == [1, 2]
    assert load(texts, [1, 2], map=lambda record: record["x"])[0].tolist() == [1, 2]


def test_keys_that_differ_are_named(texts: MemorySource) -> None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        return {"x": 1, "y": 2} if record["x"] < 3 else {"x": 1, "z": 1}

    with pytest.raises(
        ValueError, match="memory: record 3 at byte 30: expected the same keys"
    ) as e:
        load(texts, [1, 3], map=change)
    assert "'y' missing, 'z' extra" in str(e.value)


def test_batch_map_gets_the_batch_and_gives_anything(texts: MemorySource) -> None:
    assert load(texts, [1, 2], batch_map=lambda batch: int(batch["x"].sum())) == [3]


@pytest.mark.parametrize("option", ["map", "batch_map"])
def test_a_function_that_forgets_its_result_is_told(texts: MemorySource, option: str) -> None:
    with pytest.raises(ValueError, match=f"expected `{option}` to return the new value"):
        load(texts, [1], **{option: lambda given: None})


# Random numbers.
def draws(source: MemorySource, *, threads: int, size: int, epoch: int = 0) -> list[float]:
    plans = [
        plan(np.arange(at, min(at + size, 150)), start=at, epoch=epoch)
        for at in range(0, 150, size)
    ]
    found = finish(source, plans, threads=threads, map=lambda record, rng: rng.random(), seed=3)
    return [number for one in found for number in one.batch.tolist()]


def test_random_numbers_are_the_same_for_any_threads_and_batches(texts: MemorySource) -> None:
    wanted = draws(texts, threads=0, size=150)
    assert len(set(wanted)) == 150
    for threads, size in ((1, 7), (2, 150), (4, 50)):
        assert draws(texts, threads=threads, size=size) == wanted
    assert draws(texts, threads=1, size=150, epoch=1) != wanted


def test_random_numbers_follow_the_position_not_the_record(texts: MemorySource) -> None:
    def draw(record: dict[str, Any], rng: np.random.Generator) -> float:
        return rng.random()

    first, second = finish(texts, [plan([1, 2], start=5), plan([9, 1], start=5)], map=draw)
    assert first.batch.tolist() == second.batch.tolist()


def test_a_batch_has_random_numbers_of_its_own(texts: MemorySource) -> None:
    def draw(given: Any, *, rng: np.random.Generator) -> float:
        return rng.random()

    plans = [plan([1], start=0), plan([1], start=1), plan([1], start=1, epoch=1)]
    first, second, third = (f.batch for f in finish(texts, plans, batch_map=draw))
    assert len({first, second, third}) == 3
    alone = finish(texts, plans[1:2], batch_map=draw, threads=0)[0].batch
    assert alone == second
    assert load(texts, [1], map=draw)[0][0] != first


def test_generators_are_those_of_numpy_and_can_spawn() -> None:
    rng = make_generator(2**70, 1, 0)
    assert isinstance(rng, np.random.Generator)
    children = rng.bit_generator.seed_seq.spawn(2)
    values = [np.random.Generator(np.random.PCG64(child)).random() for child in children]
    assert len({rng.random(), *values}) == 3
    again = make_generator(2**70, 1, 0)
    again.random()
    assert pickle.loads(pickle.dumps(rng)).random() == again.random()


def test_random_numbers_do_not_change_between_versions() -> None:
    first = make_generator(0, 0, 0, 0).bit_generator.random_raw()
    assert first == 11603369025372926420


def test_random_numbers_are_given_only_to_those_who_take_them() -> None:
    def with_partial(factor: int, given: int, rng: np.random.Generator) -> int:
        return factor * given + 0 * rng.integers(2)

    partial = functools.partial(with_partial, 3)
    assert UserFunction("map", partial, seed=0)(5, epoch=0, position=0) == 15
    assert UserFunction("map", len, seed=0)("abc", epoch=0, position=0) == 3
    assert UserFunction("map", max, seed=0)([1, 2], epoch=0, position=0) == 2  # has no signature


def test_rows_are_taken_from_columns_of_all_kinds() -> None:
    text = Ragged(BytesColumn.from_values(["a", "b"]), np.array([0, 2, 2]))
    assert [row_taker(text)(row).tolist() for row in (0, 1)] == [["a", "b"], []]
    sparse = Sparse(np.array([[0, 1], [2, 0], [2, 2]]), np.array([1, 2, 3]), (3, 3))
    taken = [row_taker(sparse)(row).to_dense().tolist() for row in range(3)]
    assert taken == sparse.to_dense().tolist()


def draw():
    return random.random(), np.random.rand()


def test_numbers_follow_from_the_seed_and_others_are_left_as_they_were():
    random.seed(1)
    np.random.seed(1)
    expected = [draw() for _ in range(2)]
    random.seed(1)
    np.random.seed(1)
    randomness = GlobalRandomness()
    first = draw()
    with randomness.seeded(make_seed(3)):
        inside = draw()
    assert [first, draw()] == expected
    with randomness.seeded(make_seed(3)):
        assert draw() == inside
    with randomness.seeded(make_seed(4)):
        assert draw() != inside


def test_it_is_found_out_whether_anything_was_drawn():
    for function, is_drawn in ((draw, True), (random.random, True), (list, False)):
        randomness = GlobalRandomness()
        assert randomness.is_drawn is None
        with randomness.seeded(5):
            function()
        randomness.settle()
        assert randomness.is_drawn is is_drawn


def test_in_another_process_it_is_about_the_generators_there():
    randomness = pickle.loads(pickle.dumps(GlobalRandomness()))
    with randomness.seeded(5):
        one = draw()
    with GlobalRandomness().seeded(5):
        assert draw() == one


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    rows = [
        {"a": i, "b": float(i), "label": i % 3, **({} if i % 4 else {"rare": 1})} for i in range(10)
    ]
    out = tmp_path_factory.mktemp("supervised") / "rows"
    datum.write(rows, out, shuffle=False, progress=False)
    return datum.load(out)


def test_batches_are_tuples_of_what_is_named(ds):
    x, y = next(iter(ds.to_numpy(batch_size=4, supervised=("a", "label"))))
    assert x.tolist() == [0, 1, 2, 3]
    assert y.tolist() == [0, 1, 2, 0]


def test_several_inputs_are_a_dict_and_a_third_part_the_weights(ds):
    x, y, weight = next(iter(ds.to_numpy(batch_size=4, supervised=(["a", "b"], "label", "b"))))
    assert list(x) == ["a", "b"]
    assert weight.tolist() == [0, 1, 2, 3]
    assert len(y) == 4


def test_only_what_is_named_is_read(ds):
    assert list(ds.to_numpy(supervised=("a", "label")).schema) == ["a", "label"]


def test_names_may_come_from_functions(ds):
    def double(record):
        return {"twice": record["a"] * 2, "label": record["label"]}

    x, _ = next(iter(ds.to_numpy(batch_size=4, map=double, supervised=("twice", "label"))))
    assert x.tolist() == [0, 2, 4, 6]
    with pytest.raises(ValueError, match="expected batches with a, label for `supervised`, got tw"):
        next(iter(ds.to_numpy(map=double, supervised=("a", "label"))))


def test_leaving_out_what_tells_missing_values_is_refused(ds):
    with pytest.raises(ValueError, match="some records may lack 'rare'.*\n?.*\nhint: missing="):
        ds.to_numpy(supervised=("a", "rare"))
    with pytest.raises(ValueError, match="some records may lack 'rare'"):
        next(iter(ds.to_numpy(supervised=("a", "rare"), map=dict)))
    (_, y), *_ = ds.to_numpy(supervised=("a", "rare"), missing={"rare": -1})
    assert y.tolist() == [1, -1, -1, -1, 1, -1, -1, -1, 1, -1]
    (x, y), *_ = ds.to_numpy(supervised=("a", "rare"), missing={"rare": "drop"})
    assert x.tolist() == [0, 4, 8]
    (x, y), *_ = ds.to_numpy(supervised=(["a", "rare_present"], "rare"))
    assert x["rare_present"].sum() == 3


def test_what_tells_records_from_fillers_must_be_named(ds):
    with pytest.raises(ValueError, match="expected 'batch_mask' among the names"):
        ds.to_numpy(supervised=("a", "label"), remainder="pad")
    *_, (x, _, weight) = ds.to_numpy(
        batch_size=4, supervised=("a", "label", "batch_mask"), remainder="pad"
    )
    assert len(x) == 4
    assert weight.tolist() == [True, True, False, False]


def test_records_lost_to_an_empty_batch_are_tuples_too(ds):
    loaders = [ds.to_numpy(batch_size=9, supervised=("a", "label"), host=(i, 3)) for i in range(3)]
    parts = [list(loader) for loader in loaders]
    assert all(isinstance(batch, tuple) for batches in parts for batch in batches)
    assert sorted({int(i) for batches in parts for x, _ in batches for i in x}) == list(range(10))


@pytest.mark.parametrize("wrong", [("a",), "a", ("a", 1), ("a", "b", "label", "x")])
def test_what_names_no_inputs_and_targets_is_refused(ds, wrong):
    with pytest.raises(TypeError, match="expected `supervised` to name the inputs"):
        ds.to_numpy(supervised=wrong)


def test_an_unknown_name_is_told_with_the_nearest(ds):
    with pytest.raises(ValueError, match="did you mean 'label'"):
        ds.to_numpy(supervised=("a", "lable"))


def test_a_batch_map_comes_first(ds):
    def scale(batch):
        return {**batch, "a": batch["a"] * np.int64(10)}

    x, _ = next(iter(ds.to_numpy(batch_size=3, batch_map=scale, supervised=("a", "label"))))
    assert x.tolist() == [0, 10, 20]
