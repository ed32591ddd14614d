"""Batches of arrays as batches of tensors; test_shipping.py has those of workers."""

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from datum import BytesColumn, Ragged, Sparse
from datum.frameworks.torch.tensors import replace_columns, to_pinned, to_shipped, to_tensors


class Pair(NamedTuple):
    x: Any
    y: Any


RAGGED = Ragged(np.arange(5.0), np.array([0, 2, 2, 5]))
DEEP = Ragged.from_rows([[[1, 2], []], [[3]]], levels=2)
WORDS = Ragged.from_rows([["a", "b"], []])
SPARSE = Sparse(np.array([[0, 1], [1, 2]]), np.array([5.0, 7.0]), (2, 3))
TAGS = Sparse(np.array([[0, 1]]), BytesColumn.from_values(["a"]), (2, 3))


def travel(batch):
    """As a batch arrives that a worker made."""
    return pickle.loads(pickle.dumps(to_shipped(batch)))


@pytest.fixture(params=[to_tensors, travel], ids=["here", "from a worker"])
def make(request):
    return request.param


def test_numbers_become_tensors(make):
    batch = make({"x": np.arange(6).reshape(2, 3), "y": np.array([True, False])})
    assert list(batch) == ["x", "y"]
    assert batch["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert batch["y"].dtype == torch.bool


def test_tensors_share_the_memory_of_arrays():
    x = np.arange(3)
    assert to_tensors({"x": x})["x"].data_ptr() == x.ctypes.data


def test_strings_become_lists(make):
    objects = np.array([["a", "b"], ["c", "d"]], object)
    assert make({"s": objects[0]}) == {"s": ["a", "b"]}
    assert make({"s": objects}) == {"s": [["a", "b"], ["c", "d"]]}
    assert make({"s": np.array(["ab", "c"])}) == {"s": ["ab", "c"]}
    assert make({"s": BytesColumn.from_values([b"x", b""])}) == {"s": [b"x", b""]}
    assert make({"s": WORDS}) == {"s": [["a", "b"], []]}


def test_ragged_numbers_become_nested_tensors(make):
    nested = make({"r": RAGGED})["r"]
    assert nested.layout == torch.jagged
    assert [row.tolist() for row in nested.unbind()] == [[0, 1], [], [2, 3, 4]]


def test_deeper_ones_stay_ragged_over_a_tensor(make):
    deep = make({"r": DEEP})["r"]
    assert type(deep) is Ragged
    assert isinstance(deep.values.values, torch.Tensor)
    assert deep.to_list() == [[[1, 2], []], [[3]]]


def test_sparse_numbers_become_sparse_tensors(make):
    tensor = make({"s": SPARSE})["s"]
    assert tensor.layout == torch.sparse_coo
    assert tensor.to_dense().tolist() == [[0, 5, 0], [0, 0, 7]]


def test_sparse_strings_stay_as_they_are(make):
    assert isinstance(make({"s": TAGS})["s"], Sparse)


def test_images_that_differ_make_a_list_of_tensors(make):
    images = [np.zeros((2, 3, 1), np.uint8), np.zeros((4, 1, 1), np.uint8)]
    assert [tuple(image.shape) for image in make({"i": images})["i"]] == [(2, 3, 1), (4, 1, 1)]


def test_whatever_a_function_returns_is_gone_through(make):
    batch = make((Pair(np.zeros(2), {"a": [np.ones(1), "text", 3]}), None))
    assert isinstance(batch, tuple)
    assert isinstance(batch[0], Pair)
    assert batch[0].x.tolist() == [0, 0]
    assert batch[0].y["a"][0].tolist() == [1]
    assert batch[0].y["a"][1:] == ["text", 3]
    assert batch[1] is None
    assert make(np.arange(2)).tolist() == [0, 1]


def test_tensors_of_a_function_stay_as_they_are():
    tensor = torch.arange(2)
    assert to_tensors({"x": tensor})["x"] is tensor


def test_all_tensors_are_pinned_and_nothing_else_changes(monkeypatch):
    pinned = []

    def pin(tensor):
        pinned.append(tensor.layout)
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    batch = to_tensors({"x": np.zeros(2), "r": RAGGED, "d": DEEP, "s": SPARSE, "t": WORDS})
    again = to_pinned(batch)
    assert pinned == [torch.strided, torch.jagged, torch.strided, torch.sparse_coo]
    assert list(again) == list(batch)
    assert again["d"].to_list() == DEEP.to_list()
    assert again["t"] == [["a", "b"], []]


def test_columns_are_replaced_wherever_they_are():
    batch = {"a": [1, (2, {"b": 3})], "c": Pair(4, [])}
    replaced = replace_columns(batch, str)
    assert replaced == {"a": ["1", ("2", {"b": "3"})], "c": Pair("4", [])}
    assert isinstance(replaced["c"], Pair)
