"""Schema from the `features.json` of TensorFlow Datasets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from datum.errors import ManifestError, SchemaError
from datum.format.layout import check_keys
from datum.format.strict_json import describe, parse_json
from datum.schema import Encoding, Feature, Schema

__all__ = [
    "KINDS",
    "Connector",
    "TfdsFeatures",
    "parse_labels",
    "read_features",
]

KINDS = (
    "Audio",
    "BBoxFeature",
    "ClassLabel",
    "Dataset",
    "FeaturesDict",
    "Image",
    "LabeledImage",
    "Scalar",
    "Sequence",
    "Tensor",
    "Text",
    "Translation",
    "TranslationVariableLanguages",
    "Video",
)
_CONTENTS = {  # fields of a Feature message, one of which has the settings of the connector
    "audio",
    "bounding_box",
    "class_label",
    "features_dict",
    "image",
    "json_feature",
    "sequence",
    "tensor",
    "text",
    "translation",
    "video",
}
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_INTEGER = re.compile(r"-?[0-9]{1,18}")  # a message in JSON has integers as text


@dataclass(frozen=True, slots=True)
class Connector:
    """One node of `features.json`: a feature, or a container of others.

    Attributes:
        name: Name of the feature, such as "a/b" for "b" within "a".
        class_name: Class of the connector, with its module.
        kind: One of `KINDS`, or empty for an unknown connector.
        content: Settings of a known connector, with names in snake_case.
        is_message: Whether the content was a message; versions before 4.3 wrote plain JSON.
        notes: Notes of the author: `description`, `value_range`.
    """

    name: str
    class_name: str
    kind: str
    content: Mapping[str, Any]
    is_message: bool
    notes: Mapping[str, str]

    @classmethod
    def read(cls, found: Any, name: str) -> Connector:
        """Read the connector of a node; SchemaError names the feature if it is invalid."""
        node = _names_in_snake_case(_checked_mapping(found, name, "a connector"))
        key = "type" if "type" in node else "python_class_name"
        class_name = _checked_text(node.get(key), name, f"`{key}`")
        kind = _kind_of(class_name)
        content, is_message = _read_content(node, kind, name)
        notes = {key: node[key] for key in ("description", "value_range") if node.get(key)}
        for key, text in notes.items():
            _checked_text(text, name, f"`{key}`")
        return cls(name, class_name, kind, content, is_message, notes)

    def child(self, found: Any, key: str | None = None) -> Connector:
        """Read the connector of a node within this one; `key` names it among several."""
        if key is None:
            return Connector.read(found, self.name)
        return Connector.read(found, f"{self.name}/{key}" if self.name else key)

    def nodes(self) -> Mapping[str, Any]:
        """The nodes of a FeaturesDict by key."""
        found = self.content.get("features", {}) if self.is_message else self.content
        return _checked_mapping(found, self.name, "`features`")

    def settings(self, field: str) -> Connector | None:
        """The settings within a setting; None if it is not set."""
        found = self.content.get(field)
        if found is None:
            return None
        found = _checked_mapping(found, self.name, f"`{field}`")
        return replace(self, content=_names_in_snake_case(found))

    def text(self, field: str) -> str | None:
        """A setting that is text; None if it is not set."""
        value = self.content.get(field)
        return None if value is None else _checked_text(value, self.name, f"`{field}`")

    def texts(self, field: str) -> list[str]:
        """A setting that is a list of texts."""
        value = self.content.get(field)
        items = [] if value is None else _checked_list(value, self.name, f"`{field}`")
        return [_checked_text(item, self.name, f"`{field}`") for item in items]

    def flag(self, field: str) -> bool:
        """A setting that is true or false; false if it is not set."""
        value = self.content.get(field)
        if value is not None and not isinstance(value, bool):
            raise _error(self.name, f"expected true or false as `{field}`, got {describe(value)}")
        return bool(value)

    def integer(self, field: str) -> int | None:
        """A setting that is an integer; None if it is not set."""
        value = self.content.get(field)
        return None if value is None else _checked_integer(value, self.name, f"`{field}`")

    def length(self) -> int | None:
        """Number of items of a sequence; None if it differs between records."""
        length = self.integer("length")
        if length is None:
            return 0 if self.is_message else None  # messages omit zeros
        return _checked_size(length, self.name)

    def shape(self) -> tuple[int | None, ...]:
        """The setting `shape`, with None for variable dimensions; empty if it is not set."""
        found = self.content.get("shape")
        found = [] if found is None else found
        if isinstance(found, Mapping):
            found = found.get("dimensions", [])
        return tuple(
            None
            if item is None
            else _checked_size(_checked_integer(item, self.name, "`shape`"), self.name)
            for item in _checked_list(found, self.name, "`shape`")
        )


def _error(name: str, problem: str) -> SchemaError:
    place = f"feature {name!r}" if name else "the features"
    return SchemaError(problem, where=place, feature=name or None)


def _parse(text: str, name: str) -> Any:
    try:
        return parse_json(text.encode("utf-8", "surrogatepass"))
    except ManifestError as error:
        raise _error(name, f"expected settings as JSON: {error}") from None


def _kind_of(class_name: str) -> str:
    """The kind of a connector of TFDS; others may store something else under the same names."""
    *module, kind = class_name.split(".")
    return kind if "tensorflow_datasets" in module and kind in KINDS else ""


def _read_content(node: Mapping[str, Any], kind: str, name: str) -> tuple[Mapping[str, Any], bool]:
    """The settings of a known node, and whether they were a message."""
    if not kind:
        return {}, False
    return _typed_content(node, kind, name) if "type" in node else _message_content(node, name)


def _message_content(node: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], bool]:
    fields = sorted(_CONTENTS & node.keys())
    if len(fields) != 1:
        got = ", ".join(fields) or "none"
        raise _error(name, f"expected the settings of one connector, got {got}")
    content = _checked_mapping(node[fields[0]], name, f"`{fields[0]}`")
    if fields[0] != "json_feature":
        return _names_in_snake_case(content), True
    content = _parse(_checked_text(content.get("json"), name, "`json`"), name)
    return _checked_mapping(content, name, "`json`"), False


def _typed_content(node: Mapping[str, Any], kind: str, name: str) -> tuple[Mapping[str, Any], bool]:
    """The settings of a node of versions before 4.5."""
    content, is_message = node.get("content"), bool(node.get("proto_cls"))
    if is_message and isinstance(content, str):
        content = _parse(content, name)
    content = _checked_mapping(content, name, "`content`")
    # The keys of a plain dict are names of features, which stay as they are.
    is_named = kind == "FeaturesDict" and not is_message
    return content if is_named else _names_in_snake_case(content), is_message


def _names_in_snake_case(found: Mapping[str, Any]) -> dict[str, Any]:
    """Fields in snake_case; messages may have them in camelCase."""
    return {_CAPITAL.sub(r"_\1", key).lower(): value for key, value in found.items()}


def _checked_mapping(value: Any, name: str, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _error(name, f"expected {what} as an object, got {describe(value)}")
    return value


def _checked_list(value: Any, name: str, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise _error(name, f"expected {what} as a list, got {describe(value)}")
    return value


def _checked_text(value: Any, name: str, what: str) -> str:
    if not isinstance(value, str):
        raise _error(name, f"expected {what} as text, got {describe(value)}")
    return value


def _checked_integer(value: Any, name: str, what: str) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 10**18:
        raise _error(name, f"expected {what} of integers, got {describe(value)}")
    return value


def _checked_size(value: int, name: str) -> int | None:
    """The length of a dimension; None for -1, a variable one."""
    if value < -1:
        raise _error(name, f"expected a length of -1 or more, got {value}")
    return None if value == -1 else value


MAX_DEPTH = 64  # deeper than any nested features, and far from the interpreter's limit

_Shape: TypeAlias = "tuple[int | None, ...]"
_Leaf: TypeAlias = "tuple[dict[str, Feature], dict[str, Any]]"  # and its metadata
_STRINGS = ("string", "object", "str", "bytes")  # names in several versions


@dataclass(frozen=True, slots=True)
class TfdsFeatures:
    """The content of a `features.json`.

    Attributes:
        schema: The features that can be read; nested ones are named "outer/inner".
        metadata: Metadata by feature: `class_names`, `num_classes`, `description`, `value_range`,
            `bbox_format`, `sample_rate`, `file_format` and `holds`.
        left_out: The reason for each feature that is not in the schema, by name.
        label_files: File beside `features.json` with the class names of a feature, by its name.
            It need not exist; `parse_labels` reads it.
    """

    schema: Schema
    metadata: Mapping[str, Mapping[str, Any]]
    left_out: Mapping[str, str]
    label_files: Mapping[str, str]


def read_features(found: Mapping[str, Any]) -> TfdsFeatures:
    """The schema of a parsed `features.json`, of any version of TFDS from 4.0 on.

    Features that cannot be read, such as those of unknown connectors, are listed in `left_out`.
    Raises SchemaError for content that no version wrote.

    >>> text = {"pythonClassName": "tensorflow_datasets.core.features.text_feature.Text"}
    >>> node = {"pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict"}
    >>> read_features(
    ...     {**node, "featuresDict": {"features": {"title": {**text, "text": {}}}}}
    ... ).schema
    Schema({
        'title': Feature('str'),
    })
    """
    root = Connector.read(found, "")
    if root.kind != "FeaturesDict":
        raise SchemaError(f"expected a FeaturesDict of all features, got {root.class_name!r}")
    reading = _Reading()
    reading.take(_Place(root))
    schema = Schema(reading.features)
    check_keys(schema)
    return TfdsFeatures(schema, reading.metadata, reading.left_out, reading.label_files)


def parse_labels(text: str) -> list[str]:
    r"""The class names of a file of labels, as TFDS reads it.

    >>> parse_labels("cat\ndog \n\n")
    ['cat', 'dog']
    """
    return [name for line in text.split("\n") if (name := line.strip())]


class _UnreadableError(Exception):
    """The reason why a feature is left out."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A connector and its place in the tree.

    Attributes:
        connector: The connector.
        dims: Lengths of the sequences around it, outermost first.
        file: Start of the names of its files.
        depth: Number of connectors around it.
    """

    connector: Connector
    dims: _Shape = ()
    file: str = ""
    depth: int = 0

    def inner(self, connector: Connector, *, dims: _Shape = (), file: str = "") -> _Place:
        if self.depth == MAX_DEPTH:
            raise SchemaError(f"expected features nested at most {MAX_DEPTH} deep, got more")
        return _Place(connector, self.dims + dims, file or self.file, self.depth + 1)


class _Reading:
    """The features found so far."""

    def __init__(self) -> None:
        self.features: dict[str, Feature] = {}
        self.metadata: dict[str, dict[str, Any]] = {}
        self.left_out: dict[str, str] = {}
        self.label_files: dict[str, str] = {}

    def take(self, place: _Place) -> None:
        """Add a connector and everything within it."""
        connector = place.connector
        if connector.kind in _CONTAINERS:
            for inner in _CONTAINERS[connector.kind](place):
                self.take(inner)
            return
        try:
            if not connector.kind:
                raise _UnreadableError("expected a connector of TFDS")
            features, metadata = _LEAVES[connector.kind](place)
        except _UnreadableError as error:
            self.left_out[connector.name] = f"{connector.class_name:.100}: {error!s:.300}"
            return
        for name, feature in features.items():
            if name in self.features:
                raise SchemaError(f"expected one feature {name!r}, got two")
            self.features[name] = feature
        metadata = {**connector.notes, **metadata}
        if metadata:
            self.metadata[connector.name] = metadata
        if connector.kind in ("ClassLabel", "LabeledImage"):
            self.label_files[connector.name] = f"{place.file}.labels.txt"


# Connectors within containers.


def _within_dict(place: _Place) -> Iterator[_Place]:
    for key, node in place.connector.nodes().items():
        name = key.replace("/", ".")
        file = f"{place.file}-{name}" if place.file else name
        yield place.inner(place.connector.child(node, key), file=file)


def _within_sequence(place: _Place) -> Iterator[_Place]:
    outer = place.connector
    inner = outer.child(outer.content.get("feature"))
    inner = replace(inner, notes={**outer.notes, **inner.notes})
    yield place.inner(inner, dims=(outer.length(),))


def _within_video(place: _Place) -> Iterator[_Place]:
    length, *frame = place.connector.shape() or (None, None, None, 3)
    image = replace(place.connector, kind="Image")
    image = replace(image, content={**image.content, "shape": frame})
    yield place.inner(image, dims=(length,))


def _within_translation(place: _Place) -> Iterator[_Place]:
    outer = place.connector
    for language in outer.texts("languages"):
        name = f"{outer.name}/{language}"
        yield place.inner(replace(outer, name=name, kind="Text"))


def _within_translations(place: _Place) -> Iterator[_Place]:
    outer = place.connector
    for key in ("language", "translation"):
        text = replace(outer, name=f"{outer.name}/{key}", kind="Text")
        yield place.inner(text, dims=(None,))


# Single features.


def _take_tensor(place: _Place) -> _Leaf:
    connector = place.connector
    dtype, shape = connector.text("dtype") or "", connector.shape()
    encoding = (connector.text("encoding") or "none").lower()
    if encoding == "none":
        return _take_values(place, dtype, shape)
    if encoding not in ("bytes", "zlib"):
        raise _UnreadableError(f"expected encoding none, bytes or zlib, got {encoding!r}")
    if encoding == "bytes" and not place.dims:
        return _take_raw(place, dtype, shape)
    holds = _holds("raw" if encoding == "bytes" else encoding, dtype, shape)
    if shape.count(None) < 2:
        return {connector.name: _stored(place, "bytes", ())}, holds
    value = _stored(place, "bytes", (), key="/value")
    beside = replace(connector, name=f"{connector.name}/shape")
    lengths = _stored(replace(place, connector=beside), "int32", (len(shape),))
    return {connector.name: value, beside.name: lengths}, holds


def _take_values(place: _Place, dtype: str, shape: _Shape) -> _Leaf:
    dtype = "bytes" if dtype in _STRINGS else dtype
    dtype = "float32" if dtype == "float64" else dtype
    whole = place.dims + shape
    if len(place.dims) < 2 and whole.count(None) == 1 and whole[0] is not None:
        feature = _stored(replace(place, dims=()), dtype, (None,))
        return {place.connector.name: feature}, _holds("values", dtype, whole)
    return {place.connector.name: _stored(place, dtype, shape)}, {}


def _take_raw(place: _Place, dtype: str, shape: _Shape) -> _Leaf:
    name = place.connector.name
    if shape.count(None) > 1:
        keys = f"{name}/value", f"{name}/shape"
        return {name: _feature(place, dtype, shape, "raw", keys)}, {}
    if None in shape[1:]:
        return {name: _feature(place, dtype, (None,), "raw", (name,))}, _holds("raw", dtype, shape)
    return {name: _feature(place, dtype, shape, "raw", (name,))}, {}


def _take_scalar(place: _Place) -> _Leaf:
    return _take_values(place, place.connector.text("dtype") or "", ())


def _take_text(place: _Place) -> _Leaf:
    name = place.connector.name
    if place.connector.flag("use_encoder"):  # only its numbers were stored
        return {name: _stored(place, "int64", (None,))}, _holds("text encoder", "str", ())
    return {name: _stored(place, "str", ())}, {}


def _take_label(place: _Place) -> _Leaf:
    return {place.connector.name: _stored(place, "int64", ())}, _classes(place.connector)


def _take_box(place: _Place) -> _Leaf:
    # In versions before this setting, all boxes had this format.
    default = None if place.connector.is_message else "REL_YXYX"
    bbox_format = place.connector.text("bbox_format") or default
    metadata = {"bbox_format": bbox_format} if bbox_format else {}
    return {place.connector.name: _stored(place, "float32", (4,))}, metadata


def _take_audio(place: _Place) -> _Leaf:
    connector = place.connector
    settings = {
        "file_format": connector.text("file_format"),
        "sample_rate": connector.integer("sample_rate"),
    }
    settings = {key: value for key, value in settings.items() if value}
    if connector.flag("lazy_decode"):
        holds = _holds("audio", connector.text("dtype") or "", connector.shape())
        return {connector.name: _stored(place, "bytes", ())}, settings | holds
    features, metadata = _take_tensor(place)
    return features, settings | metadata


def _take_image(place: _Place) -> _Leaf:
    connector = place.connector
    dtype = connector.text("dtype") or "uint8"
    shape = connector.shape() or (None, None, 3)
    shape = (*shape[:-1], shape[-1] or None)  # no channels: those of the file
    metadata = _classes(connector) if connector.kind == "LabeledImage" else {}
    if len(place.dims) > 1 or 0 in place.dims or len(shape) != 3 or shape[-1] == 2:
        feature = _stored(place, "bytes", ())
        return {connector.name: feature}, metadata | _holds("image", dtype, shape)
    if dtype == "float32":
        metadata |= _holds("bits", dtype, shape)
        dtype, shape = "uint8", (*shape[:-1], 4)
    shape = place.dims + shape
    return {connector.name: _feature(place, dtype, shape, "image", (connector.name,))}, metadata


def _classes(connector: Connector) -> dict[str, Any]:
    """Number and names of classes; versions store them in different places."""
    number = (connector.settings("label") or connector).integer("num_classes") or 0
    names = connector.texts("names")
    found: dict[str, Any] = {"num_classes": number} if number > 0 else {}
    return found | ({"class_names": names} if names else {})


def _holds(encoding: str, dtype: str, shape: _Shape) -> dict[str, Any]:
    return {"holds": {"encoding": encoding, "dtype": dtype, "shape": list(shape)}}


# Stored form of features.


def _stored(place: _Place, dtype: str, shape: _Shape, *, key: str = "") -> Feature:
    """A feature stored in lists, with the dimensions of the sequences around it."""
    key, rank = place.connector.name + key, len(place.dims)
    unknown = (place.dims + shape if rank < 2 else (None, *shape)).count(None)
    if unknown > 1:  # the number of values implies one length only
        raise _UnreadableError(
            f"expected items of one shape, got several variable dimensions: {shape}"
        )
    if rank < 2:
        return _feature(place, dtype, place.dims + shape, "values", (key,))
    # Sequences in sequences: all values, and the lengths of rows at each level. Those of the
    # innermost levels are redundant if the lengths are fixed.
    ragged = max((i for i, n in enumerate(place.dims, 1) if n is None), default=0)
    lengths = tuple(f"{key}/ragged_row_lengths_{level}" for level in range(ragged - 1))
    whole = (None,) * ragged + place.dims[ragged:] + shape
    return _feature(place, dtype, whole, "values", (f"{key}/ragged_flat_values", *lengths))


def _feature(
    place: _Place, dtype: str, shape: _Shape, encoding: Encoding, keys: tuple[str, ...]
) -> Feature:
    optional = place.connector.flag("optional")
    keys = () if keys == (place.connector.name,) else keys
    try:
        return Feature(dtype, shape, encoding=encoding, optional=optional, keys=keys)
    except SchemaError as error:
        raise _UnreadableError(error.parts.line) from None


_CONTAINERS: dict[str, Callable[[_Place], Iterator[_Place]]] = {
    "Dataset": _within_sequence,
    "FeaturesDict": _within_dict,
    "Sequence": _within_sequence,
    "Translation": _within_translation,
    "TranslationVariableLanguages": _within_translations,
    "Video": _within_video,
}
_LEAVES: dict[str, Callable[[_Place], _Leaf]] = {
    "Audio": _take_audio,
    "BBoxFeature": _take_box,
    "ClassLabel": _take_label,
    "Image": _take_image,
    "LabeledImage": _take_image,
    "Scalar": _take_scalar,
    "Tensor": _take_tensor,
    "Text": _take_text,
}
