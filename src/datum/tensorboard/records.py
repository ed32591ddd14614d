"""Elements of any dataset, batched or not, as single records of NumPy values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from datum.columns import BytesColumn, Masked, Ragged
from datum.errors import SourceError
from datum.images import sniff_format

__all__ = ["CHANNELS", "IMAGE_NAMES", "Row", "iterate_records", "last_part"]

# What an image is called: the last part of its name, in small letters, the most likely first.
IMAGE_NAMES = ("image", "images", "img", "encoded", "picture", "photo", "pixels", "x", "inputs")
CHANNELS = (1, 3, 4)  # grey, colour, colour with transparency
_PARTS = ("inputs", "targets", "weights")  # what Keras takes the members of a tuple for


@dataclass(frozen=True, slots=True)
class Row:
    """One record; values become NumPy's when they are asked for.

    Attributes:
        columns: what an element of the dataset holds, by name.
        at: the number of the record within the batch; None if the element is no batch.
    """

    columns: Mapping[str, Any]
    at: int | None = None

    def __getitem__(self, name: str) -> Any:
        """An array, `str` or `bytes`; None where the record lacks it."""
        value = self._pick(name)
        return None if value is None or self._is_absent(name) else _to_numpy(value)

    def _pick(self, name: str) -> Any:
        value = self.columns.get(name)
        return value if self.at is None else _pick(value, self.at)

    def _is_absent(self, name: str) -> bool:
        """Whether a column beside the feature says that it is not there."""
        present = self._pick(f"{name}_present")
        marker = None if present is None else np.asarray(_to_numpy(present))
        return marker is not None and marker.dtype == np.bool_ and marker.ndim == 0 and not marker


def last_part(name: str) -> str:
    """What follows the last slash, in small letters."""
    return name.rpartition("/")[2].lower()


def iterate_records(data: Any, *, image: str | None = None) -> Iterator[Row]:
    """The records of a `tf.data.Dataset` or of any other iterable, or of one batch.

    An element is a dict, whose dicts get names such as "objects/bbox"; or a tuple of dicts and
    values, of which those without a name are called inputs, targets and weights. An element is a
    batch if all its values are of one length, and `image`, or what is called as an image is, or
    else any value, looks like several images.
    """
    try:
        elements: Iterable[Any] = iter([data] if isinstance(data, Mapping) else data)
    except TypeError:
        raise SourceError(
            f"expected a tf.data.Dataset or an iterable of records, got {type(data).__name__}"
        ) from None
    for number, element in enumerate(elements):
        columns = _name_columns(element, number)
        if _is_batch(columns, image):
            count = max(map(_length, columns.values()))
            yield from (Row(columns, at) for at in range(count))
        else:
            yield Row(columns)


def _name_columns(element: Any, number: int) -> dict[str, Any]:
    if isinstance(element, str | bytes | int | float | None):
        raise SourceError(
            f"element {number}: expected a dict or a tuple of (inputs, targets), got {element!r}",
            hint='of a dataset pass a split, ds["train"] or ds.to_tf("train")',
        )
    if isinstance(element, Mapping):
        return dict(_flatten(element))
    if not isinstance(element, tuple | list):
        return {_PARTS[0]: element}
    columns: dict[str, Any] = {}
    for at, part in enumerate(element):
        name = _PARTS[at] if at < len(_PARTS) else str(at)
        if isinstance(part, Mapping):
            found = dict(_flatten(part))
            columns |= {(f"{name}/{key}" if key in columns else key): found[key] for key in found}
        elif isinstance(part, tuple):
            columns |= {f"{name}/{place}": value for place, value in enumerate(part)}
        else:
            columns[name] = part
    return columns


def _flatten(record: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value


def _is_batch(columns: Mapping[str, Any], image: str | None) -> bool:
    given = {name: value for name, value in columns.items() if value is not None}
    if not given or any(_rank(value) == 0 for value in given.values()):
        return False
    if len({_length(value) for value in given.values()}) > 1:
        return False
    named = [name for name in given if last_part(name) in IMAGE_NAMES]
    telling = [image] if image in given else named or list(given)
    return any(_holds_images(given[name]) for name in telling)


def _holds_images(column: Any) -> bool:
    """Whether a column looks like several images rather than like one."""
    rank = _rank(column)
    if isinstance(column, Masked):
        return _holds_images(column.values)
    if rank == 1:
        values = (_to_numpy(_pick(column, at)) for at in range(min(_length(column), 8)))
        return any(_is_image(value) for value in values)
    if rank == 3:
        return column.shape[-1] not in CHANNELS
    return rank == 4


def _is_image(value: Any) -> bool:
    if isinstance(value, bytes):
        return sniff_format(value) is not None
    return isinstance(value, np.ndarray) and value.ndim == 3 and value.shape[-1] in CHANNELS


def _rank(value: Any) -> int:
    if isinstance(value, Masked):
        return _rank(value.values)
    if isinstance(value, BytesColumn | list | tuple):
        return 1
    if hasattr(value, "dense_shape"):
        return len(value.dense_shape)
    return len(getattr(value, "shape", ()))


def _length(value: Any) -> int:
    if value is None:
        return 0
    if hasattr(value, "nrows"):  # a tf.RaggedTensor
        return int(value.nrows())
    if hasattr(value, "dense_shape"):
        return int(value.dense_shape[0])
    return len(value)


def _pick(column: Any, at: int) -> Any:
    """The value of one record of a batch."""
    if column is None or not hasattr(column, "dense_shape"):
        return None if column is None else column[at]
    indices = np.asarray(column.indices)
    return _positions(column, indices[:, 0] == at)


def _positions(sparse: Any, rows: Any = slice(None)) -> Any:
    """Where a sparse vector is not zero: as a label, the ids of its classes."""
    is_set = np.asarray(sparse.values)[rows] != 0
    return np.asarray(sparse.indices)[rows][is_set, -1]


def _to_numpy(value: Any) -> Any:
    if isinstance(value, str | bytes):
        return value
    if hasattr(value, "dense_shape"):
        return _positions(value)
    if isinstance(value, Ragged):
        return value.to_padded()
    if hasattr(value, "to_tensor"):  # a tf.RaggedTensor, of an image whose rows are equally long
        value = value.to_tensor()
    if hasattr(value, "numpy"):
        value = value.numpy()
        return value if isinstance(value, bytes) else np.asarray(value)
    return np.asarray(value, object if _holds_text(value) else None)


def _holds_text(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(one, str | bytes) for one in value)
