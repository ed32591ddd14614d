"""Environments that have some of the installed packages, and no others.

Such an environment is a folder with links to the packages that were asked for and to all that they
need. Python starts with it instead of its own.
"""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import datum

START = """
import runpy, sys
folder, script, *arguments = sys.argv[1:]
sys.path.append(folder)
sys.path.insert(0, script.rpartition("/")[0])
sys.argv = [script, *arguments]
runpy.run_path(script, run_name="__main__")
"""


def needs_of(name: str) -> list[str]:
    """The packages that an installed one needs, but for those that only its extras do."""
    found = metadata.requires(name) or []
    return [re.match(r"[\w.-]+", need)[0] for need in found if "extra ==" not in need]


def all_needed(names: list[str]) -> dict[str, metadata.Distribution]:
    found: dict[str, metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of another platform
            continue
        waiting += needs_of(name)
    return found


def fill(folder: Path, *names: str) -> Path:
    """Make `folder` an environment of Datum and some more packages."""
    for name, package in all_needed(["datum", *names]).items():
        if name == "datum":
            continue
        tops = {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}
        for top in tops:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(package.locate_file(top))).resolve())
    (folder / "datum").symlink_to(Path(datum.__file__).parent)
    return folder


def run(
    folder: Path, script: Path, *arguments: object, cwd: Path, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run a script in an environment, with some environment variables more."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        # -I and -S: no packages but those of the folder.
        [sys.executable, "-I", "-S", "-c", START, folder, script, *map(str, arguments)],
        cwd=cwd,
        env={**kept, **settings},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
