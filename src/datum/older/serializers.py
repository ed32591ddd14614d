"""Serializers of the older library: a dict of features to a `tf.train.Example`."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from datum._optional import require
from datum.errors import SchemaError
from datum.format import encode
from datum.schema import Feature, Schema

__all__ = [
    "DatumSerializer",
    "Encoder",
    "GraphEncoder",
    "ImageEncoder",
    "NumberEncoder",
    "StringEncoder",
    "datum_name_to_encoder",
    "datum_to_tf_example",
    "is_string",
    "serialize_datum",
]

_IMAGE_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp")


class Encoder(abc.ABC):
    """The base of encoders, each of one feature: a subclass implements `encode`."""

    def __init__(self, **kwargs: Any) -> None:
        self.kwargs = kwargs

    def __call__(self, inputs: Any) -> Any:
        """What is stored of a value."""
        return self.encode(inputs)

    @abc.abstractmethod
    def encode(self, inputs: Any) -> Any:
        """What is stored of a value: numbers, or text, or bytes, or a list of them."""


class ImageEncoder(Encoder):
    """The path of an image becomes the bytes of the file."""

    def encode(self, inputs: Any) -> Any:
        """Read the file."""
        return Path(inputs).read_bytes()


class NumberEncoder(Encoder):
    """Numbers stay as they are."""

    def encode(self, inputs: Any) -> Any:
        """The same value."""
        return inputs


class StringEncoder(Encoder):
    """Texts stay as they are."""

    def encode(self, inputs: Any) -> Any:
        """The same value."""
        return inputs


class GraphEncoder(Encoder):
    """Graphs stay as they are."""

    def encode(self, inputs: Any) -> Any:
        """The same value."""
        return inputs


def datum_name_to_encoder(datum: Mapping[str, Any], problem_type: str) -> dict[str, Encoder]:
    """The encoder of each feature, chosen by its value: "image" reads the files of images."""
    return {name: _choose(value, problem_type) for name, value in datum.items()}


def _choose(value: Any, problem_type: str) -> Encoder:
    if problem_type == "graph" and is_string(value):
        return GraphEncoder()
    if isinstance(value, str) and value.lower().endswith(_IMAGE_ENDINGS):
        return ImageEncoder() if problem_type == "image" else StringEncoder(problem_type="text")
    return StringEncoder(problem_type=problem_type) if is_string(value) else NumberEncoder()


class DatumSerializer:
    """Makes a serialized `tf.train.Example` of a dict.

    Args:
        problem_type: "image", "text" or "graph".
        datum_name_to_encoder_fn: Called with a dict and the problem, it returns the encoder of
            each feature; by default `datum_name_to_encoder`.
    """

    def __init__(
        self,
        problem_type: str,
        datum_name_to_encoder_fn: Callable[[dict[str, Any], str], Mapping[str, Any]] | None = None,
    ) -> None:
        self.problem_type = problem_type
        self.feature_converter = datum_name_to_encoder_fn or datum_name_to_encoder
        self.serializer: Callable[[dict[str, Any]], bytes] = serialize_datum

    def __call__(self, datum: dict[str, Any]) -> bytes:
        """Encode each feature, and serialize them together."""
        encoders = self.feature_converter(datum, self.problem_type)
        return self.serializer({name: encoders[name](value) for name, value in datum.items()})

    @property
    def is_plain(self) -> bool:
        """Whether it does nothing but what `datum.write` does by itself."""
        return (
            type(self) is DatumSerializer
            and self.feature_converter is datum_name_to_encoder
            and self.serializer is serialize_datum
        )


def serialize_datum(encoded_datum: Mapping[str, Any]) -> bytes:
    """Serialize a dict of numbers, texts, bytes and lists of them as a `tf.train.Example`.

    Arrays are stored flat: Int64List for integers and booleans, FloatList, BytesList.
    """
    flat = {name: _flatten(name, value) for name, value in encoded_datum.items()}
    schema = Schema({name: feature for name, (_, feature) in flat.items()})
    row = {name: value for name, (value, _) in flat.items()}
    return bytes(next(iter(encode([row], schema=schema))))


def datum_to_tf_example(datum: Mapping[str, Any]) -> Any:
    """The `tf.train.Example` of a dict; see `serialize_datum`."""
    tensorflow = require("tensorflow", purpose="tf.train.Example")
    return tensorflow.train.Example.FromString(serialize_datum(datum))


def _flatten(name: str, value: Any) -> tuple[Any, Feature]:
    if is_string(value):
        values = list(np.asarray(value, object).reshape(-1))
        made = [one.encode() if isinstance(one, str) else bytes(one) for one in values]
        return made, Feature("bytes", (None,))
    array = np.asarray(value).reshape(-1)
    if array.dtype.kind in "biu":
        return array.astype(np.int64), Feature("int64", (None,))
    if array.dtype.kind == "f":
        return array.astype(np.float32), Feature("float32", (None,))
    raise SchemaError(
        f"feature {name!r}: expected numbers, texts or bytes, got {value!r}", feature=name
    )


def is_string(item: Any) -> bool:
    """Whether a value is text or bytes, or holds nothing else."""
    if isinstance(item, (list, tuple)):
        return bool(item) and all(map(is_string, item))
    if isinstance(item, np.ndarray):
        return item.dtype.kind in "OSU"
    return isinstance(item, (bytearray, bytes, str))
