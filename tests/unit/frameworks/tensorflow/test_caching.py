import os

import numpy as np
import pytest
import tensorflow as tf

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


def test_files_of_others_that_were_replaced_are_read_anew(tmp_path):
    """Though their sizes and times are those of the old ones."""
    where, folder = tmp_path / "caches" / "c", tmp_path / "bare"
    for value in (1, 2):
        rows = [{"x": value} for _ in range(40)]
        datum.write(rows, tmp_path / f"{value}", shuffle=False, shards=1, progress=False)
        folder.mkdir(exist_ok=True)
        (shard,) = (tmp_path / f"{value}").glob("*.tfrecord")
        os.utime(shard, ns=(7, 7))
        shard.replace(folder / "train.tfrecord")
        assert numbers(datum.load(folder).to_tf(cache=where)) == [value] * 40


def test_a_cache_serves_any_order(tmp_path, dataset):
    where = tmp_path / "caches" / "c"
    orders = [numbers(dataset.to_tf(cache=where, shuffle=True, seed=seed)) for seed in (1, 2)]
    assert orders[0] != orders[1]
    assert len(kept(tmp_path / "caches")) == 1


RECORDS = 44


@pytest.fixture
def pictures(tmp_path):
    rng = np.random.default_rng(0)
    schema = {
        "id": datum.Feature("int64"),
        "items": datum.Feature("int64", (None,)),
        "image": datum.Feature("uint8", (None, None, 3), encoding="image"),
    }
    rows = [
        {
            "id": i,
            "items": [i] * (i % 3),
            "image": rng.integers(0, 256, (9 + i % 3, 8, 3), np.uint8),
        }
        for i in range(RECORDS)
    ]
    datum.write(rows, tmp_path, schema=schema, shuffle=False, shards=2, progress=False)
    return datum.load(tmp_path), rows


def counting(calls):
    def note(record):
        called = tf.py_function(lambda i: calls.append(int(i)) or 0, [record["id"]], tf.int64)
        return {"id": record["id"] + tf.ensure_shape(called, []), "items": record["items"]}

    return note


@pytest.mark.parametrize("options", [{"epochs": 3}, {}], ids=["epochs", "passes"])
@pytest.mark.parametrize(("after", "times"), [("decode", 3), ("map", 1)])
def test_what_map_made_is_kept_where_asked_in_the_same_order(pictures, options, after, times):
    dataset, _ = pictures
    calls = []
    made = dataset.to_tf(
        batch_size=10,
        shuffle=True,
        map=counting(calls),
        cache=True,
        cache_after=after,
        remainder="pad",
        **options,
    )
    got = [batch for _ in range(3 // options.get("epochs", 1)) for batch in made]
    loader = dataset.to_numpy(batch_size=10, shuffle=True, epochs=3, remainder="pad")
    for batch, expected in zip(got, loader, strict=True):
        assert batch["id"].numpy().tolist() == expected["id"].tolist()
        assert batch["items"].to_list() == [[i] * (i % 3) for i in expected["id"].tolist()]
        assert batch["batch_mask"].numpy().tolist() == expected["batch_mask"].tolist()
    assert sorted(set(calls)) == list(range(RECORDS))
    fillers = 0 if after == "map" else 3 * 6
    assert len(calls) == times * RECORDS + fillers


def test_images_that_were_decoded_once_need_no_files_any_more(pictures):
    dataset, rows = pictures
    made = dataset.to_tf(batch_size=10, shuffle=True, cache=True)
    first = [i for batch in made for i in batch["id"].numpy().tolist()]
    for path in dataset.path.glob("*.tfrecord"):
        path.write_bytes(b"")
    second = []
    for batch in made:
        for number, image in zip(batch["id"].numpy().tolist(), batch["image"], strict=True):
            dense = image.to_tensor() if isinstance(image, tf.RaggedTensor) else image
            np.testing.assert_array_equal(dense.numpy(), rows[number]["image"])
            second.append(number)
    assert sorted(second) == list(range(RECORDS))
    assert first != second


@pytest.mark.parametrize("after", ["decode", "map"])
def test_the_other_frameworks_keep_it_too(pictures, after):
    dataset, _ = pictures
    calls = []

    def note(record):
        calls.append(int(record["id"]))
        return {"id": record["id"], "sum": record["image"].sum()}

    loader = dataset.to_numpy(
        batch_size=10, shuffle=True, epochs=2, map=note, cache=True, cache_after=after
    )
    plain = dataset.to_numpy(batch_size=10, shuffle=True, epochs=2, map=note)
    for got, expected in zip(loader, plain, strict=True):
        assert got["id"].tolist() == expected["id"].tolist()
        assert got["sum"].tolist() == expected["sum"].tolist()
    assert len(calls) == RECORDS * (2 + (1 if after == "map" else 2))
