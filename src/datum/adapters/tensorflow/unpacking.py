"""The tensors of a batch out of the two arrays that it was handed over in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.assembly import nest_by_shape
from datum.adapters.tensorflow.elements import tensor_dtype
from datum.adapters.tensorflow.packing import BLOCK_BYTES, ITEM_BYTES, Form, Packer

__all__ = ["Unpacker"]

tf: Any = require("tensorflow", purpose="`to_tf`")

# Types that tf.bitcast lacks, as others of the same width.
_CAST = {"bool": "uint8"}


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The pieces of a batch, each to be taken in its turn."""

    numbers: Iterator[tuple[Any, Any]]  # blocks, and the number of items they hold
    strings: Iterator[Any]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The records from `start` up to `stop` of `whole` ones; None for all of them.

    `count` is how many these are, as a number if it is known beforehand.
    """

    whole: Any
    count: Any
    start: Any = None
    stop: Any = None

    def of(self, tensor: Any, *, axis: int = 0) -> Any:
        """The rows of a tensor."""
        if self.start is None:
            return tensor
        return tensor[self.start : self.stop] if axis == 0 else tensor[:, self.start : self.stop]


class Unpacker:
    """Takes apart what a `Packer` made, within the graph.

    Args:
        packer: what the arrays were made with.
        batch_size: how many records a batch has; None for all that were packed together.
        drop_remainder: whether each has exactly so many.
    """

    def __init__(
        self, packer: Packer, batch_size: int | None = None, *, drop_remainder: bool = False
    ) -> None:
        self._packer = packer
        self._size = batch_size
        self._known = batch_size if drop_remainder else None
        shape = (None, BLOCK_BYTES // ITEM_BYTES)
        self.spec = (tf.TensorSpec(shape, tf.int64), tf.TensorSpec((None,), tf.string))

    def count(self, flat: Any) -> Any:
        """How many batches were packed together."""
        assert self._size is not None
        short = 0 if self._known is not None else self._size - 1
        return (flat[0, 0] + short) // self._size

    def unpack(self, flat: Any, strings: Any, at: Any = None) -> dict[str, Any]:
        """The columns by their names; those of the batch number `at`, if it is given."""
        packer = self._packer
        header = tf.reshape(flat[: packer.header_blocks], [-1])
        sizes = [1, packer.numeric, packer.numeric, packer.strings]
        rest = packer.header_blocks * (BLOCK_BYTES // ITEM_BYTES) - sum(sizes)
        first, items, blocks, lists, _ = tf.split(header, [*sizes, rest])
        # A split along blocks shares their memory.
        numbers = _split(flat[packer.header_blocks :], blocks, packer.numeric)
        counts = tf.split(items, packer.numeric) if packer.numeric else []
        texts = _split(strings, lists, packer.strings)
        pieces = _Pieces(iter(list(zip(numbers, counts, strict=True))), iter(texts))
        rows = self._find_rows(first[0], at)
        found: dict[str, Any] = {}
        for form in packer.forms:
            found.update(zip(form.names, _make(form, pieces, rows), strict=True))
        return {name: found[name] for name in packer.names}

    def _find_rows(self, whole: Any, at: Any) -> _Rows:
        if at is None:
            known = whole if self._known is None else self._known
            return _Rows(known, known)
        start = at * self._size
        if self._known is not None:
            return _Rows(whole, self._known, start, start + self._known)
        stop = tf.minimum(start + self._size, whole)
        return _Rows(whole, stop - start, start, stop)


def _split(tensor: Any, sizes: Any, count: int) -> list[Any]:
    return list(tf.split(tensor, sizes, num=count)) if count else []


def _take(blocks: Any, items: Any, dtype: Any) -> Any:
    """The items of a piece, in one dimension."""
    cast = tf.as_dtype(_CAST.get(dtype.name, dtype.name))
    if cast.size > ITEM_BYTES:
        blocks = tf.reshape(blocks, (-1, cast.size // ITEM_BYTES))
    typed = blocks if cast == tf.int64 else tf.bitcast(blocks, cast)
    start = tf.zeros([1], tf.int64)
    values = tf.slice(tf.reshape(typed, [-1]), start, items)
    return values if cast == dtype else tf.cast(values, dtype)


def _make(form: Form, pieces: _Pieces, rows: _Rows) -> list[Any]:
    """The columns of one form."""
    integers = [_take(*next(pieces.numbers), tf.int64) for _ in range(form.integers)]
    if form.has_strings:
        values = next(pieces.strings)
    else:
        values = _take(*next(pieces.numbers), tensor_dtype(form.feature))
    if form.kind == "dense":
        return _make_dense(form, values, rows)
    make = {"ragged": _make_ragged, "sparse": _make_sparse, "shaped": _make_shaped}[form.kind]
    return [make(form, integers, values, rows)]


def _make_dense(form: Form, values: Any, rows: _Rows) -> list[Any]:
    count = len(form.names)
    if count > 1:
        together = tf.reshape(values, (count, rows.whole, *form.shape))
        found = list(tf.unstack(rows.of(together, axis=1), num=count))
    else:
        found = [rows.of(tf.reshape(values, (rows.whole, *form.shape)))]
    for column in found:
        _set_count(column, rows.count)
    return found


def _set_count(tensor: Any, count: Any) -> None:
    if isinstance(count, int):
        tensor.set_shape([count, *tensor.shape[1:]])


def _make_ragged(form: Form, levels: list[Any], values: Any, rows: _Rows) -> Any:
    inner = form.shape[form.feature.ragged_rank :]
    values = tf.reshape(values, (-1, *inner)) if inner else values
    if rows.start is not None:
        start, stop = rows.start, rows.stop
        for level, splits in enumerate(levels):
            part = splits[start : stop + 1]
            start, stop = part[0], part[-1]
            levels[level] = part - start
        values = values[start:stop]
    if isinstance(rows.count, int):
        levels[0].set_shape([rows.count + 1])
    for splits in reversed(levels):
        values = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
    return values


def _make_sparse(form: Form, integers: list[Any], values: Any, rows: _Rows) -> Any:
    extents = [tf.cast(extent, tf.int64) for extent in (rows.count, *form.shape)]
    places = tf.reshape(integers[0], (-1, len(extents)))
    if rows.start is not None:  # they are sorted
        start, stop = (
            tf.math.count_nonzero(places[:, 0] < row, dtype=tf.int64)
            for row in (rows.start, rows.stop)
        )
        first = tf.stack([rows.start, *[tf.zeros_like(rows.start)] * len(form.shape)])
        places, values = places[start:stop] - first, values[start:stop]
    return tf.SparseTensor(places, values, tf.stack(extents))


def _make_shaped(form: Form, integers: list[Any], values: Any, rows: _Rows) -> Any:
    extents = tf.reshape(integers[0], (rows.whole, len(form.shape)))
    if rows.start is not None:
        items = tf.reduce_prod(extents, axis=1)
        start = tf.reduce_sum(items[: rows.start])
        values = values[start : start + tf.reduce_sum(rows.of(items))]
        extents = rows.of(extents)
    _set_count(extents, rows.count)
    return nest_by_shape(values, extents, form.shape, rows.count)
