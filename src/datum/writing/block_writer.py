"""Blocks of a source made into framed records; what cannot be written is put aside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum.errors import SchemaError, SourceError
from datum.format import EncodedBlock, Framed, RowEncoder, Statistics
from datum.schema import Feature, Schema, SchemaGuess
from datum.sources import Block, Reject
from datum.writing.encoders import FeatureEncoder, apply_encoders
from datum.writing.pictures import ImageFacts, find_images, prepare_images

if TYPE_CHECKING:
    from datum.images import ImageOptions

__all__ = ["BlockSettings", "BlockWriter", "OnError", "WrittenBlock", "join_framed"]

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


class BlockWriter:
    """Writes block after block; without a schema it learns one on the way."""

    def __init__(self, settings: BlockSettings, *, threads: int) -> None:
        self.settings = settings
        self._encoder = RowEncoder(settings.schema, threads=threads)
        self._features = settings.schema or settings.features
        self._images = {name for name, one in self._features.items() if one.encoding == "image"}

    def prepare(self, block: Block) -> tuple[Block, dict[str, ImageFacts]]:
        """Do what comes before encoding; several blocks can be prepared at the same time."""
        if self.settings.encoders:
            block = apply_encoders(block, self.settings.encoders)
        if self.settings.schema is None and isinstance(block.data, list):
            self._images |= find_images(block.data[:1])
        return self._prepare_images(block, self._images)

    def _prepare_images(self, block: Block, names: set[str]) -> tuple[Block, dict[str, ImageFacts]]:
        if not names:
            return block, {}
        features = {name: self._features.get(name) for name in sorted(names)}
        return prepare_images(block, features, self.settings.images)

    def write(self, block: Block) -> WrittenBlock:
        """Make the records of a block."""
        return self.encode(*self.prepare(block))

    def encode(self, block: Block, images: dict[str, ImageFacts]) -> WrittenBlock:
        """Make the records of a block that is prepared."""
        self._check(block.rejects)
        pieces: list[EncodedBlock] = []
        rejects = list(block.rejects)
        refused: list[int] = []
        first = 0
        while first < len(block) or not pieces:
            try:
                pieces.append(self._encoder.encode(_take(block.data, first, len(block))))
                break
            except SchemaError as error:
                late = self._find_late_images(block)
                if late:
                    block, more = self._prepare_images(block, late)
                    return self.encode(block, {**images, **more})
                if error.record is None:
                    raise
                at = first + error.record
                rejects.append(self._refuse(block, at, error))
                refused.append(at)
                if at > first:
                    pieces.append(self._encoder.encode(_take(block.data, first, at)))
                first = at + 1
        kept = np.delete(np.arange(len(block)), refused)
        keys = None if block.keys is None else [block.keys[at] for at in kept.tolist()]
        return WrittenBlock(
            join_framed([piece.framed for piece in pieces]),
            self._encoder.schema,
            self._encoder.guess,
            _merge_statistics([piece.statistics for piece in pieces]),
            images,
            block.numbers[kept],
            block.keys if len(kept) == len(block) else keys,
            rejects,
        )

    def _find_late_images(self, block: Block) -> set[str]:
        """Names whose first images come after the first record of a block."""
        if self.settings.schema is not None or not isinstance(block.data, list):
            return set()
        late = find_images(block.data) - self._images
        self._images |= late
        return late

    def _check(self, rejects: Sequence[Reject]) -> None:
        if rejects and self.settings.on_error == "raise":
            raise SourceError(f"{rejects[0]}\n{_HINT}")

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


def _merge_statistics(parts: list[Statistics]) -> Statistics:
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    return merged


def join_framed(parts: list[Framed]) -> Framed:
    """The records of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.array([part.nbytes for part in parts], np.int64)
    starts = np.cumsum(sizes) - sizes
    offsets = [part.offsets + start for part, start in zip(parts, starts, strict=True)]
    return Framed(np.concatenate([part.data for part in parts]), np.concatenate(offsets))
