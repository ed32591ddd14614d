"""What `datum write` reads: paths, a source for each split, tables of a TOML file, stdin."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import IO, Any

from datum import SourceError, sources
from datum.errors import Message, suggest

__all__ = ["HEAD_RECORDS", "STDIN", "LinesOfStdin", "source_of"]

STDIN = "-"
HEAD_RECORDS = 1001  # one more than a plan looks at, so that it knows whether there are more


def source_of(found: Any, *, where: str) -> Any:
    """What a table of a TOML file names: a path, or a class of `datum.sources` and its options."""
    if isinstance(found, str):
        return found
    kinds = [name for name in sources.__all__ if name[0].isupper() and _is_public(name)]
    if not isinstance(found, Mapping) or not isinstance(found.get("class"), str):
        raise ValueError(
            Message(
                f"{where}: expected a path, or a table with a `class` of datum.sources, got"
                f" {found!r}",
                hint=f"there are {', '.join(kinds)}",
            )
        )
    kind = found["class"]
    if kind not in kinds:
        hint = suggest(kind, kinds, f"there are {', '.join(kinds)}", shown=str, cutoff=0.5)
        raise ValueError(
            Message(f"{where}: expected a class of datum.sources, got {kind!r}", hint=hint)
        )
    options = {name: value for name, value in found.items() if name != "class"}
    try:
        return getattr(sources, kind)(**options)
    except TypeError as error:
        raise ValueError(f"{where}: {kind}: expected its options, got: {error}") from None


def _is_public(name: str) -> bool:
    return hasattr(getattr(sources, name), "parts") and name != "Source"


class LinesOfStdin:
    """The JSON lines of stdin, as one split: a source that can be read once.

    Attributes:
        is_table: whether its columns of text may name images.
        head: the first records, to plan by; lines that hold none are left to the write.
    """

    is_table = True

    def __init__(self, stream: IO[bytes] | None = None) -> None:
        lines = enumerate(sys.stdin.buffer if stream is None else stream, 1)
        first = list(islice(lines, HEAD_RECORDS))
        self._lines = chain(first, lines)
        found = [_read(text) for _, text in first if not text.isspace()]
        self.head = [row for row in found if isinstance(row, dict)]
        if not self.head:
            raise SourceError(
                f"stdin: {found[0] if found else 'expected JSON lines, got none'}",
                hint='an object on each line: {"text": "hello", "label": 3}',
            )

    def parts(self) -> dict[str, Any]:
        """The one split."""
        return {"train": _LinesPart(self._lines)}


class _LinesPart:
    """A `StreamedPart` of numbered lines."""

    is_repeatable = False

    def __init__(self, lines: Iterator[tuple[int, bytes]]) -> None:
        self.schema = None
        self.metadata: Mapping[str, Mapping[str, Any]] = {}
        self.fingerprint = None
        self._lines = ((line, text) for line, text in lines if not text.isspace())
        self._blocks = sources.RowBlocks(has_keys=False)

    @property
    def nested(self) -> tuple[str, ...]:
        """The features made of lists of objects, in the lines that were read."""
        return tuple(self._blocks.nested.names)

    def blocks(self) -> Iterator[sources.Block]:
        """The records of all lines; those that hold none are rejected."""
        blocks = self._blocks
        for line, text in self._lines:
            row = _read(text)
            if isinstance(row, dict):
                blocks.add(row, place=("stdin", line))
            else:
                blocks.reject(f"stdin, line {line}", row)
            if blocks.is_full:
                yield blocks.take()
        if len(blocks):
            yield blocks.take()


def _read(text: bytes) -> dict[str, Any] | str:
    """The object on a line, or what is wrong with it."""
    try:
        found = json.loads(text, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        return f"expected UTF-8, got {error}"
    except (ValueError, RecursionError) as error:
        return f"expected JSON, got {error}"
    return found if isinstance(found, dict) else f"expected an object, got {text[:60]!r}"


def _refuse(name: str) -> Any:
    raise ValueError(f"{name}, which is none")
