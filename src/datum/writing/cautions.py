"""What is worth a second look before a dataset is written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from datum.format.wording import count_of, format_bytes
from datum.sources import Reject
from datum.writing.options import WriteOptions
from datum.writing.planned import PlannedSplit

__all__ = ["find_cautions"]

SMALL_SHARD_BYTES = 2**20  # below this, opening files costs more than reading them
LARGE_SHARD_BYTES = 4 * 2**30  # above this, few readers can share the work
_SHOWN = 3


def find_cautions(
    options: WriteOptions,
    splits: Mapping[str, PlannedSplit],
    metadata: Mapping[str, Mapping[str, Any]],
    *,
    looked_at: int,
    rejects: Sequence[Reject],
    duplicates: Sequence[Reject],
    unfitted: Collection[str],
    unread: Sequence[str] = (),
    notes: Sequence[str] = (),
    sidecar_notes: Sequence[str] = (),
) -> tuple[str, ...]:
    """What to warn of, a sentence each, the gravest first."""
    return (
        *_about_rejects(options, looked_at, rejects),
        *_about_duplicates(options, duplicates),
        *notes,
        *_about_unread(unread),
        *_about_splits(splits),
        *_about_shards(options, splits),
        *_about_features(metadata, unfitted),
        *sidecar_notes,
    )


def _about_rejects(
    options: WriteOptions, looked_at: int, rejects: Sequence[Reject]
) -> Iterator[str]:
    if not rejects:
        return
    outcome = {
        "raise": "the write will stop there (on_error='quarantine' puts them aside)",
        "skip": "they will be left out",
        "quarantine": "they will be put aside",
    }[options.on_error]
    first = rejects[0].message.line
    of = (
        f" of {count_of(looked_at, 'record')} looked at"
        if len(rejects) <= looked_at
        else " records"
    )
    yield f"{len(rejects):,}{of} cannot be written, and {outcome}; the first: {first}"


def _about_duplicates(options: WriteOptions, duplicates: Sequence[Reject]) -> Iterator[str]:
    if duplicates:
        outcome = "refuse them" if options.on_error == "raise" else "leave them out"
        yield (
            f"{count_of(len(duplicates), 'record')} with the key of another, such as"
            f" {duplicates[0].key!r}: the write will {outcome}"
        )


def _about_unread(unread: Sequence[str]) -> Iterator[str]:
    if unread:
        more = ", ..." if len(unread) > _SHOWN else ""
        listed = ", ".join(unread[:_SHOWN])
        yield f"{len(unread):,} more in this folder will not be read: {listed}{more}"


def _about_splits(splits: Mapping[str, PlannedSplit]) -> Iterator[str]:
    for name, split in splits.items():
        if split.records == 0:
            yield f"split {name!r} has no records"


def _about_shards(options: WriteOptions, splits: Mapping[str, PlannedSplit]) -> Iterator[str]:
    for name, split in splits.items():
        size, shards = split.shard_bytes, split.shards or 0
        if split.records is not None and shards > max(split.records, 1):
            yield (
                f"split {name!r}: {count_of(shards, 'shard')} for"
                f" {count_of(split.records, 'record')}: some will be empty"
            )
        elif size is not None and shards > 1 and size < SMALL_SHARD_BYTES:
            yield f"split {name!r}: {shards:,} shards of only about {format_bytes(size)} each"
        elif size is not None and size > LARGE_SHARD_BYTES:
            yield (
                f"split {name!r}: shards of about {format_bytes(size)} each; more of them can be"
                " read side by side"
            )
    if options.compression is not None:
        yield "compressed shards cannot be read by record number without a copy in the cache"


def _about_features(
    metadata: Mapping[str, Mapping[str, Any]], unfitted: Collection[str]
) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name, found in metadata.items():
        if "left_out" in found:
            reasons.setdefault(found["left_out"], []).append(name)
    for reason, empty in reasons.items():
        more = ", ..." if len(empty) > _SHOWN else ""
        listed = ", ".join(empty[:_SHOWN])
        yield f"{count_of(len(empty), 'column')} left out, as {reason}: {listed}{more}"
    if unfitted:
        yield (
            f"encoders of {', '.join(sorted(unfitted))} learn from all of the split 'train' first:"
            " how large their features are is a guess"
        )
