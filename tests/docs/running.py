"""Run a page: its blocks one after the other, in one folder."""

import contextlib
import doctest
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.docs.fences import Block, blocks
from tests.docs.shell import play, run_script

PRINT_OPTIONS: dict[str, Any] = {
    "edgeitems": 3,
    "linewidth": 75,
    "precision": 8,
    "threshold": 1000,
}


@dataclass(frozen=True)
class Shown:
    """An output shown on a page, and what the block printed.

    Attributes:
        line: how many lines of the page come before its block.
        what: the command, or the block, that printed it.
    """

    line: int
    what: str
    expected: str
    printed: str


def run_page(page: Path, work: Path, env: dict[str, str]) -> Iterator[Shown]:
    """Run a page in `work`, the current folder, and yield each output that it shows."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    printed, before = "", ""
    for block in blocks(page):
        if block.title and block.language != "hex":
            (work / block.title).write_text(block.text)
        elif block.language == "python":
            printed = run_python(block, page, scope)
        elif block.language == "sh":
            run_script(block.text, work, env)
        elif block.language == "console":
            for command, expected, output in play(block.text, work, env):
                yield Shown(block.line, f"$ {command}", expected, output)
        elif block.language == "text" and block.follows and before == "python":
            yield Shown(block.line, "what the block before prints", block.text, printed)
        before = "" if block.title else block.language


def run_python(block: Block, page: Path, scope: dict[str, Any]) -> str:
    """Run a Python block with the names of the blocks before it, and return its output."""
    with np.printoptions(**PRINT_OPTIONS), contextlib.redirect_stdout(io.StringIO()) as printed:
        if ">>> " not in block.text:
            # Empty lines make errors name the line of the page.
            exec(compile("\n" * block.line + block.text, str(page), "exec"), scope)
            return printed.getvalue()
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
        parser = doctest.DocTestParser()
        test = parser.get_doctest(block.text, scope, page.name, str(page), block.line)
        failed = runner.run(test, out=report.append, clear_globs=False).failed
    assert not failed, "".join(report)
    scope.update(test.globs)
    return ""
