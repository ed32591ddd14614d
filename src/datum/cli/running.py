"""The end of a command: errors as messages, exit codes, signals and closed pipes."""

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
    "COMMAND",
    "DEBUG",
    "end_well",
    "errors_as_messages",
    "print_message",
    "print_warnings",
]

BAD_DATA = 1
BAD_CALL = 2
INTERRUPTED = 130  # 128 + SIGINT, as in shells

DEBUG: ContextVar[bool] = ContextVar("debug", default=False)
COMMAND: ContextVar[Any] = ContextVar("command", default=None)  # the one that runs

_HINT = "--debug shows a traceback; please report it with the command"
_STYLES = {"error": "bold red", "warning": "bold yellow", "stopped": "bold"}


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """Print errors as messages and exit with their code; --debug adds a traceback."""
    try:
        yield
    except BrokenPipeError as error:
        _leave_if_unread()
        _leave(BAD_DATA, str(error), error)
    except KeyboardInterrupt as error:
        print_message("stopped")
        raise typer.Exit(INTERRUPTED) from error
    except (DatumError, OSError) as error:
        _leave(BAD_DATA, _words_of(error), error)
    except (TypeError, ValueError, LookupError) as error:
        is_told = bool(error.args) and isinstance(error.args[0], Message)  # by Datum, on purpose
        if not is_told:
            _leave(BAD_DATA, _unexpected(error), error)
        _leave(BAD_CALL, Message.of(error), error)
    except MemoryError as error:
        _leave(BAD_DATA, "out of memory", error)
    except Exception as error:
        if isinstance(error, typer.Exit) or hasattr(error, "format_message"):
            raise  # Typer's own exits and usage errors
        _leave(BAD_DATA, _unexpected(error), error)


@contextmanager
def end_well(*, is_process: bool = True) -> Iterator[None]:
    """Exit as shells expect after signals and stream errors.

    Reports output that cannot be written, and exits silently when the reader of a pipe is gone.
    In a process of its own (`is_process`), SIGTERM and SIGHUP exit with cleanup, and a second
    Ctrl-C ends the process at once. Signals ignored at the start stay ignored, as `nohup` and
    background jobs of scripts need it.
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
            sys.stdout.flush()  # here, where an error can still be reported
    except BrokenPipeError:
        drop_output()
    except KeyboardInterrupt:
        print_message("stopped")
        sys.exit(INTERRUPTED)
    except OSError as error:
        print_message("error", Message(_words_of(error), where="stdout"))
        with suppress(OSError, ValueError):  # Python flushes once more at exit: to /dev/null
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
    """Exit if the broken pipe is stdout or stderr."""
    if any(map(_is_unread, (sys.stdout, sys.stderr))):
        drop_output()


def _is_unread(stream: Any) -> bool:
    try:
        asked = select.poll()
        asked.register(stream.fileno(), 0)  # poll always reports errors
        return bool(asked.poll(0))
    except (OSError, ValueError):
        return False


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print warnings as messages, without their source lines."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print_message("warning", Message.of(message) if isinstance(message, Warning) else message)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _words_of(error: Exception) -> Message:
    """Message of an error; system errors without their number."""
    if isinstance(error, OSError) and not isinstance(error, DatumError) and error.strerror:
        where = os.fsdecode(error.filename) if error.filename else ""
        return Message(f"{error.strerror[:1].lower()}{error.strerror[1:]}", where=where)
    return Message.of(error)


def _unexpected(error: Exception) -> Message:
    return Message(f"unexpected {type(error).__name__}: {error}", hint=_HINT)


def _leave(code: int, message: object, error: BaseException) -> NoReturn:
    print_message("error", message)
    raise typer.Exit(code) from error


def print_message(kind: str, message: object = "", *, hint: str | Sequence[str] = ()) -> None:
    """Print `kind: message` to stderr as a shell spells it, each hint on its own line."""
    from datum.cli.shell import say_for_shell  # which needs this module

    console, shown = talk(), say_for_shell(Message(message, hint=hint))
    if DEBUG.get() and kind == "error" and sys.exc_info()[0] is not None:
        for line in traceback.format_exc().rstrip().split("\n"):
            # Indented, so that no line can pass for a message.
            console.print(Text(f"  {inert(line)}", "dim"), soft_wrap=True)
    head = Text(kind + (": " if shown else ""), _STYLES.get(kind, ""))
    console.print(head + Text(shown.line), soft_wrap=True)
    for line in shown.details:
        console.print(Text(line), soft_wrap=True)
    for line in shown.hints:
        console.print(Text(line, "cyan"), soft_wrap=True)
