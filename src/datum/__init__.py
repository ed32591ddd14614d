"""Datum: any dataset as sharded TFRecord files, fed to training at the speed of the hardware."""

import importlib
import typing

from datum import format
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import (
    CorruptIndexError,
    CorruptRecordError,
    Damage,
    DatumError,
    ManifestError,
    MissingDependencyError,
    SchemaError,
    SourceError,
    SplitError,
    StateError,
    WriteError,
)
from datum.schema import Feature, Schema

if typing.TYPE_CHECKING:
    from datum import (
        configs,
        export,
        images,
        problem,
        reader,
        sources,
        tensorboard,
        transforms,
    )
    from datum.dataset import Dataset
    from datum.mixing import mix
    from datum.reader import load
    from datum.writing import WriteReport, write

__version__ = "0.1.0.dev0"

__all__ = [
    "BytesColumn",
    "CorruptIndexError",
    "CorruptRecordError",
    "Damage",
    "Dataset",
    "DatumError",
    "Feature",
    "ManifestError",
    "Masked",
    "MissingDependencyError",
    "Ragged",
    "Schema",
    "SchemaError",
    "SourceError",
    "Sparse",
    "SplitError",
    "StateError",
    "WriteError",
    "WriteReport",
    "__version__",
    "configs",
    "export",
    "format",
    "images",
    "load",
    "mix",
    "problem",
    "reader",
    "sources",
    "tensorboard",
    "transforms",
    "write",
]

# Loaded when first asked for, so that a program that needs one of them does not wait for all.
_LAZY = {
    "Dataset": "datum.dataset",
    "WriteReport": "datum.writing",
    "load": "datum.reader",
    "mix": "datum.mixing",
    "write": "datum.writing",
}
_LAZY_MODULES = (
    "configs",
    "export",
    "images",
    "problem",
    "reader",
    "sources",
    "tensorboard",
    "transforms",
)


def __getattr__(name: str) -> typing.Any:
    if name in _LAZY_MODULES:
        return importlib.import_module(f"datum.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'datum' has no attribute {name!r}")
    found = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
