"""The loader's threads under a tool that sees every race, also one that did not go wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "native"
UNITS = [
    "batch_loader",
    "batch_reader",
    "column_builder",
    "columns",
    "crc32c",
    "framing",
    "index",
    "mapped_file",
    "memory",
    "message",
    "parse",
    "record_parser",
    "shard_set",
    "tests/batch_loader_test",
]


def test_threads_of_the_loader_do_not_race(tmp_path):
    compiler = shutil.which("clang++")
    if compiler is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("clang++ is not installed")
    program = tmp_path / "batch_loader_test"
    sources = [NATIVE / f"{unit}.cc" for unit in UNITS]
    flags = ["-std=c++20", "-O1", "-pthread", "-fsanitize=thread", f"-I{NATIVE}"]
    subprocess.run([compiler, *flags, *sources, "-o", program], check=True)
    done = subprocess.run([program, tmp_path], capture_output=True, text=True)
    if "unexpected memory mapping" in done.stderr:  # where addresses are more random than it bears
        fixed = ["setarch", "--addr-no-randomize", program, tmp_path]
        done = subprocess.run(fixed, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "every batch was right\n", "")
