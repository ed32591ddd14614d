"""JSON as strictly as data needs it: no name twice, no NaN unless allowed, no endless depth."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from datum.errors import Message, SourceError
from datum.schema import Feature
from datum.sources.cells import guide_row
from datum.sources.csv_encoding import check_encoding
from datum.sources.table_options import check_table_options, pick_columns

__all__ = ["JsonError", "JsonOptions", "RowShaper", "make_decoder"]


class JsonError(ValueError):
    """What is wrong with a JSON text, apart from its syntax."""


def make_decoder(*, allow_nan: bool) -> json.JSONDecoder:
    """A decoder that raises ValueError (JsonError, or json.JSONDecodeError with its position).

    Too deep a nesting raises RecursionError.
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
class JsonOptions:
    """How objects become rows.

    Attributes:
        of: the source that takes the options, for messages.
        columns: the members to take; None for all.
        rename: new names of members.
        encoding: of the text; None for UTF-8.
        features: what texts are read as, by the new names.
    """

    of: str
    _: KW_ONLY
    columns: Sequence[str] | None = None
    rename: Mapping[str, str] | None = None
    encoding: str | None = None
    features: Mapping[str, Feature] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = {"columns": self.columns, "rename": self.rename, "encoding": self.encoding}
        given = {name: value for name, value in given.items() if value is not None}
        check_table_options(given, of=self.of)
        if isinstance(self.columns, str):
            raise SourceError(
                f"expected a list of names as `columns` of {self.of}, whose records may each have"
                f" members of their own, got {self.columns!r}"
            )

    @property
    def codec(self) -> str | None:
        """The encoding, unless it is UTF-8."""
        name = None if self.encoding is None else check_encoding(self.encoding)
        return None if name in ("utf-8", "utf-8-sig") else name


class RowShaper:
    """Makes rows of objects, and makes sure that the members asked for are found in some."""

    def __init__(self, options: JsonOptions) -> None:
        self._options = options
        self._rename = dict(options.rename or {})
        self._wanted = set(options.columns or ()) | set(self._rename)
        self._names: dict[str, None] = {}

    def shape(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row of an object; ValueError if it is none of the features asked for."""
        if self._wanted:
            self._names.update(dict.fromkeys(row))
        columns, rename = self._options.columns, self._rename
        if columns is not None:
            row = {name: row[name] for name in columns if name in row}
        if rename:
            renamed = {rename.get(name, name): value for name, value in row.items()}
            if len(renamed) < len(row):
                raise ValueError("expected `rename` to give different names, got one twice")
            row = renamed
        return guide_row(row, self._options.features) if self._options.features else row

    def check(self, where: str) -> None:
        """Raise SourceError for a name that no object had; called after the last."""
        if self._names:
            pick_columns(list(self._names), sorted(self._wanted), where=where)
