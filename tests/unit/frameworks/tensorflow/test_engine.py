import json
import types

import pytest
import tensorflow as tf

from datum._frameworks.tensorflow.engine import (
    EngineChoice,
    EngineInputs,
    choose_engine,
    find_engine_inputs,
    find_host,
    part_of,
)
from datum._frameworks.tensorflow.options import TfOptions
from datum.configs import TFRReadConfigs

AUTO = [
    ({}, "native", "Python runs in this process"),
    ({"only_in_graph": "cache=<files>"}, "graph", "cache=<files>"),
    ({"about_graph": "deterministic=False"}, "graph", "deterministic=False"),
    ({"is_traced": True}, "graph", "within a tf.function"),
    ({"is_shared": True}, "graph", "other processes may read it"),
    ({"is_shared": True, "is_traced": True}, "graph", "within a tf.function"),
]


@pytest.mark.parametrize(("situation", "engine", "reason"), AUTO)
def test_auto_is_native_unless_the_graph_is_needed(situation, engine, reason):
    assert choose_engine("auto", EngineInputs(**situation)) == EngineChoice(engine, reason)


@pytest.mark.parametrize("engine", ["graph", "native"])
@pytest.mark.parametrize("situation", [{}, {"is_traced": True}, {"is_shared": True}])
def test_what_is_asked_for_is_taken(engine, situation):
    assert choose_engine(engine, EngineInputs(**situation)) == EngineChoice(engine, "as asked for")


def test_what_only_the_graph_can_do_is_refused():
    situation = EngineInputs(only_in_graph="host='service'")
    with pytest.raises(ValueError, match=r"no host='service' with engine='native'.*\nhint: engine"):
        choose_engine("native", situation)
    assert choose_engine("graph", situation).engine == "graph"
    about = EngineInputs(about_graph="deterministic=False")
    assert choose_engine("native", about).engine == "native"


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


def cluster(jobs, task_type, task_id):
    spec = types.SimpleNamespace(jobs=list(jobs), num_tasks=jobs.get)
    resolver = types.SimpleNamespace(
        cluster_spec=lambda: spec, task_type=task_type, task_id=task_id
    )
    return Placed(resolver)


class Placed(tf.distribute.Strategy):
    """A strategy of which nothing but its cluster is known."""

    def __init__(self, resolver):
        self.resolver = resolver

    @property
    def cluster_resolver(self):
        return self.resolver


@pytest.mark.parametrize(
    ("host", "found"),
    [
        (None, (0, 1)),
        ("service", (0, 1)),
        ((2, 3), (2, 3)),
        ([0, 1], (0, 1)),
        (tf.distribute.InputContext(4, 1, 4), (1, 4)),
        (Placed(None), (0, 1)),
        (cluster({}, "", 0), (0, 1)),
        (cluster({"worker": 3}, "worker", 2), (2, 3)),
        (cluster({"chief": 1, "worker": 2}, "chief", 0), (0, 3)),
        (cluster({"chief": 1, "worker": 2}, "worker", 1), (2, 3)),
        (cluster({"worker": 2, "evaluator": 1}, "evaluator", 0), (0, 1)),
    ],
)
def test_a_host_is_found(host, found):
    assert find_host(TfOptions(host=host).host) == found


@pytest.mark.parametrize("host", [(3, 3), (-1, 2), (0, 0)])
def test_a_host_outside_its_count_is_refused(host):
    with pytest.raises(ValueError, match="an index from 0"):
        find_host(TfOptions(host=host).host)


@pytest.mark.parametrize("host", [3, "01", (1, 2, 3), (0.5, 2)])
def test_what_tells_no_host_is_refused(host):
    with pytest.raises(TypeError, match=r"\(index, count\)"):
        find_host(TfOptions(host=host).host)


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("records", [0, 1, 5, 8, 97])
def test_parts_are_even_and_make_up_the_whole(records, count):
    parts = [part_of(records, (index, count)) for index in range(count)]
    assert [n for start, stop in parts for n in range(start, stop)] == list(range(records))
    sizes = [stop - start for start, stop in parts]
    assert max(sizes) - min(sizes) <= 1
