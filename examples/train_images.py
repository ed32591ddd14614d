"""Write and augment images from class folders, and train a small network."""

import os
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import datum

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is loaded: hides its log


def draw_digits() -> None:
    """digits/0/0000.png and so on: the 1,797 handwritten digits of scikit-learn."""
    digits = load_digits()
    for i, (pixels, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        path = Path("digits", str(label), f"{i:04}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((pixels * 255 / 16).astype(np.uint8)).save(path)


def main() -> None:
    draw_digits()
    print(datum.write("digits", "digits.tfrecords", splits={"train": 0.8, "val": 0.2}))
    ds = datum.load("digits.tfrecords")
    print(ds)

    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)

    def shift(record: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Shift the image by up to a pixel in any direction."""
        padded = tf.pad(record["image"], [[1, 1], [1, 1], [0, 0]])
        return {**record, "image": tf.image.random_crop(padded, (8, 8, 1))}

    pair = ("image", "label")
    train = ds.to_tf("train", batch_size=32, shuffle=True, map=shift, supervised=pair)
    val = ds.to_tf("val", batch_size=32, supervised=pair)
    print("\nA batch for training:", train.element_spec)

    model = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 1)),
            tf.keras.layers.Rescaling(1 / 127.5, offset=-1),
            tf.keras.layers.Conv2D(16, 3, activation="relu"),
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(len(ds.metadata["label"]["class_names"])),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam(4e-3)
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=False)
    # Keras cannot shuffle a tf.data.Dataset, and warns without shuffle=False.
    model.fit(train, epochs=8, shuffle=False, verbose=0)

    _, accuracy = model.evaluate(val, verbose=0)
    print(f"\nOf digits that it has not seen it knows {accuracy:.1%}")
    print("More than 95 %:", accuracy > 0.95)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
