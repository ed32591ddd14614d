"""Distributions drawn with characters: on one line, in a few rows, or as bars."""

from __future__ import annotations

import math
from collections.abc import Sequence

from datum.cli.words.signs import Signs

__all__ = ["bar", "densities", "rows", "sparkline"]


def densities(edges: Sequence[float], counts: Sequence[float], bins: int) -> list[float]:
    """How dense values lie in at most so many bins; neighbours are joined, evenly.

    The last bin may be narrower than the others, and is as high as if it were not.

    >>> densities([0, 2, 4, 5], [2, 2, 1], 3)
    [1.0, 1.0, 1.0]
    """
    joined = max(1, -(-len(counts) // bins))
    found = []
    for start in range(0, len(counts), joined):
        end = min(start + joined, len(counts))
        width = edges[end] - edges[start]
        found.append(sum(counts[start:end]) / width if 0 < width < math.inf else 1.0)
    return found


def sparkline(counts: Sequence[float], signs: Signs) -> str:
    """A histogram on one line: a character a bin, none of them empty unless its bin is.

    >>> from datum.cli.words.signs import UNICODE
    >>> sparkline([1, 0, 4, 8], UNICODE)
    '▁ ▄█'
    """
    most = max(counts, default=0)
    if not most:
        return ""
    top = len(signs.levels) - 1
    return "".join(signs.levels[_level(count, most, top)] for count in counts)


def _level(count: float, most: float, top: int) -> int:
    return max(1, round(count / most * top)) if count else 0


def rows(counts: Sequence[float], height: int, signs: Signs) -> list[str]:
    """A histogram of several rows, the highest first; a column a bin."""
    most = max(counts, default=0)
    if not most:
        return []
    steps = len(signs.levels) - 1
    tops = [_level(count, most, height * steps) for count in counts]
    return [
        "".join(signs.levels[min(max(top - row * steps, 0), steps)] for top in tops)
        for row in reversed(range(height))
    ]


def bar(share: float, width: int, signs: Signs) -> str:
    """A bar that takes a share of the width; at least a sliver of what is not nothing.

    >>> from datum.cli.words.signs import ASCII
    >>> bar(0.5, 8, ASCII)
    '####'
    """
    steps = len(signs.parts) - 1
    filled = max(1, round(min(1.0, share) * width * steps)) if share > 0 else 0
    whole, rest = divmod(filled, steps)
    return signs.parts[-1] * whole + (signs.parts[rest] if rest else "")
