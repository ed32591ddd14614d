"""Sources of records: folders, tables, text files, and Python objects."""

import importlib
import typing

from datum.sources.protocol import (
    Block,
    IndexedPart,
    PartInfo,
    Reject,
    Source,
    SourceInfo,
    StreamedPart,
)

if typing.TYPE_CHECKING:
    from datum.sources.arrow import ArrowTable
    from datum.sources.class_folders import ClassFolders
    from datum.sources.coco import CocoAnnotations
    from datum.sources.csv import CsvTable
    from datum.sources.huggingface import HuggingFaceFolder
    from datum.sources.image_columns import ImageTable
    from datum.sources.json_files import JsonLines, JsonText
    from datum.sources.labelled_images import LabelledImages, LabelledSplit
    from datum.sources.masks import MaskSplit, SegmentationMasks
    from datum.sources.open import as_source
    from datum.sources.options import TableOptions
    from datum.sources.protocol import RowBlocks
    from datum.sources.python import PythonRows
    from datum.sources.table import ColumnTable, NumpyFile
    from datum.sources.voc import VocDetection, VocSplit
    from datum.sources.yolo import YoloLabels

__all__ = [
    "ArrowTable",
    "Block",
    "ClassFolders",
    "CocoAnnotations",
    "ColumnTable",
    "CsvTable",
    "HuggingFaceFolder",
    "ImageTable",
    "IndexedPart",
    "JsonLines",
    "JsonText",
    "LabelledImages",
    "LabelledSplit",
    "MaskSplit",
    "NumpyFile",
    "PartInfo",
    "PythonRows",
    "Reject",
    "RowBlocks",
    "SegmentationMasks",
    "Source",
    "SourceInfo",
    "StreamedPart",
    "TableOptions",
    "VocDetection",
    "VocSplit",
    "YoloLabels",
    "as_source",
]

# Imported on first use, so that `import datum` stays fast.
_HOMES = {
    "ArrowTable": "arrow",
    "ClassFolders": "class_folders",
    "CocoAnnotations": "coco",
    "ColumnTable": "table",
    "CsvTable": "csv",
    "HuggingFaceFolder": "huggingface",
    "ImageTable": "image_columns",
    "JsonLines": "json_files",
    "JsonText": "json_files",
    "LabelledImages": "labelled_images",
    "LabelledSplit": "labelled_images",
    "MaskSplit": "masks",
    "NumpyFile": "table",
    "PythonRows": "python",
    "RowBlocks": "protocol",
    "SegmentationMasks": "masks",
    "TableOptions": "options",
    "VocDetection": "voc",
    "VocSplit": "voc",
    "YoloLabels": "yolo",
    "as_source": "open",
}


def __getattr__(name: str) -> typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
