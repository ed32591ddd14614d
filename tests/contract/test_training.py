"""Keras models learn from what `to_tf` gives: images, texts and tables, generated and real."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import LabelEncoder

import datum

layers = tf.keras.layers


@pytest.fixture(autouse=True)
def _seeds() -> Iterator[None]:
    tf.keras.utils.set_random_seed(0)
    yield
    tf.random.set_seed(None)  # other tests draw what nobody decided


def learn(model: Any, train: Any, val: Any, *, epochs: int, rate: float = 1e-2) -> float:
    """The accuracy on `val` of a classifier, after some epochs of `train`."""
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(rate), loss, metrics=["accuracy"], jit_compile=False)
    model.fit(train, epochs=epochs, shuffle=False, verbose=0)  # Keras warns of its own shuffle
    return float(model.evaluate(val, verbose=0, return_dict=True)["accuracy"])


def dense_model(shape: tuple[int, ...], classes: int, *, scale: float = 1.0) -> Any:
    return tf.keras.Sequential(
        [
            tf.keras.Input(shape),
            layers.Rescaling(scale),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(classes),
        ]
    )


# Digits that scikit-learn carries.


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> datum.Dataset:
    """Images as PNG, with their labels; a tenth of them for validation."""
    out = tmp_path_factory.mktemp("training") / "digits"
    found = load_digits()
    pixels = (found.images * 15).astype(np.uint8)[..., None]
    image = datum.Feature("uint8", (8, 8, 1), encoding="image")
    datum.write(
        {"image": pixels, "label": found.target},
        out,
        splits={"train": 0.9, "val": 0.1},
        shards=3,
        schema={"image": image},
        progress=False,
    )
    return datum.load(out)


def dim(record: dict[str, Any]) -> dict[str, Any]:
    """An image with a part of its light."""
    light = tf.random.uniform([], 0.6, 1.0)
    return {**record, "image": tf.cast(record["image"], tf.float32) * light}


@pytest.mark.parametrize(
    "options",
    [{}, {"map": dim}, {"cache": True}],
    ids=["plain", "augmented", "cached"],
)
def test_a_model_learns_digits(digits, options):
    pair = ("image", "label")
    train = digits.to_tf("train", batch_size=64, shuffle=True, supervised=pair, **options)
    val = digits.to_tf("val", supervised=pair)
    accuracy = learn(dense_model((8, 8, 1), 10, scale=1 / 240), train, val, epochs=5)
    assert accuracy > 0.85


def test_a_model_learns_digits_as_in_the_paper(digits):
    configs = datum.configs.DatasetConfigs(batch_size_train=64)
    configs.pre_batching_callback_train = dim
    configs.post_batching_callback = lambda batch: (batch["image"], batch["label"])
    digits.dataset_configs = configs
    train, val = digits.train_fn("train", shuffle=True), digits.val_fn("val")
    assert learn(dense_model((8, 8, 1), 10, scale=1 / 240), train, val, epochs=5) > 0.85


# Real data.


def test_a_model_learns_clothes(shared_data, tmp_path):
    datum.write(shared_data / "clothing", tmp_path / "out", max_side=64, progress=False)
    ds = datum.load(tmp_path / "out")
    assert len(ds["train"]) == 400

    def resize(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "image": tf.image.resize(record["image"], (32, 32)) / 255}

    def augment(record: dict[str, Any]) -> dict[str, Any]:
        record = resize(record)
        return {**record, "image": tf.image.random_flip_left_right(record["image"])}

    pair = ("image", "label")
    train = ds.to_tf("train", shuffle=True, map=augment, cache=True, supervised=pair)
    val = ds.to_tf("validation", map=resize, supervised=pair)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((32, 32, 3)),
            layers.Conv2D(16, 3, strides=2, activation="relu"),
            layers.Conv2D(32, 3, strides=2, activation="relu"),
            layers.Flatten(),
            layers.Dense(len(ds.metadata["label"]["class_names"])),
        ]
    )
    assert learn(model, train, val, epochs=12, rate=3e-3) > 0.25  # of ten classes


def test_a_model_learns_spam_from_sparse_counts_of_words(shared_data, tmp_path):
    datum.write(
        shared_data / "sms_spam" / "spam.csv",
        tmp_path / "out",
        splits={"train": 0.8, "val": 0.2},
        encoders={"v2": CountVectorizer(min_df=3), "v1": LabelEncoder()},
        progress=False,
    )
    ds = datum.load(tmp_path / "out")

    def prepare(batch: dict[str, Any]) -> tuple[Any, Any]:
        return tf.cast(batch["v2"], tf.float32), batch["v1"]

    options = {"batch_size": 64, "columns": ["v1", "v2"], "batch_map": prepare}
    model = tf.keras.Sequential(
        [
            tf.keras.Input((ds.metadata["v2"]["size"],), sparse=True),
            layers.Dense(16, activation="relu"),
            layers.Dense(ds.metadata["v1"]["size"]),
        ]
    )
    accuracy = learn(
        model, ds.to_tf("train", shuffle=True, **options), ds.to_tf("val", **options), epochs=3
    )
    assert accuracy > 0.95  # 87 % are no spam


def test_a_model_learns_intents_from_padded_words(shared_data, tmp_path):
    found = json.loads((shared_data / "clinc_oos" / "data_small.json").read_text())
    intents = {name: at for at, name in enumerate(sorted({name for _, name in found["train"]}))}
    words = sorted({word for text, _ in found["train"] for word in text.split()})
    ids = {word: at for at, word in enumerate(words, 2)}  # 0 is padding, 1 any other word

    def rows(split: str) -> list[dict[str, Any]]:
        return [
            {"words": [ids.get(word, 1) for word in text.split()], "intent": intents[name]}
            for text, name in found[split]
        ]

    datum.write({"train": rows("train"), "val": rows("val")}, tmp_path / "out", progress=False)
    ds = datum.load(tmp_path / "out")
    options = {"batch_size": 64, "supervised": ("words", "intent"), "pad": True}
    model = tf.keras.Sequential(
        [
            tf.keras.Input((None,)),
            layers.Embedding(len(words) + 2, 48),
            layers.GlobalMaxPooling1D(),
            layers.Dense(len(intents)),
        ]
    )
    accuracy = learn(
        model, ds.to_tf("train", shuffle=True, **options), ds.to_tf("val", **options), epochs=5
    )
    assert accuracy > 0.5  # of 150 classes


def test_a_model_learns_weekends_from_a_table(shared_data, tmp_path):
    table = shared_data / "csv" / "births__US_births_1994-2003_CDC_NCHS.csv"
    datum.write(table, tmp_path / "out", splits={"train": 0.8, "test": 0.2}, progress=False)
    ds = datum.load(tmp_path / "out")
    births = ds.statistics["train"]["features"]["births"]["numbers"]

    def prepare(batch: dict[str, Any]) -> dict[str, Any]:
        width = births["max"] - births["min"]
        scaled = tf.cast(batch["births"] - births["min"], tf.float32) / width
        weekend = tf.cast(batch["day_of_week"] >= 6, tf.int64)
        return {"births": scaled, "month": batch["month"], "weekend": weekend}

    inputs = {
        "births": tf.keras.Input((1,), name="births"),
        "month": tf.keras.Input((1,), name="month", dtype="int64"),
    }
    month = layers.CategoryEncoding(13, output_mode="one_hot")(inputs["month"])
    hidden = layers.Dense(16, activation="relu")(layers.Concatenate()([inputs["births"], month]))
    model = tf.keras.Model(inputs, layers.Dense(2)(hidden))
    options = {"batch_map": prepare, "supervised": (["births", "month"], "weekend")}
    accuracy = learn(
        model, ds.to_tf("train", shuffle=True, **options), ds.to_tf("test", **options), epochs=6
    )
    assert accuracy > 0.9  # 71 % are no weekend


def test_a_model_learns_digits_from_records_of_others(shared_data):
    file = shared_data / "foreign_tfrecords" / "tensorflow__tfx__mnist__data__mnist.tfrecord"
    ds = datum.load(file)
    pair = ("image_floats", "image_class")
    train = ds.to_tf("train[:80%]", shuffle=True, supervised=pair)
    val = ds.to_tf("train[80%:]", supervised=pair)
    assert learn(dense_model((784,), 10), train, val, epochs=8, rate=2e-3) > 0.75
