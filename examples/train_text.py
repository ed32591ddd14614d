"""Store texts as sparse word counts, and size a model from the dataset."""

import os
import random
import tempfile

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import LabelBinarizer

import datum

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is loaded: hides its log

COMMON = "please my the a is was not again today still can you help with it i and since very"
TOPICS = {
    "delivery": "parcel courier address late tracking box driver delivered street missing",
    "payment": "invoice card refund charged bank twice price amount receipt voucher",
    "account": "password login email reset locked username profile code phone settings",
}


def write_message(topic: str, source: random.Random) -> str:
    """Three words of a topic among common words, and two of any topic."""
    words = source.choices(COMMON.split(), k=8) + source.choices(TOPICS[topic].split(), k=3)
    words += source.choices(" ".join(TOPICS.values()).split(), k=2)
    return " ".join(source.sample(words, len(words)))


def main() -> None:
    source = random.Random(0)
    topics = source.choices(list(TOPICS), k=2000)
    rows = [{"text": write_message(topic, source), "topic": topic} for topic in topics]
    print(f"{rows[0]['topic']}: {rows[0]['text']}")

    encoders = {"text": CountVectorizer(), "topic": LabelBinarizer()}
    print(datum.write(rows, "messages", splits={"train": 0.8, "val": 0.2}, encoders=encoders))
    ds = datum.load("messages")
    print(ds)

    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    words, topics = ds.metadata["text"]["size"], ds.metadata["topic"]["size"]

    def prepare(batch: dict[str, tf.Tensor]) -> tuple[tf.SparseTensor, tf.Tensor]:
        """Convert counts to floats for the layers; they stay sparse."""
        return tf.cast(batch["text"], tf.float32), batch["topic"]

    train = ds.to_tf("train", shuffle=True, batch_map=prepare)
    val = ds.to_tf("val", batch_map=prepare)

    model = tf.keras.Sequential(
        [
            tf.keras.Input((words,), sparse=True),
            tf.keras.layers.Dense(16, activation="relu"),
            tf.keras.layers.Dense(topics, activation="softmax"),
        ]
    )
    optimizer = tf.keras.optimizers.Adam(1e-2)
    model.compile(optimizer, "categorical_crossentropy", metrics=["accuracy"], jit_compile=False)
    # Keras cannot shuffle a tf.data.Dataset, and warns without shuffle=False.
    model.fit(train, epochs=6, shuffle=False, verbose=0)

    _, accuracy = model.evaluate(val, verbose=0)
    print(f"\nA model of {words} words and {topics} topics: {accuracy:.1%} of new texts are right")
    print("More than 90 %:", accuracy > 0.9)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
