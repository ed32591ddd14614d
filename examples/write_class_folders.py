"""Write images from class folders as a labelled dataset."""

import os
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import datum

COUNTS = {"train/apple": 8, "train/plum": 6, "val/apple": 3, "val/plum": 2}
COLOURS = {"apple": (190, 40, 40), "plum": (90, 40, 120)}


def draw_images() -> None:
    """fruit/train/apple/0.jpg and so on: a disc in the colour of its class."""
    y, x = np.mgrid[:48, :64]
    for folder, count in COUNTS.items():
        Path("fruit", folder).mkdir(parents=True)
        for i in range(count):
            pixels = np.full((48, 64, 3), 240, np.uint8)
            pixels[(x - 32) ** 2 + (y - 24) ** 2 < (10 + i) ** 2] = COLOURS[Path(folder).name]
            Image.fromarray(pixels).save(Path("fruit", folder, f"{i}.jpg"))


def main() -> None:
    draw_images()
    print(datum.write("fruit", "fruit.tfrecords"))  # the folders define classes and splits

    ds = datum.load("fruit.tfrecords")
    print(ds)

    names = ds.metadata["label"]["class_names"]
    print("\nThe records for validation:")
    for record in ds["val"]:
        label = names[record["label"]]
        print(f"  {record['filename']}: {label}, {record['image'].shape} {record['image'].dtype}")

    file = Path("fruit", ds["val"][0]["filename"]).read_bytes()
    kept = file == ds["val"].read([0])["image"][0]
    print(f"\nThe file is stored as it was, byte for byte: {kept}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
