"""Write a table, and train a PyTorch network on its columns as one matrix."""

import os
import tempfile

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

import datum


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    table = load_breast_cancer(as_frame=True).frame  # 569 tumours: 30 measurements, benign or not
    table.columns = [name.replace(" ", "_") for name in table.columns]
    names = [name for name in table.columns if name != "target"]
    table = table.astype(dict.fromkeys(names, "float32"))  # half the bytes, and precise enough
    print(datum.write(table, "tumours", splits={"train": 0.8, "test": 0.2}, stratify="target"))
    ds = datum.load("tumours")
    print(ds)

    # The manifest holds the range of each column: scale it to -1..1.
    numbers = [ds.statistics["train"]["features"][name]["numbers"] for name in names]
    low = np.array([one["min"] for one in numbers], np.float32)
    high = np.array([one["max"] for one in numbers], np.float32)

    def as_matrix(batch: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Called in the loader's threads; the result becomes tensors."""
        columns = np.stack([batch[name] for name in names], axis=1)
        return (columns - low) / (high - low) * 2 - 1, batch["target"].astype(np.float32)

    train = ds.to_torch("train", shuffle=True, batch_map=as_matrix)
    test = ds.to_torch("test", batch_size=256, batch_map=as_matrix)

    network = nn.Sequential(nn.Linear(len(names), 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(20):
        for inputs, targets in train:  # a new order each time
            loss = nn.functional.binary_cross_entropy_with_logits(network(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    with torch.no_grad():
        right = [(network(inputs) > 0) == (targets > 0) for inputs, targets in test]
    accuracy = torch.cat(right).float().mean().item()
    print(f"\nThe model classifies {accuracy:.1%} of unseen tumours correctly")
    print("More than 93 %:", accuracy > 0.93)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder  # removed at the end
        main()
        os.chdir("..")
