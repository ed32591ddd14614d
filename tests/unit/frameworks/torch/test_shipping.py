"""Batches on their way from a worker to the program."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.utils.data import default_convert

from datum import Ragged, Sparse
from datum.frameworks.torch import tensors
from datum.frameworks.torch.tensors import to_shipped

RAGGED = Ragged(np.arange(5.0), np.array([0, 2, 2, 5]))
SPARSE = Sparse(np.array([[0, 1], [1, 2]]), np.array([5.0, 7.0]), (2, 3))
DTYPES = ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float64", "complex64"]


def travel(batch):
    return pickle.loads(pickle.dumps(to_shipped(batch)))


@pytest.fixture(params=["piped", "shared"])
def way(request, monkeypatch):
    """The two ways to send memory, whatever its size."""
    size = tensors.MAX_PIPED_BYTES if request.param == "piped" else -1
    monkeypatch.setattr(tensors, "MAX_PIPED_BYTES", size)


def test_columns_of_all_types_arrive_in_one_memory(way):
    batch = {}
    for name in DTYPES:
        dtype = getattr(ml_dtypes, name, None) or np.dtype(name)
        batch[name] = np.arange(15).reshape(5, 3).astype(dtype)
    arrived = travel(batch)
    assert type(arrived) is dict
    assert list(arrived) == DTYPES
    memories = {column.untyped_storage().data_ptr() for column in arrived.values()}
    assert len(memories) == 1
    for name, column in arrived.items():
        assert column.dtype == getattr(torch, name)
        assert column.to(torch.complex64).tolist() == batch[name].astype(complex).tolist()
        assert column.storage_offset() * column.itemsize % 64 == 0
        column[0] = 0  # may be written to


def test_odd_shapes_arrive(way):
    batch = {
        "none": np.zeros((0, 3), np.float32),
        "one": np.array(7),
        "turned": np.arange(6).reshape(2, 3).T,
        "list": [np.zeros((2, 1), np.uint8), np.ones((1, 1), np.uint8)],
        "nested": {"x": np.arange(2)},
    }
    arrived = travel(batch)
    assert arrived["none"].shape == (0, 3)
    assert arrived["one"] == 7
    assert arrived["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert [part.tolist() for part in arrived["list"]] == [[[0], [0]], [[1]]]
    assert arrived["nested"]["x"].tolist() == [0, 1]


@pytest.mark.parametrize("batch", [{}, {"x": np.zeros(0)}, {"name": np.array(["a"], object)}])
def test_batches_without_numbers_arrive(batch, way):
    arrived = travel(batch)
    assert list(arrived) == list(batch)
    assert [len(column) for column in arrived.values()] == [len(c) for c in batch.values()]


def test_ragged_and_sparse_columns_arrive_with_the_others(way):
    arrived = travel({"x": np.arange(2), "r": RAGGED, "s": SPARSE})
    assert [row.tolist() for row in arrived["r"].unbind()] == RAGGED.to_list()
    assert arrived["s"].to_dense().tolist() == SPARSE.to_list()


def test_a_batch_that_is_no_dict_arrives():
    x, (r, s) = travel((np.arange(2), [RAGGED, SPARSE]))
    assert x.tolist() == [0, 1]
    assert r.layout == torch.jagged
    assert s.layout == torch.sparse_coo


def test_tensors_of_a_function_arrive():
    weight = torch.nn.Parameter(torch.ones(2))
    arrived = travel({"x": torch.arange(3), "weight": weight, "view": torch.arange(6)[::2]})
    assert arrived["x"].tolist() == [0, 1, 2]
    assert isinstance(arrived["weight"], torch.nn.Parameter)
    assert arrived["view"].tolist() == [0, 2, 4]


def test_a_worker_sees_a_dict_of_tensors_and_of_columns_over_tensors():
    x = np.arange(3)
    batch = to_shipped({"x": x, "r": RAGGED, "s": SPARSE})
    assert isinstance(batch, dict)
    assert batch["x"].data_ptr() == x.ctypes.data
    assert isinstance(batch["r"], Ragged)
    assert isinstance(batch["r"].values, torch.Tensor)
    assert batch["r"].to_list() == RAGGED.to_list()
    assert isinstance(batch["s"], Sparse)
    assert isinstance(batch["s"].values, torch.Tensor)


def test_what_dataloader_does_before_it_sends_changes_nothing():
    batch = to_shipped({"x": np.arange(3), "r": RAGGED})
    assert type(copy.copy(batch)) is type(batch)
    assert type(default_convert(batch)) is type(batch)
    assert isinstance(default_convert(batch)["r"], Ragged)
