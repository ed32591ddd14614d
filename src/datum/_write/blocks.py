"""Blocks of records, read from a part and encoded as framed bytes; bad records set aside."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._write.encoders import FeatureEncoder, apply_encoders
from datum._write.images import DetectionKeys, ImageFacts, find_images, prepare_images
from datum._write.serialized import CopiedRecords, copy_stored, rows_of
from datum.errors import Option, SchemaError, SourceError, Text, suggest
from datum.format import (
    Collected,
    EncodedBlock,
    ExactRecords,
    Framed,
    Records,
    RowEncoder,
    Statistics,
    reencode,
    stores_alike,
)
from datum.schema import (
    ROUND,
    Feature,
    FloatFacts,
    FloatRule,
    Schema,
    SchemaGuess,
    plain_row,
    widened,
)
from datum.schema.feature import read_named_floats
from datum.sources import Block, IndexedPart, Reject, StreamedPart
from datum.sources.arrow_files import cast_decimal
from datum.sources.protocol import Part, SerializedRecords, part_info, take_rows

if TYPE_CHECKING:
    from datum.images import ImageOptions

__all__ = [
    "BLOCK_BYTES",
    "BLOCK_RECORDS",
    "BlockSettings",
    "BlockWriter",
    "CollectedBlock",
    "DirectSplit",
    "OnError",
    "PartWriter",
    "WrittenBlock",
    "block_bounds",
    "block_ranges",
    "blocks_of",
    "first_error",
    "join_framed",
]


OnError = Literal["raise", "skip", "quarantine"]
_PROBED_RECORDS = 50  # examined after a bad record, to see whether most are bad
_HINT = Text(Option("on_error", "quarantine"), " sets such records aside and continues")


@dataclass(frozen=True)
class BlockSettings:
    """Settings of an encoding, the same for every block."""

    schema: Schema | None  # None if it is inferred
    features: Mapping[str, Feature]  # given features, where the schema is inferred
    images: ImageOptions
    encoders: Mapping[str, FeatureEncoder]
    on_error: OnError
    is_counted: bool = False  # whether statistics are already known
    rule: FloatRule = ROUND  # how floats are stored, where the schema is inferred
    watched: frozenset[str] = frozenset()  # features stored as float32 while their values fit
    keeps_exact: bool = False  # whether `WrittenBlock.exact` is needed
    known_images: frozenset[str] = frozenset()  # image features of the dataset appended to
    complete: DetectionKeys | None = None  # adds the features of the TF Object Detection API


@dataclass(frozen=True)
class WrittenBlock:
    """The framed records of a block, with their schema, statistics and rejects."""

    framed: Framed
    schema: Schema
    guess: SchemaGuess | None
    statistics: Statistics
    images: Mapping[str, ImageFacts]
    numbers: NDArray[np.int64]
    keys: Any
    rejects: list[Reject] = field(default_factory=list)
    floats: Mapping[str, FloatFacts] = field(default_factory=dict)
    exact: ExactRecords | None = None


@dataclass(frozen=True)
class CollectedBlock:
    """Values of a block, collected from Python objects; any thread can encode them."""

    pieces: Sequence[Collected | CopiedRecords]
    block: Block  # without its data
    images: Mapping[str, ImageFacts]
    schema: Schema
    guess: SchemaGuess | None

    def finish(self) -> WrittenBlock:
        """Encode the records, without holding Python's lock."""
        encoded = [piece.encode() for piece in self.pieces]
        statistics = Statistics()
        floats: dict[str, FloatFacts] = {}
        first = 0
        for piece in encoded:
            statistics = statistics.merge(piece.statistics)
            for name, facts in piece.floats.items():
                known = floats.get(name, FloatFacts())
                floats[name] = known.merge(facts.at(self.block.numbers[first:]))
            first += len(piece.framed)
        is_copied = len(encoded) == 1 and isinstance(self.pieces[0], CopiedRecords)
        schema = encoded[0].schema if is_copied else self.schema
        return WrittenBlock(
            join_framed([_widened(piece, schema) for piece in encoded]),
            schema,
            self.guess,
            statistics,
            self.images,
            self.block.numbers,
            self.block.keys,
            list(self.block.rejects),
            floats,
            _join_exact(encoded, schema),
        )


def _widened(piece: EncodedBlock, schema: Schema) -> Framed:
    """Return the records, re-encoded if the schema of the block is wider than theirs."""
    if piece.schema is schema or stores_alike(piece.schema, schema):
        return piece.framed
    return reencode(piece.framed.records(), piece.schema, schema, exact=_records(piece.exact))


def _records(exact: ExactRecords | None) -> tuple[Records, Schema] | None:
    return None if exact is None else (exact.framed.records(), exact.schema)


def _join_exact(pieces: list[EncodedBlock], schema: Schema) -> ExactRecords | None:
    """Unrounded values, in all pieces, of the features that were rounded in any."""
    if len(pieces) == 1:
        return pieces[0].exact
    names = {name for piece in pieces if piece.exact is not None for name in piece.exact.schema}
    wanted = Schema(
        {name: widened(schema[name]) for name in names if schema[name].dtype == "float32"}
    )
    if not wanted:
        return None
    parts = []
    for piece in pieces:
        records, known = piece.framed.records(), [name for name in wanted if name in piece.schema]
        exact = _records(piece.exact)
        parts.append(reencode(records, piece.schema.select(known), wanted, exact=exact))
    return ExactRecords(join_framed(parts), wanted)


class BlockWriter:
    """Encoder of successive blocks; without a schema, it infers one on the way."""

    def __init__(self, settings: BlockSettings, *, threads: int) -> None:
        self.settings = settings
        self._threads = threads
        self._encoder = self._make_encoder(None)
        self._features = settings.schema or settings.features
        # Given features are enforced as records arrive; the others are inferred.
        self._given: RowEncoder | None = None
        self._is_first = True
        if settings.schema is None and settings.features:
            self._given = RowEncoder(Schema(settings.features), threads=threads)
        given = {name for name, one in self._features.items() if one.encoding == "image"}
        self._images = given | settings.known_images

    def _make_encoder(self, guess: SchemaGuess | None) -> RowEncoder:
        return RowEncoder(
            self.settings.schema,
            guess=guess,
            rule=self.settings.rule,
            watched=self.settings.watched,
            keeps_exact=self.settings.keeps_exact,
            threads=self._threads,
        )

    @property
    def schema(self) -> Schema:
        """The given schema, or the one inferred so far."""
        return self._encoder.schema

    def learn(self, guess: SchemaGuess) -> None:
        """Widen the schema by the guess of another writer; raise SchemaError if they conflict."""
        if self._encoder.guess is not None:
            self._encoder = self._make_encoder(self._encoder.guess.merge(guess))

    def prepare(self, block: Block) -> tuple[Block, dict[str, ImageFacts]]:
        """Apply encoders and read images; blocks may be prepared in parallel."""
        if isinstance(block.data, SerializedRecords):
            if self._copies and self.settings.schema is not None:
                return copy_stored(
                    block,
                    self._make_encoder(None),
                    is_counted=self.settings.is_counted,
                    threads=self._threads,
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
        """Whether serialized records can be copied unchanged."""
        images = self.settings.images
        is_changed = self.settings.encoders or self.settings.complete
        return not (is_changed or images.changes_bytes or images.verify)

    def _prepare_images(self, block: Block, names: set[str]) -> tuple[Block, dict[str, ImageFacts]]:
        facts: dict[str, ImageFacts] = {}
        if names:
            features = {name: self._features.get(name) for name in sorted(names)}
            block, facts = prepare_images(block, features, self.settings.images)
        complete = self.settings.complete
        return (block if complete is None else complete(block)), facts

    def write(self, block: Block) -> WrittenBlock:
        """Encode the records of a block."""
        return self.collect(*self.prepare(block)).finish()

    def collect(self, block: Block, images: dict[str, ImageFacts]) -> CollectedBlock:
        """Collect the values of a prepared block; blocks must come in order."""
        if block.rejects and self.settings.on_error == "raise":
            self._raise_first(block)
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
                # Search the whole block once, not at each of many bad records.
                changed = None if refused else self._prepare_anew(block, images)
                if changed is not None:
                    return self.collect(*changed)
                if error.record is None:
                    raise
                at = first + error.record
                rejects.append(self._refuse(block, at, error))
                refused.append(at)
                if at > first:
                    pieces.append(self._collect(_take(block.data, first, at)))
                # Bad records often cluster: take small steps, then larger ones again.
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
            data = rows = [self._read_floats(row) for row in rows]
            self._given.collect([{name: row.get(name) for name in names} for row in rows])
        elif self._given is not None:
            self._given.collect({name: data[name] for name in names if name in data})
        return self._encoder.collect(data)

    def _read_floats(self, row: dict[str, Any]) -> dict[str, Any]:
        """Parse "NaN" and infinities, which JSON stores as text, where floats are given."""
        changed = {}
        for name, feature in self.settings.features.items():
            value = row.get(name) if "float" in feature.dtype else None
            if isinstance(value, (list, str)):
                changed[name] = read_named_floats(value)
        return {**row, **changed} if changed else row

    def _check_names(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Raise SchemaError for a given feature that none of the first records has."""
        is_first, self._is_first = self._is_first, False
        for name, feature in self.settings.features.items() if is_first else ():
            if not feature.optional and not any(name in row for row in rows):
                hint = suggest(name, {key for row in rows for key in row})
                raise SchemaError(f"schema: expected features of records, got {name!r}", hint=hint)

    def _prepare_anew(
        self, block: Block, images: dict[str, ImageFacts]
    ) -> tuple[Block, dict[str, ImageFacts]] | None:
        """Prepare images or decimals that appear after the first record; None without any."""
        late = self._find_late_images(block)
        if late:
            block, more = self._prepare_images(block, late)
            return block, {**images, **more}
        cast = _cast_decimals(block, self._features)
        return None if cast is None else (cast, images)

    def _find_late_images(self, block: Block) -> set[str]:
        """Names of features whose first image comes after the first record of a block."""
        if self.settings.schema is not None or not isinstance(block.data, list):
            return set()
        late = find_images(block.data) - self._images
        self._images |= late
        return late

    def _raise_first(self, block: Block) -> None:
        """Raise the error of the first record rejected by the source or here."""
        first = min(block.rejects, key=lambda reject: reject.record)
        before = np.flatnonzero(block.numbers < first.record)
        if len(before) and not isinstance(block.data, CopiedRecords):
            try:
                self._collect(_take_at(block.data, before))
            except SchemaError as error:
                if error.record is not None:
                    self._refuse(block, int(before[error.record]), error)
        raise first_error(first, rejected=len(block.rejects), kept=len(block))

    def _are_most_refused(self, block: Block, at: int) -> bool:
        """Return whether most of the following records would be rejected too."""
        probe = BlockWriter(self.settings, threads=1)
        probe._encoder = self._make_encoder(self._encoder.guess)
        following = range(at + 1, min(at + 1 + _PROBED_RECORDS, len(block)))
        refused = 0
        with contextlib.suppress(SchemaError):  # earlier records are good, if they come in order
            probe._collect(_take(block.data, 0, at))
        for one in following:
            try:
                probe._collect(_take(block.data, one, one + 1))
            except SchemaError:
                refused += 1
        return refused > len(following) / 2

    def _refuse(self, block: Block, at: int, error: SchemaError) -> Reject:
        reason = error.parts.beside(f"record {error.record}")
        key = None if block.keys is None else block.keys[at]
        where = "" if block.locate is None else block.locate(at)
        reject = Reject(int(block.numbers[at]), key, where, reason, error.hint)
        if self.settings.on_error == "raise":
            hint = error.hint or ("" if self._are_most_refused(block, at) else _HINT)
            raise SchemaError(
                reject.message, hint=hint, record=reject.record, feature=error.feature
            )
        return reject


def _cast_decimals(block: Block, features: Mapping[str, Feature]) -> Block | None:
    """Cast decimals to the types of their features; None if there are no decimals."""
    names = [
        name
        for name, one in features.items()
        if one.dtype == "str" or one.dtype.startswith(("float", "int", "uint"))
    ]
    data: Any = block.data
    if not isinstance(data, list):
        return None
    changed = False
    rows = []
    for row in data:
        given = [name for name in names if isinstance(row.get(name), Decimal)]
        changed |= bool(given)
        cast = {name: cast_decimal(row[name], features[name].dtype) for name in given}
        rows.append({**row, **cast} if cast else row)
    return replace(block, data=rows) if changed else None


def first_error(reject: Reject, *, rejected: int, kept: int) -> SourceError:
    """Return the error of a rejected record; it suggests quarantine unless most are rejected."""
    return SourceError(reject.message, hint=reject.hint or ("" if rejected > kept else _HINT))


def _take_at(data: Any, places: NDArray[np.intp]) -> Any:
    if isinstance(data, list):
        return [data[at] for at in places.tolist()]
    return {name: take_rows(column, places) for name, column in data.items()}


def _take(data: Any, first: int, last: int) -> Any:
    if isinstance(data, list):
        return data[first:last] if (first, last) != (0, len(data)) else data
    return {name: column[first:last] for name, column in data.items()}


def join_framed(parts: Sequence[Framed]) -> Framed:
    """Concatenate framed records."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.array([0, *(part.nbytes for part in parts)], np.int64)
    starts = np.cumsum(sizes)[:-1]
    offsets = [part.offsets + start for part, start in zip(parts, starts, strict=True)]
    return Framed(
        np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)]),
        np.concatenate([np.empty(0, np.int64), *offsets]),
    )


BLOCK_BYTES = 8 * 2**20  # that one worker encodes at once
BLOCK_RECORDS = 4096
SLOW_BLOCK_RECORDS = 256  # for parts whose reading holds Python's lock
# Users' datasets may hold open files whose position threads would share.
_ONE_READER = threading.Lock()
_SAMPLE_RECORDS = 32  # encoded to estimate the size of records
_FRAME_BYTES = 64  # approximate size of a record without its values
_IMAGES_AT_ONCE = 16  # per block, where every image is decoded


@dataclass(eq=False)
class PartWriter:
    """Reader and encoder of records by number; worker processes receive a copy."""

    part: IndexedPart
    settings: BlockSettings
    threads: int = 1

    def __call__(self, numbers: NDArray[np.int64]) -> WrittenBlock:
        """Read and encode the records of these numbers."""
        # A new writer each time: the bytes of a block must not depend on earlier blocks.
        writer = BlockWriter(self.settings, threads=self.threads)
        if not self.part.is_slow_python:
            return writer.write(self.part.read(numbers))
        with _ONE_READER:
            block = self.part.read(numbers)
        return writer.write(block)


class DirectSplit:
    """A split whose records are read in stored order."""

    def __init__(
        self, part: IndexedPart, order: NDArray[np.int64], settings: BlockSettings
    ) -> None:
        assert settings.schema is not None
        self.part = part
        self.schema = settings.schema
        self.records = len(order)
        self._order = order
        self._settings = settings
        self.write_piece = PartWriter(part, settings)
        self.nbytes = self._estimate_bytes()

    def _estimate_bytes(self) -> int:
        """Estimate the size of all records, from the data alone."""
        known = self.part.stored_bytes
        is_changed = self._settings.images.changes_bytes
        if known is not None and not is_changed:
            frame = 0 if part_info(self.part).is_serialized else _FRAME_BYTES
            return int(known * self.records / max(len(self.part), 1)) + frame * self.records
        if not self.records:
            return 0
        # Spread over the part, because neighbours are often alike.
        spread = np.linspace(0, self.records - 1, min(self.records, _SAMPLE_RECORDS))
        sample = np.sort(self._order)[spread.astype(np.int64)]
        made = PartWriter(self.part, self._settings)(sample)
        return int(made.framed.nbytes / max(len(made.framed), 1) * self.records)

    def pieces(self, first: int, last: int) -> list[NDArray[np.int64]]:
        """Divide the records from `first` to before `last` into blocks."""
        images = self._settings.images
        record_bytes = self.nbytes / max(self.records, 1)
        if images.changes_bytes or images.verify:
            record_bytes = max(record_bytes, BLOCK_BYTES / _IMAGES_AT_ONCE)
        elif self.part.is_slow_python:
            record_bytes = max(record_bytes, BLOCK_BYTES / SLOW_BLOCK_RECORDS)
        return [self._order[start:end] for start, end in block_bounds(first, last, record_bytes)]


def block_bounds(first: int, last: int, record_bytes: float) -> list[tuple[int, int]]:
    """Divide a range of records into blocks for one worker each."""
    step = int(np.clip(BLOCK_BYTES / max(record_bytes, 1.0), 1, BLOCK_RECORDS))
    return [(start, min(start + step, last)) for start in range(first, last, step)]


_SIZED_RECORDS = 8


def block_ranges(part: IndexedPart) -> Iterator[tuple[int, int]]:
    """Divide a part into blocks; blocks of slow parts are smaller."""
    most = SLOW_BLOCK_RECORDS if part.is_slow_python else BLOCK_RECORDS
    step = min(most, max(1, BLOCK_BYTES // max(_record_bytes(part), 1)))
    for first in range(0, len(part), step):
        yield first, min(first + step, len(part))


def _record_bytes(part: IndexedPart) -> int:
    """Estimate the size of a record from a few spread over the part."""
    sample = np.linspace(0, len(part) - 1, min(len(part), _SIZED_RECORDS)).astype(np.int64)
    rows = part.read(sample).data if len(sample) else []
    if isinstance(rows, SerializedRecords):
        return len(rows.frames) // max(len(rows), 1)
    return _core.size_of(rows) // max(len(rows), 1) if isinstance(rows, list) else 0


def blocks_of(part: Part) -> Iterator[Block]:
    """Read all records of a part in order."""
    if isinstance(part, IndexedPart):
        for first, last in block_ranges(part):
            yield part.read(np.arange(first, last))
    else:
        assert isinstance(part, StreamedPart)
        yield from part.blocks()
