"""One write after its arguments are checked: schema, shards, manifest, sidecars."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from datum._write.append import Appended, join_metadata, merge_schemas
from datum._write.blocks import BlockSettings, DirectSplit, WrittenBlock, first_error
from datum._write.encoders import FeatureEncoder
from datum._write.images import (
    DetectionKeys,
    ImageFacts,
    describe_images,
    find_keys,
    open_sizes,
    refine_images,
)
from datum._write.options import PlanOptions, WriteOptions
from datum._write.order import Division, order_part
from datum._write.parts import Intake
from datum._write.report import FloatReport, Progress, report_floats
from datum._write.shards import MadeShard, SplitPlan, WidenedError, make_shards
from datum._write.sidecars import make_sidecars, save_sidecars
from datum._write.spill import ReadResult, SpilledSplit, read_parts
from datum._write.staging import QUARANTINE, Staging
from datum.errors import Option, SchemaError, SourceError, Text, WriteError, json_text
from datum.format import stores_alike
from datum.format.durable import replace_file
from datum.format.manifest import MANIFEST_NAME, Manifest, SplitInfo
from datum.format.statistics import Statistics
from datum.schema import Feature, FloatFacts, FloatRule, Schema
from datum.sources import IndexedPart, Reject
from datum.sources.protocol import Part, list_reported, part_info

if TYPE_CHECKING:
    from datum.images import ImageOptions

__all__ = [
    "Job",
    "MadeSplit",
    "known_schema",
    "open_nested",
    "override",
    "settle",
]


@dataclass
class MadeSplit:
    """The shards of one split, with statistics and rejects of its records."""

    shards: list[MadeShard]
    statistics: Statistics
    rejects: list[Reject]
    floats: Mapping[str, FloatFacts]


@dataclass
class Job:
    """One write, after its arguments are checked."""

    intake: Intake
    division: Division | None
    options: WriteOptions
    images: ImageOptions
    encoders: Mapping[str, FeatureEncoder]
    appended: Appended | None
    staging: Staging
    progress: Progress
    notes: tuple[str, ...] = ()  # for the report
    floats: FloatReport = field(default_factory=FloatReport)
    _is_counted: bool = False

    def make(self) -> tuple[Manifest, dict[str, MadeSplit]]:
        """Make the shards and the manifest that lists them."""
        schema = known_schema(self.intake, self.options.complete_schema)
        watched: frozenset[str] = frozenset()
        self.staging.begin(self._plan_name())
        if schema is not None:
            rule = self._rule(self.staging.widened)
            schema, watched = settle(schema, self.encoders, self.options, rule)
            watched |= self.staging.widened
            schema = self._keyed(schema)
            if self.images.changes_bytes and self.options.complete_schema is None:
                schema = open_sizes(schema, keep=self.options.features)
        if self.appended is not None and schema is not None:
            schema = self.appended.widen(schema)
        self._is_counted = schema is not None and self._has_counts(schema)
        settings = BlockSettings(
            schema,
            self.options.features,
            self.images,
            self.encoders,
            self.options.on_error,
            self._is_counted,
            self._rule(),
            watched,
            known_images=frozenset() if self.appended is None else self.appended.images,
            complete=self._keys,
        )
        is_direct = schema is not None and all(
            isinstance(part, IndexedPart) for part in self.intake.parts.values()
        )
        found = self._make_direct(settings) if is_direct else self._make_spilled(settings)
        made, schema, images = found
        self._check_some_written(made)
        if not self._is_copied:  # copied records have the image shapes already
            schema = refine_images(schema, self._all_images(images))
        notes = list(list_reported(self.intake.parts.values(), "notes"))
        self.notes = (*notes, *describe_images(schema, images))
        self.floats = report_floats(schema, {name: one.floats for name, one in made.items()})
        return self._manifest(schema, images, made), made

    def _rule(self, wide: Iterable[str] = ()) -> FloatRule:
        """Rule for storing floats; an append stores features as the dataset does."""
        rule = self.options.rule
        old = {} if self.appended is None else self.appended.manifest.schema
        kept = {name for name, feature in old.items() if feature.dtype == "float64"}
        return replace(rule, kept=rule.kept | kept | frozenset(wide))

    def _keyed(self, schema: Schema) -> Schema:
        return schema if self._keys is None else self._keys.schema(schema)

    @functools.cached_property
    def _keys(self) -> DetectionKeys | None:
        parts = self.intake.parts.values()
        return find_keys(self.options.keys, [part.metadata for part in parts])

    @property
    def _is_copied(self) -> bool:
        """Whether all records are copied as serialized."""
        parts = self.intake.parts.values()
        is_changed = bool(self.encoders) or self.images.changes_bytes or self.appended is not None
        is_changed = is_changed or self._keys is not None
        return not is_changed and all(part_info(part).is_serialized for part in parts)

    def _has_counts(self, schema: Schema) -> bool:
        """Return whether the statistics of the parts hold for the copied records."""
        if not self._is_copied or self.division is not None or self.options.on_error != "raise":
            return False
        return all(
            part_info(part).statistics is not None
            and part.schema is not None
            and stores_alike(part.schema, schema)
            for part in self.intake.parts.values()
        )

    def _all_images(self, images: Mapping[str, ImageFacts]) -> dict[str, ImageFacts]:
        """Facts of new images merged with those of the dataset appended to."""
        if self.appended is None:
            return dict(images)
        metadata = self.appended.manifest.metadata
        merged = {
            name: ImageFacts.from_json(found)
            for name, found in metadata.items()
            if "formats" in found and "dtypes" in found
        }
        for name, facts in images.items():
            merged.setdefault(name, ImageFacts()).merge(facts)
        return merged

    def _make_direct(self, settings: BlockSettings) -> Any:
        """Write parts that can be read in any order, under a known schema."""
        if self.options.on_error == "raise":
            self._check_readable()
        while True:
            plans: dict[str, SplitPlan] = {}
            rejects: dict[str, list[Reject]] = {}
            for name, part in self.intake.parts.items():
                assert isinstance(part, IndexedPart)
                ordered = order_part(part, name, self.division, self.options)
                for split, order, duplicates in ordered:
                    plans[split] = DirectSplit(part, order, settings)
                    rejects[split] = duplicates
            try:
                shards = self._shards(plans)
                break
            except WidenedError as error:
                settings = self._widen(settings, error.made)
        made = {}
        images: dict[str, ImageFacts] = {}
        for split, found in shards.items():
            statistics = Statistics()
            floats: dict[str, FloatFacts] = {}
            for shard in found:
                rejects[split] += shard.rejects
                statistics = statistics.merge(shard.statistics)
                for name, facts in shard.images.items():
                    images.setdefault(name, ImageFacts()).merge(facts)
                for name, one in shard.floats.items():
                    floats[name] = floats.get(name, FloatFacts()).merge(one)
            made[split] = MadeSplit(found, statistics, rejects[split], floats)
        self._check_count(made)
        return made, settings.schema, images

    def _check_count(self, made: Mapping[str, MadeSplit]) -> None:
        """Raise unless every record of the source was written or rejected."""
        parts = [part for part in self.intake.parts.values() if isinstance(part, IndexedPart)]
        expected = sum(map(len, parts))
        written = sum(one.shard.records for split in made.values() for one in split.shards)
        rejected = sum(len(split.rejects) for split in made.values())
        if written + rejected != expected:
            raise WriteError(
                f"expected the {expected:,} records of the source, got"
                f" {written:,} written and {rejected:,} rejected",
                where=self.staging.where,
            )

    def _widen(self, settings: BlockSettings, made: WrittenBlock) -> BlockSettings:
        """Widen the schema for a block that needs float64, and discard all shards."""
        assert settings.schema is not None
        wide = {name for name, one in settings.schema.items() if one != made.schema[name]}
        self._check_appended(made.floats, wide)
        self.staging.start_anew(self.staging.widened | wide)
        features = {
            name: made.schema[name] if name in wide else one
            for name, one in settings.schema.items()
        }
        return replace(settings, schema=Schema(features))

    def _check_appended(self, floats: Mapping[str, FloatFacts], wide: Iterable[str]) -> None:
        """Raise SchemaError for values that the dataset appended to cannot hold."""
        for name in wide:
            old = None if self.appended is None else self.appended.manifest.schema.get(name)
            found = floats[name].wide if name in floats else None
            if old is not None and old.dtype != "float64" and found is not None:
                record, value = found
                hint = "write old and new records together as a new dataset"
                if abs(value) < float(np.finfo(np.float32).max):
                    hint = Text(Option("schema", {name: old}), f" rounds it; or {hint}")
                raise SchemaError(
                    f"expected a value that fits {old.dtype},"
                    f" the type in the dataset, got {value!r}",
                    where=f"record {record}, feature {name!r}",
                    hint=hint,
                    record=record,
                    feature=name,
                )

    def _check_readable(self) -> None:
        """Raise the error of the first record that the source already reports as bad."""
        for part in self.intake.parts.values():
            assert isinstance(part, IndexedPart)
            if rejects := part_info(part).rejects:
                kept = len(part) - len(rejects)
                raise first_error(rejects[0], rejected=len(rejects), kept=kept)

    def _make_spilled(self, settings: BlockSettings) -> Any:
        """Write records that come in sequence or without a known schema, sorted on disk."""
        taken = read_parts(
            self.intake,
            replace(settings, keeps_exact=True),
            self.options,
            division=self.division,
            folder=self.staging.spill,
            progress=self.progress,
        )
        schema = taken.schema
        wide = {
            name: facts
            for split in taken.splits.values()
            for name, facts in split.floats.items()
            if facts.wide is not None
        }
        if settings.schema is None:
            self._check_some_left(taken)
            schema = open_nested(schema, self.intake.parts.values())
            rule = self._rule(wide)
            schema, _ = settle(schema, self.encoders, self.options, rule, is_ruled=True)
            schema = self._keyed(schema)
        if self.appended is not None:
            given = self.options.features
            is_wide = {
                name for name in wide if name not in given and schema[name].dtype == "float64"
            }
            self._check_appended(wide, is_wide)
            schema = self.appended.widen(schema)
        plans: dict[str, SplitPlan] = {
            name: SpilledSplit(split.runs(schema), schema) for name, split in taken.splits.items()
        }
        shards = self._shards(plans)
        made = {
            name: MadeSplit(shards[name], split.statistics, split.rejects, split.floats)
            for name, split in taken.splits.items()
        }
        return made, schema, taken.images

    def _check_some_written(self, made: Mapping[str, MadeSplit]) -> None:
        """Raise SourceError if nothing was written, often because an iterator was exhausted."""
        if any(one.shard.records for split in made.values() for one in split.shards):
            return
        raise _nothing_to_write([reject for split in made.values() for reject in split.rejects])

    def _check_some_left(self, taken: ReadResult) -> None:
        """Raise SourceError if every record was rejected."""
        rejects = [reject for split in taken.splits.values() for reject in split.rejects]
        if rejects and not taken.schema:
            raise _nothing_to_write(rejects)

    def _shards(self, plans: Mapping[str, SplitPlan]) -> dict[str, list[MadeShard]]:
        if not any(plan.records for plan in plans.values()):
            raise _nothing_to_write([])
        generation = self.staging.claim(0 if self.appended is None else self.appended.generation)
        return make_shards(
            plans, self.options, self.staging, generation=generation, progress=self.progress
        )

    def _plan_name(self) -> str | None:
        """Hash of everything that determines the bytes; None if a part may change unnoticed."""
        parts = {name: part.fingerprint for name, part in self.intake.parts.items()}
        if None in parts.values():
            return None
        plan = {
            "parts": parts,
            "fractions": list((self.intake.fractions or {}).items()),  # order matters
            "options": self.options.describe(),
            "images": asdict(self.images),
            "encoders": {name: encoder.describe() for name, encoder in self.encoders.items()},
            "appended": None if self.appended is None else self.appended.describe(),
        }
        return hashlib.blake2b(
            json.dumps(plan, sort_keys=True).encode(), digest_size=16
        ).hexdigest()

    def _manifest(
        self, schema: Schema, images: Mapping[str, ImageFacts], made: Mapping[str, MadeSplit]
    ) -> Manifest:
        parts = [part.metadata for part in self.intake.parts.values()]
        described = {
            name: found.describe() | {"stored_dtype": schema[name].dtype}
            for name, found in self.encoders.items()
        }
        pictured = {name: facts.to_json() for name, facts in images.items() if name in schema}
        manifest = Manifest(
            schema,
            {
                name: SplitInfo(tuple(one.shard for one in split.shards))
                for name, split in made.items()
            },
            join_metadata([*parts, described, pictured, self.floats.to_metadata()]),
            {name: self._statistics(name, split) for name, split in made.items()},
            self.options.compression,
        )
        return manifest if self.appended is None else self.appended.join(manifest)

    def _statistics(self, name: str, split: MadeSplit) -> Mapping[str, Any]:
        if self._is_counted:
            return part_info(self.intake.parts[name]).statistics or {}
        return split.statistics.to_json()

    def save(self, manifest: Manifest, made: Mapping[str, MadeSplit]) -> None:
        """Write the files beside the shards, the manifest last."""
        folder = self.staging.data
        lines = [
            json_text({"split": name, **_to_json(reject)}, sort_keys=True)
            for name, split in made.items()
            for reject in sorted(split.rejects, key=lambda reject: reject.record)
        ]
        if self.options.on_error == "quarantine" and lines:
            earlier = b"" if self.appended is None else self.appended.quarantine
            replace_file(
                folder / QUARANTINE,
                earlier + ("\n".join(lines) + "\n").encode(),
            )
        there = () if self.appended is None else self.appended.sidecars
        sidecars = make_sidecars(manifest, {*self.options.sidecars, *there})
        save_sidecars(folder, sidecars)
        self.notes += tuple(note for sidecar in sidecars for note in sidecar.notes)
        replace_file(folder / MANIFEST_NAME, manifest.to_bytes())


class EmptySourceError(SourceError):
    """A source has no records."""


def _nothing_to_write(rejects: list[Reject]) -> SourceError:
    if rejects:
        return SourceError(
            f"none of {len(rejects):,} records can be written; the first: {rejects[0]}"
        )
    return EmptySourceError(
        "expected records, got none",
        hint="an exhausted iterator yields nothing; pass a function that returns a new one",
    )


def _to_json(reject: Reject) -> dict[str, Any]:
    return {name: value for name, value in asdict(reject).items() if name != "hint" or value}


def known_schema(intake: Intake, schema: Schema | None) -> Schema | None:
    """Merge the schemas of all parts; None if one is unknown before reading."""
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


def open_nested(schema: Schema, parts: Iterable[Part]) -> Schema:
    """Allow any length for lists made from lists of dicts."""
    names = set(list_reported(parts, "nested"))
    return Schema(
        {
            name: replace(one, shape=(None,) * len(one.shape)) if name in names else one
            for name, one in schema.items()
        }
    )


def override(schema: Schema, features: Mapping[str, Feature]) -> Schema:
    """Replace features of the schema by given ones; an empty schema stays empty."""
    if not schema:
        return schema
    for name in features:
        if name not in schema:
            schema.select([name])  # raises and suggests the nearest name
    return Schema({name: features.get(name, feature) for name, feature in schema.items()})


def settle(
    schema: Schema,
    encoders: Mapping[str, FeatureEncoder],
    options: PlanOptions,
    rule: FloatRule,
    *,
    is_ruled: bool = False,
) -> tuple[Schema, frozenset[str]]:
    """Apply encoders, the float rule and given features to the schema.

    With `is_ruled`, the rule is applied only to outputs of encoders. Also returns the features
    that are stored as float32 as long as float32 can represent their values.
    """
    encoded = {
        name: replace(encoder.feature, optional=schema[name].optional)
        for name, encoder in encoders.items()
        if name in schema
    }
    exact = override(schema, encoded)
    is_ruled = is_ruled or options.complete_schema is not None
    rounded = rule.apply(exact.select(encoded) if is_ruled else exact)
    watched = {
        name
        for name, feature in rounded.items()
        if feature != exact[name] and name not in options.features
    }
    settled = override(exact, {name: rounded[name] for name in watched})
    return override(settled, options.features), frozenset(watched)
