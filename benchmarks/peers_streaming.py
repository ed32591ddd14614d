"""MosaicML Streaming: records as MDS shards, loaded shuffled in a DataLoader."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.reader import Reader
from benchmarks.torch_batches import Collate, columns_of, in_workers, length_of
from benchmarks.workloads import Field, Workload

# Its front door also opens datasets of text and images, and with them transformers and
# torchvision; nothing of that takes part in what is measured.
UNUSED = {
    "streaming.multimodal": (),
    "streaming.text": (),
    "streaming.vision": (),
    "transformers": (),
    "transformers.feature_extraction_utils": ("BatchFeature",),
    "transformers.tokenization_utils_base": ("BatchEncoding",),
}


def _import() -> Any:
    for name, classes in UNUSED.items():
        module = ModuleType(name)
        vars(module).update({each: type(each, (), {}) for each in classes})
        sys.modules[name] = module
    try:
        import streaming
    finally:
        for name in UNUSED:
            del sys.modules[name]
    return streaming


streaming = _import()


def write(workload: Workload, rows: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """Writes rows with the encodings that its guide has for numbers and arrays, in its defaults."""
    columns = {field.name: _encoding(field) for field in workload.fields}
    floats = [name for name, encoding in columns.items() if encoding == "float32"]
    lists = [field.name for field in workload.fields if field.is_ragged]
    with streaming.MDSWriter(out=str(folder), columns=columns) as writer:
        for row in rows:
            exact = {name: np.float32(row[name]) for name in floats}
            packed = {name: row[name].tobytes() for name in lists}
            writer.write({**row, **exact, **packed})


def _encoding(field: Field) -> str:
    if field.kind == "bytes" or field.is_ragged:
        return "bytes"  # its encoding of arrays refuses empty ones, which lists may be
    dtype = {"float": "float32", "int": "int64"}[field.kind]
    return ":".join(["ndarray", dtype, *map(str, field.shape)]) if field.shape else dtype


class Records(streaming.StreamingDataset):  # type: ignore[misc, name-defined]
    """Its dataset, under a name that a worker finds here, where the package can be imported."""


def _prepare(workload: Workload, paths: Sequence[Path]) -> Callable[[], Iterator[dict[str, Any]]]:
    (folder,) = paths
    streaming.base.util.clean_stale_shared_memory()  # of a run that was broken off
    dataset = Records(local=str(folder), shuffle=True, batch_size=workload.batch_records)
    collate = Collate(workload.fields)
    loader = in_workers(dataset, batch_size=workload.batch_records, collate_fn=collate)
    return partial(iter, loader)


READER = Reader(_prepare, length_of, columns_of)
