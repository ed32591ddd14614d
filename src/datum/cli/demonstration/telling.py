"""How the demo tells its story: steps, the calls it makes, and what came of them."""

from __future__ import annotations

import textwrap
import time

from rich.console import Console, RenderableType
from rich.text import Text

from datum import MissingDependencyError
from datum.cli.terminal import data, is_plain

__all__ = ["Story"]

_MAX_WIDTH = 88  # of lines that are easy to read
_INDENT = 3


class Story:
    """Steps with headings, told to stdout; plain text where it is no terminal."""

    def __init__(self) -> None:
        self.console: Console = data()
        self.width = min(self.console.width, _MAX_WIDTH) - _INDENT
        self._steps = 0
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._started

    def step(self, title: str) -> None:
        """Begin a step."""
        self._steps += 1
        heading = Text.assemble("\n", (f"{self._steps}. {title}", "bold"))
        if self.console.is_terminal:
            line = "-" if is_plain(self.console) else "─"
            heading.append(" " + line * (self.width + _INDENT - heading.cell_len - 1), "dim")
        self._print(heading)

    def say(self, text: str, style: str = "") -> None:
        """Tell something, in lines that fit."""
        for line in textwrap.wrap(text, self.width, break_on_hyphens=False):
            self.show(Text(line, style))

    def show(self, what: RenderableType) -> None:
        """Show something else, indented as the text is."""
        if isinstance(what, Text):
            lines = list(what.split("\n"))
        else:
            options = self.console.options.update(width=self.console.width - _INDENT)
            lines = [
                Text.assemble(*((part.text, part.style or "") for part in line))
                for line in self.console.render_lines(what, options, pad=False)
            ]
        for line in lines:
            self._print(Text(" " * _INDENT) + line)

    def python(self, code: str) -> None:
        """Show a call in Python, as it was made."""
        is_inner = False
        for line in code.splitlines():
            if not line and not is_inner:
                continue  # a blank line ends a block, and is of no use elsewhere
            is_inner = line.startswith((" ", ")", "]", "}"))
            prompt = "... " if is_inner or not line else ">>> "
            self.show(Text.assemble((prompt, "dim"), (line, "cyan")))

    def note_missing(self, error: MissingDependencyError) -> None:
        """Say that a step, or a part of it, is passed over, and what it takes to have it."""
        self.say(f"Passed over: {error.message.line}.", "yellow")
        self.say(f"hint: {error.hint}", "cyan")

    def shell(self, command: str) -> None:
        """Show the command that does the same."""
        self.show(Text.assemble(("$ ", "dim"), (command, "green")))

    def _print(self, text: Text) -> None:
        text.rstrip()
        self.console.print(text, soft_wrap=True, highlight=False)
