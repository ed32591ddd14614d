"""Show augmented images with their classes, boxes and masks in TensorBoard."""

import os
import tempfile
from pathlib import Path

import numpy as np

import datum
from datum.tensorboard import write_images

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is loaded: hides its log

NAMES = ["nothing", "disc", "square"]


def draw_shape(random: np.random.Generator) -> dict[str, object]:
    """An image of a disc or a square, with its class, box and mask."""
    kind, radius = int(random.integers(1, 3)), int(random.integers(6, 14))
    y, x = random.integers(14, 50, 2)
    rows, columns = np.mgrid[:64, :64]
    if kind == 1:
        inside = (rows - y) ** 2 + (columns - x) ** 2 <= radius**2
    else:
        inside = (abs(rows - y) <= radius) & (abs(columns - x) <= radius)
    pixels = np.where(inside[..., None], (220, 190, 120), random.integers(20, 60, (64, 64, 3)))
    corners = np.array([y - radius, x - radius, y + radius + 1, x + radius + 1])
    return {
        "image": pixels.astype(np.uint8),
        "label": kind,
        "bbox": (corners[None] / 64).astype(np.float32),
        "mask": (inside[..., None] * kind).astype(np.uint8),
    }


def main() -> None:
    random = np.random.default_rng(0)
    print(datum.write((draw_shape(random) for _ in range(100)), "shapes"))
    ds = datum.load("shapes")

    import tensorflow as tf

    def darken(record: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Mirror and darken the image, and mirror its box and mask."""
        image = tf.cast(record["image"][:, ::-1], tf.float32) / 255 * 0.8
        ymin, xmin, ymax, xmax = tf.unstack(record["bbox"], axis=-1)
        bbox = tf.stack([ymin, 1 - xmax, ymax, 1 - xmin], axis=-1)
        return {**record, "image": image, "bbox": bbox, "mask": record["mask"][:, ::-1]}

    for step, augment in enumerate([None, darken]):
        data = ds.to_tf("train", batch_size=None, shuffle=True, map=augment)
        count = write_images(data, "logs", step=step, class_names={"label": NAMES, "mask": NAMES})
        print(f"step {step}: {count} images")

    files = sorted(Path("logs").iterdir())
    print(f"{len(files)} event files, {sum(file.stat().st_size for file in files):,} bytes")
    print("see them with: tensorboard --logdir logs")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
