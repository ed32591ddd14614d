"""Datum: any dataset as sharded TFRecord files, fed to training at the speed of the hardware."""

import importlib
import typing

from datum import _paper, format
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import (
    AmbiguousSourceError,
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
    StorageError,
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
        specs,
        tensorboard,
        transforms,
    )
    from datum._inspect.measure.measurement import Measurement
    from datum._inspect.measure.run import measure
    from datum._inspect.profile.results import Profile
    from datum._inspect.profile.run import profile
    from datum._load.padding import Pad
    from datum._read.split import Split
    from datum._read.verify import VerifyReport
    from datum._rewrite.export import ExportReport, export_to
    from datum._rewrite.repair import repair
    from datum._rewrite.reshard import reshard
    from datum._rewrite.salvage import RepairReport
    from datum._storage.kept import CachedDataset, cached_datasets, clear_cache
    from datum._write.api import write
    from datum._write.plan import plan
    from datum._write.report import WritePlan, WriteReport
    from datum._write.sidecars import write_sidecars
    from datum.dataset import Dataset, load, verify
    from datum.mixing import mix

__version__ = "0.1.0.dev0"

__all__ = [
    "AmbiguousSourceError",
    "BytesColumn",
    "CachedDataset",
    "CorruptIndexError",
    "CorruptRecordError",
    "Damage",
    "Dataset",
    "DatumError",
    "ExportReport",
    "Feature",
    "ManifestError",
    "Masked",
    "Measurement",
    "MissingDependencyError",
    "Pad",
    "Profile",
    "Ragged",
    "RepairReport",
    "Schema",
    "SchemaError",
    "SourceError",
    "Sparse",
    "Split",
    "SplitError",
    "StateError",
    "StorageError",
    "VerifyReport",
    "WriteError",
    "WritePlan",
    "WriteReport",
    "__version__",
    "cached_datasets",
    "clear_cache",
    "configs",
    "export",
    "export_to",
    "format",
    "images",
    "load",
    "measure",
    "mix",
    "plan",
    "problem",
    "profile",
    "reader",
    "repair",
    "reshard",
    "sources",
    "specs",
    "tensorboard",
    "transforms",
    "verify",
    "write",
    "write_sidecars",
]

# Loaded when first asked for, so that a program that needs one of them does not wait for all.
_LAZY = {
    "CachedDataset": "datum._storage.kept",
    "Dataset": "datum.dataset",
    "ExportReport": "datum._rewrite.export",
    "Measurement": "datum._inspect.measure.measurement",
    "Pad": "datum._load.padding",
    "Profile": "datum._inspect.profile.results",
    "RepairReport": "datum._rewrite.salvage",
    "Split": "datum._read.split",
    "VerifyReport": "datum._read.verify",
    "WritePlan": "datum._write.report",
    "WriteReport": "datum._write.report",
    "cached_datasets": "datum._storage.kept",
    "clear_cache": "datum._storage.kept",
    "export_to": "datum._rewrite.export",
    "load": "datum.dataset",
    "measure": "datum._inspect.measure.run",
    "mix": "datum.mixing",
    "plan": "datum._write.plan",
    "profile": "datum._inspect.profile.run",
    "repair": "datum._rewrite.repair",
    "reshard": "datum._rewrite.reshard",
    "verify": "datum.dataset",
    "write": "datum._write.api",
    "write_sidecars": "datum._write.sidecars",
}
_LAZY_MODULES = (
    "configs",
    "export",
    "images",
    "problem",
    "reader",
    "sources",
    "specs",
    "tensorboard",
    "transforms",
)

_paper.install()


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
