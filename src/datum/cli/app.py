"""The program `datum`: its commands, shared options, help and usage errors."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

import datum
from datum.cli.running import (
    COMMAND,
    DEBUG,
    end_well,
    errors_as_messages,
    print_message,
    print_warnings,
)
from datum.cli.terminal import data, prepare_streams
from datum.errors import Message, nearest

__all__ = [
    "HelpfulCommand",
    "HelpfulGroup",
    "app",
    "explain_misuse",
    "main",
]

MAX_WIDTH = 100  # of a readable line
PIPED_WIDTH = 80
_NAMES = {"int": "N", "integer": "N", "float": "X", "str": "TEXT", "bool": ""}
_SHORT = 70  # of a completion, which shells should not wrap
_HEADING = "bold"
_OPTION = "cyan"


class HelpfulCommand(TyperCommand):
    """A command with Datum's help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; errors refer to this command."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command; messages name options by its flags."""
        COMMAND.set(self)
        return super().invoke(ctx)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete options, with help in one short line, as some shells need it."""
        found = super().shell_complete(ctx, incomplete)
        for item in found:
            item.help = escape(textwrap.shorten(item.help or "", _SHORT, placeholder=" ..."))
        return found

    def format_help(self, ctx: Any, _formatter: Any) -> None:
        """Print the help; the formatter is not used."""
        _print_help(self, ctx)


class HelpfulGroup(TyperGroup):
    """A group of commands with Datum's help, which also accepts `datum help info`."""

    def format_help(self, ctx: Any, _formatter: Any) -> None:
        """Print the help; the formatter is not used."""
        _print_help(self, ctx)

    def summaries(self, ctx: Any) -> dict[str, tuple[str, str]]:
        """Return the panel and the summary of each command."""
        return {
            name: (
                getattr(one, "rich_help_panel", None) or "Commands",
                " ".join(inspect.cleandoc(one.help or "").partition("\n\n")[0].split()),
            )
            for name, one in _commands_of(self, ctx).items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the called command; `help NAME` means `NAME --help`."""
        if args[0] == "help":
            if len(args) == 1:
                _print_help(self, ctx)
                ctx.exit()
            args = [args[1], "--help"]
        return super().resolve_command(ctx, args)


# Help.


def _print_help(command: Any, ctx: Any) -> None:
    console = data()
    is_free = not console.is_terminal and "COLUMNS" not in os.environ
    width = PIPED_WIDTH if is_free else min(console.width, MAX_WIDTH)
    blocks = [_usage(command, ctx), *_prose(command.help or "", width)]
    least = max(map(len, _summaries_of(command, ctx)), default=0)  # aligns all tables
    for title, rows in _sections(command, ctx).items():
        lines = _table(rows, width, least)
        blocks.append(Text("\n").join([Text(title, _HEADING), *lines]))
    blocks += _prose(command.epilog or "", width)
    for at, block in enumerate(blocks):
        _print(console, Text("\n") + block if at else block)


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True, highlight=False)


def _usage(command: Any, ctx: Any) -> Text:
    words = [_argument_name(param) for param in command.params if _is_argument(param)]
    words = ["COMMAND", "..."] if isinstance(command, TyperGroup) else [*words, "[OPTIONS]"]
    return Text.assemble(("Usage: ", _HEADING), (ctx.command_path, _OPTION), " ", " ".join(words))


def _prose(text: str, width: int) -> list[Text]:
    """Wrap the paragraphs of a text; keep indented lines and commands."""
    text = inspect.cleandoc(text).partition("\f")[0]
    blocks = []
    for block in text.split("\n\n"):
        lines = block.strip("\n").splitlines()
        if not lines:
            continue
        if lines[0].strip() == "\b":
            lines = lines[1:]
        elif not any(line.startswith((" ", "$ ", ">>> ", "- ")) for line in lines):
            lines = textwrap.wrap(" ".join(lines), width, break_on_hyphens=False)
        blocks.append(Text("\n").join(map(_line, lines)))
    return blocks


def _line(line: str) -> Text:
    is_command = line.lstrip().startswith(("$ ", "datum "))
    return Text(line, _OPTION if is_command else "")


def _sections(command: Any, ctx: Any) -> dict[str, list[tuple[Text, str]]]:
    """Rows of help by panel: commands, then arguments and options."""
    found: dict[str, list[tuple[Text, str]]] = {}
    for name, (title, summary) in _summaries_of(command, ctx).items():
        found.setdefault(title, []).append((Text(name, _OPTION), summary))
    params = [param for param in command.get_params(ctx) if not getattr(param, "hidden", False)]
    for param in sorted(params, key=lambda param: not _is_argument(param)):
        usual = "Arguments" if _is_argument(param) else "Options"
        title = getattr(param, "rich_help_panel", None) or usual
        names = _argument_name(param) if _is_argument(param) else _option_names(param, ctx)
        found.setdefault(title, []).append((_as_text(names), _about(param, ctx)))
    return found


def _summaries_of(command: Any, ctx: Any) -> dict[str, tuple[str, str]]:
    return command.summaries(ctx) if isinstance(command, HelpfulGroup) else {}


def _commands_of(command: Any, ctx: Any) -> dict[str, Any]:
    if not isinstance(command, TyperGroup):
        return {}
    return {name: command.get_command(ctx, name) for name in command.list_commands(ctx)}


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def _as_text(names: str | Text) -> Text:
    return Text(names, _OPTION) if isinstance(names, str) else names


def _argument_name(param: Any) -> str:
    name = param.metavar or param.name.upper()
    name += "..." if param.nargs != 1 and not name.endswith("...") else ""
    return name if param.required else f"[{name.strip('[]')}]"


def _option_names(param: Any, ctx: Any) -> Text:
    """`-n, --count N`; `--[no-]shuffle` for a pair."""
    short = [name for name in param.opts if not name.startswith("--")]
    long = [name for name in param.opts if name.startswith("--")]
    negative = list(param.secondary_opts)
    if long and negative == [f"--no-{long[0][2:]}"]:
        long, negative = [f"--[no-]{long[0][2:]}"], []
    indent = "" if short else "    "
    names = Text(indent + ", ".join([*short, *long, *negative]), _OPTION)
    metavar = _metavar(param, ctx)
    return Text.assemble(names, f" {metavar}") if metavar else names


def _metavar(param: Any, ctx: Any) -> str:
    """Placeholder of an option: its own, its choices, or a word for its type."""
    if getattr(param, "is_flag", False) or getattr(param, "count", False):
        return ""
    if param.metavar:
        return str(param.metavar)
    describe = getattr(param, "display_type", None) or param.make_metavar
    name = str(describe(ctx)).strip("<>[]").removesuffix(" range").removeprefix("list[")
    return _NAMES.get(name.lower(), name if "|" in name else name.upper())


def _about(param: Any, ctx: Any) -> str:
    text = " ".join((getattr(param, "help", None) or "").split())
    default = _default(param, ctx)
    return f"{text} [default: {default}]".strip() if default else text


def _default(param: Any, ctx: Any) -> str:
    """Default of an option with a value, or of a flag that is on."""
    if isinstance(param.show_default, str):
        return str(param.show_default)
    value = param.get_default(ctx, call=False)
    if not param.show_default or value in (None, (), [], "") or callable(value):
        return ""
    if isinstance(value, bool):
        return "on" if value and param.secondary_opts else ""
    values = value if isinstance(value, (list, tuple)) else [value]
    return ", ".join(str(getattr(one, "value", one)) for one in values)


def _table(rows: list[tuple[Text, str]], width: int, least: int) -> Iterator[Text]:
    """Format two columns; a long first cell gets a line of its own."""
    limit = 30 if width >= PIPED_WIDTH else max(width // 3, 12)
    short = [name.cell_len for name, _ in rows if name.cell_len <= limit]
    start = max([*short, least]) + 4
    for name, about in rows:
        lines = textwrap.wrap(about, max(width - start, 20), break_on_hyphens=False) or [""]
        head = Text("  ") + name
        if name.cell_len <= start - 4:
            head.append(" " * (start - head.cell_len) + lines[0])
            lines = lines[1:]
        yield head
        for line in lines:
            yield Text(" " * start + line)


# Misuse.


def explain_misuse(error: Any) -> Message:
    """Turn a usage error of Typer into a message with a hint."""
    ctx = getattr(error, "ctx", None)
    message = str(error.format_message())
    option = getattr(error, "option_name", None)
    if option is not None and message.startswith("No such option"):
        message = f"no such option: {option}"
    if message.startswith("No such command"):
        message = message.partition(". ")[0]
    message = message.replace(": Value error, ", ": ").replace(": Input should", ": it should")
    param = getattr(error, "param", None)
    if param is not None and _is_argument(param):
        name = param.metavar or param.name.upper()
        message = message.replace(f"'{param.name}'", name).replace(f"'{param.metavar}'", name)
    hint = _hint(ctx, message, option) if ctx is not None else ()
    return Message(message[:1].lower() + message[1:].rstrip("."), hint=hint)


def _hint(ctx: Any, message: str, option: str | None) -> Sequence[str]:
    command, path = ctx.command, ctx.command_path
    if message.startswith("no such option") and option is not None:
        near = _nearest_option(option, command, ctx)
    elif message.startswith("No such command"):
        near = _nearest(message.partition(" '")[2].rstrip("'"), command.list_commands(ctx))
        near = near or f"`{path} --help` lists the commands"
    else:
        near = ""
    if near:
        return [near]
    usage = _usage(command, ctx).plain
    return [f"{usage[:1].lower()}{usage[1:]}", f"`{path} --help` shows all options"]


def _nearest_option(option: str, command: Any, ctx: Any) -> str:
    commands = _commands_of(command, ctx).items()
    having = [name for name, one in commands if option in _options_of(one, ctx)]
    if having:
        return f"put it after the command: {ctx.command_path} {having[0]} {option}"
    return _nearest(option, _options_of(command, ctx))


def _options_of(command: Any, ctx: Any) -> list[str]:
    params = [*command.params, command.get_help_option(ctx)]
    options = [param for param in params if param is not None and not _is_argument(param)]
    return [name for param in options for name in [*param.opts, *param.secondary_opts]]


def _nearest(word: str, known: Iterable[str]) -> str:
    found = nearest(word, known, count=2, cutoff=0.65)
    return f"did you mean {' or '.join(found)}?" if found else ""


# Commands in the order of `datum --help`, with the first sentences of their help. Each is the
# function `command` of its module, which is imported when it is called.
PANELS = {
    "Make a dataset": {
        "write": "Write any dataset as TFRecord shards: folders, tables, JSON lines.",
        "reshard": "Rewrite a dataset, or a part of it, with other shards, splits or compression.",
        "export-to": "Turn a dataset back into files: tables, class folders, or images with boxes.",
    },
    "Look into it": {
        "info": "Show what a dataset holds: splits, features, distributions, classes, warnings.",
        "head": "Show some records: numbers, texts, labels, and images as little pictures.",
        "stats": "Count all records: distributions, quantiles, classes, duplicates, warnings.",
    },
    "Keep it sound": {
        "verify": "Check every record, and name what is damaged by file, record and byte.",
        "repair": "Save what is whole of a damaged dataset, folder or file to a new dataset.",
        "index": "Write down where each record starts, or check the indexes that are there.",
        "cache": "List or remove local copies of datasets in object stores.",
    },
    "Try and measure": {
        "demo": "Take real handwritten digits from image files into training, and show every call.",
        "bench": "Measure how fast this dataset loads here, and name the bottleneck.",
    },
}
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}


class _Commands(HelpfulGroup):
    """Commands whose errors become messages and exit codes."""

    def list_commands(self, _ctx: Any) -> list[str]:
        return list(_PANEL_OF)

    def summaries(self, _ctx: Any) -> dict[str, tuple[str, str]]:
        return {name: (panel, PANELS[panel][name]) for name, panel in _PANEL_OF.items()}

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
            if str(error.format_message()):  # empty if help was printed instead
                print_message("error", explain_misuse(error))
            code = getattr(error, "exit_code", 1)
        return sys.exit(code if isinstance(code, int) else 0) if standalone_mode else code

    def make_context(self, *args: Any, **extra: Any) -> Any:
        with errors_as_messages():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        before = COMMAND.set(None)
        try:
            with errors_as_messages():
                return super().invoke(ctx)
        finally:
            COMMAND.reset(before)


app = typer.Typer(
    name="datum",
    cls=_Commands,
    help="Write any dataset as sharded TFRecord files, and feed it to training at full speed.",
    epilog="Start with: datum demo\n\n"
    "Data goes to stdout, messages to stderr. Exit codes: 0 success, 1 bad data, 2 bad usage.",
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
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Accept the options before a command."""
    del version, debug  # handled by the callback and by `main`


def _load(name: str) -> Any:
    module = importlib.import_module(f"datum.cli.commands.{name.replace('-', '_')}")
    alone = typer.Typer(add_completion=False)
    alone.command(name, cls=HelpfulCommand, rich_help_panel=_PANEL_OF[name])(module.command)
    return typer.main.get_command(alone)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program `datum`; it ends with SystemExit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    DEBUG.set("--debug" in given[:end])  # in any position
    prepare_streams()
    with end_well(is_process=arguments is None), print_warnings():
        app([word for at, word in enumerate(given) if word != "--debug" or at > end], "datum")
