"""Commands are tested as if in no terminal, whatever the tests run in, and each as if the first."""

import pytest

from datum.cli.running import DEBUG


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "FORCE_COLOR",
        "TTY_COMPATIBLE",
        "TTY_INTERACTIVE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture(autouse=True)
def _no_debug() -> None:
    DEBUG.set(False)  # a command with --debug leaves it on, and then the program ends
