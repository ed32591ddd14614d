"""CRC32C of blocks of 1 MB, by each implementation that this machine can run."""

from collections.abc import Callable

import crc32c as crc32c_package
import numpy as np

from benchmarks.equality import OutputDiffersError
from benchmarks.measure import Contender
from benchmarks.suite import Setting, Suite, rate
from datum import _core

PACKAGE = "crc32c package"
BLOCK_BYTES = 1 << 20
BLOCKS = 256
DEFAULT = "datum, as chosen"
STREAMED = "datum, as chosen, 256 MB once"


def checksum(setting: Setting) -> Suite:
    """One block again and again, as records just read are; and once through memory."""
    del setting  # short enough as it is
    data = np.random.default_rng(5).bytes(BLOCK_BYTES)
    by_name: dict[str, Callable[[bytes], int]] = {
        PACKAGE: crc32c_package.crc32c,
        DEFAULT: _core.crc32c,
    }
    for implementation in _core.crc32c_implementations():
        by_name[f"datum, {implementation}"] = _implementation(implementation)
    return Suite(
        name="crc",
        title=f"CRC32C of blocks of 1 MB, {BLOCKS} per run",
        contenders=(
            *(_contender(name, [data] * BLOCKS, take) for name, take in by_name.items()),
            _contender(STREAMED, [bytes(bytearray(data)) for _ in range(BLOCKS)], _core.crc32c),
        ),
        references=(PACKAGE,),
        goals=(rate(DEFAULT, gigabytes_per_s=8),),
        check=lambda: _check(data, by_name),
        has_memory=False,
        is_in_bytes=True,
    )


def _implementation(name: str) -> Callable[[bytes], int]:
    return lambda data: _core.crc32c(data, implementation=name)


def _contender(name: str, blocks: list[bytes], take: Callable[[bytes], int]) -> Contender:
    def run() -> int:
        for block in blocks:
            take(block)
        return len(blocks)

    return Contender(name, lambda: run, records=len(blocks), data_bytes=len(blocks) * BLOCK_BYTES)


def _check(data: bytes, by_name: dict[str, Callable[[bytes], int]]) -> None:
    values = {name: take(data) for name, take in by_name.items()}
    if len(set(values.values())) != 1:
        raise OutputDiffersError(f"checksums differ: {values}")
