"""Records of the older library: one split written at a time, and read as its parser does."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from datum._optional import require
from datum.configs import TFRReadConfigs
from datum.dataset import Dataset
from datum.errors import WriteError
from datum.format.naming import MANIFEST_NAME
from datum.older.generators import DatumGenerator
from datum.older.serializers import DatumSerializer
from datum.schema import Feature
from datum.sources import Block, PythonRows, Source
from datum.sources.mapped import map_source
from datum.transforms.graph import leave_as_is
from datum.writing import WriteReport, write
from datum.writing.serialized import serialized_source

__all__ = ["DatumParser", "Reader", "TFRecordWriter", "find_images", "serialize"]

_IMAGE_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def serialize(
    source: Source, serializer: Callable[[dict[str, Any]], bytes], sparse_features: Sequence[str]
) -> Source:
    """The records of a source after a serializer of the user's own.

    It gets the shape of sparse features of rank 2 and more beside them, as `<name>_shape`.
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
    """The source with texts that are the names of image files as paths, which stand for images."""
    return map_source(source, _find_in_block, name="images")


def _find_in_block(block: Block) -> Block:
    if not isinstance(block.data, list):
        return block
    rows = [{name: _as_path(value) for name, value in row.items()} for row in block.data]
    return replace(block, data=rows)


def _as_path(value: Any) -> Any:
    """A name that has an ending of images, and a folder or a file."""
    if not isinstance(value, str) or not value.lower().endswith(_IMAGE_ENDINGS):
        return value
    path = Path(value)
    return path if path.name != value or path.is_file() else value


class TFRecordWriter:
    """Writes one split; those that are at the path already stay.

    Args:
        generator: Called with `split` and `gen_kwargs`, it yields pairs of a key and a dict.
        serializer: A `DatumSerializer`, or a function from a dict to a `tf.train.Example`.
        path: The folder of the dataset.
        split: The name of the split.
        total_examples: How many records there should be; another number is a warning.
        sparse_features: Features that differ in length. Their shapes go to the serializer.
        gen_kwargs: Options of the generator.

    Attributes:
        current_examples: How many records were read so far.
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
        """Write what was read."""
        return self.create_records()

    def create_records(self) -> WriteReport:
        """Write the split: from the generator, or what `cache_records` read of it."""
        is_there = (Path(self.path) / MANIFEST_NAME).is_file()
        if is_there and self.split in Dataset(self.path):
            raise WriteError(
                f"{self.path}: expected a dataset without the split {self.split!r}, got one that"
                " has it\nhint: delete the folder, or write to another"
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
        is_picture = getattr(self.serializer, "problem_type", "") == "image"
        return find_images(rows) if is_picture else rows


class DatumParser:
    """Parses the records of a dataset, one at a time, within a TensorFlow graph.

    Args:
        path: The folder of the dataset.

    Attributes:
        parse_fn: Called with a serialized record, it returns a dict of its tensors. Images are
            decoded, and lists of any length are dense.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from datum.frameworks.tensorflow.parse import GraphParser  # brings TensorFlow

        self._schema = Dataset(path).schema
        self._parser = GraphParser(self._schema)
        self.parse_fn = leave_as_is(self._parse)

    def _parse(self, example: Any) -> dict[str, Any]:
        """The tensors of one serialized record, images decoded; lists of any length are dense."""
        tensorflow = require("tensorflow", purpose="DatumParser")
        found = self._parser.parse(tensorflow.reshape(example, [1]))
        return {
            name: _first(tensorflow, name, self._schema.get(name), column)
            for name, column in found.items()
        }


def _first(tensorflow: Any, name: str, feature: Feature | None, column: Any) -> Any:
    if feature is not None and feature.encoding == "image":
        from datum.frameworks.tensorflow.images import decoder_for  # brings TensorFlow

        return decoder_for(feature, name=name)(column[0])
    if isinstance(column, tensorflow.SparseTensor):
        return tensorflow.sparse.to_dense(column)[0]
    row = column[0]
    return row.to_tensor() if isinstance(row, tensorflow.RaggedTensor) else row


class Reader:
    """Gives the single records of a split as a `tf.data.Dataset`.

    Args:
        path: The folder of the dataset.
        read_config: How the files are read.
    """

    def __init__(
        self, path: str | os.PathLike[str], read_config: TFRReadConfigs | None = None
    ) -> None:
        self._dataset = Dataset(path)
        self._config = TFRReadConfigs() if read_config is None else read_config

    def read(self, instructions: Any, shuffle_files: bool) -> Any:
        """The records of "train", "train[:10%]" or "train+val", decoded.

        Args:
            instructions: One part of the dataset; or a list or a dict of them, for as many.
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
