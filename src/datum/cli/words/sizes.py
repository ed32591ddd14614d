"""Numbers of bytes as people write them: `128MiB`, `1GB`, `500k`."""

from __future__ import annotations

import re
from decimal import Decimal

from datum.errors import Message

__all__ = ["parse_bytes"]

_SIZE = re.compile(r"(?P<number>\d[\d_,]*(?:\.\d+)?|\.\d+)\s*(?P<unit>[a-z]*)", re.IGNORECASE)
_LETTERS = "kmgtp"


def _units() -> dict[str, int]:
    """What each unit stands for, in lower case: as for GNU, `k` is KiB and `kB` is 1,000."""
    units = {"": 1, "b": 1, "byte": 1, "bytes": 1}
    for power, letter in enumerate(_LETTERS, start=1):
        units |= {letter: 1024**power, f"{letter}ib": 1024**power, f"{letter}i": 1024**power}
        units[f"{letter}b"] = 1000**power
    return units


_UNITS = _units()


def parse_bytes(text: str) -> int:
    """The bytes that a text like `128MiB`, `1.5 GB`, `500k` or `1048576` stands for.

    `KiB` and a bare letter are powers of 1,024, `kB` is a power of 1,000, as for GNU's tools; case
    is not looked at. Anything else, and less than one byte, is a ValueError.

    >>> parse_bytes("128MiB"), parse_bytes("1 GB"), parse_bytes("500k")
    (134217728, 1000000000, 512000)
    """
    found = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(found["unit"].lower()) if found is not None else None
    if found is None or unit is None:
        raise ValueError(
            Message(
                f"size: expected a number of bytes, got {text!r}",
                hint="write it as 128MiB, 1.5GB, 500k or 1048576",
            )
        )
    size = int(Decimal(found["number"].replace("_", "").replace(",", "")) * unit)
    if size < 1:
        raise ValueError(f"size: expected at least one byte, got {text!r}")
    return size
