"""Records of the older library: serialized, written and read as its programs do."""

from __future__ import annotations

import abc
import copy
import functools
import importlib.util
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from datum._optional import require
from datum._paper.generators import (
    ClfDatumGenerator,
    DatumGenerator,
    DetDatumGenerator,
    SegDatumGenerator,
    TextJsonDatumGenerator,
)
from datum._write.api import write
from datum._write.report import WriteReport
from datum._write.serialized import serialized_source
from datum.configs import TFRReadConfigs, TFRWriteConfigs
from datum.dataset import Dataset
from datum.errors import SchemaError, SourceError, WriteError
from datum.format import encode
from datum.format.manifest import MANIFEST_NAME
from datum.problem import IMAGE_CLF, IMAGE_DET, IMAGE_SEG, TEXT_CLF
from datum.schema import Feature, Schema
from datum.sources import Block, PythonRows, Source
from datum.sources.wrap import map_source
from datum.transforms.graph import leave_as_is

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "PROBLEM_PARAMS",
    "AttrDict",
    "DatumParser",
    "DatumSerializer",
    "Encoder",
    "GraphEncoder",
    "ImageEncoder",
    "NumberEncoder",
    "Reader",
    "StringEncoder",
    "TFRecordWriter",
    "datum_name_to_encoder",
    "datum_to_tf_example",
    "find_images",
    "get_default_write_configs",
    "is_string",
    "load_module",
    "serialize",
    "serialize_datum",
]

_ENCODED_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp")
_IMAGE_ENDINGS = (*_ENCODED_ENDINGS, ".tif", ".tiff")


class Encoder(abc.ABC):
    """Base of the encoders of single features: a subclass implements `encode`."""

    def __init__(self, **kwargs: Any) -> None:
        self.kwargs = kwargs

    def __call__(self, inputs: Any) -> Any:
        """Return what is stored of a value."""
        return self.encode(inputs)

    @abc.abstractmethod
    def encode(self, inputs: Any) -> Any:
        """Return what is stored of a value: numbers, text, bytes, or a list of them."""


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
    if isinstance(value, str) and value.lower().endswith(_ENCODED_ENDINGS):
        return ImageEncoder() if problem_type == "image" else StringEncoder(problem_type="text")
    return StringEncoder(problem_type=problem_type) if is_string(value) else NumberEncoder()


class DatumSerializer:
    """Serializer of dicts to `tf.train.Example`.

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
        """Whether it only does what `datum.write` does anyway."""
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
    """Make the `tf.train.Example` of a dict; see `serialize_datum`."""
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
        f"expected numbers, texts or bytes, got {value!r}", where=f"feature {name!r}", feature=name
    )


def is_string(item: Any) -> bool:
    """Return whether a value is text or bytes, or a list of them."""
    if isinstance(item, (list, tuple)):
        return bool(item) and all(map(is_string, item))
    if isinstance(item, np.ndarray):
        return item.dtype.kind in "OSU"
    return isinstance(item, (bytearray, bytes, str))


# Sources of records.


def serialize(
    source: Source, serializer: Callable[[dict[str, Any]], bytes], sparse_features: Sequence[str]
) -> Source:
    """Serialize the records of a source with a function of the user.

    The function also receives the shape of sparse features of rank 2 and more, as `<name>_shape`.
    """

    def call(row: dict[str, Any]) -> bytes:
        shapes = {
            f"{name}_shape": list(np.shape(row[name]))
            for name in sparse_features
            if row.get(name) is not None and np.ndim(row[name]) >= 2
        }
        return serializer({**row, **shapes})

    return serialized_source(source, call)


def find_images(source: Source) -> Source:
    """Replace the names of image files in a source by paths, which are read as images."""
    return map_source(source, _find_in_block, name="images")


def _find_in_block(block: Block) -> Block:
    if not isinstance(block.data, list):
        return block
    rows = [{name: _as_path(value) for name, value in row.items()} for row in block.data]
    return replace(block, data=rows)


def _as_path(value: Any) -> Any:
    """Return the path of an image file, if a value is the name of one."""
    if not isinstance(value, str) or not value.lower().endswith(_IMAGE_ENDINGS):
        return value
    path = Path(value)
    return path if path.name != value or path.is_file() else value


class TFRecordWriter:
    """Writer of one split; other splits at the path stay.

    Args:
        generator: Called with `split` and `gen_kwargs`, it yields pairs of a key and a dict.
        serializer: A `DatumSerializer`, or a function from a dict to a `tf.train.Example`.
        path: The folder of the dataset.
        split: The name of the split.
        total_examples: Expected number of records; another number is a warning.
        sparse_features: Features of varying length, whose shapes are passed to the serializer.
        gen_kwargs: Options of the generator.

    Attributes:
        current_examples: Number of records read so far.
    """

    def __init__(
        self,
        generator: Callable[..., Any],
        serializer: Callable[[dict[str, Any]], bytes],
        path: str | os.PathLike[str],
        split: str,
        total_examples: int | None = None,
        sparse_features: Sequence[str] | None = None,
        **gen_kwargs: Any,
    ) -> None:
        self.generator = generator
        self.serializer = serializer
        self.path = path
        self.split = split
        self.total_examples = total_examples
        self.sparse_features = list(sparse_features or ())
        self.gen_kwargs = {**gen_kwargs, "split": split}
        self.current_examples = 0
        self._cached: list[Any] | None = None

    def cache_records(self) -> None:
        """Read all records into memory, for `flush` to write."""
        self._cached = list(self._generate())
        self.current_examples = len(self._cached)

    def flush(self) -> WriteReport:
        """Write the records."""
        return self.create_records()

    def create_records(self) -> WriteReport:
        """Write the split, from the generator or from `cache_records`."""
        is_there = (Path(self.path) / MANIFEST_NAME).is_file()
        if is_there and self.split in Dataset(self.path):
            raise WriteError(
                f"expected a dataset without the split {self.split!r}, got one that has it",
                where=self.path,
                hint="delete the folder, or write to another",
            )
        features = self.generator.features if isinstance(self.generator, DatumGenerator) else {}
        schema = features if self._is_plain else {}
        report = write(self._source(), self.path, schema=schema or None, append=is_there)
        self._cached, self.current_examples = None, report.records
        if self.total_examples not in (None, report.records):
            warnings.warn(
                f"split {self.split!r}: expected {self.total_examples} records,"
                f" got {report.records}; all of them were written",
                stacklevel=2,
            )
        return report

    @property
    def _is_plain(self) -> bool:
        return isinstance(self.serializer, DatumSerializer) and self.serializer.is_plain

    def _generate(self) -> Any:
        return self._cached if self._cached is not None else self.generator(**self.gen_kwargs)

    def _source(self) -> Source:
        rows: Source = PythonRows(self._generate, split=self.split)
        if not self._is_plain:
            return serialize(rows, self.serializer, self.sparse_features)
        is_image = getattr(self.serializer, "problem_type", "") == "image"
        return find_images(rows) if is_image else rows


class DatumParser:
    """Parser of single records within a TensorFlow graph.

    Args:
        path: The folder of the dataset.

    Attributes:
        parse_fn: Called with a serialized record, it returns a dict of its tensors. Images are
            decoded, and lists of any length are dense.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from datum._frameworks.tensorflow.parse import GraphParser  # imports TensorFlow

        self._schema = Dataset(path).schema
        self._parser = GraphParser(self._schema)
        self.parse_fn = leave_as_is(self._parse)

    def _parse(self, example: Any) -> dict[str, Any]:
        """Parse one serialized record to tensors, with decoded images and dense lists."""
        tensorflow = require("tensorflow", purpose="DatumParser")
        found = self._parser.parse(tensorflow.reshape(example, [1]))
        return {
            name: _first(tensorflow, name, self._schema.get(name), column)
            for name, column in found.items()
        }


def _first(tensorflow: Any, name: str, feature: Feature | None, column: Any) -> Any:
    if feature is not None and feature.encoding == "image":
        from datum._frameworks.tensorflow.image_decoders import decoder_for  # imports TensorFlow

        return decoder_for(feature, name=name)(column[0])
    if isinstance(column, tensorflow.SparseTensor):
        return tensorflow.sparse.to_dense(column)[0]
    row = column[0]
    return row.to_tensor() if isinstance(row, tensorflow.RaggedTensor) else row


class Reader:
    """Reader of single records as a `tf.data.Dataset`.

    Args:
        path: The folder of the dataset.
        read_config: Settings for reading the files.
    """

    def __init__(
        self, path: str | os.PathLike[str], read_config: TFRReadConfigs | None = None
    ) -> None:
        self._dataset = Dataset(path)
        self._config = TFRReadConfigs() if read_config is None else read_config

    def read(self, instructions: Any, shuffle_files: bool) -> Any:
        """Return the decoded records of "train", "train[:10%]" or "train+val".

        Args:
            instructions: One part of the dataset, or a list or dict of parts.
            shuffle_files: Whether files come in another order each epoch.
        """
        if isinstance(instructions, Mapping):
            return {name: self.read(one, shuffle_files) for name, one in instructions.items()}
        if isinstance(instructions, (list, tuple)):
            return [self.read(one, shuffle_files) for one in instructions]
        shuffle: Any = "blocks" if shuffle_files else False
        return self._dataset.to_tf(
            instructions,
            batch_size=None,
            shuffle=shuffle,
            seed=self._config.seed,
            read=self._config,
        )


# The defaults of problems.

PROBLEM_PARAMS: dict[str, dict[str, Any]] = {
    IMAGE_CLF: {"serializer": "image", "generator": ClfDatumGenerator},
    IMAGE_DET: {"serializer": "image", "generator": DetDatumGenerator},
    IMAGE_SEG: {"serializer": "image", "generator": SegDatumGenerator},
    TEXT_CLF: {"serializer": "text", "generator": TextJsonDatumGenerator},
}


class AttrDict(dict[str, Any]):
    """A dict whose items are also attributes, as are those of nested dicts and lists.

    >>> made = AttrDict({"train": {"num_examples": 2}})
    >>> made.train.num_examples
    2
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.update(*args, **kwargs)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set items; existing dicts are updated, not replaced."""
        for name, value in dict(*args, **kwargs).items():
            if isinstance(value, dict) and isinstance(self.get(name), AttrDict):
                self[name].update(value)
            else:
                self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, _hold(value))

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"AttrDict has no item {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name):
            raise AttributeError(f"AttrDict.{name}: expected the name of an item, got a method")
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]

    def copy(self) -> Self:
        """Return a shallow copy."""
        return copy.copy(self)

    def deepcopy(self) -> Self:
        """Return a deep copy."""
        return copy.deepcopy(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the items as plain dicts."""
        made: dict[str, Any] = _release(self)
        return made


def _hold(value: Any) -> Any:
    if isinstance(value, dict) and not isinstance(value, AttrDict):
        return AttrDict(value)
    return type(value)(map(_hold, value)) if type(value) in (list, tuple) else value


def _release(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _release(item) for name, item in value.items()}
    return type(value)(map(_release, value)) if type(value) in (list, tuple) else value


def get_default_write_configs(
    problem_type: str, label_names_file: str | os.PathLike[str] | None = None
) -> TFRWriteConfigs:
    """Return the generator and the serializer of a problem.

    Args:
        problem_type: One of `datum.problem.types`.
        label_names_file: File of class names, one per line; `image_det` needs it.
    """
    if problem_type not in PROBLEM_PARAMS:
        known = ", ".join(PROBLEM_PARAMS)
        raise SourceError(f"expected `problem_type` to be one of {known}, got {problem_type!r}")
    found = PROBLEM_PARAMS[problem_type]
    gen_config = None
    if problem_type == IMAGE_DET:
        if label_names_file is None or not Path(label_names_file).is_file():
            raise SourceError(
                f"image_det: expected `label_names_file`, a file with the names of the classes,"
                f" got {label_names_file!r}"
            )
        names = Path(label_names_file).read_text(encoding="utf-8").splitlines()
        class_map = {name: number for number, name in enumerate(names, 1)}
        gen_config = AttrDict(has_test_annotations=True, class_map=class_map)
    return TFRWriteConfigs(
        generator=functools.partial(found["generator"], gen_config=gen_config),
        serializer=DatumSerializer(found["serializer"]),
    )


def load_module(module_name: str, module_path: str | os.PathLike[str]) -> ModuleType:
    """Import a file of Python as a module of this name."""
    spec = importlib.util.spec_from_file_location(module_name, module_path)
    if spec is None or spec.loader is None:
        raise SourceError("expected a file of Python, `.py`", where=module_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
