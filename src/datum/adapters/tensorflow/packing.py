"""The columns of a batch in two arrays: handing over to TensorFlow costs by the array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.adapters.tensorflow.buffers import ALIGNED_BYTES, Buffers
from datum.columns import Masked, Ragged
from datum.format.layout import stand_in
from datum.loading.options import present_name
from datum.schema import Feature, Schema, numpy_dtype
from datum.schema.dtypes import TIMES

__all__ = ["BLOCK_BYTES", "ITEM_BYTES", "Form", "Packed", "Packer", "as_stored"]

# Parts of an array are tensors without a copy where they are aligned, too. So every piece begins
# with a block of as many bytes.
BLOCK_BYTES = ALIGNED_BYTES
_FILL = np.zeros(BLOCK_BYTES, np.uint8)
ITEM_BYTES = 8  # the large array is of int64, the type that most pieces have

Packed = tuple[NDArray[np.int64], NDArray[np.object_]]
Piece = list[NDArray[Any]]  # the arrays of one dtype that lie one after the other
Kind = Literal["dense", "ragged", "sparse", "shaped"]
Strings = tuple[Any, NDArray[np.int64]]  # a buffer, and start and length of each string in it


def as_stored(schema: Schema) -> Schema:
    """The schema to parse records with for TensorFlow, whose strings and images are bytes.

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
    """What columns are made of: pieces of numbers, and lists of strings.

    Attributes:
        names: of the columns: several only of "dense" ones, which are alike.
        feature: what they hold; a bool for one that tells which records have a feature.
        kind: "dense" is the values; "ragged" the row splits from the outermost in, and the values;
            "sparse" the indices and the values; "shaped" the shapes of all, and the values.
    """

    names: tuple[str, ...]
    feature: Feature
    kind: Kind

    @property
    def has_strings(self) -> bool:
        """Whether its values are strings, as those of images are, too."""
        return self.feature.is_string or self.feature.encoding == "image"

    @property
    def integers(self) -> int:
        """How many pieces of int64 come before its values."""
        levels = self.feature.ragged_rank if self.kind == "ragged" else 1
        return 0 if self.kind == "dense" else levels

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Of one record's value; of an image that is one string."""
        return () if self.feature.encoding == "image" else self.feature.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of values that are numbers; times are counts."""
        is_time = self.feature.dtype in TIMES
        return np.dtype(np.int64) if is_time else numpy_dtype(self.feature.dtype)


def _features_of(schema: Schema) -> Iterator[tuple[str, Feature]]:
    """All columns of a batch, with what they hold."""
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
    """Forms of all columns, one for all those of numbers that are alike."""
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
    """Puts the columns of a schema into two arrays: of numbers, and of strings.

    The array of numbers begins with counts: of the records, and for each piece of numbers of its
    items and of its blocks, and of the strings of each list. Then come the pieces in their order.

    Attributes:
        names: of all columns, in order.
        forms: what they are made of.
        numeric: how many pieces of numbers there are.
        strings: how many lists of strings there are.
        header_blocks: how many blocks the counts take.
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
        """Parsed columns, with those that tell which records have a feature beside them."""
        for name, beside in self._masked:
            column = columns[name]
            is_masked = isinstance(column, Masked)
            columns[beside] = column.present if is_masked else np.ones(len(column), np.bool_)
            columns[name] = column.values if is_masked else column
        return columns

    def pack(self, columns: Mapping[str, Any], records: int, buffers: Buffers) -> Packed:
        """The columns that `unmask` gave, of so many records, in memory from `buffers`."""
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
    """The bytes of all arrays of each piece, and those that fill up its last block."""
    found = []
    for piece in pieces:
        size = 0
        for array in piece:
            if array.size:  # the bytes of nothing cannot be looked at
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


# What columns of a form are taken apart into: integers are appended, and values returned.


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
    """Arrays that each have a shape; None has that of its feature, without any items."""
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
