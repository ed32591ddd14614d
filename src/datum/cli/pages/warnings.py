"""The warnings of a profile, those of one kind together, with what to do about them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from datum.cli.terminal import FILE_WIDTH
from datum.cli.words.figures import cut_middle, one_line
from datum.cli.words.signs import Signs
from datum.cli.words.wording import count_of

if TYPE_CHECKING:
    from datum.profiling import ProfileWarning

__all__ = ["show_warnings"]

SHOWN_WARNINGS = 6  # of one kind; the rest is counted
MAX_NAME = 32
MAX_TEXT = 110  # a line that is easy to read


def show_warnings(
    warnings: Sequence[ProfileWarning], width: int, signs: Signs, *, is_cut: bool = True
) -> list[Text]:
    """A paragraph for each kind, the gravest first; in a file all of it, on one line."""
    is_file = width >= FILE_WIDTH
    room = 10**9 if is_file else min(width, MAX_TEXT)  # a line, however long
    lines: list[Text] = []
    for _, group in groupby(warnings, lambda warning: warning.kind):
        lines += _show_kind(list(group), room, signs, is_cut=is_cut and not is_file)
    return lines


def _show_kind(
    group: list[ProfileWarning], width: int, signs: Signs, *, is_cut: bool
) -> list[Text]:
    first = group[0]
    title = Text.assemble((f"{signs.bad} ", "bold yellow"), (first.title, "yellow"))
    text = _sentence(first) if len(group) == 1 else _list(group, signs, is_cut=is_cut)
    return [
        title,
        *_wrapped(text, width, ""),
        *_wrapped(f"hint: {first.hint}", width, "cyan"),
    ]


def _wrapped(text: str, width: int, style: str) -> list[Text]:
    room = max(20, width - 2)
    lines = textwrap.wrap(one_line(text), room, break_long_words=False, break_on_hyphens=False)
    return [Text(f"  {line}", style) for line in lines]


def _sentence(warning: ProfileWarning) -> str:
    return f"{warning.feature}: {warning.text}" if warning.feature else warning.text


def _name(warning: ProfileWarning, signs: Signs, is_cut: bool) -> str:
    name = one_line(warning.feature or "")
    return cut_middle(name, MAX_NAME, signs) if is_cut else name


def _list(group: list[ProfileWarning], signs: Signs, *, is_cut: bool) -> str:
    """Many of one kind: features with a figure each, or a sentence each."""
    shown = group[:SHOWN_WARNINGS] if is_cut else group
    more = len(group) - len(shown)
    rest = f" and {more:,} more" if more else ""
    if not all(warning.feature and warning.figure for warning in group):
        return "; ".join(map(_sentence, shown)) + rest
    named = ", ".join(f"{_name(warning, signs, is_cut)} ({warning.figure})" for warning in shown)
    return f"{count_of(len(group), 'feature')}: {named}{rest}"
