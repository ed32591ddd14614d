"""Files of TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from datum.errors import Message

__all__ = ["read_toml"]


def read_toml(path: str | Path) -> dict[str, Any]:
    """What a file holds; a ValueError that names the file where it is no TOML."""
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(Message(f"expected TOML, got: {error}", where=path)) from None
    return found
