"""Write handwritten digits to a TFRecord file, inspect it, read it, and recover from damage."""

import tempfile
from pathlib import Path

from digits import read_digits

from datum import Feature, Schema
from datum.format import Index, RecordFile, RecordWriter, discover, encode, parse, read_batches


def main() -> None:
    schema = Schema(
        {
            "label": Feature("int64"),
            "image": Feature("uint8", (8, 8), encoding="raw"),
            "name": Feature("str"),
        }
    )
    rows = read_digits() * 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "digits.tfrecord")

        print(f"1. Write {len(rows)} rows to {path.name}: encode(rows, schema)")
        with RecordWriter(path) as writer:
            writer.write_framed(encode(rows, schema))
        writer.index.save(Index.path_for(path))
        print(f"   {path.stat().st_size:,} bytes, and an index beside it")

        print("2. Ask the file what it holds, without the schema: discover(path)")
        for name, found in discover(path).features.items():
            print(f"   {name}: {found.kinds[0]}, in {found.present} of {found.records} records")

        print("3. Read it in batches of columns: read_batches(path, schema)")
        count = 0
        for batch in read_batches(path, schema, batch_size=1024):
            count += len(batch["label"])
        print(f"   {count} records; the last batch has image {batch['image'].shape}")

        print("4. Read any record by its number: RecordFile(path).records([3])")
        digit = parse(RecordFile(path).records([3]), schema)
        for row in digit["image"][0]:
            print("   " + "".join(" .:-=+*#%@"[int(value) * 9 // 16] * 2 for value in row))
        print(f"   its name is {digit['name'][0]!r}")

        print("5. Damage one byte: a strict reader refuses, recovery='skip' loses one record")
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        survivor = RecordFile(bytes(content), recovery="skip")
        kept = sum(len(records) for records in survivor.chunks())
        print(f"   {kept} of {len(rows)} records read; lost: {survivor.damage[0]}")


if __name__ == "__main__":
    main()
