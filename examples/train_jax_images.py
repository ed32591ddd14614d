"""Write and load images from class folders, and train a small network in JAX."""

import os
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import datum


def draw_digits() -> None:
    """digits/0/0000.png and so on: the 1,797 handwritten digits of scikit-learn."""
    digits = load_digits()
    for i, (pixels, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        path = Path("digits", str(label), f"{i:04}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((pixels * 255 / 16).astype(np.uint8)).save(path)


def shift(record: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Shift the image by up to a pixel in any direction; `rng` is the same on every run."""
    padded = np.pad(record["image"], [(1, 1), (1, 1), (0, 0)])
    top, left = rng.integers(0, 3, 2)
    return {**record, "image": padded[top : top + 8, left : left + 8]}


def main() -> None:
    draw_digits()
    print(datum.write("digits", "digits.tfrecords", splits={"train": 0.8, "val": 0.2}))
    ds = datum.load("digits.tfrecords")
    print(ds)

    import jax
    import jax.numpy as jnp

    def predict(weights, images):
        x = images.astype(jnp.float32) / 127.5 - 1
        for kernel in weights["kernels"]:
            layout = ("NHWC", "HWIO", "NHWC")
            x = jax.nn.relu(
                jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=layout)
            )
        return x.reshape(len(x), -1) @ weights["matrix"] + weights["bias"]

    def loss_of(weights, batch):
        scores = jax.nn.log_softmax(predict(weights, batch["image"]))
        return -jnp.take_along_axis(scores, batch["label"][:, None], axis=1).mean()

    @jax.jit
    def step(weights, momenta, batch):
        gradients = jax.grad(loss_of)(weights, batch)
        momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, gradients)
        return jax.tree.map(lambda w, m: w - 0.02 * m, weights, momenta), momenta

    @jax.jit
    def count_right(weights, batch):
        is_right = predict(weights, batch["image"]).argmax(1) == batch["label"]
        return (is_right & batch["batch_mask"]).sum()

    def draw(*shape):
        scale = (2 / np.prod(shape[:-1])) ** 0.5
        return random.normal(0, scale, shape).astype(np.float32)

    random = np.random.default_rng(0)
    classes = len(ds.metadata["label"]["class_names"])
    weights = {
        "kernels": [draw(3, 3, 1, 16), draw(3, 3, 16, 32)],
        "matrix": draw(4 * 4 * 32, classes),
        "bias": np.zeros(classes, np.float32),
    }
    momenta = jax.tree.map(np.zeros_like, weights)

    columns = ["image", "label"]  # file names are texts, which `jit` does not accept
    train = ds.to_jax("train", shuffle=True, map=shift, columns=columns, drop_remainder=True)
    val = ds.to_jax("val", batch_size=64, columns=columns, remainder="pad")
    for _ in range(8):
        for batch in train:
            weights, momenta = step(weights, momenta, batch)

    # Every batch of `val` is full, so `jit` compiles once; fillers are not counted.
    right = sum(int(count_right(weights, batch)) for batch in val)
    accuracy = right / len(ds["val"])
    print(f"\nOf digits that it has not seen it reads {accuracy:.1%}")
    print("More than 95 %:", accuracy > 0.95)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
