"""Options: what they are unless told otherwise, and what is refused."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import datum
from datum._load.options import LoadKeywords, LoadOptions, present_name
from datum.mixing import Mix
from datum.schema import Feature, Schema

SCHEMA = Schema({"image": Feature("uint8"), "label": Feature("int64")})


def test_keywords_and_options_are_the_same():
    options = [option.name for option in fields(LoadOptions) if option.init]
    assert sorted(LoadKeywords.__annotations__) == sorted(options)


def test_a_misspelt_option_names_the_nearest():
    with pytest.raises(
        TypeError, match="to_numpy: got an unknown option `bach_size`\nhint: did you"
    ):
        LoadOptions.of({"bach_size": 3}, caller="to_numpy")


def test_an_option_like_none_lists_all():
    with pytest.raises(TypeError, match="hint: there are batch_size, shuffle, seed"):
        LoadOptions.of({"zzz": 3}, caller="to_numpy")


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": 0},
        {"batch_size": -1},
        {"batch_size": True},
        {"epochs": 0},
        {"seed": -1},
        {"threads": 0},
        {"prefetch": 0},
        {"shuffle": -1},
        {"shuffle": "fully"},
        {"remainder": "dorp"},
        {"on_error": "ignore"},
        {"pad": 0},
        {"host": (2, 2)},
        {"host": (-1, 2)},
        {"host": (0, 0)},
        {"drop_remainder": True, "remainder": "pad"},
    ],
)
def test_values_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match="expected"):
        LoadOptions(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pad": True},
        {"bucket_by": "x"},
        {"batch_map": len},
        {"remainder": "pad"},
    ],
)
def test_single_records_take_nothing_that_is_about_batches(wrong):
    with pytest.raises(ValueError, match="expected a `batch_size` with .* got None: single"):
        LoadOptions(batch_size=None, **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": 1.5},
        {"shuffle": 0.5},
        {"shuffle": None},
        {"cache": "memory"},
        {"drop_remainder": 1},
        {"reshuffle": 0},
        {"decode": "image"},
        {"pad": 1.5},
        {"pad": "longest"},
        {"map": "function"},
        {"batch_map": 3},
        {"host": 3},
        {"host": (0, 1, 2)},
        {"host": ("a", "b")},
        {"columns": 3},
    ],
)
def test_values_of_another_type_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(TypeError, match=f"expected `{name}`"):
        LoadOptions(**wrong)


def test_numbers_of_numpy_become_plain_ones():
    options = LoadOptions(
        batch_size=np.uint8(200),
        host=(np.int32(0), np.int32(2)),
        seed=np.uint64(2**63),
        epochs=np.int64(2),
        shuffle=np.int16(9),
        threads=np.int8(1),
    )
    found = [options.batch_size, *options.host, options.seed, options.epochs, options.shuffle]
    assert found == [200, 0, 2, 2**63, 2, 9]
    assert {type(number) for number in (*found, options.threads)} == {int}


def test_a_host_from_an_iterator_is_kept():
    assert LoadOptions(host=iter([1, 2])).host == (1, 2)


@pytest.mark.parametrize("wrong", [1.5, None, [3], np.True_])
def test_all_ways_to_shuffle_are_told(wrong):
    with pytest.raises(TypeError, match="True, False, 'full', 'blocks' or a number of records"):
        LoadOptions(shuffle=wrong)


def test_drop_remainder_is_a_remainder():
    assert LoadOptions(drop_remainder=True).remainder == "drop"
    assert LoadOptions(drop_remainder=True, remainder="drop").remainder == "drop"


def test_columns_choose_features():
    assert list(LoadOptions().selected(SCHEMA)) == ["image", "label"]
    assert list(LoadOptions(columns=["label"]).selected(SCHEMA)) == ["label"]
    assert list(LoadOptions(columns="label").selected(SCHEMA)) == ["label"]


def test_columns_from_an_iterator_can_be_looked_through_again():
    options = LoadOptions(columns=(name for name in ["label"]))
    assert list(options.selected(SCHEMA)) == list(options.selected(SCHEMA)) == ["label"]
    assert options == LoadOptions(columns=["label"])


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["lable"]},
        {"decode": {"lable": False}},
        {"bucket_by": "lable"},
    ],
)
def test_names_that_the_schema_lacks_are_refused(options):
    with pytest.raises(ValueError, match="got 'lable'\nhint: did you mean 'label'"):
        LoadOptions(**options).selected(SCHEMA)


def test_no_columns_are_refused():
    with pytest.raises(ValueError, match="at least one feature"):
        LoadOptions(columns=[]).selected(SCHEMA)


def test_a_feature_with_the_name_of_the_mask_is_refused_only_where_there_is_one():
    schema = Schema({"batch_mask": Feature("bool"), "x": Feature("int64")})
    LoadOptions().selected(schema)
    LoadOptions(remainder="pad", columns=["x"]).selected(schema)
    with pytest.raises(ValueError, match="no feature 'batch_mask' with remainder='pad'"):
        LoadOptions(remainder="pad").selected(schema)


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Feature("float32"), None),
        (Feature("float32", optional=True), "x_present"),
        (Feature("float32", optional=True, default=1.0), None),
    ],
)
def test_presence_is_told_where_nothing_else_tells_it(feature, expected):
    assert present_name("x", feature) == expected


def test_the_guide_lists_every_option():
    guide = (Path(__file__).parents[3] / "docs/guides/loading.md").read_text()
    listed = re.findall(r"^\| `(\w+)` ", guide.partition("## All options")[2], re.MULTILINE)
    assert sorted(listed) == sorted(LoadKeywords.__annotations__)


@pytest.mark.parametrize("owner", [datum.Dataset, Mix])
@pytest.mark.parametrize("name", ["to_numpy", "to_torch", "to_jax"])
def test_help_lists_every_option_with_its_text(owner, name):
    method = getattr(owner, name)
    parameters = inspect.signature(method).parameters
    for option in LoadKeywords.__annotations__:
        assert parameters[option].kind is inspect.Parameter.KEYWORD_ONLY
        assert re.search(rf"^    {option}: \S", method.__doc__, re.MULTILINE), option
    assert parameters["batch_size"].default == 32
    assert parameters["epochs"].annotation == "int | None"
    assert "options" not in parameters


def test_a_seed_of_none_is_drawn():
    first, second = LoadOptions(seed=None), LoadOptions(seed=None)
    assert first.seed != second.seed
    assert first.is_seed_drawn
    assert not LoadOptions(seed=0).is_seed_drawn
