"""Files of TOML."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

__all__ = ["read_toml"]


def read_toml(path: str | Path) -> dict[str, Any]:
    """What a file holds; a ValueError that names the file where it is no TOML."""
    # Python has it since 3.11; before, a package of the same make.
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        found: dict[str, Any] = toml.loads(Path(path).read_text(encoding="utf-8"))
    except (toml.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: expected TOML, got: {error}") from None
    return found
