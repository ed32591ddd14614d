"""Update the output shown on pages: `python -m tests.docs.refresh PAGE`.

Outputs that are still right, times, rates and `...` aside, stay as they are.
"""

import os
import sys
import tempfile
from pathlib import Path

from tests.docs.running import run_page
from tests.docs.shell import environment, is_alike


def refresh(page: Path) -> int:
    """Run a page, replace outputs that changed, and return how many did."""
    text = page.read_text(encoding="utf-8")
    changed = at = 0
    with tempfile.TemporaryDirectory() as folder:
        env = environment(Path(folder) / "bin")
        work = Path(folder) / "work"
        work.mkdir()
        os.chdir(work)
        for shown in run_page(page, work, env):
            head = f"{shown.what}\n" if shown.what.startswith("$ ") else "```text\n"
            old = new = head + shown.expected
            if not is_alike(shown.expected, shown.printed):
                new = head + _trimmed(shown.printed)
                changed += 1
            at = text.index(old, at)
            text = text[:at] + new + text[at + len(old) :]
            at += len(new)
        os.chdir("/")
    page.write_text(text, encoding="utf-8")
    return changed


def _trimmed(printed: str) -> str:
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    for page in [Path(name).absolute() for name in sys.argv[1:]]:
        print(f"{page}: {refresh(page)} outputs have changed")
