"""A write that is killed, or refused by the system, at any step: nothing partial; it goes on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "faulty_writes.py"


def strike(folder, **options):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), json.dumps(options)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    *struck, untouched = found
    assert len(struck) > 5
    assert untouched["code"] == 0
    return struck


def check(struck, code):
    for result in struck:
        # Once all is published, what is left is to clear up, which may fail without harm.
        is_fine = result["code"] == code or result["target"] == "complete"
        assert is_fine, result
        assert result["target"] in ("as before", "complete"), result
        assert result["again"] == 0, result
        assert result["same bytes"], result


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("source", ["columns", "rows"])
def test_a_killed_write_goes_on_and_gives_the_same_bytes(tmp_path, source, workers):
    step = 1 if workers == 1 else 5
    struck = strike(
        tmp_path, source=source, fault="kill", workers=workers, step=step, overwrite=False
    )
    check(struck, -9)


@pytest.mark.parametrize(("workers", "overwrite"), [(1, False), (1, True), (4, False)])
def test_a_write_after_a_power_cut_trusts_only_what_was_on_the_disk(tmp_path, workers, overwrite):
    step = 1 if workers == 1 else 3
    struck = strike(
        tmp_path,
        source="columns",
        fault="power cut",
        workers=workers,
        step=step,
        overwrite=overwrite,
    )
    check(struck, -9)


def test_a_killed_overwrite_leaves_the_old_dataset_or_the_new_one(tmp_path):
    struck = strike(tmp_path, source="columns", fault="kill", workers=1, step=1, overwrite=True)
    check(struck, -9)


@pytest.mark.parametrize(
    ("fault", "step", "overwrite"),
    [
        ("full", 1, False),
        ("full", 1, True),
        ("denied", 3, False),
        ("files", 3, False),
        ("io", 3, True),
    ],
)
def test_a_write_that_the_system_refuses_says_so_and_goes_on_later(
    tmp_path, fault, step, overwrite
):
    struck = strike(
        tmp_path, source="columns", fault=fault, workers=1, step=step, overwrite=overwrite
    )
    check(struck, 75)
