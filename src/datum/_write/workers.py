"""Pieces of work in parallel threads or processes, with results in order."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from datum.errors import Option, Text, WriteError, count_of

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "WorkerProcesses",
    "can_use_processes",
    "describe_records",
    "map_ordered",
    "worker_main",
]

_Piece = TypeVar("_Piece")
_Result = TypeVar("_Result")
_LENGTH = struct.Struct("<Q")
_STEP_S = 0.01
_SHOWN_RECORDS = 8
MAX_SENT_BYTES = 16 * 2**20
_GRACE_STEPS = 100  # one second to exit after its pipes close
_CHILD = (
    "import sys; sys.path[:] = {path!r};"
    " from datum._write.workers import worker_main; worker_main()"
)


def map_ordered(
    work: Callable[[_Piece], _Result],
    pieces: Iterable[_Piece],
    *,
    workers: int,
    stop: Callable[[], None] | None = None,
) -> Iterator[_Result]:
    """Like `map`, on `workers` threads, with a bounded number of pending results.

    `stop` is called when iteration ends early; it should end what threads are waiting for.
    """
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
        except BaseException:
            for future in waiting:
                future.cancel()
            if stop is not None:
                stop()
            raise


class _TooLargeError(Exception):
    """The work is too large to send."""


class _Message(io.BytesIO):
    """A buffer of limited size."""

    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > MAX_SENT_BYTES:
            raise _TooLargeError
        return super().write(data)


def _pickled(work: Any) -> bytes | None:
    """Pickle the work for another process; None if it needs a fork instead.

    That holds for work defined in the main script, which others cannot import, and for large work,
    because forks share memory. Raises if something cannot be pickled, such as an open file.
    """
    message = _Message()
    try:
        pickle.Pickler(message, protocol=5).dump(work)
    except _TooLargeError:
        return None
    return None if b"__main__" in message.getvalue() else message.getvalue()


def can_use_processes(work: Any) -> bool:
    """Return whether other processes can do this work."""
    try:
        return _pickled(work) is not None or sys.platform == "linux"
    except Exception:  # users' objects may raise anything
        return False


def describe_records(numbers: NDArray[np.int64], keys: Sequence[str] | None) -> str:
    """Describe some records of a source for a message.

    >>> describe_records(np.array([7, 3, 9]), None)
    '3 records of the source, numbers 3 to 9: 3, 7, 9'
    """
    found = np.sort(numbers).tolist()
    named = [str(one) if keys is None else f"{one} ({keys[one]})" for one in found[:_SHOWN_RECORDS]]
    more = ", ..." if len(found) > len(named) else ""
    span = f"numbers {found[0]} to {found[-1]}"
    return f"{count_of(len(found), 'record')} of the source, {span}: {', '.join(named)}{more}"


class WorkerProcesses:
    """A pool of processes, for work that holds Python's lock.

    They are plain Python processes that import what they need and do not run the user's main
    script again. Work that cannot be sent runs in forks of this process, created at once, before
    any threads. A process that dies is replaced, and its piece is done once more.

    Args:
        work: Function called with each piece.
        count: Number of processes.
        describe: Describes a piece for the error after two processes died of it.
    """

    def __init__(
        self,
        work: Callable[[Any], Any],
        *,
        count: int,
        describe: Callable[[Any], str] = lambda _: "one piece of work",
    ) -> None:
        self._work = work
        self._describe = describe
        self._message = _pickled(work)
        self._idle: list[_Process] = []
        self._all: list[_Process] = []
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(count)
        self._is_closed = False
        if self._message is None:
            self._idle = [self._start() for _ in range(count)]

    def __call__(self, piece: Any) -> Any:
        """Do one piece in some process; raise the errors of the work here."""
        with self._slots:
            for is_last in (False, True):
                process = self._take()
                try:
                    is_fine, result = process.call(piece)
                except (EOFError, OSError, ValueError) as error:
                    code = process.stop()
                    if is_last or self._is_closed:
                        raise WriteError(
                            f"a worker process died twice on {self._describe(piece)} (exit {code})",
                            hint=Text(
                                "is memory short? try fewer ",
                                Option("workers"),
                                "; the same call resumes where this one stopped",
                            ),
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
            return self._start()

    def _start(self) -> _Process:
        if self._is_closed:
            raise WriteError("worker processes were stopped")
        message = self._message
        process = _fork(self._work, self._all) if message is None else _spawn(message)
        self._all.append(process)
        return process

    def close(self) -> None:
        """Kill all processes."""
        self._is_closed = True
        for process in self._all:
            process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Process:
    """One process and its two pipes."""

    def __init__(self, pid: int, requests: Any, answers: Any) -> None:
        self.pid = pid
        self.pipes = requests, answers
        self._code: int | None = None
        self._lock = threading.Lock()

    def call(self, piece: Any) -> tuple[bool, Any]:
        requests, answers = self.pipes
        _send(requests, pickle.dumps(piece, protocol=5))
        found: tuple[bool, Any] = pickle.loads(_receive(answers))
        return found

    def stop(self) -> int:
        """Wait for the process briefly, then kill it; return its exit code."""
        with self._lock:
            if self._code is None:
                self._code = self._wait(_GRACE_STEPS)
            if self._code is None:
                self._kill()
                self._code = self._wait(_GRACE_STEPS) or -signal.SIGKILL
        for pipe in self.pipes:  # last, because a thread may be waiting for an answer
            with contextlib.suppress(OSError):
                pipe.close()
        return self._code

    def kill(self) -> int:
        """Kill the process; return its exit code."""
        with self._lock:
            if self._code is None:
                self._kill()
        return self.stop()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _wait(self, steps: int) -> int | None:
        """Return the exit code if the process ends soon."""
        for _ in range(steps):
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # the program ignores SIGCHLD
                return -signal.SIGKILL
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(_STEP_S)
        return None


def _spawn(work: bytes) -> _Process:
    """Start a Python process and send it the work."""
    # Its own session: Ctrl-C reaches only the parent, which then ends its workers.
    process = subprocess.Popen(
        [sys.executable, "-c", _CHILD.format(path=sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    process.returncode = 0  # this class waits for it, not subprocess
    with contextlib.suppress(OSError):  # noticed at the first call
        _send(process.stdin, work)
    return _Process(process.pid, process.stdin, process.stdout)


def _fork(work: Callable[[Any], Any], others: list[_Process]) -> _Process:
    """Fork this process, as PyTorch's data loader does."""
    for stream in (sys.stdout, sys.stderr):  # else each fork would write the pending output again
        with contextlib.suppress(AttributeError, OSError, ValueError):  # there may be none
            stream.flush()
    request_end, requests = os.pipe()
    answers, answer_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads of other libraries
        pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            # Pipes held open here would never appear closed to the other workers.
            for descriptor in (requests, answers, *_descriptors(others)):
                os.close(descriptor)
            _protect_standard_streams()
            _serve(work, os.fdopen(request_end, "rb"), os.fdopen(answer_end, "wb"))
        finally:
            os._exit(0)
    os.close(request_end)
    os.close(answer_end)
    return _Process(pid, os.fdopen(requests, "wb"), os.fdopen(answers, "rb"))


def _descriptors(processes: list[_Process]) -> list[int]:
    pipes = [pipe for process in processes for pipe in process.pipes]
    return [pipe.fileno() for pipe in pipes if not pipe.closed]


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
    """Entry point of a new process: receive the work, then pieces."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    _protect_standard_streams()
    with contextlib.suppress(EOFError):
        _serve(pickle.loads(_receive(requests)), requests, answers)


def _protect_standard_streams() -> None:
    """Keep the work from reading requests and from printing into answers."""
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _serve(work: Callable[[Any], Any], requests: Any, answers: Any) -> None:
    """Do pieces until the parent ends, even in the middle of a piece."""
    pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def receive() -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                pieces.put(_receive(requests))
        os._exit(0)

    threading.Thread(target=receive, daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        while True:
            piece = pickle.loads(pieces.get())
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
    return pickle.dumps((False, WriteError(error, where=type(error).__name__)))
