"""What every command keeps to: help, exit codes, stdout for data and stderr for talk."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import datum
from datum.cli.app import PANELS, app

COMMANDS = [name for names in PANELS.values() for name in names]
READING = [name for name in COMMANDS if name not in ("write", "demo", "cache")]
NEEDS_OUT = ("repair", "reshard", "export-to")
HEAVY = [
    "_frameworks",
    "_inspect",
    "_load",
    "_rewrite",
    "_write",
    "dataset",
]


def run(*words: str, **environment: str):
    return CliRunner().invoke(app, list(words), env=environment)


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"x": i, "name": f"row {i} [bold]"} for i in range(20)]
    datum.write(rows, "numbers", splits={"train": 0.5, "val": 0.5}, progress=False)
    return "numbers"


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_and_has_an_example(command, width):
    result = run(command, "--help", COLUMNS=str(width))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"Usage: datum {command} ")
    assert any(f"datum {command}" in line for line in lines[1:]), "an example"
    wrapped = [line for line in lines if "datum " not in line and "|" not in line]
    assert max(map(len, wrapped)) <= width
    assert "<" not in lines[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_misspelt_option_names_the_nearest(command):
    result = run(command, "x", "--hlep")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: no such option: --hlep\nhint: did you mean --help")


@pytest.mark.parametrize("command", READING)
def test_a_missing_argument_is_a_mistake_in_the_call(command):
    result = run(command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: missing argument PATH\nhint: usage: datum ")


@pytest.mark.parametrize("command", READING)
def test_a_path_that_is_not_there_ends_with_1_and_a_hint(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(command, "nowhere", *(["out"] if command in NEEDS_OUT else []))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: nowhere: ")
    assert "\nhint: " in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [name for name in READING if name not in (*NEEDS_OUT, "bench")])
def test_json_is_all_there_is_on_stdout(command, numbers):
    result = run(command, numbers, "--json")
    assert result.exit_code == 0, result.output
    assert [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("command", ["info", "head"])
def test_texts_of_records_are_no_markup(command, numbers):
    result = run(command, numbers)
    assert result.exit_code == 0, result.output
    assert "[bold]" in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_of_commands_has_the_summary_of_each(command):
    (summary,) = (names[command] for names in PANELS.values() if command in names)
    shown = " ".join(run(command, "--help").stdout.split())
    assert summary in shown


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom datum.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted(m for m in sys.modules), file=sys.stderr)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = finished.stderr
    found = [name for name in HEAVY if f"'datum.{name}'" in loaded]
    assert found == []
    assert [
        name for name in ("PIL", "pyarrow", "sklearn", "tensorflow") if f"'{name}'" in loaded
    ] == []
