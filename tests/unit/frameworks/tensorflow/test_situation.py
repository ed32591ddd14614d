import json

import pytest
import tensorflow as tf

from datum.configs import TFRReadConfigs
from datum.frameworks.tensorflow.engine import EngineInputs, find_engine_inputs
from datum.frameworks.tensorflow.options import TfOptions


def situation(**options):
    return find_engine_inputs(TfOptions(**options))


def test_a_plain_call_is_nothing_special():
    found = situation(shuffle=True, host=(1, 3), cache=True, read=TFRReadConfigs())
    assert found == EngineInputs()


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
def test_what_only_the_graph_can_do_is_found(options, named):
    assert situation(**options).only_in_graph == named


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"deterministic": False}, "deterministic=False"),
        ({"read": TFRReadConfigs(options=tf.data.Options())}, "read.options"),
        ({"read": TFRReadConfigs(seed=1)}, "read.seed"),
        ({"deterministic": True}, None),
    ],
)
def test_what_is_about_the_graph_is_found(options, named):
    assert situation(**options).about_graph == named


def test_a_strategy_of_this_process_is_nothing_special():
    assert situation(host=tf.distribute.InputContext(2, 0, 2)) == EngineInputs()
    assert situation(host=tf.distribute.get_strategy()) == EngineInputs()
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        assert situation() == EngineInputs()


def test_tracing_is_found():
    seen = []

    @tf.function
    def trace():
        seen.append(situation().is_traced)

    trace()
    assert seen == [True]


@pytest.mark.parametrize(("workers", "is_cluster"), [(1, False), (2, True)])
def test_a_cluster_reads_what_no_host_is_told_for(monkeypatch, workers, is_cluster):
    cluster = {"worker": [f"localhost:{4000 + index}" for index in range(workers)]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert situation().is_shared is is_cluster
    assert not situation(host=(0, workers)).is_shared
