"""Missing values mean the same in every framework, and are never zeros that nobody told of."""

import math

import numpy as np
import pytest

import datum
from datum.schema import Feature

WAYS = ["numpy", "torch", "jax", "tf native", "tf graph"]


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    rows = [{"id": i, "age": i + 0.5, "label": i % 3, "tokens": [i, i]} for i in range(24)]
    for row in rows:
        for name, every in (("age", 4), ("label", 5), ("tokens", 6)):
            if row["id"] % every == 1:
                del row[name]
    out = tmp_path_factory.mktemp("missing") / "rows"
    schema = {"age": Feature("float32", optional=True)}
    datum.write(rows, out, schema=schema, shuffle=False, progress=False, shards=2)
    return datum.load(out)


def load(ds, way, **options):
    framework, _, engine = way.partition(" ")
    if engine:
        options["engine"] = engine
    (batch,) = getattr(ds, f"to_{framework}")(batch_size=24, **options)
    return batch


def listed(column):
    return np.asarray(column).tolist()


@pytest.mark.parametrize("way", WAYS)
def test_by_default_floats_are_nan_and_all_else_has_a_mask(ds, way):
    batch = load(ds, way)
    assert sorted(batch) == ["age", "id", "label", "label_present", "tokens", "tokens_present"]
    assert [math.isnan(age) for age in listed(batch["age"])] == [i % 4 == 1 for i in range(24)]
    assert listed(batch["label_present"]) == [i % 5 != 1 for i in range(24)]
    assert listed(batch["tokens_present"]) == [i % 6 != 1 for i in range(24)]


@pytest.mark.parametrize("way", WAYS)
def test_a_value_fills_in(ds, way):
    batch = load(ds, way, missing={"label": -1, "age": 0}, columns=["age", "label"])
    assert sorted(batch) == ["age", "label"]
    assert listed(batch["label"]) == [-1 if i % 5 == 1 else i % 3 for i in range(24)]
    assert listed(batch["age"])[:2] == [0.5, 0]


@pytest.mark.parametrize("way", WAYS)
def test_supervised_refuses_to_hide_what_is_missing(ds, way):
    with pytest.raises(ValueError, match="some records may lack 'label'"):
        load(ds, way, supervised=("age", "label"))
    ages, labels = load(ds, way, supervised=("age", "label"), missing={"label": -1})
    assert listed(labels)[1] == -1
    assert math.isnan(listed(ages)[1])


@pytest.mark.parametrize("way", WAYS)
def test_a_record_can_be_refused(ds, way):
    with pytest.raises(Exception, match="label"):
        load(ds, way, missing={"label": "error"})


@pytest.mark.parametrize("way", WAYS[:4])
@pytest.mark.parametrize("shuffle", [False, True])
def test_records_can_be_dropped(ds, way, shuffle):
    batch = load(ds, way, missing={"label": "drop"}, shuffle=shuffle, seed=5)
    expected = load(ds, "numpy", missing={"label": "drop"}, shuffle=shuffle, seed=5)
    assert listed(batch["id"]) == expected["id"].tolist()
    assert sorted(listed(batch["id"])) == [i for i in range(24) if i % 5 != 1]


def test_the_graph_says_that_it_cannot_drop_records(ds):
    with pytest.raises(ValueError, match="no missing='drop' with engine='graph'.*\n?hint: engine"):
        ds.to_tf(engine="graph", missing={"label": "drop"})
