"""The program `datum`: its commands, its errors and how it ends."""

import os
import runpy
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

import datum
from datum import CorruptRecordError, Feature, SourceError, WriteError
from datum.cli import main
from datum.cli.app import PANELS, HelpfulCommand, HelpfulGroup, app, explain_misuse
from datum.cli.arguments import complete_split, complete_words, open_any
from datum.cli.running import (
    COMMAND,
    DEBUG,
    end_well,
    errors_as_messages,
    print_message,
    print_warnings,
)
from datum.cli.shell import hinted, say, say_for_shell
from datum.errors import Call, Message, Option, Text

COMMANDS = [name for names in PANELS.values() for name in names]


def run(*words: str):
    return CliRunner().invoke(app, list(words))


def code_of(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_told(flag):
    result = run(flag)
    assert (result.exit_code, result.stdout) == (0, f"datum {datum.__version__}\n")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_command_with_what_it_does(flag):
    result = run(flag)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    for panel in PANELS:
        assert panel in lines
    for command in COMMANDS:
        (line,) = (line for line in lines if line.split()[:1] == [command])
        assert len(line.split()) > 3


def test_without_a_command_help_is_shown():
    result = run()
    assert result.exit_code == 2
    assert result.stdout.startswith("Usage: datum COMMAND ...")


def test_a_module_is_loaded_when_its_command_is_called_for(monkeypatch):
    for name in list(sys.modules):
        if name in ("datum.cli.commands.head", "datum.cli.commands.index"):
            monkeypatch.delitem(sys.modules, name)
    assert run("--version").exit_code == 0
    assert "datum.cli.commands.head" not in sys.modules
    assert run("index", "--help").exit_code == 0
    assert "datum.cli.commands.index" in sys.modules
    assert "datum.cli.commands.head" not in sys.modules


def test_a_misspelt_command_names_the_nearest():
    result = run("inf")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == "error: no such command 'inf'\nhint: did you mean info?\n"


def test_an_option_before_its_command_is_explained():
    result = run("--json", "info")
    assert result.exit_code == 2
    assert "hint: put it after the command: datum " in result.stderr


def test_what_is_not_there_ends_with_1_and_a_hint(capsys):
    assert code_of("info", "nowhere") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "error: nowhere: expected a dataset, got no such folder or file\nhint: check the path\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("--debug", "info", "nowhere"),
        ("info", "--debug", "nowhere"),
        ("info", "nowhere", "--debug"),
    ],
)
def test_debug_may_stand_anywhere(capsys, words):
    assert code_of(*words) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("hint: check the path\n")


def test_after_two_dashes_all_words_are_paths(capsys):
    assert code_of("info", "--", "--debug") == 1
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert "--debug: expected a dataset" in err


def test_the_exit_code_of_a_command_is_that_of_the_program(capsys):
    assert code_of("--version") == 0
    assert code_of("nonsense") == 2
    capsys.readouterr()


def test_an_interrupt_is_one_word(monkeypatch, capsys):
    def stop(path: str, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("datum.cli.arguments.datum.load", stop)
    assert code_of("info", "x") == 130
    assert capsys.readouterr() == ("", "stopped\n")


@pytest.fixture
def debugging():
    token = DEBUG.set(True)
    yield
    DEBUG.reset(token)


def exit_code_of(error: BaseException) -> int:
    with pytest.raises(typer.Exit) as ended, errors_as_messages():
        raise error
    return ended.value.exit_code


def test_what_goes_well_says_nothing(capsys):
    with errors_as_messages():
        pass
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (
            CorruptRecordError("damaged", where="x", hint="repair it"),
            1,
            "error: x: damaged\nhint: re",
        ),
        (WriteError("out: expected no dataset"), 1, "error: out: expected no dataset"),
        (FileNotFoundError(2, "No such file or directory", "x.csv"), 1, "error: x.csv: no such"),
        (OSError("short"), 1, "error: short"),
        (ValueError(Message("expected 1, got 2")), 2, "error: expected 1, got 2"),
        (KeyError(Message("expected a split, got 'x'")), 2, "error: expected a split, got 'x'"),
        (TypeError(Message("got an unknown option")), 2, "error: got an unknown option"),
        (ValueError("expected 1"), 1, "error: unexpected ValueError: expected 1\nhint: --debug"),
        (ValueError("boom"), 1, "error: unexpected ValueError: boom\nhint: --debug"),
        (ZeroDivisionError("boom"), 1, "error: unexpected ZeroDivisionError: boom\nhint: --debug"),
        (MemoryError(), 1, "error: out of memory"),
        (KeyboardInterrupt(), 130, "stopped\n"),
        (BrokenPipeError(32, "Broken pipe"), 1, "error: [Errno 32] Broken pipe"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_becomes_a_message_and_a_code(capsys, error, code, told):
    assert exit_code_of(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(told)
    assert "Traceback" not in err


def test_exits_and_usage_errors_are_left_to_typer():
    with pytest.raises(typer.Exit) as ended, errors_as_messages():
        raise typer.Exit(7)
    assert ended.value.exit_code == 7
    with pytest.raises(typer.BadParameter), errors_as_messages():
        raise typer.BadParameter("x")


@pytest.mark.usefixtures("debugging")
def test_debug_shows_where_an_error_came_from(capsys):
    exit_code_of(ValueError(Message("expected 1, got 2")))
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("error: expected 1, got 2\n")


@pytest.mark.parametrize("text", ["[bold]x[/bold] [/]", "100 % [link=x]"])
def test_messages_are_no_markup(capsys, text):
    print_message("error", text)
    assert capsys.readouterr().err == f"error: {text}\n"


def test_a_message_cannot_steer_the_terminal(capsys):
    print_message("error", "\x1b[2J")
    assert capsys.readouterr().err == "error: \\x1b[2J\n"


def test_warnings_are_told_without_lines_of_code(capsys):
    with print_warnings():
        warnings.simplefilter("always")
        warnings.warn(Message("3 records were left out", hint="datum repair"), stacklevel=1)
    assert capsys.readouterr().err == ("warning: 3 records were left out\nhint: datum repair\n")


def test_a_reader_that_has_gone_is_not_an_error(monkeypatch, capsys):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended, errors_as_messages():
            stream.write("x" * 100_000)
    assert ended.value.code == 141
    assert capsys.readouterr().err == ""


def test_what_cannot_be_kept_is_told(monkeypatch, capsys):
    with open("/dev/full", "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended, end_well(is_process=False):
            print("a record")
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: stdout: no space left on device\n"


@contextmanager
def handled(number: signal.Signals, action: Any) -> Iterator[None]:
    """A signal handled like this, whatever the tests inherited from who started them."""
    before = signal.signal(number, action)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_a_process_end_it_as_an_exit_does(number):
    with handled(number, signal.SIG_DFL):
        with pytest.raises(SystemExit) as ended, end_well():
            signal.raise_signal(number)
        assert ended.value.code == 128 + number
        assert signal.getsignal(number) == signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_was_ignored_before_stays_ignored(number):
    with handled(number, signal.SIG_IGN):
        with end_well():
            signal.raise_signal(number)
        with pytest.raises(SystemExit), end_well():
            sys.exit(130)
        assert signal.getsignal(number) == signal.SIG_IGN


def test_after_an_interrupt_another_one_ends_it_at_once():
    with handled(signal.SIGINT, signal.default_int_handler):
        with pytest.raises(SystemExit), end_well():
            sys.exit(130)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL


def test_signals_of_others_are_left_alone():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit), end_well(is_process=False):
        sys.exit(130)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.fixture
def numbers(tmp_path):
    out = tmp_path / "numbers"
    splits = {"train": 0.5, "val": 0.5}
    datum.write([{"x": i} for i in range(20)], out, splits=splits, progress=False)
    return out


def test_a_dataset_is_opened(numbers):
    opened = open_any(numbers)
    assert opened.unknown is None
    assert list(opened.dataset.schema) == ["x"]


def test_records_that_are_no_examples_are_opened_without_features(tmp_path):
    path = tmp_path / "notes.tfrecord"
    path.write_bytes(datum.format.frame([b"first", b"second"]).to_bytes())
    opened = open_any(path)
    assert isinstance(opened.unknown, datum.DatumError)
    assert list(opened.dataset.schema) == []
    assert len(opened.dataset["all"]) == 2


def test_what_is_no_dataset_says_what_load_says(tmp_path):
    with pytest.raises(datum.ManifestError, match="expected a dataset, got no such folder"):
        open_any(tmp_path / "none")


def test_of_a_damaged_description_it_is_told_how_to_save_the_records(numbers):
    (numbers / "datum.json").write_text("{")
    with pytest.raises(datum.ManifestError, match=f"hint: datum repair {numbers} OUT saves"):
        open_any(numbers)


def test_an_empty_path_is_a_mistake_in_the_call():
    with pytest.raises(ValueError, match="expected the path of a dataset"):
        open_any("")


def test_splits_complete_from_the_dataset_that_is_named(numbers):
    ctx = SimpleNamespace(params={"path": str(numbers)})
    assert complete_split(ctx, "") == ["train", "val"]
    assert complete_split(ctx, "v") == ["val"]


@pytest.mark.parametrize("path", [None, "", "nowhere"])
def test_nothing_completes_without_a_dataset(path):
    assert complete_split(SimpleNamespace(params={"path": path}), "") == []


def test_nothing_completes_from_a_broken_manifest(tmp_path):
    (tmp_path / "datum.json").write_text("{")
    assert complete_split(SimpleNamespace(params={"path": str(tmp_path)}), "") == []


def test_splits_complete_while_their_option_lacks_its_value(numbers):
    words = SimpleNamespace(params={"path": None}, args=["--json", str(numbers)])
    assert complete_split(words, "t") == ["train"]


def test_words_complete_where_a_value_is_one_of_some():
    assert complete_words("gzip|zlib|none")("") == ["gzip", "zlib", "none"]
    assert complete_words("gzip|zlib|none")("z") == ["zlib"]
    for other in (None, "N", "SPLIT=PATH", "FILE.toml"):
        assert complete_words(other) is None


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
        (
            ["--count", "3", "do"],
            "no such option: --count\nhint: put it after the command: root do",
        ),
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


@pytest.fixture
def running():
    """Makes a command the one that runs."""
    group = typer.main.get_command(app)
    tokens = []

    def run(name):
        tokens.append(COMMAND.set(group.get_command(None, name)))

    yield run
    for token in reversed(tokens):
        COMMAND.reset(token)


@pytest.mark.parametrize(
    ("command", "option", "shell"),
    [
        ("write", Option("append", True), "--append"),
        ("write", Option("on_error", "quarantine"), "--on-error quarantine"),
        ("write", Option("splits"), "--splits"),
        ("write", Option("shard_bytes"), "--shard-size"),
        ("write", Option("sidecars", ["tfds"]), "--sidecar tfds"),
        ("write", Option("shuffle", False), "--no-shuffle"),
        ("write", Option("header", False), "--no-header"),
        ("write", Option("compression", None), "--compression none"),
        ("write", Option("splits", {"train": 0.8, "val": 0.2}), "--splits train=0.8,val=0.2"),
        ("write", Option("schema", {"x": Feature("str", optional=True)}), "--schema 'x=str?'"),
        ("write", Option("out"), "OUT"),
        ("reshard", Option("drop"), "--drop"),
        ("export-to", Option("split", "val"), "--split val"),
        ("info", Option("follow_links", True), "--follow-links"),
        ("info", Option("on_error", "skip"), "on_error='skip'"),
    ],
)
def test_options_are_spelt_as_flags_of_the_command(running, command, option, shell):
    running(command)
    assert say(Text("give ", option)) == f"give {shell}"


def test_words_that_look_like_options_stay(running):
    running("write")
    text = "record 3: overwrite=True, `splits`"
    assert say_for_shell(Message(text, hint=text)) == f"{text}\nhint: {text}"


def test_hints_that_only_python_can_follow_are_left_out(running):
    running("info")
    message = Message(
        Text("expected ", Option("schema")),
        hint=[
            Text(Option("on_error", "skip"), " leaves them out"),
            "  and this line goes on with it",
            Text("or ", Call("datum.mix()")),
            Text("or ", Call("datum.repair('a', 'b')", shell="datum repair a b")),
            Text(Option("follow_links", True), " reads them"),
        ],
    )
    assert say_for_shell(message).hint_lines == (
        "or datum repair a b",
        "--follow-links reads them",
    )
    assert say_for_shell(message).problem == "expected `schema`"


PYTHON = Text("name the source: ", Call("datum.sources.CsvTable(path)"))


def lead(folder, problem="expected", *, hint=PYTHON):
    with pytest.raises(SourceError) as caught, hinted(str(folder), "my out"):
        raise SourceError(problem, hint=hint)
    return str(caught.value)


def test_a_folder_that_is_not_understood_leads_on(running, tmp_path):
    running("write")
    assert "your-program | datum write - OUT" in lead(tmp_path)
    (tmp_path / "b.json").write_text("{}")
    assert lead(tmp_path).endswith(f"datum write {tmp_path / 'b.json'} 'my out'")
    (tmp_path / "datum.json").write_text("{}")
    assert lead(tmp_path).endswith(f"datum reshard {tmp_path} 'my out'")
    assert lead(tmp_path).count("hint:") == 1
    assert "JSON lines" in lead(tmp_path / "no")


def test_a_hint_of_its_own_stays(running, tmp_path):
    running("write")
    hint = Text(Option("problem", "image_seg"))
    assert lead(tmp_path, "x", hint=hint) == "x\nhint: problem='image_seg'"


def test_what_is_wrong_with_an_option_leads_nowhere_else(running, tmp_path):
    running("write")
    (tmp_path / "b.json").write_text("{}")
    problem = Text("expected ", Option("quality"), " of 1, got 0")
    assert lead(tmp_path, problem, hint="") == "expected `quality` of 1, got 0"


def test_the_package_runs_as_a_program(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["datum", "--version"])
    monkeypatch.delitem(sys.modules, "datum.__main__", raising=False)  # of other tests
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("datum", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"datum {datum.__version__}\n"
