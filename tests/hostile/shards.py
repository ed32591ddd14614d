"""Shards made by hand, read in every mode, and code whose memory is measured."""

from __future__ import annotations

import itertools
import json
import struct
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from datum import CorruptRecordError, _core
from datum.format import Damage, RecordFile

HEADER_BYTES, FRAME_BYTES = 12, 16
MODES = ("strict", "tail", "skip")
MIB = 2**20


def masked_crc(data: bytes) -> bytes:
    return struct.pack("<I", _core.mask_crc(_core.crc32c(data)))


def header(length: int) -> bytes:
    """The twelve bytes before a payload of any length, however false."""
    packed = struct.pack("<Q", length)
    return packed + masked_crc(packed)


def framed(*payloads: bytes) -> bytes:
    return b"".join(header(len(p)) + p + masked_crc(p) for p in payloads)


def bounds(payloads: Iterable[bytes]) -> list[int]:
    """Where each record starts, and where the last one ends."""
    return list(itertools.accumulate((len(p) + FRAME_BYTES for p in payloads), initial=0))


def flipped(data: bytes, bit: int) -> bytes:
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


Outcome = tuple[list[bytes], list[Damage], Damage | None]


def read(source: Any, recovery: str, *, chunk: int = 1024, **options: Any) -> Outcome:
    """The payloads read, what was stepped over, and what the reading ended with."""
    payloads: list[bytes] = []
    file = RecordFile(source, recovery=recovery, **options)
    end: Damage | None = None
    try:
        for records in file.chunks(chunk):
            payloads += records
    except CorruptRecordError as error:
        message, end = str(error), error.damage or pytest.fail(f"no damage told: {error}")
    if end is not None:
        place = f"{end.file}: record {end.record} at byte {end.offset}: "
        assert message.startswith(place)
        assert end.kind in message
    return payloads, file.damage, end


_MEASURED = """
import json, resource, sys
import datum
from datum.errors import *
from datum.format import *
from datum.schema import Feature, Schema
from tests.hostile.shards import *
def peak():
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else found * 1024
before = peak()
def measured(args):
{body}
print(json.dumps([measured(sys.argv[1:]), peak() - before]))
"""


def run_measured(body: str, *args: Any, timeout_s: float = 240) -> tuple[Any, int]:
    """What the body of a function returns in a process of its own, and by how much that grew.

    The timeout tells a hang from slow work; a test that reaches it fails.
    """
    code = _MEASURED.format(body="\n".join("    " + line for line in body.splitlines()))
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    result, growth = json.loads(done.stdout)
    return result, growth
