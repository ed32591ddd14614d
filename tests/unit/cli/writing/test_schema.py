"""Features as they are written in a shell."""

import json

import pytest

import datum
from datum import Feature, SchemaError
from datum.cli.write_options import features_of, parse_feature, read_schema, spell_feature

FEATURES = [
    ("int64", Feature("int64")),
    ("str?", Feature("str", optional=True)),
    ("float32[3,4]", Feature("float32", (3, 4))),
    ("float32[?,4]", Feature("float32", (None, 4))),
    ("uint8[?,?,3]:image", Feature("uint8", (None, None, 3), encoding="image")),
    ("float32[9]:sparse?", Feature("float32", (9,), encoding="sparse", optional=True)),
    ("float64[2]", Feature("float64", (2,))),
    ("uint8[?,3,?]:raw", Feature("uint8", (None, 3, None), encoding="raw")),
    ("datetime64[us]", Feature("datetime64[us]")),
    ("datetime64[us][2]", Feature("datetime64[us]", (2,))),
]


@pytest.mark.parametrize(("text", "feature"), FEATURES)
def test_features_are_read_and_spelt(text, feature):
    assert parse_feature(text) == feature
    assert spell_feature(feature) == text


@pytest.mark.parametrize("text", ["float32[ None , 4 ]", "float32[*,4]", "float32[-1,4]"])
def test_lengths_that_differ_are_written_in_many_ways(text):
    assert parse_feature(text).shape == (None, 4)


@pytest.mark.parametrize("text", ["", "3", "int64[a]", "int64[", "int64[1.5]", "Int 64"])
def test_what_is_no_feature_is_told(text):
    with pytest.raises(ValueError, match=r"schema: expected .* got .*\nhint: name=dtype"):
        parse_feature(text)


def test_a_misspelt_type_names_the_nearest():
    with pytest.raises(SchemaError, match="did you mean 'float32'"):
        parse_feature("flaot32")


def test_pairs_and_files_are_joined(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"a": {"dtype": "int8", "shape": [None]}}))
    (tmp_path / "b.toml").write_text('b = "str?"\n[c]\ndtype = "int64"\nshape = ["?", 2]\n')
    found = read_schema(
        [str(tmp_path / "a.json"), str(tmp_path / "b.toml"), "d=int64,e=float32[2,2]"]
    )
    assert found == {
        "a": Feature("int8", (None,)),
        "b": Feature("str", optional=True),
        "c": Feature("int64", (None, 2)),
        "d": Feature("int64"),
        "e": Feature("float32", (2, 2)),
    }


def test_the_manifest_of_a_dataset_is_a_schema(tmp_path):
    datum.write({"x": [1.5, 2.5]}, tmp_path / "a", progress=False)
    assert read_schema([str(tmp_path / "a" / "datum.json")]) == dict(
        datum.load(tmp_path / "a").schema
    )


def test_what_is_no_schema_is_told(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ValueError, match=r"a\.json: expected JSON"):
        read_schema([str(tmp_path / "a.json")])
    with pytest.raises(ValueError, match="o: expected features by name, got 7"):
        features_of(7, where="o")
    with pytest.raises(ValueError, match="o: x: expected a type such as 'float32"):
        features_of({"x": 7}, where="o")
    with pytest.raises(SchemaError, match="expected a feature as JSON"):
        features_of({"x": {"dtipe": "int64"}}, where="o")
