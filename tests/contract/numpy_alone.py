"""From data to a trained model with NumPy alone: a program that no framework is there for."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

import datum

FRAMEWORKS = ["jax", "keras", "tensorboard", "tensorflow", "torch"]


def draw(count: int) -> list[dict[str, object]]:
    """Small pictures with a bright spot on the left or on the right."""
    random = np.random.default_rng(0)
    rows = []
    for i in range(count):
        label = int(random.integers(2))
        image = random.integers(0, 100, (8, 8, 1), np.uint8)
        image[2:6, 1 + 4 * label : 3 + 4 * label] += 120
        words = [f"w{k}" for k in range(i % 3)]
        rows.append({"image": image, "label": label, "words": words, "name": f"n{i}"})
    return rows


def train(ds: datum.Dataset) -> np.ndarray:
    weights = np.zeros(65)
    loader = ds.to_numpy("train", shuffle=True, seed=1, epochs=20, columns=["image", "label"])
    for batch in loader:
        inputs = with_offset(batch["image"])
        errors = 1 / (1 + np.exp(-inputs @ weights)) - batch["label"]
        weights -= 0.1 * errors @ inputs / len(inputs)
    return weights


def with_offset(images: np.ndarray) -> np.ndarray:
    return np.concatenate([images.reshape(-1, 64) / 255, np.ones((len(images), 1))], axis=1)


def ask_for_frameworks(ds: datum.Dataset) -> dict[str, str]:
    """What the methods say for which something is missing."""
    told = {}
    for name in ("to_tf", "to_torch", "to_jax"):
        try:
            getattr(ds, name)("train")
        except datum.MissingDependencyError as error:
            told[name] = str(error)
    return told


def main(folder: Path) -> None:
    schema = {"image": datum.Feature("uint8", (8, 8, 1), encoding="image")}
    datum.write(draw(600), folder, splits={"train": 0.8, "val": 0.2}, schema=schema, progress=False)
    ds = datum.load(folder)
    weights = train(ds)
    (val,) = ds.to_numpy("val", batch_size=len(ds["val"]))
    accuracy = ((with_offset(val["image"]) @ weights > 0) == val["label"]).mean()
    result = {
        "there": [name for name in FRAMEWORKS if importlib.util.find_spec(name)],
        "accuracy": float(accuracy),
        "name": ds["val"][0]["name"],
        "words": val["words"].to_list()[:3],
        "told": ask_for_frameworks(ds),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
