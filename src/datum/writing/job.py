"""One write, once its arguments are understood: shards, manifest, and the files beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from datum.errors import SourceError
from datum.format import stores_alike
from datum.format.durable import replace_file
from datum.format.manifest import Manifest, SplitInfo
from datum.format.naming import MANIFEST_NAME
from datum.format.statistics import Statistics
from datum.schema import Schema
from datum.sources import IndexedPart, Reject
from datum.writing.append import Appended, join_metadata
from datum.writing.block_writer import BlockSettings
from datum.writing.direct import DirectSplit
from datum.writing.division import Division
from datum.writing.encoders import FeatureEncoder
from datum.writing.indexed_order import order_part
from datum.writing.intake import Taken, take_in
from datum.writing.legacy import legacy_files
from datum.writing.make import MadeShard, SplitPlan, make_shards
from datum.writing.options import WriteOptions
from datum.writing.parts import Intake, known_schema, settle
from datum.writing.pictures import ImageFacts, describe_images, open_sizes, refine_images
from datum.writing.progress import Progress
from datum.writing.spilled import SpilledSplit
from datum.writing.staging import QUARANTINE, Staging

if TYPE_CHECKING:
    from datum.images import ImageOptions

__all__ = ["Job", "MadeSplit"]


@dataclass
class MadeSplit:
    """The shards of one split, and what was found out about its records."""

    shards: list[MadeShard]
    statistics: Statistics
    rejects: list[Reject]


@dataclass
class Job:
    """One write, once its arguments are understood."""

    intake: Intake
    division: Division | None
    options: WriteOptions
    images: ImageOptions
    encoders: Mapping[str, FeatureEncoder]
    appended: Appended | None
    staging: Staging
    progress: Progress
    notes: tuple[str, ...] = ()  # on what was made, for the report
    _is_counted: bool = False

    def make(self) -> tuple[Manifest, dict[str, MadeSplit]]:
        """Make the shards, and the manifest that names them."""
        schema = known_schema(self.intake, self.options.schema)
        if schema is not None:
            schema = settle(schema, self.encoders, self.options.features)
            if self.images.changes_bytes and self.options.schema is None:
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
        )
        is_direct = schema is not None and all(
            isinstance(part, IndexedPart) for part in self.intake.parts.values()
        )
        self.staging.begin(self._plan_name())
        found = self._make_direct(settings) if is_direct else self._make_spilled(settings)
        made, schema, images = found
        self._check_some_written(made)
        if not self._is_copied:  # where records are, the schema is already that of their images
            schema = refine_images(schema, self._all_images(images))
        self.notes = tuple(describe_images(schema, images))
        return self._manifest(schema, images, made), made

    @property
    def _is_copied(self) -> bool:
        """Whether all records are serialized already, and none is changed."""
        parts = self.intake.parts.values()
        is_changed = bool(self.encoders) or self.images.changes_bytes or self.appended is not None
        return not is_changed and all(getattr(part, "is_stored", False) for part in parts)

    def _has_counts(self, schema: Schema) -> bool:
        """Whether all records of parts whose statistics are known are copied, and no others."""
        if not self._is_copied or self.division is not None or self.options.on_error != "raise":
            return False
        return all(
            getattr(part, "statistics", None) is not None
            and part.schema is not None
            and stores_alike(part.schema, schema)
            for part in self.intake.parts.values()
        )

    def _all_images(self, images: Mapping[str, ImageFacts]) -> dict[str, ImageFacts]:
        """What is known of images, with those that were there before."""
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
        """Straight from the parts: they can be read in any order, and the schema is known."""
        plans: dict[str, SplitPlan] = {}
        rejects: dict[str, list[Reject]] = {}
        for name, part in self.intake.parts.items():
            assert isinstance(part, IndexedPart)
            ordered = order_part(part, name, self.division, self.options)
            for split, order, duplicates in ordered:
                plans[split] = DirectSplit(part, order, settings)
                rejects[split] = duplicates
        shards = self._shards(plans)
        made = {}
        images: dict[str, ImageFacts] = {}
        for split, found in shards.items():
            statistics = Statistics()
            for shard in found:
                rejects[split] += shard.rejects
                statistics = statistics.merge(shard.statistics)
                for name, facts in shard.images.items():
                    images.setdefault(name, ImageFacts()).merge(facts)
            made[split] = MadeSplit(found, statistics, rejects[split])
        return made, settings.schema, images

    def _make_spilled(self, settings: BlockSettings) -> Any:
        """By way of the disk: records come one after the other, or their schema is not known."""
        taken = take_in(
            self.intake,
            settings,
            self.options,
            division=self.division,
            folder=self.staging.spill,
            progress=self.progress,
        )
        schema = taken.schema
        if settings.schema is None:
            self._check_some_left(taken)
            schema = settle(schema, self.encoders, self.options.features)
        if self.appended is not None:
            schema = self.appended.widen(schema)
        plans: dict[str, SplitPlan] = {
            name: SpilledSplit(split.runs(schema), schema) for name, split in taken.splits.items()
        }
        shards = self._shards(plans)
        made = {
            name: MadeSplit(shards[name], split.statistics, split.rejects)
            for name, split in taken.splits.items()
        }
        return made, schema, taken.images

    def _check_some_written(self, made: Mapping[str, MadeSplit]) -> None:
        """Refuse to publish nothing: that is nobody's wish, but often a spent iterator."""
        if any(one.shard.records for split in made.values() for one in split.shards):
            return
        raise _nothing_to_write([reject for split in made.values() for reject in split.rejects])

    def _check_some_left(self, taken: Taken) -> None:
        """Refuse to go on where nothing can be known of any record."""
        rejects = [reject for split in taken.splits.values() for reject in split.rejects]
        if rejects and not taken.schema:
            raise _nothing_to_write(rejects)

    def _shards(self, plans: Mapping[str, SplitPlan]) -> dict[str, list[MadeShard]]:
        if not any(plan.records for plan in plans.values()):
            raise _nothing_to_write([])
        generation = 0 if self.appended is None else self.appended.generation
        return make_shards(
            plans, self.options, self.staging, generation=generation, progress=self.progress
        )

    def _plan_name(self) -> str | None:
        """A name for all that decides the bytes; None if a part may have changed unnoticed."""
        parts = {name: part.fingerprint for name, part in self.intake.parts.items()}
        if None in parts.values():
            return None
        plan = {
            "parts": parts,
            "fractions": list((self.intake.fractions or {}).items()),  # in their order
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
        described = {name: found.describe() for name, found in self.encoders.items()}
        pictured = {name: facts.to_json() for name, facts in images.items() if name in schema}
        manifest = Manifest(
            schema,
            {
                name: SplitInfo(tuple(one.shard for one in split.shards))
                for name, split in made.items()
            },
            join_metadata([*parts, described, pictured]),
            {name: self._statistics(name, split) for name, split in made.items()},
            self.options.compression,
        )
        return manifest if self.appended is None else self.appended.join(manifest)

    def _statistics(self, name: str, split: MadeSplit) -> Mapping[str, Any]:
        if self._is_counted:
            known: Mapping[str, Any] = getattr(self.intake.parts[name], "statistics", {})
            return known
        return split.statistics.to_json()

    def save(self, manifest: Manifest, made: Mapping[str, MadeSplit]) -> None:
        """Write the files that stand beside the shards; the manifest comes last."""
        folder = self.staging.data
        lines = [
            json.dumps({"split": name, **asdict(reject)}, ensure_ascii=False, sort_keys=True)
            for name, split in made.items()
            for reject in sorted(split.rejects, key=lambda reject: reject.record)
        ]
        if self.options.on_error == "quarantine" and lines:
            earlier = b"" if self.appended is None else self.appended.quarantine
            replace_file(
                folder / QUARANTINE,
                earlier + ("\n".join(lines) + "\n").encode(errors="backslashreplace"),
            )
        if self.options.legacy_metadata:
            for name, content in legacy_files(manifest.schema, manifest.splits).items():
                replace_file(folder / name, content)
        replace_file(folder / MANIFEST_NAME, manifest.to_bytes())


def _nothing_to_write(rejects: list[Reject]) -> SourceError:
    if rejects:
        return SourceError(
            f"expected records, got {len(rejects):,} of which none can be written;"
            f" the first: {rejects[0]}"
        )
    return SourceError(
        "expected records, got none\n"
        "hint: an iterator that was gone through is empty; pass a function that returns a new one"
    )
