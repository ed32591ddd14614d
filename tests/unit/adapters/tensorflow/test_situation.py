import json

import pytest
import tensorflow as tf

from datum.adapters.tensorflow.options import TfOptions
from datum.adapters.tensorflow.situation import find_situation
from datum.configs import TFRReadConfigs
from tests.unit.adapters.tensorflow.written import write_numbers


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    return write_numbers(tmp_path_factory.mktemp("numbers"), 100)["train"]


def situation(split, **options):
    return find_situation(split, TfOptions(**options), is_by_record=False)


def test_a_plain_call_is_nothing_special(split):
    found = situation(split, shuffle=True, read=TFRReadConfigs())
    assert (found.only_in_graph, found.about_graph) == (None, None)
    special = [found.is_distributed, found.is_traced, found.is_compressed, found.is_cached]
    assert special == [False] * 4
    assert found.hosts == 1
    assert found.is_indexed
    assert found.is_shuffled
    assert found.split_bytes == sum(run.shard.bytes for run in split.runs)
    assert found.record_bytes == found.split_bytes // 100
    assert found.memory_bytes > found.split_bytes


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"host": "service"}, "host='service'"),
        ({"cache": "kept"}, "cache=<files>"),
        ({"shuffle": True, "shuffle_files": False}, "shuffle_files=False"),
        (
            {"read": TFRReadConfigs(experimental_interleave_sort_fn=list)},
            "read.experimental_interleave_sort_fn",
        ),
        ({"read": TFRReadConfigs(interleave_cycle_length=2)}, "read.interleave_cycle_length"),
        ({"shuffle_files": False}, None),
    ],
)
def test_what_only_the_graph_can_do_is_found(split, options, named):
    assert situation(split, **options).only_in_graph == named


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"deterministic": False}, "deterministic=False"),
        ({"read": TFRReadConfigs(options=tf.data.Options())}, "read.options"),
        ({"read": TFRReadConfigs(seed=1)}, "read.seed"),
        ({"deterministic": True}, None),
    ],
)
def test_what_is_about_the_graph_is_found(split, options, named):
    assert situation(split, **options).about_graph == named


def test_where_tensorflow_runs_is_found(split):
    assert situation(split, host=(1, 3)).hosts == 3
    assert not situation(split, host=(1, 3)).is_distributed
    assert situation(split, host=tf.distribute.InputContext(2, 0, 2)).is_distributed
    assert situation(split, host=tf.distribute.get_strategy()).is_distributed
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        assert situation(split).is_distributed
    seen = []

    @tf.function
    def trace():
        seen.append(situation(split).is_traced)

    trace()
    assert seen == [True]


@pytest.mark.parametrize(("workers", "is_cluster"), [(1, False), (2, True)])
def test_a_cluster_is_found(split, monkeypatch, workers, is_cluster):
    cluster = {"worker": [f"localhost:{4000 + index}" for index in range(workers)]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert situation(split).is_distributed is is_cluster


def test_compressed_shards_are_found(tmp_path):
    split = write_numbers(tmp_path, 10, compression="gzip")["train"]
    assert situation(split).is_compressed
