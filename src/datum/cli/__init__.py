"""The command line, built on public names only."""

import sys
import typing

if typing.TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: "Sequence[str] | None" = None) -> None:
    """Run the program `datum`; it ends with SystemExit."""
    try:
        from datum.cli import app
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(130)
    app.main(arguments)
