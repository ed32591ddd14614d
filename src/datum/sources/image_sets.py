"""Lists of the images of each split, as Pascal VOC has them: a name on each line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from datum.errors import SourceError, suggest
from datum.images import read_file
from datum.sources.splits import is_split_name

__all__ = ["SetLine", "find_set_files", "read_set_file", "set_file_of"]

_FLAGS = ("-1", "0", "1")  # of lists for one class: whether an image shows it


class SetLine(NamedTuple):
    """A line of a list.

    Attributes:
        names: what is on it: one name, or the paths of an image and its mask.
        number: counted from 1; 0 for what no list names.
    """

    names: tuple[str, ...]
    number: int


def find_set_files(root: Path, folders: Sequence[str]) -> dict[str, Path]:
    """The lists of splits in the first of these folders that has any.

    `trainval` is left out beside `train` and `val`, which it is made of.
    """
    for folder in folders:
        files = sorted(path for path in (root / folder).glob("*.txt") if is_split_name(path.stem))
        found = {path.stem: path for path in files}
        if len(found) > 1:
            found.pop("trainval", None)
        if found:
            return found
    return {}


def set_file_of(
    root: Path, split: str, *, set_dir: str | None, set_path: str | None, folders: Sequence[str]
) -> Path | None:
    """The list of a split; None if none was asked for and no split has one.

    Raises SourceError if other splits have lists, but not this one.
    """
    if set_path is not None:
        return root / set_path
    if set_dir is not None:
        return root / set_dir / f"{split}.txt"
    places = [root / folder / f"{split}.txt" for folder in folders]
    found = next((place for place in places if place.exists()), None)
    others = [] if found else sorted(find_set_files(root, folders))
    if others:
        hint = suggest(split, others, "give its `set_dir` or `set_path`")
        raise SourceError(
            f"expected a list {split}.txt for split {split!r}, got those of {', '.join(others)}",
            where=root,
            hint=hint,
        )
    return found


def read_set_file(path: Path) -> list[SetLine]:
    """The lines of a list, without empty ones and comments (#)."""
    data = read_file(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    if "\0" in text:
        raise SourceError("expected a list of names, got bytes that are no text", where=path)
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        name = line.strip()
        if name and not name.startswith("#"):
            lines.append(SetLine(_split_line(name), number))
    return lines


def _split_line(line: str) -> tuple[str, ...]:
    words = line.split()
    if len(words) == 2 and words[1] in _FLAGS:
        return (words[0],)
    if len(words) == 2 and all("/" in word for word in words):
        return tuple(word.lstrip("/") for word in words)
    return (line,)  # a name may have spaces
