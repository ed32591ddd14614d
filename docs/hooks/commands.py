"""The command-line reference, from the output of --help."""

from __future__ import annotations

from typing import Any

import typer
from typer.testing import CliRunner

__all__ = ["describe_commands", "on_page_markdown"]

MARK = "<!-- commands -->"
COLUMNS = "80"  # fits a page without scrolling


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the mark of the page with the commands."""
    return markdown.replace(MARK, describe_commands()) if MARK in markdown else markdown


def describe_commands() -> str:
    """The help of the program, then of each command."""
    from datum.cli.app import app

    program: Any = typer.main.get_command(app)
    names = program.list_commands(typer.Context(program))
    parts = [f"## datum {name} {{ #{name} }}\n\n{_block(_help(app, name))}" for name in names]
    return "\n".join([_block(_help(app)), *parts])


def _help(app: Any, *names: str) -> str:
    ran = CliRunner().invoke(
        app, [*names, "--help"], prog_name="datum", env={"COLUMNS": COLUMNS, "NO_COLOR": "1"}
    )
    if ran.exit_code != 0:
        raise RuntimeError(f"datum {' '.join(names)} --help: {ran.output}") from ran.exception
    return ran.output


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"
