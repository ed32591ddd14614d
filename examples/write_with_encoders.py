"""Encode texts and labels with scikit-learn, and size a model from the metadata."""

import os
import tempfile

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import LabelBinarizer

import datum

ROWS = [
    {"description": "a small red house", "label": "house"},
    {"description": "a red car, a fast car", "label": "car"},
    {"description": "a tall tree", "label": "tree"},
    {"description": "the house by the tree", "label": "house"},
]


def main() -> None:
    encoders = {"description": CountVectorizer(), "label": LabelBinarizer()}
    print(datum.write(ROWS, "things", encoders=encoders))
    ds = datum.load("things")
    print(ds)

    words, labels = ds.metadata["description"], ds.metadata["label"]
    print(f"\n{words['encoder']} learned {words['size']} words: {', '.join(words['vocabulary'])}")
    print(f"{labels['encoder']} learned {labels['size']} classes: {', '.join(labels['classes'])}")

    print("\nRecords, with the words that their counts stand for:")
    terms = {column: term for term, column in words["vocabulary"].items()}
    for record in ds["train"]:
        counts = record["description"].to_dense()
        found = {terms[column]: int(counts[column]) for column in np.flatnonzero(counts)}
        print(f"  {labels['classes'][np.argmax(record['label'])]}: {found}")

    weights = np.zeros((words["size"], labels["size"]))  # a linear model, sized by the metadata
    batch = ds["train"].read(range(len(ds["train"])))
    counts, wanted = batch["description"].to_dense(), batch["label"]
    for _ in range(20):
        scores = np.exp(counts @ weights)
        weights += counts.T @ (wanted - scores / scores.sum(axis=1, keepdims=True))
    right = np.argmax(counts @ weights, axis=1) == np.argmax(wanted, axis=1)
    print(f"\nA model with weights {weights.shape} gets {right.sum()} of {len(right)} right")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
