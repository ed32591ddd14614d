"""Counts, sizes and features as commands write them."""

from __future__ import annotations

from datum import Feature

__all__ = ["count_of", "describe_feature", "describe_size"]


def count_of(count: int, what: str, several: str | None = None) -> str:
    """A number of things.

    >>> count_of(1, "record"), count_of(1200, "record"), count_of(2, "class", "classes")
    ('1 record', '1,200 records', '2 classes')
    """
    return f"{count:,} {what if count == 1 else several or what + 's'}"


def describe_size(nbytes: float) -> str:
    """A number of bytes in units of 1,000.

    >>> describe_size(999), describe_size(1_500_000)
    ('999 B', '1.5 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"


def describe_feature(feature: Feature) -> str:
    """Type and shape in short; `?` is a length that differs.

    >>> describe_feature(Feature("uint8", (None, None, 3), encoding="image"))
    'image uint8 (?, ?, 3)'
    >>> describe_feature(Feature("float32", (10,), encoding="sparse", optional=True))
    'sparse float32 (10), optional'
    """
    words: list[str] = [feature.encoding] if feature.encoding in ("image", "sparse") else []
    words.append(feature.dtype)
    if feature.shape:
        words.append(f"({', '.join('?' if n is None else str(n) for n in feature.shape)})")
    text = " ".join(words)
    if feature.sequence:
        text += ", sequence"
    if feature.default is not None:
        text += f", default {feature.default!r}"
    elif feature.optional:
        text += ", optional"
    return text
