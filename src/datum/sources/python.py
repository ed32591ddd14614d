"""Records that Python gives: iterables, functions, sequences, datasets of other libraries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.errors import SourceError
from datum.schema import Schema
from datum.sources.nested_rows import SAMPLE_RECORDS, NestedLists, describe_filled
from datum.sources.python_rows import RowReader, is_keyed
from datum.sources.snapshot import take_snapshots
from datum.sources.source import Block, Part, Reject
from datum.sources.take import as_slice, take_rows

__all__ = ["PythonRows"]

BLOCK_RECORDS = 4096
_SLOW_SAMPLE_RECORDS = 4  # of a dataset that may compute its rows


class PythonRows:
    """Rows that Python gives, as one split.

    `source` is an iterable of rows, a function without arguments that returns one, or a sequence
    or map-style dataset (with `len` and numbers in brackets, such as those of PyTorch and Hugging
    Face). An iterable that can be gone through only once is gone through once.

    A row is a dict; a pair of a key, that names the record, and a dict; a dataclass instance or
    named tuple; or a tuple of values, named by `names`: by default `x` and `y` for two of them,
    as supervised datasets give them, and `0`, `1`, `2` ... for more. Anything else is rejected.

    Args:
        source: where rows come from.
        names: of the values of rows that are plain tuples.
        split: what the split is called.

    >>> part = PythonRows(iter([("a", {"x": 1}), ("b", {"x": 2})])).parts()["train"]
    >>> [(block.data, block.keys) for block in part.blocks()]
    [([{'x': 1}, {'x': 2}], ['a', 'b'])]
    """

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
        """The one split."""
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
    """Whether it has `len` and items by number, and is not meant to be gone through only."""
    is_stream = any(base.__name__ == "IterableDataset" for base in type(source).__mro__)
    return hasattr(source, "__len__") and hasattr(source, "__getitem__") and not is_stream


def _check_length(source: Any) -> None:
    try:
        len(source)
    except Exception as error:  # whatever the user's code raises
        raise SourceError(f"expected a dataset that tells its length, got: {error}") from error


def _first_item(source: Any) -> Any:
    try:
        return source[0] if len(source) else None
    except Exception:  # it is told when the record is read
        return None


def _items(source: Any) -> Iterator[Any]:
    return (source[number] for number in range(len(source)))


def _class_names(
    source: Any, first: Any, names: tuple[str, ...] | None
) -> dict[str, dict[str, Any]]:
    """The names of classes, where a dataset knows them as Hugging Face's or torchvision's do."""
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


class _RowStream:
    """Rows that come one after the other.

    Attributes:
        is_repeatable: whether `blocks` can be called more than once.
    """

    def __init__(
        self,
        open: Callable[[], Any],
        names: tuple[str, ...] | None,
        metadata: Mapping[str, Mapping[str, Any]],
        *,
        is_repeatable: bool = True,
    ) -> None:
        self.schema: Schema | None = None
        self.metadata = metadata
        self.fingerprint: str | None = None
        self.is_repeatable = is_repeatable
        self._open = open
        self._names = names
        self._is_used = False
        self._nested = NestedLists()

    @property
    def nested(self) -> tuple[str, ...]:
        """The features made of lists of dicts, in the rows that were read."""
        return tuple(self._nested.names)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was filled in, in the rows that have come."""
        return describe_filled(self._nested.filled)

    def blocks(self) -> Iterator[Block]:
        """Blocks of `BLOCK_RECORDS` rows; what the source raises comes as SourceError."""
        if self._is_used and not self.is_repeatable:
            raise SourceError(
                "expected an iterator that still has its rows, got one that was gone through",
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
            except Exception as error:  # whatever the user's code raises
                raise _raised(first + len(items), error) from error
            if not items:
                return
            if reader is None:
                reader = RowReader(self._names, is_keyed=is_keyed(items[0]))
                self._nested = reader.nested
            yield reader.read(items, np.arange(first, first + len(items)))
            first += len(items)

    def _start(self) -> Iterator[Any]:
        try:
            rows = self._open()
            if inspect.isawaitable(rows) or hasattr(rows, "__aiter__"):
                close = getattr(rows, "close", None)  # so that it is not missed
                if close is not None:
                    close()
                raise SourceError(
                    "expected an iterable of rows, got an asynchronous one",
                    hint="gather its rows in a list first",
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


class _RowSequence:
    """Rows by their numbers."""

    def __init__(
        self,
        source: Any,
        names: tuple[str, ...] | None,
        metadata: Mapping[str, Mapping[str, Any]],
        *,
        is_keyed: bool,
    ) -> None:
        self.schema: Schema | None = None
        self.metadata = metadata
        self.fingerprint: str | None = None
        self.keys: Sequence[str] | None = None
        self.stored_bytes: int | None = None
        self.is_slow_python = not isinstance(source, (list, tuple))
        self._source = source
        self._length = len(source)
        self._reader = RowReader(names, is_keyed=is_keyed)
        self._reader.learn(self._find_sample())
        if is_keyed:
            self.keys = [self._reader.key_of(item, number) for number, item in enumerate(source)]

    @property
    def nested(self) -> tuple[str, ...]:
        """The features made of lists of dicts, in the rows that were read."""
        return tuple(self._reader.nested.names)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was filled in, in the rows that were read."""
        return describe_filled(self._reader.nested.filled)

    def _find_sample(self) -> list[Any]:
        """Rows from all over the source; few where each may be much work."""
        most = _SLOW_SAMPLE_RECORDS if self.is_slow_python else SAMPLE_RECORDS
        numbers = np.linspace(0, self._length - 1, min(most, self._length)).astype(int).tolist()
        try:
            return [self._source[number] for number in numbers]
        except Exception:  # it is told when the record is read
            return []

    def __len__(self) -> int:
        return self._length

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """The rows of these numbers; those that the source cannot give are rejected."""
        numbers = np.asarray(numbers, np.int64)
        if not self.is_slow_python:
            return self._reader.read(take_rows(self._source, numbers, as_slice(numbers)), numbers)
        try:
            items = self._get(numbers.tolist())
        except Exception:  # one of them, then: each by itself
            return self._read_singly(numbers.tolist())
        return self._reader.read(items, numbers)

    def _get(self, numbers: list[int]) -> list[Any]:
        source = self._source
        if hasattr(source, "__getitems__"):  # what PyTorch calls for a batch
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
            except Exception as error:  # whatever the user's code raises
                reason = f"the source raised {type(error).__name__}: {error}"
                rejects.append(Reject(number, None, "", reason))
        return self._reader.read(items, np.array(kept, np.int64), rejects)
