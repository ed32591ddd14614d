"""TFRecord files of tf.train.Example and SequenceExample: read, write, index, parse, encode.

This package works on single files and on memory; datasets build on it.

>>> from datum import Feature, Schema
>>> from datum.format import RecordFile, encode, parse
>>> schema = Schema({"x": Feature("float32", (2,)), "name": Feature("str")})
>>> framed = encode([{"x": [1, 2], "name": "a"}], schema)
>>> file = RecordFile(framed.to_bytes())
>>> batch = parse(file, schema)
>>> batch["x"]
array([[1., 2.]], dtype=float32)
"""

from datum.errors import Damage
from datum.format.discover import DiscoveredFeature, Discovery, discover
from datum.format.encode import (
    Collected,
    EncodedBlock,
    ExactRecords,
    RowEncoder,
    encode,
    reencode,
    stores_alike,
)
from datum.format.file import RecordFile, Recovery
from datum.format.framing import Compression, Framed, Records, RecordWriter, frame
from datum.format.index import Index
from datum.format.manifest import Manifest, ShardInfo, SplitInfo
from datum.format.parse import BatchReader, Parser, parse, read_batches
from datum.format.statistics import Statistics

__all__ = [
    "BatchReader",
    "Collected",
    "Compression",
    "Damage",
    "DiscoveredFeature",
    "Discovery",
    "EncodedBlock",
    "ExactRecords",
    "Framed",
    "Index",
    "Manifest",
    "Parser",
    "RecordFile",
    "RecordWriter",
    "Records",
    "Recovery",
    "RowEncoder",
    "ShardInfo",
    "SplitInfo",
    "Statistics",
    "discover",
    "encode",
    "frame",
    "parse",
    "read_batches",
    "reencode",
    "stores_alike",
]
