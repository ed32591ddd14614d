"""What is known of functions that users are given, and the same in NumPy."""

import functools

import numpy as np

from datum import transforms
from datum.transforms.graph import (
    Origin,
    find_factory,
    find_origin,
    join_origins,
    numpy_code,
    remember,
    update,
)


def made(name, **known):
    return remember(lambda record: record, Origin(name, **known))


def test_an_origin_is_found_of_what_was_made_alone():
    function = made("twice")
    assert find_origin(function).name == "twice"
    assert find_origin(functools.partial(function, seed=1)).name == "twice"
    assert find_origin(functools.wraps(function)(lambda record: record)) is None
    assert find_origin(len) is None
    assert find_origin([]) is None  # cannot be a key


def test_what_makes_functions_is_told_from_what_they_are():
    assert find_factory(transforms.scale) == "scale"
    assert find_factory(transforms.scale("image")) is None
    assert find_factory(len) is None
    assert find_factory(functools.partial(len)) is None


def test_functions_that_are_joined_are_known_together():
    def own(record):
        return record

    parts = [
        made("a", code=("record = 1",), imports=("import numpy",), draws=True),
        own,
        made("b", code=("record = 2",), imports=("import numpy",), is_for_graphs=False),
    ]
    origin = join_origins("compose", parts)
    assert origin.name == "compose of a"
    assert origin.code == ("record = 1", "record = own(record)", "record = 2")
    assert origin.imports == ("import numpy",)
    assert origin.draws
    assert origin.is_for_graphs
    assert not join_origins("compose", parts[1:]).is_for_graphs
    assert join_origins("compose", []).name == "compose"


def test_code_runs_for_any_name_of_a_feature():
    name = 'it\'s "odd" \\ <image>'
    code = Origin.of_pixels("twice", "record = {**record, <image>: record[<image>] * 2}")
    names = {}
    exec(numpy_code(code, name), names)
    assert names["prepare"]({name: np.int64(3), "x": 1}) == {name: 6, "x": 1}


def test_code_that_draws_takes_a_generator():
    origin = Origin("random_flip", code=(update({"x": "rng.random()"}),), draws=True)
    assert numpy_code(origin, "image").startswith("def prepare(record, rng):\n")
