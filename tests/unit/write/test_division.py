"""A part divided by fractions."""

import numpy as np
import pytest

import datum
from datum import Feature, SplitError
from tests.unit.write.datasets import digests, rows, values, write


def test_fractions_divide_by_key(tmp_path):
    fractions = {"train": 0.8, "val": 0.2}
    write(rows(1000), tmp_path / "few", splits=fractions)
    write(rows(2000), tmp_path / "many", splits=fractions)
    few, many = (set(values(tmp_path / name, split="val")) for name in ("few", "many"))
    assert 150 < len(few) < 250
    assert {x for x in many if x < 1000} == few
    assert len(values(tmp_path / "few")) + len(few) == 1000


def test_columns_are_divided_like_rows(tmp_path):
    fractions = {"train": 0.8, "val": 0.2}
    write([{"x": i} for i in range(300)], tmp_path / "rows", splits=fractions)
    write({"x": np.arange(300)}, tmp_path / "columns", splits=fractions)
    assert values(tmp_path / "rows", split="val") == values(tmp_path / "columns", split="val")


@pytest.mark.parametrize("is_table", [False, True])
def test_stratified_fractions_are_exact(tmp_path, is_table):
    labels = ["a"] * 80 + ["b"] * 20
    source = {"label": labels} if is_table else [{"label": label} for label in labels]
    write(source, tmp_path / "out", splits={"train": 0.75, "val": 0.25}, stratify="label")
    found = values(tmp_path / "out", "label", "val")
    assert (found.count("a"), found.count("b")) == (20, 5)


def test_a_source_for_each_split(tmp_path):
    write(None, tmp_path / "a", splits={"train": rows(5), "val": rows(3)})
    write({"train": rows(5), "val": rows(3)}, tmp_path / "b")
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert {name: split.records for name, split in datum.load(tmp_path / "a").splits.items()} == {
        "train": 5,
        "val": 3,
    }


def test_the_schema_of_all_splits_is_one(tmp_path):
    write(None, tmp_path / "rows", splits={"train": [{"x": 1}], "val": [{"x": 0.1}]})
    write(None, tmp_path / "cols", splits={"a": {"x": np.arange(2)}, "b": {"x": np.array([0.1])}})
    for name in ("rows", "cols"):
        assert datum.load(tmp_path / name).schema["x"] == Feature("float32")


@pytest.mark.parametrize(
    ("splits", "match"),
    [
        ({"train": 0.5}, "add up to 1"),
        ({"tr/ain": 1.0}, "tr/ain"),
        ({}, "dict of fractions or sources"),
        ({"train": rows(2)}, "`source` to be None"),
    ],
)
def test_splits_that_cannot_be_meant_are_refused(tmp_path, splits, match):
    with pytest.raises(SplitError, match=match):
        write(rows(2), tmp_path / "out", splits=splits)
