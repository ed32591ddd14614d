"""The option `missing`: what is given for a feature that a record lacks."""

import math

import numpy as np
import pytest

import datum
from datum._load.missing import fill_missing, required_features
from datum.schema import Feature, Schema


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    rows = [
        {"id": i, "age": i / 2, "label": i % 3, "name": f"n{i}", "tokens": [i] * (i % 3)}
        for i in range(30)
    ]
    for row in rows:
        if row["id"] % 2:
            del row["age"]
        if row["id"] % 5 == 0:
            del row["label"]
        if row["id"] % 7 == 0:
            del row["name"]
    out = tmp_path_factory.mktemp("missing") / "rows"
    schema = {"age": Feature("float32", optional=True)}
    datum.write(rows, out, schema=schema, shuffle=False, progress=False, shards=3)
    return datum.load(out)


def test_absent_floats_are_nan_and_need_no_mask(ds):
    (batch,) = ds.to_numpy(batch_size=30, columns=["id", "age"])
    assert list(batch) == ["id", "age"]
    assert np.isnan(batch["age"]).tolist() == [i % 2 == 1 for i in range(30)]
    assert batch["age"].dtype == np.float32


def test_absent_integers_and_texts_have_a_mask_beside_them(ds):
    (batch,) = ds.to_numpy(batch_size=30)
    assert batch["label_present"].tolist() == [i % 5 != 0 for i in range(30)]
    assert batch["name_present"].tolist() == [i % 7 != 0 for i in range(30)]


def test_a_mask_can_be_asked_for(ds):
    (batch,) = ds.to_numpy(batch_size=30, missing="mask")
    assert batch["age"][1] == 0
    assert not batch["age_present"][1]


def test_a_value_takes_the_place_without_a_mask(ds):
    (batch,) = ds.to_numpy(batch_size=30, missing={"label": -1, "name": "nobody", "age": 40})
    assert {"label_present", "name_present", "age_present"}.isdisjoint(batch)
    assert batch["label"][:6].tolist() == [-1, 1, 2, 0, 1, -1]
    assert batch["name"][7] == "nobody"
    assert batch["age"][1] == 40


def test_a_record_that_lacks_a_feature_can_be_an_error(ds):
    with pytest.raises(datum.SchemaError, match="record 0 .*feature 'label': expected a value"):
        list(ds.to_numpy(missing={"label": "error"}))
    assert list(ds.to_numpy(missing={"id": "error"}))  # nothing lacks it


@pytest.mark.parametrize("shuffle", [False, True, "blocks"])
def test_records_that_lack_a_feature_can_be_dropped(ds, shuffle):
    loader = ds.to_numpy(batch_size=4, shuffle=shuffle, missing={"label": "drop"})
    batches = list(loader)
    assert len(loader) == len(batches) == 6
    assert [len(batch["id"]) for batch in batches] == [4] * 6
    ids = np.concatenate([batch["id"] for batch in batches])
    assert sorted(ids) == [i for i in range(30) if i % 5]
    assert "label_present" not in batches[0]


def test_the_order_without_some_records_is_that_of_all(ds):
    everything = ds.to_numpy(batch_size=30, shuffle=True, seed=3)
    some = ds.to_numpy(batch_size=30, shuffle=True, seed=3, missing={"label": "drop"})
    for _ in range(2):
        (whole,), (part,) = everything, some
        assert part["id"].tolist() == [i for i in whole["id"] if i % 5]


def test_dropping_by_all_features_looks_at_those_that_are_read(ds):
    (batch,) = ds.to_numpy(batch_size=30, missing="drop", columns=["id", "name"])
    assert batch["id"].tolist() == [i for i in range(30) if i % 7]
    (batch,) = ds.to_numpy(batch_size=30, missing="drop")
    assert batch["id"].tolist() == [i for i in range(0, 30, 2) if i % 5 and i % 7]


def test_a_state_of_other_records_is_refused(ds):
    state = ds.to_numpy().state_dict()
    with pytest.raises(datum.StateError, match="without records that lack label"):
        ds.to_numpy(missing={"label": "drop"}).load_state_dict(state)


def test_a_mix_of_splits_can_drop_records(ds):
    mixed = datum.mix({ds["train[:15]"]: 1, ds["train[15:]"]: 1})
    batches = list(mixed.to_numpy(batch_size=6, missing={"label": "drop"}))
    ids = np.concatenate([batch["id"] for batch in batches])
    assert len(ids) == 24
    assert all(i % 5 for i in ids)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("fill", "expected `missing` to be 'mask', 'error', 'drop' or a dict"),
        ({"labl": 1}, "did you mean 'label'"),
        ({"label": "many"}, "a value that Feature.'int64', optional=True. can have, got 'many'"),
        ({"label": 0.5}, "got 0.5"),
    ],
)
def test_what_makes_no_sense_is_refused(ds, wrong, problem):
    with pytest.raises(ValueError, match=problem):
        ds.to_numpy(missing=wrong)


def test_only_floats_of_a_fixed_shape_become_nan():
    schema = Schema(
        {
            "row": Feature("float32", (3,), optional=True),
            "double": Feature("float64", optional=True),
            "half": Feature("bfloat16", optional=True),
            "list": Feature("float32", (None,), optional=True),
            "filled": Feature("float32", default=1.0),
            "bag": Feature("float32", (9,), encoding="sparse", optional=True),
        }
    )
    filled = fill_missing(schema, None)
    assert all(map(math.isnan, filled["row"].default))
    assert math.isnan(filled["double"].default)
    assert math.isnan(filled["half"].default)
    assert [filled[name] for name in ("list", "filled", "bag")] == [
        schema[name] for name in ("list", "filled", "bag")
    ]
    assert fill_missing(schema, None) == filled  # a NaN equals itself here


def test_an_absent_sparse_feature_is_masked_or_dropped():
    schema = Schema({"bag": Feature("float32", (9,), encoding="sparse", optional=True)})
    for rule in ("mask", "drop"):
        assert fill_missing(schema, {"bag": rule}) == schema
    assert required_features(schema, "drop") == ["bag"]
    for rule in ("error", 0.5):
        with pytest.raises(ValueError, match="which is sparse, to be 'mask' or 'drop', got"):
            fill_missing(schema, {"bag": rule})
