"""Order of an epoch computed by graph operations, equal to `datum._load.epoch_order`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from datum._frameworks.tensorflow.ops import trace
from datum._load.epoch_order import BLOCKS_PER_WINDOW, Order, key_of
from datum._optional import require

__all__ = ["GraphOrder", "extend_key", "seeds_at"]

tf: Any = require("tensorflow", purpose="`to_tf`")

_GOLDEN = 0x9E3779B97F4A7C15
_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_FEW_RECORDS = 65536  # below, and only then, there are more rounds
_ROUNDS = 8
_MOST_ROUNDS = 32


def _u64(value: Any) -> Any:
    return tf.constant(value, tf.uint64) if isinstance(value, int) else tf.cast(value, tf.uint64)


def _shift(value: Any, bits: int) -> Any:
    return tf.bitwise.right_shift(value, _u64(bits))


def _mix(value: Any) -> Any:
    """The finalizer of SplitMix64."""
    value = tf.bitwise.bitwise_xor(value, _shift(value, 30)) * _u64(_FACTORS[0])
    value = tf.bitwise.bitwise_xor(value, _shift(value, 27)) * _u64(_FACTORS[1])
    return tf.bitwise.bitwise_xor(value, _shift(value, 31))


def extend_key(key: Any, part: Any) -> Any:
    """The key of 64 bits that follows from a key and one more part."""
    if isinstance(part, str):
        part = int.from_bytes(part.encode(), "little")
    return _mix(tf.bitwise.bitwise_xor(_u64(key), _u64(part)) + _u64(_GOLDEN))


def _ceil_sqrt(number: Any) -> Any:
    """The least integer whose square is not below a number."""
    root = tf.cast(tf.math.ceil(tf.sqrt(tf.cast(number, tf.float64))), tf.int64)
    root = tf.where(root * root < number, root + 1, root)  # a float is only near
    return tf.where((root - 1) * (root - 1) >= number, root - 1, root)


@cache
def _permuting(*, is_inverse: bool) -> Any:
    """`_core.permute` as a function of TensorFlow, traced once for all datasets.

    Its arguments are places, the number of records of each group, the key of each group, and the
    group of each place.
    """

    def permute(places: Any, records: Any, keys: Any, groups: Any) -> Any:
        left_counts = _ceil_sqrt(records)
        right_counts = (records - 1) // left_counts + 1
        rounds = tf.where(records < _FEW_RECORDS, _MOST_ROUNDS, _ROUNDS)
        most = tf.reduce_max(rounds)
        steps = np.arange(1, _MOST_ROUNDS + 1, dtype=np.uint64)[:, np.newaxis] * np.uint64(_GOLDEN)
        round_keys = _mix(_mix(keys) + steps)

        def once(x: Any, groups: Any) -> Any:
            """Numbers as two digits; a hash of one digit is added to the other, in turn."""
            left_count, right_count = (
                tf.gather(_u64(counts), groups) for counts in (left_counts, right_counts)
            )

            def add(at: Any, one: Any, other: Any, count: Any, other_count: Any) -> Any:
                number = most - 1 - at if is_inverse else at
                hashed = _mix(tf.bitwise.bitwise_xor(other, tf.gather(round_keys[number], groups)))
                # Of a group with fewer rounds than others, nothing changes in the rest of them.
                counts = tf.gather(tf.where(number < rounds, _u64(1), _u64(0)), groups)
                added = _shift(_shift(hashed, 32) * (count * counts), 32)
                total = one + (count - added if is_inverse else added)
                return (
                    at + 1,
                    other,
                    tf.where(total < count, total, total - count),
                    other_count,
                    count,
                )

            left = x // right_count
            digits, counts = [left, x - left * right_count], [left_count, right_count]
            if is_inverse:
                digits, counts = digits[::-1], counts[::-1]
            _, *digits, _, _ = tf.while_loop(
                lambda at, *_: at < most, add, [0, *digits, *counts], parallel_iterations=1
            )
            left, right = digits[::-1] if is_inverse else digits
            return left * right_count + right

        def walk(x: Any, at: Any) -> tuple[Any, Any]:
            """Permute places that are beyond the records again; at first, all places."""
            own = tf.gather(groups, at)
            moved = once(tf.gather(x, at), own)
            x = tf.tensor_scatter_nd_update(x, at[:, tf.newaxis], moved)
            return x, tf.boolean_mask(at, moved >= tf.gather(_u64(records), own))

        shapes = [tf.TensorShape([None])] * 2
        start = [_u64(places), tf.range(tf.size(places))]
        x, _ = tf.while_loop(
            lambda _, at: tf.size(at) > 0, walk, start, shapes, parallel_iterations=1
        )
        return tf.cast(x, tf.int64)

    types = (tf.int64, tf.int64, tf.uint64, tf.int32)
    with tf.init_scope():
        return trace(permute, *(tf.TensorSpec([None], dtype) for dtype in types))


def _permute_groups(
    places: Any, records: Any, keys: Any, groups: Any, *, is_inverse: bool = False
) -> Any:
    # The choice of one function out of one: a call, which TensorFlow would optimise at length.
    return tf.raw_ops.StatelessCase(
        branch_index=0,
        input=[places, records, keys, groups],
        Tout=[tf.int64],
        branches=[_permuting(is_inverse=is_inverse)],
        output_shapes=[places.shape],
    )[0]


def _permute(places: Any, records: int, key: Any, *, is_inverse: bool = False) -> Any:
    """The permuted places among a number of records."""
    total, groups = tf.constant([records], tf.int64), tf.zeros_like(places, tf.int32)
    return _permute_groups(places, total, key[tf.newaxis], groups, is_inverse=is_inverse)


class GraphOrder:
    """The order of the records of a split in one epoch, equal to that of `Order`.

    Args:
        order: The order of all epochs.
        epoch: Tensor of the epoch.
    """

    def __init__(self, order: Order, epoch: Any) -> None:
        self._order = order
        self._is_mixed = order.mode != "none" and order.records > 1
        if not self._is_mixed:
            return
        epoch = tf.cast(epoch, tf.int64) if order.reshuffles else tf.zeros([], tf.int64)
        self._key = extend_key(key_of(order.seed), epoch)
        if order.mode != "blocks":
            return
        window_records = min(order.window, BLOCKS_PER_WINDOW * order.records)
        self._size = max(1, window_records // BLOCKS_PER_WINDOW)
        self._count = -(-order.records // self._size)
        self._per_window = self._size * max(1, window_records // self._size)
        self._gap = self._count * self._size - order.records
        self._block_key = extend_key(self._key, "blocks")
        last = tf.constant([self._count - 1], tf.int64)
        self._short = _permute(last, self._count, self._block_key, is_inverse=True)[0]

    def numbers_at(self, positions: Any) -> Any:
        """The numbers of the records at these positions."""
        if not self._is_mixed:
            return positions
        if self._order.mode == "full":
            return _permute(positions, self._order.records, extend_key(self._key, "order"))
        windows, groups = tf.unique(self._spread(positions) // self._per_window)
        begin, end = self._begin_of(windows), self._begin_of(windows + 1)
        keys = extend_key(extend_key(self._key, "window"), windows)
        first = tf.gather(begin, groups)
        mixed = _permute_groups(positions - first, end - begin, keys, groups)
        places = self._spread(first + mixed)
        block = places // self._size
        found = _permute(block, self._count, self._block_key)
        return (found - block) * self._size + places

    def _spread(self, places: Any) -> Any:
        """Places as if the last block were full."""
        start_of_gap = (self._short + 1) * self._size - self._gap
        return places + tf.where(places < start_of_gap, tf.constant(0, tf.int64), self._gap)

    def _begin_of(self, windows: Any) -> Any:
        """The position where each window starts, which is where the one before it ends."""
        start = windows * self._per_window
        gap = tf.constant(self._gap, tf.int64)
        begin = start - tf.where(self._short < start // self._size, gap, 0)
        return tf.minimum(begin, self._order.records)


def seeds_at(key: Any, positions: Any) -> Any:
    """Two random numbers for each position, equal to `datum._load.epoch_order.seeds_at`."""
    places = _u64(positions)[:, tf.newaxis] * _u64(2) + tf.constant([0, 1], tf.uint64)
    return tf.bitcast(_mix((places + _u64(1)) * _u64(_GOLDEN) + key), tf.int64)
