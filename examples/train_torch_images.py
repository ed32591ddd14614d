"""Write and augment images, and train a small PyTorch network with a stop and a resume."""

import os
import tempfile

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import datum

EPOCHS = 6


def write_digits() -> None:
    """The 1,797 handwritten digits of scikit-learn, as PNG files in TFRecords."""
    digits = load_digits()
    images = (digits.images * 255 / 16).astype(np.uint8)[..., None]
    rows = [
        {"image": image, "label": label} for image, label in zip(images, digits.target, strict=True)
    ]
    schema = {"image": datum.Feature("uint8", (8, 8, 1), encoding="image")}
    splits = {"train": 0.8, "val": 0.2}
    print(datum.write(rows, "digits", schema=schema, splits=splits, stratify="label"))


def shift(record: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Shift the image by up to a pixel in any direction."""
    return {**record, "image": np.roll(record["image"], rng.integers(-1, 2, 2), axis=(0, 1))}


def make_network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(10),
    )


def as_input(images: torch.Tensor) -> torch.Tensor:
    """Scale pixels to -1..1 and move the channels to the front."""
    return images.permute(0, 3, 1, 2) / 127.5 - 1


class Training:
    """The state of a run, which a checkpoint must hold."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.network = make_network()
        self.network(torch.zeros(1, 1, 8, 8))  # the last layer learns its size
        self.optimizer = torch.optim.Adam(self.network.parameters(), 4e-3)
        self.loader = datum.load("digits").to_torch("train", shuffle=True, map=shift)
        self.epoch = 0
        self.parts = {
            "network": self.network,
            "optimizer": self.optimizer,
            "loader": self.loader,
        }

    def run(self, *, steps: int | None = None) -> None:
        """Train to the end, or for that many steps."""
        while self.epoch < EPOCHS:
            for batch in self.loader:
                loss = nn.functional.cross_entropy(
                    self.network(as_input(batch["image"])), batch["label"]
                )
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                steps = None if steps is None else steps - 1
                if steps == 0:
                    return
            self.epoch += 1

    def save(self, path: str) -> None:
        state = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({"epoch": self.epoch, **state}, path)

    def load(self, path: str) -> None:
        saved = torch.load(path, weights_only=True)
        self.epoch = saved["epoch"]
        for name, part in self.parts.items():
            part.load_state_dict(saved[name])


def main() -> None:
    torch.set_num_threads(1)  # more threads slow down a network this small
    write_digits()
    whole = Training()
    print("\nA loader:", whole.loader)
    whole.run()

    # The same again, but stopped in the middle of the third epoch and resumed.
    stopped = Training()
    stopped.run(steps=100)
    stopped.save("checkpoint.pt")
    print("Stopped at", stopped.loader.state_dict())
    resumed = Training()
    resumed.load("checkpoint.pt")
    resumed.run()
    pairs = zip(whole.network.parameters(), resumed.network.parameters(), strict=True)
    print("Resumed, it learns exactly the same:", all(torch.equal(a, b) for a, b in pairs))

    right = count = 0
    with torch.no_grad():
        for batch in datum.load("digits").to_torch("val", batch_size=128):
            guess = resumed.network(as_input(batch["image"])).argmax(1)
            right += int((guess == batch["label"]).sum())
            count += len(guess)
    print(f"\nOf {count} digits that it has not seen it knows {right / count:.1%}")
    print("More than 95 %:", right / count > 0.95)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder  # removed at the end
        main()
        os.chdir("..")
