"""The signs that tables and charts are drawn with: of Unicode, or of ASCII alone."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import ConsoleOptions

__all__ = ["ASCII", "UNICODE", "Signs", "signs_for"]


@dataclass(frozen=True, slots=True)
class Signs:
    """Signs by what they stand for.

    Attributes:
        levels: of a column of a small histogram, from nothing to the full height.
        parts: of a bar that ends within a cell, from nothing to the full cell.
        to: between the ends of a range.
        times: between the sides of a shape.
        dots: where something was cut off.
        about: before a number that was estimated.
        within: before a standard deviation.
        between: between facts on a line.
        good, bad: before what is well, and before warnings.
    """

    levels: str
    parts: str
    to: str
    times: str
    dots: str
    about: str
    within: str
    between: str
    good: str
    bad: str


UNICODE = Signs(" ▁▂▃▄▅▆▇█", " ▏▎▍▌▋▊▉█", "\u2013", "\u00d7", "…", "≈", "±", "·", "✓", "!")
ASCII = Signs(" .:-=+*#%", " #", "-", "x", "...", "~", "+-", "|", "ok", "!")


def signs_for(options: ConsoleOptions) -> Signs:
    """The signs that the encoding of a console holds."""
    return ASCII if options.ascii_only else UNICODE
