"""What the names of record files tell: their split, their order, and whether shards are missing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from datum.errors import ManifestError, SplitError
from datum.format.naming import check_split_name

__all__ = ["check_sets", "natural_order", "split_of_file", "split_of_folder", "split_order"]

DEFAULT_SPLIT = "train"  # of files whose names tell none
SHOWN_MISSING = 5
MAX_MISSING = 1000  # listed of one set: names of files may tell of any number

# In the order that splits are listed in.
_WORDS: tuple[str, ...] = (
    *("train", "training", "trainval"),
    *("val", "valid", "validation", "dev", "eval", "evaluation"),
    *("test", "testing", "holdout", "unlabeled", "unlabelled", "unsupervised"),
)
_LETTERS = re.compile(r"[^\W\d_]+")
_ARTIFACT = "Split-"  # how TFX starts the folders of splits
_SHARD = re.compile(r"(.+)[-_.]([0-9]{1,18})-of-([0-9]{1,18})(.*)")
_COMPRESSED = re.compile(r"\.(?:gz|gzip|z|zz|zlib)$", re.IGNORECASE)


def split_of_file(path: Path) -> str:
    """The split of a record file: the last word of its name, or its folder, that names one.

    >>> split_of_file(Path("data/nsynth-train.tfrecord")), split_of_file(Path("x/valid-1.tfr"))
    ('train', 'valid')
    >>> (
    ...     split_of_file(Path("Split-eval/data-00000-of-00012")),
    ...     split_of_file(Path("data/a.tfrecord")),
    ... )
    ('eval', 'train')
    """
    named: list[str] = [word for word in _LETTERS.findall(path.name.lower()) if word in _WORDS]
    if named:
        return named[-1]
    folder = path.absolute().parent
    if folder.name.lower() in _WORDS or folder.name.startswith(_ARTIFACT):
        return split_of_folder(folder)
    return DEFAULT_SPLIT


def split_of_folder(folder: Path) -> str:
    """The split that a folder holds by its name; ManifestError if none can be named so.

    >>> split_of_folder(Path("out/Split-train")), split_of_folder(Path("out/Validation"))
    ('train', 'validation')
    """
    name = folder.name.removeprefix(_ARTIFACT)
    name = name.lower() if name.lower() in _WORDS else name
    try:
        return check_split_name(name)
    except SplitError as error:
        raise ManifestError(
            f"expected a folder named after a split: {error.message.line}",
            where=folder,
            hint="rename it, or load a list of the files in it",
        ) from None


def split_order(name: str) -> tuple[int, str]:
    """A key that sorts splits: those of training first, those for testing last."""
    return (_WORDS.index(name) if name in _WORDS else len(_WORDS)), name


def natural_order(name: str) -> list[str | int]:
    """A key that sorts numbers in names by their value.

    >>> sorted(["x-10", "x-9", "x"], key=natural_order)
    ['x', 'x-9', 'x-10']
    """
    parts: list[str | int] = list(re.split(r"([0-9]+)", name))
    parts[1::2] = map(int, parts[1::2])
    return parts


@dataclass(frozen=True, slots=True)
class _Shard:
    """A file that says which one of how many it is."""

    path: Path
    number: int
    count: int
    digits: tuple[int, int]  # where its number stands in its name

    def sibling(self, number: int) -> Path:
        """The path of another shard of the set."""
        (start, stop), name = self.digits, self.path.name
        return self.path.with_name(f"{name[:start]}{number:0{stop - start}}{name[stop:]}")


def check_sets(paths: Iterable[Path], *, may_miss: bool = False) -> list[Path]:
    """Refuse `-00000-of-00004` files of which some are missing on the disk, or are there twice.

    Numbers may start at 0 or at 1. ManifestError names what is missing; where some `may_miss`, it
    is returned.
    """
    sets: dict[tuple[Path, str, str], list[_Shard]] = defaultdict(list)
    for path in paths:
        found = _SHARD.fullmatch(path.name)
        if found is not None and int(found[2]) <= int(found[3]):
            shard = _Shard(path, int(found[2]), int(found[3]), found.span(2))
            sets[path.parent, found[1], _COMPRESSED.sub("", found[4])].append(shard)
    absent: list[Path] = []
    for shards in sets.values():
        _check_one_set(shards)
        missing = _find_missing(shards, MAX_MISSING if may_miss else SHOWN_MISSING + 1)
        if missing and not may_miss:
            raise _missing(shards[0], missing)
        absent += missing
    return absent


def _check_one_set(shards: list[_Shard]) -> None:
    seen: dict[int, _Shard] = {}
    for shard in shards:
        other = seen.setdefault(shard.number, shard)
        if shard.count != shards[0].count or other is not shard:
            first = shards[0] if shard.count != shards[0].count else other
            raise ManifestError(
                f"expected one set of shards, got {first.path.name} and {shard.path.name}",
                where=shard.path.parent,
                hint="remove the files of an older export, or load a list of those to read",
            )


def _find_missing(shards: list[_Shard], limit: int) -> list[Path]:
    """The first shards that are neither given nor on the disk."""
    numbers, count = {shard.number for shard in shards}, shards[0].count
    first = 1 if count in numbers else 0
    missing: list[Path] = []
    for path in _absent(shards[0], numbers, range(first, first + count)):
        missing.append(path)
        if len(missing) >= limit:
            break
    return missing


def _absent(shard: _Shard, numbers: set[int], wanted: range) -> Iterator[Path]:
    for number in wanted:
        if number not in numbers and not (path := shard.sibling(number)).exists():
            yield path


def _missing(shard: _Shard, missing: list[Path]) -> ManifestError:
    shown = ", ".join(path.name for path in missing[:SHOWN_MISSING])
    more = ", ..." if len(missing) > SHOWN_MISSING else ""
    return ManifestError(
        f"expected all {shard.count} shards of a set, but there is no {shown}{more}",
        where=shard.path.parent,
        hint="copy them here, or load a list of files to read what is there",
    )
