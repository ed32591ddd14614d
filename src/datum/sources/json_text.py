"""Texts and their labels in JSON files: the paper's layout, and two plainer ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from datum.errors import SourceError
from datum.schema import Schema
from datum.sources.files import find_files, fingerprint_files
from datum.sources.json_walk import JsonWalk
from datum.sources.row_blocks import RowBlocks
from datum.sources.source import Block, StreamedPart

__all__ = ["JsonText"]

_SPLIT = re.compile(
    r"(trainval|training|train|validation|valid|val|dev|testing|test|evaluation|eval)(?![a-z])",
    re.IGNORECASE,
)


class JsonText:
    """Texts and labels in JSON files of one of three shapes.

    - `{"id": {"text": "...", "label": {"name": value, ...}}, ...}`, as the paper has it: the id
      names the record; its features are the text and one for each label. Other members are kept.
    - `{"train": [["text", "label"], ...], "test": [...]}`: a split for each name; items may also
      be objects, or texts alone.
    - `[{"text": "...", ...}, ...]`: the members of each object.

    `path` is a file, or a folder with files named after their splits (`train.json`,
    `train_2.json`, `val.json`). Items of another shape are rejected.

    Args:
        path: the file or folder.
        splits: those to read, from files whose names start with theirs; by default the usual ones.
        allow_nan: whether to take NaN and Infinity, which are not JSON.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        splits: Sequence[str] | None = None,
        allow_nan: bool = False,
    ) -> None:
        self._path = Path(path)
        self._splits = splits
        self._allow_nan = allow_nan

    def parts(self) -> Mapping[str, StreamedPart]:
        """The records of each split."""
        places: dict[str, list[tuple[Path, str | None]]] = {}
        for split, file in self._find_files():
            names = _list_names(JsonWalk(file, allow_nan=self._allow_nan))
            if names is None:
                places.setdefault(split, []).append((file, None))
                continue
            for name in names if self._splits is None else self._splits:
                if name not in names:
                    raise SourceError(f"{file}: expected a list {name!r}, got {', '.join(names)}")
                places.setdefault(name, []).append((file, name))
        return {name: _JsonTextPart(found, self._allow_nan) for name, found in places.items()}

    def _find_files(self) -> list[tuple[str, Path]]:
        """The files, each with the split that its name tells."""
        if not self._path.is_dir():
            (file,) = find_files(self._path)
            return [(_split_of(file.name, self._splits) or "train", file)]
        files = sorted(file for file in self._path.iterdir() if file.suffix.lower() == ".json")
        found = [(_split_of(file.name, self._splits), file) for file in files]
        named = [(split, file) for split, file in found if split is not None]
        if not named and len(files) == 1:
            return [("train", files[0])]
        missing = [name for name in self._splits or () if name not in dict(named)]
        if missing or not named:
            wanted = f"{missing[0] if missing else 'train'}*.json"
            got = ", ".join(file.name for file in files[:10]) or "no file ending with .json"
            raise SourceError(f"{self._path}: expected a file {wanted}, got {got}")
        for _, file in named:
            find_files(file)
        return named


def _split_of(name: str, splits: Sequence[str] | None) -> str | None:
    """The split that a file name starts with, the longest that does; None if none does."""
    if splits is not None:
        return max((one for one in splits if name.startswith(one)), key=len, default=None)
    found = _SPLIT.match(name)
    return found[1] if found else None


def _list_names(walk: JsonWalk) -> list[str] | None:
    """The names of the lists that a file holds; None if it holds records."""
    if walk.peek() != "{":
        return None
    names: list[str] = []
    for name in walk.members():
        if walk.peek() != "[":
            if not names:
                return None
            raise walk.error(f"no list at {name!r}, unlike before")
        for _ in walk.items():
            walk.value()
        names.append(name)
    walk.end()
    if len(set(names)) < len(names):
        raise walk.error("a name that occurs twice")
    return names or None


class _JsonTextPart:
    """The records of one split; of each file all, or those of one list."""

    def __init__(self, places: list[tuple[Path, str | None]], allow_nan: bool) -> None:
        self.schema: Schema | None = None
        self.metadata: Mapping[str, Mapping[str, Any]] = {}
        files = [file for file, _ in places]
        names = [name for _, name in places]
        self.fingerprint: str | None = fingerprint_files(files, names, allow_nan)
        self._places = places
        self._allow_nan = allow_nan

    def blocks(self) -> Iterator[Block]:
        """The records of all files, in order."""
        walks = [(name, JsonWalk(file, allow_nan=self._allow_nan)) for file, name in self._places]
        has_keys = all(name is None and walk.peek() == "{" for name, walk in walks)
        blocks = RowBlocks(has_keys=has_keys)
        for (file, _), (name, walk) in zip(self._places, walks, strict=True):
            for key, value in _records(walk, name):
                try:
                    blocks.add(_row_of(value) if key is None else _paper_row(value), key or "")
                except ValueError as error:
                    blocks.reject(str(file), str(error), key)
                if blocks.is_full:
                    yield blocks.take()
        if len(blocks):
            yield blocks.take()


def _records(walk: JsonWalk, list_name: str | None) -> Iterator[tuple[str | None, Any]]:
    """Each record, with its id in the paper's shape."""
    if walk.peek() == "[":
        for _ in walk.items():
            yield None, walk.value()
        walk.end()
        return
    for name in walk.members():
        if list_name is None:
            yield name, walk.value()
        elif name == list_name:
            for _ in walk.items():
                yield None, walk.value()
        else:
            walk.value()
    walk.end()


def _paper_row(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise ValueError(f"expected an object with a text, got {value!r:.80}")
    label = value.pop("label", None)
    if not isinstance(label, dict):
        return value if label is None else {**value, "label": label}
    clash = next((name for name in label if name in value), None)
    if clash is not None:
        raise ValueError(f"expected labels of names of their own, got {clash!r}")
    return {**value, **label}


def _row_of(item: Any) -> dict[str, Any]:
    if isinstance(item, dict):
        return item
    values = [item] if isinstance(item, str) else item
    is_texts = isinstance(values, list) and 1 <= len(values) <= 2 and isinstance(values[0], str)
    if not is_texts:
        raise ValueError(f"expected an object, or a text and its label, got {item!r:.80}")
    return dict(zip(("text", "label"), values, strict=False))
