"""Permissions that count, also where tests run as root, as they do in CI."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator

_VERSION_3 = 0x20080522  # _LINUX_CAPABILITY_VERSION_3
_OVERRIDES = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH


@contextlib.contextmanager
def permissions_enforced() -> Iterator[None]:
    """Take from root the right to read and write whatever permissions say.

    Root keeps its name, its files and all other rights. It is so in this thread and in those that
    it starts meanwhile.
    """
    if os.geteuid() != 0 or sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    head = (ctypes.c_uint32 * 2)(_VERSION_3, 0)  # 0: this thread
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice 32 bits of each
    assert libc.capget(head, sets) == 0, os.strerror(ctypes.get_errno())
    before = sets[0]
    sets[0] = before & ~_OVERRIDES
    assert libc.capset(head, sets) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        sets[0] = before
        assert libc.capset(head, sets) == 0, os.strerror(ctypes.get_errno())
