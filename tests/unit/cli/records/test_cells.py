import numpy as np
import pytest

from datum import DatumError, Feature, Schema, SchemaError, Sparse
from datum.cli.record_values import cells_of
from datum.format import encode


def payload(row, schema=None):
    return next(iter(encode([row], schema)))


def test_features_come_with_values_and_class_names():
    schema = Schema({"label": Feature("int64"), "text": Feature("str")})
    label, text = cells_of(
        payload({"label": 1, "text": "x"}, schema),
        schema,
        metadata={"label": {"class_names": ["cat", "dog"]}},
    )
    assert (label.name, int(label.value), list(label.class_names)) == ("label", 1, ["cat", "dog"])
    assert (text.value, list(text.class_names)) == ("x", [])


def test_values_of_each_kind_are_those_of_one_record():
    schema = Schema(
        {
            "ragged": Feature("int64", (None,)),
            "nested": Feature("int64", (None, None)),
            "words": Feature("str", (None,)),
            "sparse": Feature("float32", (5,), encoding="sparse"),
            "absent": Feature("int64", optional=True),
        }
    )
    row = {"ragged": [1, 2], "nested": [[1], []], "words": ["a"]}
    row["sparse"] = Sparse(np.array([[2]]), np.array([1.5], np.float32), (5,))
    ragged, nested, words, sparse, absent = cells_of(payload(row, schema), schema)
    assert ragged.value.tolist() == [1, 2]
    assert [part.tolist() for part in nested.value] == [[1], []]
    assert words.value == ["a"]
    assert sparse.value.indices.tolist() == [[2]]
    assert absent.value is None


def test_without_a_schema_the_record_tells_its_features():
    data = payload({"a": 1, "b": "text", "c": b"\xff", "d": b"\x00\x01"})
    found = {cell.name: cell.value for cell in cells_of(data, None)}
    assert found == {"a": 1, "b": "text", "c": b"\xff", "d": b"\x00\x01"}  # d happens to be UTF-8


def test_columns_that_one_record_lacks_are_absent_unless_it_lacks_all():
    data = payload({"label": 1})
    label, other = cells_of(data, None, columns=["label", "other"])
    assert (int(label.value), other.value) == (1, None)
    with pytest.raises(ValueError, match="did you mean 'label'"):
        cells_of(data, None, columns=["labl"])


def test_what_is_no_example_and_what_does_not_fit_is_refused():
    with pytest.raises(DatumError):
        cells_of(b"\xff\xff", None)
    with pytest.raises(DatumError, match="without"):
        cells_of(b"", None)
    with pytest.raises(SchemaError):
        cells_of(payload({"x": "text"}), Schema({"x": Feature("int64")}))
