"""Transfer of batches from Python to TensorFlow: packed into two arrays, unpacked in the graph.

TensorFlow takes a fixed time for each array that Python returns, whatever its size.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._frameworks.tensorflow.parse import nest_by_shape, tensor_dtype
from datum._load.options import present_name
from datum._optional import require
from datum.columns import Masked, Ragged
from datum.errors import DatumError, Message
from datum.format.layout import stand_in
from datum.schema import Feature, Schema, numpy_dtype
from datum.schema.feature import TIMES

__all__ = [
    "BLOCK_BYTES",
    "ITEM_BYTES",
    "Buffers",
    "Form",
    "GeneratorDataset",
    "Packed",
    "Packer",
    "Unpacker",
    "as_stored",
]

tf: Any = require("tensorflow", purpose="`to_tf`")

# TensorFlow takes over an array without a copy where it starts at a multiple of this. So each piece
# of an array starts with a new block, and becomes a tensor without a copy too.
BLOCK_BYTES = 64
ITEM_BYTES = 8  # the array of numbers is of int64, the type of most pieces
MAX_FREE_BUFFERS = 8  # more are never needed at a time
_FILL = np.zeros(BLOCK_BYTES, np.uint8)
_CAST = {"bool": "uint8"}  # types that tf.bitcast lacks, as others of the same width

Start = Callable[..., Generator[Sequence[Any], None, None]]
Packed = tuple[NDArray[np.int64], NDArray[np.object_]]
Piece = list[NDArray[Any]]  # arrays of one dtype that follow one another
Kind = Literal["dense", "ragged", "sparse", "shaped"]
Strings = tuple[Any, NDArray[np.int64]]  # a buffer, and start and length of each string in it


class GeneratorDataset(tf.data.Dataset):  # type: ignore[misc]
    """A `tf.data.Dataset` whose elements are arrays that a Python generator yields.

    Each iterator has its own generator, which is closed with it. Unlike
    `tf.data.Dataset.from_generator`, this trusts the arrays to fit: to check each of them takes
    longer than to transfer a batch. A DatumError becomes a tf.errors.InvalidArgumentError.

    Args:
        start: Makes the generator of an iterator, which yields one array for each tensor.
        spec: The types of the tensors.
        given: A tensor whose value `start` is called with; None for no argument.
    """

    def __init__(self, start: Start, spec: tuple[Any, ...], *, given: Any = None) -> None:
        self._spec = spec
        running: dict[int, Generator[Sequence[Any], None, None]] = {}
        numbers = count()

        def begin(*values: Any) -> Any:
            number = next(numbers)
            running[number] = start(*values)
            return np.int64(number)

        def step(number: Any) -> Sequence[Any]:
            try:
                return next(running[int(number)])
            except (DatumError, OSError) as error:
                # TensorFlow chooses its own error by this type, and shows the traceback.
                raise ValueError(Message.of(error)) from None

        def end(number: Any) -> Any:
            running.pop(int(number)).close()
            return np.int64(0)

        types = [part.dtype for part in spec]
        number = tf.TensorSpec((), tf.int64)
        passed = [] if given is None else [given]
        signature = [tf.TensorSpec(value.shape, value.dtype) for value in passed]
        # Held here, since TensorFlow drops functions without a reference.
        self._functions = (
            _traced(lambda *values: _call(begin, list(values), [number])[0], *signature),
            _traced(lambda given: _call(step, [given], spec), number),
            _traced(lambda given: _call(end, [given], [number])[0], number),
        )
        variant = tf.raw_ops.GeneratorDataset(
            init_func_other_args=passed,
            next_func_other_args=[],
            finalize_func_other_args=[],
            init_func=self._functions[0],
            next_func=self._functions[1],
            finalize_func=self._functions[2],
            output_types=types,
            output_shapes=[part.shape for part in spec],
        )
        super().__init__(variant)

    def _inputs(self) -> list[Any]:
        return []

    @property
    def element_spec(self) -> Any:
        """The types of the tensors of an element."""
        return self._spec


def _traced(function: Callable[..., Any], *signature: Any) -> Any:
    return tf.function(function, autograph=False).get_concrete_function(*signature)


def _call(function: Callable[..., Any], given: list[Any], spec: Sequence[Any]) -> list[Any]:
    """The tensors of an op that calls Python, with their shapes."""
    made = tf.numpy_function(function, given, [part.dtype for part in spec])
    for tensor, part in zip(made, spec, strict=True):
        tensor.set_shape(part.shape)
    return list(made)


# Packing.


def as_stored(schema: Schema) -> Schema:
    """The schema to parse records with for TensorFlow, where strings and images are bytes.

    >>> as_stored(Schema({"words": Feature("str", (None,))}))["words"]
    Feature('bytes', (None,))
    """
    return Schema({name: _as_bytes(feature) for name, feature in schema.items()})


def _as_bytes(feature: Feature) -> Feature:
    feature = stand_in(feature) if feature.holds_images else feature
    if feature.dtype != "str":
        return feature
    default = None if feature.default is None else feature.default.encode()
    return replace(feature, dtype="bytes", default=default)


@dataclass(frozen=True, slots=True)
class Form:
    """The packed form of columns: pieces of numbers and lists of strings.

    Attributes:
        names: Names of the columns; several only for "dense" columns of one dtype and shape.
        feature: Feature of the columns; a bool for masks of the records that have a feature.
        kind: "dense" is the values; "ragged" the row splits from the outermost in, and the values;
            "sparse" the indices and the values; "shaped" the shapes of all, and the values.
    """

    names: tuple[str, ...]
    feature: Feature
    kind: Kind

    @property
    def has_strings(self) -> bool:
        """Whether the values are strings, as those of images are."""
        return self.feature.is_string or self.feature.encoding == "image"

    @property
    def integers(self) -> int:
        """Number of pieces of int64 before the values."""
        levels = self.feature.ragged_rank if self.kind == "ragged" else 1
        return 0 if self.kind == "dense" else levels

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Shape of the value of one record; an image is one string."""
        return () if self.feature.encoding == "image" else self.feature.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of values that are numbers; times are counts."""
        is_time = self.feature.dtype in TIMES
        return np.dtype(np.int64) if is_time else numpy_dtype(self.feature.dtype)


def _features_of(schema: Schema) -> Iterator[tuple[str, Feature]]:
    """All columns of a batch and their features."""
    for name, feature in schema.items():
        yield name, feature
        beside = present_name(name, feature)
        if beside is not None:
            yield beside, Feature("bool")


def _kind_of(feature: Feature) -> Kind:
    if feature.encoding == "sparse":
        return "sparse"
    if feature.encoding == "raw" and None in feature.shape[1:]:
        return "shaped"
    return "ragged" if feature.ragged_rank and feature.encoding != "image" else "dense"


def _find_forms(schema: Schema) -> list[Form]:
    """The forms of all columns; dense numbers of one dtype and shape share a form."""
    found: dict[Any, Form] = {}
    for name, feature in _features_of(schema):
        form = Form((name,), feature, _kind_of(feature))
        is_joined = form.kind == "dense" and not form.has_strings
        key = (form.dtype.name, form.shape) if is_joined else name
        if key in found:
            form = replace(found[key], names=(*found[key].names, name))
        found[key] = form
    return list(found.values())


class Packer:
    """Packs the columns of a schema into two arrays: one of numbers, one of strings.

    The array of numbers starts with counts: of the records, of the items and of the blocks of each
    piece of numbers, and of the strings of each list. The pieces follow in order.

    Attributes:
        names: Names of all columns in order.
        forms: How the columns are packed.
        numeric: Number of pieces of numbers.
        strings: Number of lists of strings.
        header_blocks: Number of blocks of the counts.
    """

    def __init__(self, schema: Schema) -> None:
        self.names = [name for name, _ in _features_of(schema)]
        self.forms = _find_forms(schema)
        self.numeric = sum(form.integers + (not form.has_strings) for form in self.forms)
        self.strings = sum(form.has_strings for form in self.forms)
        self.header_blocks = _blocks_of((1 + 2 * self.numeric + self.strings) * ITEM_BYTES)
        self._takers = [(_TAKERS[form.kind], form, form.has_strings) for form in self.forms]
        self._masked = [(n, b) for n in schema if (b := present_name(n, schema[n])) is not None]

    def unmask(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Add the masks of the records that have an optional feature to parsed columns."""
        for name, beside in self._masked:
            column = columns[name]
            is_masked = isinstance(column, Masked)
            columns[beside] = column.present if is_masked else np.ones(len(column), np.bool_)
            columns[name] = column.values if is_masked else column
        return columns

    def pack(self, columns: Mapping[str, Any], records: int, buffers: Buffers) -> Packed:
        """Pack the columns that `unmask` returned into memory from `buffers`."""
        pieces: list[Piece] = []
        strings: list[Strings] = []
        for take, form, has_strings in self._takers:
            values = take(form, [columns[name] for name in form.names], pieces)
            if has_strings:
                strings.append((values[0].buffer, values[0].slices))
            else:
                pieces.append(values)
        blocks = [_blocks_of(sum(array.nbytes for array in piece)) for piece in pieces]
        counts = [records, *(sum(array.size for array in piece) for piece in pieces), *blocks]
        counts += [len(slices) for _, slices in strings]
        header = np.array(counts, np.int64)
        flat = buffers.take(self.header_blocks + sum(blocks), columns=BLOCK_BYTES // ITEM_BYTES)
        np.concatenate(_bytes_of([[header], *pieces]), out=flat.reshape(-1).view(np.uint8))
        return flat, _take_strings(strings)


def _blocks_of(size: int) -> int:
    return -(-size // BLOCK_BYTES)


def _bytes_of(pieces: list[Piece]) -> list[NDArray[np.uint8]]:
    """The bytes of all arrays of each piece, filled up to whole blocks."""
    found = []
    for piece in pieces:
        size = 0
        for array in piece:
            if array.size:  # an empty array has no view of its bytes
                found.append(array.reshape(-1).view(np.uint8))
                size += array.nbytes
        if size % BLOCK_BYTES:
            found.append(_FILL[: -size % BLOCK_BYTES])
    return found


def _take_strings(strings: Sequence[Strings]) -> NDArray[np.object_]:
    """The strings of all lists, one after the other."""
    if len({id(buffer) for buffer, _ in strings}) == 1:
        strings = [(strings[0][0], np.concatenate([slices for _, slices in strings]))]
    found: list[bytes] = []
    for buffer, slices in strings:
        found += _core.take_strings(buffer, np.ascontiguousarray(slices).reshape(-1), False)
    array = np.empty(len(found), object)
    array[:] = found
    return array


# The parts of columns by their form: integers are appended to the pieces, values are returned.
def _take_dense(_form: Form, columns: list[Any], _pieces: list[Piece]) -> list[Any]:
    return columns


def _take_ragged(_form: Form, columns: list[Any], pieces: list[Piece]) -> list[Any]:
    column = columns[0]
    while isinstance(column, Ragged):
        pieces.append([column.row_splits])
        column = column.values
    return [column]


def _take_sparse(_form: Form, columns: list[Any], pieces: list[Piece]) -> list[Any]:
    pieces.append([np.ascontiguousarray(columns[0].indices)])
    return [columns[0].values]


def _take_shaped(form: Form, columns: list[Any], pieces: list[Piece]) -> list[Any]:
    """Arrays that each have a shape of their own; None becomes an array without items."""
    blank = np.zeros([extent or 0 for extent in form.shape], form.dtype)
    arrays = [blank if array is None else array for array in columns[0]]
    pieces.append([np.array([array.shape for array in arrays], np.int64)])
    return arrays


_Taker = Callable[[Form, list[Any], list[Piece]], list[Any]]
_TAKERS: dict[Kind, _Taker] = {
    "dense": _take_dense,
    "ragged": _take_ragged,
    "sparse": _take_sparse,
    "shaped": _take_shaped,
}


# Unpacking.


class Unpacker:
    """Unpacks arrays of a `Packer` in the graph.

    Args:
        packer: The packer of the arrays.
        batch_size: Number of records of a batch; None for all that were packed together.
        drop_remainder: Whether every batch has exactly that number.
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
        """Number of batches that were packed together."""
        assert self._size is not None
        short = 0 if self._known is not None else self._size - 1
        return (flat[0, 0] + short) // self._size

    def unpack(self, flat: Any, strings: Any, at: Any = None) -> dict[str, Any]:
        """The columns by name: of all records, or of the batch with the number `at`."""
        packer = self._packer
        header = tf.reshape(flat[: packer.header_blocks], [-1])
        sizes = [1, packer.numeric, packer.numeric, packer.strings]
        rest = packer.header_blocks * (BLOCK_BYTES // ITEM_BYTES) - sum(sizes)
        first, items, blocks, lists, _ = tf.split(header, [*sizes, rest])
        # A split between blocks shares their memory.
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


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The pieces of a batch, taken in order."""

    numbers: Iterator[tuple[Any, Any]]  # blocks, and the number of items they hold
    strings: Iterator[Any]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a batch among those that were packed together.

    Attributes:
        whole: Number of rows that were packed together.
        count: Number of rows of the batch, as an int if it is known beforehand.
        start: First row of the batch; None for all rows.
        stop: Row after the last one; None for all rows.
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


def _split(tensor: Any, sizes: Any, count: int) -> list[Any]:
    return list(tf.split(tensor, sizes, num=count)) if count else []


def _take(blocks: Any, items: Any, dtype: Any) -> Any:
    """The items of a piece in one dimension."""
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


# Memory.


class Buffers:
    """Aligned arrays of int64 whose memory is used again once they have no reference.

    New memory costs more than the copy into it, since the system clears each page. An array must
    be passed on as it is: a view does not keep its memory.

    >>> buffers = Buffers()
    >>> buffers.take(4, columns=8).shape
    (4, 8)
    """

    def __init__(self) -> None:
        self._free: list[NDArray[np.uint8]] = []
        self._held: dict[int, weakref.ref[Any]] = {}

    def take(self, rows: int, *, columns: int) -> NDArray[np.int64]:
        """Return an array of this shape with arbitrary values."""
        size = rows * columns * np.dtype(np.int64).itemsize
        memory = self._find(size)
        number = id(memory)
        array = memory[:size].view(np.int64).reshape(rows, columns)
        held, free, most = self._held, self._free, MAX_FREE_BUFFERS

        def release(_: Any) -> None:
            held.pop(number, None)
            if len(free) < most:
                free.append(memory)

        held[number] = weakref.ref(array, release)
        return array

    def _find(self, size: int) -> NDArray[np.uint8]:
        try:
            memory = self._free.pop()
        except IndexError:
            return _allocate(size)
        return memory if size <= len(memory) else _allocate(size)


def _allocate(size: int) -> NDArray[np.uint8]:
    size += size // 8  # batches differ: the next may be somewhat larger
    memory = np.empty(size + BLOCK_BYTES, np.uint8)
    return memory[-memory.ctypes.data % BLOCK_BYTES :]
