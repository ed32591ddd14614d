import numpy as np
import pytest
import tensorflow as tf

import datum
from datum._frameworks.tensorflow.mapping import apply, check_result, make_decoder
from datum._frameworks.tensorflow.options import TfOptions
from datum.transforms.graph import leave_as_is

DRAW = leave_as_is(
    lambda x, seed: tf.random.stateless_uniform([], seed, maxval=10**6, dtype=tf.int32),
    takes_seed=True,
)


def values(dataset):
    return [tf.nest.map_structure(int, element) for element in dataset.as_numpy_iterator()]


def test_no_function_leaves_the_dataset():
    numbers = tf.data.Dataset.range(3)
    assert apply(numbers, None, TfOptions()) is numbers


def test_a_function_that_takes_a_seed_gets_another_each_time():
    numbers = tf.data.Dataset.range(50)
    drawn = apply(numbers, DRAW, TfOptions(seed=0))
    first, second = values(drawn), values(drawn)
    assert len(set(first)) > 45
    assert first != second
    assert values(apply(numbers, DRAW, TfOptions(seed=0))) == first
    assert values(apply(numbers, DRAW, TfOptions(seed=1))) != first
    same = apply(numbers, DRAW, TfOptions(seed=0, reshuffle=False))
    assert values(same) == values(same)
    other = [values(apply(numbers, DRAW, TfOptions(seed=None))) for _ in range(2)]
    assert other[0] != other[1]


def test_tuples_are_unpacked():
    pairs = tf.data.Dataset.range(3).map(lambda n: (n, n))
    add = leave_as_is(lambda a, b, seed: a + b, takes_seed=True)
    assert values(apply(pairs, add, TfOptions())) == [0, 2, 4]


def test_decoders_get_seeds_of_their_own():
    record = {"a": tf.constant(1), "b": tf.constant(2), "c": tf.constant(3)}
    decode = make_decoder({"a": DRAW, "b": DRAW, "c": lambda c: c * 2})
    assert decode.takes_seed
    made = decode(record, seed=tf.constant([1, 2], tf.int64))
    assert int(made["a"]) != int(made["b"])
    assert int(made["c"]) == 6
    plain = make_decoder({"c": lambda c: c * 2})
    assert not plain.takes_seed
    assert sorted(plain(record)) == ["a", "b", "c"]
    assert make_decoder({}) is None


def test_a_result_that_is_forgotten_is_told():
    with pytest.raises(ValueError, match="expected `map` to return"):
        check_result("map", lambda record: None)({})
    assert check_result("map", None) is None
    assert check_result("map", DRAW).takes_seed


def test_random_decoders_leave_no_word_of_autograph_in_the_log(tmp_path, caplog):
    pixels = np.zeros((4, 8, 8, 3), np.uint8)
    schema = {"image": datum.Feature("uint8", (8, 8, 3), encoding="image")}
    datum.write({"image": pixels}, tmp_path / "d", schema=schema, progress=False)
    crop = datum.transforms.random_crop(4, 4)
    logger = tf.get_logger()
    logger.addHandler(caplog.handler)
    try:
        batches = datum.load(tmp_path / "d").to_tf("train", decode={"image": crop})
        assert [tuple(batch["image"].shape) for batch in batches] == [(4, 4, 4, 3)]
    finally:
        logger.removeHandler(caplog.handler)
    assert "AutoGraph" not in caplog.text
