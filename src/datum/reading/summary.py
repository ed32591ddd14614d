"""A dataset in a few lines: its splits, and its features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datum.errors import inert
from datum.format import SplitInfo
from datum.format.wording import count_of, format_bytes
from datum.reading.contents import Contents
from datum.schema import Feature

__all__ = ["summarize"]

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
