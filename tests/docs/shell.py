"""Run shell blocks of a page with this tree's `datum` on the path."""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.fences import ROOT

TIMEOUT_S = 300
PYTHONPATH = os.pathsep.join(  # before a test changes the folder
    str(Path(path).absolute())
    for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if path
)
COLUMNS = "88"  # fits a page without scrolling

# Not run, because they change the machine or take minutes; only their names are checked.
UNTRIED = re.compile(r"^\s*(pip install|make|git clone|python -m benchmarks)\b")

# Values that differ between runs, and the width of their column.
TIMES = re.compile(r"(?<![\w.])\d[\d,.]*( ?)(ns|µs|us|ms|s|min)\b")
RATES = re.compile(r"(?<![\w.])\d[\d,.]*( ?[kKMGT]?i?B?)((?: \w+)?/s)\b")

# Log lines of TensorFlow, JAX and PyTorch, which depend on the processor.
LOGGED = re.compile(
    r"(\[?[IWEF]\d{4} \d\d:\d\d:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] )"
    r"|WARNING: All log messages before absl::InitializeLog|To enable the following instructions:"
)
# Rarely, a rank of torch.distributed aborts like this after its work is done.
ABORTED = "terminate called without an active exception"


def environment(folder: Path | None = None) -> dict[str, str]:
    """The environment of this test, with its `datum` and `python` in `folder` on the path."""
    found = {**os.environ, "PYTHONPATH": PYTHONPATH, "PYTHONIOENCODING": "utf-8"}
    if folder is not None:
        found |= {"PATH": f"{_programs(folder)}{os.pathsep}{os.environ['PATH']}"}
        # Unbuffered, so that stderr is interleaved as in a terminal.
        found |= {"COLUMNS": COLUMNS, "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    return found


def _programs(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for name, call in {"python": "", "datum": "-m datum"}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def run_script(text: str, folder: Path, env: dict[str, str]) -> None:
    """Run a block of `sh` in `folder`, or raise an AssertionError with its output."""
    lines = text.splitlines()
    for line in lines:
        check_untried(line)
    script = "\n".join("" if UNTRIED.match(line) else line for line in lines)
    for _ in range(3):
        code, output = _bash(script, folder, env)
        if code == 0 or "torch.distributed.run" not in script or ABORTED not in output:
            break
    assert code == 0, f"exit code {code} of\n{script}\n{output}"


def run_session(text: str, folder: Path, env: dict[str, str]) -> None:
    """Run the commands of a `console` block and compare their output with the block."""
    for command, expected, output in play(text, folder, env):
        assert_alike(expected, output, f"$ {command}")


def play(text: str, folder: Path, env: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield each command of a session, its expected and its actual output.

    A command that fails must be followed by `echo $?`, which shows its exit code.
    """
    code = 0
    for command, expected in commands(text):
        is_question = command == "echo $?"
        assert code == 0 or is_question, f"exit code {code} before, untold: $ {command}"
        code, output = _bash(f"(exit {code})\n{command}", folder, env, flags="-uo")
        code = 0 if is_question else code
        yield command, expected, without_logs(output)
    assert code == 0, f"the last command ends with {code}: show it with `$ echo $?`"


def without_logs(output: str) -> str:
    """The output of a program without the log lines of frameworks."""
    return "".join(line for line in output.splitlines(keepends=True) if not LOGGED.match(line))


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a session and its expected output."""
    assert text.startswith("$ "), "a session starts with a command"
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command = re.match(r"(?:.*\\\n)*.*\n", part)
        assert command is not None
        yield command[0].strip(), part[command.end() :]


def is_alike(expected: str, got: str) -> bool:
    """Whether two outputs are equal except for times and rates; `...` matches anything."""
    checker = doctest.OutputChecker()
    return checker.check_output(_steady(expected), _steady(got), doctest.ELLIPSIS)


def assert_alike(expected: str, got: str, what: str) -> None:
    """Raise an AssertionError that shows both outputs, unless they are alike."""
    if not is_alike(expected, got):
        example = doctest.Example(what, _steady(expected))
        checker = doctest.OutputChecker()
        difference = checker.output_difference(example, _steady(got), doctest.ELLIPSIS)
        raise AssertionError(f"{what}\n{difference}")


def check_untried(line: str) -> None:
    """Check the names in a command that is not run: a make target, an extra of the package."""
    words = line.partition("#")[0].split()
    if words[:1] == ["make"]:
        makefile = (ROOT / "Makefile").read_text()
        for target in (word for word in words[1:] if "=" not in word):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"no such target: {line}"
    if words[:2] == ["pip", "install"]:
        project = (ROOT / "pyproject.toml").read_text()
        for extras in re.findall(r"\[([\w,]+)\]", line):
            for extra in extras.split(","):
                assert re.search(rf"^{extra} = \[", project, re.MULTILINE), f"no such extra: {line}"


def _bash(
    script: str, folder: Path, env: dict[str, str], *, flags: str = "-euo"
) -> tuple[int, str]:
    ran = subprocess.run(
        ["bash", flags, "pipefail", "-c", script],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=TIMEOUT_S,
    )
    return ran.returncode, ran.stdout


def _steady(text: str) -> str:
    lines = []
    for line in text.splitlines():
        steady = RATES.sub(r"N\2", TIMES.sub(r"N \2", line))
        lines.append(" ".join(steady.split()) if steady != line else line.rstrip())
    return "\n".join(lines).strip("\n") + "\n"
