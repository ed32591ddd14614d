"""Signals as a program gets them from a terminal, however the tests themselves were started.

A program inherits which signals are ignored: SIGINT of a script's `make test &`, SIGHUP of `nohup`.
What a test sends to a program of its own would then be lost.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SENT = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@contextmanager
def usual_signals(*, ignored: frozenset[signal.Signals] = frozenset()) -> Iterator[None]:
    """Programs that are started here take signals as usual, but for those `ignored`."""
    wanted = {
        number: signal.SIG_IGN if number in ignored else signal.SIG_DFL
        for number in SENT  # a handler of Python's is none of the program's that it starts
        if number in ignored or signal.getsignal(number) is signal.SIG_IGN
    }
    before = {number: signal.signal(number, action) for number, action in wanted.items()}
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, SENT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, action in before.items():
            signal.signal(number, action)
