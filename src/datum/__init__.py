"""Datum: any dataset as sharded TFRecord files, fed to training at the speed of the hardware."""

import importlib
import typing

from datum import format, paper
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
        specs,
        tensorboard,
        transforms,
    )
    from datum.dataset import Dataset, load, verify
    from datum.loading.padding import Pad
    from datum.measuring import Measurement, measure
    from datum.mixing import mix
    from datum.profiling import Profile, profile
    from datum.reading import Split
    from datum.reading.verify import VerifyReport
    from datum.remaking import ExportReport, RepairReport, export_to, repair, reshard
    from datum.writing import WritePlan, WriteReport, plan, write, write_sidecars

__version__ = "0.1.0.dev0"

__all__ = [
    "BytesColumn",
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
    "VerifyReport",
    "WriteError",
    "WritePlan",
    "WriteReport",
    "__version__",
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
    "Dataset": "datum.dataset",
    "ExportReport": "datum.remaking",
    "Measurement": "datum.measuring",
    "Pad": "datum.loading.padding",
    "Profile": "datum.profiling",
    "RepairReport": "datum.remaking",
    "Split": "datum.reading",
    "VerifyReport": "datum.reading.verify",
    "WritePlan": "datum.writing",
    "WriteReport": "datum.writing",
    "export_to": "datum.remaking",
    "load": "datum.dataset",
    "measure": "datum.measuring",
    "mix": "datum.mixing",
    "plan": "datum.writing",
    "profile": "datum.profiling",
    "repair": "datum.remaking",
    "reshard": "datum.remaking",
    "verify": "datum.dataset",
    "write": "datum.writing",
    "write_sidecars": "datum.writing",
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

paper.install()


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
