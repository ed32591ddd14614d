"""Files beside the shards for other programs: `datum.write(..., sidecars=[...])`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datum._core import Kind
from datum._write.tfds_sidecar import FEATURES_FILE, INFO_FILE, LINKS_FOLDER, NAME, tfds_files
from datum.errors import Message, SchemaError, WriteError, suggest
from datum.format.durable import replace_file, sync_folder
from datum.format.layout import lower
from datum.format.manifest import MANIFEST_NAME, Manifest, SplitInfo, is_own_shard_name
from datum.schema import Feature, Schema

__all__ = [
    "MAPPING_FILE",
    "SHARD_FILE",
    "SIDECARS",
    "Sidecar",
    "check_sidecars",
    "find_sidecars",
    "make_sidecars",
    "older_files",
    "owned_sidecar_names",
    "save_sidecars",
    "write_sidecars",
]

SHARD_FILE = "shard_info.json"
MAPPING_FILE = "datum_to_type_and_shape_mapping.json"
_TYPES = {Kind.BYTES: "string", Kind.FLOAT: "float", Kind.INT64: "int"}


def older_files(schema: Schema, splits: Mapping[str, SplitInfo]) -> dict[str, bytes]:
    """What stands in each of the two files, by their names.

    The mapping describes every key of the records as that library parses it: "dense" keys hold
    the same number of values in every record, the others any number. A length that differs is -1.
    Sequences, which it cannot parse, raise SchemaError.

    >>> from datum.format.manifest import ShardInfo
    >>> shard = ShardInfo("train-00000-of-00001.tfrecord", records=2, bytes=99, crc32c=0)
    >>> schema = Schema({"label": Feature("int64", (2,))})
    >>> files = older_files(schema, {"train": SplitInfo((shard,))})
    >>> files["shard_info.json"]
    b'{"train": {"train-00000-of-00001.tfrecord": 2}}'
    >>> files["datum_to_type_and_shape_mapping.json"]
    b'{"label": {"type": "int", "shape": [2], "dense": true}}'
    """
    shards = {
        split: {shard.name: shard.records for shard in found.shards}
        for split, found in splits.items()
    }
    mapping = {
        key: found for name, feature in schema.items() for key, found in _describe(name, feature)
    }
    return {SHARD_FILE: json.dumps(shards).encode(), MAPPING_FILE: json.dumps(mapping).encode()}


def _describe(name: str, feature: Feature) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each key that a feature lies under: its type and shape."""
    if feature.sequence:
        raise SchemaError(
            "expected one that the older library reads, got a sequence",
            where=f"feature {name!r}",
            hint="leave 'older' out of sidecars, or drop the feature",
            feature=name,
        )
    values, *others = lower(name, feature)
    shape, is_dense = _shape_of(feature)
    yield values.key, {"type": _TYPES[values.kind], "shape": shape, "dense": is_dense}
    for column in others:
        is_shape = column.role == "shape" and not feature.optional
        length = len(feature.shape) if is_shape else -1
        yield column.key, {"type": "int", "shape": [length], "dense": is_shape}


def _shape_of(feature: Feature) -> tuple[list[int], bool]:
    """The shape of the values, and whether each record has as many."""
    if feature.holds_images:
        return [-1], False
    if feature.encoding == "image":
        # That library makes grey values of an array of rank 2, and colours of one of rank 3.
        size = [-1 if n is None else n for n in feature.shape]
        return (size[:2] if size[2] == 1 else size), not feature.optional
    if feature.encoding == "raw":
        return [], not feature.optional
    if feature.encoding == "sparse" or feature.ragged_rank > 1:
        return [-1], False
    if feature.is_string:
        is_single = feature.shape == ()
        # Of rank 2 or 3 it would take strings for images.
        return ([] if is_single else [-1]), is_single and not feature.optional
    if feature.optional or feature.ragged_rank:
        return [-1, *(n for n in feature.shape[1:] if n is not None)], False
    return [n for n in feature.shape if n is not None], True


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The files that one other program needs.

    Attributes:
        files: their contents, by name.
        links: relative links to shards, by name.
        notes: what that program reads otherwise than Datum does, a line each.
    """

    files: Mapping[str, bytes]
    links: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def _older(manifest: Manifest) -> Sidecar:
    return Sidecar(older_files(manifest.schema, manifest.splits))


def _tfds(manifest: Manifest) -> Sidecar:
    made = tfds_files(manifest)
    return Sidecar(made.files, made.links, tuple(made.notes))


def _label_map(manifest: Manifest) -> Sidecar:
    """The classes of a detection dataset, as the TF Object Detection API wants them."""
    named = {
        name: about["class_names"]
        for name, about in manifest.metadata.items()
        if name in manifest.schema and about.get("class_names")
    }
    name = "labels" if "labels" in named else next(iter(named), None)
    if name is None:
        return Sidecar({}, notes=("label_map: not written, as no feature has names of classes",))
    first, *others = map(str, named[name])
    if first.lower() != "background":
        why = f"ids of {name!r} start at 0, and those of a label map at 1"
        return Sidecar({}, notes=(f"label_map: not written, as {why}",))
    items = (
        f"item {{\n  id: {number}\n  name: {json.dumps(label, ensure_ascii=False)}\n}}\n"
        for number, label in enumerate(others, 1)
    )
    return Sidecar({LABEL_MAP_FILE: f"{_LABEL_MAP_MARK}\n{''.join(items)}".encode()})


LABEL_MAP_FILE = "label_map.pbtxt"
_LABEL_MAP_MARK = f"# Datum wrote this from {MANIFEST_NAME}, and replaces it."
SIDECARS: Mapping[str, Callable[[Manifest], Sidecar]] = {
    "tfds": _tfds,
    "label_map": _label_map,
    "older": _older,
}
_READERS = {"tfds": "TensorFlow Datasets", "older": "the older library"}
_FIXED = {
    "tfds": (INFO_FILE, FEATURES_FILE, LINKS_FOLDER),
    "label_map": (LABEL_MAP_FILE,),
    "older": (SHARD_FILE, MAPPING_FILE),
}


def check_sidecars(sidecars: Any, compression: str | None) -> tuple[str, ...]:
    """The names of sidecars, each once; refuses what cannot be meant."""
    if isinstance(sidecars, str) or not isinstance(sidecars, Iterable):
        hint = f"sidecars=[{sidecars!r}]" if isinstance(sidecars, str) else ""
        raise TypeError(
            Message(f"expected `sidecars` to be a list of names, got {sidecars!r}", hint=hint)
        )
    names = tuple(dict.fromkeys(sidecars))
    for name in names:
        if name not in SIDECARS:
            hint = suggest(str(name).lower(), SIDECARS)
            listed = ", ".join(map(repr, SIDECARS))
            raise ValueError(Message(f"expected `sidecars` of {listed}, got {name!r}", hint=hint))
        if compression is not None and name in _READERS:
            raise ValueError(
                Message(
                    f"sidecars: expected no `compression` with {name!r}, as {_READERS[name]} reads"
                    f" none, got {compression!r}",
                    hint=f"leave out compression={compression!r}",
                )
            )
    return names


def make_sidecars(manifest: Manifest, names: Collection[str]) -> list[Sidecar]:
    """What stands in the files of these sidecars."""
    return [SIDECARS[name](manifest) for name in SIDECARS if name in names]


def save_sidecars(folder: Path, sidecars: Iterable[Sidecar]) -> None:
    """Write the files; those of the same names are replaced."""
    for sidecar in sidecars:
        for name, target in sidecar.links.items():
            link = folder / name
            link.parent.mkdir(exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(target)
        if sidecar.links:
            sync_folder(folder / LINKS_FOLDER)
        for name, content in sidecar.files.items():
            replace_file(folder / name, content)


def find_sidecars(folder: Path) -> tuple[str, ...]:
    """The names of the sidecars that Datum wrote into a folder."""
    return tuple(name for name, (main, *_) in _FIXED.items() if _is_own(folder / main))


def _is_own(path: Path) -> bool:
    """Whether Datum wrote it, rather than another program or somebody by hand."""
    try:
        content = path.read_bytes()
        if path.name == LABEL_MAP_FILE:
            return content.startswith(_LABEL_MAP_MARK.encode())
        found = json.loads(content)
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(found, dict):
        return False
    if path.name == INFO_FILE:
        return found.get("name") == NAME
    return all(  # of the older library: its own shards have other names
        isinstance(shards, dict) and all(map(is_own_shard_name, shards))
        for shards in found.values()
    )


def owned_sidecar_names(folder: Path, manifest: Manifest | None) -> set[str]:
    """The entries of a folder that belong to the sidecars of the dataset in it."""
    found = find_sidecars(folder)
    names = {entry for name in found for entry in _FIXED[name]}
    if "tfds" in found and manifest is not None:
        names.update(tfds_files(manifest).files)
    return names


def write_sidecars(path: str | os.PathLike[str], sidecars: Iterable[str]) -> tuple[str, ...]:
    """Write the files by which other programs read a dataset that is already there.

    They are those of `datum.write(..., sidecars=...)`; earlier ones that Datum wrote are replaced.
    Returns what these programs read otherwise than Datum does, a line each. WriteError where there
    is no `datum.json`, or where a file of the same name is not Datum's.

    Args:
        path: the folder of the dataset.
        sidecars: "tfds" for TensorFlow Datasets, "label_map" for the TF Object Detection API,
            "older" for the older library of this name.

    >>> import datum
    >>> report = datum.write({"x": [1, 2]}, "plain", progress=False)
    >>> datum.write_sidecars("plain", ["tfds"])
    ()
    """
    folder = Path(path).expanduser()
    if not (folder / MANIFEST_NAME).is_file():
        raise WriteError(
            f"expected a dataset with {MANIFEST_NAME}, got none",
            where=folder,
            hint="datum.load(path).save_manifest() writes one beside records of others",
        )
    manifest = Manifest.load(folder)
    names = check_sidecars(sidecars, manifest.compression)
    made = make_sidecars(manifest, names)
    owned = owned_sidecar_names(folder, manifest)
    for name in (name for sidecar in made for name in (*sidecar.files, *sidecar.links)):
        if os.path.lexists(folder / name) and Path(name).parts[0] not in owned:
            hint = "move it elsewhere, then call again"
            if name == INFO_FILE:
                hint = "tfds.builder_from_directory reads this folder as it is"
            raise WriteError(
                "expected no such file, or one of Datum, got another",
                where=f"{folder / name}",
                hint=hint,
            )
    try:
        save_sidecars(folder, made)
    except OSError as error:
        raise WriteError(
            f"expected a folder that can be written to: {error}", where=folder
        ) from error
    return tuple(note for sidecar in made for note in sidecar.notes)
