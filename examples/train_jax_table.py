"""Write a table, train on it with JAX, stop halfway, and resume."""

import json
import os
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import datum

EPOCHS = 30


def main() -> None:
    table = load_breast_cancer(as_frame=True).frame  # 569 tumours: 30 measurements, benign or not
    table.columns = [name.replace(" ", "_") for name in table.columns]
    names = [name for name in table.columns if name != "target"]
    table = table.astype(dict.fromkeys(names, "float32"))
    print(datum.write(table, "tumours", splits={"train": 0.8, "test": 0.2}, stratify="target"))
    ds = datum.load("tumours")
    print(ds)

    import jax
    import jax.numpy as jnp

    # The manifest holds the range of each column: scale it to -1..1.
    numbers = [ds.statistics["train"]["features"][name]["numbers"] for name in names]
    least = jnp.array([one["min"] for one in numbers])
    most = jnp.array([one["max"] for one in numbers])

    def predict(weights, batch):
        columns = jnp.stack([batch[name] for name in names], axis=1)
        scaled = 2 * (columns - least) / (most - least) - 1
        return scaled @ weights["slopes"] + weights["offset"]

    def loss_of(weights, batch):
        scores = predict(weights, batch)
        return (jax.nn.softplus(scores) - batch["target"] * scores).mean()

    @jax.jit
    def step(weights, batch):
        gradients = jax.grad(loss_of)(weights, batch)
        return jax.tree.map(lambda w, g: w - 0.5 * g, weights, gradients)

    def train_until(epoch, weights, loader):
        while loader.state_dict()["epoch"] < epoch:
            for batch in loader:
                weights = step(weights, batch)
        return weights

    options = dict(batch_size=32, shuffle=True, seed=1, remainder="wrap")
    start = {"slopes": jnp.zeros(len(names)), "offset": jnp.zeros(())}

    undisturbed = train_until(EPOCHS, start, ds.to_jax("train", **options))

    # The same with a stop: save the state of the loader, a few numbers, with the weights.
    loader = ds.to_jax("train", **options)
    weights = train_until(10, start, loader)
    for _, batch in zip(range(5), loader, strict=False):
        weights = step(weights, batch)
    np.savez("weights", **weights)
    Path("loader.json").write_text(json.dumps(loader.state_dict()))
    print("\nStopped at", Path("loader.json").read_text())

    loader = ds.to_jax("train", **options)
    loader.load_state_dict(json.loads(Path("loader.json").read_text()))
    weights = train_until(EPOCHS, {**np.load("weights.npz")}, loader)
    same = jax.tree.map(lambda a, b: bool((a == b).all()), weights, undisturbed)
    print("Stopped and taken up again it learns the same:", all(same.values()))

    (batch,) = ds.to_jax("test", batch_size=len(ds["test"]))
    accuracy = float(((predict(weights, batch) > 0) == batch["target"]).mean())
    print(f"The model classifies {accuracy:.1%} of unseen tumours correctly")
    print("More than 90 %:", accuracy > 0.9)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
