"""Contents of a dataset of any writer, and their summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from datum.errors import Damage, count_of, format_bytes, inert
from datum.format import Compression, Manifest, SplitInfo
from datum.schema import Feature, Schema

if TYPE_CHECKING:
    from datum._storage.client import RemoteFolder

__all__ = [
    "Contents",
    "Writer",
    "summarize",
]

Writer = Literal["datum", "tfds", "older datum", "tfrecord files"]


@dataclass(frozen=True, slots=True)
class Contents:
    """Description of a dataset, with everything that is needed to read it.

    Attributes:
        folder: Folder of the shards; `folder / shard.name` is the path of a shard, even if its name
            is an absolute path.
        schema: Schema of the records.
        splits: Shards of each split by name.
        metadata: Metadata of features by name: class names, vocabularies.
        statistics: Statistics of each split by name.
        compression: Compression of all shards that are not empty; None if they differ.
        writer: Origin of the description: "datum" (its manifest), "tfds", "older datum", or none
            ("tfrecord files").
        damage: Damage that was skipped when the records of files without a description were
            counted, and is skipped when they are read.
        is_part: Whether the manifest has more shards than these.
        notes: Warnings for the user who opens the dataset.
        remote: Folder of objects that `folder` has copies of; None for local files.
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
    remote: RemoteFolder | None = None

    @property
    def place(self) -> str:
        """The path or the URL of the dataset."""
        return str(self.folder) if self.remote is None else self.remote.url

    @property
    def left_out(self) -> dict[str, tuple[int, ...]]:
        """The shards whose damage is skipped, by name.

        Each has the numbers of its intact records that are no Examples, where each damaged place
        counts as one record.
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
        """Whether there is a manifest to compare the shards with."""
        return self.writer == "datum"

    @classmethod
    def of_manifest(cls, folder: Path, manifest: Manifest) -> Contents:
        """The contents that a manifest in this folder describes."""
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
    """The text of `repr(dataset)`."""
    compression = f", {contents.compression}" if contents.compression else ""
    writer = "" if contents.is_published else f", {contents.writer}"
    lines = [f"Dataset({contents.place!r}{compression}{writer})"]
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
