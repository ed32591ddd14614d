import pytest

import datum
from tests.unit.frameworks.tensorflow.written import numbers, write_numbers


def kept(folder):
    return {path.name.partition(".")[0] for path in folder.iterdir()}


@pytest.fixture
def dataset(tmp_path):
    return write_numbers(tmp_path / "set", 40)


def test_files_are_used_again_by_the_same_pipeline_alone(tmp_path, dataset):
    where = tmp_path / "caches" / "c"
    first = numbers(dataset.to_tf("train[:20]", cache=where, batch_size=10))
    (name,) = kept(tmp_path / "caches")
    assert name.startswith("c-")
    assert numbers(dataset.to_tf("train[:20]", cache=where, batch_size=10)) == first
    assert kept(tmp_path / "caches") == {name}
    assert numbers(dataset.to_tf("train[20:]", cache=where, batch_size=10)) == list(range(20, 40))
    assert len(kept(tmp_path / "caches")) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"batch_size": 4},
        {"drop_remainder": True},
        {"shuffle": True},
        {"columns": ["x"]},
        {"pad": True},
        {"map": lambda record: record},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_form_has_files_of_its_own(tmp_path, dataset, other):
    where = tmp_path / "caches" / "c"
    numbers(dataset.to_tf(cache=where, batch_size=15))
    options = {"batch_size": 15, **other}
    expected = numbers(dataset.to_tf(**options))
    found = numbers(dataset.to_tf(cache=where, **options))
    assert sorted(found) == sorted(expected)
    assert len(kept(tmp_path / "caches")) == 2


def test_a_dataset_that_was_written_anew_is_read_anew(tmp_path, dataset):
    where = tmp_path / "caches" / "c"
    numbers(dataset.to_tf(cache=where))
    rows = [{"x": -n, "items": []} for n in range(40)]
    datum.write(rows, tmp_path / "set", shuffle=False, overwrite=True, shards=4, progress=False)
    again = datum.load(tmp_path / "set").to_tf(cache=where)
    assert numbers(again) == [-n for n in range(40)]


def test_a_cache_serves_any_order(tmp_path, dataset):
    where = tmp_path / "caches" / "c"
    orders = [numbers(dataset.to_tf(cache=where, shuffle=True, seed=seed)) for seed in (1, 2)]
    assert orders[0] != orders[1]
    assert len(kept(tmp_path / "caches")) == 1
