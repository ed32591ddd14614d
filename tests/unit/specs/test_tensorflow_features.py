"""The code of single features; that it reads what it should is for test_tensorflow_code.py."""

from __future__ import annotations

import pytest

from datum import Feature
from datum.specs.tensorflow_code import Asked, Read, needs_single_records, read_feature


def read(feature: Feature, **options: object) -> Read:
    known = {"is_batched": True, "in_sequences": feature.sequence, **options}
    return read_feature(Asked("x", feature, **known))  # type: ignore[arg-type]


def specs_of(feature: Feature, **options: object) -> dict[str, str]:
    return {key: str(code) for key, code in read(feature, **options).specs.items()}


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Feature("float32", (2, 3)), {"x": "tf.io.FixedLenFeature([2, 3], tf.float32)"}),
        (
            Feature("int64", default=5),
            {"x": "tf.io.FixedLenFeature([], tf.int64, default_value=5)"},
        ),
        (
            Feature("str", default="a"),
            {"x": 'tf.io.FixedLenFeature([], tf.string, default_value="a")'},
        ),
        (Feature("int64", (None,)), {"x": "tf.io.RaggedFeature(tf.int64)"}),
        (
            Feature("float32", (None, 4)),
            {
                "x": 'tf.io.RaggedFeature(tf.float32, value_key="x",'
                " partitions=[tf.io.RaggedFeature.UniformRowLength(4)])"
            },
        ),
        (
            Feature("int64", (None, None)),
            {
                "x": 'tf.io.RaggedFeature(tf.int64, value_key="x",'
                ' partitions=[tf.io.RaggedFeature.RowLengths("x_lengths_1")])'
            },
        ),
        (
            Feature("float32", (5,), encoding="sparse"),
            {"x": 'tf.io.SparseFeature("x_index", "x_value", tf.float32, 5)'},
        ),
        (Feature("float64"), {"x": "tf.io.FixedLenFeature([], tf.string)"}),
        (
            Feature("float64", (2,), default=0.0),
            {
                "x": "tf.io.FixedLenFeature([], tf.string,"
                r" default_value=b'\x00\x00\x00\x00\x00\x00\x00\x00' * 2)"
            },
        ),
        (Feature("int64", (0, 3)), {}),
    ],
)
def test_a_feature_is_asked_for_as_the_format_says(
    feature: Feature, expected: dict[str, str]
) -> None:
    assert specs_of(feature) == expected


def test_a_long_default_of_one_number_is_short() -> None:
    (spec,) = specs_of(Feature("float32", (100,), default=1.5)).values()
    assert "tf.fill([100], 1.5).numpy()" in spec


def test_the_name_of_a_sparse_feature_gives_way_to_another_key() -> None:
    feature = Feature("float32", (5,), encoding="sparse")
    assert list(specs_of(feature, others=frozenset({"x"}))) == ["x_value"]


def test_images_and_tensors_of_any_shape_are_read_one_by_one() -> None:
    assert needs_single_records(Feature("uint8", (None, None, 3), encoding="image"))
    assert needs_single_records(Feature("uint8", (None, None, 3), encoding="raw"))
    assert not needs_single_records(Feature("float64", (None, 3)))
    assert not needs_single_records(Feature("int64", (None, None)))


@pytest.mark.parametrize(
    ("feature", "note"),
    [
        (Feature("datetime64[us]"), "microseconds since 1970-01-01, in UTC"),
        (Feature("timedelta64[s]"), "seconds"),
        (Feature("int64", (None,), optional=True), "absent comes out empty"),
        (Feature("int64", (None,), default=(1, 2)), "absent comes out empty; Datum gives [1, 2]"),
        (Feature("int64"), ""),
    ],
)
def test_what_is_to_be_known_is_noted(feature: Feature, note: str) -> None:
    assert read(feature).note == note


def test_palettes_and_tiff_are_noted() -> None:
    mask = Feature("uint8", (None, None, 1), encoding="image")
    assert "palette" in read(mask, is_batched=False).note
    assert read(mask, is_batched=False, formats=("jpeg",)).note == ""
    photo = Feature("uint8", (None, None, 3), encoding="image")
    assert "TIFF" in read(photo, is_batched=False, formats=("tiff",)).note
