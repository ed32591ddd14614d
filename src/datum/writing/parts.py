"""The parts that are to be written: which source each split comes from, under what schema."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from datum.errors import SourceError, SplitError
from datum.format.naming import check_split_name
from datum.schema import Feature, Schema, SchemaGuess
from datum.sources import Block, IndexedPart, Source, StreamedPart, as_source
from datum.sources.source import Part
from datum.writing.direct import BLOCK_RECORDS
from datum.writing.order import check_fractions

__all__ = ["Intake", "blocks_of", "collect_parts", "known_schema", "merge_schemas", "override"]


@dataclass(frozen=True)
class Intake:
    """What is to be written.

    Attributes:
        parts: where records come from, by name; of the split if there are no fractions.
        fractions: how the records of the only part are divided, if they are.
    """

    parts: Mapping[str, Part]
    fractions: Mapping[str, float] | None

    @property
    def splits(self) -> list[str]:
        """The names of the splits that come of it."""
        return list(self.parts if self.fractions is None else self.fractions)


def collect_parts(source: Any, splits: Mapping[str, Any] | None, problem: str | None) -> Intake:
    """Make out what the arguments of a write mean."""
    if splits is None and _is_dict_of_sources(source):
        source, splits = None, source
    if splits is None:
        return _checked(Intake(dict(as_source(source, problem).parts()), None))
    given: Any = splits
    if not isinstance(given, Mapping) or not given:
        raise SplitError(f"expected `splits` as a dict of fractions or sources, got {splits!r}")
    if all(isinstance(value, (int, float)) for value in splits.values()):
        parts = dict(as_source(source, problem).parts())
        if len(parts) != 1:
            raise SplitError(
                f"expected a source that has no splits to divide by {dict(splits)},"
                f" got one that has {', '.join(parts)}"
            )
        return _checked(Intake(parts, check_fractions(splits)))
    if source is not None:
        raise SplitError(
            "expected `source` to be None where `splits` gives a source for each split"
        )
    parts = {name: _only_part(name, given, problem) for name, given in splits.items()}
    return _checked(Intake(parts, None))


def _checked(intake: Intake) -> Intake:
    if not intake.parts:
        raise SourceError("expected records of at least one split, got none")
    for name in intake.splits:
        check_split_name(name)
    return intake


def _only_part(name: str, given: Any, problem: str | None) -> Part:
    parts = as_source(given, problem).parts()
    if len(parts) == 1:
        return next(iter(parts.values()))
    if name in parts:
        return parts[name]
    raise SplitError(
        f"split {name!r}: expected a source of one split, got {', '.join(parts) or 'none'}"
    )


def _is_dict_of_sources(source: Any) -> bool:
    """Whether these are sources by split, not columns by name."""
    return (
        isinstance(source, dict)
        and bool(source)
        and all(isinstance(name, str) and _is_source(value) for name, value in source.items())
    )


def _is_source(value: Any) -> bool:
    if isinstance(value, (Source, os.PathLike)) or callable(value):
        return True
    if isinstance(value, str):
        return os.path.exists(value)  # noqa: PTH110 - any text, also one that is no path
    if isinstance(value, Sequence):
        return bool(value) and isinstance(value[0], Mapping)
    is_table = hasattr(value, "columns") or hasattr(value, "column_names")
    return is_table or isinstance(value, Iterator)


def known_schema(intake: Intake, schema: Schema | None) -> Schema | None:
    """The schema of all parts, if it is known before they are read."""
    if schema is not None:
        return schema
    found = [part.schema for part in intake.parts.values()]
    schemas = [one for one in found if one is not None]
    if len(schemas) < len(found):
        return None
    merged = schemas[0]
    for other in schemas[1:]:
        merged = merge_schemas(merged, other)
    return merged


def merge_schemas(first: Schema, second: Schema) -> Schema:
    """A schema that holds what either holds."""
    merged = {}
    for name in dict.fromkeys([*first, *second]):
        ours, theirs = first.get(name), second.get(name)
        if ours is None or theirs is None:
            lone = theirs if ours is None else ours
            assert lone is not None
            merged[name] = replace(lone, optional=True)
        elif replace(ours, optional=True) == replace(theirs, optional=True):
            merged[name] = theirs if theirs.optional else ours
        else:
            # Of two records, so that an optional feature is known from one of them.
            guesses = (
                SchemaGuess.from_schema(Schema({name: one}), records=2) for one in (ours, theirs)
            )
            merged[name] = next(guesses).merge(next(guesses)).to_schema()[name]
    return Schema(merged)


def override(schema: Schema, features: Mapping[str, Feature]) -> Schema:
    """The schema with some features as they were given."""
    for name in features:
        if name not in schema:
            schema.select([name])  # raises, with the nearest name
    return Schema({name: features.get(name, feature) for name, feature in schema.items()})


def blocks_of(part: Part) -> Iterator[Block]:
    """All records of a part in order."""
    if isinstance(part, IndexedPart):
        for first in range(0, len(part), BLOCK_RECORDS):
            yield part.read(np.arange(first, min(first + BLOCK_RECORDS, len(part))))
    else:
        assert isinstance(part, StreamedPart)
        yield from part.blocks()
