import pytest

from datum.frameworks.tensorflow.engine import EngineChoice, EngineInputs, choose_engine

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
