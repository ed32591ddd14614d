"""Load records written by plain TensorFlow without describing them."""

import io
import os
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import datum

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is loaded: hides its log


def write_with_tensorflow(folder: Path) -> None:
    """Images with boxes, under the names that many detectors use."""
    import tensorflow as tf

    def one(number: int) -> bytes:
        stream = io.BytesIO()
        pixels = np.full((24, 32 + number % 3, 3), number * 5, np.uint8)
        Image.fromarray(pixels).save(stream, "JPEG")
        boxes = [0.1 * (at + 1) for at in range(number % 3)]  # 0, 1 or 2 boxes
        feature = {
            "image/encoded": tf.train.Feature(
                bytes_list=tf.train.BytesList(value=[stream.getvalue()])
            ),
            "image/filename": tf.train.Feature(
                bytes_list=tf.train.BytesList(value=[f"{number}.jpg".encode()])
            ),
            "image/object/bbox/xmin": tf.train.Feature(float_list=tf.train.FloatList(value=boxes)),
            "image/object/class/label": tf.train.Feature(
                int64_list=tf.train.Int64List(value=[1] * len(boxes))
            ),
        }
        example = tf.train.Example(features=tf.train.Features(feature=feature))
        return example.SerializeToString()

    folder.mkdir()
    files = {f"train-{at:05}-of-00004": range(at * 10, at * 10 + 10) for at in range(4)}
    files["validation-00000-of-00001"] = range(40, 50)
    for name, numbers in files.items():
        with tf.io.TFRecordWriter(str(folder / name)) as writer:
            for number in numbers:
                writer.write(one(number))


def main() -> None:
    folder = Path("street")
    write_with_tensorflow(folder)
    print("In the folder:", *sorted(path.name for path in folder.iterdir()))

    ds = datum.load(folder)
    print(ds)

    print("\nBatches for training, the images decoded, what differs in length ragged:")
    batches = ds.to_tf("train", batch_size=4, decode={"image/encoded": True})
    for batch in batches.take(1):
        for name, column in batch.items():
            print(f"  {name}: {type(column).__name__} {column.dtype.name} {column.shape}")
        print("  boxes:", batch["image/object/bbox/xmin"].to_list())

    print("\nBy number, too:", ds["train"][7]["image/filename"])

    print("\nWhat was found can be kept beside them, and the next time nothing is read through:")
    print("  written:", ds.save_manifest().name)
    print("  " + str(datum.load(folder).verify()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
