"""Datasets read with TensorFlow alone, by the feature specifications that the documentation gives.

Nothing of Datum is used here: these are the lines that a user without it would write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

IMAGE = TEXT = tf.io.FixedLenFeature((), tf.string)
INTEGER = tf.io.FixedLenFeature((), tf.int64)
TEXTS = tf.io.RaggedFeature(tf.string)
FLOATS = tf.io.RaggedFeature(tf.float32)
INTEGERS = tf.io.RaggedFeature(tf.int64)

# What docs/guides/ says about each layout.
CLASSIFICATION = {"image": IMAGE, "label": INTEGER, "filename": TEXT}
DETECTION = {
    "image": IMAGE,
    **dict.fromkeys(("xmin", "xmax", "ymin", "ymax", "area"), FLOATS),
    **dict.fromkeys(("labels", "is_truncated", "labels_difficult"), INTEGERS),
    "pose": TEXTS,
    "filename": TEXT,
}
SEGMENTATION = {"image": IMAGE, "label": IMAGE, "filename": TEXT}

BATCH_RECORDS = 256
_KINDS = {"str": tf.string, "bytes": tf.string, "float32": tf.float32}


def table_spec(folder: Path) -> dict[str, Any]:
    """The specification of a table of scalars, by the schema in `datum.json` and the docs."""
    features = json.loads((folder / "datum.json").read_text())["schema"]
    return {name: _scalar_spec(feature) for name, feature in features.items()}


def _scalar_spec(feature: Mapping[str, Any]) -> Any:
    assert feature["shape"] == []
    is_raw = feature["encoding"] == "raw"
    kind = tf.string if is_raw else _KINDS.get(feature["dtype"], tf.int64)
    # Of what may be absent a default could not be told from the same value.
    return tf.io.VarLenFeature(kind) if feature.get("optional") else tf.io.FixedLenFeature((), kind)


def read_split(folder: Path, split: str, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of a split, in order, as dicts.

    Texts and images are bytes, numbers NumPy's, ragged features lists, and features of
    `VarLenFeature` and `SparseFeature` dicts from index to value.
    """
    files = sorted(map(str, folder.glob(f"{split}-*-of-*.tfrecord")))
    rows: list[dict[str, Any]] = []
    for records in tf.data.TFRecordDataset(files).batch(BATCH_RECORDS):
        batch = tf.io.parse_example(records, dict(spec))
        columns = {name: _rows_of(column) for name, column in batch.items()}
        rows += (
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        )
    return rows


def _rows_of(column: Any) -> list[Any]:
    if isinstance(column, tf.RaggedTensor):
        return column.to_list()
    if not isinstance(column, tf.SparseTensor):
        return list(column.numpy())
    rows: list[dict[int, Any]] = [{} for _ in range(int(column.dense_shape[0]))]
    places = column.indices.numpy().tolist()
    for (row, place), value in zip(places, column.values.numpy(), strict=True):
        rows[row][place] = value
    return rows


def decode_ids(mask: bytes) -> Any:
    """The class ids of a mask, as an array of height and width."""
    return tf.io.decode_png(mask, channels=1).numpy()[..., 0]


def decode_raw(data: bytes | list[bytes], dtype: str) -> Any:
    """The items of a feature that is stored raw; of several records of one size, a row for each."""
    return tf.io.decode_raw(data, tf.dtypes.as_dtype(dtype)).numpy()
