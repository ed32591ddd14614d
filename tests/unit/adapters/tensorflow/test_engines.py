import pytest

from datum.adapters.tensorflow.engines import Choice, Situation, choose_engine

GIB = 2**30

AUTO = [
    ({}, "native", "parsing is the bottleneck"),
    ({"record_bytes": 300, "is_shuffled": True}, "native", "parsing is the bottleneck"),
    ({"is_indexed": False, "split_bytes": GIB}, "native", "parsing is the bottleneck"),
    ({"split_bytes": 100 * GIB, "memory_bytes": 8 * GIB}, "native", "parsing is the bottleneck"),
    ({"only_in_graph": "cache=<files>"}, "graph", "cache=<files>"),
    ({"about_graph": "deterministic=False"}, "graph", "deterministic=False"),
    ({"is_distributed": True}, "graph", "a distribution strategy or service"),
    ({"hosts": 2}, "graph", "several hosts"),
    ({"is_traced": True}, "graph", "within a tf.function"),
    ({"is_compressed": True}, "graph", "compressed shards"),
    ({"is_indexed": False, "split_bytes": 5 * GIB}, "graph", "large, and no index"),
    (
        {"is_shuffled": True, "split_bytes": 5 * GIB, "memory_bytes": 8 * GIB},
        "graph",
        "shuffled, and larger than memory",
    ),
    ({"is_cached": True}, "graph", "read only once"),
    ({"is_by_record": True}, "graph", "work on each record is the bottleneck"),
    ({"record_bytes": 100_000}, "graph", "large records"),
    ({"is_compressed": True, "is_cached": True}, "graph", "compressed shards"),
]


@pytest.mark.parametrize(("situation", "engine", "reason"), AUTO)
def test_auto_takes_the_engine_that_suits(situation, engine, reason):
    assert choose_engine("auto", Situation(**situation)) == Choice(engine, reason)


@pytest.mark.parametrize("engine", ["graph", "native"])
@pytest.mark.parametrize("situation", [{}, {"hosts": 2}, {"is_compressed": True}])
def test_what_is_asked_for_is_taken(engine, situation):
    assert choose_engine(engine, Situation(**situation)) == Choice(engine, "as asked for")


def test_what_only_the_graph_can_do_is_refused():
    situation = Situation(only_in_graph="host='service'")
    with pytest.raises(ValueError, match=r"no host='service' with engine='native'.*\nhint: engine"):
        choose_engine("native", situation)
    assert choose_engine("graph", situation).engine == "graph"
    about = Situation(about_graph="deterministic=False")
    assert choose_engine("native", about).engine == "native"
