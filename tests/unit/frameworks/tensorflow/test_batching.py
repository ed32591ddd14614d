import pytest
import tensorflow as tf

from datum._frameworks.tensorflow.batching import batch_records, pad_batches, select_supervised
from datum._frameworks.tensorflow.options import TfOptions
from datum._load.padding import Pad
from datum.configs import BucketConfigs


def records(count=6):
    return tf.data.Dataset.range(count).map(
        lambda n: {"x": n, "items": tf.fill([n], n), "name": tf.repeat(["a"], n)}
    )


def test_fixed_shapes_are_stacked():
    batches = batch_records(tf.data.Dataset.range(5), TfOptions(batch_size=2), is_full=False)
    assert [b.tolist() for b in batches.as_numpy_iterator()] == [[0, 1], [2, 3], [4]]
    dropped = batch_records(tf.data.Dataset.range(5), TfOptions(batch_size=2), is_full=True)
    assert dropped.element_spec.shape == (2,)
    assert len(list(dropped)) == 2


def test_lengths_that_differ_stay_ragged():
    (batch,) = batch_records(records(3), TfOptions(batch_size=3), is_full=False)
    assert isinstance(batch["items"], tf.RaggedTensor)
    assert batch["items"].to_list() == [[], [1], [2, 2]]


def test_padding_fills_with_zeros_or_what_is_asked_for():
    batches = batch_records(records(3), TfOptions(batch_size=3), is_full=False)
    (zeros,) = pad_batches(batches, TfOptions(pad=True))
    assert zeros["items"].numpy().tolist() == [[0, 0], [1, 0], [2, 2]]
    assert zeros["name"].numpy().tolist() == [[b"", b""], [b"a", b""], [b"a", b"a"]]
    (some,) = pad_batches(batches, TfOptions(pad={"items": -1}))
    assert some["items"].numpy().tolist() == [[-1, -1], [1, -1], [2, 2]]
    assert isinstance(some["name"], tf.RaggedTensor)
    (text,) = pad_batches(batches, TfOptions(pad={"name": "?"}))
    assert text["name"].numpy().tolist() == [[b"?", b"?"], [b"a", b"?"], [b"a", b"a"]]


def pad_one(column, pad):
    (batch,) = pad_batches(tf.data.Dataset.from_tensors({"x": column}), TfOptions(pad=pad))
    return {name: tensor.numpy().tolist() for name, tensor in batch.items()}


def test_multiples_hold_the_longest_row_and_are_at_least_one():
    rows = tf.ragged.constant([[1], [2, 3, 4]])
    made = pad_one(rows, Pad(multiple=2, value=9))
    assert made["x"] == [[1, 9, 9, 9], [2, 3, 4, 9]]
    assert made["x_mask"] == [[True, False, False, False], [True, True, True, False]]
    assert pad_one(tf.ragged.constant([[], []], tf.int32), Pad(multiple=2))["x"] == [[0, 0]] * 2


def test_longer_rows_are_cut_only_where_asked():
    rows = tf.ragged.constant([[1], [2, 3, 4]])
    assert pad_one(rows, Pad(length=2, truncate=True, mask=False)) == {"x": [[1, 0], [2, 3]]}
    with pytest.raises(tf.errors.InvalidArgumentError, match="`x`: expected at most 2 values"):
        pad_one(rows, Pad(length=2))


def test_every_dimension_that_differs_has_a_length():
    images = tf.ragged.constant([[[[1], [1]]], [[[2]], [[2]]]], ragged_rank=2)
    made = pad_one(images, Pad(length=(2, 3)))
    assert made["x"] == [[[[1], [1], [0]], [[0]] * 3], [[[2], [0], [0]]] * 2]
    assert made["x_mask"] == [[[True, True, False], [False] * 3], [[True, False, False]] * 2]
    assert tf.constant(pad_one(images, Pad(multiple=(1, 4)))["x"]).shape == (2, 2, 4, 1)
    with pytest.raises(ValueError, match=r"`length` of 2 number\(s\).*got 3"):
        pad_one(images, 3)


def test_masks_need_names_that_are_free():
    rows = tf.ragged.constant([[1], [2, 3]])
    batches = tf.data.Dataset.from_tensors({"x": rows, "x_mask": 1})
    with pytest.raises(ValueError, match="expected no column 'x_mask' beside 'x'"):
        pad_batches(batches, TfOptions(pad=3))
    assert (
        pad_batches(batches, TfOptions(pad=Pad(length=3, mask=False))).element_spec["x"].shape[1:]
        == 3
    )
    pairs = tf.data.Dataset.from_tensors((rows, rows))
    with pytest.raises(ValueError, match="a `pad` that adds masks"):
        pad_batches(pairs, TfOptions(pad=3))
    assert (
        pad_batches(pairs, TfOptions(pad=Pad(length=3, mask=False))).element_spec[0].shape[1:] == 3
    )


def test_sparse_columns_are_filled_too():
    sparse = tf.sparse.from_dense([[0, 5], [6, 0]])
    batches = tf.data.Dataset.from_tensors({"s": sparse})
    (dense,) = pad_batches(batches, TfOptions(pad=True))
    assert dense["s"].numpy().tolist() == [[0, 5], [6, 0]]


def test_tuples_are_padded_whole():
    batches = batch_records(
        records(3).map(lambda r: (r["items"], r["x"])), TfOptions(batch_size=3), is_full=False
    )
    ((items, x),) = pad_batches(batches, TfOptions(pad=True))
    assert items.shape == (3, 2)
    assert x.shape == (3,)


def test_buckets_hold_records_of_about_a_length():
    buckets = BucketConfigs(bucket_boundaries=[2, 4], bucket_batch_sizes=[2, 2, 1])
    options = TfOptions(bucket_fn=lambda r: tf.size(r["items"]), bucket_op=buckets, pad=True)
    batches = pad_batches(batch_records(records(6), options, is_full=False), options)
    found = sorted(batch["x"].tolist() for batch in batches.as_numpy_iterator())
    assert found == [[0, 1], [2, 3], [4], [5]]
    dropped = TfOptions(
        bucket_fn=lambda r: tf.size(r["items"]),
        bucket_op=BucketConfigs(bucket_boundaries=[2], bucket_batch_sizes=[2, 3]),
        drop_remainder=True,
    )
    found = [b["x"].numpy().tolist() for b in batch_records(records(6), dropped, is_full=False)]
    assert sorted(found) == [[0, 1], [2, 3, 4]]


def test_inputs_and_targets_are_picked():
    batches = batch_records(records(3), TfOptions(batch_size=3), is_full=False)
    ((inputs, target),) = select_supervised(batches, TfOptions(supervised=("items", "x")))
    assert isinstance(inputs, tf.RaggedTensor)
    assert target.shape == (3,)
    options = TfOptions(supervised=(["items", "name"], "x", "x"))
    ((inputs, target, weights),) = select_supervised(batches, options)
    assert sorted(inputs) == ["items", "name"]
    assert target.shape == weights.shape


def test_inputs_that_are_not_there_are_told():
    batches = batch_records(records(3), TfOptions(batch_size=3), is_full=False)
    with pytest.raises(ValueError, match="expected batches with pixels, x"):
        select_supervised(batches, TfOptions(supervised=("pixels", "x")))
