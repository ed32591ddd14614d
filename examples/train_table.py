"""Write a table, and train a network on its columns by name."""

import os
import tempfile

from sklearn.datasets import load_breast_cancer

import datum

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is loaded: hides its log


def main() -> None:
    table = load_breast_cancer(as_frame=True).frame  # 569 tumours: 30 measurements, benign or not
    table.columns = [name.replace(" ", "_") for name in table.columns]
    names = [name for name in table.columns if name != "target"]
    table = table.astype(dict.fromkeys(names, "float32"))  # half the bytes, and precise enough
    print(datum.write(table, "tumours", splits={"train": 0.8, "test": 0.2}, stratify="target"))
    ds = datum.load("tumours")
    print(ds)

    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    train = ds.to_tf("train", shuffle=True, supervised=(names, "target"))
    test = ds.to_tf("test", supervised=(names, "target"))

    # The manifest holds the range of each column: scale it to 0..1.
    numbers = [ds.statistics["train"]["features"][name]["numbers"] for name in names]
    scale = [1 / (one["max"] - one["min"]) for one in numbers]
    offset = [-one["min"] * by for one, by in zip(numbers, scale, strict=True)]

    inputs = {name: tf.keras.Input((1,), name=name) for name in names}
    columns = tf.keras.layers.Concatenate()(list(inputs.values()))
    scaled = tf.keras.layers.Rescaling(scale, offset=offset)(columns)
    hidden = tf.keras.layers.Dense(16, activation="relu")(scaled)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1, activation="sigmoid")(hidden))
    model.compile(
        tf.keras.optimizers.Adam(2e-2),
        "binary_crossentropy",
        metrics=["accuracy"],
        jit_compile=False,
    )
    # Keras cannot shuffle a tf.data.Dataset, and warns without shuffle=False.
    model.fit(train, epochs=25, shuffle=False, verbose=0)

    _, accuracy = model.evaluate(test, verbose=0)
    print(f"\nThe model classifies {accuracy:.1%} of unseen tumours correctly")
    print("More than 90 %:", accuracy > 0.9)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
