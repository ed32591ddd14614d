"""The code blocks of a page, with their language and position."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "benchmarks/README.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
)
OPENING = re.compile(r"^( *)```(\S*)(.*)$")
TITLE = re.compile(r' title="([^"]*)"$')
LIST_ITEM = re.compile(r"^ *([-*+]|\d+\.) ")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: The word after the fence, or an empty string.
        line: The number of lines of the page before its text.
        text: Its content, without the indent of the fence.
        follows: Whether only empty lines separate it from the previous block.
        title: The file that it is saved as, if any.
    """

    language: str
    line: int
    text: str
    follows: bool
    title: str = ""


def name_of(page: Path) -> str:
    """The name of the page in test ids."""
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    follows, at = False, 0
    while at < len(lines):
        opened = OPENING.match(lines[at])
        at += 1
        if not opened:
            follows = follows and not lines[at - 1].strip()
            continue
        indent, language, options = opened.groups()
        title = TITLE.match(options)
        assert title or not options, f'{name_of(page)}:{at}: expected title="...", got {options!r}'
        closing = f"{indent}```"
        end = next((n for n in range(at, len(lines)) if lines[n].rstrip() == closing), None)
        assert end is not None, f"{name_of(page)}:{at}: this block has no end"
        text = "".join(f"{line.removeprefix(indent)}\n" for line in lines[at:end])
        found.append(Block(language, at, text, follows, title[1] if title else ""))
        follows, at = True, end + 1
    return found


def indented_code(page: Path) -> list[str]:
    """Lines that start an indented code block, which no test would run."""
    found, fenced, before = [], False, ["", ""]
    for line in page.read_text(encoding="utf-8").splitlines():
        fenced ^= bool(OPENING.match(line))
        starts = line.startswith("    ") and not before[-1].strip() and not fenced
        above = next((text for text in reversed(before) if text.strip()), "")
        if starts and not LIST_ITEM.match(above) and not above.startswith(" "):
            found.append(line)
        before.append(line)
    return found


def runnable_lines(text: str) -> list[str]:
    """Lines of a sketch that are Python: calls, imports, assignments."""
    whole = _statements(text)
    if whole:
        return whole
    return [line for line in text.splitlines() if _statements(line.strip())]


def _statements(text: str) -> list[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    calls = any(isinstance(node, ast.Call) for node in ast.walk(tree))
    kinds = (ast.Import, ast.ImportFrom, ast.Assign, ast.FunctionDef, ast.ClassDef)
    return text.splitlines() if calls or any(isinstance(n, kinds) for n in tree.body) else []
