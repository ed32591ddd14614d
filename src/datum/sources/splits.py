"""What splits are called, and the options that each of them can have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from datum.errors import SourceError, suggest

__all__ = ["find_splits", "is_split_name", "read_split_options", "split_of_file", "splits_of_files"]

_NAMES = "train|training|trainval|val|valid|validation|dev|test|testing|eval|evaluation"
_NAME = re.compile(rf"(?:{_NAMES})[-_]?\d*", re.IGNORECASE)
_FILE = re.compile(rf"((?:{_NAMES})\d*)(?:[-_. ].*)?", re.IGNORECASE)
_FEATURE_FIRST = re.compile(rf"(?P<feature>.+)_(?P<split>{_NAMES})", re.IGNORECASE)
_SPLIT_FIRST = re.compile(rf"(?P<split>{_NAMES})_(?P<feature>.+)", re.IGNORECASE)
_NUMBERED = re.compile(r"(\w+)-\d+-of-\d+\.\w+")

_Options = TypeVar("_Options")


def is_split_name(name: str) -> bool:
    """Whether a folder or file of this name holds a split, by custom.

    >>> is_split_name("val2017"), is_split_name("cat")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


def split_of_file(name: str) -> str | None:
    """The split that a file belongs to by its name, in small letters; None if it names none.

    >>> split_of_file("train-00000-of-00002.parquet"), split_of_file("trains.csv")
    ('train', None)
    """
    found = _FILE.fullmatch(name)
    return None if found is None else found[1].lower()


def splits_of_files(files: Sequence[Path]) -> list[str | None]:
    """The split that each file belongs to by its name.

    Where all are numbered (`unsupervised-00000-of-00001.parquet`) and one is of a split of a usual
    name, what stands before the numbers is a split, too.

    >>> splits_of_files([Path("train-0-of-1.csv"), Path("extra-0-of-1.csv")])
    ['train', 'extra']
    """
    names = [split_of_file(file.name) for file in files]
    numbered = [_NUMBERED.fullmatch(file.name) for file in files]
    if not any(names) or not all(numbered):
        return names
    return [name or (match and match[1]) for name, match in zip(names, numbered, strict=True)]


def find_splits(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Names such as `x_train` and `test_labels`, by split and feature; none if one is no such.

    >>> find_splits(["x_train", "x_test"])
    {'train': {'x': 'x_train'}, 'test': {'x': 'x_test'}}
    """
    found: dict[str, dict[str, str]] = {}
    for name in names:
        match = _FEATURE_FIRST.fullmatch(name) or _SPLIT_FIRST.fullmatch(name)
        if match is None:
            return {}
        found.setdefault(match["split"].lower(), {})[match["feature"]] = name
    return found if len(found) > 1 else {}


def read_split_options(
    kind: type[_Options], splits: Mapping[str, Any], defaults: _Options
) -> dict[str, _Options]:
    """The options of each split as `kind`; what a split does not give is as in `defaults`."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    given = {name: getattr(defaults, name) for name in names}
    found: dict[str, _Options] = {}
    for split, options in splits.items():
        if isinstance(options, kind):
            found[split] = options
            continue
        if not isinstance(options, Mapping):
            raise SourceError(
                f"expected a dict of {', '.join(names)}, got {options!r}", where=f"split {split!r}"
            )
        for name in options:
            if name not in names:
                hint = suggest(name, names, f"there are {', '.join(names)}")
                raise SourceError(f"unknown option {name!r}", where=f"split {split!r}", hint=hint)
        found[split] = kind(**{**given, **options})
    return found
