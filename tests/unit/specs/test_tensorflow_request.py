"""The facts about a feature that generated code depends on."""

from __future__ import annotations

from datum import Feature
from datum.specs.tensorflow_code import FeatureRequest


def request(
    feature: Feature, *, in_sequences: bool = False, is_batched: bool = True
) -> FeatureRequest:
    return FeatureRequest("x", feature, is_batched=is_batched, in_sequences=in_sequences)


def test_the_list_and_the_elements_have_their_own_types() -> None:
    one = request(Feature("bfloat16"))
    assert (one.kind, one.dtype) == ("tf.float32", "tf.bfloat16")
    assert request(Feature("float64")).kind == "tf.string"
    assert request(Feature("datetime64[us]")).dtype == "tf.int64"
    assert request(Feature("str")).dtype == "tf.string"


def test_what_was_parsed_lies_where_the_message_has_it() -> None:
    assert request(Feature("int64")).found() == 'parsed["x"]'
    assert request(Feature("int64"), in_sequences=True).found() == 'context["x"]'
    steps = Feature("int64", (None,), sequence=True)
    assert request(steps, in_sequences=True).found() == 'lists["x"]'


def test_shapes_have_the_records_in_front_where_there_are_many() -> None:
    feature = Feature("float64", (None, 3))
    assert request(feature).shape(None, 3) == "[-1, -1, 3]"
    assert request(feature, is_batched=False).shape(None, 3) == "[-1, 3]"
    assert request(feature).inner == (3,)


def test_only_what_has_no_default_is_doubtful() -> None:
    assert request(Feature("int64", optional=True)).is_doubtful
    assert not request(Feature("int64", default=0)).is_doubtful
    assert not request(Feature("int64")).is_doubtful
