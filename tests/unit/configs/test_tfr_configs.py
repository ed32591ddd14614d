import copy
import pickle
import subprocess
import sys

import pytest

from datum.configs import (
    BucketConfigs,
    DatasetConfigs,
    TFRReadConfigs,
    TFRWriteConfigs,
    options_for,
)
from datum.errors import SplitError

# Those of the paper's library, but for those that harmed its users.
DEFAULTS = {
    "buffer_size": None,
    "seed": 6052020,
    "full_dataset": False,
    "drop_remainder": True,
    "drop_remainder_val": False,
    "drop_remainder_test": False,
    "deterministic": None,
    "deterministic_val": None,
    "deterministic_test": None,
    "num_parallel_calls": None,
    "batch_size_train": 32,
    "batch_size_val": 32,
    "batch_size_test": 32,
    "echoing": None,
    "shuffle_files": True,
    "reshuffle_each_iteration": True,
    "cache": False,
    "cache_filename": "",
    "bucket_op": {"bucket_boundaries": [0], "bucket_batch_sizes": [32, 32]},
    "bucket_fn": None,
    "pre_batching_callback": None,
    "post_batching_callback": None,
    "pre_batching_callback_train": None,
    "post_batching_callback_train": None,
    "pre_batching_callback_val": None,
    "post_batching_callback_val": None,
    "pre_batching_callback_test": None,
    "post_batching_callback_test": None,
    "read_config": {
        "experimental_interleave_sort_fn": None,
        "shuffle_reshuffle_each_iteration": True,
        "interleave_cycle_length": -1,
        "interleave_block_length": 1,
        "seed": 6052020,
        "options": None,
    },
    "use_tf_padding": False,
    "use_datum_padding": False,
    "engine": "auto",
}


def test_the_settings_and_their_defaults():
    assert DatasetConfigs().to_dict() == DEFAULTS
    assert list(DatasetConfigs().to_dict()) == list(DEFAULTS)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("batch_size_trian", "batch_size_train"),
        ("prebatching_callback", "pre_batching_callback"),
        ("post_batching_callback_tests", "post_batching_callback_test"),
        ("echo", "echoing"),
        ("read_configs", "read_config"),
        ("shuffle_file", "shuffle_files"),
        ("use_padding", "use_tf_padding"),
    ],
)
def test_a_misspelt_setting_names_the_nearest_right_one(wrong, right):
    with pytest.raises(AttributeError, match=f"DatasetConfigs .*\nhint: did you mean '{right}'"):
        setattr(DatasetConfigs(), wrong, None)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("buffer_size", [0, -1, 1.5, True, "100"]),
        ("seed", [-1, 2**63, 0.5, "1"]),
        ("drop_remainder", [None, 1, "yes"]),
        ("deterministic_val", [0, "no"]),
        ("num_parallel_calls", [0, -2, 1.0]),
        ("batch_size_train", [0, -1, 32.0, "32", True]),
        ("echoing", [0, -1, 1.5, True]),
        ("cache", ["memory", None]),
        ("cache_filename", [None, 3, True]),
        ("bucket_op", [None, {"bucket_boundaries": [1]}, TFRReadConfigs()]),
        ("bucket_fn", ["length", 3]),
        ("pre_batching_callback_train", [[], "resize"]),
        ("read_config", [None, {}, BucketConfigs()]),
    ],
)
def test_a_value_of_another_kind_is_refused(name, values):
    for value in values:
        with pytest.raises(TypeError, match=f"DatasetConfigs.{name}: expected .*, got "):
            setattr(DatasetConfigs(), name, value)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("interleave_cycle_length", [0, -2, None]),
        ("interleave_block_length", [0, -1, None]),
        ("shuffle_reshuffle_each_iteration", [None, 1]),
        ("seed", [-1, "1"]),
        ("experimental_interleave_sort_fn", [["a"], 3]),
        ("options", [{}, 3, "threads", object()]),
    ],
)
def test_a_value_of_another_kind_is_refused_for_files_too(name, values):
    for value in values:
        with pytest.raises(TypeError, match=f"TFRReadConfigs.{name}: expected .*, got "):
            setattr(TFRReadConfigs(), name, value)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("bucket_boundaries", [None, 3, [2, 1], [1, 1], [1.5], ["1"]]),
        ("bucket_batch_sizes", [None, 3, [0], [True], [-1, 2]]),
    ],
)
def test_a_value_of_another_kind_is_refused_for_buckets_too(name, values):
    for value in values:
        with pytest.raises(TypeError, match=f"BucketConfigs.{name}: expected .*, got "):
            setattr(BucketConfigs(), name, value)


def test_what_tf_data_knows_by_minus_one_and_none_is_taken():
    configs = DatasetConfigs(num_parallel_calls=-1, batch_size_val=None, seed=None)
    configs.num_parallel_calls = None
    configs.read_config.seed = None
    assert configs.batch_size_val is None
    assert TFRReadConfigs(interleave_cycle_length=-1).interleave_cycle_length == -1


def test_options_are_those_of_tf_data():
    import tensorflow as tf

    options = tf.data.Options()
    options.threading.private_threadpool_size = 2
    configs = DatasetConfigs()
    configs.read_config.options = options
    assert configs.read_config.options is options
    assert configs.copy() == configs
    assert configs.copy().read_config.options is options


@pytest.mark.parametrize(
    ("boundaries", "sizes", "hint"),
    [
        ([10], [4], "from 10 on"),
        ([10, 20], [4, 4, 4, 4], "from 20 on"),
        ([], [], "all"),
    ],
)
def test_every_bucket_has_a_batch_size(boundaries, sizes, hint):
    buckets = BucketConfigs(bucket_boundaries=boundaries, bucket_batch_sizes=sizes)
    with pytest.raises(ValueError, match=f"expected {len(boundaries) + 1} .*\n.*{hint}"):
        buckets.check()
    buckets.bucket_batch_sizes = [4] * (len(boundaries) + 1)
    buckets.check()


def test_lists_that_were_changed_in_place_are_checked_too():
    buckets = BucketConfigs(bucket_boundaries=[10, 20], bucket_batch_sizes=[4, 4, 4])
    buckets.bucket_boundaries.reverse()
    with pytest.raises(TypeError, match="each more than the one before, got "):
        buckets.check()


def test_settings_survive_pickling():
    configs = DatasetConfigs(batch_size_train=3, bucket_fn=len)
    configs.bucket_op.bucket_boundaries = [3]
    assert pickle.loads(pickle.dumps(configs)) == configs


def test_settings_are_made_without_tensorflow():
    code = (
        "import sys, datum; datum.configs.DatasetConfigs().to_dict(); "
        "print('tensorflow' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


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
def test_a_misspelt_setting_of_writing_names_the_nearest_right_one(wrong, right):
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


ROLES = ["train", "val", "test"]


def options(role="train", *, split=None, records=100, repeat=None, shuffle=False, **settings):
    return options_for(
        DatasetConfigs(**settings),
        role,
        split=split or role,
        records=records,
        repeat=repeat,
        shuffle=shuffle,
    )


def test_the_options_of_the_defaults():
    configs = DatasetConfigs()
    made = options_for(configs, "train", split="train", records=32, repeat=None, shuffle=True)
    assert made == {
        "batch_size": 32,
        "shuffle": True,
        "shuffle_files": True,
        "reshuffle": True,
        "seed": 6052020,
        "epochs": 1,
        "map": None,
        "batch_map": None,
        "cache": False,
        "echo": 1,
        "pad": False,
        "drop_remainder": True,
        "deterministic": True,
        "num_parallel_calls": None,
        "read": TFRReadConfigs(),
        "engine": "auto",
        "bucket_fn": None,
        "bucket_op": None,
    }
    assert made["read"] is configs.read_config
    assert options("val") == {**made, "shuffle": False, "drop_remainder": False}


@pytest.mark.parametrize("role", ROLES)
def test_a_setting_of_a_split_is_for_that_split_alone(role):
    mark = {"train": "", "val": "_val", "test": "_test"}[role]
    own = {f"batch_size_{role}": 7, f"deterministic{mark}": False}
    own[f"drop_remainder{mark}"] = role != "train"
    changed = {"batch_size": 7, "deterministic": False, "drop_remainder": role != "train"}
    for other in ROLES:
        expected = {**options(other), **(changed if other == role else {})}
        assert options(other, **own) == expected


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("name", "option"), [("pre_batching_callback", "map"), ("post_batching_callback", "batch_map")]
)
def test_a_callback_of_a_split_wins_over_the_general_one(role, name, option):
    for other in ROLES:
        made = options(other, **{name: len, f"{name}_{role}": max})
        assert made[option] is (max if other == role else len)
        assert options(other, **{f"{name}_{role}": max})[option] is (max if other == role else None)


def test_a_callback_is_the_very_object_even_if_it_is_empty():
    class Empty(list):
        def __call__(self, record):
            return record

    own = Empty()
    assert options(pre_batching_callback=len, pre_batching_callback_train=own)["map"] is own


def test_batches_are_echoed_in_training_only():
    assert [options(role, echoing=3)["echo"] for role in ROLES] == [3, 1, 1]


@pytest.mark.parametrize(
    ("shuffle", "buffer_size", "expected"),
    [(True, None, True), (True, 50, 50), (False, 50, False), (7, 50, 7)],
)
def test_the_window_of_a_shuffle_is_the_buffer_size(shuffle, buffer_size, expected):
    made = options(shuffle=shuffle, buffer_size=buffer_size)["shuffle"]
    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(
    ("repeat", "epochs"), [(None, 1), (False, 1), (0, 1), (True, 1), (1, 1), (3, 3), (-1, None)]
)
def test_repeat_is_a_number_of_epochs(repeat, epochs):
    assert options(repeat=repeat)["epochs"] == epochs


def test_repeat_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="train_fn: expected `repeat` to be a number of .* 'yes'"):
        options(repeat="yes")
    with pytest.raises(TypeError, match="val_fn: .* 1.5"):
        options("val", repeat=1.5)
    with pytest.raises(ValueError, match="got -2\nhint: repeat=-1 has no end"):
        options(repeat=-2)


@pytest.mark.parametrize(
    ("name", "value", "option", "expected"),
    [
        ("seed", None, "seed", None),
        ("shuffle_files", False, "shuffle_files", False),
        ("reshuffle_each_iteration", False, "reshuffle", False),
        ("num_parallel_calls", 3, "num_parallel_calls", 3),
        ("num_parallel_calls", -1, "num_parallel_calls", None),
        ("use_tf_padding", True, "pad", True),
        ("use_datum_padding", True, "pad", True),
        ("cache", True, "cache", True),
        ("batch_size_train", None, "batch_size", None),
    ],
)
def test_a_setting_is_an_option(name, value, option, expected):
    assert options(**{name: value}) == {**options(), option: expected}


def test_a_cache_is_in_memory_unless_it_has_a_name(tmp_path):
    assert options(cache_filename="c")["cache"] is False
    assert options(cache=True)["cache"] is True
    assert options(cache=True, cache_filename=tmp_path / "c")["cache"] == str(tmp_path / "c")


class Options:
    """As much of a tf.data.Options as is looked at."""

    def __init__(self, deterministic):
        self.deterministic = deterministic


Options.__module__ = "tensorflow.python.data.ops.options"


@pytest.mark.parametrize(
    ("setting", "option", "expected"),
    [
        (None, None, True),
        (None, True, True),
        (None, False, False),
        (True, False, True),
        (False, True, False),
    ],
)
def test_the_order_is_kept_unless_a_setting_or_tf_data_says_otherwise(setting, option, expected):
    read = TFRReadConfigs(options=Options(option))
    assert options(deterministic=setting, read_config=read)["deterministic"] is expected


def test_buckets_count_only_with_a_function():
    buckets = BucketConfigs(bucket_boundaries=[3], bucket_batch_sizes=[2, 1])
    assert options(bucket_op=buckets) == options()
    made = options(bucket_op=buckets, bucket_fn=len)
    assert made["bucket_fn"] is len
    assert made["pad"] is True
    assert made["bucket_op"] is buckets
    buckets.bucket_batch_sizes = [2]
    with pytest.raises(ValueError, match="expected 2 bucket_batch_sizes"):
        options(bucket_op=buckets, bucket_fn=len)


@pytest.mark.parametrize("role", ROLES)
def test_a_full_dataset_is_one_batch_of_all(role):
    made = options(role, records=7, full_dataset=True, drop_remainder=True)
    assert made == {**options(role), "batch_size": 7, "drop_remainder": False}


def test_a_full_dataset_is_refused_what_makes_several_batches():
    for name, given in {
        "echoing": {"echoing": 2},
        "bucket_fn": {"bucket_fn": len},
        "repeat": {"repeat": 2},
    }.items():
        with pytest.raises(ValueError, match=f"train_fn: .*full_dataset.* without {name}\nhint"):
            options(full_dataset=True, **given)
    options("val", full_dataset=True, echoing=2)
    with pytest.raises(SplitError, match="val_fn: split 'x': expected records .*, got none"):
        options("val", split="x", records=0, full_dataset=True)


def test_a_split_is_not_dropped_as_a_whole():
    with pytest.raises(SplitError, match="train_fn: split 'train': expected at least 32 .* got 31"):
        options(records=31)
    with pytest.raises(SplitError, match="hint: .*batch_size_val = 3, or .*drop_remainder_val = F"):
        options("val", records=3, drop_remainder_val=True)
    assert options(records=32)["drop_remainder"]
    assert not options(records=3, drop_remainder=False)["drop_remainder"]
    assert options(records=3, batch_size_train=None)["batch_size"] is None
    assert options(records=3, bucket_fn=len)["drop_remainder"]
    assert options(records=0)["drop_remainder"]


def test_settings_of_another_kind_are_refused():
    with pytest.raises(TypeError, match="expected a DatasetConfigs, got {'seed': 1}"):
        options_for({"seed": 1}, "train", split="train", records=1, repeat=1, shuffle=False)
