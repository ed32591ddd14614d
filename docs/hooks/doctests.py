"""Show examples in docstrings as code, because Markdown reads `>>>` as nested quotes."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

__all__ = ["FencedDoctests", "fence"]

DOCTEST = re.compile(r"^( *)>>> (?:.*\n)(?:\1\S.*\n|\1 +\S.*\n)*", re.MULTILINE)


class FencedDoctests(Extension):
    """Put a fence around each example of a docstring."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring of a loaded object, if it has one."""
        if obj.docstring is not None:
            obj.docstring.value = fence(obj.docstring.value)


def fence(text: str) -> str:
    r"""The text with its doctests fenced; each ends at an empty line.

    >>> fence("Add.\n\n>>> 1 + 1\n2\n")
    'Add.\n\n```pycon\n>>> 1 + 1\n2\n```\n'
    """
    text = text if text.endswith("\n") else f"{text}\n"
    return DOCTEST.sub(lambda found: f"{found[1]}```pycon\n{found[0]}{found[1]}```\n", text)
