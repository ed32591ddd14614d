"""The modules of the older library that have no other place, made when they are imported.

`datum.export`, `datum.reader`, `datum.configs` and `datum.problem` are its names too. The other
modules that its programs import are made of the table below when one is first imported.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MODULES", "install"]

_GENERATORS = "datum.older.generators"
_SERIALIZERS = "datum.older.serializers"
_RECORDS = "datum.older.records"
_SETTINGS = "datum.older.settings"

# Of each module that is imported under its older name: what it has, and where that is.
MODULES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "datum.configs.default_configs": {_SETTINGS: ["get_default_write_configs"]},
    "datum.configs.tfr_configs": {
        "datum.configs": ["BucketConfigs", "DatasetConfigs", "TFRReadConfigs", "TFRWriteConfigs"],
        "datum.configs.config_base": ["ConfigBase", "create_config"],
    },
    "datum.encoder": {
        _SERIALIZERS: [
            "Encoder",
            "GraphEncoder",
            "ImageEncoder",
            "NumberEncoder",
            "StringEncoder",
            "datum_name_to_encoder",
        ]
    },
    "datum.encoder.encoder": {
        _SERIALIZERS: [
            "Encoder",
            "GraphEncoder",
            "ImageEncoder",
            "NumberEncoder",
            "StringEncoder",
            "datum_name_to_encoder",
        ]
    },
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
        _SETTINGS: ["PROBLEM_PARAMS"],
        "datum.problem.types": ["IMAGE_CLF", "IMAGE_DET", "IMAGE_SEG", "TEXT_CLF"],
    },
    "datum.reader.dataset": {"datum.dataset": ["Dataset"]},
    "datum.reader.parser": {_RECORDS: ["DatumParser"]},
    "datum.reader.tfrecord_reader": {_RECORDS: ["Reader"]},
    "datum.serializer": {_SERIALIZERS: ["DatumSerializer"]},
    "datum.serializer.serializer": {
        _SERIALIZERS: ["DatumSerializer", "datum_to_tf_example", "serialize_datum"]
    },
    "datum.utils": {},
    "datum.utils.common_utils": {
        _SETTINGS: ["AttrDict", "load_module"],
        _SERIALIZERS: ["is_string"],
    },
    "datum.writer": {_RECORDS: ["TFRecordWriter"]},
    "datum.writer.tfrecord_writer": {_RECORDS: ["TFRecordWriter"]},
}


def install() -> None:
    """Let the older names be imported; those that exist otherwise are not touched."""
    if not any(isinstance(finder, _OlderModules) for finder in sys.meta_path):
        sys.meta_path.append(_OlderModules())


class _OlderModules:
    """Finds the modules of the table, after all other finders, and fills them."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        """The module of this name, if it is in the table."""
        if name not in MODULES:
            return None
        is_package = any(other.startswith(f"{name}.") for other in MODULES)
        return ModuleSpec(name, self, is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, _spec: ModuleSpec) -> None:
        """None: the usual kind of module."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill a module."""
        module.__doc__ = f"`{module.__name__}` of the older library."
        names: list[str] = []
        for place, found in MODULES[module.__name__].items():
            source = importlib.import_module(place)
            for name in found:
                setattr(module, name, getattr(source, name))
            names += found
        module.__all__ = sorted(names)  # type: ignore[attr-defined]
