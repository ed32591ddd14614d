"""Write rows from a generator as two splits, and quarantine the bad ones."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import datum


def messages() -> Iterator[tuple[str, dict[str, object]]]:
    """Yield a key, which decides the split and the order, and the record."""
    words = ["hello", "how", "are", "you", "today"]
    for i in range(1000):
        row: dict[str, object] = {
            "text": " ".join(words[: i % 5 + 1]),
            "tokens": [len(word) for word in words[: i % 5 + 1]],  # of variable length
            "score": i / 7,
            "reply": None if i % 10 else "fine, thanks",  # missing in most records
        }
        if i in (123, 456):
            row["score"] = "unknown"  # not a number: this record is rejected
        yield f"message-{i}", row


def main() -> None:
    splits = {"train": 0.9, "val": 0.1}
    report = datum.write(messages, "messages", splits=splits, on_error="quarantine")
    print(report)

    print("\nWhat was put aside, and why:")
    for line in Path("messages", "quarantine.jsonl").read_text().splitlines():
        bad = json.loads(line)
        print(f"  {bad['key']}: {bad['reason']}")

    print("\nThe inferred schema and metadata:")
    ds = datum.load("messages")
    print(ds)

    print("\nA record, and five of them as columns:")
    print(ds["val"][0])
    print(ds["val"].read(range(5), columns=["tokens"])["tokens"].to_list())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
