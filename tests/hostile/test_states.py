"""States of loaders that were changed, or are of another dataset: refused, and nothing moves."""

from __future__ import annotations

import math
from typing import Any

import pytest

import datum
from datum.errors import StateError

FALSE: list[dict[str, Any]] = [
    {"position": 41},
    {"position": -1},
    {"position": 2**63},
    {"position": math.nan},
    {"position": math.inf},
    {"position": "8"},
    {"position": None},
    {"position": [8]},
    {"epoch": -1},
    {"epoch": 2**64},
    {"epoch": 0.5},
    {"seed": -1},
    {"seed": "1"},
    {"seed": math.nan},
    {"records": "of others"},
    {"records": 7},
    {"order": None},
    {"version": 2},
    {"version": "1"},
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("states")
    datum.write([{"x": i, "words": ["a"] * (i % 5)} for i in range(40)], folder / "a")
    return datum.load(folder / "a")


@pytest.mark.parametrize("framework", ["numpy", "torch", "tf"])
@pytest.mark.parametrize("seed", [1, None])
def test_a_false_state_is_refused_and_the_loader_stays_where_it_was(dataset, framework, seed):
    make = getattr(dataset, f"to_{framework}")
    loader = make("train", batch_size=8, shuffle=True, seed=seed)
    before = loader.state_dict()
    for changed in FALSE:
        with pytest.raises(StateError, match="split 'train'"):
            loader.load_state_dict({**before, **changed})
        assert loader.state_dict() == before, changed
    assert len(list(loader)) == 5


@pytest.mark.parametrize("options", [{"bucket_by": "words"}, {"batch_size": None}], ids=str)
def test_a_position_beyond_the_end_is_refused_whatever_makes_batches(dataset, options):
    loader = dataset.to_numpy("train", **({"batch_size": 8} | options))
    state = loader.state_dict()
    loader.load_state_dict({**state, "position": 40})  # the very end is a place
    with pytest.raises(StateError, match="expected `position` of 0 to 40, got 41"):
        loader.load_state_dict({**state, "position": 41})


def test_a_state_of_another_dataset_is_refused(dataset, tmp_path):
    datum.write([{"x": i} for i in range(41)], tmp_path / "b")
    other = datum.load(tmp_path / "b").to_numpy("train", batch_size=8)
    with pytest.raises(StateError, match="expected state of the same records"):
        dataset.to_numpy("train", batch_size=8).load_state_dict(other.state_dict())
