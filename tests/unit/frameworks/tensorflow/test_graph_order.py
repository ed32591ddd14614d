import numpy as np
import pytest
import tensorflow as tf

from datum._frameworks.tensorflow.graph_order import GraphOrder
from datum._load.epoch_order import Order


@pytest.mark.parametrize(
    ("records", "mode", "window"),
    [
        (2, "full", 1),
        (1003, "full", 1),
        (70001, "full", 1),
        (65, "blocks", 64),
        (1003, "blocks", 200),
        (70001, "blocks", 66000),
    ],
)
def test_a_graph_computes_the_order_of_any_epoch(records, mode, window):
    order = Order(records, mode, 10**30, window)
    positions = np.random.default_rng(0).permutation(records)[:3000]
    traced = tf.function(lambda epoch, at: GraphOrder(order, epoch).numbers_at(at), autograph=False)
    for epoch in (0, 3):
        found = traced(tf.constant(epoch, tf.int64), tf.constant(positions))
        np.testing.assert_array_equal(found, order.numbers(epoch, positions))
