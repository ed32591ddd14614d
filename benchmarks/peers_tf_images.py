"""Image files put into TFRecord by hand, the two ways that tutorials show."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

Classes = Mapping[str, Sequence[Path]]


def write_files(path: Path, classes: Classes) -> int:
    """Keeps the bytes of each file, as the guide to TFRecord does; returns how many."""
    return _write(path, classes, lambda file: file.read_bytes())


def write_encoded(path: Path, classes: Classes) -> int:
    """Decodes each file and encodes it again, as the example of Keras does; returns how many."""
    return _write(path, classes, _encode_again)


def _encode_again(file: Path) -> bytes:
    image = tf.io.decode_jpeg(tf.io.read_file(str(file)))
    encoded: bytes = tf.io.encode_jpeg(image).numpy()
    return encoded


def _write(path: Path, classes: Classes, load: Callable[[Path], bytes]) -> int:
    written = 0
    with tf.io.TFRecordWriter(str(path)) as writer:
        for label, name in enumerate(sorted(classes)):
            for file in classes[name]:
                writer.write(_example(load(file), label).SerializeToString())
                written += 1
    return written


def _example(image: bytes, label: int) -> Any:
    feature = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature))
