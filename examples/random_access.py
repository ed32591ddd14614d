"""Read records by number, and use a split in a PyTorch DataLoader with workers."""

import os
import tempfile

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, default_collate

import datum


def collate(records: list) -> dict:
    """Called in the workers: pixels from 0 to 1, with a little noise, as tensors."""
    for record in records:
        noise = np.random.default_rng(int(record["number"])).normal(0, 0.05, 64)
        record["pixels"] = (record["pixels"] / 16 + noise).astype(np.float32)
    return default_collate(records)


def main() -> None:
    digits = load_digits()
    table = {
        "number": np.arange(len(digits.target)),
        "pixels": digits.data.astype(np.float32),
        "label": digits.target,
    }
    datum.write(table, "digits", splits={"train": 0.8, "test": 0.2}, compression="gzip")
    ds = datum.load("digits")
    train, test = ds["train"], ds["test"]

    print(f"Of {len(train):,} digits, some by their numbers:")
    for record in train[[0, 7, -1]]:
        print(f"  number {record['number']} is a {record['label']}: {record['pixels'].shape}")

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    batches = DataLoader(train, batch_size=64, shuffle=True, num_workers=2, collate_fn=collate)
    for _ in range(5):
        for batch in batches:
            loss = torch.nn.functional.cross_entropy(model(batch["pixels"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    columns = test.read(range(len(test)))  # all of it, as arrays
    found = model(torch.from_numpy(columns["pixels"] / 16)).argmax(1).numpy()
    accuracy = (found == columns["label"]).mean()
    print(f"\nThe model recognises {accuracy:.1%} of {len(test)} unseen digits")
    print("More than 90 %:", accuracy > 0.9)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        # Keep the decompressed copy and PyTorch's compiler cache in this folder.
        os.environ["DATUM_CACHE"] = f"{folder}/inflated"
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/compiled"
        main()
        os.chdir("..")
