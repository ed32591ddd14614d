"""Records in JSON Lines: an object on each line."""

from __future__ import annotations

import contextlib
import copy
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from datum.errors import Message, SourceError
from datum.schema import Feature, Schema
from datum.sources.files import Paths, find_split_files, fingerprint_files, open_file
from datum.sources.json_reading import JsonOptions, RowShaper, make_decoder
from datum.sources.nested_rows import describe_filled
from datum.sources.row_blocks import RowBlocks
from datum.sources.source import Block, StreamedPart

__all__ = ["JsonLines"]

MAX_LINE_BYTES = 64 * 2**20  # far above any record that is meant


class JsonLines:
    """Records in one or more files with a JSON object on each line (.jsonl, .ndjson, also .gz).

    Objects within objects become features named "outer/inner", and lists of objects a list for
    each of their names, "list/name". Lines that are no object, and those
    with bad UTF-8 or a name that occurs twice, are rejected; empty lines are left out.

    Args:
        path: a file, a list of files, a pattern such as `data/*.jsonl`, or a dict of these by
            split.
        key: the member that names the records; it stays a feature, too.
        allow_nan: whether to take NaN and Infinity, which are not JSON, though Python writes them.
        split: what the split is called, if `path` is no dict.
        columns: The members to take; by default all.
        rename: New names of members.
        encoding: The encoding of the text; UTF-8 by default.
    """

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
        self._allow_nan = allow_nan
        self._options = JsonOptions("JsonLines", columns=columns, rename=rename, encoding=encoding)

    def guided(self, features: Mapping[str, Feature]) -> JsonLines:
        """The same lines, with texts read as these features where those are no texts."""
        lines = copy.copy(self)
        lines._options = replace(self._options, features=dict(features))  # noqa: SLF001 - of its own class
        return lines

    def parts(self) -> Mapping[str, StreamedPart]:
        """The records of each split."""
        return {
            name: _JsonLinesPart(paths, self._key, self._allow_nan, self._options)
            for name, paths in self._paths.items()
        }


class _JsonLinesPart:
    """The lines of some files, one after the other."""

    def __init__(
        self, paths: list[Path], key: str | None, allow_nan: bool, options: JsonOptions
    ) -> None:
        self.schema: Schema | None = None
        self.metadata: Mapping[str, Mapping[str, Any]] = {}
        self.fingerprint: str | None = fingerprint_files(paths, key, allow_nan, options)
        self._paths = paths
        self._options = options
        self._key = key
        self._blocks = RowBlocks(has_keys=False)
        self._decoder = make_decoder(allow_nan=allow_nan)

    @property
    def nested(self) -> tuple[str, ...]:
        """The features made of lists of objects, in the records that were read."""
        return tuple(self._blocks.nested.names)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was filled in, in the records that were read."""
        return describe_filled(self._blocks.nested.filled)

    def blocks(self) -> Iterator[Block]:
        """The records of all lines."""
        blocks = self._blocks = RowBlocks(has_keys=self._key is not None)
        shaper = RowShaper(self._options)
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
            raise ValueError("expected JSON, got one that is nested too deeply") from None
        if not isinstance(found, dict):
            raise ValueError(f"expected an object, got {_kind_of(found)}")
        return found


@contextlib.contextmanager
def _recoded(file: IO[bytes], path: Path, encoding: str | None) -> Iterator[Any]:
    """A file whose lines are UTF-8, whatever it is encoded in."""
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
        """The next line, or so many characters of it."""
        try:
            return self._text.readline(limit).encode()
        except UnicodeDecodeError as error:
            raise SourceError(
                f"expected text in {self._text.encoding}, got: {error}", where=self._path
            ) from None


def _lines(file: Any) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not empty, by their numbers; None for one that is too long."""
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
