"""Write labelled texts from JSON Lines and from the JSON of the Datum paper."""

import json
import os
import tempfile
from pathlib import Path

import datum
from datum.sources import JsonLines

REVIEWS = [
    ("a fine film, well played", 5, "film"),
    ("too long by half", 2, "book"),
    ("I laughed, I cried", 5, "film"),
    ("die Übersetzung ist holprig", 3, "book"),
    ("never again", 1, "film"),
]


def main() -> None:
    print("JSON Lines: objects may be nested, and lists may differ in length")
    with open("reviews.jsonl", "w", encoding="utf-8") as file:
        for i, (text, stars, kind) in enumerate(REVIEWS):
            row = {"id": f"r{i}", "text": text, "about": {"kind": kind}, "words": text.split()}
            file.write(json.dumps({**row, "stars": stars}) + "\n")
    print(datum.write(JsonLines("reviews.jsonl", key="id"), "lines"))  # or just the path
    ds = datum.load("lines")
    print(ds)
    print(ds["train"][0])

    print("\nThe paper's JSON: a text and its labels under each key, a file for each split")
    for split, rows in {"train": REVIEWS[:3], "val": REVIEWS[3:]}.items():
        texts = {
            f"{split}{i}": {"text": text, "label": {"stars": stars, "kind": kind}}
            for i, (text, stars, kind) in enumerate(rows)
        }
        Path("reviews").mkdir(exist_ok=True)
        Path("reviews", f"{split}.json").write_text(json.dumps(texts), encoding="utf-8")
    print(datum.write("reviews", "texts", problem="text_clf"))
    ds = datum.load("texts")
    print(ds)
    for record in ds["val"]:
        print(record)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
