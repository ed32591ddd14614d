from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st

from datum import Feature, Schema, SchemaError
from datum.format import encode, parse
from datum.frameworks.tensorflow.parse import GraphParser
from datum.loading.options import present_name
from tests.contract.strategies import examples
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
    with pytest.raises(SchemaError, match="'x_present' tells which records.*\nhint: give 'x'"):
        GraphParser(schema)


def test_two_features_under_one_key_are_refused() -> None:
    schema = Schema({"x": Feature("int64"), "y": Feature("int64", keys="x")})
    with pytest.raises(SchemaError, match="both lie under the key 'x'"):
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
