"""What a dataset holds and where it lies, whoever wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from datum.errors import Damage
from datum.format import Compression, Manifest, SplitInfo
from datum.schema import Schema

__all__ = ["Contents", "Writer"]

Writer = Literal["datum", "tfds", "older datum", "tfrecord files"]


@dataclass(frozen=True, slots=True)
class Contents:
    """All that has to be known of a dataset to read it.

    Attributes:
        folder: where the shards lie: `folder / shard.name` is the path of one, also where its
            name is an absolute path.
        schema: what each record holds.
        splits: the shards of each split, by its name.
        metadata: what else is known of features, by their names: class names, vocabularies.
        statistics: what was counted in each split, by its name.
        compression: of all shards that hold anything; None too where they differ.
        writer: who described the dataset: "datum" (its manifest), "tfds", "older datum", or nobody
            ("tfrecord files").
        damage: what was left out when the records of files that nobody described were counted:
            those files are read around it.
        is_part: whether there are more shards in the manifest than these.
        notes: what whoever opens it should know.
    """

    folder: Path
    schema: Schema
    splits: Mapping[str, SplitInfo]
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    statistics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    compression: Compression | None = None
    writer: Writer = "datum"
    damage: tuple[Damage, ...] = ()
    is_part: bool = False
    notes: tuple[str, ...] = ()

    @property
    def left_out(self) -> dict[str, tuple[int, ...]]:
        """The shards that are read around their damage, by name.

        With each come its records that are whole, but no messages: their numbers, where each
        damaged place counts as one record.
        """
        names = {
            str(self.folder / shard.name): shard.name
            for split in self.splits.values()
            for shard in split.shards
        }
        found: dict[str, list[int]] = {}
        for damage in self.damage:
            if damage.file in names:
                numbers = found.setdefault(names[damage.file], [])
                numbers += [damage.record] if damage.kind == "malformed" else []
        return {name: tuple(numbers) for name, numbers in found.items()}

    @property
    def is_published(self) -> bool:
        """Whether there is a manifest, to hold the shards against."""
        return self.writer == "datum"

    @classmethod
    def of_manifest(cls, folder: Path, manifest: Manifest) -> Contents:
        """What a manifest in this folder describes."""
        return cls(
            folder,
            manifest.schema,
            manifest.splits,
            manifest.metadata,
            manifest.statistics,
            manifest.compression,
        )
