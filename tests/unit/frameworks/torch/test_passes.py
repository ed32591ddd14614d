"""What processes tell each other of the passes that were begun."""

import copy
import os
import pickle
from multiprocessing.reduction import ForkingPickler

import torch  # noqa: F401 (teaches the pickler to share memory)

from datum.frameworks.torch.loader import Passes
from datum.loading.stream import Place


def following(place):
    return Place(place.epoch + 1, 0)


def begin(passes, base, worker):
    place = passes.next_start(base, worker, following)
    passes.take(base, worker, place)
    return place.epoch


def test_workers_with_one_seed_make_one_pass_in_any_order():
    passes = Passes()
    assert [begin(passes, 11, worker) for worker in (1, 0, 2)] == [0, 0, 0]
    assert [begin(passes, 22, worker) for worker in (0, 1)] == [1, 1]
    assert [begin(passes, 22, worker) for worker in (1, 0)] == [2, 2]  # they last, or have the same
    assert begin(passes, 33, 0) == 3  # the others were not there yet when it was broken off


def test_workers_that_come_at_the_same_time_find_the_same():
    passes = Passes()
    begin(passes, 11, 0)
    places = [passes.next_start(22, worker, following) for worker in range(3)]
    for worker, place in enumerate(places):
        passes.take(22, worker, place)
    assert [place.epoch for place in places] == [1, 1, 1]
    assert begin(passes, 33, 0) == 2


def test_what_the_main_process_says_counts_for_the_next_pass():
    passes = Passes()
    assert passes.begun_by_workers() is None
    begin(passes, 11, 0)
    assert passes.begun_by_workers() == Place()
    passes.tell(Place(5, 30))
    assert passes.begun_by_workers() is None
    assert [passes.next_start(11, worker, following) for worker in (0, 1)] == [Place(5, 30)] * 2
    assert [begin(passes, 22, worker) for worker in (0, 1)] == [5, 5]
    passes.begin(Place(8))  # it reads itself
    assert begin(passes, 33, 0) == 9


def test_a_copy_goes_its_own_way():
    passes = Passes()
    begin(passes, 11, 0)
    for other in (copy.deepcopy(passes), pickle.loads(pickle.dumps(passes))):
        assert begin(other, 22, 0) == 1
    assert begin(passes, 33, 0) == 1


def test_processes_that_are_no_workers_go_their_own_way():
    passes = Passes()
    begin(passes, 11, 0)
    for _ in range(2):
        sent = bytes(ForkingPickler.dumps(passes))  # as to a process that is spawned
        assert begin(pickle.loads(sent), 22, 0) == 1
        child = os.fork()
        if child == 0:
            os._exit(begin(passes, 22, 0) * 10 + begin(passes, 33, 0))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 12
    assert begin(passes, 22, 0) == 1


def test_one_process_warns():
    passes = Passes()
    assert [passes.is_first_to_warn() for _ in range(3)] == [True, False, False]
