"""Modules of the older library that are no files, created when they are first imported.

Programs for the older library import `datum.generator`, `datum.serializer` and others. The table
below says which names each of them has.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MODULES", "install"]

_GENERATORS = "datum._paper.generators"
_RECORDS = "datum._paper.records"
_ENCODERS = (
    "Encoder",
    "GraphEncoder",
    "ImageEncoder",
    "NumberEncoder",
    "StringEncoder",
    "datum_name_to_encoder",
)

# The names of each module of the older library, by the module that defines them.
MODULES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "datum.configs.default_configs": {_RECORDS: ["get_default_write_configs"]},
    "datum.encoder": {_RECORDS: _ENCODERS},
    "datum.encoder.encoder": {_RECORDS: _ENCODERS},
    "datum.export.export": {"datum._paper.export": ["export_to_tfrecord"]},
    "datum.generator": {
        _GENERATORS: [
            "CLF",
            "DET",
            "SEG",
            "TEXTJSON",
            "ClfDatumGenerator",
            "DatumGenerator",
            "DetDatumGenerator",
            "SegDatumGenerator",
            "TextJsonDatumGenerator",
            "clf",
            "deserialize",
            "det",
            "seg",
            "textjson",
        ]
    },
    "datum.generator.generator": {_GENERATORS: ["DatumGenerator"]},
    "datum.generator.image": {
        _GENERATORS: [
            "ClfDatumGenerator",
            "DatumGenerator",
            "DetDatumGenerator",
            "SegDatumGenerator",
        ]
    },
    "datum.generator.text": {_GENERATORS: ["DatumGenerator", "TextJsonDatumGenerator"]},
    "datum.problem.problem": {
        _RECORDS: ["PROBLEM_PARAMS"],
        "datum.problem.types": ["IMAGE_CLF", "IMAGE_DET", "IMAGE_SEG", "TEXT_CLF"],
    },
    "datum.reader.dataset": {"datum.dataset": ["Dataset"]},
    "datum.reader.loader": {"datum.dataset": ["load", "verify"]},
    "datum.reader.parser": {_RECORDS: ["DatumParser"]},
    "datum.reader.tfrecord_reader": {_RECORDS: ["Reader"]},
    "datum.serializer": {_RECORDS: ["DatumSerializer"]},
    "datum.serializer.serializer": {
        _RECORDS: ["DatumSerializer", "datum_to_tf_example", "serialize_datum"]
    },
    "datum.utils": {},
    "datum.utils.common_utils": {_RECORDS: ["AttrDict", "is_string", "load_module"]},
    "datum.writer": {_RECORDS: ["TFRecordWriter"]},
    "datum.writer.tfrecord_writer": {_RECORDS: ["TFRecordWriter"]},
}


def install() -> None:
    """Make the modules of the table importable."""
    if not any(isinstance(finder, _OlderModules) for finder in sys.meta_path):
        sys.meta_path.append(_OlderModules())


class _OlderModules:
    """Finder and loader of the modules of the table, after all other finders."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        """The spec of a module in the table; None for others."""
        if name not in MODULES:
            return None
        is_package = any(other.startswith(f"{name}.") for other in MODULES)
        return ModuleSpec(name, self, is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, _spec: ModuleSpec) -> None:
        """Return None, for the usual kind of module."""

    def exec_module(self, module: ModuleType) -> None:
        """Add the names of the table to a module."""
        module.__doc__ = f"`{module.__name__}` of the older library."
        names: list[str] = []
        for place, found in MODULES[module.__name__].items():
            source = importlib.import_module(place)
            for name in found:
                setattr(module, name, getattr(source, name))
            names += found
        module.__all__ = sorted(names)  # type: ignore[attr-defined]
