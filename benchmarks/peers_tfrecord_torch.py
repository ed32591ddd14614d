"""The PyTorch dataset of the `tfrecord` package, shuffled, in a DataLoader."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.peers_tfrecord import KINDS, create_index  # loads the package in its own way
from benchmarks.reader import Reader
from benchmarks.torch_batches import Collate, columns_of, in_workers, length_of
from benchmarks.workloads import Workload

SHUFFLED_RECORDS = 8192  # as in the pipelines of tf.data by hand


def write(records: Path, folder: Path) -> None:
    """Puts a file of records and its index, without which workers cannot share it, in a folder."""
    folder.mkdir()
    (folder / "records.tfrecord").hardlink_to(records)
    create_index(str(records), str(folder / "records.tfindex"))


def _prepare(workload: Workload, paths: Sequence[Path]) -> Callable[[], Iterator[dict[str, Any]]]:
    from tfrecord.torch.dataset import TFRecordDataset

    (folder,) = paths
    dataset = TFRecordDataset(
        str(folder / "records.tfrecord"),
        str(folder / "records.tfindex"),
        {field.name: KINDS[field.kind] for field in workload.fields},
        shuffle_queue_size=SHUFFLED_RECORDS,
        transform=_unchanged,  # its own default cannot be sent to workers
    )
    collate = Collate(workload.fields)
    loader = in_workers(dataset, batch_size=workload.batch_records, collate_fn=collate)
    return partial(iter, loader)


def _unchanged(row: dict[str, Any]) -> dict[str, Any]:
    return row


READER = Reader(_prepare, length_of, columns_of)
