"""Counts and sizes as people write them."""

from __future__ import annotations

__all__ = ["count_of", "format_bytes"]


def count_of(count: int, what: str, several: str | None = None) -> str:
    """A number of things.

    >>> count_of(1, "record"), count_of(1200, "record")
    ('1 record', '1,200 records')
    """
    return f"{count:,} {what if count == 1 else several or what + 's'}"


def format_bytes(count: float) -> str:
    """A size as people write it.

    >>> format_bytes(1_500_000)
    '1.5 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
