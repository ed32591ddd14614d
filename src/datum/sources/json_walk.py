"""A walk through one JSON text, value by value, so that it need not be held as objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datum.errors import Message, SourceError
from datum.sources.files import open_file
from datum.sources.json_reading import make_decoder

__all__ = ["JsonWalk"]

_SPACE = re.compile(r"[ \t\r\n]*")


class JsonWalk:
    """Where one is in a JSON text; raises SourceError, with the line, where it is none.

    Within `members` and `items` the value at hand must be taken before the next is asked for.
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
        self._counted = (0, 1)  # a place, and its line
        self._decoder = make_decoder(allow_nan=allow_nan)

    def peek(self) -> str:
        """The first character of what comes next; empty at the end."""
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        start: str = self._text[self._at : self._at + 1]
        return start

    @property
    def line(self) -> int:
        """The line of what comes next."""
        self.peek()
        at, line = self._counted
        line += int(self._text.count("\n", at, self._at))
        self._counted = self._at, line
        return line

    def value(self) -> Any:
        """Take the value that comes next."""
        self.peek()
        try:
            value, self._at = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._at = error.pos
            raise self.error(error.msg) from None
        except RecursionError:
            raise self.error("one that is nested too deeply") from None
        except ValueError as error:
            raise self.error(Message.of(error)) from None
        return value

    def members(self) -> Iterator[str]:
        """The names in the object that comes next; at each, its value comes next."""
        for _ in self._elements("{", "}"):
            name = self.value()
            if not isinstance(name, str):
                raise self.error("a name that is no text")
            self._take(":")
            yield name

    def items(self) -> Iterator[None]:
        """Stop before each value of the list that comes next."""
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
        """Make sure that nothing follows."""
        if self.peek():
            raise self.error("more after its end")

    def _take(self, wanted: str) -> None:
        if self.peek() != wanted:
            raise self.error(f"{self.peek() or 'its end'!r} where {wanted!r} should be")
        self._at += 1

    def error(self, got: str | Message) -> SourceError:
        """An error that names file and line."""
        line = self._text.count("\n", 0, self._at) + 1
        told = Message(got)
        return SourceError(
            f"line {line}: expected JSON, got: {told.line}", where=self._path, hint=told.hint
        )
