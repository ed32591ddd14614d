"""Write a Pascal VOC folder as a dataset of images with boxes."""

import os
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import datum

OBJECT = """<object><name>{}</name><bndbox>
  <xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax>
</bndbox></object>"""


def draw_street(name: str, objects: list[tuple[str, int, int, int, int]]) -> None:
    """An image of 200 x 100 pixels and its XML annotation."""
    pixels = np.full((100, 200, 3), 200, np.uint8)
    for kind, left, top, right, bottom in objects:
        pixels[top:bottom, left:right] = (30, 30, 160) if kind == "car" else (160, 30, 30)
    Image.fromarray(pixels).save(f"street/JPEGImages/{name}.jpg")
    size = "<size><width>200</width><height>100</height><depth>3</depth></size>"
    boxes = "".join(OBJECT.format(*one) for one in objects)
    Path(f"street/Annotations/{name}.xml").write_text(f"<annotation>{size}{boxes}</annotation>")


def main() -> None:
    for folder in ("JPEGImages", "Annotations", "ImageSets"):
        Path("street", folder).mkdir(parents=True)
    draw_street("one", [("car", 20, 40, 80, 70), ("bus", 100, 20, 190, 80)])
    draw_street("two", [("car", 50, 50, 100, 75)])
    draw_street("three", [])
    Path("street/ImageSets/train.txt").write_text("one\ntwo\n")
    Path("street/ImageSets/val.txt").write_text("three\n")

    print(datum.write("street", "street.tfrecords"))
    ds = datum.load("street.tfrecords")
    print(ds)

    names = ds.metadata["labels"]["class_names"]
    print("\nBoxes are fractions of the image, as many as it has:")
    for record in ds["all"]:
        print(f"  {record['filename']}, boxes: {len(record['labels'])}")
        sides = zip(*(record[side] for side in ("xmin", "ymin", "xmax", "ymax")), strict=True)
        for label, box in zip(record["labels"], sides, strict=True):
            print(f"    {names[label]}: " + " ".join(f"{value:.2f}" for value in box))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
