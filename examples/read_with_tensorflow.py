"""Read a dataset with TensorFlow alone, using a feature specification."""

import os
import tempfile

import numpy as np

import datum

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is loaded: hides its log


def make_rows() -> list[dict[str, object]]:
    """A number, a vector, a text, a list, an array, and a number that some records lack."""
    return [
        {
            "label": i % 3,
            "position": np.array([i, i / 2], np.float32),
            "name": f"sample {i}",
            "tokens": list(range(i % 5)),
            "pixels": np.full((16, 20), i, np.uint8),
            "weight": np.float32(i) if i % 3 else None,
        }
        for i in range(100)
    ]


def main() -> None:
    print(datum.write(make_rows(), "samples", shards=2, shuffle=False))
    print(datum.load("samples"))

    import tensorflow as tf

    spec = {
        "label": tf.io.FixedLenFeature((), tf.int64),
        "position": tf.io.FixedLenFeature((2,), tf.float32),
        "name": tf.io.FixedLenFeature((), tf.string),
        "tokens": tf.io.RaggedFeature(tf.int64),
        "pixels": tf.io.FixedLenFeature((), tf.string),  # raw bytes, see below
        "weight": tf.io.FixedLenFeature((), tf.float32, default_value=-1.0),
    }

    def parse(records: tf.Tensor) -> dict[str, tf.Tensor]:
        batch = tf.io.parse_example(records, spec)
        pixels = tf.io.decode_raw(batch["pixels"], tf.uint8)
        return {**batch, "pixels": tf.reshape(pixels, (-1, 16, 20))}

    files = tf.data.Dataset.list_files("samples/train-*.tfrecord", shuffle=False)
    for batch in tf.data.TFRecordDataset(files).batch(4).map(parse).take(1):
        for name, value in batch.items():
            print(f"{name}: {value.dtype.name} {value.shape}")
        print("tokens:", batch["tokens"].to_list())
        print("weights:", batch["weight"].numpy())
        print("the first name:", batch["name"][0].numpy().decode())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
