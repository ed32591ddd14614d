"""LitData: records and photos in its chunks, loaded shuffled in its StreamingDataLoader."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import litdata
import simplejpeg
from litdata.streaming import Cache

from benchmarks.reader import Reader
from benchmarks.torch_batches import Collate, columns_of, in_workers, length_of
from benchmarks.workloads import Workload

# It decodes 256 records at once and shuffles within them. A chunk that two workers share, or that
# begins elsewhere, makes it decode them anew for each record, a hundred times slower.
CHUNK_RECORDS = 4096
PHOTO_CHUNKS = 4  # two for each worker


def write(rows: Iterable[Mapping[str, Any]], folder: Path, *, chunk_records: int) -> None:
    """Writes what `litdata.optimize` writes of these rows, in this process."""
    cache = Cache(str(folder), chunk_size=chunk_records)
    for number, row in enumerate(rows):
        cache[number] = row
    cache.done()
    cache.merge()


def _loader(folder: Path, *, batch_size: int, **options: Any) -> Any:
    collate = options.pop("collate_fn", None)
    dataset = litdata.StreamingDataset(str(folder), shuffle=True, **options)
    make = litdata.StreamingDataLoader
    return in_workers(dataset, loader=make, batch_size=batch_size, collate_fn=collate)


def _prepare(workload: Workload, paths: Sequence[Path]) -> Callable[[], Iterator[dict[str, Any]]]:
    (folder,) = paths
    collate = Collate(workload.fields)
    return partial(iter, _loader(folder, batch_size=workload.batch_records, collate_fn=collate))


def photos(folder: Path, batch_size: int) -> Any:
    """Batches of photos, stored as the bytes of their files and decoded in the workers."""
    return _loader(folder, batch_size=batch_size, transform=_decoded)


def _decoded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"image": simplejpeg.decode_jpeg(row["image"]), "label": row["label"]}


READER = Reader(_prepare, length_of, columns_of)
