import types

import pytest
import tensorflow as tf

from datum.frameworks.tensorflow.engine import find_host, part_of


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
    assert find_host(host) == found


@pytest.mark.parametrize("host", [(3, 3), (-1, 2), (0, 0)])
def test_a_host_outside_its_count_is_refused(host):
    with pytest.raises(ValueError, match="an index from 0"):
        find_host(host)


@pytest.mark.parametrize("host", [3, "01", (1, 2, 3), (0.5, 2)])
def test_what_tells_no_host_is_refused(host):
    with pytest.raises(TypeError, match=r"\(index, count\)"):
        find_host(host)


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("records", [0, 1, 5, 8, 97])
def test_parts_are_even_and_make_up_the_whole(records, count):
    parts = [part_of(records, (index, count)) for index in range(count)]
    assert [n for start, stop in parts for n in range(start, stop)] == list(range(records))
    sizes = [stop - start for start, stop in parts]
    assert max(sizes) - min(sizes) <= 1
