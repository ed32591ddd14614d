"""The table of all public names, generated from the package."""

from __future__ import annotations

import inspect
import types
from typing import Any

__all__ = ["list_names", "on_page_markdown"]

MARK = "<!-- names -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the mark of the page with the table."""
    return markdown.replace(MARK, list_names()) if MARK in markdown else markdown


def list_names() -> str:
    """One row per name of `datum.__all__`: functions, classes, errors, modules."""
    import datum

    rows: dict[str, list[str]] = {"functions": [], "classes": [], "errors": [], "modules": []}
    for name in datum.__all__:
        value = getattr(datum, name)
        if not isinstance(value, str):
            summary = (inspect.getdoc(value) or "").splitlines()[0]
            rows[_kind(value)].append(f"| [`datum.{name}`][datum.{name}] | {summary} |")
    parts = [
        "\n".join([f"## {kind.capitalize()}", "", "| | |", "|---|---|", *lines, ""])
        for kind, lines in rows.items()
    ]
    return "\n".join(parts)


def _kind(value: object) -> str:
    if isinstance(value, types.ModuleType):
        return "modules"
    if not isinstance(value, type):
        return "functions"
    return "errors" if issubclass(value, Exception) else "classes"
