"""Records that are serialized already: copied as they are where they fit, counted, or made anew."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from datum import _core
from datum.columns import BytesColumn, Masked
from datum.errors import Message, SchemaError
from datum.format import (
    EncodedBlock,
    Framed,
    Parser,
    Records,
    RowEncoder,
    Statistics,
    parse,
    stores_alike,
)
from datum.format.collect import collect
from datum.format.parse import place_of
from datum.format.reencode import fit_columns
from datum.format.summarize import summarize
from datum.schema import ImageBytes, Schema
from datum.sources import Block, Reject
from datum.sources.source import Columns, Rows, Stored
from datum.writing.pictures import ImageFacts

__all__ = ["CopiedRecords", "columns_of", "copy_stored", "rows_of"]


@dataclass(frozen=True, slots=True)
class CopiedRecords:
    """Records of a block that are ready to be written."""

    encoded: EncodedBlock

    def encode(self) -> EncodedBlock:
        """What was made when the block was prepared."""
        return self.encoded


def copy_stored(
    block: Block, encoder: RowEncoder, *, is_counted: bool, threads: int
) -> tuple[Block, dict[str, ImageFacts]]:
    """The block with its records ready as `CopiedRecords`, under the schema of `encoder`.

    They are the same bytes as before, unless they have to lie in another way, or some of their
    features are left out. Records that are not as their own schema says become rejects. Where
    `is_counted`, their statistics are known from elsewhere, and nothing but images is looked at.
    """
    stored, schema = _stored(block), encoder.schema
    strays = [name for name in stored.schema if name not in schema]
    if strays:
        expected = ", ".join(schema)
        raise SchemaError(
            f"expected those of the schema ({expected}), got another",
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


def columns_of(data: Rows | Columns | Stored, *, names: list[str] | None = None) -> Any:
    """The values of records that are serialized, as columns; rows and columns as they are."""
    if not isinstance(data, Stored):
        return data
    schema = data.schema if names is None else data.schema.select(names)
    return parse(_records(data), schema, threads=1)


def rows_of(data: Stored) -> Rows:
    """The values of records that are serialized, as rows; images are told from other bytes."""
    columns = columns_of(data)
    images = {name for name, feature in data.schema.items() if feature.encoding == "image"}
    rows: Rows = []
    for at in range(len(data)):
        row = {name: column[at] for name, column in columns.items()}
        for name in images:
            found = row[name]
            if isinstance(found, BytesColumn):  # a list of them
                row[name] = [ImageBytes(one) for one in found]
            elif found is not None:
                row[name] = ImageBytes(found)
        rows.append(row)
    return rows


def _stored(block: Block) -> Stored:
    data: Any = block.data
    assert isinstance(data, Stored)
    return data


def _records(stored: Stored) -> Records:
    return Framed(stored.frames, stored.offsets).records()


@functools.lru_cache(maxsize=64)
def _parser_for(schema: Schema) -> Parser:
    return Parser(schema)


def _parse_sound(block: Block, names: list[str], threads: int) -> tuple[Block, dict[str, Any]]:
    """Columns of all records that are as their schema says, and the block of those."""
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
    """What is wrong, without where that is in the copy of the record."""
    return Message.of(error).beside(place_of(records, row)[0])


def _encode(
    stored: Stored, columns: dict[str, Any], encoder: RowEncoder, threads: int
) -> EncodedBlock:
    schema = encoder.schema
    is_alike = stores_alike(stored.schema, schema)
    framed = Framed(stored.frames, stored.offsets)
    if is_alike and not stored.is_partial:
        return EncodedBlock(framed, schema, _count(framed, columns, stored.schema, threads))
    if not stored.schema or not len(framed):  # nothing tells how long columns would be
        return encoder.encode([{}] * len(framed))
    return encoder.encode(columns if is_alike else fit_columns(columns, schema))


def _count(framed: Framed, columns: dict[str, Any], schema: Schema, threads: int) -> Statistics:
    """The statistics of records that are not made anew."""
    if not len(framed) or not schema:
        return Statistics(len(framed))
    return summarize(collect(columns, schema), uncounted=(), threads=threads)


def _find_facts(columns: Mapping[str, Any]) -> dict[str, ImageFacts]:
    """What images say of themselves in their headers; those that say nothing are passed over."""
    if not columns:
        return {}
    from datum.images.header import ImageError, parse_header  # brings Pillow

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
