"""The same records in the formats of Datum's peers, made once."""

import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, generate, photos, workloads
from benchmarks.cached import cached
from benchmarks.workloads import Lists, Workload

SMALL_FIELDS = (
    workloads.Field("x", "int"),
    workloads.Field("y", "float"),
    workloads.Field("label", "int"),
)


def tfrecord_dataset(workload: Workload, records: int, cache: Path) -> Path:
    """The first records in one file with the index of the `tfrecord` package."""
    from benchmarks import peers_tfrecord_torch

    source = generate.first_records_path(workload, records, cache)
    make = partial(peers_tfrecord_torch.write, source)
    return cached(f"tfrecord-{workload.name}-{records}", cache, make, *_makers("tfrecord_torch"))


def streaming_dataset(workload: Workload, records: int, cache: Path) -> Path:
    """The first records as MosaicML Streaming stores them."""

    def make(folder: Path) -> None:
        from benchmarks import peers_streaming

        peers_streaming.write(workload, rows_of(workload, records), folder)

    return cached(f"mds-{workload.name}-{records}", cache, make, *_makers("streaming"))


def litdata_dataset(workload: Workload, records: int, cache: Path) -> Path:
    """The first records as LitData stores them."""

    def make(folder: Path) -> None:
        from benchmarks import peers_litdata

        chunk_records = peers_litdata.CHUNK_RECORDS
        peers_litdata.write(rows_of(workload, records), folder, chunk_records=chunk_records)

    return cached(f"litdata-{workload.name}-{records}", cache, make, *_makers("litdata"))


def litdata_photos(count: int, cache: Path) -> Path:
    """Photos as LitData stores the bytes of their files."""

    def make(folder: Path) -> None:
        from benchmarks import peers_litdata

        pairs = photo_bytes(count, cache)
        rows = ({"image": image, "label": label} for image, label in pairs)
        chunk_records = count // peers_litdata.PHOTO_CHUNKS
        peers_litdata.write(rows, folder, chunk_records=chunk_records)

    return cached(f"litdata-photos-{count}", cache, make, photos, *_makers("litdata"))


def webdataset_photos(count: int, cache: Path) -> Path:
    """Photos as WebDataset stores them."""

    def make(folder: Path) -> None:
        from benchmarks import peers_webdataset

        peers_webdataset.write(photo_bytes(count, cache), folder)

    return cached(f"webdataset-photos-{count}", cache, make, photos, *_makers("webdataset"))


def small_dataset(records: int, cache: Path) -> Path:
    """Records of an integer, a float and a label, as `datum.write` stores them, in order."""

    def make(folder: Path) -> None:
        import datum

        columns = small_columns(records)
        datum.write(columns, folder, shuffle=False, shards=4, progress=False)

    return cached(f"datum-small-{records}", cache, make, sys.modules[__name__])


def small_columns(records: int) -> dict[str, Any]:
    """What the small records hold: `x` is the number of the record."""
    x = np.arange(records)
    return {"x": x, "y": (x * 0.5).astype(np.float32), "label": x % 10}


def array_record(records: int, cache: Path) -> Path:
    """The small records, byte for byte, in a file of ArrayRecord."""

    def make(path: Path) -> None:
        import datum.format
        from benchmarks import peers_array_record

        shards = datasets.shards_of(small_dataset(records, cache))
        payloads = (each for shard in shards for each in datum.format.RecordFile(shard))
        peers_array_record.write(payloads, path)

    return cached(f"small-{records}.array_record", cache, make, *_makers("array_record"))


def photo_bytes(count: int, cache: Path) -> Iterator[tuple[bytes, int]]:
    """The bytes of each photo, and its label, the classes in turn."""
    classes = photos.photos_by_class(photos.photo_folder(count, cache)).values()
    pairs = [(path, label) for label, paths in enumerate(classes) for path in paths]
    for path, label in sorted(pairs, key=lambda pair: pair[0].name):
        yield path.read_bytes(), label


def rows_of(workload: Workload, records: int) -> Iterator[dict[str, Any]]:
    """Rows as dicts of Python's scalars and, for vectors and lists, NumPy arrays."""
    values: dict[str, Any] = {}
    for name, column in workload.columns().items():
        if isinstance(column, Lists):
            splits = column.row_splits[: records + 1].tolist()
            values[name] = [column.values[start:stop] for start, stop in pairwise(splits)]
        else:
            first = column[:records]
            values[name] = list(first) if first.ndim > 1 else first.tolist()
    return (dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True))


def _makers(peer: str) -> tuple[Any, ...]:
    return workloads, sys.modules[__name__], import_module(f"benchmarks.peers_{peer}")
