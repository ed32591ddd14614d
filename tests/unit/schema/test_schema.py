import json
import re

import numpy as np
import pytest

from datum import Feature, Schema, SchemaError

SCHEMA = Schema({"label": Feature("int64"), "image": Feature("bytes", optional=True)})


def test_a_schema_is_a_mapping_in_the_order_given():
    assert list(SCHEMA) == ["label", "image"]
    assert len(SCHEMA) == 2
    assert SCHEMA["label"] == Feature("int64")
    assert "image" in SCHEMA
    assert dict(SCHEMA) == {"label": Feature("int64"), "image": Feature("bytes", optional=True)}
    assert SCHEMA.get("nothing") is None


def test_a_schema_cannot_be_changed():
    with pytest.raises(TypeError):
        SCHEMA["label"] = Feature("str")
    given = {"label": Feature("int64")}
    schema = Schema(given)
    given["other"] = Feature("str")
    assert list(schema) == ["label"]


def test_equal_schemas_are_equal_keys():
    again = Schema(dict(SCHEMA))
    assert again == SCHEMA
    assert hash(again) == hash(SCHEMA)
    assert Schema({"label": Feature("int64")}) != SCHEMA


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array([0.123456789]), np.array([0.1234567891])),
        (np.float64(1), np.nextafter(1, 2)),
        (np.zeros(2000), np.concatenate([np.zeros(1000), [5], np.zeros(999)])),
    ],
    ids=["ninth digit", "last bit", "middle of many"],
)
def test_schemas_whose_defaults_differ_are_not_equal(one, other):
    def schema(default):
        return Schema({"x": Feature("float64", np.shape(default), default=default)})

    assert schema(one) != schema(other)
    assert schema(one) == schema(one.copy())
    assert hash(schema(one)) == hash(schema(one.copy()))


@pytest.mark.parametrize("features", [{"x": "int64"}, {3: Feature("int64")}, {"x": None}])
def test_anything_but_names_and_features_is_refused(features):
    with pytest.raises(SchemaError, match="expected names and features, got"):
        Schema(features)


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(SchemaError, match="expected"):
        Schema({"\ud800": Feature("int64")})


def test_select_keeps_the_named_features_in_the_order_asked():
    assert list(SCHEMA.select(["image", "label"])) == ["image", "label"]
    assert SCHEMA.select(["image"]) == Schema({"image": Feature("bytes", optional=True)})
    assert len(SCHEMA.select([])) == 0


def test_select_of_a_string_is_refused():
    with pytest.raises(TypeError, match="expected names of features, got the one string 'label'"):
        SCHEMA.select("label")


def test_select_of_an_unknown_name_names_the_nearest():
    message = "expected a feature of the schema, got 'lable'\nhint: did you mean 'label'?"
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        SCHEMA.select(["lable"])


def test_select_of_a_name_that_is_like_none_names_all():
    with pytest.raises(SchemaError, match="got 'qqq'\nhint: there are label, image$"):
        SCHEMA.select(["qqq"])


def test_json_brings_back_the_same_schema():
    found = Schema.from_json(json.loads(json.dumps(SCHEMA.to_json())))
    assert found == SCHEMA
    assert list(found) == list(SCHEMA)


@pytest.mark.parametrize("found", [{"x": 3}, {"x": None}, {"x": []}, [], None, 3], ids=str)
def test_json_that_is_no_schema_is_refused(found):
    with pytest.raises(SchemaError, match="expected"):
        Schema.from_json(found)


def test_repr_has_a_line_for_each_feature():
    assert repr(Schema({})) == "Schema({})"
    assert repr(SCHEMA) == (
        "Schema({\n"
        "    'label': Feature('int64'),\n"
        "    'image': Feature('bytes', optional=True),\n"
        "})"
    )
    assert eval(repr(SCHEMA)) == SCHEMA
