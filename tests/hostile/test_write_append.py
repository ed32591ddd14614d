"""Records added to a dataset: the old ones stay as they were, whatever the new ones are."""

import json
import os

import numpy as np
import pytest
from PIL import Image
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import LabelEncoder

import datum
from tests.hostile.test_write_targets import cut_off
from tests.unit.write.datasets import digests, picture, read, values, write


def grey(*size):
    return {"x": Image.new("L", size, 7)}


def colour(*size):
    return {"x": Image.new("RGB", size, (1, 2, 3))}


def flat(row):
    """A row that can be compared: no arrays, and nothing that is absent."""
    return {name: plain(value) for name, value in row.items() if value is not None}


def plain(value):
    return [plain(part) for part in value] if isinstance(value, (list, np.ndarray)) else value


# What is there, what is added, and whether both can be held.
MIXTURES = {
    "the same": ({"x": 1}, {"x": 2}),
    "one more feature": ({"x": 1}, {"x": 2, "y": "new"}),
    "one feature less": ({"x": 1, "y": "old"}, {"x": 2}),
    "others altogether": ({"x": 1}, {"y": 2}),
    "more values": ({"x": [1, 2, 3]}, {"x": [1]}),
    "many more values": ({"x": [1, 2]}, {"x": list(range(300))}),
    "ragged rows": ({"x": [[1, 2], [3, 4]]}, {"x": [[1], []]}),
    "larger integers": ({"x": np.uint8(1)}, {"x": np.uint16(300)}),
    "integers after bools": ({"x": True}, {"x": 3}),
    "floats after integers": ({"x": 1}, {"x": 0.5}),
    "longer floats": ({"x": 0.5}, {"x": 0.1}),
    "shorter floats": ({"x": 0.1}, {"x": 0.5}),
    "text after integers": ({"x": 1}, {"x": "1"}),
    "something after nothing": ({"x": []}, {"x": ["a"]}),
    "a value after none": ({"x": None, "y": 1}, {"x": 3, "y": 1}),
    "finer times": ({"x": np.datetime64(1, "s")}, {"x": np.datetime64(1, "us")}),
}


@pytest.mark.parametrize("kind", MIXTURES)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_old_and_new_records_come_back_or_nothing_changes(tmp_path, kind, is_reversed):
    first, second = MIXTURES[kind][:: -1 if is_reversed else 1]
    out = tmp_path / "out"
    write([first, first], out)
    before, rows = digests(out), read(out)
    try:
        write([second], out, append=True)
    except datum.SchemaError:
        assert digests(out) == before
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        return
    write([second], tmp_path / "alone")
    found = [flat(row) for row in read(out)]
    assert found[:2] == [flat(row) for row in rows]
    assert found[2] == flat(read(tmp_path / "alone")[0])
    assert datum.load(out).verify().is_sound
    assert datum.load(out).statistics["train"]["records"] == 3
    kept = {name: crc for name, crc in digests(out).items() if name in before}
    assert {**kept, "datum.json": 0} == {**before, "datum.json": 0}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (colour(2, 2), colour(3, 3)),
        (colour(2, 2), grey(3, 3)),
        (grey(2, 2), colour(2, 2)),
        (grey(2, 2), {"x": Image.new("I;16", (2, 2), 300)}),
        ({"x": Image.new("RGBA", (2, 2))}, colour(2, 2)),
    ],
)
def test_images_of_other_kinds_leave_the_old_ones_readable(tmp_path, first, second):
    out = tmp_path / "out"
    write([first, first], out)
    before = [row["x"] for row in read(out)]
    try:
        write([second], out, append=True)
    except datum.SchemaError:
        assert [row["x"].tolist() for row in read(out)] == [x.tolist() for x in before]
        return
    found = [row["x"] for row in read(out)]
    assert len(found) == 3
    for old, new in zip(before, found, strict=False):
        assert new.shape[:2] == old.shape[:2]
        assert new.shape[2] >= old.shape[2]
        assert (new[..., : old.shape[2]] == old).all() or old.shape[2] == 1


def test_folders_of_images_can_be_added_to_one_another(tmp_path):
    for name, size in (("one", (8, 6)), ("two", (9, 9)), ("three", (8, 6))):
        for label in ("cat", "dog"):
            picture(tmp_path / name / label / f"{name}.png", 5, size)
    out = tmp_path / "out"
    write(tmp_path / "one", out)
    write(tmp_path / "two", out, append=True)
    write(tmp_path / "three", out, append=True)
    rows = read(out)
    assert sorted(row["image"].shape for row in rows) == [(6, 8, 3)] * 4 + [(9, 9, 3)] * 2
    assert datum.load(out).metadata["image"]["formats"] == {"png": 6}
    assert datum.load(out).metadata["label"]["class_names"] == ["cat", "dog"]


def test_classes_that_would_change_their_numbers_are_refused(tmp_path):
    for name, labels in (("one", ("cat", "dog")), ("two", ("ant", "dog")), ("three", ("cat",))):
        for label in (*labels, "zebra") if name != "two" else labels:
            picture(tmp_path / name / label / "1.png", 5)
    out = tmp_path / "out"
    write(tmp_path / "one", out)
    before = digests(out)
    for name in ("two", "three"):
        with pytest.raises(datum.SchemaError, match="class_names"):
            write(tmp_path / name, out, append=True)
        assert digests(out) == before


def test_encoders_that_have_learnt_something_else_are_refused(tmp_path):
    rows = [{"text": "red green", "label": "a"}, {"text": "blue", "label": "b"}]
    others = {"text": ["red black", "blue"], "label": ["a", "b", "c"]}
    for name, kind in (("text", CountVectorizer), ("label", LabelEncoder)):
        out = tmp_path / name
        write(rows, out, encoders={name: kind()})
        before = digests(out)
        with pytest.raises(datum.SchemaError):
            write(rows, out, append=True, encoders={name: kind().fit(others[name])})
        assert digests(out) == before
        write(rows, out, append=True)  # with what the dataset keeps
        write(rows, out, append=True, encoders={name: kind()})
        stored = {json.dumps(str(record[name])) for record in read(out)}
        assert len(read(out)) == 6
        assert len(stored) == 2


def test_splits_and_shards_are_added_beside_the_old_ones(tmp_path):
    out = tmp_path / "out"
    write([{"x": number} for number in range(10)], out, shards=3)
    for start in (10, 20, 30):
        rows = [{"x": number} for number in range(start, start + 10)]
        write(rows, out, append=True, shards=2, splits={"train": 0.5, "val": 0.5})
    dataset = datum.load(out)
    assert sorted([*values(out), *values(out, split="val")]) == list(range(40))
    assert len(dataset.splits["train"].shards) == 9
    assert set(values(out)[:10]) == set(range(10))
    assert dataset.verify().is_sound


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_an_append_that_is_cut_off_leaves_the_old_dataset_or_the_new_one(tmp_path, compression):
    for step in range(1, 40):
        out = tmp_path / f"{step}" / "out"
        write([{"x": 1}] * 3, out, compression=compression)
        child = os.fork()
        if child == 0:
            cut_off(step)
            write([{"x": 2}] * 3, out, append=True, shards=2, compression=compression)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found = values(out)
        assert found in ([1] * 3, [1] * 3 + [2] * 3), f"at step {step}"
        assert datum.load(out).verify().is_sound
        write([{"x": 3}] * 3, out, append=True, shards=2, compression=compression)
        assert values(out) == [*found, 3, 3, 3]
        assert datum.load(out).verify().is_sound
        assert [path.name for path in out.parent.iterdir()] == ["out"]
        if code == 0:
            return
    pytest.fail("it never came to its end")


def test_an_append_of_nothing_or_to_nothing_is_told(tmp_path):
    with pytest.raises(datum.WriteError, match="expected a dataset to append to"):
        write([{"x": 1}], tmp_path / "out", append=True)
    write([{"x": 1}], tmp_path / "out")
    before = digests(tmp_path / "out")
    with pytest.raises(datum.SourceError, match="expected records, got none"):
        write([], tmp_path / "out", append=True)
    with pytest.raises(datum.WriteError, match="compression"):
        write([{"x": 1}], tmp_path / "out", append=True, compression="gzip")
    assert digests(tmp_path / "out") == before
