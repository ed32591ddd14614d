"""Programs that read a dataset beside others; each prints what it saw as one line of JSON.

They are processes of their own: devices and collective operations are set up before TensorFlow
has done anything else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

import datum

BATCH = 10


def same(record: Any) -> Any:
    """Does nothing, but record by record."""
    return record


# Orders that must be the same in every process, by a name.
ORDERS: dict[str, dict[str, Any]] = {
    "in bulk": {"shuffle": True},
    "small window": {"shuffle": 8, "seed": 3},
    "by record": {"shuffle": True, "seed": 3, "map": same},
    "cached": {"shuffle": True, "seed": 3, "cache": True},
    "two epochs": {"shuffle": True, "seed": 3, "epochs": 2},
}


def ids_of(dataset: Any) -> list[int]:
    """The numbers of the records, in the order they come, on whatever device they are."""
    strategy = tf.distribute.get_strategy()
    found: list[int] = []
    for batch in dataset:
        for part in strategy.experimental_local_results(batch["id"]):
            found += part.numpy().tolist()
    return found


class Total(tf.keras.losses.Loss):
    """Just what the model gives."""

    def call(self, _: Any, given: Any) -> Any:
        """One number for each record."""
        return tf.reshape(given, [-1])


def model_of(records: int) -> Any:
    """A weight for each record; a step of training takes it by one further from zero."""
    weights = tf.keras.layers.Embedding(records, 1, embeddings_initializer="zeros")
    model = tf.keras.Sequential([tf.keras.Input((1,), dtype="int64"), weights])
    model.compile(tf.keras.optimizers.SGD(1.0), Total(reduction="sum"), jit_compile=False)
    return model


def times_seen(model: Any) -> list[float]:
    """How often each record was trained on, by all workers together."""
    return [-value for value in model.get_weights()[0][:, 0].tolist()]


def train(strategy: Any, model: Any, dataset: Any, *, epochs: int) -> None:
    """Training by a loop of one's own."""

    def step(batch: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(batch["id"][:, None]))
        variables = model.trainable_variables
        model.optimizer.apply(tape.gradient(loss, variables), variables)

    @tf.function
    def epoch(batches: Any) -> None:
        for batch in batches:
            strategy.run(step, args=(batch,))

    for _ in range(epochs):
        epoch(dataset)


def orders(ds: datum.Dataset) -> dict[str, list[int]]:
    """The order of two runs through the split, for each of `ORDERS`."""
    made = {name: ds.to_tf(batch_size=BATCH, **options) for name, options in ORDERS.items()}
    return {name: ids_of(batches) + ids_of(batches) for name, batches in made.items()}


def mirrored(folder: str) -> dict[str, Any]:
    """Two devices of one process."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    ds, strategy = datum.load(folder), tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = model_of(len(ds["train"]))
    model.fit(ds.to_tf(batch_size=BATCH, supervised=("id", "label")), verbose=0, shuffle=False)
    seen = {"times seen": times_seen(model), "orders": orders(ds)}
    return read_spread(ds, strategy) | seen


def multiworker(folder: str) -> dict[str, Any]:
    """One of several workers, as TF_CONFIG says."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    ds = datum.load(folder)
    with strategy.scope():
        model = model_of(len(ds["train"]))
    batches = strategy.distribute_datasets_from_function(
        lambda context: ds.to_tf(batch_size=BATCH, shuffle=True, host=context, remainder="keep")
    )
    train(strategy, model, batches, epochs=2)
    return read_spread(ds, strategy) | {"times seen": times_seen(model)}


def read_spread(ds: datum.Dataset, strategy: Any) -> dict[str, Any]:
    """What this process sees, by each of the ways to spread a dataset."""
    function = strategy.distribute_datasets_from_function(
        lambda context: ds.to_tf(batch_size=BATCH, shuffle=True, host=context, remainder="keep")
    )
    dataset = strategy.experimental_distribute_dataset(ds.to_tf(batch_size=BATCH, shuffle=True))
    with strategy.scope():
        return {
            "replicas": strategy.num_replicas_in_sync,
            "host=strategy": ids_of(ds.to_tf(batch_size=BATCH, host=strategy, remainder="keep")),
            "function": ids_of(function),
            "dataset": ids_of(dataset),
        }


if __name__ == "__main__":
    programs: dict[str, Callable[[str], Any]] = {
        "mirrored": mirrored,
        "multiworker": multiworker,
    }
    print(json.dumps(programs[sys.argv[1]](sys.argv[2])))
