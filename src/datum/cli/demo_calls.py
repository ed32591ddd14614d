"""The calls of the demo as functions: their source is what the demo shows, and what it runs."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

import datum
from datum import Dataset, WriteReport

__all__ = [
    "code_of",
    "compare_with_tensorflow",
    "feed_numpy",
    "feed_pixels_by_hand",
    "feed_tensorflow",
    "feed_tensorflow_by_hand",
    "go_on_from_state",
    "train_model",
    "write_dataset",
]

# What is not what one would type: types, and how the demo shows each epoch in its own way.
_LEFT_OUT = re.compile(r": Any\b| -> Any\b|, verbose=0, callbacks=callbacks")


def write_dataset() -> WriteReport:
    """Write the folders of images as a dataset."""
    splits = {"train": 0.8, "val": 0.2}
    return datum.write("images", "digits", splits=splits, stratify="label")


def train_model(ds: Dataset, tf: Any, epochs: int, *, callbacks: list[Any]) -> Any:
    """Train a small Keras model on the dataset."""
    pair = ("image", "label")
    train = ds.to_tf("train", batch_size=32, shuffle=True, supervised=pair)
    val = ds.to_tf("val", batch_size=64, supervised=pair)

    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    model = tf.keras.Sequential()
    model.add(layers.Rescaling(1 / 255))
    model.add(layers.Conv2D(32, 3, activation="relu"))
    model.add(layers.Conv2D(64, 3, activation="relu"))
    model.add(layers.Flatten())
    model.add(layers.Dense(10))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return model.fit(train, validation_data=val, epochs=epochs, verbose=0, callbacks=callbacks)


def compare_with_tensorflow(ds: Dataset) -> int:
    """Count the records that NumPy and TensorFlow see alike, at the same place of the order."""
    arrays = ds.to_numpy("train", shuffle=True, seed=1)
    tensors = ds.to_tf("train", shuffle=True, seed=1, engine="native")
    same = 0
    for a, b in zip(arrays, tensors, strict=True):
        alike = (a["image"] == b["image"].numpy()).all(axis=(1, 2, 3))
        same += int((alike & (a["label"] == b["label"].numpy())).sum())
    return same


def go_on_from_state(ds: Dataset) -> bool:
    """Whether a loader that is given the state of another goes on with the same records."""
    loader = ds.to_numpy("train", batch_size=64, shuffle=True, seed=1)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()  # a few numbers, for the checkpoint
    rest = np.concatenate([batch["label"] for batch in batches])

    again = ds.to_numpy("train", batch_size=64, shuffle=True, seed=1)
    again.load_state_dict(state)
    return np.array_equal(rest, np.concatenate([batch["label"] for batch in again]))


def feed_tensorflow_by_hand(tf: Any, files: list[str]) -> Any:
    """What one writes without Datum."""
    spec = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    decode, kind = tf.io.decode_png, tf.TensorSpec((8, 8, 1), tf.uint8)

    def parse(serialized: Any) -> Any:
        batch = tf.io.parse_example(serialized, spec)
        images = tf.map_fn(decode, batch["image"], fn_output_signature=kind)
        return {"image": images, "label": batch["label"]}

    records = tf.data.TFRecordDataset(files).repeat().shuffle(8192)
    return records.batch(256).map(parse, tf.data.AUTOTUNE).prefetch(2)


def feed_pixels_by_hand(tf: Any, files: list[str]) -> Any:
    """What one writes without Datum where images are stored as numbers."""
    spec = {
        "image": tf.io.FixedLenFeature((8, 8, 1), tf.int64),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }

    def parse(serialized: Any) -> Any:
        batch = tf.io.parse_example(serialized, spec)
        images = tf.cast(batch["image"], tf.uint8)
        return {"image": images, "label": batch["label"]}

    records = tf.data.TFRecordDataset(files).repeat().shuffle(8192)
    return records.batch(256).map(parse, tf.data.AUTOTUNE).prefetch(2)


def feed_tensorflow(ds: Dataset) -> Any:
    """Feed the same to TensorFlow with Datum."""
    return ds.to_tf("train", batch_size=256, shuffle=True, epochs=None)


def feed_numpy(ds: Dataset) -> Any:
    """Feed the same to NumPy with Datum."""
    return ds.to_numpy("train", batch_size=256, shuffle=True, epochs=None)


def code_of(function: Callable[..., Any]) -> str:
    """The lines of a function, without its name and docstring, as one would type them."""
    source = textwrap.dedent(inspect.getsource(function))
    _, _, body = source.partition('"""')
    _, _, body = body.partition('"""\n')
    lines = _LEFT_OUT.sub("", textwrap.dedent(body)).rstrip().splitlines()
    last = lines[-1].removeprefix("return ")
    return "\n".join(lines[:-1] if last.isidentifier() else [*lines[:-1], last])
