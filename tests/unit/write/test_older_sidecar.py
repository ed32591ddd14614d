import json

import pytest

from datum._write.sidecars import older_files
from datum.errors import SchemaError
from datum.format.manifest import ShardInfo, SplitInfo
from datum.schema import Feature, Schema


def mapping_of(**features):
    return json.loads(older_files(Schema(features), {})["datum_to_type_and_shape_mapping.json"])


def split(*shards):
    return SplitInfo(tuple(ShardInfo(name, records, 99, 0) for name, records in shards))


def entry(kind, shape, *, dense=True):
    return {"type": kind, "shape": shape, "dense": dense}


def test_the_shards_of_each_split_and_their_records_are_listed():
    splits = {
        "train": split(("train-00000-of-00002.tfrecord", 2), ("train-00001-of-00002.tfrecord", 1)),
        "val": split(("val-00000-of-00001.tfrecord", 4)),
    }
    files = older_files(Schema({}), splits)
    assert sorted(files) == ["datum_to_type_and_shape_mapping.json", "shard_info.json"]
    assert files["shard_info.json"] == (
        b'{"train": {"train-00000-of-00002.tfrecord": 2, "train-00001-of-00002.tfrecord": 1},'
        b' "val": {"val-00000-of-00001.tfrecord": 4}}'
    )


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Feature("int64"), entry("int", [])),
        (Feature("bool", (3,)), entry("int", [3])),
        (Feature("uint8", (2, 3)), entry("int", [2, 3])),
        (Feature("datetime64[us]"), entry("int", [])),
        (Feature("float32", (4,)), entry("float", [4])),
        (Feature("float16"), entry("float", [])),
        (Feature("str"), entry("string", [])),
        (Feature("bytes"), entry("string", [])),
    ],
)
def test_numbers_and_strings_have_their_type_and_shape(feature, expected):
    assert mapping_of(x=feature) == {"x": expected}


def test_images_have_the_rank_that_tells_colours_from_grey_values():
    assert mapping_of(
        photo=Feature("uint8", (281, 500, 3), encoding="image"),
        photos=Feature("uint8", (None, None, 3), encoding="image"),
        mask=Feature("uint8", (None, None, 1), encoding="image"),
    ) == {
        "photo": entry("string", [281, 500, 3]),
        "photos": entry("string", [-1, -1, 3]),
        "mask": entry("string", [-1, -1]),
    }


def test_what_differs_in_length_is_not_dense():
    assert mapping_of(
        boxes=Feature("float32", (None, 4)),
        ids=Feature("int64", (None,)),
        words=Feature("str", (None,)),
    ) == {
        "boxes": entry("float", [-1, 4], dense=False),
        "ids": entry("int", [-1], dense=False),
        "words": entry("string", [-1], dense=False),
    }


def test_several_strings_are_not_taken_for_one_or_for_an_image():
    assert mapping_of(
        words=Feature("str", (2,)), grid=Feature("bytes", (2, 2, 2)), one=Feature("str", (1,))
    ) == {
        "words": entry("string", [-1], dense=False),
        "grid": entry("string", [-1], dense=False),
        "one": entry("string", [-1], dense=False),
    }


def test_what_may_be_absent_is_not_dense():
    assert mapping_of(
        n=Feature("int64", optional=True),
        v=Feature("float32", (2, 3), optional=True),
        s=Feature("str", optional=True),
    ) == {
        "n": entry("int", [-1], dense=False),
        "v": entry("float", [-1, 3], dense=False),
        "s": entry("string", [], dense=False),
    }


def test_raw_tensors_are_strings_with_their_shape_beside_them_if_it_differs():
    assert mapping_of(same=Feature("float64", (2, 2)), other=Feature("float64", (None, None))) == {
        "same": entry("string", []),
        "other": entry("string", []),
        "other_shape": entry("int", [2]),
    }


def test_sparse_features_are_listed_under_the_keys_that_they_lie_under():
    assert mapping_of(
        words=Feature("int64", (1000,), encoding="sparse"),
        grid=Feature("float32", (9, 9), encoding="sparse"),
    ) == {
        "words_value": entry("int", [-1], dense=False),
        "words_index": entry("int", [-1], dense=False),
        "grid_value": entry("float", [-1], dense=False),
        "grid_index_0": entry("int", [-1], dense=False),
        "grid_index_1": entry("int", [-1], dense=False),
    }


def test_lists_of_lists_have_their_row_lengths_beside_them():
    assert mapping_of(tokens=Feature("int64", (None, None))) == {
        "tokens": entry("int", [-1], dense=False),
        "tokens_lengths_1": entry("int", [-1], dense=False),
    }


def test_a_feature_under_another_key_is_listed_under_that():
    assert list(mapping_of(x=Feature("int64", keys=("image/class",)))) == ["image/class"]


def test_a_sequence_is_refused_by_name():
    with pytest.raises(SchemaError, match="feature 'steps': expected .* got a sequence\nhint"):
        mapping_of(steps=Feature("int64", (None,), sequence=True))
