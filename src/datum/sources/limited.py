"""The first records of each split of a source, and a complaint where there are fewer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.errors import SourceError, SplitError, suggest
from datum.schema import Schema
from datum.sources.source import Block, IndexedPart, Part, Source, Stored, StreamedPart
from datum.sources.take import take_rows

__all__ = ["limit_source"]


def limit_source(source: Source, counts: Mapping[str, int]) -> Source:
    """Stop each split after `counts[split]` records; one that is not named stays whole.

    Records that cannot be read count too. A split with fewer raises SourceError, one that the
    source does not have SplitError, both when the parts are asked for (or read, if only that tells
    how many there are).
    """
    for split, count in counts.items():
        given: Any = count
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise SplitError(
                f"expected a number of records, got {count!r}", where=f"split {split!r}"
            )
    return _LimitedSource(source, dict(counts))


@dataclass(frozen=True, slots=True)
class _LimitedSource:
    source: Source
    counts: Mapping[str, int]

    def parts(self) -> Mapping[str, Part]:
        """The parts of the source, shortened."""
        parts = dict(self.source.parts())
        for split, count in self.counts.items():
            if split not in parts:
                raise _unknown(split, parts)
            parts[split] = _limit_part(split, parts[split], count)
        return parts


def _unknown(split: str, parts: Mapping[str, Part]) -> SplitError:
    hint = suggest(split, parts, f"there are {', '.join(parts) or 'none'}")
    return SplitError(f"expected a split of the source, got {split!r}", hint=hint)


def _too_few(split: str, expected: int, got: int) -> SourceError:
    return SourceError(
        f"expected {expected:,} records, got {got:,}",
        where=f"split {split!r}",
        hint=f"ask for {got:,}, or leave the number out to take all there are",
    )


def _limit_part(split: str, part: Part, count: int) -> Part:
    if not isinstance(part, IndexedPart):
        return _LimitedStream(split, part, count)
    if len(part) < count:
        raise _too_few(split, count, len(part))
    return _LimitedIndex(part, count)


class _Shortened:
    """What a shortened part has of the whole one."""

    def __init__(self, part: Part, count: int) -> None:
        self.part: Any = part
        self.count = count
        self.schema: Schema | None = part.schema
        self.metadata: Mapping[str, Mapping[str, Any]] = part.metadata
        whole = part.fingerprint
        self.fingerprint = None if whole is None else f"{whole}, the first {count}"


class _LimitedIndex(_Shortened):
    """The first records of a part that can be read in any order."""

    def __init__(self, part: IndexedPart, count: int) -> None:
        super().__init__(part, count)
        self.keys: Sequence[str] | None = None if part.keys is None else part.keys[:count]
        nbytes = part.stored_bytes
        self.stored_bytes = None if nbytes is None else nbytes * count // max(len(part), 1)
        self.is_slow_python = part.is_slow_python

    def __len__(self) -> int:
        return self.count

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """The records of these numbers."""
        block: Block = self.part.read(numbers)
        return block


class _LimitedStream(_Shortened):
    """The first records of a part that gives one after the other."""

    def __init__(self, split: str, part: StreamedPart, count: int) -> None:
        super().__init__(part, count)
        self.split = split
        self.is_repeatable = bool(getattr(part, "is_repeatable", True))

    def blocks(self) -> Iterator[Block]:
        """Blocks as they come, the last one cut; raises SourceError if they end too soon."""
        seen = 0
        for block in self.part.blocks() if self.count else ():
            cut = _cut(block, self.count)
            seen += len(cut) + len(cut.rejects)
            yield cut
            if seen >= self.count:
                return
        if seen < self.count:
            raise _too_few(self.split, self.count, seen)


def _cut(block: Block, count: int) -> Block:
    """The records of a block whose numbers are below `count`; numbers rise."""
    left = int(np.searchsorted(block.numbers, count))
    rejects = [reject for reject in block.rejects if reject.record < count]
    if left == len(block):
        return replace(block, rejects=rejects)
    data: Any = block.data
    if isinstance(data, list):
        data = data[:left]
    elif isinstance(data, Stored):
        data = data.take(np.arange(left))
    else:
        first = np.arange(left)
        data = {name: take_rows(column, first, slice(left)) for name, column in data.items()}
    keys = None if block.keys is None else block.keys[:left]
    return Block(data, block.numbers[:left], keys, rejects, block.locate)
