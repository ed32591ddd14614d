"""Help, and hints on calls that are wrong."""

from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from datum.cli.app import HelpfulCommand, HelpfulGroup, explain_misuse


def command(
    path: Annotated[str, typer.Argument(help="What to read [or not].")],
    more: Annotated[list[str] | None, typer.Argument(help="More of it.")] = None,
    count: Annotated[int, typer.Option("-n", "--count", help="How many.")] = 5,
    shuffle: Annotated[bool, typer.Option("--shuffle/--no-shuffle", help="Mix.")] = True,
    kind: Annotated[Literal["a", "b"], typer.Option("--kind", help="Which.")] = "a",
    name: Annotated[str | None, typer.Option(metavar="NAME", rich_help_panel="Names")] = None,
    a_rather_long_name_for_an_option: Annotated[str, typer.Option(help="Below.")] = "",
    secret: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Do something with records: first line.

    A paragraph that is wrapped
    where the terminal ends, not where the code does; it says [brackets] and {braces}.

        $ datum do x --count 3
    """


def other() -> None:
    """Do something else."""


def make_app() -> typer.Typer:
    settings = {"help_option_names": ["-h", "--help"]}
    made = typer.Typer(cls=HelpfulGroup, add_completion=False, context_settings=settings)
    made.command("do", cls=HelpfulCommand, rich_help_panel="First")(command)
    made.command("other-one", cls=HelpfulCommand, rich_help_panel="Second")(other)
    made.callback()(lambda: None)
    return made


def help_of(*words: str, width: int = 80) -> str:
    result = CliRunner().invoke(make_app(), list(words), env={"COLUMNS": str(width)})
    assert result.exit_code == 0
    return result.stdout


def misuse_of(*words: str) -> str:
    result = CliRunner().invoke(make_app(), list(words), standalone_mode=False)
    return explain_misuse(result.exception)


def test_help_tells_usage_text_arguments_and_options():
    assert help_of("do", "--help").rstrip().splitlines() == [
        "Usage: root do PATH [MORE...] [OPTIONS]",
        "",
        "Do something with records: first line.",
        "",
        "A paragraph that is wrapped where the terminal ends, not where the code does; it",
        "says [brackets] and {braces}.",
        "",
        "    $ datum do x --count 3",
        "",
        "Arguments",
        "  PATH       What to read [or not].",
        "  [MORE...]  More of it.",
        "",
        "Options",
        "  -n, --count N       How many. [default: 5]",
        "      --[no-]shuffle  Mix. [default: on]",
        "      --kind a|b      Which. [default: a]",
        "      --a-rather-long-name-for-an-option TEXT",
        "                      Below.",
        "  -h, --help          Show this message and exit.",
        "",
        "Names",
        "      --name NAME",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 300])
def test_help_fits_the_terminal(width):
    lines = help_of("do", "-h", width=width).splitlines()
    assert max(map(len, lines)) <= max(min(width, 100), 46)  # an option's name is never broken


def test_help_of_a_group_lists_commands_by_panel_in_one_column():
    assert help_of("--help").rstrip().splitlines() == [
        "Usage: root COMMAND ...",
        "",
        "First",
        "  do         Do something with records: first line.",
        "",
        "Second",
        "  other-one  Do something else.",
        "",
        "Options",
        "  -h, --help  Show this message and exit.",
    ]


def test_help_is_a_command_too():
    assert help_of("help", "do") == help_of("do", "--help")
    assert help_of("help").rstrip() == help_of("--help").rstrip()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["other"], "no such command 'other'\nhint: did you mean other-one?"),
        (["xyzzy"], "no such command 'xyzzy'\nhint: `root --help` lists the commands"),
        (["do", "x", "--cuont", "3"], "no such option: --cuont\nhint: did you mean --count?"),
        (["do", "x", "--no-shufle"], "hint: did you mean --no-shuffle or --shuffle?"),
        (["--count", "3", "do"], "no such option: --count\nhint: it follows a command: root do"),
        (["do"], "missing argument PATH\nhint: usage: root do PATH [MORE...] [OPTIONS]"),
        (["other-one", "x"], "got unexpected extra argument"),
        (["do", "x", "--kind", "c"], "invalid value for '--kind': 'c' is not one of 'a', 'b'"),
        (["do", "x", "--count"], "option '--count' requires an argument"),
        (["do", "x", "-y"], "no such option: -y"),
    ],
)
def test_a_wrong_call_is_explained_with_a_hint(words, told):
    explained = misuse_of(*words)
    assert told in explained
    assert "\nhint: " in explained


def test_options_complete_with_one_short_line():
    root = typer.main.get_command(make_app())
    ctx = typer.Context(root)
    (item,) = root.get_command(ctx, "do").shell_complete(typer.Context(root), "--count")
    assert (item.value, item.help) == ("--count", "How many.")
