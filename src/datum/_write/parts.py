"""The parts that are to be written: which source each split comes from, under what schema."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datum._write.options import WriteOptions
from datum._write.order import check_fractions
from datum.errors import SourceError, SplitError
from datum.format.manifest import check_split_name
from datum.schema import Feature
from datum.sources import Source
from datum.sources.image_columns import with_image_columns
from datum.sources.open import find_table_roots, source_with
from datum.sources.options import is_split_name
from datum.sources.protocol import Part

__all__ = [
    "Intake",
    "SourceOptions",
    "check_stratify",
    "collect_parts",
    "is_dict_of_sources",
    "only_part",
    "parts_of",
]


@dataclass(frozen=True)
class Intake:
    """What is to be written.

    Attributes:
        parts: where records come from, by name; of the split if there are no fractions.
        fractions: how the records of the only part are divided, if they are.
    """

    parts: Mapping[str, Part]
    fractions: Mapping[str, float] | None

    @property
    def splits(self) -> list[str]:
        """The names of the splits that come of it."""
        return list(self.parts if self.fractions is None else self.fractions)


@dataclass(frozen=True)
class SourceOptions:
    """What the user has said of features, which decides what columns of text are.

    Attributes:
        features: those given.
        is_complete: whether there are to be no others.
        encoded: those that an encoder is applied to.
        table: options of tables in files.
        root: the folder that paths of images in tables must stay within.
        guide: how to read the texts of a source.
    """

    features: Mapping[str, Feature] = field(default_factory=dict)
    is_complete: bool = False
    encoded: Collection[str] = ()
    table: Mapping[str, Any] = field(default_factory=dict)
    root: Path | None = None
    guide: Mapping[str, Feature] = field(default_factory=dict)

    @classmethod
    def of(
        cls, options: WriteOptions, encoders: Collection[str], table: Mapping[str, Any]
    ) -> SourceOptions:
        """What options and encoders say."""
        is_complete = options.schema is not None
        features = options.schema or options.features
        guide = options.guide(encoders)
        others = {name: value for name, value in table.items() if name != "root"}
        root = _checked_root(table["root"]) if table.get("root") is not None else None
        return cls(features, is_complete, frozenset(encoders), others, root, guide)

    def source_of(self, given: Any, problem: str | None) -> Source:
        """The source that was given, which reads its texts as features say."""
        texts = {name: one for name, one in self.guide.items() if one.encoding != "image"}
        return source_with(given, problem, texts, table=self.table)

    def find_images(
        self, parts: Mapping[str, Part], roots: Mapping[str, Path | None], problem: str | None
    ) -> dict[str, Part]:
        """The parts, with images for the paths in their columns of text."""
        if not roots:
            if self.root is not None:
                raise SourceError(
                    "`root` applies to tables with columns of paths; the source is no such table",
                    hint="datum.sources.ImageTable(table, path_column='path', root='images')",
                )
            return dict(parts)
        return with_image_columns(
            parts,
            roots,
            features=self.features,
            is_complete=self.is_complete,
            keep=self.encoded,
            needs_images=problem == "image_clf",
            confined=self.root,
        )


def _checked_root(root: Any) -> Path:
    if not isinstance(root, (str, os.PathLike)):
        raise SourceError(f"expected `root` to be a path, got {root!r}")
    folder = Path(os.fspath(root)).expanduser()
    if not folder.is_dir():
        raise SourceError("expected `root` to be a folder, got none there", where=folder)
    return folder


def parts_of(given: Any, problem: str | None, wanted: SourceOptions) -> dict[str, Part]:
    """The records of each split of what the user has given as a source."""
    source = wanted.source_of(given, problem)
    parts = source.parts()
    return wanted.find_images(parts, find_table_roots(given, source, parts, problem), problem)


def collect_parts(
    source: Any,
    splits: Mapping[str, Any] | None,
    problem: str | None,
    wanted: SourceOptions | None = None,
) -> Intake:
    """Make out what the arguments of a write mean."""
    wanted = SourceOptions() if wanted is None else wanted
    if is_dict_of_sources(source):
        if splits is not None:
            raise SplitError(
                f"expected one source to divide, got those of {', '.join(source)}",
                hint="leave out `splits`, or pass the source of one split",
            )
        source, splits = None, source
    if splits is None:
        parts = parts_of(source, problem, wanted)
        return _checked(Intake({name: parts[name] for name in sorted(parts, key=_rank)}, None))
    given: Any = splits
    if not isinstance(given, Mapping) or not given:
        raise SplitError(
            f"expected `splits` as a dict of fractions or sources, got {splits!r}",
            hint="splits={'train': 0.8, 'val': 0.2}",
        )
    if all(isinstance(value, (int, float)) for value in splits.values()):
        parts = parts_of(source, problem, wanted)
        if len(parts) != 1:
            raise SplitError(
                f"expected a source that has no splits to divide by {dict(splits)},"
                f" got one that has {', '.join(parts)}",
                hint="leave out `splits` to keep its own, or pass the folder or file of one",
            )
        return _checked(Intake(parts, check_fractions(splits)))
    if source is not None:
        raise SplitError(
            "expected fractions in `splits`, or `source` to be None where it gives a source for"
            f" each, got {dict(splits)!r:.200}",
            hint="splits={'train': 0.8, 'val': 0.2}",
        )
    raw: dict[str, Part] = {}
    roots: dict[str, Path | None] = {}
    for name, given in splits.items():
        one = wanted.source_of(given, problem)
        raw[name] = only_part(name, one.parts())
        roots |= find_table_roots(given, one, [name], problem)
    return _checked(Intake(wanted.find_images(raw, roots, problem), None))


def _rank(split: str) -> int:
    """Where a split stands by custom: first what is trained on, last what is tested on."""
    order = ("train", "val", "dev", "test")
    return next((at for at, start in enumerate(order) if split.lower().startswith(start)), 2)


def _checked(intake: Intake) -> Intake:
    if not intake.parts:
        raise SourceError("expected records of at least one split, got none")
    for name in intake.splits:
        check_split_name(name)
    return intake


def check_stratify(intake: Intake, stratify: str | None) -> None:
    """Refuse to divide each value of a feature where nothing is divided."""
    if stratify is not None and intake.fractions is None:
        raise SplitError("stratify: expected fractions to divide by in `splits`, got none")


def only_part(name: str, parts: Mapping[str, Part]) -> Part:
    """The part of a split, among those of the source that was given for it alone."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    if name in parts:
        return parts[name]
    raise SplitError(
        f"expected a source of one split, got {', '.join(parts) or 'none'}", where=f"split {name!r}"
    )


def is_dict_of_sources(source: Any) -> bool:
    """Whether these are sources by split, not columns by name."""
    return (
        isinstance(source, dict)
        and bool(source)
        and all(isinstance(name, str) for name in source)
        and (all(map(is_split_name, source)) or all(map(_is_source, source.values())))
    )


def _is_source(value: Any) -> bool:
    if isinstance(value, (Source, os.PathLike)) or callable(value):
        return True
    if isinstance(value, str):
        return os.path.exists(value)  # noqa: PTH110 - any text, also one that is no path
    if isinstance(value, Sequence):
        return bool(value) and isinstance(value[0], Mapping)
    is_table = hasattr(value, "columns") or hasattr(value, "column_names")
    return is_table or isinstance(value, Iterator)
