"""How the story is told."""

import pytest
from rich.table import Table
from rich.text import Text

import datum
from datum.cli.demo_steps import Story


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")


@pytest.fixture
def terminal(monkeypatch, narrow):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_steps_are_numbered(capsys):
    story = Story()
    story.step("First")
    story.step("Second")
    assert capsys.readouterr().out == "\n1. First\n\n2. Second\n"


@pytest.mark.usefixtures("terminal")
def test_a_heading_fills_the_line_of_a_terminal(capsys):
    Story().step("First")
    plain = Text.from_ansi(capsys.readouterr().out).plain
    assert plain.splitlines()[1] == "1. First " + "─" * 31


@pytest.mark.usefixtures("narrow")
def test_text_is_wrapped_and_indented(capsys):
    Story().say("one two three four five six seven eight nine ten")
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["   one two three four five six seven", "   eight nine ten"]


def test_text_is_no_markup(capsys):
    Story().say("[bold]x[/bold]")
    assert capsys.readouterr().out == "   [bold]x[/bold]\n"


def test_code_has_the_prompts_of_python(capsys):
    Story().python("x = [\n    1,\n]\n\ndef f():\n    pass\n\nf()")
    assert [line[3:] for line in capsys.readouterr().out.splitlines()] == [
        ">>> x = [",
        "...     1,",
        "... ]",
        "...",
        ">>> def f():",
        "...     pass",
        "...",
        ">>> f()",
    ]


def test_commands_have_the_prompt_of_a_shell(capsys):
    Story().shell("datum info digits")
    assert capsys.readouterr().out == "   $ datum info digits\n"


def test_what_is_missing_is_told_with_its_hint(capsys):
    Story().note_missing(datum.MissingDependencyError("training needs x", hint="pip install x"))
    assert capsys.readouterr().out == "   Passed over: training needs x.\n   hint: pip install x\n"


def test_tables_are_indented_and_no_line_ends_in_blanks(capsys):
    table = Table.grid(padding=(0, 2))
    table.add_row("a", "b")
    table.add_row("long", "")
    Story().show(table)
    assert capsys.readouterr().out == "   a     b\n   long\n"
