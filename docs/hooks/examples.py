"""Pages for the scripts in examples/, and the links to them."""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

__all__ = ["on_config", "on_files", "on_page_markdown"]

SCRIPTS = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
LINK = re.compile(r"\]\((?:\.\./)+examples/?(?:(\w+)\.py)?\)")
START = """# Examples

Complete scripts that create their own data or use that of scikit-learn. A test runs each of them.
They are in `examples/`: `python examples/first_dataset.py`.

| Script | What it does |
|---|---|
"""


def on_config(config: Any) -> Any:
    """Add the pages of the scripts to the end of the navigation."""
    pages = [{script.stem: _uri(script.stem)} for script in SCRIPTS]
    config.nav.append({"Examples": [{"All examples": "examples/index.md"}, *pages]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Create a page for each script, and one that lists them."""
    rows = ""
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        summary = (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]
        rows += f"| [{script.name}]({script.stem}.md) | {summary} |\n"
        content = f"# {script.name}\n\n{summary}\n\n```python\n{text}```\n"
        files.append(File.generated(config, _uri(script.stem), content=content))
    files.append(File.generated(config, "examples/index.md", content=START + rows))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links to scripts at their pages."""
    folder = posixpath.dirname(page.file.src_uri)

    def lead(found: re.Match[str]) -> str:
        return f"]({posixpath.relpath(_uri(found[1] or 'index'), folder or '.')})"

    return LINK.sub(lead, markdown)


def _uri(stem: str) -> str:
    return f"examples/{stem}.md"
