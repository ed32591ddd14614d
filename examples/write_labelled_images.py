"""Export images and a CSV file of labels with the API of the Datum paper."""

import os
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import datum


def make_photos() -> None:
    """photos/train/cat0.jpg and photos/train.csv with a row for it; the same for val."""
    for split, count in {"train": 12, "val": 4}.items():
        Path("photos", split).mkdir(parents=True)
        lines = ["filename,label,breed,weight"]
        for i in range(count):
            pixels = np.random.default_rng(i).integers(0, 256, (4, 6, 3), np.uint8)
            image = Image.fromarray(pixels).resize((96, 64))
            image.save(f"photos/{split}/cat{i}.jpg")
            weight = "" if i == 3 else f"{3 + i / 4}"  # one cat was not weighed
            lines.append(f"cat{i},{i % 2},{('tabby', 'siamese')[i % 2]},{weight}")
        Path("photos", f"{split}.csv").write_text("\n".join(lines))


def main() -> None:
    make_photos()

    write_configs = datum.configs.TFRWriteConfigs()
    write_configs.splits = {"train": {"num_examples": 12}, "val": {"num_examples": 4}}
    report = datum.export.export_to_tfrecord(
        "photos", "records", datum.problem.IMAGE_CLF, write_configs
    )
    print(report)

    ds = datum.load("records")
    print(ds)

    print("\nEvery column of the table is a feature:")
    for record in ds["val"]:
        weight = "not weighed" if record["weight"] is None else f"{record['weight']} kg"
        print(f"  {record['filename']}: {record['image'].shape}, {record['breed']}, {weight}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
