"""`datum.plan`: what a write would do, without writing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from datum._options import lists_options
from datum._write.append import join_metadata
from datum._write.blocks import BlockSettings, BlockWriter, DirectSplit
from datum._write.encoders import FeatureEncoder, fit_encoders, make_encoders
from datum._write.images import ImageFacts, find_keys, refine_images
from datum._write.job import known_schema, open_nested, settle
from datum._write.options import PlanKeywords, PlanOptions, read_keywords
from datum._write.order import Division, order_part
from datum._write.parts import (
    Intake,
    SourceOptions,
    check_stratify,
    collect_parts,
    is_dict_of_sources,
    only_part,
)
from datum._write.preview import Beginning, Glimpse, KnownSource, PartSample, look_at, sample_part
from datum._write.report import PlannedSplit, WritePlan
from datum._write.sidecars import make_sidecars
from datum.errors import Option, Text, count_of, format_bytes
from datum.format import Manifest
from datum.schema import Schema
from datum.sources import IndexedPart, Reject
from datum.sources.options import TableOptions
from datum.sources.protocol import Part, list_reported, part_info

if TYPE_CHECKING:
    from datum.images import ImageOptions

__all__ = [
    "find_cautions",
    "plan",
]

SMALL_SHARD_BYTES = 2**20  # below this, opening files costs more than reading them
LARGE_SHARD_BYTES = 4 * 2**30  # above this, few readers can share the work
_SHOWN = 3


def find_cautions(
    options: PlanOptions,
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
    options: PlanOptions, looked_at: int, rejects: Sequence[Reject]
) -> Iterator[str]:
    if not rejects:
        return
    outcome = {
        "raise": Text(
            "the write will stop there (", Option("on_error", "quarantine"), " puts them aside)"
        ),
        "skip": "they will be left out",
        "quarantine": "they will be put aside",
    }[options.on_error]
    first = rejects[0].message.line
    of = (
        f" of {count_of(looked_at, 'record')} looked at"
        if len(rejects) <= looked_at
        else " records"
    )
    yield Text(f"{len(rejects):,}{of} cannot be written, and ", outcome, "; the first: ", first)


def _about_duplicates(options: PlanOptions, duplicates: Sequence[Reject]) -> Iterator[str]:
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


def _about_shards(options: PlanOptions, splits: Mapping[str, PlannedSplit]) -> Iterator[str]:
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


@lists_options(PlanOptions, TableOptions, keywords=PlanKeywords)
def plan(source: Any, **options: Unpack[PlanKeywords]) -> WritePlan:
    """Tell what `datum.write` would do with these options, without writing.

    At most 1,000 records, 10 MiB or two seconds of each part are read, so that a plan is quick
    however large the source is; what is inferred from those alone is marked as a guess. Pass
    `plan.source` to `datum.write` in place of the source, with the same options but `problem`,
    those of tables (and `splits`, if those are sources): nothing is then looked for twice.

    What a write would refuse at once raises the same error here. An iterator is refused, because
    a write would miss the records that were read here.

    Args:
        source: What to write, as for `datum.write`.
        options: See `PlanOptions`.

    >>> found = plan({"x": [1, 2, 3], "name": ["a", "b", "c"]}, splits={"train": 0.5, "val": 0.5})
    >>> found.records, dict(found.schema)
    (3, {'x': Feature('int64'), 'name': Feature('str')})
    """
    asked, table = read_keywords(PlanOptions, options, caller="plan")
    images = asked.images  # checks them
    made = make_encoders(asked.encoders or {})
    of_source = SourceOptions.of(asked, table)
    found = _look(source, asked.splits, lambda given: look_at(given, asked.problem, of_source))
    asked.check_split_names(found.intake.splits)
    check_stratify(found.intake, asked.stratify)
    return _Draft(found, asked, images, made).finish()


@dataclass(frozen=True)
class _Found:
    """What the arguments mean, as far as a plan reads it."""

    intake: Intake
    source: KnownSource
    layout: str
    origins: Mapping[str, str]
    unread: Sequence[str] = ()


def _look(source: Any, splits: Any, look: Callable[[Any], Glimpse]) -> _Found:
    if splits is None and is_dict_of_sources(source):
        source, splits = None, source
    is_each = source is None and isinstance(splits, Mapping)
    if not is_each or all(isinstance(value, (int, float)) for value in splits.values()):
        glimpse = look(source)
        parts = glimpse.parts
        intake = collect_parts(KnownSource(lambda: parts), splits, None)
        return _Found(
            intake, glimpse.source, glimpse.layout, glimpse.origins, tuple(glimpse.unread)
        )
    each = {name: look(given) for name, given in splits.items()}
    chosen = {name: only_part(name, one.parts) for name, one in each.items()}
    known = KnownSource(
        lambda: {name: only_part(name, one.source.parts()) for name, one in each.items()}
    )
    layouts = list(dict.fromkeys(one.layout for one in each.values()))
    origins = {
        name: one.origins.get(name, next(iter(one.origins.values()), ""))
        for name, one in each.items()
    }
    intake = collect_parts(KnownSource(lambda: chosen), None, None)
    return _Found(intake, known, "; ".join(layouts), origins)


@dataclass
class _Seen:
    """What the records that were read of one part tell."""

    sample: PartSample
    rejects: list[Reject]
    written: int = 0
    nbytes: int = 0

    @property
    def record_bytes(self) -> float:
        """How large a record is in a shard."""
        return self.nbytes / max(self.written, 1)


class _Draft:
    """A plan in the making."""

    def __init__(
        self,
        found: _Found,
        options: PlanOptions,
        images: ImageOptions,
        encoders: Mapping[str, FeatureEncoder],
    ) -> None:
        self.found = found
        self.parts = found.intake.parts
        self.options = options
        self.encoders = encoders
        self.unfitted = {name for name, one in encoders.items() if not one.is_fitted}
        self.seen = {name: _Seen(_sample(part), []) for name, part in self.parts.items()}
        self.is_whole = all(one.sample.is_whole for one in self.seen.values())
        fit_encoders(encoders, {name: one.sample for name, one in self.seen.items()})
        self.known = known_schema(found.intake, options.complete_schema)
        settled, watched = None, frozenset[str]()
        self.keys = find_keys(options.keys, [part.metadata for part in self.parts.values()])
        if self.known is not None:
            settled, watched = settle(self.known, encoders, options, options.rule)
            settled = settled if self.keys is None else self.keys.schema(settled)
        self.settings = BlockSettings(
            settled,
            options.features,
            images,
            encoders,
            "skip",
            rule=options.rule,
            watched=watched,
            complete=self.keys,
        )
        self.facts: dict[str, ImageFacts] = {}
        self.schema = self._write_samples(BlockWriter(self.settings, threads=1))
        fractions = found.intake.fractions
        self.division = None if fractions is None else Division(fractions, {})

    def _write_samples(self, writer: BlockWriter) -> Schema:
        """Make the records that were read; what they need not be is known then."""
        facts = self.facts
        wide: set[str] = set()
        for seen in self.seen.values():
            for block in seen.sample.held:
                written = writer.write(block)
                seen.rejects += written.rejects
                seen.written += len(written.framed)
                seen.nbytes += written.framed.nbytes
                for name, found in written.images.items():
                    facts.setdefault(name, ImageFacts()).merge(found)
                wide |= {name for name, one in written.floats.items() if one.wide is not None}
        schema = writer.schema
        if self.known is None:
            schema = open_nested(schema, self.parts.values())
            rule = replace(self.options.rule, kept=self.options.rule.kept | wide)
            schema, _ = settle(schema, self.encoders, self.options, rule, is_ruled=True)
            schema = schema if self.keys is None else self.keys.schema(schema)
        return refine_images(schema, facts)

    def finish(self) -> WritePlan:
        """The plan."""
        splits: dict[str, PlannedSplit] = {}
        duplicates: list[Reject] = []
        for name, part in self.parts.items():
            for split, planned, lost in self._plan_part(name, part):
                splits[split] = planned
                duplicates += lost
        metadata = join_metadata(part.metadata for part in self.parts.values())
        parts = self.parts.values()
        skipped = {*list_reported(parts, "skipped"), *self.found.unread}
        rejects = [
            reject
            for name, one in self.seen.items()
            for reject in _merge_rejects(part_info(self.parts[name]).rejects, one.rejects)
        ]
        looked_at = sum(one.sample.seen for one in self.seen.values())
        return WritePlan(
            self.found.layout,
            splits,
            self.schema,
            self._find_guessed(),
            looked_at,
            metadata,
            self.options.compression,
            tuple(sorted(skipped)),
            find_cautions(
                self.options,
                splits,
                metadata,
                looked_at=looked_at,
                rejects=rejects,
                duplicates=duplicates,
                unfitted=self.unfitted,
                unread=self.found.unread,
                notes=list(list_reported(self.parts.values(), "notes")),
                sidecar_notes=self._sidecar_notes(metadata),
            )
            + list_reported(parts, "warnings"),
            self.found.source,
            list_reported(parts, "remarks"),
        )

    def _sidecar_notes(self, metadata: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """What other programs would read otherwise than Datum does."""
        pictured = {name: facts.to_json() for name, facts in self.facts.items()}
        described = Manifest(self.schema, {}, join_metadata([metadata, pictured]))
        made = make_sidecars(described, [*self.options.sidecars])
        return [note for sidecar in made for note in sidecar.notes]

    def _find_guessed(self) -> tuple[str, ...]:
        """The features that records which were not read may make another thing of."""
        if self.is_whole and not (self.unfitted and self.division):
            return ()
        is_cut = any(isinstance(part, Beginning) for part in self.parts.values())
        is_known = self.options.complete_schema is not None or (
            self.known is not None and not is_cut
        )
        return tuple(
            name
            for name, feature in self.schema.items()
            if name in self.unfitted
            or (feature.encoding == "image" and name not in self.options.features)
            or not (is_known or name in self.options.features)
        )

    # Each split.

    def _plan_part(self, name: str, part: Part) -> Iterator[tuple[str, PlannedSplit, list[Reject]]]:
        """The splits that a part becomes, and records in them that have the key of another."""
        origin = self.found.origins.get(name, "")
        if isinstance(part, IndexedPart):
            yield from self._plan_indexed(name, part, origin)
            return
        for split, records, is_exact in self._count_streamed(name, part):
            nbytes = None if records is None else int(records * self.seen[name].record_bytes)
            yield split, self._planned(split, origin, records, nbytes, is_exact=is_exact), []

    def _plan_indexed(
        self, name: str, part: IndexedPart, origin: str
    ) -> Iterator[tuple[str, PlannedSplit, list[Reject]]]:
        """Which record goes where is known without reading one."""
        is_direct = self.settings.schema is not None and all(
            isinstance(one, IndexedPart) for one in self.parts.values()
        )
        plain = replace(self.options, shuffle=False, on_error="skip")
        for split, order, lost in order_part(part, name, self.division, plain):
            records = len(order) + len(lost)
            nbytes = int(records * self.seen[name].record_bytes)
            if is_direct:  # what a write does then to find out how many shards there are
                nbytes = DirectSplit(part, order, self.settings).nbytes
            is_exact = self.division is None or self.options.stratify is None
            yield split, self._planned(split, origin, records, nbytes, is_exact=is_exact), lost

    def _count_streamed(self, name: str, part: Part) -> Iterator[tuple[str, int | None, bool]]:
        """For each split, how many records there are, and whether that is more than a guess."""
        sample = self.seen[name].sample
        total, estimate = _count(part, sample)
        if self.division is None:
            yield name, estimate, total is not None
            return
        counts = self._divide_sample(sample)
        for split, fraction in self.division.fractions.items():
            if sample.is_whole:
                yield split, counts[split], self.options.stratify is None
            else:
                yield split, None if estimate is None else round(estimate * fraction), False

    def _divide_sample(self, sample: PartSample) -> dict[str, int]:
        assert self.division is not None
        names = list(self.division.fractions)
        counts = dict.fromkeys(names, 0)
        for block in sample.held:
            places = self.division.splits_of(block.numbers, block.keys)
            for at, count in enumerate(np.bincount(places, minlength=len(names)).tolist()):
                counts[names[at]] += count
        return counts

    def _planned(
        self,
        split: str,
        origin: str,
        records: int | None,
        nbytes: int | None,
        *,
        is_exact: bool,
    ) -> PlannedSplit:
        if self.division is not None:
            share = f"{self.division.fractions[split]:.4g}"
            origin = f"{share} of {origin or 'all records'}"
        asked = self.options.shards
        is_asked = asked is not None and (isinstance(asked, int) or split in asked)
        is_counted = self.options.records_per_shard is not None or nbytes is not None
        shards = None
        if is_asked or (records is not None and is_counted):
            shards = self.options.shard_count(split, records=records or 0, nbytes=nbytes or 0)
        return PlannedSplit(origin, records if is_exact else None, records, nbytes, shards)


def _merge_rejects(known: Sequence[Reject], seen: Sequence[Reject]) -> list[Reject]:
    """The bad records of a part in their order, each once."""
    found = {reject.record: reject for reject in (*seen, *known)}
    return [found[record] for record in sorted(found)]


def _sample(part: Part) -> PartSample:
    if not isinstance(part, Beginning):
        return sample_part(part)
    return PartSample(part.schema, part.metadata, list(part.held), part.total)


def _count(part: Part, sample: PartSample) -> tuple[int | None, int | None]:
    """How many records a part has, and about how many, as far as that is known."""
    if sample.total is not None:
        return sample.total, sample.total
    share = part.share if isinstance(part, Beginning) else None
    return None, max(sample.seen, round(sample.seen / share)) if share else None
