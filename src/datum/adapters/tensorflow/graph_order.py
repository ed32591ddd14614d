"""The order of an epoch, computed by operations of TensorFlow: that of `datum.reading.order`."""

from __future__ import annotations

from typing import Any

from datum._optional import require
from datum.reading.order import BLOCKS_PER_WINDOW, Order, key_of
from datum.transforms.graph import leave_as_is

__all__ = ["extend_key", "numbers_at", "permute", "seeds_at"]

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
    """The key of what a key stands for, and one more part, of 64 bits."""
    if isinstance(part, str):
        part = int.from_bytes(part.encode(), "little")
    return _mix(tf.bitwise.bitwise_xor(_u64(key), _u64(part)) + _u64(_GOLDEN))


def _ceil_sqrt(number: Any) -> Any:
    """The least integer whose square is not below a number."""
    root = tf.cast(tf.sqrt(tf.cast(number, tf.float64)), tf.int64)
    for step in (1, 1):  # a float is only near
        root = tf.where(root * root < number, root + step, root)
    return tf.where((root > 0) & ((root - 1) * (root - 1) >= number), root - 1, root)


def permute(
    places: Any, records: Any, key: Any, *, groups: Any = None, is_inverse: bool = False
) -> Any:
    """Where each place goes among so many records, as `_core.permute` has it.

    `records` and `key` are one number each, or with `groups`, the group that each place belongs
    to, one for each group.
    """
    records = tf.cast(records, tf.int64)
    left_count = _ceil_sqrt(records)
    right_count = (records - 1) // left_count + 1
    rounds = tf.where(records < _FEW_RECORDS, _MOST_ROUNDS, _ROUNDS)
    state = _mix(_u64(key))

    def once(x: Any, groups: Any) -> Any:
        def of(value: Any) -> Any:
            return value if groups is None else tf.gather(value, groups)

        a, b, own_rounds = of(_u64(left_count)), of(_u64(right_count)), of(rounds)
        most = tf.reduce_max(own_rounds)

        def mixed(number: Any, value: Any, modulus: Any) -> Any:
            steps = tf.cast(number + 1, tf.uint64) * _u64(_GOLDEN)
            value = _mix(tf.bitwise.bitwise_xor(value, of(_mix(state + steps))))
            return _shift(_shift(value, 32) * modulus, 32)

        def step(at: Any, left: Any, right: Any) -> tuple[Any, Any, Any]:
            number = most - 2 - at if is_inverse else at
            if is_inverse:
                new_right = _add(right, b - mixed(number + 1, left, b), b)
                new_left = _add(left, a - mixed(number, new_right, a), a)
            else:
                new_left = _add(left, mixed(number, right, a), a)
                new_right = _add(right, mixed(number + 1, new_left, b), b)
            if groups is None:
                return at + 2, new_left, new_right
            counts = number < own_rounds
            return at + 2, tf.where(counts, new_left, left), tf.where(counts, new_right, right)

        left = x // b
        start = (0, left, x - left * b)
        _, left, right = tf.while_loop(lambda at, *_: at < most, step, start)
        return left * b + right

    total = _u64(records)

    def outside(x: Any) -> Any:
        """The indices of what is none of the records, and goes through again."""
        return tf.where(x >= (total if groups is None else tf.gather(total, groups)))

    def again(x: Any, at: Any) -> tuple[Any, Any]:
        some = tf.gather_nd(x, at)
        moved = once(some, None if groups is None else tf.gather_nd(groups, at))
        x = tf.tensor_scatter_nd_update(x, at, moved)
        return x, outside(x)

    x = once(_u64(tf.cast(places, tf.int64)), groups)
    shapes = (x.shape, tf.TensorShape([None, 1]))
    x, _ = tf.while_loop(
        lambda _, at: tf.size(at) > 0, again, (x, outside(x)), shape_invariants=shapes
    )
    return tf.cast(x, tf.int64)


def _add(one: Any, other: Any, modulus: Any) -> Any:
    total = one + other
    return tf.where(total < modulus, total, total - modulus)


@leave_as_is
def numbers_at(order: Order, epoch: Any, positions: Any) -> Any:
    """The numbers of the records at these positions of an epoch."""
    if order.mode == "none" or order.records < 2:
        return positions
    key = _epoch_key(order, epoch)
    if order.mode == "full":
        return permute(positions, order.records, extend_key(key, "order"))
    return _numbers_by_block(order, key, positions)


class _Blocks:
    """The blocks and windows of one epoch, as `Order` has them; see there."""

    def __init__(self, order: Order, key: Any) -> None:
        window_records = min(order.window, BLOCKS_PER_WINDOW * order.records)
        self.size = max(1, window_records // BLOCKS_PER_WINDOW)
        self.count = -(-order.records // self.size)
        self.per_window = self.size * max(1, window_records // self.size)
        self.records = order.records
        self.gap = self.count * self.size - order.records
        self.key = extend_key(key, "blocks")
        last = tf.constant([self.count - 1], tf.int64)
        self.short = permute(last, self.count, self.key, is_inverse=True)[0]

    def spread(self, places: Any) -> Any:
        """Places as if the last block were full, too."""
        start_of_gap = (self.short + 1) * self.size - self.gap
        return places + tf.where(places < start_of_gap, tf.zeros_like(places), self.gap)

    def begin_of(self, windows: Any) -> Any:
        """The position at which each window begins, or the one before it ends."""
        start = windows * self.per_window
        gap = tf.constant(self.gap, tf.int64)
        begin = start - tf.where(self.short < start // self.size, gap, 0)
        end = tf.constant(self.records, tf.int64)
        return tf.where(start >= self.count * self.size, end, begin)


def _numbers_by_block(order: Order, key: Any, positions: Any) -> Any:
    blocks = _Blocks(order, key)
    windows, groups = tf.unique(blocks.spread(positions) // blocks.per_window)
    begin, end = blocks.begin_of(windows), blocks.begin_of(windows + 1)
    window_key = extend_key(extend_key(key, "window"), windows)
    first = tf.gather(begin, groups)
    mixed = permute(positions - first, end - begin, window_key, groups=groups)
    places = blocks.spread(first + mixed)
    size = blocks.size
    return permute(places // size, blocks.count, blocks.key) * size + places % size


def _epoch_key(order: Order, epoch: Any) -> Any:
    epoch = tf.cast(epoch, tf.int64) if order.reshuffles else tf.zeros([], tf.int64)
    return extend_key(key_of(order.seed), epoch)


def seeds_at(key: Any, positions: Any) -> Any:
    """Two random numbers for each position, as `datum.reading.order.seeds_at` has them."""
    places = _u64(positions)[:, tf.newaxis] * _u64(2) + tf.constant([0, 1], tf.uint64)
    return tf.bitcast(_mix((places + _u64(1)) * _u64(_GOLDEN) + key), tf.int64)
