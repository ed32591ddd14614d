"""Work on many pieces at once; results come in the order of the pieces."""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from datum.errors import WriteError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["WorkerProcesses", "can_be_sent", "map_ordered", "worker_main"]

_Piece = TypeVar("_Piece")
_Result = TypeVar("_Result")
_LENGTH = struct.Struct("<Q")
_CHILD = (
    "import sys; sys.path[:] = {path!r}; from datum.writing.pool import worker_main; worker_main()"
)


def map_ordered(
    work: Callable[[_Piece], _Result], pieces: Iterable[_Piece], *, workers: int
) -> Iterator[_Result]:
    """Like `map`, on `workers` threads; only a few results wait at any time."""
    if workers == 1:
        yield from map(work, pieces)
        return
    window = workers + 2
    waiting: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(workers, "datum-write") as threads:
        try:
            for piece in pieces:
                waiting.append(threads.submit(work, piece))
                if len(waiting) >= window:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def can_be_sent(work: Any) -> bool:
    """Whether another process can do this work: nothing of it lives in the main script."""
    try:
        return b"__main__" not in pickle.dumps(work)
    except Exception:  # whatever the user's own objects raise
        return False


class WorkerProcesses:
    """Processes that each do one piece of work at a time, for code that keeps the interpreter busy.

    They are plain Python processes that import what they need: the user's main script is not run
    again in them. A process that dies is replaced, and its piece done again, once.
    """

    def __init__(self, work: Callable[[Any], Any], *, count: int) -> None:
        self._work = pickle.dumps(work)
        self._idle: list[_Process] = []
        self._all: list[_Process] = []
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(count)

    def __call__(self, piece: Any) -> Any:
        """Do one piece in some process; errors of the work are raised here."""
        with self._slots:
            for is_last in (False, True):
                process = self._take()
                try:
                    is_fine, result = process.call(piece)
                except (EOFError, OSError) as error:
                    code = process.stop()
                    if is_last:
                        raise WriteError(
                            f"a worker process ended twice on one piece of work (exit {code})\n"
                            "hint: is memory short? try fewer `workers`; the same call goes on"
                            " where this one stopped"
                        ) from error
                    continue
                with self._lock:
                    self._idle.append(process)
                if not is_fine:
                    raise result
                return result
        raise AssertionError("unreachable")

    def _take(self) -> _Process:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            process = _Process(self._work)
            self._all.append(process)
            return process

    def close(self) -> None:
        """End all processes."""
        for process in self._all:
            process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Process:
    """One process, spoken to through its standard input and output."""

    def __init__(self, work: bytes) -> None:
        command = [sys.executable, "-c", _CHILD.format(path=sys.path)]
        # A group of its own: Ctrl-C reaches the parent alone, which then ends its workers.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        with contextlib.suppress(OSError):  # found out at the first call
            _send(self._process.stdin, work)

    def call(self, piece: Any) -> tuple[bool, Any]:
        _send(self._process.stdin, pickle.dumps(piece, protocol=5))
        found: tuple[bool, Any] = pickle.loads(_receive(self._process.stdout))
        return found

    def stop(self) -> int:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.terminate()
        return self._process.wait()


def _send(pipe: Any, message: bytes) -> None:
    pipe.write(_LENGTH.pack(len(message)))
    pipe.write(message)
    pipe.flush()


def _receive(pipe: Any) -> bytes:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (size,) = _LENGTH.unpack(head)
    message: bytes = pipe.read(size)
    if len(message) < size:
        raise EOFError
    return message


def worker_main() -> None:
    """What a worker process runs: the work comes first, then one piece after the other."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the work prints must not mix with answers
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # nor may it read requests
    with contextlib.suppress(EOFError, BrokenPipeError):
        work = pickle.loads(_receive(requests))
        while True:
            piece = pickle.loads(_receive(requests))
            try:
                answer = pickle.dumps((True, work(piece)), protocol=5)
            except Exception as error:
                answer = _pickled_error(error)
            _send(answers, answer)


def _pickled_error(error: Exception) -> bytes:
    with contextlib.suppress(Exception):
        answer = pickle.dumps((False, error))
        pickle.loads(answer)
        return answer
    return pickle.dumps((False, WriteError(f"{type(error).__name__}: {error}")))
