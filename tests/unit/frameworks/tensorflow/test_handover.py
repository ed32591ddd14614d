import gc

import numpy as np
import pytest
import tensorflow as tf

from datum.errors import CorruptRecordError
from datum.frameworks.tensorflow.transfer import GeneratorDataset

SPEC = (tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.string))


class Source:
    """Generators, and which of them were closed."""

    def __init__(self, count=3):
        self.count = count
        self.started = 0
        self.closed = []

    def __call__(self):
        number = self.started
        self.started += 1
        try:
            for at in range(self.count):
                yield np.array([number, at]), np.array([b"a", b"\xff\0"], object)
        finally:
            self.closed.append(number)


def firsts(dataset):
    return [numbers.numpy().tolist() for numbers, _ in dataset]


def test_each_iterator_has_a_generator_of_its_own():
    source = Source()
    made = GeneratorDataset(source, SPEC)
    assert made.element_spec == SPEC
    assert isinstance(made, tf.data.Dataset)
    assert firsts(made) == [[0, 0], [0, 1], [0, 2]]
    one, other = iter(made), iter(made)
    mixed = [next(one)[0], next(other)[0], next(one)[0], next(other)[0]]
    assert [n.numpy().tolist() for n in mixed] == [[1, 0], [2, 0], [1, 1], [2, 1]]
    assert firsts(made.repeat(2)) == [[3, 0], [3, 1], [3, 2], [4, 0], [4, 1], [4, 2]]


def test_strings_keep_every_byte():
    (_, strings), *_ = GeneratorDataset(Source(), SPEC)
    assert strings.numpy().tolist() == [b"a", b"\xff\0"]


def test_a_generator_is_closed_with_its_iterator():
    source = Source(1000)
    batches = iter(GeneratorDataset(source, SPEC).prefetch(2))
    next(batches)
    assert source.closed == []
    del batches
    gc.collect()
    assert source.closed == [0]
    list(GeneratorDataset(source, SPEC).take(3))
    assert source.closed == [0, 1]


def test_it_goes_through_functions_of_the_graph():
    made = GeneratorDataset(Source(), SPEC).map(lambda numbers, _: numbers * 2)
    total = made.reduce(np.int64(0), lambda so_far, numbers: so_far + tf.reduce_sum(numbers))
    assert int(total) == 6

    @tf.function
    def count(batches):
        found = 0
        for _ in batches:
            found += 1
        return found

    assert int(count(made)) == 3


@pytest.mark.parametrize("error", [CorruptRecordError, OSError, ValueError])
def test_what_is_wrong_with_the_data_is_told(error):
    def start():
        yield np.array([1]), np.array([b""], object)
        raise error("a/b.tfrecord: record 7 at byte 99: damage")

    batches = iter(GeneratorDataset(start, SPEC))
    next(batches)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"a/b.tfrecord: record 7 at byte 99"):
        next(batches)


def test_an_iterator_cannot_be_saved(tmp_path):
    checkpoint = tf.train.Checkpoint(batches=iter(GeneratorDataset(Source(), SPEC)))
    with pytest.raises(tf.errors.UnimplementedError, match="GeneratorDataset"):
        checkpoint.write(str(tmp_path / "saved"))
