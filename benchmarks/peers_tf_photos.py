"""TensorFlow's ways to load photos: from memory, from files and from records, whole or cropped."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE
SHUFFLED_RECORDS = 8192
AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)  # of windows for training, as is usual

Classes = Mapping[str, Sequence[Path]]
Decode = Callable[[Any], Any]


def decode(encoded: Any) -> Any:
    """All pixels of a JPEG."""
    return tf.io.decode_jpeg(encoded, channels=3)


def decode_and_crop(side: int) -> Decode:
    """The whole photo decoded, a random window cut out, resized and mirrored by chance."""

    def cropped(encoded: Any) -> Any:
        image = decode(encoded)
        begin, size = _window(tf.shape(image))
        return _finish(tf.slice(image, begin, size), side)

    return cropped


def decode_crop_only(side: int) -> Decode:
    """The same, but only the window is decoded: what few know to write."""

    def cropped(encoded: Any) -> Any:
        begin, size = _window(tf.io.extract_jpeg_shape(encoded))
        window = tf.concat([begin[:2], size[:2]], axis=0)
        return _finish(tf.io.decode_and_crop_jpeg(encoded, window, channels=3), side)

    return cropped


def in_memory(classes: Classes) -> Any:
    """Photos whose bytes are in memory: decoding, and nothing else."""
    paths, labels = _files(classes)
    encoded = [path.read_bytes() for path in paths]
    photos = tf.data.Dataset.from_tensor_slices({"image": encoded, "label": labels})
    return photos.map(_decoded(decode), num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)


def from_files(classes: Classes) -> Any:
    """Photos read from their files, in order."""
    photos = _opened(_file_names(classes), decode)
    return photos.prefetch(AUTOTUNE)


def from_records(shards: Sequence[Path]) -> Any:
    """Photos read from records, in about their order."""
    records = _interleaved(tf.data.Dataset.from_tensor_slices([str(path) for path in shards]))
    return records.map(_parsed(decode), num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)


def train_from_files(classes: Classes, batch_size: int, crop: Decode) -> Any:
    """Batches for training out of the files themselves, shuffled as a whole."""
    names = _file_names(classes)
    photos = _opened(names.shuffle(int(names.cardinality())), crop)
    return photos.batch(batch_size).prefetch(AUTOTUNE)


def train_from_records(shards: Sequence[Path], batch_size: int, crop: Decode) -> Any:
    """Shards shuffled, four interleaved, records shuffled, map and batch as one, prefetch."""
    names = tf.data.Dataset.from_tensor_slices([str(path) for path in shards]).shuffle(len(shards))
    records = _interleaved(names).shuffle(SHUFFLED_RECORDS)
    batches = records.map(_parsed(crop), num_parallel_calls=AUTOTUNE).batch(batch_size)
    options = tf.data.Options()
    options.experimental_optimization.map_and_batch_fusion = True
    return batches.prefetch(AUTOTUNE).with_options(options)


def _files(classes: Classes) -> tuple[list[Path], list[int]]:
    pairs = [(path, label) for label, name in enumerate(classes) for path in classes[name]]
    paths, labels = zip(*pairs, strict=True)
    return list(paths), list(labels)


def _file_names(classes: Classes) -> Any:
    paths, labels = _files(classes)
    named = {"image": [str(path) for path in paths], "label": labels}
    return tf.data.Dataset.from_tensor_slices(named)


def _opened(names: Any, decode: Decode) -> Any:
    opened = _decoded(lambda name: decode(tf.io.read_file(name)))
    return names.map(opened, num_parallel_calls=AUTOTUNE)


def _interleaved(names: Any) -> Any:
    return names.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=AUTOTUNE)


def _parsed(decode: Decode) -> Callable[[Any], Any]:
    spec = {
        "image": tf.io.FixedLenFeature((), tf.string),
        "label": tf.io.FixedLenFeature((), tf.int64),
    }
    decoded = _decoded(decode)
    return lambda raw: decoded(tf.io.parse_single_example(raw, spec))


def _decoded(decode: Decode) -> Callable[[Any], Any]:
    return lambda record: {"image": decode(record["image"]), "label": record["label"]}


def _window(shape: Any) -> tuple[Any, Any]:
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape,
        tf.zeros([1, 0, 4]),
        min_object_covered=0.0,
        aspect_ratio_range=RATIO,
        area_range=AREA,
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    return begin, size


def _finish(image: Any, side: int) -> Any:
    resized = tf.image.resize(image, (side, side))
    return tf.cast(tf.image.random_flip_left_right(resized), tf.uint8)
