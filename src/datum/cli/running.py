"""How a command ends: errors as messages, exit codes, signals, and readers that go away."""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NoReturn

import typer
from rich.text import Text

from datum import DatumError
from datum.cli.terminal import drop_output, talk
from datum.errors import Message, inert

__all__ = [
    "BAD_CALL",
    "BAD_DATA",
    "DEBUG",
    "end_well",
    "tell",
    "tell_warnings",
    "told_as_messages",
]

BAD_DATA = 1
BAD_CALL = 2
INTERRUPTED = 130  # as shells have it: 128 + SIGINT

DEBUG: ContextVar[bool] = ContextVar("debug", default=False)

_HINT = "--debug shows where; please report it, with the command"
_STYLES = {"error": "bold red", "warning": "bold yellow", "stopped": "bold"}


@contextmanager
def told_as_messages() -> Iterator[None]:
    """Tell an error in words, and leave with its code; with --debug its traceback comes first."""
    try:
        yield
    except BrokenPipeError as error:
        _leave_if_unread()
        _leave(BAD_DATA, str(error), error)
    except KeyboardInterrupt as error:
        tell("stopped")
        raise typer.Exit(INTERRUPTED) from error
    except (DatumError, OSError) as error:
        _leave(BAD_DATA, _words_of(error), error)
    except (TypeError, ValueError, LookupError) as error:
        if not _is_about_the_call(error):
            _leave(BAD_DATA, _unexpected(error), error)
        _leave(BAD_CALL, Message.of(error), error)
    except MemoryError as error:
        _leave(BAD_DATA, "expected memory for this, got none", error)
    except Exception as error:
        if isinstance(error, typer.Exit) or hasattr(error, "format_message"):
            raise  # of typer's own: exits, usage errors
        _leave(BAD_DATA, _unexpected(error), error)


@contextmanager
def end_well(*, is_process: bool = True) -> Iterator[None]:
    """End as a shell expects it, whatever a signal or a stream does to the command.

    It is told if what was written cannot be kept; what was ended by the reader of a pipe ends
    without a word. Where the command is all of the process (`is_process`), SIGTERM and SIGHUP end
    it as an exit does, so that nothing is left behind, and after Ctrl-C another one ends it at
    once. A signal that was ignored when the command started stays ignored: `nohup` and jobs in the
    background of a script rely on it.
    """
    before = {
        number: signal.signal(number, _exit_by_signal)
        for number in _ENDING * is_process
        if not _is_ignored(number)
    }
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here, where it can still be told
    except BrokenPipeError:
        drop_output()
    except KeyboardInterrupt:
        tell("stopped")
        sys.exit(INTERRUPTED)
    except OSError as error:
        tell("error", Message(_words_of(error), where="stdout"))
        with suppress(
            OSError, ValueError
        ):  # Python flushes it once more when it ends: into nothing
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(BAD_DATA)
    except SystemExit as end:
        if end.code == INTERRUPTED and is_process and not _is_ignored(signal.SIGINT):
            before[signal.SIGINT] = signal.SIG_DFL  # a thread may still keep the process alive
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDING = [signal.SIGTERM, signal.SIGHUP]


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) == signal.SIG_IGN


def _exit_by_signal(number: int, _frame: Any) -> NoReturn:
    raise SystemExit(128 + number)


def _leave_if_unread() -> None:
    """Leave if it is stdout or stderr that nobody reads, and not a pipe of something else."""
    if any(map(_is_unread, (sys.stdout, sys.stderr))):
        drop_output()


def _is_unread(stream: Any) -> bool:
    try:
        asked = select.poll()
        asked.register(stream.fileno(), 0)  # errors are told whatever is asked for
        return bool(asked.poll(0))
    except (OSError, ValueError):
        return False


@contextmanager
def tell_warnings() -> Iterator[None]:
    """Tell warnings as messages, without the lines of code that they come from."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        tell("warning", Message.of(message) if isinstance(message, Warning) else message)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _is_about_the_call(error: Exception) -> bool:
    """Whether an error is one that Datum tells about arguments: it says what was expected."""
    message = str(error.args[0]) if error.args else ""
    return "expected" in message or "has no option" in message


def _words_of(error: Exception) -> Message:
    """The message of an error; of the system's own, without its number."""
    if isinstance(error, OSError) and not isinstance(error, DatumError) and error.strerror:
        where = os.fsdecode(error.filename) if error.filename else ""
        return Message(f"{error.strerror[:1].lower()}{error.strerror[1:]}", where=where)
    return Message.of(error)


def _unexpected(error: Exception) -> Message:
    return Message(f"unexpected {type(error).__name__}: {error}", hint=_HINT)


def _leave(code: int, message: object, error: BaseException) -> NoReturn:
    tell("error", message)
    raise typer.Exit(code) from error


def tell(kind: str, message: object = "", *, hint: str | Sequence[str] = ()) -> None:
    """Write `kind: message` to stderr, each hint on a line of its own."""
    console, told = talk(), Message(message, hint=hint)
    if DEBUG.get() and kind == "error" and sys.exc_info()[0] is not None:
        for line in traceback.format_exc().rstrip().split("\n"):
            # Further in, so that no line of it can pass for one of a message.
            console.print(Text(f"  {inert(line)}", "dim"), soft_wrap=True)
    head = Text(kind + (": " if told else ""), _STYLES.get(kind, ""))
    console.print(head + Text(told.line), soft_wrap=True)
    for line in told.details:
        console.print(Text(line), soft_wrap=True)
    for line in told.hints:
        console.print(Text(line, "cyan"), soft_wrap=True)
