"""Write images and palette masks as a dataset of images and class ids."""

import os
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import datum

PALETTE = [0, 0, 0, 128, 64, 128, 70, 130, 180]  # black: nothing; purple: road; blue: sky


def draw_pair(name: str, horizon: int) -> None:
    """An image, and a mask of class ids: sky above the horizon, road below."""
    ids = np.zeros((24, 32), np.uint8)
    ids[:horizon], ids[horizon:, 8:24] = 2, 1
    mask = Image.fromarray(ids)
    mask.putpalette(PALETTE)
    mask.save(f"roads/SegmentationClass/{name}.png")
    mask.convert("RGB").save(f"roads/JPEGImages/{name}.jpg")


def main() -> None:
    for folder in ("JPEGImages", "SegmentationClass"):
        Path("roads", folder).mkdir(parents=True)
    for i in range(6):
        draw_pair(f"road{i}", horizon=6 + i)
    Path("roads/train.txt").write_text("road0\nroad1\nroad2\nroad3\nroad4\n")
    Path("roads/val.txt").write_text("road5\n")

    print(datum.write("roads", "roads.tfrecords"))
    ds = datum.load("roads.tfrecords")
    print(ds)

    record = ds["val"][0]
    ids, counts = np.unique(record["label"], return_counts=True)
    print(f"\n{record['filename']}: image {record['image'].shape}, mask {record['label'].shape}")
    print("pixels of each class id:", dict(zip(ids.tolist(), counts.tolist(), strict=True)))
    for row in record["label"][::4, ::2, 0]:
        print("  " + "".join(".#~"[id] * 2 for id in row))
    print("colours of the palette:", ds.metadata["label"]["palette"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
