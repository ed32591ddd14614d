import copy
import pickle
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import torch
from torch.utils.data import default_convert

from datum import BytesColumn, Ragged, Sparse
from datum._frameworks.torch import tensors
from datum._frameworks.torch.tensors import (
    TOOLS,
    replace_columns,
    to_pinned,
    to_shipped,
    to_tensors,
)
from datum._load.functions import GlobalRandomness


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


DTYPES = ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float64", "complex64"]


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


def test_only_tensors_of_one_shape_are_stacked():
    stacked = TOOLS.stack([torch.ones(2, dtype=torch.bfloat16)] * 3)
    assert (stacked.dtype, stacked.shape) == (torch.bfloat16, (3, 2))
    assert TOOLS.stack([torch.ones(2), torch.ones(3)]) is None
    assert TOOLS.stack([torch.ones(2), [1.0, 1.0]]) is None
    assert TOOLS.stack([1, 2]) is None


def test_a_generator_follows_from_its_seed():
    one, same, other = (torch.rand(3, generator=TOOLS.make_generator(n)) for n in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_draws_from_the_generator_of_the_program_are_seen_and_set_back():
    randomness = GlobalRandomness(*TOOLS.generators)
    before = torch.get_rng_state()
    with randomness.seeded(3):
        drawn = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    randomness.settle()
    assert randomness.is_drawn
    with randomness.seeded(3):
        assert torch.equal(torch.rand(3), drawn)
