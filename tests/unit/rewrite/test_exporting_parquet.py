"""A split as a Parquet file."""

import json

import numpy as np
import pyarrow.parquet as pq

from datum import Feature, Schema
from datum._rewrite.export import ParquetSplit


def test_each_batch_is_a_row_group_and_what_was_known_is_kept(tmp_path):
    schema = Schema({"x": Feature("int64"), "y": Feature("float32", optional=True)})
    split = ParquetSplit(tmp_path / "a.parquet", schema, {"x": {"class_names": ["a"]}, "z": {}})
    for start in (0, 3):
        numbers = np.arange(start, start + 3)
        split.write({"x": numbers, "y": numbers.astype(np.float32), "other": numbers}, 3)
    split.close()
    file = pq.ParquetFile(tmp_path / "a.parquet")
    assert file.num_row_groups == 2
    assert file.read()["x"].to_pylist() == list(range(6))
    found = file.schema_arrow
    assert (found.field("x").nullable, found.field("y").nullable) == (False, True)
    told = json.loads(found.metadata[b"datum"])
    assert Schema.from_json(told["schema"]) == schema
    assert told["metadata"] == {"x": {"class_names": ["a"]}}
    assert split.files == 1
