"""CRC-32C against the published vectors, on every processor and by every implementation."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from datum import _core

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / "native" / "tests" / "crc32c_test.cc", ROOT / "native" / "crc32c.cc"]
HARDWARE = {"x86_64": "sse4.2", "AMD64": "sse4.2", "aarch64": "armv8", "arm64": "armv8"}

READ_COMMAND = bytes.fromhex(
    "01c00000 00000000 00000000 00000000 14000000 00000400"
    "00000014 00000018 28000000 00000000 02000000 00000000"
)
VECTORS = {  # RFC 3720, appendix B.4, and the check value of the CRC catalogue
    b"": 0,
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    bytes(range(31, -1, -1)): 0x113FDB5C,
    b"123456789": 0xE3069283,
    READ_COMMAND: 0xD9963A56,
}


def need(command: str) -> str:
    """The path of a command; without it the test is skipped, but on CI it fails."""
    found = shutil.which(command)
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{command} is not installed")
    return found


def compile_test(compiler: str, program: Path, *flags: str) -> None:
    subprocess.run(
        [compiler, "-std=c++20", "-O2", *flags, f"-I{ROOT / 'native'}", *SOURCES, "-o", program],
        check=True,
    )


@pytest.mark.parametrize("implementation", [None, *_core.crc32c_implementations()])
@pytest.mark.parametrize("data", VECTORS, ids=[f"{len(data)} bytes" for data in VECTORS])
def test_published_vectors_are_matched(data, implementation):
    assert _core.crc32c(data, 0, implementation) == VECTORS[data]


def test_all_implementations_agree_at_every_length():
    data = bytes(i * i % 251 for i in range(1700))
    for length in range(len(data)):
        crcs = {
            _core.crc32c(memoryview(data)[-length:], 0, name)
            for name in _core.crc32c_implementations()
        }
        assert len(crcs) == 1, length


@pytest.mark.parametrize("implementation", _core.crc32c_implementations())
def test_a_checksum_is_carried_on_from_part_to_part(implementation):
    data = bytes(range(256)) * 300
    whole = _core.crc32c(data, 0, implementation)
    for split in (0, 1, 7, 8, 191, 192, 1536, 12288, len(data)):
        first = _core.crc32c(data[:split], 0, implementation)
        assert _core.crc32c(data[split:], first, implementation) == whole


def test_masking_is_that_of_the_tfrecord_format():
    # The length 0 of an empty record, whose masked CRC every TFRecord writer gives as this.
    assert _core.mask_crc(_core.crc32c(bytes(8))) == 0x07980329
    assert _core.mask_crc(0) == 0xA282EAD8


def test_an_unknown_implementation_is_refused():
    with pytest.raises(ValueError, match="no CRC implementation abacus"):
        _core.crc32c(b"", 0, "abacus")


def test_the_table_is_always_there_and_comes_last():
    assert _core.crc32c_implementations()[-1] == "table"


def test_the_instructions_of_this_processor_are_used(tmp_path):
    compiler = need("c++")
    compile_test(compiler, tmp_path / "crc32c_test", "-Wall", "-Wextra", "-Werror")
    expected = HARDWARE.get(platform.machine(), "table")
    ran = subprocess.run([tmp_path / "crc32c_test", expected], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == _core.crc32c_implementations()


def test_the_instructions_of_arm_are_used(tmp_path):
    compiler, emulator = need("aarch64-linux-gnu-g++"), need("qemu-aarch64-static")
    compile_test(compiler, tmp_path / "crc32c_test", "-static")
    ran = subprocess.run(
        [emulator, tmp_path / "crc32c_test", "armv8"], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["armv8", "table"]
