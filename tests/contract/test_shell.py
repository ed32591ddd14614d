"""How the program behaves in a shell: pipes, signals, colours, encodings, completion."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import datum
from tests.signals import usual_signals

DATUM = [sys.executable, "-m", "datum"]
COLOUR = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "TTY_COMPATIBLE", "GITHUB_ACTIONS"}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    out = tmp_path_factory.mktemp("shell") / "numbers"
    datum.write([{"x": i, "y": "é" * 50} for i in range(3000)], out, progress=False)
    return str(out)


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in COLOUR}
    # Of a locale that is not installed, bash would warn.
    return {**kept, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **more}


def run(*words: str | bytes, **options):
    options = {"capture_output": True, "timeout": 120, "env": environment(), **options}
    return subprocess.run([*DATUM, *words], **options)


def in_shell(script: str, **more: str):
    script = f'datum() {{ "{sys.executable}" -m datum "$@"; }}\n{script}'
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, timeout=120, env=environment(**more)
    )


def on_terminal(*words: str, **more: str) -> str:
    """What a terminal of 70 columns gets to see."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*DATUM, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment(**more)
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            seen += os.read(ours, 65536)
        except OSError:  # how Linux tells that nobody writes any more
            break
    os.close(ours)
    assert process.wait(60) == 0
    return seen.decode()


def test_a_reader_that_stops_is_no_error(numbers):
    script = f'datum head {numbers} -n 3000 --json | head -n 1; echo "${{PIPESTATUS[0]}}"'
    finished = in_shell(script)
    first, code = finished.stdout.splitlines()
    assert json.loads(first)["number"] == 0
    assert code == b"141"
    assert finished.stderr == b""


def test_a_closed_stdout_is_no_error(numbers):
    finished = in_shell(f"datum info {numbers} >&-; echo $?")
    assert (finished.stdout, finished.stderr) == (b"0\n", b"")


def test_a_full_disk_is_told(numbers):
    finished = in_shell(f"datum head {numbers} >/dev/full; echo $?")
    assert finished.stdout == b"1\n"
    assert b"no space left on device" in finished.stderr
    assert b"Traceback" not in finished.stderr


def test_a_terminal_gets_colours_and_a_pipe_gets_none(numbers):
    assert "\x1b[" in on_terminal("info", numbers, COLUMNS="70")
    assert "\x1b[3" not in on_terminal("info", numbers, NO_COLOR="1")
    assert "\x1b[" not in on_terminal("info", numbers, TERM="dumb")
    assert b"\x1b" not in run("info", numbers).stdout
    assert b"\x1b[" in run("info", numbers, env=environment(FORCE_COLOR="1")).stdout


def test_ascii_is_enough(numbers):
    plain = environment(
        LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii", PYTHONCOERCECLOCALE="0"
    )
    for words in (["--help"], ["info", numbers], ["head", numbers]):
        finished = run(*words, env=plain)
        assert finished.returncode == 0, finished.stderr
        assert finished.stdout.isascii()


def test_a_file_name_may_be_any_bytes(numbers, tmp_path):
    (shard,) = (name for name in os.listdir(numbers) if name.endswith(".tfrecord"))  # noqa: PTH208
    odd = os.path.join(os.fsencode(tmp_path), b"[1] \xff.tfrecord")  # noqa: PTH118
    shutil.copyfile(os.path.join(numbers, shard), odd)  # noqa: PTH118
    finished = run("info", odd)
    assert finished.returncode == 0, finished.stderr
    assert b"3,000 records" in finished.stdout
    finished = run("head", odd, "--json", "-n", "1")
    assert json.loads(finished.stdout)["number"] == 0


def demonstration(folder: Path, *, ignored: frozenset[signal.Signals] = frozenset()):
    """A command that takes some seconds, in the midst of its work."""
    with usual_signals(ignored=ignored):
        process = subprocess.Popen(
            [*DATUM, "demo"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(TMPDIR=str(folder), PYTHONUNBUFFERED="1"),
        )
    while line := process.stdout.readline():
        if "1. Real data" in line:
            return process
    pytest.fail(process.communicate()[1])


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_cleanly(tmp_path, sent, code):
    process = demonstration(tmp_path)
    process.send_signal(sent)
    _, err = process.communicate(timeout=120)
    assert process.returncode in (code, -sent)  # CPython may end itself by the signal it got
    told = [line for line in err.splitlines() if line == "stopped" or "Traceback" in line]
    assert told == (["stopped"] if sent == signal.SIGINT else [])
    assert list(tmp_path.iterdir()) == []


def test_signals_that_were_ignored_at_its_start_do_not_end_it(tmp_path):
    ignored = frozenset({signal.SIGINT, signal.SIGHUP})  # by nohup, and in the background
    process = demonstration(tmp_path, ignored=ignored)
    for number in ignored:
        process.send_signal(number)
    while "2. " not in process.stdout.readline():  # it goes on
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


COMPLETE = """
eval "$(_DATUM_COMPLETE=source_bash datum)"
complete_words() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
    _datum_completion datum
    echo "${COMPREPLY[*]}" | tr '\\n' ' '; echo
}
"""


def test_bash_completes_commands_options_and_leaves_paths_to_itself(tmp_path):
    program = tmp_path / "datum"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m datum "$@"\n')
    program.chmod(0o755)
    script = COMPLETE + (
        "complete_words datum ver; complete_words datum info --js; complete_words datum info nu\n"
        "complete -p datum"
    )
    finished = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(PATH=f"{tmp_path}:{os.environ['PATH']}"),
    )
    assert finished.stderr == ""
    words = finished.stdout.splitlines()
    assert [line.strip() for line in words[:3]] == ["verify", "--json", ""]
    assert "-o default" in words[3]  # where nothing is told, files complete
