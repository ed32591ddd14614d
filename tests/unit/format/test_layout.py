import pytest

from datum import Feature, Schema, SchemaError
from datum._core import Cell, Kind, Layout
from datum.format.layout import check_keys, lower


def keys_and_roles(feature: Feature) -> list[tuple[str, str]]:
    return [(column.key, column.role) for column in lower("x", feature)]


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Feature("int64"), [("x", "values")]),
        (Feature("int64", (None,)), [("x", "values")]),
        (Feature("int8", (None, None)), [("x", "values"), ("x_lengths_1", "lengths")]),
        (
            Feature("str", (None, None, None, 2)),
            [("x", "values"), ("x_lengths_1", "lengths"), ("x_lengths_2", "lengths")],
        ),
        (Feature("int8", (None, None), sequence=True), [("x", "values")]),
        (Feature("float64", (None, 3)), [("x", "values")]),
        (Feature("float64", (None, None)), [("x", "values"), ("x_shape", "shape")]),
        (Feature("float64", (2, None)), [("x", "values"), ("x_shape", "shape")]),
        (Feature("int8", (9,), encoding="sparse"), [("x_value", "values"), ("x_index", "index")]),
        (
            Feature("int8", (9, 9), encoding="sparse"),
            [("x_value", "values"), ("x_index_0", "index"), ("x_index_1", "index")],
        ),
        (Feature("int8", keys=("k",)), [("k", "values")]),
        (Feature("int8", (None, None), keys=("k", "n")), [("k", "values"), ("n", "lengths")]),
        (Feature("float64", (None, None), keys=("k", "s")), [("k", "values"), ("s", "shape")]),
        (Feature("float64", keys=("k",)), [("k", "values")]),
        (
            Feature("float64", (None, None), encoding="values"),
            [("x", "values"), ("x_lengths_1", "lengths")],
        ),
        (Feature("uint8", (None, None, 3), encoding="image"), [("x", "values")]),
        (Feature("uint8", (9, 9, 3), encoding="image", keys=("k",)), [("k", "values")]),
        (
            Feature("int8", (9, 9), encoding="sparse", keys=("i", "j", "v")),
            [("v", "values"), ("i", "index"), ("j", "index")],
        ),
    ],
    ids=repr,
)
def test_a_feature_lies_under_these_keys(feature, expected):
    assert keys_and_roles(feature) == expected


@pytest.mark.parametrize(
    ("feature", "kind", "layout", "cell", "unit"),
    [
        (Feature("bool"), Kind.INT64, Layout.FIXED, Cell.BOOL, 1),
        (Feature("uint16", (2, 3)), Kind.INT64, Layout.FIXED, Cell.UINT16, 6),
        (Feature("float16", (None, 3)), Kind.FLOAT, Layout.VARIABLE, Cell.FLOAT32, 3),
        (Feature("bfloat16"), Kind.FLOAT, Layout.FIXED, Cell.FLOAT32, 1),
        (Feature("str", (4,)), Kind.BYTES, Layout.FIXED, Cell.SLICE, 4),
        (Feature("float64", (2,)), Kind.BYTES, Layout.FIXED, Cell.RAW, 16),
        (Feature("datetime64[us]", (2,)), Kind.INT64, Layout.FIXED, Cell.INT64, 2),
        (
            Feature("uint16", (None, None, 3), encoding="image"),
            *(Kind.BYTES, Layout.FIXED, Cell.SLICE, 1),
        ),
        (
            Feature("float64", (None, None, 2), encoding="values"),
            *(Kind.BYTES, Layout.VARIABLE, Cell.RAW, 16),
        ),
        (
            Feature("float64", (9,), encoding="sparse"),
            *(Kind.BYTES, Layout.VARIABLE, Cell.RAW, 8),
        ),
        (Feature("complex64", (None, 2)), Kind.BYTES, Layout.VARIABLE, Cell.RAW, 16),
        (Feature("int8", (None, 2), sequence=True), Kind.INT64, Layout.STEPS, Cell.INT8, 2),
        (
            Feature("int8", (None, None), sequence=True),
            Kind.INT64,
            Layout.NESTED_STEPS,
            Cell.INT8,
            1,
        ),
        (Feature("float64", (None, 2), sequence=True), Kind.BYTES, Layout.STEPS, Cell.RAW, 16),
    ],
    ids=repr,
)
def test_values_are_stored_as(feature, kind, layout, cell, unit):
    column = lower("x", feature)[0]
    assert (column.kind, column.layout, column.cell, column.unit) == (kind, layout, cell, unit)


@pytest.mark.parametrize(
    "features",
    [
        {"x": Feature("int8"), "y": Feature("int8", keys=("x",))},
        {"x": Feature("int8", (9,), encoding="sparse"), "x_index": Feature("int64")},
        {"x": Feature("int8", (None, None)), "x_lengths_1": Feature("int64")},
    ],
    ids=list,
)
def test_two_features_under_one_key_are_refused(features):
    one, other = features
    key = "x" if other == "y" else other
    with pytest.raises(SchemaError) as caught:
        check_keys(Schema(features))
    assert str(caught.value) == (
        f"features {one!r} and {other!r} both lie under the key {key!r}\n"
        "hint: rename one, or give it other `keys`"
    )


def test_one_key_twice_in_a_feature_is_refused():
    feature = Feature("int8", (9,), encoding="sparse", keys=("k", "k"))
    with pytest.raises(SchemaError, match="'k'"):
        check_keys(Schema({"x": feature}))


def test_context_and_sequence_may_share_a_key():
    features = {"x": Feature("int8"), "y": Feature("int8", (None,), sequence=True, keys=("x",))}
    check_keys(Schema(features))
