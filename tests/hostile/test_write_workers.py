"""Worker processes that die, block or are stopped: a clear end, and nobody left behind."""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import datum
from datum import Feature, Schema
from datum.sources import Block
from tests.signals import usual_signals
from tests.unit.write.datasets import digests, read, write

COUNT = 9000  # three blocks, so that there is work for several processes
ROOT = Path(__file__).parents[2]
HANG_S = 60  # far more than any of these takes; a test that waits so long has failed


@dataclass
class Rows:
    """A map-style dataset: its schema is not known, so its records go by way of the disk."""

    folder: Path
    count: int = COUNT

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        self.before(number)
        return {"x": number}

    def before(self, number):
        pass


@dataclass
class Part:
    """The same with a schema and in any order: shards are made straight from it."""

    rows: Rows
    schema: Any = Schema({"x": Feature("int64")})  # noqa: RUF009 - it cannot be changed
    metadata: Any = field(default_factory=dict)
    fingerprint: Any = None
    keys: Any = None
    stored_bytes: Any = 100 * COUNT
    is_slow_python: bool = True

    def parts(self):
        return {"train": self}

    def __len__(self):
        return len(self.rows)

    def read(self, numbers):
        return Block([self.rows[number] for number in numbers.tolist()], np.asarray(numbers))


def workers_left() -> list[psutil.Process]:
    """Children of this process, but for those that Python starts when it first spawns any."""
    children = {child: " ".join(child.cmdline()) for child in psutil.Process().children()}
    own = ("resource_tracker", "forkserver")
    return [child for child, line in children.items() if not any(word in line for word in own)]


class DiesOnce(Rows):
    def before(self, number):
        mark = self.folder / "died"
        if number == 5000 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


class DiesAlways(Rows):
    def before(self, number):
        if number == 5000:
            os.kill(os.getpid(), signal.SIGKILL)


class Exits(Rows):
    def before(self, number):
        if number == 5000:
            raise SystemExit(3)


class Blocks(Rows):
    """Waits for ever at one record, and says so before."""

    def before(self, number):
        if number == 5000:
            print("blocked", file=sys.stderr, flush=True)
            (self.folder / "never").open().close()


class FailsWhileOtherBlocks(Rows):
    def before(self, number):
        if number == 100:
            with contextlib.suppress(FileNotFoundError):  # the second time it is asked for
                (self.folder / "met").open().close()  # until the other is there
                (self.folder / "met").unlink()
            raise ValueError("a bad record")
        if number == 300:
            (self.folder / "met").open("w").close()
            (self.folder / "never").open().close()


class ReadsInput(Rows):
    """Reads its standard input, as programs that it starts may do."""

    def before(self, number):
        if number % 1000 == 1:
            subprocess.run(["head", "-c", "9"], check=True, stdout=subprocess.DEVNULL)


class Prints(Rows):
    def before(self, number):
        if number % 1000 == 1:
            print("some", "words")
            os.write(1, b"more words\n")


class OddTypes(Rows):
    """Some records are of another type, among them the first of a block."""

    def __getitem__(self, number):
        is_odd = number % 1000 == 96 or number >= COUNT - 50
        return {"x": "text" if is_odd else number}


class OddNames(Rows):
    def __getitem__(self, number):
        return {"x": number, "y": number / 3} if number >= 4096 else {"x": number}


class HoldsFile(Rows):
    """Reads from a file that it has open: copies of it would share the position."""

    def __init__(self, folder, count=COUNT):
        super().__init__(folder, count)
        path = folder / "numbers"
        np.arange(64 * count).tofile(path)
        self.file = path.open("rb")

    def __getitem__(self, number):
        self.file.seek(number * 512)
        return {"id": number, "x": int.from_bytes(self.file.read(512)[:8], "little")}


SHAPES = {"direct": Part, "spilled": lambda rows: rows}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_worker_that_is_killed_is_replaced(tmp_path, shape):
    write(SHAPES[shape](Rows(tmp_path)), tmp_path / "calm", workers=1, shards=2)
    write(SHAPES[shape](DiesOnce(tmp_path)), tmp_path / "killed", workers=2, shards=2)
    assert (tmp_path / "died").exists()
    assert digests(tmp_path / "killed") == digests(tmp_path / "calm")
    assert not workers_left()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kind", "code"), [(DiesAlways, "-9"), (Exits, "3")])
def test_a_worker_that_ends_each_time_is_told_with_its_code(tmp_path, shape, kind, code):
    with pytest.raises(
        datum.WriteError,
        match=rf"died twice on \d+ records? of the source, numbers \d+ to \d+: .*exit {code}",
    ):
        write(SHAPES[shape](kind(tmp_path)), tmp_path / "out", workers=2)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.iterdir())
    assert not workers_left()


@pytest.mark.parametrize("kind", [ReadsInput, Prints])
def test_what_the_records_read_and_print_does_not_disturb_workers(tmp_path, kind):
    write(Rows(tmp_path), tmp_path / "calm", workers=1)
    with program(kind(tmp_path), tmp_path / "out") as process:
        finish(process, 0)
    assert digests(tmp_path / "out") == digests(tmp_path / "calm")


@pytest.mark.parametrize("kind", [OddTypes, OddNames])
def test_workers_agree_on_which_records_are_odd(tmp_path, kind):
    for workers in (1, 2, 4):
        report = write(
            kind(tmp_path), tmp_path / f"{workers}", workers=workers, on_error="quarantine"
        )
        assert report.records + sum(report.quarantined.values()) == COUNT
    assert digests(tmp_path / "1") == digests(tmp_path / "2") == digests(tmp_path / "4")


def test_a_dataset_that_holds_an_open_file_is_read_right(tmp_path):
    source = HoldsFile(tmp_path, 20_000)
    with source.file:
        write(source, tmp_path / "out", workers=4)
    for row in read(tmp_path / "out"):
        assert row["x"] == 64 * row["id"]


def test_a_dataset_of_the_main_script_that_holds_an_open_file_is_read_right(tmp_path):
    code = (
        "import datum, tests.hostile.test_write_workers as tests\n"
        "from pathlib import Path\n"
        "class Mine(tests.HoldsFile): pass\n"
        f"place = Path({str(tmp_path)!r})\n"
        "source = Mine(place, 20_000)\n"
        "datum.write(source, place / 'out', workers=4, progress=False)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    for row in read(tmp_path / "out"):
        assert row["x"] == 64 * row["id"]


def test_a_dataset_of_the_main_script_is_read_by_processes_too(tmp_path):
    code = (
        "import datum, tests.hostile.test_write_workers as tests\n"
        "from pathlib import Path\n"
        "class Mine(tests.DiesOnce): pass\n"
        f"place = Path({str(tmp_path)!r})\n"
        "print('once', end='')\n"
        "datum.write(Mine(place), place / 'out', workers=2, progress=False)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, timeout=HANG_S
    )
    write(Rows(tmp_path), tmp_path / "calm", workers=1)
    assert digests(tmp_path / "out") == digests(tmp_path / "calm")
    assert (done.stdout, done.stderr) == (b"once", b"")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_program_that_ignores_the_end_of_its_children_can_write(tmp_path, shape):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        write(SHAPES[shape](DiesOnce(tmp_path)), tmp_path / "out", workers=2)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert len(read(tmp_path / "out")) == COUNT


@contextlib.contextmanager
def program(source, out):
    """A process that writes; whatever it leaves behind is let go at the end."""
    never = source.folder / "never"
    with contextlib.suppress(FileExistsError):
        os.mkfifo(never)
        os.mkfifo(source.folder / "met")
    code = (
        f"import datum; from pathlib import {type(out).__name__};"
        f" from tests.hostile.test_write_workers import *;"
        f" source = {type(source).__name__}({source.folder!r});"
        f" datum.write(source, {out!r}, workers=2, progress=False)"
    )
    with usual_signals():
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
        with contextlib.suppress(OSError):  # nobody waits
            os.close(os.open(never, os.O_WRONLY | os.O_NONBLOCK))


def finish(process, *codes):
    """What it said, once it has ended, and everyone else who could still say something."""
    try:
        _, said = process.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        pytest.fail("it hangs, or has left processes behind")
    assert process.returncode in codes, said
    return said


def await_word(process, word):
    for line in process.stderr:
        if word in line:
            return
    pytest.fail("it ended before")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_write_that_is_stopped_takes_its_workers_along(tmp_path, number):
    with program(Blocks(tmp_path), tmp_path / "out") as process:
        await_word(process, "blocked")
        process.send_signal(number)
        said = finish(process, -number)
    if number == signal.SIGINT:
        assert "stopped, nothing was published" in said
        assert "hint: the same call starts anew" in said
    assert not (tmp_path / "out").exists()


def test_an_error_does_not_wait_for_other_workers(tmp_path):
    with program(FailsWhileOtherBlocks(tmp_path), tmp_path / "out") as process:
        said = finish(process, 1)
    assert "a bad record" in said


def test_a_generator_that_is_stopped_leaves_nothing_behind(tmp_path):
    code = (
        "import datum, sys\n"
        "def rows():\n"
        "    for number in range(9000):\n"
        "        if number == 8500:\n"
        "            print('blocked', file=sys.stderr, flush=True)\n"
        "            input()\n"
        "        yield {'x': number}\n"
        f"datum.write(rows(), {str(tmp_path / 'out')!r}, progress=False)"
    )
    with usual_signals():
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
    try:
        await_word(process, "blocked")
        process.send_signal(signal.SIGINT)
        said = finish(process, -signal.SIGINT)
    finally:
        process.kill()
    assert "stopped, nothing was published" in said
    assert not list(tmp_path.iterdir())
