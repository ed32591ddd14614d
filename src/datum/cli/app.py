"""The program `datum`: its commands, and the options that all of them share."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import datum
from datum.cli.running import DEBUG, end_well, tell, tell_warnings, told_as_messages
from datum.cli.terminal import prepare_streams
from datum.cli.usage import HelpfulCommand, HelpfulGroup, explain_misuse

__all__ = ["app", "main"]

# What `datum --help` shows, in this order. A command is the function `command` of its module,
# which is loaded when it is called for.
PANELS = {
    "Make a dataset": ("write", "reshard", "export-to"),
    "Look into it": ("info", "head", "stats"),
    "Keep it sound": ("verify", "repair", "index"),
    "Try and measure": ("demo", "bench"),
}
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}


class _Commands(HelpfulGroup):
    """Commands whose errors become messages and exit codes."""

    def list_commands(self, _ctx: Any) -> list[str]:
        return list(_PANEL_OF)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _PANEL_OF:
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = _load(cmd_name)
        return self.commands[cmd_name]

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except Exception as error:
            if not standalone_mode or not hasattr(error, "format_message"):
                raise
            if str(error.format_message()):  # it is empty where help was shown instead
                tell("error", explain_misuse(error))
            code = getattr(error, "exit_code", 1)
        return sys.exit(code if isinstance(code, int) else 0) if standalone_mode else code

    def make_context(self, *args: Any, **extra: Any) -> Any:
        with told_as_messages():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        with told_as_messages():
            return super().invoke(ctx)


app = typer.Typer(
    name="datum",
    cls=_Commands,
    help="Any dataset as sharded TFRecord files, and into training at the speed of the hardware.",
    epilog="Start with: datum demo\n\n"
    "Data goes to stdout, talk to stderr. Exit codes: 0, 1 (the data), 2 (the call).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"datum {datum.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error came from.")
    ] = False,
) -> None:
    """Read the options that stand before any command."""
    del version, debug  # told by the callback, and by `main`


def _load(name: str) -> Any:
    module = importlib.import_module(f"datum.cli.commands.{name.replace('-', '_')}")
    alone = typer.Typer(add_completion=False)
    alone.command(name, cls=HelpfulCommand, rich_help_panel=_PANEL_OF[name])(module.command)
    return typer.main.get_command(alone)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program, as `datum` does in a shell; it ends with SystemExit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    DEBUG.set("--debug" in given[:end])  # wherever it stands
    prepare_streams()
    with end_well(is_process=arguments is None), tell_warnings():
        app([word for at, word in enumerate(given) if word != "--debug" or at > end], "datum")
