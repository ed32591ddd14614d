"""Texts and their labels in JSON files: the paper's layout, and two plainer ones."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from datum.errors import Message, SourceError
from datum.schema import Feature, Schema
from datum.sources.files import find_files, fingerprint_files
from datum.sources.json_reading import JsonOptions, RowShaper
from datum.sources.json_walk import JsonWalk
from datum.sources.nested_rows import describe_filled
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
        columns: The members to take of each record; by default all.
        rename: New names of members.
        encoding: The encoding of the text; UTF-8 by default.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        splits: Sequence[str] | None = None,
        allow_nan: bool = False,
        columns: Sequence[str] | None = None,
        rename: Mapping[str, str] | None = None,
        encoding: str | None = None,
    ) -> None:
        self._path = Path(path)
        self._splits = splits
        self._allow_nan = allow_nan
        self._options = JsonOptions("JsonText", columns=columns, rename=rename, encoding=encoding)

    def guided(self, features: Mapping[str, Feature]) -> JsonText:
        """The same records, with texts read as these features where those are no texts."""
        found = copy.copy(self)
        found._options = replace(self._options, features=dict(features))  # noqa: SLF001 - of its own class
        return found

    def parts(self) -> Mapping[str, StreamedPart]:
        """The records of each split."""
        places: dict[str, list[tuple[Path, str | None]]] = {}
        for split, file in self._find_files():
            names = _list_names(_walk(file, self._allow_nan, self._options))
            if names is None:
                places.setdefault(split, []).append((file, None))
                continue
            for name in names if self._splits is None else self._splits:
                if name not in names:
                    raise SourceError(
                        f"expected a list {name!r}, got {', '.join(names)}", where=file
                    )
                places.setdefault(name, []).append((file, name))
        return {
            name: _JsonTextPart(found, self._allow_nan, self._options)
            for name, found in places.items()
        }

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
            raise SourceError(f"expected a file {wanted}, got {got}", where=self._path)
        for _, file in named:
            find_files(file)
        return named


def _walk(file: Path, allow_nan: bool, options: JsonOptions) -> JsonWalk:
    return JsonWalk(file, allow_nan=allow_nan, encoding=options.codec)


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

    def __init__(
        self, places: list[tuple[Path, str | None]], allow_nan: bool, options: JsonOptions
    ) -> None:
        self.schema: Schema | None = None
        self.metadata: Mapping[str, Mapping[str, Any]] = {}
        files = [file for file, _ in places]
        names = [name for _, name in places]
        self.fingerprint: str | None = fingerprint_files(files, names, allow_nan, options)
        self._options = options
        self._places = places
        self._blocks = RowBlocks(has_keys=False)
        self._allow_nan = allow_nan

    @property
    def nested(self) -> tuple[str, ...]:
        """The features made of lists of objects, in the records that were read."""
        return tuple(self._blocks.nested.names)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was filled in, in the records that were read."""
        return describe_filled(self._blocks.nested.filled)

    def blocks(self) -> Iterator[Block]:
        """The records of all files, in order."""
        shaper = RowShaper(self._options)
        walks = [(name, _walk(file, self._allow_nan, self._options)) for file, name in self._places]
        has_keys = all(name is None and walk.peek() == "{" for name, walk in walks)
        blocks = self._blocks = RowBlocks(has_keys=has_keys)
        for (file, _), (name, walk) in zip(self._places, walks, strict=True):
            for key, line, value in _records(walk, name):
                try:
                    row = _row_of(value) if key is None else _paper_row(value)
                    blocks.add(shaper.shape(row), key or "", place=(file, line))
                except ValueError as error:
                    blocks.reject(f"{file}, line {line}", Message.of(error), key)
                if blocks.is_full:
                    yield blocks.take()
        shaper.check(str(self._places[0][0]))
        if len(blocks):
            yield blocks.take()


def _records(walk: JsonWalk, list_name: str | None) -> Iterator[tuple[str | None, int, Any]]:
    """Each record, with its id in the paper's shape, and its line."""
    if walk.peek() == "[":
        for _ in walk.items():
            yield None, walk.line, walk.value()
        walk.end()
        return
    for name in walk.members():
        if list_name is None:
            yield name, walk.line, walk.value()
        elif name == list_name:
            for _ in walk.items():
                yield None, walk.line, walk.value()
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
