import pickle
import subprocess
import sys

import pytest

from datum.configs import BucketConfigs, DatasetConfigs, TFRReadConfigs

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
