"""Write one table in four forms, with the same result: CSV, Parquet, DataFrame, dict of arrays."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import datum


def compare(name: str) -> None:
    """Print how many files of a dataset are identical in `from_arrays`."""
    paths = sorted(p.relative_to(name) for p in Path(name).rglob("*") if p.is_file())
    same = [Path(name, p).read_bytes() == Path("from_arrays", p).read_bytes() for p in paths]
    print(f"  {name}: {sum(same)} of {len(same)} files are the same")


def main() -> None:
    random = np.random.default_rng(0)
    columns = {
        "id": np.arange(500),
        "height": random.normal(170, 10, 500).round(1),
        "city": random.choice(["Bonn", "Köln", "Ulm"], 500).tolist(),
        "member": random.random(500) < 0.5,
    }
    frame = pd.DataFrame(columns)
    frame.to_csv("people.csv", index=False)
    frame.to_parquet("people.parquet", index=False)

    splits = {"train": 0.8, "test": 0.2}
    print(datum.write(columns, "from_arrays", splits=splits))
    datum.write(frame, "from_frame", splits=splits)
    datum.write("people.csv", "from_csv", splits=splits)
    datum.write("people.parquet", "from_parquet", splits=splits)

    ds = datum.load("from_arrays")
    print(ds)
    print("\nThe first record for testing:", ds["test"][0])

    print("\nTheir files beside those of the dict of arrays, byte for byte:")
    for name in ("from_frame", "from_csv", "from_parquet"):
        compare(name)

    print("\nTypes that CSV does not have make other records: categories become numbers, and their")
    print("names go into the manifest; float32 takes half the bytes.")
    frame = frame.astype({"city": "category", "height": "float32"})
    datum.write(frame, "from_categories", splits=splits)
    compare("from_categories")
    print(datum.load("from_categories"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("..")
