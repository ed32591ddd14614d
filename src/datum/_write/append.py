"""Records appended to an existing dataset: new shards, one manifest for old and new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datum._write.options import WriteOptions
from datum._write.sidecars import find_sidecars
from datum._write.staging import QUARANTINE
from datum.errors import Option, SchemaError, Text, WriteError
from datum.format import Manifest, SplitInfo, Statistics, stores_alike
from datum.format.manifest import parse_shard_name
from datum.schema import Feature, Schema, SchemaGuess
from datum.schema.feature import FLOATS_ON_WIRE

__all__ = [
    "Appended",
    "append_to",
    "join_metadata",
    "merge_schemas",
]


@dataclass(frozen=True)
class Appended:
    """The dataset that records are appended to.

    Attributes:
        manifest: Manifest before the append.
        generation: Number of this append, counted from 1.
        quarantine: Content of its list of rejected records.
        sidecars: Names of the sidecars in its folder.
    """

    manifest: Manifest
    generation: int
    quarantine: bytes
    sidecars: tuple[str, ...] = ()

    @property
    def images(self) -> frozenset[str]:
        """Names of image features, which rows of bytes alone do not show."""
        schema = self.manifest.schema
        return frozenset(name for name, one in schema.items() if one.encoding == "image")

    def widen(self, schema: Schema) -> Schema:
        """Merge the schema of new records with the old one, without rewriting old records."""
        old = self.manifest.schema
        schema = Schema(
            {name: _stored_like(old.get(name), feature) for name, feature in schema.items()}
        )
        try:
            merged = merge_schemas(old, schema)
        except SchemaError as error:
            raise SchemaError(
                Text("expected records like those in the dataset: ", error.parts.line),
                hint=error.hint,
                feature=error.feature,
            ) from None
        for name, feature in old.items():
            if not stores_alike(Schema({name: feature}), merged.select([name])):
                raise SchemaError(
                    f"expected {feature!r}, as in the dataset, got {schema[name]!r}",
                    where=f"feature {name!r}",
                    hint="write old and new records together as a new dataset",
                )
        return merged

    def join(self, new: Manifest) -> Manifest:
        """The manifest of old and new shards."""
        old = self.manifest
        splits = dict(old.splits)
        statistics = {name: dict(found) for name, found in old.statistics.items()}
        for name, split in new.splits.items():
            shards = old.splits[name].shards if name in old.splits else ()
            splits[name] = SplitInfo((*shards, *split.shards))
            found = new.statistics.get(name, {})
            if found and statistics.get(name):
                merged = Statistics.from_json(statistics[name]).merge(Statistics.from_json(found))
                found = merged.to_json()
            statistics[name] = dict(found) or statistics.get(name, {})
        metadata = join_metadata([old.metadata, new.metadata])
        return Manifest(new.schema, splits, metadata, statistics, old.compression)

    def describe(self) -> dict[str, Any]:
        """Plain values that determine the appended bytes."""
        return {"generation": self.generation, "schema": self.manifest.schema.to_json()}


def _stored_like(old: Feature | None, new: Feature) -> Feature:
    """Store floats of new records as the dataset does: as raw bytes or in lists."""
    encodings = {new.encoding, "" if old is None else old.encoding}
    if old is None or old.dtype != new.dtype or encodings != {"raw", "values"}:
        return new
    return old if old.shape == new.shape and new.dtype in FLOATS_ON_WIRE else new


def append_to(target: Path, options: WriteOptions) -> Appended:
    """Open the dataset to append to."""
    manifest = Manifest.load(target)
    if manifest.compression != options.compression:
        raise WriteError(
            Text(
                "expected ",
                Option("compression", manifest.compression),
                f", as in the dataset, got {options.compression!r}",
            ),
            where=target,
        )
    names = [shard.name for split in manifest.splits.values() for shard in split.shards]
    generations = [found[3] for found in map(parse_shard_name, names) if found is not None]
    quarantine = target / QUARANTINE
    content = quarantine.read_bytes() if quarantine.is_file() else b""
    return Appended(manifest, max(generations, default=0) + 1, content, find_sidecars(target))


def join_metadata(parts: Iterable[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Merge metadata by feature: counts of image formats add up, ranges widen.

    Raises SchemaError where parts contradict one another.
    """
    joined: dict[str, dict[str, Any]] = {}
    for part in parts:
        for name, found in part.items():
            known = joined.setdefault(name, {})
            for what, value in found.items():
                known[what] = _join(name, what, known[what], value) if what in known else value
    return joined


def _join(name: str, what: str, old: Any, new: Any) -> Any:
    if what in ("formats", "converted"):
        return {key: old.get(key, 0) + new.get(key, 0) for key in sorted({*old, *new})}
    if old == new:
        return old
    if what == "kept_float64":
        return old  # the first example is enough
    if what in ("height", "width", "channels"):
        return [min(old[0], new[0]), max(old[1], new[1])]
    if what == "dtypes":
        return sorted({*old, *new})
    if what == "class_names" and new[: len(old)] == old:
        return new  # more classes; the known ones keep their ids
    if what == "class_names" and old[: len(new)] == new:
        return old
    raise SchemaError(
        f"expected {what} {_shortened(old)} everywhere, got {_shortened(new)}",
        where=f"feature {name!r}",
    )


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def merge_schemas(first: Schema, second: Schema) -> Schema:
    """Return a schema that fits the records of both."""
    merged = {}
    for name in dict.fromkeys([*first, *second]):
        ours, theirs = first.get(name), second.get(name)
        if ours is None or theirs is None:
            lone = theirs if ours is None else ours
            assert lone is not None
            merged[name] = replace(lone, optional=True)
        elif replace(ours, optional=True) == replace(theirs, optional=True):
            merged[name] = theirs if theirs.optional else ours
        else:
            # Keys are not inferred: those that both schemas have stay.
            keys = ours.keys if ours.keys == theirs.keys else ()
            both = [replace(one, keys=()) if keys else one for one in (ours, theirs)]
            # Two records, so that an optional feature counts as present in one of them.
            guesses = (SchemaGuess.from_schema(Schema({name: one}), records=2) for one in both)
            found = next(guesses).merge(next(guesses)).to_schema()[name]
            merged[name] = replace(found, keys=keys) if keys else found
    return Schema(merged)
