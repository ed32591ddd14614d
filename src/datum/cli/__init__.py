"""The command line: every call of Datum from the shell, by public names alone."""

import sys
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: "Sequence[str] | None" = None) -> None:
    """Run the program, as `datum` does in a shell; it ends with SystemExit."""
    try:
        from datum.cli import app
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)
    app.main(arguments)
