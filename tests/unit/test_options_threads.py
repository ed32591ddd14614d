import os

import pytest

from datum._options import thread_count


def test_the_threads_asked_for_are_used():
    assert thread_count(1) == 1
    assert thread_count(7) == 7


def test_without_a_wish_there_is_one_for_each_core():
    assert 1 <= thread_count(None) <= (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system cannot tell")
def test_cores_that_this_process_may_not_use_do_not_count():
    assert thread_count(None) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("threads", [0, -1])
def test_less_than_one_is_refused(threads):
    with pytest.raises(ValueError, match=f"expected `threads` of 1 or more, got {threads}"):
        thread_count(threads)
