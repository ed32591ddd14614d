"""Serialized records, copied unchanged where they fit the schema."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from datum import _core
from datum._write.images import ImageFacts
from datum.columns import BytesColumn, Masked
from datum.errors import DatumError, Message, SchemaError, SourceError
from datum.format import (
    Discovery,
    EncodedBlock,
    Framed,
    Parser,
    Records,
    RowEncoder,
    Statistics,
    discover,
    parse,
    stores_alike,
)
from datum.format.discover import DiscoveredFeature
from datum.format.encode import collect, fit_columns
from datum.format.parse import place_of
from datum.format.statistics import summarize
from datum.schema import Feature, ImageBytes, Schema
from datum.sources.image_files import IMAGE
from datum.sources.protocol import (
    Block,
    Columns,
    IndexedPart,
    Part,
    PartInfo,
    Reject,
    Rows,
    SerializedRecords,
    Source,
    part_info,
)

__all__ = [
    "CopiedRecords",
    "columns_of",
    "copy_stored",
    "rows_of",
    "serialized_source",
]


@dataclass(frozen=True, slots=True)
class CopiedRecords:
    """Records of a block that need no encoding."""

    encoded: EncodedBlock

    def encode(self) -> EncodedBlock:
        """Return the records made when the block was prepared."""
        return self.encoded


def copy_stored(
    block: Block, encoder: RowEncoder, *, is_counted: bool, threads: int
) -> tuple[Block, dict[str, ImageFacts]]:
    """Copy the serialized records of a block under the schema of `encoder`.

    Bytes stay the same unless the schema stores features differently or drops some. Records that
    do not match their own schema are rejected. With `is_counted`, statistics are already known,
    and only images are parsed.
    """
    stored, schema = _stored(block), encoder.schema
    strays = [name for name in stored.schema if name not in schema]
    if strays:
        expected = ", ".join(schema)
        raise SchemaError(
            f"not in the schema, which has {expected}",
            where=f"feature {strays[0]!r}",
            feature=strays[0],
        )
    images = [name for name, feature in stored.schema.items() if feature.encoding == "image"]
    block, columns = _parse_sound(block, images if is_counted else list(stored.schema), threads)
    stored = _stored(block)
    facts = _find_facts({name: columns[name] for name in images})
    if is_counted:
        framed = Framed(stored.frames, stored.offsets)
        known: Any = CopiedRecords(EncodedBlock(framed, schema, Statistics(len(framed))))
        return replace(block, data=known), facts
    copied: Any = CopiedRecords(_encode(stored, columns, encoder, threads))
    return replace(block, data=copied), facts


def columns_of(data: Rows | Columns | SerializedRecords, *, names: list[str] | None = None) -> Any:
    """Parse serialized records into columns; return rows and columns unchanged."""
    if not isinstance(data, SerializedRecords):
        return data
    schema = data.schema if names is None else data.schema.select(names)
    return parse(_records(data), schema, threads=1)


def rows_of(data: SerializedRecords) -> Rows:
    """Parse serialized records into rows, with images marked as such."""
    columns = columns_of(data)
    images = {name for name, feature in data.schema.items() if feature.encoding == "image"}
    rows: Rows = []
    for at in range(len(data)):
        row = {name: column[at] for name, column in columns.items()}
        for name in images:
            found = row[name]
            if isinstance(found, BytesColumn):  # a list of images
                row[name] = [ImageBytes(one) for one in found]
            elif found is not None:
                row[name] = ImageBytes(found)
        rows.append(row)
    return rows


def _stored(block: Block) -> SerializedRecords:
    data: Any = block.data
    assert isinstance(data, SerializedRecords)
    return data


def _records(stored: SerializedRecords) -> Records:
    return Framed(stored.frames, stored.offsets).records()


@functools.lru_cache(maxsize=64)
def _parser_for(schema: Schema) -> Parser:
    return Parser(schema)


def _parse_sound(block: Block, names: list[str], threads: int) -> tuple[Block, dict[str, Any]]:
    """Parse the records that match their schema; return their block and columns."""
    if not names:
        return block, {}
    parser = _parser_for(_stored(block).schema.select(names))
    while True:
        stored = _stored(block)
        records = _records(stored)
        try:
            found = parser.plan.parse(records.buffer, records.starts, records.lengths, threads)
            return block, parser.columns(found, records)
        except _core.Fault as fault:
            row, error = int(fault.args[1]), parser.error(records, fault)
        except SchemaError as error_of_columns:
            if error_of_columns.record is None:
                raise
            row, error = error_of_columns.record, error_of_columns
        block = _without(block, row, error)


def _without(block: Block, row: int, error: Exception) -> Block:
    stored = _stored(block)
    reject = Reject(
        int(block.numbers[row]), None, stored.locate(row), _reason(error, _records(stored), row)
    )
    kept = np.delete(np.arange(len(block)), row)
    keys = None if block.keys is None else [block.keys[at] for at in kept.tolist()]
    rejects = sorted([*block.rejects, reject], key=lambda one: one.record)
    return Block(stored.take(kept), block.numbers[kept], keys, rejects)


def _reason(error: Exception, records: Records, row: int) -> str:
    """Problem of a record, without positions in the copy."""
    return Message.of(error).beside(place_of(records, row)[0])


def _encode(
    stored: SerializedRecords, columns: dict[str, Any], encoder: RowEncoder, threads: int
) -> EncodedBlock:
    schema = encoder.schema
    is_alike = stores_alike(stored.schema, schema)
    framed = Framed(stored.frames, stored.offsets)
    if is_alike and not stored.is_partial:
        return EncodedBlock(framed, schema, _count(framed, columns, stored.schema, threads))
    if not stored.schema or not len(framed):  # there is no column to take a length from
        return encoder.encode([{}] * len(framed))
    return encoder.encode(columns if is_alike else fit_columns(columns, schema))


def _count(framed: Framed, columns: dict[str, Any], schema: Schema, threads: int) -> Statistics:
    """Statistics of copied records."""
    if not len(framed) or not schema:
        return Statistics(len(framed))
    return summarize(collect(columns, schema), uncounted=(), threads=threads)


def _find_facts(columns: Mapping[str, Any]) -> dict[str, ImageFacts]:
    """Facts from image headers; unreadable headers are skipped."""
    if not columns:
        return {}
    from datum.images.header import ImageError, parse_header  # imports Pillow

    facts = {name: ImageFacts() for name in columns}
    for name, column in columns.items():
        for data in _strings(column):
            try:
                facts[name].add(parse_header(data))
            except ImageError:
                continue
    return facts


def _strings(column: Any) -> Iterator[bytes]:
    values = column.values if isinstance(column, Masked) else column
    present = column.present if isinstance(column, Masked) else np.ones(len(values), np.bool_)
    for at in np.flatnonzero(present).tolist():
        found = values[at]
        yield from found if isinstance(found, BytesColumn) else [found]


_READ_RECORDS = 1024  # serialized at once
_IMAGE_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def serialized_source(source: Source, serializer: Callable[[dict[str, Any]], bytes]) -> Source:
    """A source of the records that `serializer` returns for each row of another source.

    The serializer receives image paths as `str`. Its messages are parsed and written again, with
    sorted keys and the same values. It is called twice for every row, first to infer the schema.
    Rows for which it raises, or returns no tf.train.Example, are rejected. A feature is an image
    if the serializer replaces its path by bytes of an image under the same name.
    """
    return _SerializedSource(source, serializer)


@dataclass(frozen=True, slots=True)
class _SerializedSource:
    source: Source
    serializer: Callable[[dict[str, Any]], bytes]

    def parts(self) -> Mapping[str, Part]:
        """Return the parts of the source, with the schema of all their records."""
        makers = {
            split: _Maker(split, part, self.serializer)
            for split, part in self.source.parts().items()
        }
        found = Discovery(0, {}, {})
        images: set[str] | None = None
        for maker in makers.values():
            for made in maker.blocks():
                found = _merge(found, discover(made.payloads))
                if made.payloads:
                    images = made.images if images is None else images & made.images
        schema = found.schema()
        schema = Schema({n: IMAGE if n in (images or ()) else f for n, f in schema.items()})
        return {split: _SerializedPart(maker, schema) for split, maker in makers.items()}


@dataclass(frozen=True, slots=True)
class _Made:
    """Messages of a block, without its rows.

    Attributes:
        images: Features that are image paths in every row and image bytes in the first message.
    """

    block: Block
    payloads: list[bytes]
    images: set[str]


@dataclass(frozen=True, slots=True)
class _Maker:
    """Serializer of one part."""

    split: str
    part: Part
    serializer: Callable[[dict[str, Any]], bytes]

    def blocks(self) -> Iterator[_Made]:
        """Serialize the rows; reject those that fail."""
        if not part_info(self.part).is_repeatable:
            raise SourceError(
                "expected records that can be read twice, because they"
                " are serialized twice, got an iterator",
                where=f"split {self.split!r}",
                hint="pass a function that returns the iterator",
            )
        return map(self._make, _blocks(self.part))

    def _make(self, block: Block) -> _Made:
        data = columns_of(block.data)
        rows = data if isinstance(data, list) else _rows_of(data, len(block))
        payloads: list[bytes] = []
        images: set[str] = set()
        kept: list[int] = []
        rejects = list(block.rejects)
        for at, row in enumerate(rows):
            try:
                payloads.append(self._serialize(row))
                named = {name for name, value in row.items() if _is_image_path(value)}
                images = images & named if kept else _keep_images(payloads[0], named)
                kept.append(at)
            except Exception as error:  # the user's code may raise anything
                reason = f"serializer: {type(error).__name__}: {error}"
                key = None if block.keys is None else block.keys[at]
                rejects.append(Reject(int(block.numbers[at]), key, "", reason))
        keys = None if block.keys is None else [block.keys[at] for at in kept]
        rejects.sort(key=lambda reject: reject.record)
        return _Made(Block({}, block.numbers[kept], keys, rejects), payloads, images)

    def _serialize(self, row: dict[str, Any]) -> bytes:
        plain = {
            name: os.fspath(value) if isinstance(value, os.PathLike) else value
            for name, value in row.items()
        }
        payload: Any = self.serializer(plain)
        if not isinstance(payload, bytes):
            raise TypeError(Message(f"expected bytes, got {type(payload).__name__}"))
        try:
            discover([payload])
        except DatumError:
            raise ValueError(
                Message("expected a serialized tf.train.Example, got other bytes")
            ) from None
        return payload


@dataclass(eq=False, slots=True)
class _SerializedPart(PartInfo):
    """Messages parsed into columns."""

    maker: _Maker
    schema: Schema | None
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fingerprint: str | None = None

    def blocks(self) -> Iterator[Block]:
        """Yield all records in order."""
        assert self.schema is not None
        for made in self.maker.blocks():
            try:
                columns = parse(made.payloads, self.schema)
            except DatumError as error:
                raise SourceError(
                    "`serializer` must return the same messages each time, got others:"
                    f" {error.parts.line}",
                    where=f"split {self.maker.split!r}",
                ) from error
            yield replace(made.block, data=columns)


def _is_image_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and str(value).lower().endswith(_IMAGE_ENDINGS)


def _keep_images(payload: bytes, names: set[str]) -> set[str]:
    """Names under which a message holds the bytes of one image."""
    from datum.images import sniff_format  # imports Pillow

    schema = discover([payload]).schema()
    single = [name for name in names if schema.get(name) == Feature("bytes")]
    found = parse([payload], schema.select(single)) if single else {}
    return {name for name in single if sniff_format(found[name][0]) is not None}


def _blocks(part: Part) -> Iterator[Block]:
    if not isinstance(part, IndexedPart):
        yield from part.blocks()
        return
    for first in range(0, len(part), _READ_RECORDS):
        yield part.read(np.arange(first, min(first + _READ_RECORDS, len(part))))


def _rows_of(columns: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    return [{name: column[at] for name, column in columns.items()} for at in range(count)]


def _merge(first: Discovery, second: Discovery) -> Discovery:
    """Merge two discoveries."""
    records = first.records + second.records
    both = []
    for mine, other in ((first.context, second.context), (first.sequences, second.sequences)):
        names = dict.fromkeys([*mine, *other])
        both.append({name: _merge_features(mine.get(name), other.get(name)) for name in names})
    context, sequences = (
        {name: replace(feature, records=records) for name, feature in found.items()}
        for found in both
    )
    return Discovery(records, context, sequences)


def _merge_features(
    first: DiscoveredFeature | None, second: DiscoveredFeature | None
) -> DiscoveredFeature:
    if first is None or second is None:
        (only,) = (found for found in (first, second) if found is not None)
        return only
    return DiscoveredFeature(
        kinds=tuple(sorted({*first.kinds, *second.kinds})),
        present=first.present + second.present,
        records=first.records + second.records,
        lengths=_merge_ranges(first.lengths, second.lengths),
        steps=_merge_ranges(first.steps, second.steps),
        sizes=_merge_ranges(first.sizes, second.sizes),
        has_unset_steps=first.has_unset_steps or second.has_unset_steps,
        is_text=first.is_text and second.is_text,
    )


def _merge_ranges(
    first: tuple[int, int] | None, second: tuple[int, int] | None
) -> tuple[int, int] | None:
    if first is None or second is None:
        return first or second
    return min(first[0], second[0]), max(first[1], second[1])
