import pytest

from datum.configs import BucketConfigs, DatasetConfigs, TFRReadConfigs, options_for
from datum.errors import SplitError

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
