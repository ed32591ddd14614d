"""TensorFlow's way to write records: `tf.train.Example` filled by hand."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from benchmarks.workloads import Field


def _float_feature(value: Any) -> Any:
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


def _int64_feature(value: Any) -> Any:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value))


def _bytes_feature(value: Any) -> Any:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=value))


FEATURES: dict[str, Callable[[Any], Any]] = {
    "float": _float_feature,
    "int": _int64_feature,
    "bytes": _bytes_feature,
}


def write(path: Path, rows: Iterable[Mapping[str, Any]], fields: Sequence[Field]) -> int:
    """Writes `rows` as tutorials do, one Example each; returns how many."""
    scalars = [(field.name, FEATURES[field.kind]) for field in fields if not field.shape]
    lists = [(field.name, FEATURES[field.kind]) for field in fields if field.shape]
    written = 0
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            feature = {name: make([row[name]]) for name, make in scalars}
            feature.update({name: make(row[name]) for name, make in lists})
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
            written += 1
    return written
