"""A TFDS `features.json` into a schema: where each feature lies in the records, and as what.

TFDS joins the names of nested features with "/", as the schema does. A sequence adds a dimension
to all that lies within it; so does a nested dataset, whose records come as rows of one column.
Images in a sequence, as those of a Video or of the steps of an episode, are a list of images.
Lists hold what tf.train.Feature can: float64 without `encoding` was rounded when it was written,
and is float32 here. What a schema cannot say, it has as close as it can be, and the metadata of
the feature tells under `holds` what the stored value stands for:

| TFDS | schema | holds |
|---|---|---|
| Image of float32 | image of uint8, 4 channels | `{"encoding": "bits", ...}`: bytes of the floats |
| Image with time (GIF), or of 2 channels | bytes | `{"encoding": "image", ...}` |
| images in a sequence of sequences | bytes, one for each image | the same |
| Tensor of encoding "zlib" | bytes | `{"encoding": "zlib", ...}` |
| Tensor of encoding "bytes" in a sequence | bytes, one for each item | `{"encoding": "raw", ...}` |
| Tensor of shape (3, None) | shape (None,) | `{"encoding": "values", ...}` |
| Audio that is decoded when read | bytes | `{"encoding": "audio", ...}` |
| Text with an encoder (before 4.0) | int64 of shape (None,) | `{"encoding": "text encoder", ...}` |

Optional features stay optional: where TFDS fills in the smallest number, the value is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from datum.errors import SchemaError
from datum.format.layout import check_keys
from datum.reading.adopt.tfds_connectors import Connector
from datum.schema import Encoding, Feature, Schema

__all__ = ["TfdsFeatures", "parse_labels", "read_features"]

MAX_DEPTH = 64  # of nested features: deeper than any, and far from the interpreter's limit

_Shape: TypeAlias = "tuple[int | None, ...]"
_Leaf: TypeAlias = "tuple[dict[str, Feature], dict[str, Any]]"  # and its metadata
_STRINGS = ("string", "object", "str", "bytes")  # as versions called them


@dataclass(frozen=True, slots=True)
class TfdsFeatures:
    """What a `features.json` says of the records.

    Attributes:
        schema: the features, as far as they can be read; nested ones as "outer/inner".
        metadata: by feature: `class_names`, `num_classes`, `description`, `value_range`,
            `bbox_format`, `sample_rate`, `file_format` and `holds`.
        left_out: why features are not in the schema, by their names.
        label_files: the file beside `features.json` that holds the class names of a feature, by
            its name, if there are any: `parse_labels` reads them.
    """

    schema: Schema
    metadata: Mapping[str, Mapping[str, Any]]
    left_out: Mapping[str, str]
    label_files: Mapping[str, str]


def read_features(found: Mapping[str, Any]) -> TfdsFeatures:
    """The schema of a parsed `features.json`, of any version of TFDS from 4.0 on.

    What cannot be read, as a connector that is not known, is left out and listed. SchemaError for
    what no version wrote.

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
    """Says why a feature is left out."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A connector, and where it stands.

    Attributes:
        dims: the lengths of the sequences around it, outermost first.
        file: how the names of its files start.
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
    """What was found so far."""

    def __init__(self) -> None:
        self.features: dict[str, Feature] = {}
        self.metadata: dict[str, dict[str, Any]] = {}
        self.left_out: dict[str, str] = {}
        self.label_files: dict[str, str] = {}

    def take(self, place: _Place) -> None:
        """Add a connector and all that lies within it."""
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


# What lies within containers.


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


# What single features are.


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
    if place.connector.flag("use_encoder"):  # its numbers are all that was stored
        return {name: _stored(place, "int64", (None,))}, _holds("text encoder", "str", ())
    return {name: _stored(place, "str", ())}, {}


def _take_label(place: _Place) -> _Leaf:
    return {place.connector.name: _stored(place, "int64", ())}, _classes(place.connector)


def _take_box(place: _Place) -> _Leaf:
    # The setting is new; before, all boxes were such.
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
    """What the settings say of classes; versions differ in where it stands."""
    number = (connector.settings("label") or connector).integer("num_classes") or 0
    names = connector.texts("names")
    found: dict[str, Any] = {"num_classes": number} if number > 0 else {}
    return found | ({"class_names": names} if names else {})


def _holds(encoding: str, dtype: str, shape: _Shape) -> dict[str, Any]:
    return {"holds": {"encoding": encoding, "dtype": dtype, "shape": list(shape)}}


# How they are stored.


def _stored(place: _Place, dtype: str, shape: _Shape, *, key: str = "") -> Feature:
    """A feature whose values lie in lists, with the dimensions of the sequences around it."""
    key, rank = place.connector.name + key, len(place.dims)
    unknown = (place.dims + shape if rank < 2 else (None, *shape)).count(None)
    if unknown > 1:  # the number of values tells one length, no more
        raise _UnreadableError(f"expected items of one shape, got each of its own: {shape}")
    if rank < 2:
        return _feature(place, dtype, place.dims + shape, "values", (key,))
    # Sequences in sequences: all values, and the lengths of rows at each level. Those of the
    # innermost levels say nothing where the lengths are known.
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
        raise _UnreadableError(error.message.line) from None


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
