"""Which process this is: of a process group, and of a DataLoader."""

import pickle
from types import SimpleNamespace

import pytest
import torch

from datum.frameworks.torch.loader import Rank, find_worker, is_worker


@pytest.fixture
def be_rank(monkeypatch):
    """Makes this process one of a group, or of none."""

    def be(index=None, count=None):
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: index is not None)
        monkeypatch.setattr(torch.distributed, "get_rank", lambda: index)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: count)

    return be


def test_outside_of_a_dataloader_there_is_one_worker():
    assert find_worker() == (0, 1)
    assert not is_worker()


def test_a_worker_of_a_dataloader_knows_its_index(monkeypatch):
    info = SimpleNamespace(id=1, num_workers=3)
    monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: info)
    assert find_worker() == (1, 3)
    assert is_worker()


def test_without_a_process_group_there_is_one_rank():
    assert Rank()() == (0, 1)


def test_the_rank_is_found_when_it_is_asked_for(be_rank):
    rank = Rank()
    assert rank() == (0, 1)
    be_rank(2, 4)
    assert rank() == (2, 4)
    be_rank()
    assert rank() == (0, 1)


def test_a_process_without_a_group_has_the_rank_of_the_one_it_was_started_by(be_rank):
    be_rank(2, 4)
    data = pickle.dumps(Rank())
    be_rank()
    assert pickle.loads(data)() == (2, 4)
    assert pickle.loads(pickle.dumps(pickle.loads(data)))() == (2, 4)


def test_a_group_of_its_own_comes_first(be_rank):
    be_rank(2, 4)
    data = pickle.dumps(Rank())
    be_rank(0, 2)
    assert pickle.loads(data)() == (0, 2)


def test_a_rank_that_travels_before_there_is_a_group_is_found_there(be_rank):
    rank = pickle.loads(pickle.dumps(Rank()))
    be_rank(1, 2)
    assert rank() == (1, 2)


def test_a_build_without_torch_distributed_has_one_rank(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_available", lambda: False)
    monkeypatch.delattr(torch.distributed, "is_initialized")
    assert Rank()() == (0, 1)
