from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st

from datum import Feature, Schema, SchemaError
from datum._frameworks.tensorflow.parse import (
    GraphParser,
    cast_listed,
    decode_each,
    decode_joined,
    tensor_dtype,
)
from datum._load.options import present_name
from datum.format import encode, parse
from datum.schema import DTYPES
from datum.schema.feature import STRINGS, TIMES
from tests.contract.oracle import make_example, make_sequence_example
from tests.contract.strategies import examples, numpy_type
from tests.unit.frameworks.tensorflow.agreement import (
    assert_agrees,
    damaged,
    parse_eagerly,
    parse_in_dataset,
    storable,
    tables,
)

RECORDS = tf.TensorSpec((None,), tf.string)


@examples(15)
@given(tables(rows=st.integers(0, 5)), st.booleans())
def test_records_are_read_as_the_native_parser_reads_them(
    table: tuple[Schema, list[Any]], is_trusted: bool
) -> None:
    schema, rows = table
    payloads = list(encode(rows, storable(schema)))
    assert_agrees(schema, payloads, parse_eagerly(schema, payloads, is_trusted=is_trusted))


@examples(5)
@given(tables(rows=st.integers(1, 4)), st.booleans())
def test_batches_of_a_dataset_are_as_its_spec_says(
    table: tuple[Schema, list[Any]], drop_remainder: bool
) -> None:
    schema, rows = table
    payloads = list(encode(rows, storable(schema)))
    spec, batch = parse_in_dataset(schema, payloads, drop_remainder=drop_remainder)
    assert_agrees(schema, payloads, batch)
    for name, found in spec.items():
        assert found.is_compatible_with(batch[name]), name
        assert found.shape[0] == (len(rows) if drop_remainder else None)


@examples(30)
@given(st.data())
def test_records_that_do_not_fit_are_refused_if_the_native_parser_refuses_them(data: Any) -> None:
    schema, rows = data.draw(tables(rows=st.integers(1, 3)))
    payloads = list(encode(rows, storable(schema)))
    at = data.draw(st.integers(0, len(payloads) - 1))
    payloads[at] = data.draw(damaged(schema, payloads[at]))
    try:
        parse(payloads, schema)
    except SchemaError as error:
        assume("UTF-8" not in str(error))  # which the graph does not look at
        with pytest.raises(tf.errors.InvalidArgumentError):
            parse_eagerly(schema, payloads)
    else:
        assert_agrees(schema, payloads, parse_eagerly(schema, payloads))


def _ragged(shape: tuple[int | None, ...], dtype: Any, ragged_rank: int) -> Any:
    return tf.RaggedTensorSpec(shape, dtype, ragged_rank, tf.int64)


SPECS: list[tuple[Feature, Any]] = [
    (Feature("float32", (2, 3)), lambda n: tf.TensorSpec((n, 2, 3), tf.float32)),
    (Feature("datetime64[s]"), lambda n: tf.TensorSpec((n,), tf.int64)),
    (Feature("uint64", optional=True), lambda n: tf.TensorSpec((n,), tf.uint64)),
    (Feature("str", (0, 2)), lambda n: tf.TensorSpec((n, 0, 2), tf.string)),
    (Feature("float64", (4,)), lambda n: tf.TensorSpec((n, 4), tf.float64)),
    (Feature("bool", (4,), encoding="raw"), lambda n: tf.TensorSpec((n, 4), tf.bool)),
    (
        Feature("uint8", (None, None, 3), encoding="image"),
        lambda n: tf.TensorSpec((n,), tf.string),
    ),
    (Feature("int32", (None,)), lambda n: _ragged((n, None), tf.int32, 1)),
    (Feature("int64", (None, 4)), lambda n: _ragged((n, None, 4), tf.int64, 1)),
    (Feature("int64", (None,), default=[1]), lambda n: _ragged((n, None), tf.int64, 1)),
    (Feature("str", (None, None, 2)), lambda n: _ragged((n, None, None, 2), tf.string, 2)),
    (Feature("complex64", (None, 2)), lambda n: _ragged((n, None, 2), tf.complex64, 1)),
    (
        Feature("float64", (None, None, 2), encoding="values"),
        lambda n: _ragged((n, None, None, 2), tf.float64, 2),
    ),
    (
        Feature("uint8", (None, None, 3), encoding="raw"),
        lambda n: _ragged((n, None, None, 3), tf.uint8, 2),
    ),
    (
        Feature("int8", (2, None, 3), encoding="raw"),
        lambda n: _ragged((n, 2, None, 3), tf.int8, 2),
    ),
    (Feature("int64", (None, 2), sequence=True), lambda n: _ragged((n, None, 2), tf.int64, 1)),
    (
        Feature("float64", (None, 2), sequence=True),
        lambda n: _ragged((n, None, 2), tf.float64, 1),
    ),
    (
        Feature("float16", (None, None), sequence=True),
        lambda n: _ragged((n, None, None), tf.float16, 2),
    ),
    (
        Feature("float64", (5, 6), encoding="sparse"),
        lambda n: tf.SparseTensorSpec((n, 5, 6), tf.float64),
    ),
]


@pytest.mark.parametrize("rows", [7, None])
@pytest.mark.parametrize("is_sequence", [False, True])
def test_static_shapes_tell_all_that_the_schema_tells(rows: int | None, is_sequence: bool) -> None:
    chosen = {
        f"x{at}": (feature, make_spec(rows))
        for at, (feature, make_spec) in enumerate(SPECS)
        if feature.sequence == is_sequence
    }
    assert len(chosen) > 2
    parser = GraphParser(Schema({name: feature for name, (feature, _) in chosen.items()}))
    records = tf.data.Dataset.from_tensors("").repeat().batch(7, drop_remainder=rows is not None)
    found = records.map(parser.parse).element_spec
    for name, (feature, spec) in chosen.items():
        assert found[name] == spec, feature
        if feature.optional and feature.default is None:
            assert found[f"{name}_present"] == tf.TensorSpec((rows,), tf.bool)


def _op_types(schema: dict[str, Feature], **options: Any) -> set[str]:
    parser = GraphParser(Schema(schema), **options)
    traced = tf.function(parser.parse, input_signature=[RECORDS]).get_concrete_function()
    return {node.op for node in traced.graph.as_graph_def().node}


def test_features_of_the_types_that_lists_have_cost_one_op_for_all() -> None:
    schema = {
        "float": Feature("float32"),
        "vector": Feature("float32", (64,)),
        "time": Feature("timedelta64[us]"),
        "text": Feature("str"),
        "blank": Feature("int64", default=-1),
        "list": Feature("int64", (None,)),
    }
    found = _op_types(schema, is_trusted=True)
    assert found == {"Placeholder", "Const", "ParseExampleV2", "Identity"}


def test_nothing_runs_once_for_each_record() -> None:
    schema = {
        "nested": Feature("float64", (None, None), encoding="values", optional=True),
        "shaped": Feature("uint8", (None, None), encoding="raw", optional=True),
        "sparse": Feature("float64", (3, 4), encoding="sparse"),
        "small": Feature("uint8", optional=True),
        "half": Feature("float16", (None,), default=[1.0]),
        "steps": Feature("int8", (None, None), sequence=True, optional=True),
    }
    loops = {"While", "StatelessWhile", "PyFunc", "EagerPyFunc", "MapDataset"}
    assert not _op_types(schema) & loops


def test_a_batch_is_the_same_eagerly_traced_and_saved(tmp_path: Path) -> None:
    schema = Schema(
        {
            "list": Feature("int8", (None,), optional=True),
            "sparse": Feature("float64", (3,), encoding="sparse"),
            "steps": Feature("str", (None,), sequence=True),
        }
    )
    rows = [
        {"list": [], "sparse": ([2, 0], [1.0, 2.0]), "steps": ["a", "b"]},
        {"list": None, "sparse": ([], []), "steps": []},
    ]
    payloads = list(encode(rows, schema))
    module = tf.Module()
    module.parse = tf.function(GraphParser(schema).parse, input_signature=[RECORDS])
    assert_agrees(schema, payloads, module.parse(tf.constant(payloads)))
    tf.saved_model.save(module, str(tmp_path / "saved"))
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    batch = loaded.parse(tf.constant(payloads))
    names = ["list", "list_present", "sparse", "steps"]
    assert_agrees(schema, payloads, {name: batch[name] for name in names})


MISSING = {
    "a number": Feature("int64"),
    "a vector": Feature("float32", (3,)),
    "an array": Feature("float64", (3,)),
    "an array of any length": Feature("float64", (None,)),
    "an image": Feature("uint8", (None, None, 3), encoding="image"),
    "a list": Feature("str", (None,)),
    "nothing": Feature("str", (0,)),
    "a nested list": Feature("int64", (None, None), keys=("other", "key")),
    "a shape": Feature("uint8", (None, None), encoding="raw", keys=("other", "key")),
}


@pytest.mark.parametrize("feature", MISSING.values(), ids=MISSING)
@pytest.mark.parametrize("rows", [1, 40])
def test_a_record_that_misses_a_feature_is_an_error_that_names_the_key(
    feature: Feature, rows: int
) -> None:
    found = Feature.from_json({**feature.to_json(), "keys": list(feature.keys or ("key",))})
    lacking = tf.train.Example()
    lacking.features.feature["other"].int64_list.value.extend([] if rows == 1 else [0])
    if feature.encoding == "raw":
        lacking.features.feature["other"].bytes_list.value.append(b"")
    payloads = [lacking.SerializeToString()] * rows
    with pytest.raises(tf.errors.InvalidArgumentError, match="Feature: key .* is required"):
        parse_eagerly(Schema({"x": found}), payloads)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Feature: key .* is required"):
        parse_in_dataset(Schema({"x": found}), payloads)


@pytest.mark.parametrize("shape", [(None,), (None, None)])
def test_a_record_that_misses_a_sequence_is_an_error_that_names_the_key(shape: Any) -> None:
    schema = Schema({"x": Feature("int64", shape, sequence=True)})
    payloads = [tf.train.SequenceExample().SerializeToString()] * 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="Feature list 'x' is required"):
        parse_eagerly(schema, payloads)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Feature list 'x' is required"):
        parse_in_dataset(schema, payloads)


def test_an_optional_number_without_a_value_is_an_error_in_a_dataset_too() -> None:
    schema = Schema({"x": Feature("int64", optional=True)})
    example = tf.train.Example()
    example.features.feature["x"].int64_list.SetInParent()
    with pytest.raises(tf.errors.InvalidArgumentError, match="Key: x"):
        parse_in_dataset(schema, [example.SerializeToString()])


def test_a_trusted_record_is_not_searched_for_what_it_lacks() -> None:
    schema = Schema({"x": Feature("int64", (None,)), "y": Feature("int64", optional=True)})
    example = tf.train.Example()
    example.features.feature["y"].int64_list.SetInParent()
    batch = parse_eagerly(schema, [example.SerializeToString()], is_trusted=True)
    assert batch["x"].to_list() == [[]]
    assert not batch["y_present"][0]


def test_columns_stand_in_the_order_of_the_schema_each_with_what_tells_of_it() -> None:
    schema = Schema(
        {
            "b": Feature("int64", optional=True),
            "a": Feature("str", optional=True, default=""),
            "s": Feature("int64", (3,), encoding="sparse", optional=True),
        }
    )
    batch = parse_eagerly(schema, [])
    assert list(batch) == ["b", "b_present", "a", "s", "s_present"]
    assert [present_name(name, schema[name]) for name in schema] == ["b_present", None, "s_present"]


def test_a_feature_named_like_a_column_of_presence_is_refused() -> None:
    schema = Schema({"x": Feature("int64", optional=True), "x_present": Feature("bool")})
    with pytest.raises(
        SchemaError, match="'x_present' marks the records.*\nhint: set a default for 'x'"
    ):
        GraphParser(schema)


def test_two_features_under_one_key_are_refused() -> None:
    schema = Schema({"x": Feature("int64"), "y": Feature("int64", keys="x")})
    with pytest.raises(SchemaError, match="use the same key 'x'"):
        GraphParser(schema)


def test_records_in_other_than_one_dimension_are_refused() -> None:
    with pytest.raises(ValueError, match="one dimension, got"):
        GraphParser(Schema({"x": Feature("int64")})).parse(tf.constant("record"))


def test_a_schema_without_features_makes_no_columns() -> None:
    assert GraphParser(Schema({})).parse(tf.constant(["", ""])) == {}


def test_bytes_that_are_no_message_are_an_error() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse"):
        parse_eagerly(Schema({"x": Feature("int64", optional=True)}), [b"abc"])


def test_many_records_are_read_as_the_native_parser_reads_them() -> None:
    schema = Schema(
        {
            "id": Feature("int64"),
            "tags": Feature("str", (None,), optional=True),
            "pixels": Feature("uint8", (None, None), encoding="raw"),
            "weight": Feature("float64", optional=True),
        }
    )
    rng = np.random.default_rng(0)
    rows = [
        {
            "id": i,
            "tags": [None, [], ["a", "b"]][i % 3],
            "pixels": rng.integers(0, 256, rng.integers(0, 5, 2), np.uint8),
            "weight": None if i % 7 else i / 3,
        }
        for i in range(3000)
    ]
    payloads = list(encode(rows, schema))
    assert_agrees(schema, payloads, parse_in_dataset(schema, payloads)[1])


REFUSED = tf.errors.InvalidArgumentError


def _parse(feature: Feature, *contexts: dict[str, Any]) -> Any:
    payloads = [make_example(context) for context in contexts]
    return parse_eagerly(Schema({"x": feature}), payloads)["x"]


NESTED = Feature("int64", (None, None))


def test_nested_lists_are_cut_by_their_row_lengths() -> None:
    first = {"x": ("int64", [7, 8, 9]), "x_lengths_1": ("int64", [1, 0, 2])}
    second = {"x": ("int64", []), "x_lengths_1": ("int64", [0])}
    found = _parse(NESTED, first, second)
    assert found.to_list() == [[[7], [], [8, 9]], [[]]]


@pytest.mark.parametrize("lengths", [[2], [4], [-1, 4], [2**62, 2**62, 2**62, 2**62, 3], []])
def test_row_lengths_that_do_not_sum_to_the_values_are_refused(lengths: list[int]) -> None:
    context = {"x": ("int64", [7, 8, 9]), "x_lengths_1": ("int64", lengths)}
    with pytest.raises(REFUSED, match="feature `x`: expected row lengths that add up"):
        _parse(NESTED, context)


def test_row_lengths_that_only_sum_to_the_values_of_all_records_are_refused() -> None:
    first = {"x": ("int64", [7, 8]), "x_lengths_1": ("int64", [1])}
    second = {"x": ("int64", [9]), "x_lengths_1": ("int64", [2])}
    with pytest.raises(REFUSED, match="feature `x`: expected row lengths that add up"):
        _parse(NESTED, first, second)


def test_values_that_only_fill_the_rows_of_all_records_together_are_refused() -> None:
    feature = Feature("int64", (None, 2))
    with pytest.raises(REFUSED, match="feature `x`: expected a multiple of 2 values"):
        _parse(feature, {"x": ("int64", [1, 2, 3])}, {"x": ("int64", [4])})


SHAPED = Feature("uint8", (None, 2, None), encoding="raw")


def test_tensors_have_the_shape_that_lies_beside_them() -> None:
    arrays = [np.arange(12).reshape(2, 2, 3), np.zeros((0, 2, 5)), np.zeros((1, 2, 0))]
    schema = Schema({"x": SHAPED})
    payloads = list(encode([{"x": array.astype(np.uint8)} for array in arrays], schema))
    found = parse_eagerly(schema, payloads)["x"]
    assert found.to_list() == [array.tolist() for array in arrays]
    assert found.shape == (3, None, 2, None)


@pytest.mark.parametrize(
    "shape",
    [[1, 2, 4], [1, 2], [1, 2, 3, 1], [1, 3, 2], [-1, 2, -3], [2**31, 2, 0], [2**30, 2, 2**33]],
)
def test_shapes_that_do_not_hold_all_items_are_refused(shape: list[int]) -> None:
    context = {"x": ("bytes", [bytes(6)]), "x_shape": ("int64", shape)}
    with pytest.raises(REFUSED, match="feature `x`: expected a shape .* of all items"):
        _parse(SHAPED, context)


@pytest.mark.parametrize("shape", [[2**31 - 1, 2, 2**31 - 1], [2**31 - 1] * 3])
def test_shapes_whose_product_overflows_are_refused(shape: list[int]) -> None:
    feature = Feature("uint8", (None, None, None), encoding="raw")
    wrapped = np.prod(np.array(shape, np.int64)).item() % 100
    context = {"x": ("bytes", [bytes(wrapped)]), "x_shape": ("int64", shape)}
    with pytest.raises(REFUSED, match="of all items"):
        _parse(feature, context)


SPARSE = Feature("float32", (3, 4), encoding="sparse")


def _sparse(rows: list[int], columns: list[int], values: list[float]) -> dict[str, Any]:
    return {
        "x_index_0": ("int64", rows),
        "x_index_1": ("int64", columns),
        "x_value": ("float", values),
    }


def test_sparse_values_are_sorted_and_equal_places_stay_in_order() -> None:
    count = 40  # more than a sort that is not stable leaves alone
    places = [2] * count + [0]
    values = [float(i) for i in range(count + 1)]
    found = _parse(SPARSE, {}, _sparse(places, [1] * (count + 1), values))
    assert found.values.numpy().tolist() == [float(count), *values[:-1]]
    assert found.indices.numpy().tolist() == [[1, 0, 1]] + [[1, 2, 1]] * count
    assert found.dense_shape.numpy().tolist() == [2, 3, 4]


@pytest.mark.parametrize("places", [([3], [0]), ([0], [4]), ([-1], [0])])
def test_indices_outside_of_the_shape_are_refused(places: Any) -> None:
    with pytest.raises(REFUSED, match="feature `x`: expected indices within"):
        _parse(SPARSE, _sparse(*places, [1.0]))


@pytest.mark.parametrize(
    "context",
    [
        _sparse([0], [0, 1], [1.0]),
        _sparse([0, 1], [0, 1], [1.0]),
        _sparse([0], [0], []),
        {"x_value": ("float", [1.0])},
    ],
)
def test_another_number_of_indices_than_values_is_refused(context: dict[str, Any]) -> None:
    with pytest.raises(REFUSED, match="feature `x`: expected an index for each value"):
        _parse(SPARSE, context)


def test_indices_that_only_match_the_values_of_all_records_are_refused() -> None:
    contexts = _sparse([0], [0], [1.0, 2.0]), _sparse([0, 1], [0, 1], [1.0])
    with pytest.raises(REFUSED, match="feature `x`: expected an index for each value"):
        _parse(SPARSE, *contexts)


def test_a_default_fills_absent_lists_and_leaves_empty_ones() -> None:
    feature = Feature("uint8", (None, 2), default=[[1, 2], [3, 4]])
    contexts: list[dict[str, Any]] = [{}, {"x": ("int64", [])}, {"x": ("int64", [5, 6])}, {}]
    default = [[1, 2], [3, 4]]
    assert _parse(feature, *contexts).to_list() == [default, [], [[5, 6]], default]


def test_a_default_of_a_large_unsigned_number_is_kept() -> None:
    found = _parse(Feature("uint64", (2,), default=[2**64 - 1, 3]), {})
    assert found.numpy().tolist() == [[2**64 - 1, 3]]


def test_a_shape_without_values_must_have_none() -> None:
    feature = Feature("int64", (2, 0))
    assert _parse(feature, {"x": ("int64", [])}).shape == (1, 2, 0)
    with pytest.raises(REFUSED, match="feature `x`: expected 0 values"):
        _parse(feature, {"x": ("int64", [1])})


@pytest.mark.parametrize("steps", [[("int64", [1])], [("int64", [1, 2]), ("int64", [])], [None]])
def test_steps_of_another_number_of_values_are_refused(steps: Any) -> None:
    schema = Schema({"x": Feature("int64", (None, 2), sequence=True)})
    payload = make_sequence_example({}, {"x": steps})
    with pytest.raises(REFUSED, match="feature `x`: expected 2 value.* in every step"):
        parse_eagerly(schema, [payload])


def test_context_and_lists_of_a_record_are_read_together() -> None:
    schema = Schema(
        {
            "words": Feature("str", (None, None), sequence=True),
            "id": Feature("int32"),
            "boxes": Feature("float64", (None, 2), sequence=True),
            "sparse": Feature("float32", (5,), encoding="sparse"),
        }
    )
    rows = [
        {
            "words": [["a"], [], ["b", "c"]],
            "id": 4,
            "boxes": [[1.0, 2.0]],
            "sparse": ([3], [0.5]),
        }
    ]
    found = parse_eagerly(schema, list(encode(rows, schema)))
    assert found["words"].to_list() == [[[b"a"], [], [b"b", b"c"]]]
    assert found["id"].numpy().tolist() == [4]
    assert found["boxes"].to_list() == [[[1.0, 2.0]]]
    assert tf.sparse.to_dense(found["sparse"]).numpy().tolist() == [[0, 0, 0, 0.5, 0]]


REFUSED_NUMBERS = tf.errors.InvalidArgumentError


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name not in (*STRINGS, *TIMES)])
def test_numbers_have_the_same_type_in_tensorflow(dtype: str) -> None:
    assert tensor_dtype(Feature(dtype)).name == dtype


@pytest.mark.parametrize("dtype", ["datetime64[D]", "timedelta64[ns]"])
def test_times_are_counts_of_their_unit(dtype: str) -> None:
    stored = tf.constant([-(2**63), 3], tf.int64)
    assert cast_listed("x", Feature(dtype), stored) is stored


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "bool"]
)
def test_integers_at_the_ends_of_their_range_are_kept(dtype: str) -> None:
    ends = [0, 1] if dtype == "bool" else [np.iinfo(dtype).min, np.iinfo(dtype).max]
    stored = tf.constant(np.array(ends, dtype).astype(np.int64))
    found = cast_listed("x", Feature(dtype), stored)
    assert found.numpy().tolist() == ends
    assert found.dtype.name == dtype


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("int8", -129),
        ("int16", 2**15),
        ("int32", 2**40),
        ("uint8", 256),
        ("uint32", -1),
        ("bool", 2),
        ("bool", -1),
    ],
)
def test_integers_outside_of_their_range_are_refused(dtype: str, number: int) -> None:
    with pytest.raises(REFUSED_NUMBERS, match=f"feature `x`: expected {dtype}"):
        cast_listed("x", Feature(dtype), tf.constant([0, number], tf.int64))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_float_of_two_bytes_comes_back_from_its_list(dtype: str) -> None:
    every = np.arange(2**16).astype(np.uint16).view(numpy_type(dtype))
    found = cast_listed("x", Feature(dtype), tf.constant(_widened(every)))
    assert found.numpy().tobytes() == every.tobytes()


def _widened(narrow: Any) -> Any:
    """As float32, with the bits of NaNs where they are."""
    if narrow.dtype == ml_dtypes.bfloat16:
        return (narrow.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return narrow.astype(np.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_floats_are_rounded_but_not_to_infinity(dtype: str) -> None:
    rounded = cast_listed("x", Feature(dtype), tf.constant([0.1, np.inf]))
    assert rounded.numpy().tolist() == np.array([0.1, np.inf], numpy_type(dtype)).tolist()
    with pytest.raises(REFUSED_NUMBERS, match=f"expected {dtype}, got a number outside"):
        cast_listed("x", Feature(dtype), tf.constant([3.4028234663852886e38]))


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name not in STRINGS])
def test_raw_bytes_are_little_endian_items(dtype: str) -> None:
    kind = numpy_type(dtype)
    raw = bytes(i % 2 for i in range(6 * kind.itemsize))
    items = np.frombuffer(raw, kind)
    feature = Feature(dtype, encoding="raw")
    half = len(raw) // 2
    rows = decode_each("x", feature, tf.constant([raw[:half], raw[half:]]), half)
    assert rows.shape == (2, 3)
    assert rows.numpy().tobytes() == raw
    assert rows.dtype == tensor_dtype(feature)
    cut = 2 * kind.itemsize
    joined, lengths = decode_joined(
        "x", feature, tf.constant([raw[:cut], b"", raw[cut:]]), kind.itemsize
    )
    assert joined.numpy().tobytes() == items.tobytes()
    assert lengths.numpy().tolist() == [2, 0, 4]


def test_raw_bytes_of_no_records_are_no_items() -> None:
    none = tf.constant([], tf.string)
    assert decode_each("x", Feature("float64"), none, 8).shape[0] == 0
    items, lengths = decode_joined("x", Feature("float64"), none, 8)
    assert items.shape == lengths.shape == (0,)


@pytest.mark.parametrize("raw", [[bytes(8), bytes(4)], [bytes(4), bytes(4)], [bytes(16)], [b""]])
def test_raw_bytes_of_another_length_are_refused(raw: list[bytes]) -> None:
    with pytest.raises(REFUSED_NUMBERS, match="feature `x`: expected 8 bytes of float64"):
        decode_each("x", Feature("float64"), tf.constant(raw), 8)


def test_raw_bytes_that_end_within_an_item_are_refused_even_if_they_add_up() -> None:
    with pytest.raises(
        REFUSED_NUMBERS, match="feature `x`: expected a multiple of 8 bytes of float64"
    ):
        decode_joined("x", Feature("float64"), tf.constant([bytes(12), bytes(4)]), 8)


def test_raw_bytes_other_than_0_and_1_are_no_bool() -> None:
    feature = Feature("bool", encoding="raw")
    with pytest.raises(REFUSED_NUMBERS, match="feature `x`: expected bytes 0 and 1"):
        decode_each("x", feature, tf.constant([b"\2"]), 1)
