"""Rounds of attacks, and the processes that they strike.

A round is one attack with one seed: it works in a folder of its own, starts processes that may be
killed, hang or crash, and ends with what happened, or with a Violation.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import faulthandler
import hashlib
import os
import pickle
import random
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import datum

HANG_S = 120.0  # many times what any process of a round takes
STRUCK = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link")
REFUSALS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE, errno.EROFS)


class Violation(Exception):  # noqa: N818
    """Something happened that Datum promises never happens."""


@dataclass(frozen=True)
class Attack:
    """What is done to Datum, and what must hold.

    Attributes:
        name: the attack, as `ONLY` of `make torture` takes it.
        holds: what must hold, in one line.
        run: plays one round; returns the kind of its outcome, or raises Violation.
        needs: modules to import before the first process is started. TensorFlow is none of them:
            it starts threads, which a fork does not copy.
    """

    name: str
    holds: str
    run: Callable[[Round], str]
    needs: tuple[str, ...] = ()


@dataclass
class Round:
    """One attack with one seed.

    Attributes:
        folder: where the round works; kept if it fails.
        cache: a folder of this run for what rounds share, such as undisturbed results.
        random: the only source of chance.
        tally: counts of what was done, for the figures of the run.
        notes: what was chosen, for the report of a failure.
    """

    folder: Path
    cache: Path
    random: random.Random
    tally: collections.Counter[str]
    notes: list[str] = field(default_factory=list)
    _children: list[Child] = field(default_factory=list)

    def start(self, work: Callable[..., Any], *args: Any) -> Child:
        """Start a process that does some work."""
        log = self.folder / f"process-{len(self._children)}.log"
        child = Child(work, args, log)
        self._children.append(child)
        return child

    def finish(self, work: Callable[..., Any], *args: Any) -> Any:
        """What some work returns that nothing disturbs."""
        end = self.start(work, *args).wait()
        if not end.is_done:
            raise Violation(f"{work.__name__} failed though nothing disturbed it: {end}")
        return end.value

    def choose(self, **choices: Any) -> Any:
        """One of several, noted for the report of a failure."""
        ((name, among),) = choices.items()
        found = self.random.choice(list(among))
        self.note(**{name: found})
        return found

    def note(self, **chosen: Any) -> None:
        """Keep for the report of a failure what was chosen."""
        self.notes += [f"{name}: {value}" for name, value in chosen.items()]

    def end_processes(self) -> None:
        """Kill what is still running."""
        for child in self._children:
            child.end()


@dataclass(frozen=True)
class End:
    """How a process ended.

    Attributes:
        value: what its work returned.
        error: the class of what it raised; empty if it raised nothing.
        text: the message of that.
        is_typed: whether that is an error of Datum.
        signal: the name of the signal that ended it; empty if it ended by itself.
    """

    value: Any = None
    error: str = ""
    text: str = ""
    is_typed: bool = False
    signal: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the work was finished."""
        return not self.error and not self.signal

    def check(self, *allowed: str) -> None:
        """Violation if it neither finished nor raised an error of Datum, or one that is allowed."""
        if self.signal:
            raise Violation(f"a process was ended by {self.signal}")
        if self.error and not self.is_typed and self.error not in allowed:
            raise Violation(f"an error that is none of Datum's: {self.error}: {self.text}")

    def __str__(self) -> str:
        return self.signal or (f"{self.error}: {self.text}" if self.error else "done")


class Child:
    """A process that does one piece of work, and may die of it.

    It is forked, so that it starts in milliseconds with all modules there, and leads a group of
    its own, so that its workers are found. This process must not do the work of Datum itself, for
    a fork copies no threads.
    """

    def __init__(self, work: Callable[..., Any], args: tuple[Any, ...], log: Path) -> None:
        self._end: End | None = None
        self._result = tempfile.TemporaryFile()  # noqa: SIM115
        self._log = log
        here, there = os.pipe(), os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            self._told, self._answers = here[1], there[0]
            os.close(here[0]), os.close(there[1])
            self._work(work, args)
        os.close(here[1]), os.close(there[0])
        self._told, self._answers = here[0], there[1]

    def _work(self, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
        code = 1
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1), os.dup2(log, 2)
            faulthandler.enable(2)
            global _this
            _this = self
            try:
                end = End(work(*args))
            except BaseException as error:
                traceback.print_exc()
                is_typed = isinstance(error, datum.DatumError)
                end = End(error=type(error).__name__, text=str(error), is_typed=is_typed)
            pickle.dump(end, self._result)
            self._result.flush()
            code = 0
        finally:
            os._exit(code)

    def wait_for_word(self, timeout_s: float = HANG_S) -> bool:
        """Whether the process says that it is at the place; False if it ends before."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            is_over = not self.is_running()
            ready, _, _ = select.select([self._told], [], [], 0 if is_over else 0.01)
            if ready or is_over:
                return bool(ready and os.read(self._told, 1))
        return False  # whoever waits for its end will see that it hangs

    def answer(self) -> None:
        """Let a process go on that waits at the place."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._answers, b"!")

    def wait(self, timeout_s: float = HANG_S) -> End:
        """How it ends; Violation if it hangs, with the places of its threads in the log."""
        if self._end is None and not self._ended_within(timeout_s):
            os.kill(self.pid, signal.SIGABRT)  # which has it print where it is
            self._ended_within(5)
            self.end()
            raise Violation(
                f"a process was still running after {timeout_s:.0f} s: {self._log.name}"
            )
        assert self._end is not None
        return self._end

    def is_running(self) -> bool:
        return not self._ended_within(0)

    def kill(self) -> None:
        """End it, and nobody else, as `kill -9` does; its workers must see that by themselves."""
        if not self.is_running():
            return
        os.kill(self.pid, signal.SIGSTOP)  # so that it starts no more of them
        workers = self.workers()
        os.kill(self.pid, signal.SIGKILL)
        self.wait()
        _, left = psutil.wait_procs(workers, timeout=HANG_S)
        if left:
            raise Violation(f"workers outlive their writer: {left}")

    def workers(self) -> list[psutil.Process]:
        """The processes that it has started."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def end(self) -> None:
        """Kill it and its workers, if they are still there."""
        if self.is_running():
            for process in self.workers():
                with contextlib.suppress(psutil.Error):
                    process.kill()
            os.kill(self.pid, signal.SIGKILL)
            self._ended_within(HANG_S)
        if not self._result.closed:
            os.close(self._told)
            os.close(self._answers)
            self._result.close()

    def _ended_within(self, timeout_s: float) -> bool:
        until = time.monotonic() + timeout_s
        while self._end is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._end = self._read_end(os.waitstatus_to_exitcode(status))
            elif time.monotonic() >= until:
                return False
            else:
                time.sleep(0.002)
        return True

    def _read_end(self, code: int) -> End:
        if code < 0:
            return End(signal=signal.Signals(-code).name)
        self._result.seek(0)
        content = self._result.read()
        return pickle.loads(content) if content else End(error="exit", text=f"exit code {code}")


_this: Child | None = None  # in a child, itself


def reach(*, waits: bool) -> None:
    """In a child: say that the place is reached, and wait for the answer where it shall."""
    assert _this is not None
    os.write(_this._told, b"!")
    if waits:
        os.read(_this._answers, 1)


def strike(at: int, fault: int | None) -> Callable[[], int]:
    """In a child: have its n-th step on the file system refused with this errno, or kill it there.

    Steps are opening to write, renaming, making, removing and syncing. Returns what tells how many
    were taken.
    """
    taken = 0

    def count() -> None:
        nonlocal taken
        taken += 1
        if taken == at and fault is None:
            os.kill(os.getpid(), signal.SIGKILL)
        if taken == at:
            raise OSError(fault, os.strerror(fault))

    def hook(event: str, args: tuple[Any, ...]) -> None:
        is_write = event == "open" and isinstance(args[2], int) and args[2] & os.O_ACCMODE
        if event in STRUCK or is_write:
            count()

    def sync(descriptor: int) -> None:
        count()
        real_sync(descriptor)

    real_sync, os.fsync = os.fsync, sync
    sys.addaudithook(hook)
    return lambda: taken


Files = dict[str, str]  # the SHA-256 of each file, by its path; empty for a folder


def files_of(folder: Path) -> Files:
    """All that is in a folder, but for the logs of processes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix != ".log":
            content = path.read_bytes() if path.is_file() else None
            digest = "" if content is None else hashlib.sha256(content).hexdigest()
            found[path.relative_to(folder).as_posix()] = digest
    return found


def difference(expected: Files, found: Files) -> str:
    """What differs, in words; empty if nothing does."""
    parts = {
        "left behind": sorted(found.keys() - expected.keys()),
        "missing": sorted(expected.keys() - found.keys()),
        "other bytes": [name for name in expected.keys() & found if expected[name] != found[name]],
    }
    return "; ".join(f"{what}: {_list(names)}" for what, names in parts.items() if names)


def _list(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(sorted(names)[:5]) + more


@contextlib.contextmanager
def playing(this: Round) -> Iterator[None]:
    """A round whose processes are ended with it."""
    try:
        yield
    finally:
        this.end_processes()
