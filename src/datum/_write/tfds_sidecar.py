"""The files by which TensorFlow Datasets reads a dataset: its features, splits and class names.

TFDS reads plain `tf.train.Example` records, so the shards stay as they are. A feature that TFDS has
no name for comes as close as it can be, and a note says so:

| schema | TFDS |
|---|---|
| numbers, strings | Scalar, Tensor, Text |
| numbers with `class_names` | ClassLabel |
| four float32 with a `bbox_format` | BBoxFeature |
| image; images | Image; Sequence(Image) |
| raw | Tensor of encoding "bytes" |
| more than one dimension of any length, sparse | the keys that it is stored under, each a Tensor |
| optional image, or one of a format that TensorFlow does not decode | its bytes |
| in the feature lists of a SequenceExample | left out |
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from datum._core import Kind
from datum.format.layout import StoredColumn, lower
from datum.format.manifest import Manifest, SplitInfo, parse_shard_name, shard_name
from datum.schema import Feature
from datum.schema.feature import TIMES

__all__ = [
    "FEATURES_FILE",
    "INFO_FILE",
    "LINKS_FOLDER",
    "NAME",
    "TfdsFiles",
    "tfds_files",
]

INFO_FILE = "dataset_info.json"
FEATURES_FILE = "features.json"
LINKS_FOLDER = "tfds"  # where shards have the names that TFDS looks for, after an append
NAME = "datum"  # not that of the folder: the same call makes the same bytes
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
_DECODED = {"bmp", "jpeg", "png"}  # by tf.image.decode_image, to three dimensions
_RAW_UNREAD = ("uint32",)  # tf.io.decode_raw has no such type
_LISTS = {Kind.BYTES: "string", Kind.FLOAT: "float32", Kind.INT64: "int64"}
_FLAT, _LENGTHS = "/ragged_flat_values", "/ragged_row_lengths_"  # as TFDS itself stores nested ones


@dataclass
class TfdsFiles:
    """What stands beside the shards for TFDS.

    Attributes:
        files: their contents, by name.
        links: relative links to shards, by name, where TFDS could not find the shards otherwise.
        notes: what TFDS reads otherwise than Datum does, a line each.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def tfds_files(manifest: Manifest) -> TfdsFiles:
    """The files for a dataset; no feature is an error, those that cannot be read are noted."""
    made = TfdsFiles()
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


def _split(name: str, split: SplitInfo, made: TfdsFiles) -> dict[str, Any]:
    """What TFDS is told of a split; its shards have one pattern of names, or get links of one."""
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
            why = "its shards are of several writes, and TFDS knows one pattern of names"
        else:
            why = "its shards have other names than TFDS can be told"
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
    """One feature, and what is known of it."""

    name: str
    feature: Feature
    about: Mapping[str, Any]
    made: TfdsFiles

    def nodes(self) -> Iterator[tuple[str, Any]]:
        """The connectors that read it, by their names, which are the keys of the records."""
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
        """A label, with its names in a file; None where TFDS cannot have one."""
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

    # Bytes that stand for numbers, and what lies under several keys.

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
        """Each key by itself, with any number of values."""
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
