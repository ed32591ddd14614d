"""The source of each split, from the arguments of a write."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datum._write.options import PlanOptions
from datum._write.order import check_fractions
from datum.errors import Call, Option, SourceError, SplitError, Text
from datum.format.manifest import check_split_name
from datum.schema import Feature
from datum.sources import Source
from datum.sources.image_columns import with_image_columns
from datum.sources.open import find_table_roots, source_with
from datum.sources.options import TableOptions, is_split_name
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
    """The parts to write.

    Attributes:
        parts: Parts by name: the name of the split, unless there are fractions.
        fractions: Fractions that divide the only part into splits, if any.
    """

    parts: Mapping[str, Part]
    fractions: Mapping[str, float] | None

    @property
    def splits(self) -> list[str]:
        """Names of the splits to write."""
        return list(self.parts if self.fractions is None else self.fractions)


@dataclass(frozen=True)
class SourceOptions:
    """Options that decide how a source is read.

    Attributes:
        features: Features given by the user.
        is_complete: Whether records may hold no other features.
        encoded: Names of features with an encoder.
        table: Options for tables in files.
        root: Folder that image paths in tables must stay within.
        guide: Features that text columns are parsed as.
    """

    features: Mapping[str, Feature] = field(default_factory=dict)
    is_complete: bool = False
    encoded: Collection[str] = ()
    table: Mapping[str, Any] = field(default_factory=dict)
    root: Path | None = None
    guide: Mapping[str, Feature] = field(default_factory=dict)

    @classmethod
    def of(cls, options: PlanOptions, table: TableOptions) -> SourceOptions:
        """Make them from the options of a write."""
        is_complete = options.complete_schema is not None
        features = options.complete_schema or options.features
        encoded = frozenset(options.encoders or ())
        guide = options.guide(encoded)
        root = _checked_root(options.root) if options.root is not None else None
        return cls(features, is_complete, encoded, table.given, root, guide)

    def source_of(self, given: Any, problem: str | None) -> Source:
        """Open the given source; its text columns are parsed as the guide says."""
        texts = {name: one for name, one in self.guide.items() if one.encoding != "image"}
        return source_with(given, problem, texts, table=self.table)

    def find_images(
        self, parts: Mapping[str, Part], roots: Mapping[str, Path | None], problem: str | None
    ) -> dict[str, Part]:
        """Replace columns of image paths by the images."""
        if not roots:
            if self.root is not None:
                raise SourceError(
                    Text(
                        Option("root"),
                        " applies to tables with columns of paths; the source is no such table",
                    ),
                    hint=Text(
                        Call("datum.sources.ImageTable(table, path_column='path', root='images')")
                    ),
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
        raise SourceError(Text("expected ", Option("root"), f" to be a path, got {root!r}"))
    folder = Path(os.fspath(root)).expanduser()
    if not folder.is_dir():
        problem = Text("expected ", Option("root"), " to be a folder, got none there")
        raise SourceError(problem, where=folder)
    return folder


def parts_of(given: Any, problem: str | None, wanted: SourceOptions) -> dict[str, Part]:
    """Open a source and return its parts by split."""
    source = wanted.source_of(given, problem)
    parts = source.parts()
    return wanted.find_images(parts, find_table_roots(given, source, parts, problem), problem)


def collect_parts(
    source: Any,
    splits: Mapping[str, Any] | None,
    problem: str | None,
    wanted: SourceOptions | None = None,
) -> Intake:
    """Open the sources that the arguments of a write name."""
    wanted = SourceOptions() if wanted is None else wanted
    if is_dict_of_sources(source):
        if splits is not None:
            raise SplitError(
                f"expected one source to divide, got one for each of {', '.join(source)}",
                hint=Text("leave out ", Option("splits"), ", or pass the source of one split"),
            )
        source, splits = None, source
    if splits is None:
        parts = parts_of(source, problem, wanted)
        return _checked(Intake({name: parts[name] for name in sorted(parts, key=_rank)}, None))
    given: Any = splits
    if not isinstance(given, Mapping) or not given:
        raise SplitError(
            Text(
                "expected ",
                Option("splits"),
                f" as a dict of fractions or sources, got {splits!r}",
            ),
            hint=Text(Option("splits", {"train": 0.8, "val": 0.2})),
        )
    if all(isinstance(value, (int, float)) for value in splits.values()):
        parts = parts_of(source, problem, wanted)
        if len(parts) != 1:
            raise SplitError(
                f"expected a source that has no splits to divide by {dict(splits)},"
                f" got one that has {', '.join(parts)}",
                hint=Text(
                    "leave out ",
                    Option("splits"),
                    " to keep its own, or pass the folder or file of one",
                ),
            )
        return _checked(Intake(parts, check_fractions(splits)))
    if source is not None:
        raise SplitError(
            Text(
                "expected fractions in ",
                Option("splits"),
                f", or a source for each split with `source` None, got {dict(splits)!r:.200}",
            ),
            hint=Text(Option("splits", {"train": 0.8, "val": 0.2})),
        )
    raw: dict[str, Part] = {}
    roots: dict[str, Path | None] = {}
    for name, given in splits.items():
        one = wanted.source_of(given, problem)
        raw[name] = only_part(name, one.parts())
        roots |= find_table_roots(given, one, [name], problem)
    return _checked(Intake(wanted.find_images(raw, roots, problem), None))


def _rank(split: str) -> int:
    """Rank of a split in the usual order: training first, testing last."""
    order = ("train", "val", "dev", "test")
    return next((at for at, start in enumerate(order) if split.lower().startswith(start)), 2)


def _checked(intake: Intake) -> Intake:
    if not intake.parts:
        raise SourceError("expected records of at least one split, got none")
    for name in intake.splits:
        check_split_name(name)
    return intake


def check_stratify(intake: Intake, stratify: str | None) -> None:
    """Raise SplitError for `stratify` without fractions."""
    if stratify is not None and intake.fractions is None:
        problem = Text("expected fractions in ", Option("splits"), ", which ")
        raise SplitError(Text(problem, Option("stratify"), " divides by, got none"))


def only_part(name: str, parts: Mapping[str, Part]) -> Part:
    """Return the only part of a source given for one split."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    if name in parts:
        return parts[name]
    raise SplitError(
        f"expected a source of one split, got {', '.join(parts) or 'none'}", where=f"split {name!r}"
    )


def is_dict_of_sources(source: Any) -> bool:
    """Return whether a dict holds sources by split rather than columns by name."""
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
