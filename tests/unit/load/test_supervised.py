"""The option `supervised`: tuples of inputs and targets instead of dicts."""

import numpy as np
import pytest

import datum


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    rows = [
        {"a": i, "b": float(i), "label": i % 3, **({} if i % 4 else {"rare": 1})} for i in range(10)
    ]
    out = tmp_path_factory.mktemp("supervised") / "rows"
    datum.write(rows, out, shuffle=False, progress=False)
    return datum.load(out)


def test_batches_are_tuples_of_what_is_named(ds):
    x, y = next(iter(ds.to_numpy(batch_size=4, supervised=("a", "label"))))
    assert x.tolist() == [0, 1, 2, 3]
    assert y.tolist() == [0, 1, 2, 0]


def test_several_inputs_are_a_dict_and_a_third_part_the_weights(ds):
    x, y, weight = next(iter(ds.to_numpy(batch_size=4, supervised=(["a", "b"], "label", "b"))))
    assert list(x) == ["a", "b"]
    assert weight.tolist() == [0, 1, 2, 3]
    assert len(y) == 4


def test_only_what_is_named_is_read(ds):
    assert list(ds.to_numpy(supervised=("a", "label")).schema) == ["a", "label"]


def test_names_may_come_from_functions(ds):
    def double(record):
        return {"twice": record["a"] * 2, "label": record["label"]}

    x, _ = next(iter(ds.to_numpy(batch_size=4, map=double, supervised=("twice", "label"))))
    assert x.tolist() == [0, 2, 4, 6]
    with pytest.raises(ValueError, match="expected batches with a, label for `supervised`, got tw"):
        next(iter(ds.to_numpy(map=double, supervised=("a", "label"))))


def test_leaving_out_what_tells_missing_values_is_refused(ds):
    with pytest.raises(ValueError, match="some records may lack 'rare'.*\n?.*\nhint: missing="):
        ds.to_numpy(supervised=("a", "rare"))
    with pytest.raises(ValueError, match="some records may lack 'rare'"):
        next(iter(ds.to_numpy(supervised=("a", "rare"), map=dict)))
    (_, y), *_ = ds.to_numpy(supervised=("a", "rare"), missing={"rare": -1})
    assert y.tolist() == [1, -1, -1, -1, 1, -1, -1, -1, 1, -1]
    (x, y), *_ = ds.to_numpy(supervised=("a", "rare"), missing={"rare": "drop"})
    assert x.tolist() == [0, 4, 8]
    (x, y), *_ = ds.to_numpy(supervised=(["a", "rare_present"], "rare"))
    assert x["rare_present"].sum() == 3


def test_what_tells_records_from_fillers_must_be_named(ds):
    with pytest.raises(ValueError, match="expected 'batch_mask' among the names"):
        ds.to_numpy(supervised=("a", "label"), remainder="pad")
    *_, (x, _, weight) = ds.to_numpy(
        batch_size=4, supervised=("a", "label", "batch_mask"), remainder="pad"
    )
    assert len(x) == 4
    assert weight.tolist() == [True, True, False, False]


def test_records_lost_to_an_empty_batch_are_tuples_too(ds):
    loaders = [ds.to_numpy(batch_size=9, supervised=("a", "label"), host=(i, 3)) for i in range(3)]
    parts = [list(loader) for loader in loaders]
    assert all(isinstance(batch, tuple) for batches in parts for batch in batches)
    assert sorted({int(i) for batches in parts for x, _ in batches for i in x}) == list(range(10))


@pytest.mark.parametrize("wrong", [("a",), "a", ("a", 1), ("a", "b", "label", "x")])
def test_what_names_no_inputs_and_targets_is_refused(ds, wrong):
    with pytest.raises(TypeError, match="expected `supervised` to name the inputs"):
        ds.to_numpy(supervised=wrong)


def test_an_unknown_name_is_told_with_the_nearest(ds):
    with pytest.raises(ValueError, match="did you mean 'label'"):
        ds.to_numpy(supervised=("a", "lable"))


def test_a_batch_map_comes_first(ds):
    def scale(batch):
        return {**batch, "a": batch["a"] * np.int64(10)}

    x, _ = next(iter(ds.to_numpy(batch_size=3, batch_map=scale, supervised=("a", "label"))))
    assert x.tolist() == [0, 10, 20]
