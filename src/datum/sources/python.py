"""Records from Python objects: iterables, functions, sequences, other libraries' datasets."""

from __future__ import annotations

import array
import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.errors import Message, SourceError
from datum.sources.nested_rows import SAMPLE_RECORDS, NestedLists
from datum.sources.protocol import (
    Block,
    Part,
    Reject,
    RowPart,
    SourceInfo,
    as_slice,
    take_rows,
)

__all__ = [
    "PythonRows",
    "RowReader",
    "is_keyed",
    "take_snapshots",
]


def is_keyed(item: Any) -> bool:
    """Return whether it is a pair of a key and a row.

    >>> is_keyed(("a.jpg", {"x": 1})), is_keyed((1.5, 2.5))
    (True, False)
    """
    is_pair = type(item) is tuple and len(item) == 2
    return is_pair and _is_key(item[0]) and _is_record(item[1])


def _is_key(key: Any) -> bool:
    return isinstance(key, (str, int, np.integer)) and not isinstance(key, bool)


def _is_record(row: Any) -> bool:
    is_instance = dataclasses.is_dataclass(row) and not isinstance(row, type)
    return isinstance(row, Mapping) or is_instance or hasattr(row, "_fields")


class RowReader:
    """Makes blocks of rows; all of them have a key, or none.

    Lists of dicts are flattened: see `NestedLists`.

    `names` are the names of the values of plain tuples.
    """

    def __init__(self, names: tuple[str, ...] | None, *, is_keyed: bool) -> None:
        self._names = names
        self._is_keyed = is_keyed
        self._fields: dict[type, Callable[[Any], dict[str, Any]]] = {}
        self.nested = NestedLists()

    def __getstate__(self) -> tuple[Any, ...]:
        return self._names, self._is_keyed, self.nested

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._names, self._is_keyed, self.nested = state
        self._fields = {}

    def learn(self, items: list[Any]) -> None:
        """Learn which names contain lists of dicts, for all blocks alike."""
        rows: Any = self._read(items, np.arange(len(items)), ()).data
        self.nested.learn(rows)

    def read(
        self, items: list[Any], numbers: NDArray[np.int64], rejects: Sequence[Reject] = ()
    ) -> Block:
        """Return the block of these items; items that are not rows join the rejects."""
        block = self._read(items, numbers, rejects)
        rows: Any = block.data
        self.nested.learn(rows)
        flat = self.nested.flatten(rows)
        return block if flat is rows else replace(block, data=flat)

    def _read(
        self, items: list[Any], numbers: NDArray[np.int64], rejects: Sequence[Reject]
    ) -> Block:
        if not self._is_keyed and set(map(type, items)) <= {dict}:
            return Block(items, numbers, None, rejects)
        rows: list[dict[str, Any]] = []
        keys: list[str] = []
        bad: list[int] = []
        found = list(rejects)
        for at, item in enumerate(items):
            try:
                key, row = self._split(item)
                rows.append(row if type(row) is dict else self._to_dict(row))
            except TypeError as error:
                bad.append(at)
                message = Message.of(error)
                found.append(Reject(int(numbers[at]), None, "", message.line, message.hint))
                continue
            keys.append(key)
        kept = np.delete(numbers, bad) if bad else numbers
        return Block(rows, kept, keys if self._is_keyed else None, found)

    def key_of(self, item: Any, number: int) -> str:
        """Return the key of an item, or a unique one if it has none."""
        return str(item[0]) if is_keyed(item) else f"record {number}"

    def _split(self, item: Any) -> tuple[str, Any]:
        if not self._is_keyed:
            return "", item
        if not is_keyed(item):
            raise TypeError(_refuse("a key and a dict, as before", item))
        return str(item[0]), item[1]

    def _to_dict(self, row: Any) -> dict[str, Any]:
        kind = type(row)
        if kind not in self._fields:
            self._fields[kind] = self._find_fields(row)
        return self._fields[kind](row)

    def _find_fields(self, row: Any) -> Callable[[Any], dict[str, Any]]:
        """Return the function that converts rows of this type to dicts."""
        if isinstance(row, Mapping):
            return dict
        if dataclasses.is_dataclass(row) and not isinstance(row, type):
            names = [field.name for field in dataclasses.fields(row)]
            return lambda row: {name: getattr(row, name) for name in names}
        if isinstance(row, tuple) and hasattr(row, "_fields"):
            return lambda row: dict(zip(row._fields, row, strict=True))
        if isinstance(row, tuple):
            return self._name_values
        raise TypeError(_refuse("a dict of values", row))

    def _name_values(self, row: tuple[Any, ...]) -> dict[str, Any]:
        names: Sequence[str] = self._names or ()
        if self._names is None:
            names = ("x", "y") if len(row) == 2 else [str(at) for at in range(len(row))]
        if len(names) != len(row):
            raise TypeError(Message(f"expected a tuple of {len(names)} values, got {len(row)}"))
        return dict(zip(names, row, strict=True))


def _refuse(expected: str, item: Any) -> Message:
    """Describe an item that is not a row, and what may have been meant."""
    got, hint = type(item).__name__, ""
    if isinstance(item, PurePath):
        hint = "rows of images are [{'image': path} for path in paths]"
    elif isinstance(item, (np.ndarray, list)) or np.isscalar(item):
        hint = "a row is a dict; columns are a dict: {'x': x, 'y': y}"
    elif type(item) is tuple:
        got = f"a tuple of {len(item)}"
    return Message(f"expected {expected}, got {got}", hint=hint)


MAX_BYTES = 8 * 2**20  # of rows in a block: several blocks are in memory at a time


def take_snapshots(rows: Iterator[Any], items: list[Any], limit: int) -> None:
    """Add copies of at most `limit` rows, or 8 MiB of them, to `items` as they arrive.

    Dicts, lists, arrays and their contents are copied, unless nobody else refers to them. If the
    iterator raises, the rows before that are in `items`.

    >>> row, items = {}, []
    >>> def reuse():
    ...     for row["x"] in range(3):
    ...         yield row
    >>> take_snapshots(reuse(), items, 10)
    >>> items
    [{'x': 0}, {'x': 1}, {'x': 2}]
    """
    _core.take_items(rows, items, limit, MAX_BYTES, _copy)


def _copy(value: Any) -> Any:
    """Return a copy of a mutable value that is not a built-in container."""
    if isinstance(value, np.ndarray):
        return _core.snapshot(value.tolist(), _copy) if value.dtype.hasobject else value.copy()
    if isinstance(value, (np.generic, str, bytes, int, float)):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Mapping):
        return _core.snapshot(dict(value), _copy)
    if isinstance(value, tuple):  # a named tuple
        return tuple.__new__(type(value), [_core.snapshot(item, _copy) for item in value])
    if hasattr(value, "clone"):  # a tensor
        return value.clone()
    return _copy_object(value)


def _copy_object(value: Any) -> Any:
    """Return a copy of an object with attributes, such as a dataclass, or of an array."""
    try:
        if isinstance(value, array.array) or hasattr(value, "__array__"):
            return np.array(value)
        copied = copy.copy(value)
        names = [field.name for field in fields(value)] if is_dataclass(value) else vars(copied)
        for name in names:
            attribute = getattr(copied, name)
            kept = _core.snapshot(attribute, _copy)
            if kept is not attribute:
                object.__setattr__(copied, name, kept)
    except Exception:  # an object that cannot be copied is used as it is
        return value
    return copied


BLOCK_RECORDS = 4096
_SLOW_SAMPLE_RECORDS = 4  # of a dataset that may compute its rows


class PythonRows(SourceInfo):
    """Rows of a Python object, as one split.

    `source` is an iterable of rows, a function without arguments that returns one, or a sequence
    or map-style dataset (with `len` and integer indexing, such as those of PyTorch and Hugging
    Face). An iterator is consumed only once.

    A row is a dict; a pair of a key, which names the record, and a dict; a dataclass instance or
    named tuple; or a tuple of values, named by `names`: by default `x` and `y` for two of them,
    as in supervised datasets, and `0`, `1`, `2` ... for more. Anything else is rejected.

    Args:
        source: The rows.
        names: The names of the values of rows that are plain tuples.
        split: The name of the split.

    >>> part = PythonRows(iter([("a", {"x": 1}), ("b", {"x": 2})])).parts()["train"]
    >>> [(block.data, block.keys) for block in part.blocks()]
    [([{'x': 1}, {'x': 2}], ['a', 'b'])]
    """

    kind = "Python rows"
    is_table = True

    def __init__(
        self, source: Any, *, names: Sequence[str] | None = None, split: str = "train"
    ) -> None:
        if isinstance(names, str):
            raise SourceError(f"expected a list as `names`, got {names!r}")
        if isinstance(source, type):
            name = source.__name__
            raise SourceError(f"expected rows, got the class {name}", hint=f"{name}() makes one")
        self._source = source
        self._names = None if names is None else tuple(names)
        self._split = split

    def parts(self) -> Mapping[str, Part]:
        """Return the one split."""
        return {self._split: self._part()}

    def _part(self) -> Part:
        source = self._source
        if _is_map_style(source):
            _check_length(source)
            first = _first_item(source)
            metadata = _class_names(source, first, self._names)
            if isinstance(source, (list, tuple)) or not is_keyed(first):
                return _RowSequence(source, self._names, metadata, is_keyed=is_keyed(first))
            return _RowStream(lambda: _items(source), self._names, metadata)
        if hasattr(source, "__iter__"):
            metadata = _class_names(source, None, self._names)
            is_repeatable = not isinstance(source, Iterator)
            return _RowStream(lambda: source, self._names, metadata, is_repeatable=is_repeatable)
        if callable(source):
            return _RowStream(source, self._names, {})
        raise SourceError(f"expected an iterable of rows, got {type(source)!r}")


def _is_map_style(source: Any) -> bool:
    """Return whether it has `len` and integer indexing, and is not an iterable dataset."""
    is_stream = any(base.__name__ == "IterableDataset" for base in type(source).__mro__)
    return hasattr(source, "__len__") and hasattr(source, "__getitem__") and not is_stream


def _check_length(source: Any) -> None:
    try:
        len(source)
    except Exception as error:  # raised by the user's code
        raise SourceError(f"expected a dataset with a length, got: {error}") from error


def _first_item(source: Any) -> Any:
    try:
        return source[0] if len(source) else None
    except Exception:  # reported when the record is read
        return None


def _items(source: Any) -> Iterator[Any]:
    return (source[number] for number in range(len(source)))


def _class_names(
    source: Any, first: Any, names: tuple[str, ...] | None
) -> dict[str, dict[str, Any]]:
    """Return the names of classes, if a dataset has them like Hugging Face's or torchvision's."""
    found: dict[str, dict[str, Any]] = {}
    features = getattr(source, "features", None)
    for name, feature in features.items() if isinstance(features, Mapping) else ():
        if _are_names(getattr(feature, "names", None)):
            found[name] = {"class_names": list(feature.names)}
    classes: Any = getattr(source, "classes", None)
    if isinstance(first, tuple) and len(first) == 2 and _are_names(classes):
        found["y" if names is None else names[-1]] = {"class_names": list(classes)}
    return found


def _are_names(value: Any) -> bool:
    is_list = isinstance(value, (list, tuple)) and bool(value)
    return is_list and all(isinstance(name, str) for name in value)


class _RowStream(RowPart):
    """Rows that are read one after the other.

    Attributes:
        is_repeatable: Whether `blocks` can be called more than once.
    """

    def __init__(
        self,
        open: Callable[[], Any],
        names: tuple[str, ...] | None,
        metadata: Mapping[str, Mapping[str, Any]],
        *,
        is_repeatable: bool = True,
    ) -> None:
        super().__init__(metadata)
        self.is_repeatable = is_repeatable
        self._open = open
        self._names = names
        self._is_used = False

    def blocks(self) -> Iterator[Block]:
        """Yield blocks of `BLOCK_RECORDS` rows; errors of the source are raised as SourceError."""
        if self._is_used and not self.is_repeatable:
            raise SourceError(
                "expected an iterator that still has its rows, got one that is exhausted",
                hint="pass a function that returns a new iterator",
            )
        self._is_used = True
        reader: RowReader | None = None
        rows = self._start()
        first = 0
        while True:
            items: list[Any] = []
            try:
                take_snapshots(rows, items, BLOCK_RECORDS)
            except Exception as error:  # raised by the user's code
                raise _raised(first + len(items), error) from error
            if not items:
                return
            if reader is None:
                reader = RowReader(self._names, is_keyed=is_keyed(items[0]))
                self._lists = reader.nested
            yield reader.read(items, np.arange(first, first + len(items)))
            first += len(items)

    def _start(self) -> Iterator[Any]:
        try:
            rows = self._open()
            if inspect.isawaitable(rows) or hasattr(rows, "__aiter__"):
                close = getattr(rows, "close", None)  # so that Python does not warn
                if close is not None:
                    close()
                raise SourceError(
                    "expected an iterable of rows, got an asynchronous one",
                    hint="collect its rows in a list first",
                )
            if isinstance(rows, (str, bytes, Mapping)) or not hasattr(rows, "__iter__"):
                raise SourceError(f"expected an iterable of rows, got {type(rows)!r}")
            return iter(rows)
        except SourceError:
            raise
        except Exception as error:
            raise _raised(0, error) from error


def _raised(record: int, error: Exception) -> SourceError:
    return SourceError(
        f"the source raised {type(error).__name__}: {error}", where=f"record {record}"
    )


class _RowSequence(RowPart):
    """Rows by their numbers."""

    def __init__(
        self,
        source: Any,
        names: tuple[str, ...] | None,
        metadata: Mapping[str, Mapping[str, Any]],
        *,
        is_keyed: bool,
    ) -> None:
        super().__init__(metadata)
        self.keys: Sequence[str] | None = None
        self.stored_bytes: int | None = None
        self.is_slow_python = not isinstance(source, (list, tuple))
        self._source = source
        self._length = len(source)
        self._reader = RowReader(names, is_keyed=is_keyed)
        self._lists = self._reader.nested
        self._reader.learn(self._find_sample())
        if is_keyed:
            self.keys = [self._reader.key_of(item, number) for number, item in enumerate(source)]

    def _find_sample(self) -> list[Any]:
        """Return rows from all over the source; only a few if they may be costly."""
        most = _SLOW_SAMPLE_RECORDS if self.is_slow_python else SAMPLE_RECORDS
        numbers = np.linspace(0, self._length - 1, min(most, self._length)).astype(int).tolist()
        try:
            return [self._source[number] for number in numbers]
        except Exception:  # reported when the record is read
            return []

    def __len__(self) -> int:
        return self._length

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """Return the rows of these numbers; reject those that the source fails to return."""
        numbers = np.asarray(numbers, np.int64)
        if not self.is_slow_python:
            return self._reader.read(take_rows(self._source, numbers, as_slice(numbers)), numbers)
        try:
            items = self._get(numbers.tolist())
        except Exception:  # one of them failed: read each by itself
            return self._read_singly(numbers.tolist())
        return self._reader.read(items, numbers)

    def _get(self, numbers: list[int]) -> list[Any]:
        source = self._source
        if hasattr(source, "__getitems__"):  # PyTorch's protocol for batches
            items = list(source.__getitems__(numbers))
            if len(items) == len(numbers):
                return items
        return [source[number] for number in numbers]

    def _read_singly(self, numbers: list[int]) -> Block:
        items: list[Any] = []
        kept: list[int] = []
        rejects = []
        for number in numbers:
            try:
                items.append(self._source[number])
                kept.append(number)
            except Exception as error:  # raised by the user's code
                reason = f"the source raised {type(error).__name__}: {error}"
                rejects.append(Reject(number, None, "", reason))
        return self._reader.read(items, np.array(kept, np.int64), rejects)
