"""The paper's way to write a dataset: a folder, a problem, and settings."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Unpack

from datum import sources
from datum._options import fields_of, lists_options
from datum._paper.generators import DatumGenerator
from datum._paper.records import DatumSerializer, find_images, serialize
from datum._write.api import write
from datum._write.images import Keys
from datum._write.options import RecordKeywords, RunKeywords, WriteOptions
from datum._write.report import WriteReport
from datum.configs import TFRWriteConfigs
from datum.errors import Message, SourceError, SplitError, suggest
from datum.problem import IMAGE_CLF, IMAGE_DET, IMAGE_SEG, PROBLEMS, TEXT_CLF
from datum.schema import Feature, Schema
from datum.sources import Source
from datum.sources.protocol import Part
from datum.sources.wrap import limit_source, sparse_source

__all__ = ["export_to_tfrecord"]
_COUNT = "num_examples"
_Splits = dict[str, dict[str, Any]]


class ExportKeywords(RecordKeywords, RunKeywords, total=False):
    """The keywords of `export_to_tfrecord`; `ExportOptions` documents them."""

    append: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportOptions(WriteOptions):
    """Options of `export_to_tfrecord`: those of `datum.write` that settings do not decide."""

    problem: str | None = dataclasses.field(default=None, init=False)
    splits: Mapping[str, Any] | None = dataclasses.field(default=None, init=False)
    stratify: str | None = dataclasses.field(default=None, init=False)
    keys: Keys | None = dataclasses.field(default=None, init=False)
    root: str | os.PathLike[str] | None = dataclasses.field(default=None, init=False)
    executor: Literal["local"] = dataclasses.field(default="local", init=False)


@lists_options(ExportOptions, keywords=ExportKeywords)
def export_to_tfrecord(
    input_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str],
    problem_type: str,
    write_configs: TFRWriteConfigs | None = None,
    **options: Unpack[ExportKeywords],
) -> WriteReport:
    """Write the dataset at `input_path` as TFRecord files at `output_path`.

    `write_configs.splits` names the splits to write, each with its options; None writes all splits.
    Every problem has the option `num_examples`, the number of records to write; fewer are an error.
    Paths are relative to `input_path`.

    - `image_clf`: images in `<split>/`, labels in `<split>.csv` with a column `filename`. Options:
      `extension`, `image_dir`, `csv_path`. Without a table, `<split>/` holds a folder for each
      class; the option is `image_dir`.
    - `image_det`: Pascal VOC. Options: `extension`, `set_dir`, `set_path`, `image_dir`,
      `annotation_dir`.
    - `image_seg`: images and masks. Options: `set_dir`, `set_path`, `image_dir`, `label_dir`,
      `image_extension`, `label_extension`.
    - `text_clf`: `<split>*.json`. Options: `json_path`.

    Args:
        input_path: Folder of the dataset.
        output_path: Folder of the TFRecord files.
        problem_type: "image_clf", "image_det", "image_seg" or "text_clf".
        write_configs: Splits, generator and serializer. None takes the defaults of each.
        options: See `ExportOptions`.
    """
    asked = ExportOptions.of(options, caller="export_to_tfrecord")
    configs = TFRWriteConfigs() if write_configs is None else write_configs
    if not isinstance(configs, TFRWriteConfigs):
        raise TypeError(Message(f"expected `write_configs` to be TFRWriteConfigs, got {configs!r}"))
    _check_problem(problem_type)
    splits, counts = _read_splits(configs, problem_type)
    schema = asked.schema
    if configs.generator is None:
        source = _make_source(input_path, problem_type, splits)
    else:
        generate = _make_generator(input_path, configs.generator)
        source = _Generated(generate, splits)
        if _is_plain(configs):
            source = find_images(source) if problem_type != TEXT_CLF else source
            known = generate.features if isinstance(generate, DatumGenerator) else {}
            schema = schema if isinstance(schema, Schema) else {**known, **(schema or {})}
    source = limit_source(source, counts)
    if not _is_plain(configs):
        source = serialize(source, configs.serializer, configs.sparse_features or ())
    elif configs.sparse_features:
        source, sparse = sparse_source(source, configs.sparse_features)
        schema = _with_sparse(schema, sparse)
    given = {name: getattr(asked, name) for name in fields_of(asked)}
    return write(source, output_path, **{**given, "schema": schema or None})


def _with_sparse(
    schema: Schema | Mapping[str, Feature] | None, sparse: Mapping[str, Feature]
) -> Schema | dict[str, Feature]:
    """Add sparse features to a schema, which may fix their types; `floats` decides on others."""
    given = {
        name: dataclasses.replace(feature, dtype=schema[name].dtype)
        if schema and name in schema
        else feature
        for name, feature in sparse.items()
    }
    if isinstance(schema, Schema):
        return Schema({**schema, **given})
    known = {**(schema or {})}
    return known | {
        name: one for name, one in given.items() if name in known or one.dtype != "float64"
    }


def _check_problem(problem: str) -> None:
    if problem not in PROBLEMS:
        hint = suggest(problem, PROBLEMS)
        raise SourceError(
            f"expected `problem_type` to be one of {', '.join(PROBLEMS)}, got {problem!r}",
            hint=hint,
        )


def _is_plain(configs: TFRWriteConfigs) -> bool:
    """Whether records are serialized as `datum.write` does."""
    serializer = configs.serializer
    return serializer is None or (isinstance(serializer, DatumSerializer) and serializer.is_plain)


def _read_splits(configs: TFRWriteConfigs, problem: str) -> tuple[_Splits | None, dict[str, int]]:
    """The options of each split, and the number of records asked for."""
    counts: dict[str, Any] = {
        "train": configs.num_train_examples,
        "val": configs.num_val_examples,
        "test": configs.num_test_examples,
    }
    counts = {split: count for split, count in counts.items() if count is not None}
    if configs.splits is None:
        return None, counts
    splits = {split: dict(options) for split, options in configs.splits.items()}
    for split, options in splits.items():
        if configs.generator is None:
            _check_options(split, options, problem)
        count = options.get(_COUNT)
        if count is not None and counts.setdefault(split, count) != count:
            raise SplitError(
                f"expected one number of records, got num_examples={count!r}"
                f" and num_{split}_examples={counts[split]!r}",
                where=f"split {split!r}",
            )
    for split in counts:
        if split not in splits:
            raise SplitError(
                f"num_{split}_examples: expected a split {split!r} in `splits`,"
                f" got {', '.join(splits) or 'none'}"
            )
    return splits, counts


def _check_options(split: str, options: Mapping[str, Any], problem: str) -> None:
    known = [*_option_names(problem), _COUNT]
    for name in options:
        if name not in known:
            hint = suggest(name, known, f"there are {', '.join(known)}")
            raise SourceError(
                f"{problem} has no option {name!r}", where=f"split {split!r}", hint=hint
            )


def _option_names(problem: str) -> list[str]:
    if problem == TEXT_CLF:
        return ["json_path"]
    kinds: dict[str, Any] = {
        IMAGE_CLF: sources.LabelledSplit,
        IMAGE_DET: sources.VocSplit,
        IMAGE_SEG: sources.MaskSplit,
    }
    return [field.name for field in dataclasses.fields(kinds[problem])]


def _make_source(path: str | os.PathLike[str], problem: str, splits: _Splits | None) -> Source:
    if splits is not None:
        splits = {
            split: {name: value for name, value in options.items() if name != _COUNT}
            for split, options in splits.items()
        }
    if problem == IMAGE_DET:
        return sources.VocDetection(path, splits=splits)
    if problem == IMAGE_SEG:
        return sources.SegmentationMasks(path, splits=splits)
    if problem == TEXT_CLF:
        return _Texts(Path(path), splits)
    return _make_classification(Path(path), splits)


def _make_generator(path: str | os.PathLike[str], generator: Callable[[Any], Any]) -> Any:
    made = generator(path)
    if not callable(made):
        raise SourceError(
            "generator: `generator(path)` must return a callable that accepts `split=`,"
            f" got {made!r}"
        )
    return made


def _make_classification(root: Path, splits: _Splits | None) -> Source:
    """Images with a table of labels, or in folders of classes if there is no table."""
    if splits is None:
        has_table = any((root / table.stem).is_dir() for table in root.glob("*.csv"))
        return sources.LabelledImages(root) if has_table else sources.ClassFolders(root)
    folders = {split: options.get("image_dir") or split for split, options in splits.items()}
    is_foldered = all(
        options.get("csv_path") is None
        and not (root / f"{split}.csv").exists()
        and any(entry.is_dir() for entry in _entries(root / folders[split]))
        for split, options in splits.items()
    )
    if not is_foldered:
        return sources.LabelledImages(root, splits=splits)
    for split, options in splits.items():
        if options.get("extension") is not None:
            raise SourceError(
                f"expected a table {root / split}.csv, as `extension` is of the"
                " names in it, got folders of classes",
                where=f"split {split!r}",
                hint="leave out `extension`",
            )
    return sources.ClassFolders(root, splits=folders)


@dataclasses.dataclass(frozen=True, slots=True)
class _Texts:
    """JSON files named after their splits, or as `json_path` says."""

    root: Path
    splits: _Splits | None

    def parts(self) -> dict[str, Part]:
        """The records of each split."""
        if self.splits is None:
            return dict(sources.JsonText(self.root).parts())
        files = {
            split: options["json_path"]
            for split, options in self.splits.items()
            if options.get("json_path") is not None
        }
        named = [split for split in self.splits if split not in files]
        found: dict[str, Part] = {}
        if named:
            found.update(sources.JsonText(self.root, splits=named).parts())
        for split, file in files.items():
            parts = sources.JsonText(self.root / file).parts()
            if split not in parts and len(parts) != 1:
                raise SplitError(
                    f"expected the records of {split!r}, got those of {', '.join(parts)}",
                    where=self.root / file,
                )
            found[split] = parts[split] if split in parts else next(iter(parts.values()))
        return {split: found[split] for split in self.splits}


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


@dataclasses.dataclass(frozen=True, slots=True)
class _Generated:
    """Records of a generator of the user."""

    generate: Callable[..., Any]
    splits: _Splits | None

    def parts(self) -> dict[str, Part]:
        """The records of each split, from one call each."""
        if self.splits is None:
            raise SplitError(
                "expected `splits` to name those that the generator has, got None",
                hint="write_configs.splits = {'train': {}}",
            )
        parts: dict[str, Part] = {}
        for split, options in self.splits.items():
            rows = functools.partial(self.generate, split=split, **options)
            parts.update(sources.PythonRows(rows, split=split).parts())
        return parts
