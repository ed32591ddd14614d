"""The loaders of every framework, over the same records."""

import sys

import numpy as np
import pytest

from datum._inspect.measure import contenders
from datum._inspect.measure.contenders import Settings, loader_entries, quiet
from datum._inspect.measure.timing import take_sample
from datum._load.options import LoadOptions

OPTIONS = LoadOptions(batch_size=10, shuffle=True)


def entries(dataset, framework, **settings):
    sample = take_sample(dataset["train"], 40)
    asked = Settings(options=OPTIONS, metadata=dataset.metadata, **settings)
    return sample, {entry.name: entry for entry in loader_entries(framework, sample, asked)}


def values_of(column):
    return np.asarray(column).tolist()


@pytest.mark.parametrize(
    ("framework", "names"),
    [
        ("numpy", ["to_numpy"]),
        ("torch", ["to_torch", "DataLoader"]),
        ("jax", ["to_jax"]),
        ("tf", ["to_tf native", "to_tf graph", "tf.data by hand"]),
    ],
)
def test_the_loaders_of_a_framework(numbers, framework, names):
    _, found = entries(numbers, framework)
    assert list(found) == names
    assert {entry.framework for entry in found.values()} == {framework}


@pytest.mark.parametrize(
    ("framework", "name"),
    [
        ("numpy", "to_numpy"),
        ("torch", "to_torch"),
        ("jax", "to_jax"),
        ("tf", "to_tf native"),
        ("tf", "to_tf graph"),
        ("tf", "tf.data by hand"),
    ],
)
def test_every_loader_gives_all_records_in_every_pass(numbers, framework, name):
    sample, found = entries(numbers, framework)
    contender = found[name].make()
    assert contender.batches == 4
    batches = list(contender.run(2))
    assert len(batches) == contender.lead + 2 * contender.batches
    seen = [x for batch in batches[contender.lead :] for x in values_of(batch["x"])]
    expected = [int(record["x"]) for record in sample.split]
    assert sorted(seen) == sorted(2 * expected)
    assert seen[:40] != expected  # shuffled


def test_workers_of_a_data_loader_give_all_records(numbers):
    sample, found = entries(numbers, "torch", workers=1, worker_epochs=3)
    contender = found["DataLoader"].make()
    assert (contender.epochs, contender.batches) == (3, 12)
    with quiet():  # forks beside threads are warned of
        seen = [x for batch in contender.run(1) for x in values_of(batch["x"])]
    assert sorted(seen) == sorted(3 * [int(record["x"]) for record in sample.split])


def test_the_call_names_the_workers(numbers):
    _, found = entries(numbers, "torch", workers=7)
    assert "num_workers=7" in found["DataLoader"].call


def test_processes_are_forked_only_where_pytorch_does_so(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert contenders._start_method() == "fork"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert contenders._start_method() is None
