"""Records in JSON files and JSON Lines, read strictly."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Self

from datum.errors import Message, Option, SourceError, Text
from datum.schema import Feature
from datum.sources.cells import convert_row
from datum.sources.files import Paths, find_files, find_split_files, fingerprint_files, open_file
from datum.sources.options import TableOptions, pick_columns
from datum.sources.protocol import Block, RowBlocks, RowPart, SourceInfo, StreamedPart
from datum.sources.text_encoding import check_encoding

__all__ = [
    "JsonError",
    "JsonLines",
    "JsonText",
    "JsonWalk",
    "make_decoder",
]


class JsonError(ValueError):
    """A fault of a JSON text other than its syntax."""


def make_decoder(*, allow_nan: bool) -> json.JSONDecoder:
    """Return a decoder that raises ValueError: JsonError, or json.JSONDecodeError with a position.

    Nesting that is too deep raises RecursionError.
    """
    constant = float if allow_nan else _refuse_constant
    number = float if allow_nan else _finite
    return json.JSONDecoder(object_pairs_hook=_unique, parse_constant=constant, parse_float=number)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def _refuse_constant(text: str) -> Any:
    raise JsonError(
        Message(f"expected a number of JSON, got {text}", hint="allow_nan=True takes NaN and inf")
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise JsonError(f"expected each name once, got {twice!r} twice")
    return found


@dataclass(frozen=True, slots=True)
class _JsonOptions:
    """How objects become rows.

    Attributes:
        of: The source that takes the options, for messages.
        columns: The members to read; None for all.
        rename: New names of members.
        encoding: The encoding of the text; None for UTF-8.
        allow_nan: Whether to accept NaN and Infinity.
        features: Features to convert texts to, by the new names.
    """

    of: str
    _: KW_ONLY
    columns: Sequence[str] | None = None
    rename: Mapping[str, str] | None = None
    encoding: str | None = None
    allow_nan: bool = False
    features: Mapping[str, Feature] = field(default_factory=dict)

    def __post_init__(self) -> None:
        columns = "same" if self.columns is None else self.columns
        TableOptions(columns=columns, rename=self.rename, encoding=self.encoding)
        if isinstance(self.columns, str):
            raise SourceError(
                Text(
                    "expected a list of names as ",
                    Option("columns"),
                    f" of {self.of}, whose records may each have different members, got"
                    f" {self.columns!r}",
                )
            )

    @property
    def codec(self) -> str | None:
        """The encoding; None if it is UTF-8."""
        name = None if self.encoding is None else check_encoding(self.encoding)
        return None if name in ("utf-8", "utf-8-sig") else name


class _RowShaper:
    """Makes rows of objects, and checks that the members asked for occur."""

    def __init__(self, options: _JsonOptions) -> None:
        self._options = options
        self._rename = dict(options.rename or {})
        self._wanted = set(options.columns or ()) | set(self._rename)
        self._names: dict[str, None] = {}

    def shape(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row of an object; raise ValueError if it does not fit the features."""
        if self._wanted:
            self._names.update(dict.fromkeys(row))
        columns, rename = self._options.columns, self._rename
        if columns is not None:
            row = {name: row[name] for name in columns if name in row}
        if rename:
            renamed = {rename.get(name, name): value for name, value in row.items()}
            if len(renamed) < len(row):
                problem = " to use different names, got one twice"
                raise ValueError(Message(Text("expected ", Option("rename"), problem)))
            row = renamed
        return convert_row(row, self._options.features) if self._options.features else row

    def check(self, where: str) -> None:
        """Raise SourceError for a name that no object had; call after the last row."""
        if self._names:
            pick_columns(list(self._names), sorted(self._wanted), where=where)


MAX_LINE_BYTES = 64 * 2**20  # far above any sensible record


class _JsonSource(SourceInfo):
    """A source of JSON objects, which become rows by its options."""

    is_table = True
    _options: _JsonOptions

    def with_features(self, features: Mapping[str, Feature]) -> Self:
        """Return the same source, with texts converted to these features."""
        source = copy.copy(self)
        source._options = replace(self._options, features=dict(features))  # noqa: SLF001 - own class
        return source


class JsonLines(_JsonSource):
    """Records in one or more files with a JSON object on each line (.jsonl, .ndjson, also .gz).

    Nested objects become features named "outer/inner", and lists of objects a list for each of
    their names, "list/name". Lines that are not an object, that are not valid UTF-8 or in which a
    name occurs twice are rejected; empty lines are skipped.

    Args:
        path: A file, a list of files, a pattern such as `data/*.jsonl`, or a dict of these by
            split.
        key: The member that names the records; it is also stored as a feature.
        allow_nan: Whether to accept NaN and Infinity, which are not JSON but which Python writes.
        split: The name of the split, unless `path` is a dict.
        columns: The members to read; by default all.
        rename: New names of members.
        encoding: The encoding of the text; UTF-8 by default.
    """

    kind = "JSON lines"
    suffixes = (".jsonl", ".ndjson")

    def __init__(
        self,
        path: Paths | Mapping[str, Paths],
        *,
        key: str | None = None,
        allow_nan: bool = False,
        split: str = "train",
        columns: Sequence[str] | None = None,
        rename: Mapping[str, str] | None = None,
        encoding: str | None = None,
    ) -> None:
        self._paths = find_split_files(path, split)
        self._key = key
        self._options = _JsonOptions(
            "JsonLines", columns=columns, rename=rename, encoding=encoding, allow_nan=allow_nan
        )

    def parts(self) -> Mapping[str, StreamedPart]:
        """Return the records of each split."""
        return {
            name: _JsonLinesPart(paths, self._key, self._options)
            for name, paths in self._paths.items()
        }


class _JsonLinesPart(RowPart):
    """The lines of some files, in order."""

    def __init__(self, paths: list[Path], key: str | None, options: _JsonOptions) -> None:
        super().__init__(fingerprint=fingerprint_files(paths, key, options))
        self._paths = paths
        self._options = options
        self._key = key
        self._decoder = make_decoder(allow_nan=options.allow_nan)

    def blocks(self) -> Iterator[Block]:
        """Yield the records of all lines."""
        blocks = RowBlocks(has_keys=self._key is not None)
        self._lists = blocks.nested
        shaper = _RowShaper(self._options)
        codec = self._options.codec
        for path in self._paths:
            with open_file(path) as file, _recoded(file, path, codec) as lines:
                for line, text in _lines(lines):
                    try:
                        row = self._read(text)
                        key = "" if self._key is None else self._key_of(row)
                        blocks.add(shaper.shape(row), key, place=(path, line))
                    except ValueError as error:
                        blocks.reject(f"{path}, line {line}", Message.of(error))
                    if blocks.is_full:
                        yield blocks.take()
        shaper.check(str(self._paths[0]))
        if len(blocks):
            yield blocks.take()

    def _key_of(self, row: dict[str, Any]) -> str:
        key = row.get(self._key or "")
        if not isinstance(key, (str, int)) or isinstance(key, bool):
            raise ValueError(f"expected a key {self._key!r} that is a text, got {key!r}")
        return str(key)

    def _read(self, text: bytes | None) -> dict[str, Any]:
        if text is None:
            raise ValueError(f"expected at most {MAX_LINE_BYTES} bytes in a line, got more")
        try:
            found = self._decoder.decode(text.decode())
        except UnicodeDecodeError as error:
            raise ValueError(f"expected UTF-8, got {error}") from None
        except json.JSONDecodeError as error:
            raise ValueError(f"expected JSON, got {error}") from None
        except RecursionError:
            raise ValueError("expected JSON, got too deep a nesting") from None
        if not isinstance(found, dict):
            raise ValueError(f"expected an object, got {_kind_of(found)}")
        return found


@contextlib.contextmanager
def _recoded(file: IO[bytes], path: Path, encoding: str | None) -> Iterator[Any]:
    """Open a file as lines of UTF-8, whatever its encoding."""
    if encoding is None:
        yield file
        return
    text = io.TextIOWrapper(file, encoding, newline="\n")
    try:
        yield _Recoded(text, path)
    finally:
        text.detach()


class _Recoded:
    """The lines of a file in another encoding, as UTF-8."""

    def __init__(self, text: io.TextIOWrapper, path: Path) -> None:
        self._text = text
        self._path = path

    def readline(self, limit: int) -> bytes:
        """Return the next line, or its first `limit` characters."""
        try:
            return self._text.readline(limit).encode()
        except UnicodeDecodeError as error:
            raise SourceError(
                f"expected text in {self._text.encoding}, got: {error}", where=self._path
            ) from None


def _lines(file: Any) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines that are not empty, with their numbers; None for one that is too long."""
    number = 0
    while text := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if number == 1 and text.startswith(b"\xef\xbb\xbf"):
            text = text[3:]
        if len(text) > MAX_LINE_BYTES:
            while text and not text.endswith(b"\n"):
                text = file.readline(MAX_LINE_BYTES)
            yield number, None
        elif not text.isspace() and text:
            yield number, text


def _kind_of(value: Any) -> str:
    kinds = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


_SPACE = re.compile(r"[ \t\r\n]*")


class JsonWalk:
    """A position in a JSON text; raises SourceError with the line if the text is malformed.

    Within `members` and `items`, read the current value before advancing.
    """

    def __init__(self, path: Path, *, allow_nan: bool, encoding: str | None = None) -> None:
        with open_file(path) as file:
            content = file.read()
        try:
            self._text = content.decode(encoding or "utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(f"expected {encoding or 'UTF-8'}, got {error}", where=path) from None
        self._path = path
        self._at = 0
        self._counted = (0, 1)  # a position, and its line
        self._decoder = make_decoder(allow_nan=allow_nan)

    def peek(self) -> str:
        """Return the first character of the next value; empty at the end."""
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        start: str = self._text[self._at : self._at + 1]
        return start

    @property
    def line(self) -> int:
        """Return the line of the next value."""
        self.peek()
        at, line = self._counted
        line += int(self._text.count("\n", at, self._at))
        self._counted = self._at, line
        return line

    def value(self) -> Any:
        """Read the next value."""
        self.peek()
        try:
            value, self._at = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._at = error.pos
            raise self.error(error.msg) from None
        except RecursionError:
            raise self.error("too deep a nesting") from None
        except ValueError as error:
            raise self.error(Message.of(error)) from None
        return value

    def members(self) -> Iterator[str]:
        """Yield the names of the next object; the value of each is then the next value."""
        for _ in self._elements("{", "}"):
            name = self.value()
            if not isinstance(name, str):
                raise self.error("a name that is no text")
            self._take(":")
            yield name

    def items(self) -> Iterator[None]:
        """Yield before each value of the next list."""
        yield from self._elements("[", "]")

    def _elements(self, opening: str, closing: str) -> Iterator[None]:
        self._take(opening)
        if self.peek() == closing:
            self._at += 1
            return
        while True:
            yield
            if self.peek() == closing:
                self._at += 1
                return
            self._take(",")

    def end(self) -> None:
        """Raise SourceError if anything follows."""
        if self.peek():
            raise self.error("more after its end")

    def _take(self, wanted: str) -> None:
        if self.peek() != wanted:
            raise self.error(f"{self.peek() or 'its end'!r} where {wanted!r} should be")
        self._at += 1

    def error(self, got: str | Message) -> SourceError:
        """Return an error that names file and line."""
        line = self._text.count("\n", 0, self._at) + 1
        message = Message(got)
        return SourceError(
            f"line {line}: expected JSON, got: {message.line}", where=self._path, hint=message.hint
        )


_SPLIT = re.compile(
    r"(trainval|training|train|validation|valid|val|dev|testing|test|evaluation|eval)(?![a-z])",
    re.IGNORECASE,
)


class JsonText(_JsonSource):
    """Texts and labels in JSON files of one of three shapes.

    - `{"id": {"text": "...", "label": {"name": value, ...}}, ...}`, the paper's shape: the id is
      the key; the features are the text and one for each label. Other members are kept.
    - `{"train": [["text", "label"], ...], "test": [...]}`: a split for each name; items may also
      be objects, or texts alone.
    - `[{"text": "...", ...}, ...]`: the members of each object.

    `path` is a file, or a folder with files named after their splits (`train.json`,
    `train_2.json`, `val.json`). Items of another shape are rejected.

    Args:
        path: The file or folder.
        splits: The splits to read, from files whose names start with theirs; by default the usual
            ones.
        allow_nan: Whether to accept NaN and Infinity, which are not JSON.
        columns: The members of each record to read; by default all.
        rename: New names of members.
        encoding: The encoding of the text; UTF-8 by default.
    """

    kind = "texts in JSON"
    suffixes = (".json",)

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
        self._options = _JsonOptions(
            "JsonText", columns=columns, rename=rename, encoding=encoding, allow_nan=allow_nan
        )

    def parts(self) -> Mapping[str, StreamedPart]:
        """Return the records of each split."""
        places: dict[str, list[tuple[Path, str | None]]] = {}
        for split, file in self._find_files():
            names = _list_names(_walk(file, self._options))
            if names is None:
                places.setdefault(split, []).append((file, None))
                continue
            for name in names if self._splits is None else self._splits:
                if name not in names:
                    raise SourceError(
                        f"expected a list {name!r}, got {', '.join(names)}", where=file
                    )
                places.setdefault(name, []).append((file, name))
        return {name: _JsonTextPart(found, self._options) for name, found in places.items()}

    def _find_files(self) -> list[tuple[str, Path]]:
        """Return the files, each with the split that its name contains."""
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


def _walk(file: Path, options: _JsonOptions) -> JsonWalk:
    return JsonWalk(file, allow_nan=options.allow_nan, encoding=options.codec)


def _split_of(name: str, splits: Sequence[str] | None) -> str | None:
    """Return the longest split that a file name starts with; None if there is none."""
    if splits is not None:
        return max((one for one in splits if name.startswith(one)), key=len, default=None)
    found = _SPLIT.match(name)
    return found[1] if found else None


def _list_names(walk: JsonWalk) -> list[str] | None:
    """Return the names of the lists in a file; None if it contains records."""
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


class _JsonTextPart(RowPart):
    """The records of one split: from each file all, or those of one list."""

    def __init__(self, places: list[tuple[Path, str | None]], options: _JsonOptions) -> None:
        files = [file for file, _ in places]
        names = [name for _, name in places]
        super().__init__(fingerprint=fingerprint_files(files, names, options))
        self._options = options
        self._places = places

    def blocks(self) -> Iterator[Block]:
        """Yield the records of all files, in order."""
        shaper = _RowShaper(self._options)
        walks = [(name, _walk(file, self._options)) for file, name in self._places]
        has_keys = all(name is None and walk.peek() == "{" for name, walk in walks)
        blocks = RowBlocks(has_keys=has_keys)
        self._lists = blocks.nested
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
    """Yield each record with its line, and with its id in the paper's shape."""
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
        raise ValueError(f"labels need names of their own, got {clash!r}")
    return {**value, **label}


def _row_of(item: Any) -> dict[str, Any]:
    if isinstance(item, dict):
        return item
    values = [item] if isinstance(item, str) else item
    is_texts = isinstance(values, list) and 1 <= len(values) <= 2 and isinstance(values[0], str)
    if not is_texts:
        raise ValueError(f"expected an object, or a text and its label, got {item!r:.80}")
    return dict(zip(("text", "label"), values, strict=False))
