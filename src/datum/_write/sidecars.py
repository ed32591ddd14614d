"""Files beside the shards for other programs: `datum.write(..., sidecars=[...])`."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datum._core import Kind
from datum.errors import Call, Message, Option, SchemaError, Text, WriteError, suggest
from datum.format.durable import replace_file, sync_folder
from datum.format.layout import StoredColumn, lower
from datum.format.manifest import (
    MANIFEST_NAME,
    Manifest,
    SplitInfo,
    is_own_shard_name,
    parse_shard_name,
    shard_name,
)
from datum.schema import Feature, Schema
from datum.schema.feature import TIMES

__all__ = [
    "FEATURES_FILE",
    "INFO_FILE",
    "LINKS_FOLDER",
    "MAPPING_FILE",
    "NAME",
    "SHARD_FILE",
    "SIDECARS",
    "SIDECAR_FILES",
    "Sidecar",
    "check_sidecars",
    "find_sidecars",
    "make_sidecars",
    "older_files",
    "owned_sidecar_names",
    "save_sidecars",
    "tfds_files",
    "write_sidecars",
]

INFO_FILE = "dataset_info.json"
FEATURES_FILE = "features.json"
LINKS_FOLDER = "tfds"  # links with the names that TFDS expects, after an append
NAME = "datum"  # not the name of the folder, so that the same call writes the same bytes
_TEMPLATE = "{SPLIT}-{SHARD_X_OF_Y}.{FILEFORMAT}"
_MODULES = {
    "BBoxFeature": "bounding_boxes",
    "ClassLabel": "class_label_feature",
    "FeaturesDict": "features_dict",
    "Image": "image_feature",
    "Scalar": "scalar",
    "Sequence": "sequence_feature",
    "Tensor": "tensor_feature",
    "Text": "text_feature",
}
_DECODED = {"bmp", "jpeg", "png"}  # to three dimensions by tf.image.decode_image
_RAW_UNREAD = ("uint32",)  # tf.io.decode_raw has no such type
_LISTS = {Kind.BYTES: "string", Kind.FLOAT: "float32", Kind.INT64: "int64"}
_FLAT, _LENGTHS = "/ragged_flat_values", "/ragged_row_lengths_"  # as TFDS stores nested lists


@dataclass(slots=True)
class Sidecar:
    """The files that one other program needs.

    Attributes:
        files: Contents by file name.
        links: Relative links to shards by name, where the program cannot find the shards otherwise.
        notes: Differences between what the program reads and what Datum reads, one line each.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def tfds_files(manifest: Manifest) -> Sidecar:
    """The files by which TensorFlow Datasets reads a dataset: features, splits, class names.

    TFDS reads plain `tf.train.Example` records, so the shards stay as they are. A feature without
    an equivalent is mapped to the closest one, and a note says so:

    | schema | TFDS |
    |---|---|
    | numbers, strings | Scalar, Tensor, Text |
    | numbers with `class_names` | ClassLabel |
    | four float32 with a `bbox_format` | BBoxFeature |
    | image; images | Image; Sequence(Image) |
    | raw | Tensor of encoding "bytes" |
    | more than one dimension of any length, sparse | its stored keys, each a Tensor |
    | optional image, or a format that TensorFlow does not decode | its bytes |
    | in the feature lists of a SequenceExample | left out |
    """
    made = Sidecar()
    nodes: dict[str, Any] = {}
    for name, feature in manifest.schema.items():
        writing = _Writing(name, feature, manifest.metadata.get(name, {}), made)
        nodes.update(writing.nodes())
    root = _node("FeaturesDict", "featuresDict", {"features": nodes})
    info: dict[str, Any] = {
        "fileFormat": "tfrecord",
        "name": NAME,
        "splits": [_split(name, split, made) for name, split in manifest.splits.items()],
        "version": "1.0.0",
    }
    if {"image", "label"} <= nodes.keys():
        items = [{"featureKey": "image"}, {"featureKey": "label"}]
        info["supervisedKeys"] = {"tuple": {"items": items}}
    made.files[FEATURES_FILE] = _to_json(root)
    made.files[INFO_FILE] = _to_json(info)
    return made


def _to_json(found: Any) -> bytes:
    return (json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _split(name: str, split: SplitInfo, made: Sidecar) -> dict[str, Any]:
    """Description of a split for TFDS, with links if its shards follow no single pattern."""
    names = [shard.name for shard in split.shards]
    wanted = [shard_name(name, number, len(names)) for number in range(len(names))]
    template = _TEMPLATE
    if names != wanted:
        template = f"{LINKS_FOLDER}/{_TEMPLATE}"
        made.links |= {
            f"{LINKS_FOLDER}/{link}": f"../{shard}"
            for link, shard in zip(wanted, names, strict=True)
        }
        if all(parse_shard_name(shard) for shard in names):
            why = "its shards come from several writes, and TFDS expects one pattern of names"
        else:
            why = "TFDS has no pattern for the names of its shards"
        made.notes.append(f"tfds: split {name!r}: {why}: it finds them by links in {LINKS_FOLDER}/")
    if "." in name:
        made.notes.append(
            f"tfds: split {name!r}: as_dataset(split=...) takes no name with a dot;"
            f" as_dataset()[{name!r}] does"
        )
    return {
        "filepathTemplate": template,
        "name": name,
        "numBytes": str(sum(shard.bytes for shard in split.shards)),
        "shardLengths": [str(shard.records) for shard in split.shards],
    }


@dataclass
class _Writing:
    """One feature and its metadata."""

    name: str
    feature: Feature
    about: Mapping[str, Any]
    made: Sidecar

    def nodes(self) -> Iterator[tuple[str, Any]]:
        """Feature connectors of TFDS by name, which is the key in the records."""
        feature = self.feature
        if feature.sequence:
            self._note("is left out: TFDS reads no feature lists of SequenceExample")
            return
        columns = lower(self.name, feature)
        key = columns[0].key
        if key != self.name and len(columns) == 1:
            self._note(f"is called {key!r}, as its key is")
        if feature.encoding == "image":
            yield key, self._image()
        elif feature.encoding == "raw":
            yield from self._raw(columns)
        elif feature.encoding == "sparse" or feature.ragged_rank > 1:
            yield from self._nested(columns)
        else:
            yield key, self._values(key)

    def _note(self, text: str) -> None:
        self.made.notes.append(f"tfds: {self.name!r} {text}")

    # Lists of their type.

    def _values(self, key: str) -> Any:
        feature = self.feature
        is_list = feature.ragged_rank == 1
        if feature.default is not None and not is_list:
            self._note("comes as the smallest number, or empty, where a record has the default")
        elif feature.optional and is_list:
            self._note("comes empty where a record lacks it")
        elif feature.optional and feature.dtype not in ("str", "bytes"):
            self._note("comes as the smallest number where a record lacks it")
        if feature.dtype in TIMES:
            unit = feature.dtype.partition("[")[2][:-1]
            self._note(f"comes as int64, the count of its unit, {unit}")
        if self.about.get("class_names") and (label := self._label(key)):
            return label
        if self._is_box():
            box = {"shape": _dims((4,)), "dtype": "float32"}
            box["bboxFormat"] = self.about["bbox_format"]
            node = _node("BBoxFeature", "boundingBox", box)
            return node if len(feature.shape) == 1 else _sequence(node, feature.shape[0])
        if feature.dtype == "str" and not feature.optional and len(feature.shape) < 2:
            text = _node("Text", "text", {})
            return _sequence(text, feature.shape[0]) if feature.shape else text
        dtype = {"str": "string", "bytes": "string"}.get(feature.dtype, feature.dtype)
        dtype = "int64" if feature.dtype in TIMES else dtype
        return _tensor(dtype, feature.shape, optional=feature.optional and not is_list)

    def _is_box(self) -> bool:
        is_four = self.feature.shape[-1:] == (4,) and len(self.feature.shape) <= 2
        is_plain = self.feature.dtype == "float32" and not self.feature.optional
        return is_four and is_plain and isinstance(self.about.get("bbox_format"), str)

    def _label(self, key: str) -> Any:
        """A ClassLabel with its names in a file; None if TFDS cannot represent it."""
        feature, names = self.feature, self.about["class_names"]
        file = f"{key.replace('/', '.')}.labels.txt"
        is_number = feature.dtype.startswith(("int", "uint")) and len(feature.shape) < 2
        if not is_number or not isinstance(names, Sequence):
            return None
        problem = None
        if feature.optional and not feature.ragged_rank:
            problem = "a ClassLabel is in every record"
        elif file in self.made.files or len(file.encode()) > 255:
            problem = f"no file can be called {file[:100]!r} for them"
        elif len({str(name).strip() for name in names} - {""}) != len(names) or any(
            "\n" in str(name) or str(name) != str(name).strip() for name in names
        ):
            problem = "names of TFDS are lines, each another"
        if problem:
            self._note(f"has no names of classes: {problem}")
            return None
        self.made.files[file] = ("\n".join(map(str, names)) + "\n").encode()
        node = _node("ClassLabel", "classLabel", {"numClasses": str(len(names))})
        return _sequence(node, feature.shape[0]) if feature.shape else node

    # Images.

    def _image(self) -> Any:
        feature = self.feature
        *dims, height, width, channels = feature.shape
        formats = set(self.about.get("formats", ()))
        channels = channels or max(self.about.get("channels", (0,)))
        problem = None
        if feature.optional and not dims:
            problem = "TFDS has no optional images"
        elif formats - _DECODED:
            others = ", ".join(sorted(formats - _DECODED))
            problem = f"TFDS does not decode {others}"
        elif channels not in (1, 3, 4):
            problem = f"TFDS decodes to 1, 3 or 4 channels, not {channels or 'any'}"
        elif channels == 4 and "jpeg" in formats:
            problem = "TFDS decodes no JPEG to 4 channels"
        if problem:
            self._note(f"comes as the bytes of its file: {problem}")
            return _tensor("string", tuple(dims), optional=feature.optional and not dims)
        content = {"shape": _dims((height, width, channels)), "dtype": feature.dtype}
        if formats in ({"jpeg"}, {"png"}):
            content["encodingFormat"] = min(formats)
        node = _node("Image", "image", content)
        return _sequence(node, dims[0]) if dims else node

    # Raw bytes, and features stored under several keys.

    def _raw(self, columns: Sequence[StoredColumn]) -> Iterator[tuple[str, Any]]:
        feature, key = self.feature, columns[0].key
        if feature.shape.count(None) > 1 and len(columns) > 1:
            self._note_keys(columns, "little-endian bytes and their shape")
            yield from self._stored(columns)
        elif feature.dtype in _RAW_UNREAD or feature.optional:
            why = f"no {feature.dtype}" if feature.dtype in _RAW_UNREAD else "nothing optional"
            self._note(f"comes as little-endian bytes: of bytes TFDS makes {why}")
            yield key, _tensor("string", (), optional=feature.optional)
        else:
            yield key, _tensor(feature.dtype, feature.shape, encoding="bytes")

    def _nested(self, columns: Sequence[StoredColumn]) -> Iterator[tuple[str, Any]]:
        feature, rank = self.feature, self.feature.ragged_rank
        outer = columns[0].key.removesuffix(_FLAT)
        own = (outer + _FLAT, *(f"{outer}{_LENGTHS}{level}" for level in range(rank - 1)))
        if rank > 1 and not feature.is_raw and own == tuple(column.key for column in columns):
            dtype = "string" if feature.is_string else feature.dtype
            node = _tensor(dtype, feature.shape[rank:])
            for _ in range(rank):
                node = _sequence(node, None)
            yield outer, node
            return
        is_sparse = feature.encoding == "sparse"
        what = "values and where they are" if is_sparse else "values and row lengths"
        self._note_keys(columns, what)
        yield from self._stored(columns)

    def _note_keys(self, columns: Sequence[StoredColumn], what: str) -> None:
        keys = ", ".join(repr(column.key) for column in columns)
        self._note(f"comes as it is stored, {what}: {keys}")

    def _stored(self, columns: Sequence[StoredColumn]) -> Iterator[tuple[str, Any]]:
        """Each stored key as a Tensor of any length."""
        feature = self.feature
        for column in columns:
            if column.role != "values" or feature.is_raw:
                shape: tuple[int | None, ...] = () if column.role == "values" else (None,)
                yield column.key, _tensor(_LISTS[column.kind], shape)
                continue
            dtype = feature.dtype if column.kind is not Kind.BYTES else "string"
            dtype = "int64" if feature.dtype in TIMES else dtype
            inner = () if feature.encoding == "sparse" else feature.shape[feature.ragged_rank :]
            assert math.prod(n or 1 for n in inner) == max(column.unit, 1)
            yield column.key, _tensor(dtype, (None, *inner))


# Nodes of features.json.


def _node(kind: str, field_name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    module = f"tensorflow_datasets.core.features.{_MODULES[kind]}.{kind}"
    return {"pythonClassName": module, field_name: dict(content)}


def _dims(shape: Sequence[int | None]) -> dict[str, Any]:
    return {"dimensions": [str(-1 if n is None else n) for n in shape]} if shape else {}


def _tensor(
    dtype: str, shape: tuple[int | None, ...], *, encoding: str = "none", optional: bool = False
) -> dict[str, Any]:
    content: dict[str, Any] = {"shape": _dims(shape), "dtype": dtype, "encoding": encoding}
    if optional:
        content["optional"] = True
    is_scalar = not shape and encoding == "none"
    return _node("Scalar" if is_scalar else "Tensor", "tensor", content)


def _sequence(node: Mapping[str, Any], length: int | None) -> dict[str, Any]:
    content = {"feature": node, "length": str(-1 if length is None else length)}
    return _node("Sequence", "sequence", content)


SHARD_FILE = "shard_info.json"
MAPPING_FILE = "datum_to_type_and_shape_mapping.json"
_TYPES = {Kind.BYTES: "string", Kind.FLOAT: "float", Kind.INT64: "int"}


def older_files(schema: Schema, splits: Mapping[str, SplitInfo]) -> dict[str, bytes]:
    """The two JSON files of the older library, by name.

    The mapping describes how that library parses each key: "dense" keys hold the same number of
    values in every record, others any number. A length that differs is -1. Raises SchemaError for
    sequences, which it cannot parse.

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
    """Yield the keys of a feature with their types and shapes."""
    if feature.sequence:
        raise SchemaError(
            "the older library cannot read a sequence",
            where=f"feature {name!r}",
            hint=Text("leave 'older' out of ", Option("sidecars"), ", or leave out the feature"),
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
    """Shape of the values, and whether all records have the same number."""
    if feature.holds_images:
        return [-1], False
    if feature.encoding == "image":
        # That library decodes to grey for rank 2 and to colours for rank 3.
        size = [-1 if n is None else n for n in feature.shape]
        return (size[:2] if size[2] == 1 else size), not feature.optional
    if feature.encoding == "raw":
        return [], not feature.optional
    if feature.encoding == "sparse" or feature.ragged_rank > 1:
        return [-1], False
    if feature.is_string:
        is_single = feature.shape == ()
        # For rank 2 or 3 it would decode strings as images.
        return ([] if is_single else [-1]), is_single and not feature.optional
    if feature.optional or feature.ragged_rank:
        return [-1, *(n for n in feature.shape[1:] if n is not None)], False
    return [n for n in feature.shape if n is not None], True


def _older(manifest: Manifest) -> Sidecar:
    return Sidecar(older_files(manifest.schema, manifest.splits))


def _label_map(manifest: Manifest) -> Sidecar:
    """The label map of the TF Object Detection API."""
    named = {
        name: about["class_names"]
        for name, about in manifest.metadata.items()
        if name in manifest.schema and about.get("class_names")
    }
    name = "labels" if "labels" in named else next(iter(named), None)
    if name is None:
        return Sidecar({}, notes=["label_map: not written, as no feature has class names"])
    first, *others = map(str, named[name])
    if first.lower() != "background":
        why = f"ids of {name!r} start at 0, but a label map starts at 1"
        return Sidecar({}, notes=[f"label_map: not written, as {why}"])
    items = (
        f"item {{\n  id: {number}\n  name: {json.dumps(label, ensure_ascii=False)}\n}}\n"
        for number, label in enumerate(others, 1)
    )
    return Sidecar({LABEL_MAP_FILE: f"{_LABEL_MAP_MARK}\n{''.join(items)}".encode()})


LABEL_MAP_FILE = "label_map.pbtxt"
_LABEL_MAP_MARK = f"# Datum wrote this from {MANIFEST_NAME}, and replaces it."
SIDECARS: Mapping[str, Callable[[Manifest], Sidecar]] = {
    "tfds": tfds_files,
    "label_map": _label_map,
    "older": _older,
}
_READERS = {"tfds": "TensorFlow Datasets", "older": "the older library"}
_FIXED = {
    "tfds": (INFO_FILE, FEATURES_FILE, LINKS_FOLDER),
    "label_map": (LABEL_MAP_FILE,),
    "older": (SHARD_FILE, MAPPING_FILE),
}
SIDECAR_FILES = tuple(name for names in _FIXED.values() for name in names if name != LINKS_FOLDER)


_OPTION = Option("sidecars")


def check_sidecars(sidecars: Any, compression: str | None) -> tuple[str, ...]:
    """Check the option `sidecars`; return its names without duplicates."""
    if isinstance(sidecars, str) or not isinstance(sidecars, Iterable):
        hint = Text(Option("sidecars", [sidecars])) if isinstance(sidecars, str) else ""
        problem = Text("expected ", _OPTION, f" to be a list of names, got {sidecars!r}")
        raise TypeError(Message(problem, hint=hint))
    names = tuple(dict.fromkeys(sidecars))
    for name in names:
        if name not in SIDECARS:
            hint = suggest(str(name).lower(), SIDECARS)
            listed = ", ".join(map(repr, SIDECARS))
            problem = Text("expected ", _OPTION, f" of {listed}, got {name!r}")
            raise ValueError(Message(problem, hint=hint))
        if compression is not None and name in _READERS:
            got = f" with {name!r}, as {_READERS[name]} reads none, got {compression!r}"
            problem = Text(_OPTION, ": expected no ", Option("compression"), got)
            hint = Text("leave out ", Option("compression", compression))
            raise ValueError(Message(problem, hint=hint))
    return names


def make_sidecars(manifest: Manifest, names: Collection[str]) -> list[Sidecar]:
    """Make the files of these sidecars."""
    return [SIDECARS[name](manifest) for name in SIDECARS if name in names]


def save_sidecars(folder: Path, sidecars: Iterable[Sidecar]) -> None:
    """Write the files, replacing those of the same names."""
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
    """Names of the sidecars that Datum wrote into a folder."""
    return tuple(name for name, (main, *_) in _FIXED.items() if _is_own(folder / main))


def _is_own(path: Path) -> bool:
    """Return whether Datum wrote this file."""
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
    return all(  # shards of the older library itself have other names
        isinstance(shards, dict) and all(map(is_own_shard_name, shards))
        for shards in found.values()
    )


def owned_sidecar_names(folder: Path, manifest: Manifest | None) -> set[str]:
    """Names of the files in a folder that belong to sidecars."""
    found = find_sidecars(folder)
    names = {entry for name in found for entry in _FIXED[name]}
    if "tfds" in found and manifest is not None:
        names.update(tfds_files(manifest).files)
    return names


def write_sidecars(path: str | os.PathLike[str], sidecars: Iterable[str]) -> tuple[str, ...]:
    """Write the files by which other programs read an existing dataset.

    They are those of `datum.write(..., sidecars=...)`, and replace earlier ones by Datum. Returns
    differences between what these programs read and what Datum reads, one line each. Raises
    WriteError without a `datum.json`, and for a file of the same name that is not from Datum.

    Args:
        path: Folder of the dataset.
        sidecars: Names of sidecars: "tfds" for TensorFlow Datasets, "label_map" for the TF Object
            Detection API, "older" for the older library of this name.

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
            hint=Text(
                Call(f"datum.load({str(folder)!r}).save_manifest()"),
                " writes one for files of other programs",
            ),
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
                "this file is not from Datum, and the sidecar would replace it",
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
