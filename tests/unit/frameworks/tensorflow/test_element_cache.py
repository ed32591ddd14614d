import numpy as np
import pytest
import tensorflow as tf

import datum

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
