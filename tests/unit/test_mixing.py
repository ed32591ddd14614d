"""Mixing datasets, splits and loaders."""

import json
from itertools import islice

import numpy as np
import pytest

import datum
from datum._load.loader import Loader
from datum.mixing import Mix


@pytest.fixture
def small(tmp_path):
    datum.write({"x": range(50)}, tmp_path / "small", progress=False)
    return datum.load(tmp_path / "small")


@pytest.fixture
def large(tmp_path):
    datum.write({"x": range(1000, 2000)}, tmp_path / "large", progress=False)
    return datum.load(tmp_path / "large")


def values(batches):
    return np.concatenate([batch["x"] for batch in batches])


def test_datasets_stand_for_their_training_split(small, large):
    mixed = datum.mix({small: 1, large: 3})
    assert isinstance(mixed, Mix)
    assert len(mixed) == 1050
    assert repr(mixed) == "Mix(25.0% 'train', 75.0% 'train', 1,050 records, seed=0)"


def test_shares_are_met(small, large):
    found = values(datum.mix({small["train"]: 0.3, large["train"]: 0.7}).to_numpy(batch_size=100))
    assert len(found) == 1050
    assert abs((found < 1000).mean() - 0.3) < 0.03


def test_a_split_at_its_end_starts_anew_and_all_its_records_come_equally_often(small, large):
    found = values(datum.mix({small: 0.5, large: 0.5}).to_numpy(shuffle=True))
    times = np.bincount(found[found < 1000], minlength=50)
    assert times.max() - times.min() <= 1
    assert times.min() >= 9


def test_loaders_are_mixed_into_a_loader(small, large):
    options = dict(batch_size=100, shuffle=True, seed=5)
    loader = datum.mix({small.to_numpy(**options): 0.3, large.to_numpy(**options): 0.7}, seed=2)
    assert isinstance(loader, Loader)
    of_splits = datum.mix({small["train"]: 0.3, large["train"]: 0.7}, seed=2).to_numpy(**options)
    assert values(loader).tolist() == values(of_splits).tolist()


def test_a_mix_goes_on_where_it_was_with_other_hosts(small, large):
    mixed = datum.mix({small: 0.3, large: 0.7}, seed=2)
    whole = values(mixed.to_numpy(batch_size=50, shuffle=True))
    loader = mixed.to_numpy(batch_size=50, shuffle=True)
    first = values(islice(iter(loader), 4))
    state = json.loads(json.dumps(loader.state_dict()))
    parts = []
    for host in range(2):
        other = mixed.to_numpy(batch_size=25, shuffle=True, host=(host, 2))
        other.load_state_dict(state)
        parts.append([batch["x"] for batch in other])
    rest = [x for batches in zip(*parts, strict=True) for x in batches]
    assert np.concatenate([first, *rest]).tolist() == whole.tolist()


def test_a_state_of_another_mix_is_refused(small, large):
    state = datum.mix({small: 0.3, large: 0.7}).to_numpy().state_dict()
    for other in (
        datum.mix({small: 0.4, large: 0.6}),
        datum.mix({small: 0.3, large: 0.7}, seed=1),
        datum.mix({large: 0.3, small: 0.7}),
    ):
        with pytest.raises(datum.StateError):
            other.to_numpy().load_state_dict(state)


def test_epochs_of_a_mix_go_on_where_the_one_before_ended(small, large):
    mixed = datum.mix({small: 0.5, large: 0.5})
    found = values(mixed.to_numpy(shuffle=True, epochs=4))
    from_large = found[found >= 1000]
    assert sorted(from_large[:1000]) == list(range(1000, 2000))


def test_options_of_a_mix_are_those_of_a_loader(small, large):
    with pytest.raises(TypeError, match="to_numpy: got an unknown option `bach_size`"):
        datum.mix({small: 1, large: 1}).to_numpy(bach_size=3)


@pytest.mark.parametrize("parts", [{}, [], None, "train", 3])
def test_what_is_no_dict_of_parts_is_refused(parts):
    with pytest.raises(TypeError, match="mix: expected a dict of splits and their weights"):
        datum.mix(parts)


@pytest.mark.parametrize("weight", [0, -1, float("nan"), "half"])
def test_what_is_no_weight_is_refused(small, large, weight):
    with pytest.raises(ValueError, match="expected weights above 0"):
        datum.mix({small: 1, large: weight})


def test_what_is_no_dataset_is_refused(small):
    with pytest.raises(
        TypeError, match="mix: expected datasets, splits, or loaders alone, got str"
    ):
        datum.mix({small: 1, "large": 1})
    with pytest.raises(TypeError, match="loaders alone, got Loader"):
        datum.mix({small: 1, small.to_numpy(): 1})


def test_loaders_with_other_options_are_refused(small, large):
    with pytest.raises(ValueError, match="loaders of one framework with the same options"):
        datum.mix({small.to_numpy(batch_size=3): 1, large.to_numpy(batch_size=4): 1})


def test_a_seed_that_cannot_be_is_refused(small, large):
    with pytest.raises(ValueError, match="expected `seed` of 0 or more"):
        datum.mix({small: 1, large: 1}, seed=-1)
