import copy
import pickle

import pytest

from datum.configs import TFRWriteConfigs

NAMES = [
    "generator",
    "serializer",
    "sparse_features",
    "splits",
    "num_train_examples",
    "num_val_examples",
    "num_test_examples",
]


def test_every_setting_is_none_at_first():
    configs = TFRWriteConfigs()
    assert [getattr(configs, name) for name in NAMES] == [None] * 7
    assert list(vars(configs)) == NAMES


def test_settings_are_set_as_attributes_or_in_the_constructor():
    first = TFRWriteConfigs()
    first.splits = {"train": {"num_examples": 2}}
    first.sparse_features = ["words"]
    first.num_val_examples = 3
    first.generator = first.serializer = len
    second = TFRWriteConfigs(
        splits={"train": {"num_examples": 2}},
        sparse_features=["words"],
        num_val_examples=3,
        generator=len,
        serializer=len,
    )
    assert first == second
    assert "num_val_examples=3" in repr(second)
    second.num_val_examples = None
    assert first != second


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("split", "splits"),
        ("num_train_example", "num_train_examples"),
        ("generater", "generator"),
        ("spares_features", "sparse_features"),
    ],
)
def test_a_misspelt_setting_names_the_nearest_right_one(wrong, right):
    configs = TFRWriteConfigs()
    with pytest.raises(AttributeError, match=f"did you mean '{right}'"):
        setattr(configs, wrong, None)
    with pytest.raises(AttributeError, match=f"did you mean '{right}'"):
        getattr(configs, wrong)
    with pytest.raises(TypeError, match=f"did you mean '{right}'"):
        TFRWriteConfigs(**{wrong: None})


def test_a_setting_that_is_near_none_lists_them_all():
    with pytest.raises(AttributeError, match="there are generator, serializer, .*examples"):
        TFRWriteConfigs().colour = "red"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("splits", ["train", "val"]),
        ("splits", {"train": 3}),
        ("splits", {1: {}}),
        ("sparse_features", "words"),
        ("sparse_features", [1]),
        ("num_train_examples", "3"),
        ("num_val_examples", -1),
        ("num_test_examples", True),
        ("generator", "folder"),
        ("serializer", 3),
    ],
)
def test_a_value_of_another_kind_is_refused_where_it_is_set(name, value):
    with pytest.raises(TypeError, match=f"TFRWriteConfigs.{name}: expected .*, got "):
        setattr(TFRWriteConfigs(), name, value)


def test_settings_survive_copying_and_pickling():
    configs = TFRWriteConfigs(num_train_examples=1, splits={"train": {}})
    assert copy.deepcopy(configs) == configs
    assert pickle.loads(pickle.dumps(configs)) == configs
