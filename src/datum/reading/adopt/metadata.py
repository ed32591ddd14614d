"""The JSON files that others put beside their records, read without trusting them."""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath
from typing import Any

from datum.errors import ManifestError
from datum.format.manifest_file import read_manifest
from datum.format.strict_json import describe, parse_json

__all__ = ["check_member", "expect", "read_json", "size_of"]


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; ManifestError names the file and the place of any trouble."""
    file, data = read_manifest(path)
    try:
        return expect(parse_json(data), dict, "$")  # type: ignore[no-any-return]
    except ManifestError as error:
        raise ManifestError(error, where=file) from None


def expect(value: Any, kind: type, where: str) -> Any:
    """`value` if it is of this kind; a truth value is no number."""
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    kinds = {dict: "an object", list: "a list", str: "a text", int: "an integer", bool: "a truth"}
    raise ManifestError(f"expected {kinds[kind]}, got {describe(value)}", where=where)


def size_of(path: Path) -> int | None:
    """The size of a regular file; None if there is none of this name, or can be none."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: a name with a NUL
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def check_member(name: str, where: str) -> str:
    """Refuse the path of a file that does not lie below the folder that lists it."""
    parts = PurePosixPath(name).parts
    is_inside = parts and not name.startswith("/") and ".." not in parts
    if not is_inside or any(c in "\\:" or c < " " for c in name):
        got = describe(name)
        raise ManifestError(f"expected the name of a file in this folder, got {got}", where=where)
    return name
