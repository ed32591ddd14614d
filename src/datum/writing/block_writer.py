"""Blocks of a source made into framed records; what cannot be written is put aside."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum.errors import SchemaError, SourceError
from datum.format import (
    Collected,
    EncodedBlock,
    Framed,
    RowEncoder,
    Statistics,
    reencode,
    stores_alike,
)
from datum.schema import Feature, Schema, SchemaGuess, plain_row
from datum.sources import Block, Reject
from datum.sources.source import Stored
from datum.writing.encoders import FeatureEncoder, apply_encoders
from datum.writing.pictures import ImageFacts, find_images, prepare_images
from datum.writing.stored import CopiedRecords, copy_stored, rows_of

if TYPE_CHECKING:
    from datum.images import ImageOptions

__all__ = ["BlockSettings", "BlockWriter", "CollectedBlock", "OnError", "WrittenBlock"]

OnError = Literal["raise", "skip", "quarantine"]
_HINT = "hint: on_error='quarantine' puts such records aside and goes on"


@dataclass(frozen=True)
class BlockSettings:
    """How records are made; the same for every block."""

    schema: Schema | None  # None if it is to be found out
    features: Mapping[str, Feature]  # that are given, where the schema is not
    images: ImageOptions
    encoders: Mapping[str, FeatureEncoder]
    on_error: OnError
    is_counted: bool = False  # whether the statistics of stored records are known already


@dataclass(frozen=True)
class WrittenBlock:
    """The records of a block, framed, and what was found out about them."""

    framed: Framed
    schema: Schema
    guess: SchemaGuess | None
    statistics: Statistics
    images: Mapping[str, ImageFacts]
    numbers: NDArray[np.int64]
    keys: Any
    rejects: list[Reject] = field(default_factory=list)


@dataclass(frozen=True)
class CollectedBlock:
    """The values of a block, which any thread can make records of."""

    pieces: Sequence[Collected | CopiedRecords]
    block: Block  # without its data
    images: Mapping[str, ImageFacts]
    schema: Schema
    guess: SchemaGuess | None

    def finish(self) -> WrittenBlock:
        """Make the records; the interpreter is free meanwhile."""
        encoded = [piece.encode() for piece in self.pieces]
        statistics = Statistics()
        for piece in encoded:
            statistics = statistics.merge(piece.statistics)
        return WrittenBlock(
            _join([self._widened(piece) for piece in encoded]),
            self.schema,
            self.guess,
            statistics,
            self.images,
            self.block.numbers,
            self.block.keys,
            list(self.block.rejects),
        )

    def _widened(self, piece: EncodedBlock) -> Framed:
        """The records as the schema of the whole block has them."""
        if stores_alike(piece.schema, self.schema):
            return piece.framed
        return reencode(piece.framed.records(), piece.schema, self.schema)


class BlockWriter:
    """Writes block after block; without a schema it learns one on the way."""

    def __init__(self, settings: BlockSettings, *, threads: int) -> None:
        self.settings = settings
        self._threads = threads
        self._encoder = RowEncoder(settings.schema, threads=threads)
        self._features = settings.schema or settings.features
        # Features that are given are enforced as records come, though others are found out.
        self._given: RowEncoder | None = None
        self._is_first = True
        if settings.schema is None and settings.features:
            self._given = RowEncoder(Schema(settings.features), threads=threads)
        self._images = {name for name, one in self._features.items() if one.encoding == "image"}

    @property
    def schema(self) -> Schema:
        """The schema given, or that of all records so far."""
        return self._encoder.schema

    def learn(self, guess: SchemaGuess) -> None:
        """Widen the schema by what another writer has found; SchemaError if they disagree."""
        if self._encoder.guess is not None:
            merged = self._encoder.guess.merge(guess)
            self._encoder = RowEncoder(guess=merged, threads=self._threads)

    def prepare(self, block: Block) -> tuple[Block, dict[str, ImageFacts]]:
        """Do what comes before encoding; several blocks can be prepared at the same time."""
        if isinstance(block.data, Stored):
            if self._copies and self.settings.schema is not None:
                is_counted, threads = self.settings.is_counted, self._threads
                return copy_stored(
                    block, self.settings.schema, is_counted=is_counted, threads=threads
                )
            known = block.data.schema
            self._images |= {name for name, one in known.items() if one.encoding == "image"}
            block = replace(block, data=rows_of(block.data))
        if self.settings.encoders:
            block = apply_encoders(block, self.settings.encoders)
        if self.settings.schema is None and isinstance(block.data, list):
            self._images |= find_images(block.data[:1])
        return self._prepare_images(block, self._images)

    @property
    def _copies(self) -> bool:
        """Whether records that are serialized already can be taken as they are."""
        images = self.settings.images
        return not (self.settings.encoders or images.changes_bytes or images.verify)

    def _prepare_images(self, block: Block, names: set[str]) -> tuple[Block, dict[str, ImageFacts]]:
        if not names:
            return block, {}
        features = {name: self._features.get(name) for name in sorted(names)}
        return prepare_images(block, features, self.settings.images)

    def write(self, block: Block) -> WrittenBlock:
        """Make the records of a block."""
        return self.collect(*self.prepare(block)).finish()

    def collect(self, block: Block, images: dict[str, ImageFacts]) -> CollectedBlock:
        """Take the values out of a block that is prepared; blocks must come in order."""
        self._check(block.rejects)
        if isinstance(block.data, CopiedRecords):
            kept_block = replace(block, data=[])
            return CollectedBlock([block.data], kept_block, images, self.schema, None)
        pieces: list[Collected] = []
        rejects = list(block.rejects)
        refused: list[int] = []
        first, size = 0, len(block)
        while first < len(block):
            last = min(first + size, len(block))
            try:
                pieces.append(self._collect(_take(block.data, first, last)))
                first, size = last, 2 * size
            except SchemaError as error:
                late = self._find_late_images(block)
                if late:
                    block, more = self._prepare_images(block, late)
                    return self.collect(block, {**images, **more})
                if error.record is None:
                    raise
                at = first + error.record
                rejects.append(self._refuse(block, at, error))
                refused.append(at)
                if at > first:
                    pieces.append(self._collect(_take(block.data, first, at)))
                # Where one is bad there may be more: the next steps are small, then grow again.
                first, size = at + 1, 1
        kept = np.delete(np.arange(len(block)), refused)
        keys = block.keys
        if keys is not None and refused:
            keys = [keys[at] for at in kept.tolist()]
        kept_block = Block((), block.numbers[kept], keys, rejects)  # type: ignore[arg-type]
        return CollectedBlock(pieces, kept_block, images, self.schema, self._encoder.guess)

    def _collect(self, data: Any) -> Collected:
        names = self.settings.features
        if self._given is not None and isinstance(data, list):
            rows = [row if type(row) is dict else plain_row(row) for row in data]
            self._check_names(rows)
            self._given.collect([{name: row.get(name) for name in names} for row in rows])
        elif self._given is not None:
            self._given.collect({name: data[name] for name in names if name in data})
        return self._encoder.collect(data)

    def _check_names(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Refuse a feature that was given and that none of the first records has."""
        is_first, self._is_first = self._is_first, False
        for name, feature in self.settings.features.items() if is_first else ():
            if not feature.optional and not any(name in row for row in rows):
                near = difflib.get_close_matches(name, {key for row in rows for key in row}, 1)
                hint = f"\nhint: did you mean {near[0]!r}?" if near else ""
                raise SchemaError(f"schema: expected features of records, got {name!r}{hint}")

    def _find_late_images(self, block: Block) -> set[str]:
        """Names whose first images come after the first record of a block."""
        if self.settings.schema is not None or not isinstance(block.data, list):
            return set()
        late = find_images(block.data) - self._images
        self._images |= late
        return late

    def _check(self, rejects: Sequence[Reject]) -> None:
        if rejects and self.settings.on_error == "raise":
            hint = "" if "hint:" in rejects[0].reason else f"\n{_HINT}"
            raise SourceError(f"{rejects[0]}{hint}")

    def _refuse(self, block: Block, at: int, error: SchemaError) -> Reject:
        message = str(error)
        reason = re.sub(r"^record \d+(, |: )", "", message)
        key = None if block.keys is None else block.keys[at]
        reject = Reject(int(block.numbers[at]), key, "", reason)
        if self.settings.on_error == "raise":
            hint = "" if "hint:" in message else f"\n{_HINT}"
            raise SchemaError(f"{reject}{hint}", record=reject.record, feature=error.feature)
        return reject


def _take(data: Any, first: int, last: int) -> Any:
    if isinstance(data, list):
        return data[first:last] if (first, last) != (0, len(data)) else data
    return {name: column[first:last] for name, column in data.items()}


def _join(parts: list[Framed]) -> Framed:
    """The records of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.array([0, *(part.nbytes for part in parts)], np.int64)
    starts = np.cumsum(sizes)[:-1]
    offsets = [part.offsets + start for part, start in zip(parts, starts, strict=True)]
    return Framed(
        np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *offsets]),
    )
