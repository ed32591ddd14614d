"""A state: a few plain values that are accepted only where they fit."""

import json
import math

import numpy as np
import pytest

from datum._load.stream import Place, Progress, check_state, fingerprint, to_state
from datum._read.shards import ShardRange
from datum.errors import StateError
from datum.format import ShardInfo

IDENTITY = {"records": "abc", "order": "full", "seed": 3}
ALONE = (0, 1)


def check(state, *, worker=ALONE, identity=IDENTITY):
    return check_state(state, identity, records=1000, worker=worker, where="split 'train'")


def shard(name: str = "a.tfrecord", **changes) -> ShardInfo:
    return ShardInfo(**{"name": name, "records": 5, "bytes": 100, "crc32c": 7} | changes)


def test_a_state_comes_back_from_json():
    progress = Progress(Place(2, 640))
    state = json.loads(json.dumps(to_state(IDENTITY, progress)))
    assert state == {
        "version": 1,
        "records": "abc",
        "order": "full",
        "seed": 3,
        "epoch": 2,
        "position": 640,
    }
    assert check(state) == progress


def test_a_worker_tells_its_own_batches():
    progress = Progress(Place(1, 8), (2, 3), 5)
    state = json.loads(json.dumps(to_state(IDENTITY, progress)))
    assert check(state, worker=(2, 3)) == progress


def test_a_state_of_all_serves_every_worker():
    state = to_state(IDENTITY, Progress(Place(1, 8)))
    assert check(state, worker=(1, 2)) == Progress(Place(1, 8), (1, 2))


@pytest.mark.parametrize("worker", [ALONE, (1, 3), (2, 4)])
def test_the_state_of_one_worker_serves_no_other(worker):
    state = to_state(IDENTITY, Progress(Place(1, 8), (2, 3), 5))
    with pytest.raises(StateError, match="expected state of worker .*got .*\nhint: .*batches=n"):
        check(state, worker=worker)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"records": "abd"}, "expected state of the same records, records 'abc', got 'abd'"),
        ({"order": "none"}, "expected state of the same `shuffle`, order 'full', got 'none'"),
        ({"seed": 4}, "expected state of the same `seed`, seed 3, got 4"),
        ({"version": 2}, "expected state of version 1, got 2"),
        ({"seed": True}, "expected state of the same `seed`, seed 3, got True"),
        ({"seed": np.array([3, 3])}, "expected state of the same `seed`, seed 3, got array"),
        ({"version": 1.0}, "expected state of version 1, got 1.0"),
        ({"epoch": -1}, "expected `epoch` of 0 to 9,007,199,254,740,992, got -1"),
        ({"epoch": 2**64}, "expected `epoch` of 0 to 9,007,199,254,740,992, got 184467"),
        ({"position": 1001}, "expected `position` of 0 to 1,000, got 1001"),
        ({"position": 2**100}, "expected `position` of 0 to 1,000, got 12676"),
        ({"position": "8"}, "expected `position` of 0 to 1,000, got '8'"),
        ({"position": 1.5}, "expected `position` of 0 to 1,000, got 1.5"),
        ({"position": math.nan}, "expected `position` of 0 to 1,000, got nan"),
        ({"position": None}, "expected `position` of 0 to 1,000, got None"),
        ({"position": np.array([8, 9])}, "expected `position` of 0 to 1,000, got array"),
        ({"position": True}, "expected `position` of 0 to 1,000, got True"),
    ],
)
def test_what_does_not_fit_is_told(changed, expected):
    state = to_state(IDENTITY, Progress()) | changed
    with pytest.raises(StateError) as caught:
        check(state)
    assert str(caught.value).startswith(f"split 'train': {expected}")


@pytest.mark.parametrize("state", [None, 3, [], {}, {"version": 1}, {"epoch": 0, "position": 0}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(StateError, match="expected what `state_dict` gave, got"):
        check(state)


@pytest.mark.parametrize(
    "part",
    [
        {"worker": 3},
        {"worker": None},
        {"worker": [0, 2]},
        {"worker": [0, math.nan], "batches": 1},
        {"worker": np.array([[0, 2], [0, 2]]), "batches": 1},
        {"worker": [0, 2], "batches": -1},
        {"worker": [0, 2], "batches": 2**70},
    ],
)
def test_a_damaged_state_of_a_worker_is_refused(part):
    state = to_state(IDENTITY, Progress()) | part
    with pytest.raises(StateError):
        check(state, worker=(0, 2))


def test_numbers_of_numpy_serve_as_those_of_python():
    state = to_state(IDENTITY, Progress(Place(2, 640))) | {"seed": np.int64(3)}
    assert check(state | {"position": np.int64(640)}) == Progress(Place(2, 640))


def test_a_state_error_is_a_value_error_too():
    assert issubclass(StateError, ValueError)


def test_the_fingerprint_is_of_the_records_wherever_they_lie():
    here = fingerprint([ShardRange(shard("data/a.tfrecord"), 0, 5)])
    assert here == fingerprint([ShardRange(shard("elsewhere/a.tfrecord"), 0, 5)])


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [ShardRange(shard("b.tfrecord"), 0, 5)],
        [ShardRange(shard(bytes=101), 0, 5)],
        [ShardRange(shard(crc32c=8), 0, 5)],
        [ShardRange(shard(records=6), 0, 5)],
        [ShardRange(shard(), 1, 5)],
        [ShardRange(shard(), 0, 4)],
        [ShardRange(shard(), 0, 5), ShardRange(shard(), 0, 5)],
    ],
)
def test_other_records_have_another_fingerprint(runs):
    assert fingerprint(runs) != fingerprint([ShardRange(shard(), 0, 5)])
