"""Datum: any dataset as sharded TFRecord files, fed to training at the speed of the hardware."""

from datum import format
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import (
    CorruptIndexError,
    CorruptRecordError,
    Damage,
    DatumError,
    MissingDependencyError,
    SchemaError,
)
from datum.schema import Feature, Schema

__version__ = "0.1.0.dev0"

__all__ = [
    "BytesColumn",
    "CorruptIndexError",
    "CorruptRecordError",
    "Damage",
    "DatumError",
    "Feature",
    "Masked",
    "MissingDependencyError",
    "Ragged",
    "Schema",
    "SchemaError",
    "Sparse",
    "__version__",
    "format",
]
