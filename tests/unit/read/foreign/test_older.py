import io
import json

import numpy as np
import pytest
from PIL import Image

import datum
from datum import Feature, Schema
from datum._read.foreign.detect import open_dataset
from datum._read.foreign.older import MAPPING_FILE, SHARD_FILE
from datum.errors import CorruptRecordError, ManifestError, SchemaError
from tests.unit.read.foreign.files_written import numbers, split_of, write_file

SHARD = "train-00000-of-00001.tfrecord"


def png(*size, mode="RGB"):
    file = io.BytesIO()
    image = Image.new(mode, size, 7)
    if mode == "P":
        image.putpalette([0, 0, 0] * 256)  # colours that would all be one
    image.save(file, "PNG")
    return file.getvalue()


def describe(kind, shape, dense=True):
    return {"type": kind, "shape": shape, "dense": dense}


def write_older(folder, rows, mapping, schema=None, shards=None):
    """One shard of records, and the two JSON files as that library writes them."""
    write_file(folder / SHARD, rows, schema)
    shards = {"train": {SHARD: len(rows)}} if shards is None else shards
    (folder / SHARD_FILE).write_text(json.dumps(shards))
    (folder / MAPPING_FILE).write_text(json.dumps(mapping))
    return folder


def rows_of(contents):
    return list(split_of(contents, "train"))


def test_images_and_their_labels_are_read(tmp_path):
    rows = [{"image": png(4, 3), "label": 1}, {"image": png(2, 5), "label": 2}]
    mapping = {"image": describe("string", [5, 2, 3]), "label": describe("int", [])}
    contents = open_dataset(write_older(tmp_path, rows, mapping))
    assert contents.writer == "older datum"
    assert contents.schema == Schema(
        {"image": Feature("uint8", (None, None, 3), encoding="image"), "label": Feature("int64")}
    )
    found = rows_of(contents)
    assert [row["image"].shape for row in found] == [(3, 4, 3), (5, 2, 3)]
    assert [row["label"] for row in found] == [1, 2]


def test_masks_of_rank_two_have_one_channel_and_keep_their_ids(tmp_path):
    rows = [{"label": png(4, 3, mode="P")}]
    contents = open_dataset(write_older(tmp_path, rows, {"label": describe("string", [3, 4])}))
    assert contents.schema["label"].shape == (None, None, 1)
    assert np.unique(rows_of(contents)[0]["label"]).tolist() == [7]


@pytest.mark.parametrize("shape", [[2, 2], [8, 8, 3]])
def test_strings_of_the_rank_of_images_that_are_none_stay_strings(tmp_path, shape):
    mapping = {"text": describe("string", shape)}
    contents = open_dataset(write_older(tmp_path, [{"text": "photos/1.jpeg"}], mapping))
    assert contents.schema["text"] == Feature("str", (1,))
    rows = [{"text": ["a", "b", "c", "d"]}]
    contents = open_dataset(write_older(tmp_path, rows, {"text": describe("string", [2, 2])}))
    assert rows_of(contents)[0]["text"] == [["a", "b"], ["c", "d"]]


def test_lists_of_strings_are_read(tmp_path):
    rows = [{"pose": ["left", "right"], "name": "a"}, {"pose": ["front"], "name": "b"}]
    mapping = {"name": describe("string", []), "pose": describe("string", [1], dense=False)}
    contents = open_dataset(write_older(tmp_path, rows, mapping))
    assert contents.schema == Schema({"name": Feature("str"), "pose": Feature("str", (None,))})
    assert [row["pose"] for row in rows_of(contents)] == [["left", "right"], ["front"]]


def test_shapes_are_those_of_the_mapping_where_all_records_agree(tmp_path):
    rows = [{"m": np.arange(6, dtype=np.float32) + x, "v": [x], "n": [x, x]} for x in range(3)]
    mapping = {
        "m": describe("float", [2, 3]),
        "v": describe("int", [1]),
        "n": describe("int", [7]),
    }
    contents = open_dataset(write_older(tmp_path, rows, mapping))
    assert contents.schema == Schema(
        {
            "m": Feature("float32", (2, 3)),
            "v": Feature("int64", (1,)),
            "n": Feature("int64", (2,)),
        }
    )
    assert rows_of(contents)[1]["m"].tolist() == [[1, 2, 3], [4, 5, 6]]


def test_lengths_that_differ_are_variable_whatever_the_last_record_was(tmp_path):
    rows = [{"xmin": np.float32([0.5, 0.25])}, {"xmin": np.float32([0.75])}]
    contents = open_dataset(write_older(tmp_path, rows, {"xmin": describe("float", [1])}))
    assert contents.schema["xmin"] == Feature("float32", (None,))
    assert [row["xmin"].tolist() for row in rows_of(contents)] == [[0.5, 0.25], [0.75]]


def test_a_sparse_feature_has_the_shape_of_its_items(tmp_path):
    rows = [
        {"boxes": np.arange(8), "boxes_shape": [2, 4]},
        {"boxes": np.arange(4), "boxes_shape": [1, 4]},
    ]
    mapping = {
        "boxes": describe("int", [1, 4], dense=False),
        "boxes_shape": describe("int", [2]),
    }
    contents = open_dataset(write_older(tmp_path, rows, mapping))
    assert contents.schema == Schema(
        {"boxes": Feature("int64", (None, 4)), "boxes_shape": Feature("int64", (2,))}
    )
    assert rows_of(contents)[0]["boxes"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_sparse_feature_of_several_widths_stays_flat_beside_its_shape(tmp_path):
    rows = [
        {"m": np.arange(6), "m_shape": [2, 3]},
        {"m": np.arange(4), "m_shape": [2, 2]},
    ]
    mapping = {"m": describe("int", [2, 2], dense=False), "m_shape": describe("int", [2])}
    contents = open_dataset(write_older(tmp_path, rows, mapping))
    assert contents.schema["m"] == Feature("int64", (None,))
    assert [row["m_shape"].tolist() for row in rows_of(contents)] == [[2, 3], [2, 2]]


def test_features_that_the_mapping_lacks_are_read_and_those_nobody_has_are_not(tmp_path):
    schema = Schema({"x": Feature("int64"), "y": Feature("int64", optional=True)})
    rows = [{"x": 1, "y": 2}, {"x": 3}]
    mapping = {"gone": describe("int", []), "x": describe("int", [])}
    contents = open_dataset(write_older(tmp_path, rows, mapping, schema))
    assert contents.schema == schema


def test_a_feature_of_two_kinds_is_an_error(tmp_path):
    write_file(tmp_path / "val-00000-of-00001.tfrecord", [{"x": np.float32(1.5)}])
    shards = {"train": {SHARD: 1}, "val": {"val-00000-of-00001.tfrecord": 1}}
    write_older(tmp_path, [{"x": 1}], {"x": describe("float", [])}, shards=shards)
    with pytest.raises(SchemaError, match="feature 'x': expected one kind in all records"):
        open_dataset(tmp_path)


def test_records_are_counted_because_what_is_told_may_be_of_an_earlier_export(tmp_path):
    shards = {"train": {SHARD: 99}}
    write_older(tmp_path, [{"x": 0}, {"x": 1}], {"x": describe("int", [])}, shards=shards)
    assert open_dataset(tmp_path).splits["train"].records == 2


def test_shards_that_are_not_listed_are_left_out(tmp_path):
    write_older(tmp_path, [{"x": 5}], {"x": describe("int", [])})
    write_file(tmp_path / "train-00000-of-00002.tfrecord", [{"x": 7}])
    assert numbers(open_dataset(tmp_path)) == {"train": [5]}


@pytest.mark.parametrize(
    ("shards", "problem"),
    [
        ({}, "expected splits, got none"),
        ({"train": [SHARD]}, "expected an object, got a list"),
        ({"train": {"gone.tfrecord": 1}}, "expected a shard 'gone.tfrecord', got no such file"),
        ({"train": {"x" * 5000: 1}}, "got no such file"),
        ({"train": {"../" + SHARD: 1}}, "expected the name of a file"),
        ({"train": {"/etc/passwd": 1}}, "expected the name of a file"),
        ({"train": {"..": 1}}, "expected the name of a file"),
        ({"train": {"a\\b": 1}}, "expected the name of a file"),
        ({"train": {SHARD: 1}, "val": {SHARD: 1}}, "expected shards of its own"),
        ({"tr ain": {SHARD: 1}}, "expected letters"),
        ({"all": {SHARD: 1}}, "stands for every split"),
    ],
)
def test_shards_that_cannot_be_are_refused(tmp_path, shards, problem):
    write_older(tmp_path, [{"x": 5}], {"x": describe("int", [])}, shards=shards)
    with pytest.raises(ManifestError, match=rf"shard_info\.json: (.|\n)*{problem}"):
        open_dataset(tmp_path)


@pytest.mark.parametrize(
    ("mapping", "problem"),
    [
        ({"x": 5}, "expected an object, got 5"),
        ({"x": {}}, "expected a type of string, int, float"),
        ({"x": describe("double", [])}, "expected a type of string, int, float"),
        ({"x": describe(["int"], [])}, "expected a type of string, int, float"),
        ({"x": describe("int", 3)}, "shape: expected a list"),
        ({"x": describe("int", [None])}, "shape: expected an integer"),
        ({"x": describe("int", [-5])}, "shape: expected lengths"),
        ({"x": describe("int", [], dense="yes")}, "dense: expected a truth"),
        ([], "expected an object"),
    ],
)
def test_mappings_that_cannot_be_are_refused(tmp_path, mapping, problem):
    write_older(tmp_path, [{"x": 5}], mapping)
    with pytest.raises(ManifestError, match=rf"mapping\.json: .*{problem}"):
        open_dataset(tmp_path)


def test_a_damaged_shard_is_named(tmp_path):
    write_older(tmp_path, [{"x": 5}], {"x": describe("int", [])})
    (tmp_path / SHARD).write_bytes(b"no records")
    with pytest.raises(CorruptRecordError, match=SHARD):
        open_dataset(tmp_path)


def test_a_schema_that_is_given_is_used(tmp_path):
    write_older(tmp_path, [{"x": 5, "y": 1}], {"x": describe("int", [])})
    contents = open_dataset(tmp_path, schema={"x": Feature("int32")})
    assert contents.schema == Schema({"x": Feature("int32")})
    assert numbers(contents) == {"train": [5]}


def test_what_this_library_writes_for_the_older_one_is_read_back(tmp_path):
    rows = [
        {"image": np.full((3, 4, 3), x, np.uint8), "label": x, "boxes": np.ones((x, 4), np.float32)}
        for x in range(1, 5)
    ]
    schema = {
        "image": Feature("uint8", (3, 4, 3), encoding="image"),
        "label": Feature("int64"),
        "boxes": Feature("float32", (None, 4)),
    }
    datum.write(
        rows, tmp_path / "out", schema=schema, sidecars=["older"], shuffle=False, progress=False
    )
    (tmp_path / "out" / "datum.json").unlink()
    contents = open_dataset(tmp_path / "out")
    assert contents.writer == "older datum"
    for row, found in zip(rows, rows_of(contents), strict=True):
        assert (found["image"] == row["image"]).all()
        assert found["label"] == row["label"]
        assert found["boxes"].tolist() == row["boxes"].reshape(-1).tolist()
