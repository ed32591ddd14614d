"""The contents of a dataset, whoever wrote it, and their summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from datum.errors import Damage, count_of, format_bytes, inert
from datum.format import Compression, Manifest, SplitInfo
from datum.schema import Feature, Schema

__all__ = [
    "Contents",
    "Writer",
    "summarize",
]

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


SHOWN_CLASSES = 5


def summarize(contents: Contents) -> str:
    """The text that `repr(dataset)` gives."""
    compression = f", {contents.compression}" if contents.compression else ""
    writer = "" if contents.is_published else f", {contents.writer}"
    lines = [f"Dataset({str(contents.folder)!r}{compression}{writer})"]
    splits = {name: _describe_split(split) for name, split in contents.splits.items()}
    features = {
        name: _describe_feature(feature, contents.metadata.get(name, {}))
        for name, feature in contents.schema.items()
    }
    for heading, members in (("splits", splits), ("features", features)):
        shown = {inert(name): text for name, text in members.items()}
        width = max(map(len, shown), default=0)
        lines.append(f"  {heading}:")
        lines += [f"    {name:<{width}}  {text}" for name, text in shown.items()]
    return "\n".join(map(inert, lines))


def _describe_split(split: SplitInfo) -> str:
    records, shards = count_of(split.records, "record"), count_of(len(split.shards), "shard")
    return f"{records}, {shards}, {format_bytes(split.bytes)}"


def _describe_feature(feature: Feature, metadata: Mapping[str, Any]) -> str:
    text = repr(feature).removeprefix("Feature(").removesuffix(")")
    classes = metadata.get("class_names")
    if not isinstance(classes, list):
        return text
    shown = ", ".join(map(str, classes[:SHOWN_CLASSES]))
    more = ", ..." if len(classes) > SHOWN_CLASSES else ""
    return f"{text}, {count_of(len(classes), 'class', 'classes')}: {shown}{more}"
