"""Write handwritten digits as a dataset and read them back, end to end."""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
from digits import read_digits

import datum


def show(image: np.ndarray) -> None:
    """An image as text."""
    for row in image:
        print("   " + "".join(" .:-=+*#%@"[int(value) * 9 // 16] * 2 for value in row))


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    out = folder / "digits"
    rows = read_digits() * 1000

    print(f"1. Write {len(rows):,} rows, a tenth of them for validation: datum.write(rows, out)")
    report = datum.write(rows, out, splits={"train": 0.9, "val": 0.1}, shards=2)
    print("   " + str(report).replace(str(folder) + "/", "").replace("\n", "\n   "))

    print("2. What is on disk: plain TFRecord files, their indexes, a manifest")
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        print(f"   {path.relative_to(out)!s:<40} {path.stat().st_size:>9,} bytes")

    print("3. Open it; types and shapes were inferred: datum.load(out)")
    ds = datum.load(out)
    for name, feature in ds.schema.items():
        print(f"   {name}: {feature}")
    counts = ds.statistics["train"]["features"]["name"]["most_frequent"]
    print(f"   most frequent names: {', '.join(name for name, _ in counts[:3])}, ...")

    print("4. Any record by its number: ds['val'][7]")
    record = ds["val"][7]
    show(record["image"])
    print(f"   it is a {record['name']!r}")

    print("5. The same call writes the same bytes again, with any number of workers")
    again = folder / "again"
    datum.write(rows, again, splits={"train": 0.9, "val": 0.1}, shards=2, workers=1)
    files = [path for path in out.rglob("*") if path.is_file()]
    same = all((again / path.relative_to(out)).read_bytes() == path.read_bytes() for path in files)
    print(f"   {'the same' if same else 'different'}")

    print("6. Add records; bad ones are put aside with their reasons: append=True")
    more = [{**rows[0], "label": 10}, {**rows[1], "label": "one"}]
    datum.write(more, out, append=True, on_error="quarantine", progress=False)
    reason = json.loads((out / "quarantine.jsonl").read_text())["reason"]
    print(f"   {len(datum.load(out)['train']):,} records for training; put aside: {reason}")

    print("7. Check every byte: ds.verify()")
    print("   " + str(datum.load(out).verify()).replace(str(folder) + "/", ""))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
