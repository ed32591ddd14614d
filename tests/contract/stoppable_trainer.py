"""A training that logs each step, keeps a checkpoint, and goes on from it: a program to be killed.

It takes a step for each line of its input, and all that are left once that has ended.
"""

import json
import sys
from hashlib import blake2b
from pathlib import Path

import numpy as np

import datum

EPOCHS = 3


def save(checkpoint: Path, **values: object) -> None:
    """Replace the checkpoint in one step: whoever is killed here leaves the old one or the new."""
    unfinished = checkpoint.with_suffix(".new")
    unfinished.write_text(json.dumps(values))
    unfinished.replace(checkpoint)


def wait_for_leave() -> None:
    sys.stdin.readline()


def main(data: str, folder: Path, options: dict[str, object]) -> None:
    log, checkpoint = folder / "log", folder / "checkpoint"
    loader = datum.load(data).to_numpy("train", **options)
    weights, step = np.zeros(4), 0
    if checkpoint.exists():
        saved = json.loads(checkpoint.read_text())
        weights, step = np.array(saved["weights"]), saved["step"]
        loader.load_state_dict(saved["loader"])
    if log.exists():
        lines = log.read_text().splitlines(keepends=True)
        log.write_text("".join(lines[:step]))  # what came after the checkpoint comes again
    while (epoch := loader.state_dict()["epoch"]) < EPOCHS:
        for batch in loader:
            wait_for_leave()
            error = 1 / (1 + np.exp(-(batch["x"] @ weights))) - batch["label"]
            weights -= 0.1 * error @ batch["x"]
            step += 1
            digest = blake2b(weights.tobytes(), digest_size=8).hexdigest()
            with log.open("a") as file:
                file.write(json.dumps([step, epoch, batch["id"].tolist(), digest]) + "\n")
            print(step, flush=True)
            save(checkpoint, weights=weights.tolist(), step=step, loader=loader.state_dict())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
