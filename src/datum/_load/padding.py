"""Padding of ragged and sparse columns to dense arrays with masks."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from datum._load.functions import like_tuple
from datum._options import check_count, check_kind, check_known
from datum.columns import BytesColumn, Ragged, Sparse, positions_of
from datum.errors import Message
from datum.schema import Schema

__all__ = [
    "Describe",
    "Filled",
    "Pad",
    "PadOption",
    "Padder",
    "Padding",
    "check_bucket_pad",
    "check_pad",
    "fill_arrays",
    "fill_ragged",
    "fill_sparse",
    "find_pad",
    "mask_name",
    "mask_owners",
]

Describe = Callable[[int], str]
Filled = tuple[NDArray[Any], NDArray[np.bool_] | None]


class Padding(Protocol):
    """The settings of a `Pad`."""

    @property
    def length(self) -> int | tuple[int, ...] | None:
        """Length of every row; None if it depends on the batch."""

    @property
    def value(self) -> Any:
        """The value to fill up with."""

    @property
    def truncate(self) -> bool:
        """Whether longer rows are cut."""

    @property
    def mask(self) -> bool:
        """Whether to make a mask."""

    def extents(self, longest: Sequence[int], *, name: str) -> list[int]:
        """The padded length of each variable dimension."""


# Lists of values.


def fill_ragged(column: Ragged, pad: Padding, name: str, describe: Describe) -> Filled:
    """Pad or cut the rows of a column at every level; `describe` names a row."""
    levels = _levels(column)
    longest = [int(level.row_lengths.max(initial=0)) for level in levels]
    extents = pad.extents(longest, name=name)
    if not pad.truncate:
        for depth, extent in enumerate(extents):
            if longest[depth] > extent:
                row = _row_of(levels[: depth + 1], int(levels[depth].row_lengths.argmax()))
                raise _too_long(describe(row), name, extent, longest[depth], pad)
    values = levels[-1].values
    fill = _fill_value(pad.value, values, name)
    if fill is None:
        fill = ("" if values.is_text else b"") if isinstance(values, BytesColumn) else 0
    dense = _fill_levels(column, extents, fill)
    if not pad.mask:
        return dense, None
    mask: Any = np.ones(len(values), np.bool_)
    for level in reversed(levels):
        mask = Ragged(mask, level.row_splits)
    return dense, _fill_levels(mask, extents, False)


def _levels(column: Ragged) -> list[Ragged]:
    levels = [column]
    while isinstance(levels[-1].values, Ragged):
        levels.append(levels[-1].values)
    return levels


def _row_of(levels: Sequence[Ragged], row: int) -> int:
    """The record of a row of the innermost level."""
    for level in reversed(levels[:-1]):
        row = int(np.searchsorted(level.row_splits, row, "right")) - 1
    return row


def _fill_levels(column: Ragged, extents: Sequence[int], fill: Any) -> NDArray[Any]:
    values: Any = column.values
    if isinstance(values, Ragged):
        rows = _fill_levels(values, extents[1:], fill)
    else:
        rows = np.asarray(values)
    width, lengths = extents[0], column.row_lengths
    if lengths.max(initial=0) > width:
        lengths = np.minimum(lengths, width)
        rows = rows[positions_of(column.row_splits[:-1], lengths)]
    dense = _full((len(column), width, *rows.shape[1:]), fill, rows.dtype)
    dense[np.arange(width) < lengths[:, None]] = rows
    return dense


def _too_long(where: str, name: str, extent: int, got: int, pad: Padding) -> ValueError:
    return ValueError(
        Message(
            f"{where}, feature {name!r}: expected at most {extent} values, the `length` to pad to,"
            f" got {got}",
            hint=f"datum.Pad(length={pad.length}, truncate=True) cuts longer rows",
        )
    )


# Arrays.


def fill_arrays(
    rows: Sequence[NDArray[Any]] | NDArray[Any],
    pad: Padding,
    axes: tuple[int, ...] | None,
    name: str,
    describe: Describe,
) -> Filled:
    """Pad rows in every dimension to one array.

    Args:
        rows: Arrays of one rank, or one array of all rows.
        pad: Settings.
        axes: Variable dimensions of the rows; None if the settings need none.
        name: Name of the column, for messages.
        describe: Describes the record of a row, for messages.
    """
    if isinstance(rows, np.ndarray):
        dtype, shapes = rows.dtype, np.array([rows.shape[1:]])
    else:
        dtype = np.result_type(*{row.dtype for row in rows})
        shapes = np.array([row.shape for row in rows])
    extents = shapes.max(axis=0).tolist()
    for axis, extent in zip(axes or (), _axis_extents(pad, axes, extents, name), strict=True):
        if extents[axis] > extent and not pad.truncate:
            where = describe(int(shapes[:, axis].argmax()))
            raise _too_long(where, name, extent, extents[axis], pad)
        extents[axis] = extent
    fill = _fill_value(pad.value, np.empty(0, dtype), name)
    if fill is None:
        fill = "" if dtype.kind == "O" else 0
    dense = _full((len(rows), *extents), fill, dtype)
    depth = axes[-1] + 1 if axes else 0
    mask = np.zeros((len(rows), *extents[:depth]), np.bool_) if pad.mask else None
    if isinstance(rows, np.ndarray):
        place: Any = (slice(None), *map(slice, map(min, extents, rows.shape[1:])))
        dense[place] = rows[place]
        if mask is not None:
            mask[place[: depth + 1]] = True
        return dense, mask
    for at, row in enumerate(rows):
        inside: Any = tuple(map(slice, map(min, extents, row.shape)))
        dense[(at, *inside)] = row[inside]
        if mask is not None:
            mask[(at, *inside[:depth])] = True
    return dense, mask


def _axis_extents(
    pad: Padding, axes: tuple[int, ...] | None, longest: Sequence[int], name: str
) -> list[int]:
    return [] if axes is None else pad.extents([longest[axis] for axis in axes], name=name)


def fill_sparse(column: Sparse, pad: Padding, name: str) -> NDArray[Any]:
    """A sparse column as a dense array."""
    fill = _fill_value(pad.value, column.values, name)
    if fill is None:
        return column.to_dense()
    values = np.asarray(column.values)
    dense = _full(column.dense_shape, fill, values.dtype)
    dense[tuple(column.indices.T)] = values
    return dense


def _full(shape: Sequence[int], fill: Any, dtype: Any) -> NDArray[Any]:
    """An array of one value; MemoryError also for a shape that no array can have."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if max(size, *shape) > sys.maxsize:
        raise MemoryError(f"{size:,} bytes")
    return np.full(shape, fill, dtype)


def _fill_value(value: Any, values: Any, name: str) -> Any:
    """The value in the type of a column; ValueError if it does not fit."""
    if value is None:
        return None
    if isinstance(values, BytesColumn):
        kind = str if values.is_text else bytes
        if isinstance(value, kind):
            return value
        raise _wrong(name, kind.__name__, value)
    wanted = np.asarray(value)
    if values.dtype == object:
        return value
    if wanted.ndim or wanted.dtype.kind not in "biufcmM":
        raise _wrong(name, str(values.dtype), value)
    try:
        made = wanted.astype(values.dtype)
    except (TypeError, ValueError):
        raise _wrong(name, str(values.dtype), value) from None
    if values.dtype.kind in "biu" and made != wanted:
        raise _wrong(name, str(values.dtype), value)
    return made[()]


def _wrong(name: str, expected: str, value: Any) -> ValueError:
    return ValueError(f"expected `pad` of {name!r} to be a value of {expected}, got {value!r}")


Shape = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Pad:
    """Padding of columns whose rows differ in length to dense arrays.

    `to_numpy`, `to_torch`, `to_jax` and `to_tf` take it as `pad`: one for all columns that differ
    in length, or a dict of them by feature. Each padded column `<name>` gets a column
    `<name>_mask`, a boolean array that is True where there is a value. The mask has the shape of
    the column without the dimensions after the last variable one: (rows, length) for lists, (rows,
    height, width) for images. A sparse column becomes dense and has no mask.

    Attributes:
        length: Length of every row in every batch. A tuple has one for each variable dimension:
            (sentences, words) of nested lists, (height, width) of images. None pads to the longest
            row of the batch.
        multiple: Pad to the smallest multiple of this number that holds the longest row of the
            batch. A tuple has one for each variable dimension.
        value: The value to fill up with; None is 0 or the empty string.
        truncate: Whether to cut rows that are longer than `length`. Otherwise such a row raises a
            ValueError that names its record.
        mask: Whether to add the mask.

    >>> import datum
    >>> report = datum.write({"ids": [[7, 8], [9]]}, "lists", shuffle=False, progress=False)
    >>> (batch,) = datum.load("lists").to_numpy("train", pad=datum.Pad(length=3))
    >>> batch["ids"]
    array([[7, 8, 0],
           [9, 0, 0]])
    >>> batch["ids_mask"]
    array([[ True,  True, False],
           [ True, False, False]])
    """

    length: int | tuple[int, ...] | None = None
    multiple: int | tuple[int, ...] | None = None
    value: Any = None
    truncate: bool = False
    mask: bool = True

    def __post_init__(self) -> None:
        for name in ("length", "multiple"):
            given = getattr(self, name)
            if isinstance(given, (tuple, list)):
                numbers = tuple(check_count(f"Pad.{name}", number, least=1) for number in given)
                object.__setattr__(self, name, numbers)
            elif given is not None:
                object.__setattr__(self, name, check_count(f"Pad.{name}", given, least=1))
        if self.length is not None and self.multiple is not None:
            raise ValueError(Message(f"expected `length` or `multiple`, got both: {self!r}"))
        for name in ("truncate", "mask"):
            check_kind(f"Pad.{name}", getattr(self, name), bool, "True or False")

    @property
    def is_plain(self) -> bool:
        """Whether it only pads to the longest row of a batch."""
        return self.length is None and self.multiple is None and not self.mask

    @property
    def levels(self) -> int | None:
        """Number of dimensions it has numbers for; None for no number, or one for all."""
        given = self.multiple if self.length is None else self.length
        if isinstance(given, tuple):
            return len(given)
        return None if self.length is None else 1

    def targets(self, levels: int, *, name: str) -> tuple[int | None, ...]:
        """The `length`, or else the `multiple`, of each variable dimension."""
        given = self.multiple if self.length is None else self.length
        if given is None or (self.length is None and not isinstance(given, tuple)):
            return (given,) * levels
        numbers = given if isinstance(given, tuple) else (given,)
        if len(numbers) != levels:
            option = "multiple" if self.length is None else "length"
            raise ValueError(
                Message(
                    f"feature {name!r}: expected `{option}` of {levels} number(s), one for each"
                    f" variable dimension, got {given!r}",
                    hint=f"pad={{{name!r}: datum.Pad({option}={_example(levels)})}}",
                )
            )
        return numbers

    def extents(self, longest: Sequence[int], *, name: str) -> list[int]:
        """The padded length of each variable dimension, from the longest rows of a batch."""
        targets = self.targets(len(longest), name=name)
        if self.length is not None:
            return [target for target in targets if target is not None]
        return [
            length if unit is None else -(-max(1, length) // unit) * unit
            for length, unit in zip(longest, targets, strict=True)
        ]


PadOption = bool | int | Pad | Mapping[str, Any]


def _example(levels: int) -> str:
    return "64" if levels == 1 else f"({', '.join(['64'] * levels)})"


def check_pad(pad: Any) -> None:
    """Raise TypeError or ValueError for an invalid option `pad`."""
    if isinstance(pad, (bool, Pad, Mapping)):
        return
    if not hasattr(pad, "__index__"):
        expected = "True, False, a length, a datum.Pad, or a dict by feature"
        check_kind("pad", pad, (), expected)
    check_count("pad", pad, least=1)


def find_pad(pad: PadOption, name: str | None = None) -> Pad | None:
    """The settings of the option `pad` for a column; None leaves it as it is.

    >>> find_pad({"ids": -1}, "ids")
    Pad(length=None, multiple=None, value=-1, truncate=False, mask=False)
    """
    if isinstance(pad, Mapping):
        if name is None or name not in pad:
            return None
        given = pad[name]
        return given if isinstance(given, Pad) else Pad(value=given, mask=False)
    if isinstance(pad, bool):
        return Pad(mask=False) if pad else None
    return pad if isinstance(pad, Pad) else Pad(length=pad)


def check_bucket_pad(pad: PadOption, bucket_by: str, buckets: Any) -> None:
    """Raise ValueError for a length together with `buckets`, which define one."""
    found = find_pad(pad, bucket_by)
    if buckets is None or found is None or (found.length is None and found.multiple is None):
        return
    raise ValueError(
        Message(
            f"expected `buckets` or a length to pad {bucket_by!r} to, got both: {pad!r}",
            hint="pad=datum.Pad() pads each batch to the bound of its bucket",
        )
    )


def mask_name(name: str) -> str:
    """The name of the mask of a padded column."""
    return f"{name}_mask"


def mask_owners(pad: PadOption, schema: Schema) -> dict[str, str]:
    """The feature of each mask that padding adds."""
    owners = {}
    for name, feature in schema.items():
        found = find_pad(pad, name)
        if found is not None and found.mask and None in feature.shape:
            owners[mask_name(name)] = name
    return owners


class Padder:
    """Pads the columns of a batch by the option `pad`.

    Rows of a `Ragged` are padded to the longest of the batch, or to the length of a `Pad`; a list
    of arrays in every variable dimension; and a `Sparse` to its dense shape. Dense columns stay as
    they are, unless their feature has variable dimensions or a `Pad` names them: then their rows
    have one shape only in this batch.

    Args:
        pad: The option `pad`.
        names: Names of the columns, if they are known before the first batch.
        shapes: Known shapes of features that are not sparse.
        bucket_by: Column that is padded to the length of the plan, together with columns that have
            the same length in each record.

    >>> column = Ragged(np.array([1, 2, 3]), np.array([0, 2, 3]))
    >>> Padder({"x": -1}).pad({"x": column})["x"]
    array([[ 1,  2],
           [ 3, -1]])
    """

    def __init__(
        self,
        pad: PadOption,
        names: Iterable[str] | None = None,
        shapes: Mapping[str, Shape] | None = None,
        *,
        bucket_by: str | None = None,
    ) -> None:
        self._pad = pad
        self._is_by_name = isinstance(pad, Mapping)
        self._shapes: Mapping[str, Shape] = shapes or {}
        self._is_exact = names is not None
        self._bucket_by = bucket_by
        if names is None:
            return
        names = list(names)
        if isinstance(pad, Mapping):
            check_known("pad", pad, names)
        for name, shape in self._shapes.items():
            found = find_pad(pad, name)
            if found is None or found.is_plain:
                continue
            if None in shape:
                self._check_mask(found, name, names)
                found.targets(len(_axes(shape)), name=name)
            elif self._is_by_name:
                raise ValueError(
                    Message(
                        f"feature {name!r}: expected `pad` with a length for a feature of variable"
                        f" length, got {found!r} for rows of shape {shape}"
                    )
                )

    def pad(
        self, batch: Any, *, length: int | None = None, describe: Describe = "row {}".format
    ) -> Any:
        """Pad the columns of a batch.

        Args:
            batch: A dict of columns, or columns in the form that `map` returned.
            length: Length for the column `bucket_by`, unless its `Pad` has one.
            describe: Describes the record of a row, for messages.
        """
        if not self._pad:
            return batch
        if isinstance(self._pad, Mapping):
            if not isinstance(batch, dict):
                raise ValueError(
                    Message(
                        f"expected dicts from `map` with `pad` by name, got {type(batch).__name__}",
                        hint="pad=True pads all columns",
                    )
                )
            check_known("pad", self._pad, batch)
        return self._pad_part(batch, length, describe)

    def _pad_part(self, part: Any, length: int | None, describe: Describe) -> Any:
        if isinstance(part, dict):
            return self._pad_columns(part, length, describe)
        if isinstance(part, tuple):
            return like_tuple(part, [self._pad_part(one, length, describe) for one in part])
        found = find_pad(self._pad)
        assert found is not None
        dense, mask = self._fill(part, found, "", describe)
        if mask is not None:
            raise ValueError(
                Message(
                    "expected dicts from `map` with a `pad` that adds masks, which are named after"
                    " their columns, got a tuple",
                    hint="datum.Pad(mask=False) adds no masks",
                )
            )
        return dense

    def _pad_columns(
        self, columns: dict[Any, Any], length: int | None, describe: Describe
    ) -> dict[Any, Any]:
        made = {}
        bucketed = None if length is None else columns.get(self._bucket_by)
        for name, column in columns.items():
            if isinstance(column, (dict, tuple)) and not self._is_by_name:
                made[name] = self._pad_part(column, length, describe)
                continue
            found = find_pad(self._pad, name)
            if found is None:
                made[name] = column
                continue
            if found.length is None and found.multiple is None and _is_as_long(column, bucketed):
                found = replace(found, length=length)
            made[name], mask = self._fill(column, found, str(name), describe)
            if mask is not None:
                self._check_mask(found, name, columns)
                made[mask_name(name)] = mask
        return made

    def _check_mask(self, pad: Pad, name: str, columns: Iterable[str]) -> None:
        if pad.mask and mask_name(name) in columns:
            raise ValueError(
                Message(
                    f"expected no column {mask_name(name)!r} beside {name!r}, whose mask has"
                    " that name",
                    hint="datum.Pad(mask=False) adds no mask; or exclude one with `columns`",
                )
            )

    def _fill(
        self, column: Any, pad: Pad, name: str, describe: Describe
    ) -> tuple[Any, NDArray[np.bool_] | None]:
        """A column as a dense array, and its mask if it has one; ValueError if memory is short."""
        try:
            return self._fill_dense(column, pad, name, describe)
        except MemoryError as error:
            where = f"feature {name!r}: " if name else ""
            raise ValueError(
                Message(
                    f"{where}expected `pad` to a size that fits into memory, got {pad!r} for"
                    f" {len(column):,} records: {error}",
                    hint="pad to a smaller length, or lower `batch_size`",
                )
            ) from error

    def _fill_dense(
        self, column: Any, pad: Pad, name: str, describe: Describe
    ) -> tuple[Any, NDArray[np.bool_] | None]:
        if isinstance(column, Sparse):
            return fill_sparse(column, pad, name), None
        if isinstance(column, Ragged):
            return fill_ragged(column, pad, name, describe)
        if isinstance(column, list):
            is_alike = column and all(isinstance(row, np.ndarray) for row in column)
            if not is_alike or len({row.ndim for row in column}) > 1:
                return column, None
            return fill_arrays(
                column, pad, self._axes_of(column[0].ndim, pad, name), name, describe
            )
        if isinstance(column, np.ndarray) and not pad.is_plain and self._may_differ(name, column):
            axes = self._axes_of(column.ndim - 1, pad, name, is_array=True)
            return fill_arrays(column, pad, axes, name, describe)
        return column, None

    def _may_differ(self, name: str, column: NDArray[Any]) -> bool:
        """Whether the rows of an array may have another shape in other batches."""
        if self._is_exact and name in self._shapes:
            return None in self._shapes[name]
        return self._is_by_name or (name == self._bucket_by and column.ndim > 1)

    def _axes_of(
        self, rank: int, pad: Pad, name: str, *, is_array: bool = False
    ) -> tuple[int, ...] | None:
        """The variable dimensions of rows; None if the settings need none."""
        shape = self._shapes.get(name, ())
        if None in shape and len(shape) == rank:
            return _axes(shape)
        if pad.is_plain:
            return None
        levels = pad.levels or (1 if is_array else None)  # rows of lists, all of one length
        if levels is None:
            raise ValueError(
                Message(
                    f"column {name!r}: expected `pad` with a number for each variable dimension,"
                    f" got {pad!r} for arrays of {rank} dimensions",
                    hint=f"pad={{{name!r}: datum.Pad(length=(64, 64))}}, for instance",
                )
            )
        if levels > rank:
            raise ValueError(
                Message(
                    f"column {name!r}: expected rows of {levels} or more dimensions to pad, got"
                    f" {rank}"
                )
            )
        return tuple(range(levels))


def _is_as_long(column: Any, bucketed: Any) -> bool:
    """Whether a column is `bucketed`, or has its length in each record."""
    if column is bucketed or not isinstance(column, Ragged) or not isinstance(bucketed, Ragged):
        return column is bucketed and bucketed is not None
    is_nested = isinstance(column.values, Ragged)
    return not is_nested and np.array_equal(column.row_splits, bucketed.row_splits)


def _axes(shape: Shape) -> tuple[int, ...]:
    return tuple(axis for axis, extent in enumerate(shape) if extent is None)
