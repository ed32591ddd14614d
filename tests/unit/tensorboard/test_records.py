"""Records out of elements of every form."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SourceError
from datum.tensorboard.records import iterate_records


def encode(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def images(count, height=5, width=6, channels=3):
    shape = count, height, width, channels
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape).astype(np.uint8)


def test_dicts_of_a_batched_dataset_become_single_records():
    pixels = images(5)
    data = tf.data.Dataset.from_tensor_slices({"image": pixels, "label": range(5)}).batch(2)
    rows = list(iterate_records(data))
    assert [int(row["label"]) for row in rows] == [0, 1, 2, 3, 4]
    assert np.array_equal(np.stack([row["image"] for row in rows]), pixels)


def test_single_records_stay_single_even_if_their_lengths_agree():
    record = {"image": images(1, 6, 6)[0], "mask": np.zeros((6, 6), np.uint8), "ids": range(6)}
    (row,) = iterate_records([record])
    assert row["image"].shape == (6, 6, 3)
    assert row["ids"].tolist() == [0, 1, 2, 3, 4, 5]


def test_what_is_called_image_tells_batches_from_records():
    record = {"image": images(1)[0], "activations": np.zeros((5, 6, 512))}
    (row,) = iterate_records([record])
    assert row["image"].shape == (5, 6, 3)
    named = {"photo": np.zeros((5, 6, 3)), "image": np.zeros((5, 6, 512))}
    assert len(list(iterate_records([named], image="photo"))) == 1
    assert len(list(iterate_records([named], image="image"))) == 5


def test_grey_images_without_a_channel_are_a_batch():
    rows = list(iterate_records([{"image": np.zeros((7, 8, 8)), "label": np.arange(7)}]))
    assert len(rows) == 7
    assert rows[3]["image"].shape == (8, 8)


def test_tuples_get_the_names_of_keras():
    inputs, targets = tf.data.Dataset.from_tensor_slices(images(2)), tf.data.Dataset.range(2)
    weights = tf.data.Dataset.from_tensors(0.5).repeat(2)
    (row, _) = iterate_records(tf.data.Dataset.zip(inputs, targets, weights))
    assert list(row.columns) == ["inputs", "targets", "weights"]
    assert (int(row["targets"]), float(row["weights"])) == (0, 0.5)


def test_dicts_in_tuples_keep_their_names():
    (row,) = iterate_records([({"image": images(1)[0], "a": 1}, {"a": 2, "b": 3})])
    assert list(row.columns) == ["image", "a", "targets/a", "b"]
    (row,) = iterate_records([((1, 2), 3)])
    assert list(row.columns) == ["inputs/0", "inputs/1", "targets"]


def test_dicts_in_dicts_get_paths():
    (row,) = iterate_records([{"image": images(1)[0], "objects": {"bbox": np.zeros((2, 4))}}])
    assert row["objects/bbox"].shape == (2, 4)


def test_a_bare_tensor_is_the_input():
    rows = list(iterate_records(tf.data.Dataset.from_tensor_slices(images(3)).batch(3)))
    assert [list(row.columns) for row in rows] == [["inputs"]] * 3


def test_a_batch_may_be_given_by_itself():
    assert len(list(iterate_records({"image": images(4), "label": np.arange(4)}))) == 4


def test_images_of_different_sizes_come_out_of_ragged_batches():
    sizes = [(3, 4), (5, 2), (1, 1)]
    data = tf.data.Dataset.from_generator(
        lambda: (
            {"image": np.full((*size, 3), 7, np.uint8), "ids": [1] * size[0]} for size in sizes
        ),
        output_signature={
            "image": tf.TensorSpec((None, None, 3), tf.uint8),
            "ids": tf.TensorSpec((None,), tf.int32),
        },
    ).ragged_batch(3)
    rows = list(iterate_records(data))
    assert [row["image"].shape for row in rows] == [(3, 4, 3), (5, 2, 3), (1, 1, 3)]
    assert all((row["image"] == 7).all() for row in rows)
    assert [len(row["ids"]) for row in rows] == [3, 5, 1]


def test_encoded_images_make_a_batch_too():
    files = [encode(one) for one in images(3)]
    data = tf.data.Dataset.from_tensor_slices({"image": files, "name": ["a", "b", "c"]})
    assert [row["image"] for row in iterate_records(data.batch(3))] == files
    assert [row["name"] for row in iterate_records(data)] == [b"a", b"b", b"c"]


def test_what_a_batch_marks_as_absent_is_none():
    batch = {"image": images(2), "label": [4, 0], "label_present": [True, False]}
    data = tf.data.Dataset.from_tensor_slices(batch)
    for given in (data, data.batch(2)):
        first, second = iterate_records(given)
        assert int(first["label"]) == 4
        assert second["label"] is None


@pytest.mark.parametrize("marker", [0, np.zeros(3, bool), np.zeros((0, 4)), "no"])
def test_what_only_sounds_like_a_mark_of_absence_is_ignored(marker):
    (row,) = iterate_records([{"image": images(1)[0], "label": 4, "label_present": marker}])
    assert int(row["label"]) == 4


def test_columns_of_datum_are_taken_apart():
    batch = {
        "image": BytesColumn.from_values([encode(one) for one in images(2)]),
        "ids": Ragged.from_rows([[1, 2], [3]]),
        "label": Masked(np.array([5, 6]), np.array([True, False])),
        "tags": Sparse(np.array([[0, 1], [1, 0], [1, 2]]), np.array([1, 1, 0]), (2, 4)),
    }
    first, second = iterate_records(batch)
    assert first["image"].startswith(b"\x89PNG")
    assert (first["ids"].tolist(), second["ids"].tolist()) == ([1, 2], [3])
    assert (int(first["label"]), second["label"]) == (5, None)
    assert (first["tags"].tolist(), second["tags"].tolist()) == ([1], [0])


def test_sparse_tensors_are_the_ids_of_what_is_set():
    sparse = tf.sparse.from_dense([[0, 1, 1], [0, 0, 0]])
    data = tf.data.Dataset.from_tensor_slices({"image": images(2), "tags": sparse})
    for given in (data, data.batch(2)):
        assert [row["tags"].tolist() for row in iterate_records(given)] == [[1, 2], []]


def test_features_that_a_record_lacks_are_none():
    rows = list(iterate_records([{"image": images(1)[0], "label": 1}, {"image": None}]))
    assert rows[1]["image"] is None
    assert rows[1]["label"] is None


@pytest.mark.parametrize("data", [5, None, object()])
def test_what_holds_no_records_is_told(data):
    with pytest.raises(SourceError, match=r"expected a tf.data.Dataset or an iterable of records"):
        list(iterate_records(data))


def test_names_of_splits_are_no_records():
    with pytest.raises(
        SourceError, match="(?s)element 0: expected a dict.*got 'train'.*pass a split"
    ):
        list(iterate_records(["train", "val"]))


def test_nothing_beyond_what_is_taken_is_read():
    def endless():
        number = 0
        while True:
            assert number < 3
            yield {"image": images(1)[0], "label": number}
            number += 1

    rows = iterate_records(endless())
    assert [int(next(rows)["label"]) for _ in range(3)] == [0, 1, 2]
