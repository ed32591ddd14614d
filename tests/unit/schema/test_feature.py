import json
import math
import re

import numpy as np
import pytest

from datum import Feature, SchemaError
from datum.schema import DTYPES

IN_LISTS = [d for d in DTYPES if d not in ("float64", "complex64", "complex128")]


def test_a_feature_is_a_scalar_that_must_be_there_unless_told():
    feature = Feature("int64")
    assert feature.shape == ()
    assert feature.keys == ()
    assert not feature.sequence
    assert not feature.optional
    assert feature.default is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_dtype_is_stored_in_a_list_if_that_is_exact_and_raw_if_not(dtype):
    assert Feature(dtype).encoding == ("values" if dtype in IN_LISTS else "raw")


def test_a_shape_may_be_any_sequence_of_integers_and_none():
    assert Feature("int8", [2, None], encoding="raw").shape == (2, None)
    assert Feature("int8", (np.int64(2),)).shape == (2,)


def test_a_default_makes_a_feature_optional():
    assert Feature("int64", default=0).optional


def test_features_are_values():
    assert Feature("int64", (2,)) == Feature("int64", [2])
    assert Feature("int64") != Feature("int32")
    assert len({Feature("int64"), Feature("int64")}) == 1


@pytest.mark.parametrize("default", [[1, 2], (1, 2), np.array([1, 2])], ids=repr)
def test_features_with_a_default_are_values_too(default):
    feature = Feature("int64", (2,), default=default)
    assert feature == Feature("int64", (2,), default=[1, 2])
    assert feature != Feature("int64", (2,), default=[1, 3])
    assert len({feature, Feature("int64", (2,), default=default)}) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32"), np.dtype("<f4")])
def test_a_numpy_dtype_is_taken_by_its_name(dtype):
    assert Feature(dtype) == Feature("float32")
    assert Feature(dtype).dtype == "float32"


@pytest.mark.parametrize("dtype", [str, bytes, np.str_, np.bytes_])
def test_types_of_strings_are_taken_too(dtype):
    assert Feature(dtype).is_string


def test_a_default_is_filled_up_to_the_shape():
    assert Feature("int64", (2, 2), default=7) == Feature("int64", (2, 2), default=[[7, 7], [7, 7]])


def test_an_unknown_dtype_is_refused_and_the_nearest_named():
    with pytest.raises(SchemaError, match="got 'flaot32'\nhint: did you mean 'float32'?"):
        Feature("flaot32")
    with pytest.raises(SchemaError, match="^expected a dtype of bool, int8, .*, got 'qqq'$"):
        Feature("qqq")


@pytest.mark.parametrize(
    "dtype", [None, 3, object, "object", "datetime64[Y]", "datetime64", ["int64"]]
)
def test_whatever_is_no_dtype_is_refused(dtype):
    with pytest.raises(SchemaError, match="expected a dtype of"):
        Feature(dtype)


def test_an_image_may_be_of_any_size_and_any_number_of_channels():
    for shape in ((None, None, None), (None, None, 3), (4, 5, 1)):
        feature = Feature("uint16", shape, encoding="image", keys=("image/encoded",))
        assert Feature.from_json(feature.to_json()) == feature
        assert repr(feature) == f"Feature('uint16', {shape}, encoding='image', keys={feature.keys})"


def test_what_lists_cannot_hold_lies_as_raw_bytes():
    for feature in (
        Feature("float64"),
        Feature("uint8", encoding="raw"),
        Feature("float64", (5,), encoding="sparse"),
        Feature("complex64", (None, None), encoding="values"),
    ):
        assert feature.is_raw
    for dtype in ("float32", "int64", "str", "datetime64[us]"):
        assert not Feature(dtype).is_raw


@pytest.mark.parametrize("shape", [3, (1.5,), ("a",), "ab", None])
def test_a_shape_of_anything_but_integers_and_none_is_refused(shape):
    with pytest.raises(SchemaError, match="expected a shape of integers and None, got"):
        Feature("int64", shape)


@pytest.mark.parametrize("shape", [(2**62,), (2**32, 2**32), (None, 2**62), (2**70,)], ids=str)
def test_a_shape_beyond_all_memory_is_refused(shape):
    with pytest.raises(SchemaError, match="expected a shape of at most [0-9]+ values"):
        Feature("int64", shape)


def test_a_negative_length_is_refused():
    with pytest.raises(SchemaError, match=re.escape("without negative numbers, got (-1,)")):
        Feature("int64", (-1,))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (dict(dtype="int64", encoding="row"), "expected an encoding of values, raw, sparse, im"),
        (dict(dtype="float64", encoding="values"), "float64 has no exact list type; use encoding="),
        (dict(dtype="complex64", encoding="values"), "complex64 has no exact list type; use"),
        (dict(dtype="str", encoding="raw"), "strings are stored as values, not raw"),
        (dict(dtype="int8", encoding="sparse"), "needs the length of every dimension"),
        (dict(dtype="int8", shape=(None,), encoding="sparse"), "needs the length of every"),
        (dict(dtype="float64", shape=(None,), encoding="values"), "float64 has no exact list type"),
        (dict(dtype="int8", shape=(1, 1, 1), encoding="image"), "an image is of uint8 or uint16"),
        (dict(dtype="uint8", shape=(None, None), encoding="image"), "(height, width, channels)"),
        (dict(dtype="uint8", shape=(0, 1, 1), encoding="image"), "(height, width, channels)"),
        (
            dict(dtype="uint8", shape=(None, 1, 1), encoding="image", sequence=True),
            "a sequence cannot be image",
        ),
        (
            dict(dtype="uint8", shape=(1, 1, 1), encoding="image", default=1),
            "cannot have a default",
        ),
        (
            dict(dtype="uint8", shape=(1, 1, 1), encoding="image", keys=("a", "b")),
            "expected 1 keys",
        ),
        (dict(dtype="datetime64[s]", default=1), "cannot have a default"),
        (dict(dtype="int8", shape=(3,), encoding="sparse", default=0), "cannot have a default"),
        (dict(dtype="complex64", default=0), "complex features cannot have a default"),
        (dict(dtype="str", shape=(2,), default="a"), "strings can have a default only in shape ()"),
        (
            dict(dtype="float64", shape=(2, None), default=[[1], [2]]),
            "only the first dimension",
        ),
        (dict(dtype="int8", shape=(None, 3), encoding="sparse", sequence=True), "needs the length"),
        (dict(dtype="int8", shape=(3,), encoding="sparse", sequence=True), "cannot be sparse"),
        (dict(dtype="int8", shape=(2, None)), "only leading dimensions of stored values may be"),
        (dict(dtype="int8", shape=(None, 3, None)), "only leading dimensions of stored values"),
        (dict(dtype="int8", shape=(None, 0)), "a ragged feature cannot have rows of no values"),
        (dict(dtype="int8", sequence=True), "a sequence needs None, its steps, as first dimension"),
        (dict(dtype="int8", shape=(3,), sequence=True), "a sequence needs None, its steps"),
        (dict(dtype="int8", shape=(None, None, None), sequence=True), "can have 2 None dimension"),
        (dict(dtype="float64", shape=(None, None), sequence=True), "can have 1 None dimension"),
        (dict(dtype="int8", shape=(None,), sequence=True, default=[1]), "cannot have a default"),
        (dict(dtype="int8", keys=("a", "b")), "expected 1 keys, got ('a', 'b')"),
        (dict(dtype="int8", shape=(None, None), keys=("a",)), "expected 2 keys, got ('a',)"),
        (dict(dtype="int8", shape=(2,), encoding="sparse", keys=("a",)), "expected 2 keys"),
        (dict(dtype="float64", shape=(None, None), keys=("a",)), "expected 2 keys"),
        (dict(dtype="int8", keys=(3,)), "expected 1 keys, got (3,)"),
    ],
    ids=str,
)
def test_what_contradicts_itself_is_refused_and_shown(arguments, problem):
    with pytest.raises(SchemaError, match=re.escape(problem)) as caught:
        Feature(arguments.pop("dtype"), arguments.pop("shape", ()), **arguments)
    assert str(caught.value).startswith("Feature(")


@pytest.mark.parametrize(
    ("dtype", "shape", "default"),
    [
        ("uint8", (), 300),
        ("uint8", (), -1),
        ("int64", (), 2**63),
        ("int64", (), 1.5),
        ("float32", (), 1e300),
        ("float32", (), "a"),
        ("float32", (), ...),
        ("int64", (2,), [1, 2, 3]),
        ("int64", (None,), 1),
        ("str", (), b"bytes"),
        ("str", (), 5),
        ("bytes", (), "text"),
        ("str", (), "\ud800"),
    ],
)
def test_a_default_that_the_feature_cannot_hold_is_refused_at_once(dtype, shape, default):
    with pytest.raises(SchemaError, match="expected"):
        Feature(dtype, shape, default=default)


@pytest.mark.parametrize(
    ("shape", "ragged_rank"), [((), 0), ((2,), 0), ((None,), 1), ((None, 3), 1), ((None, None), 2)]
)
def test_the_ragged_rank_counts_leading_none_dimensions(shape, ragged_rank):
    assert Feature("int64", shape).ragged_rank == ragged_rank


def test_strings_are_told_from_numbers():
    assert Feature("str").is_string
    assert Feature("bytes").is_string
    assert not Feature("uint8").is_string


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        (Feature("int64"), "Feature('int64')"),
        (Feature("float32", (None, 4)), "Feature('float32', (None, 4))"),
        (Feature("float64", (2,)), "Feature('float64', (2,))"),
        (Feature("uint8", (2,), encoding="raw"), "Feature('uint8', (2,), encoding='raw')"),
        (Feature("str", (9,), encoding="sparse"), "Feature('str', (9,), encoding='sparse')"),
        (Feature("int8", (None,), sequence=True), "Feature('int8', (None,), sequence=True)"),
        (Feature("int8", optional=True), "Feature('int8', optional=True)"),
        (Feature("int8", keys=("a",)), "Feature('int8', keys=('a',))"),
    ],
)
def test_repr_shows_what_differs_from_the_default(feature, text):
    assert repr(feature) == text
    assert eval(text) == feature


FEATURES = [
    Feature("int64"),
    Feature("float64", (None, None, 3)),
    Feature("uint8", (None, 3), encoding="raw", optional=True),
    Feature("str", (None, None), sequence=True),
    Feature("bfloat16", (4, 5), encoding="sparse", keys=("i", "j", "v")),
    Feature("int64", default=7),
    Feature("int64", default=0),
    Feature("float32", default=0.0),
    Feature("bool", default=False),
    Feature("float32", (2,), default=[0.5, -math.inf]),
    Feature("int32", (2, 2), default=np.arange(4).reshape(2, 2)),
    Feature("int16", (None,), default=[]),
    Feature("float16", default=np.float16(0.5)),
    Feature("uint64", default=2**64 - 1),
    Feature("str", default=""),
    Feature("str", default="grün"),
    Feature("bytes", default=b""),
    Feature("bytes", default=b"\xff\x00"),
]


@pytest.mark.parametrize("feature", FEATURES, ids=repr)
def test_json_brings_back_the_same_feature(feature):
    assert Feature.from_json(json.loads(json.dumps(feature.to_json()))) == feature


def test_json_brings_back_a_default_of_nan():
    feature = Feature("float32", default=math.nan)
    found = Feature.from_json(json.loads(json.dumps(feature.to_json())))
    assert found.optional
    assert math.isnan(found.default)


def test_json_leaves_out_what_stands_at_its_default():
    assert Feature("int64").to_json() == {"dtype": "int64", "shape": [], "encoding": "values"}


@pytest.mark.parametrize(
    "found",
    [{}, {"shape": []}, {"dtype": "int64", "size": 3}, {"dtype": "int64", "shape": 3}],
)
def test_json_that_is_no_feature_is_refused(found):
    with pytest.raises(SchemaError, match=re.escape(f"a feature as JSON, got {found}")):
        Feature.from_json(found)


@pytest.mark.parametrize(
    "found",
    [
        {"dtype": None},
        {"dtype": "int64", "shape": [None, "a"]},
        {"dtype": "int64", "keys": 3},
        {"dtype": "int64", "encoding": 3},
        {"dtype": "int64", "default": {}},
    ],
    ids=str,
)
def test_json_of_wrong_types_is_a_schema_error(found):
    with pytest.raises(SchemaError, match="expected"):
        Feature.from_json(found)
