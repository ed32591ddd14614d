"""Which source each split comes from, under what schema."""

import pandas as pd
import pytest

from datum import Feature, Schema, SchemaError, SourceError, SplitError
from datum._write.append import merge_schemas
from datum._write.blocks import blocks_of
from datum._write.job import known_schema, override
from datum._write.parts import collect_parts
from tests.unit.write.parts import Numbers, NumbersSource


def test_a_source_has_its_own_splits():
    part = Numbers(3)
    intake = collect_parts(NumbersSource(part), None, None)
    assert intake.parts == {"train": part}
    assert (intake.fractions, intake.splits) == (None, ["train"])


def test_fractions_name_the_splits():
    intake = collect_parts(NumbersSource(Numbers(3)), {"a": 0.5, "b": 0.5}, None)
    assert intake.splits == ["a", "b"]


@pytest.mark.parametrize(
    "value",
    [
        [{"x": 1}],
        ({"x": i} for i in range(3)),
        lambda: [{"x": 1}],
        pd.DataFrame({"x": [1]}),
        NumbersSource(Numbers(1)),
    ],
    ids=["list", "generator", "function", "table", "source"],
)
def test_a_dict_of_sources_is_told_from_columns(value):
    assert collect_parts({"a": value}, None, None).splits == ["a"]


@pytest.mark.parametrize("value", [[1, 2], ["a", "b"], [[1], [2]]])
def test_columns_are_no_dict_of_sources(value):
    assert collect_parts({"a": value}, None, None).splits == ["train"]


def test_a_source_of_several_splits_gives_the_one_that_is_asked_for():
    class Two:
        def parts(self):
            return {"train": Numbers(1), "val": Numbers(2)}

    intake = collect_parts(None, {"val": Two()}, None)
    assert len(intake.parts["val"]) == 2
    with pytest.raises(SplitError, match="'test'.*got train, val"):
        collect_parts(None, {"test": Two()}, None)
    with pytest.raises(SplitError, match="got one that has train, val"):
        collect_parts(Two(), {"a": 1.0}, None)


def test_a_source_without_splits_is_an_error():
    class Nothing:
        def parts(self):
            return {}

    with pytest.raises(SourceError, match="at least one split"):
        collect_parts(Nothing(), None, None)


def test_a_schema_is_known_if_every_part_knows_its_own():
    known = collect_parts(NumbersSource(Numbers(1)), None, None)
    assert known_schema(known, None) == Schema({"x": Feature("int64")})
    unknown = collect_parts(NumbersSource(Numbers(1, schema=None)), None, None)
    assert known_schema(unknown, None) is None
    given = Schema({"y": Feature("str")})
    assert known_schema(unknown, given) == given


def test_schemas_merge_to_one_that_holds_both():
    first = Schema({"a": Feature("int64"), "b": Feature("int64", (3,)), "c": Feature("str")})
    second = Schema({"a": Feature("float64"), "b": Feature("int64", (5,)), "d": Feature("str")})
    assert merge_schemas(first, second) == Schema(
        {
            "a": Feature("float64"),
            "b": Feature("int64", (None,)),
            "c": Feature("str", optional=True),
            "d": Feature("str", optional=True),
        }
    )
    assert merge_schemas(first, first) == first
    with pytest.raises(SchemaError):
        merge_schemas(Schema({"a": Feature("str")}), Schema({"a": Feature("int64")}))


def test_features_that_are_given_stand():
    schema = Schema({"a": Feature("int64"), "b": Feature("str")})
    assert override(schema, {"a": Feature("uint8")})["a"] == Feature("uint8")
    with pytest.raises(SchemaError, match="'c'"):
        override(schema, {"c": Feature("uint8")})


def test_blocks_do_not_depend_on_anything_but_the_part():
    sizes = [len(block) for block in blocks_of(Numbers(10_000))]
    assert sizes == [4096, 4096, 1808]
