"""Schema discovery from serialized records: kind, lengths and presence of every feature."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from datum import _core
from datum.errors import CorruptRecordError, Damage, Message, Option, SchemaError, Text
from datum.format.file import Payloads, RecordFile, as_records
from datum.format.framing import Records
from datum.format.index import FRAME_BYTES
from datum.schema import Feature, Schema

__all__ = ["DiscoveredFeature", "Discovery", "discover"]

KindName = Literal["bytes", "float", "int64"]
_KINDS: tuple[KindName, ...] = ("bytes", "float", "int64")
_DTYPES = {"bytes": "bytes", "float": "float32", "int64": "int64"}

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class DiscoveredFeature:
    """The values found under one key.

    Attributes:
        kinds: The kinds it had, usually one; none if no record set any.
        present: The number of records that set a kind; for sequences, even without steps.
        records: The number of records read.
        lengths: The least and largest number of values in a record, or in a step of a sequence.
        steps: The least and largest number of steps in a record; None unless it is a sequence.
        sizes: The least and largest size of a byte string; None for numbers.
        has_unset_steps: Whether a step of a sequence had no kind.
        is_text: Whether every byte string is UTF-8.
    """

    kinds: tuple[KindName, ...]
    present: int
    records: int
    lengths: Range | None
    steps: Range | None
    sizes: Range | None
    has_unset_steps: bool
    is_text: bool

    @property
    def is_sequence(self) -> bool:
        """Whether it is in the feature lists of a SequenceExample."""
        return self.steps is not None

    def merge(self, other: DiscoveredFeature) -> DiscoveredFeature:
        """Return the merged findings for this key, with those of other records."""
        found = self.kinds + other.kinds
        texts = [part.is_text for part in (self, other) if part.sizes is not None]
        return DiscoveredFeature(
            kinds=tuple(kind for kind in _KINDS if kind in found),
            present=self.present + other.present,
            records=self.records + other.records,
            lengths=_widest(self.lengths, other.lengths),
            steps=_widest(self.steps, other.steps),
            sizes=_widest(self.sizes, other.sizes),
            has_unset_steps=self.has_unset_steps or other.has_unset_steps,
            is_text=bool(texts) and all(texts),
        )


def _widest(first: Range | None, second: Range | None) -> Range | None:
    if first is None or second is None:
        return second if first is None else first
    return min(first[0], second[0]), max(first[1], second[1])


_UNSEEN = DiscoveredFeature((), 0, 0, None, None, None, False, False)


@dataclass(frozen=True, slots=True)
class Discovery:
    """The features found in records; context and sequence features are kept apart.

    Attributes:
        records: The number of records read.
        context: Features of Examples, or of the context of SequenceExamples.
        sequences: Feature lists of SequenceExamples.
    """

    records: int
    context: dict[str, DiscoveredFeature]
    sequences: dict[str, DiscoveredFeature]

    @property
    def features(self) -> dict[str, DiscoveredFeature]:
        """All features by name; the sequence, if it ever had a kind, wins over the context."""
        shown = {n: f for n, f in self.sequences.items() if f.kinds or n not in self.context}
        return {**self.context, **shown}

    def merge(self, other: Discovery) -> Discovery:
        """Return the merged findings, as if these and the other records were in one file."""
        return Discovery(
            self.records + other.records,
            _merge_features(self.context, other.context, (self.records, other.records)),
            _merge_features(self.sequences, other.sequences, (self.records, other.records)),
        )

    def schema(self, *, text: bool = False) -> Schema:
        """Return a schema that reads all these records; with `text`, UTF-8 is read as `str`.

        Keys that never had a kind are left out: nothing can be read from them.
        """
        return Schema(
            {
                name: _to_feature(name, found, text)
                for name, found in self.features.items()
                if found.kinds
            }
        )


def _merge_features(
    first: dict[str, DiscoveredFeature],
    second: dict[str, DiscoveredFeature],
    records: tuple[int, int],
) -> dict[str, DiscoveredFeature]:
    """Return the features of both, sorted by name as in each."""
    merged = {}
    for name in sorted({*first, *second}):
        found = [
            part[name] if name in part else replace(_UNSEEN, records=count)
            for part, count in zip((first, second), records, strict=True)
        ]
        merged[name] = found[0].merge(found[1])
    return merged


def discover(
    source: Payloads,
    *,
    limit: int | None = None,
    malformed: list[Damage] | None = None,
) -> Discovery:
    """Find the features of records (of a file, or in memory), of at most `limit` of them.

    Raises CorruptRecordError or SchemaError if they are not Examples or SequenceExamples. With a
    list for the `malformed` ones, records of other content are added to it instead and skipped.

    >>> from datum.format import encode
    >>> found = discover(encode([{"x": [1, 2]}, {"x": [3, 4]}]))
    >>> found.schema()
    Schema({
        'x': Feature('int64', (2,)),
    })
    """
    if limit is not None and limit < 1:
        raise ValueError(Message(f"expected `limit` of 1 or more, got {limit}"))
    if isinstance(source, (str, os.PathLike)):
        source = RecordFile(source)
    chunks: Iterable[Records] = (
        source.chunks() if isinstance(source, RecordFile) else [as_records(source)]
    )
    native = _core.Discovery()
    for chunk in chunks:
        looked_at = native.records + len(malformed or ())
        room = len(chunk) if limit is None else min(len(chunk), limit - looked_at)
        for row in _add_records(native, chunk, room):
            if malformed is None:
                raise _not_an_example(chunk, row)
            malformed.append(_as_damage(chunk, row))
        if limit is not None and native.records + len(malformed or ()) >= limit:
            break
    found = Discovery(
        native.records,
        {name: _to_found(native.records, *stats) for name, stats in native.context.items()},
        {name: _to_found(native.records, *stats) for name, stats in native.lists.items()},
    )
    has_kinds = any(feature.kinds for feature in found.features.values())
    if not has_kinds and (native.with_unknown_fields or not all(map(_is_a_name, found.features))):
        raise SchemaError(
            "expected tf.train.Example or SequenceExample records,"
            f" got {native.records} record(s) of another message"
        )
    return found


def _is_a_name(key: str) -> bool:
    """Return whether a key may be a name: keys misread from other messages are control codes."""
    return all(character >= " " for character in key)


def _add_records(native: _core.Discovery, chunk: Records, room: int) -> Iterator[int]:
    """Read the first records of a run; yield the rows of malformed ones."""
    start = 0
    while start < room:
        starts = np.ascontiguousarray(chunk.starts[start:room])
        lengths = np.ascontiguousarray(chunk.lengths[start:room])
        start += native.add(chunk.buffer, starts, lengths)
        if start < room:
            yield start
        start += 1


def _not_an_example(chunk: Records, row: int) -> CorruptRecordError:
    file, number, offset = chunk.locate(row)
    at = "" if offset is None else f" at byte {offset}"
    return CorruptRecordError(
        f"record {number}{at}: expected a tf.train.Example or SequenceExample, got other bytes",
        where=file,
    )


def _as_damage(chunk: Records, row: int) -> Damage:
    file, number, offset = chunk.locate(row)
    start = offset or 0
    return Damage(file, start, start + int(chunk.lengths[row]) + FRAME_BYTES, number, "malformed")


def _to_found(
    records: int,
    present: int,
    kinds: tuple[int, int, int, int],
    lengths: Range | None,
    steps: Range | None,
    sizes: Range | None,
    not_utf8: int,
) -> DiscoveredFeature:
    unset, *counts = kinds
    return DiscoveredFeature(
        kinds=tuple(itertools.compress(_KINDS, counts)),
        present=present - unset if steps is None else present,
        records=records,
        lengths=lengths,
        steps=steps,
        sizes=sizes,
        has_unset_steps=steps is not None and unset > 0,
        is_text=sizes is not None and not not_utf8,
    )


def _to_feature(name: str, found: DiscoveredFeature, text: bool) -> Feature:
    if len(found.kinds) != 1:
        raise SchemaError(
            f"expected one kind in all records, got {' and '.join(found.kinds)}",
            where=f"feature {name!r}",
            hint=Text("give its type in ", Option("schema")),
        )
    dtype = _DTYPES[found.kinds[0]]
    if text and found.is_text:
        dtype = "str"
    least, most = found.lengths or (0, 0)
    is_even = least == most > 0 and not found.has_unset_steps
    shape: tuple[int | None, ...] = (most,) if is_even else (None,)
    if found.is_sequence:
        inner = () if shape == (1,) else shape
        return Feature(dtype, (None, *inner), sequence=True, optional=found.present < found.records)
    return Feature(dtype, () if shape == (1,) else shape, optional=found.present < found.records)
