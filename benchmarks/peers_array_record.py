"""ArrayRecord: the same serialized records in a file, read by number."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from array_record.python import array_record_module
from array_record.python.array_record_data_source import ArrayRecordDataSource

from benchmarks.workloads import Field

# For access at random, as its guide has it; uncompressed as the files of Datum, and twice as fast.
OPTIONS = "group_size:1,uncompressed"


def write(payloads: Iterable[bytes], path: Path) -> None:
    """Writes serialized records as they are."""
    writer = array_record_module.ArrayRecordWriter(str(path), OPTIONS)
    for payload in payloads:
        writer.write(payload)
    writer.close()


def open_records(path: Path) -> Any:
    """The records of a file, as bytes."""
    return ArrayRecordDataSource(str(path))


def parse(payload: bytes, fields: Sequence[Field]) -> dict[str, Any]:
    """A record of scalars as a dict, by `tf.train.Example`."""
    import tensorflow as tf

    features = tf.train.Example.FromString(payload).features.feature
    return {
        field.name: getattr(features[field.name], f"{_LISTS[field.kind]}_list").value[0]
        for field in fields
    }


_LISTS = {"float": "float", "int": "int64", "bytes": "bytes"}
