"""A short run of `make torture`, and whether the harness sees what it is there to see."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.signals import usual_signals
from tests.torture.__main__ import ATTACKS

ROOT = Path(__file__).parents[2]

# The same harness with attacks of its own.
_PROGRAM = """
import os, sys, time
from tests.torture import __main__ as torture
from tests.torture.harness import Attack, Violation

def accuse(this):
    raise Violation("two versions")

def divide(this):
    return 1 / 0

def crash(this):
    this.start(os.abort).wait().check()

def misuse(this):
    this.start(open, "/there/is/none").wait().check()

def hang(this):
    this.start(time.sleep, 600).wait(0.1)

def wait(this):
    print("begun", flush=True)
    this.start(time.sleep, 600).wait()

def fine(this):
    return "as ever"

attacks = (fine, accuse, divide, crash, misuse, hang, wait)
torture.ATTACKS = tuple(Attack(attack.__name__, "", attack) for attack in attacks)
sys.exit(torture.main(sys.argv[1:]))
"""


def torture(*arguments, kept, program=None):
    command = [sys.executable, *(["-m", "tests.torture"] if program is None else ["-c", program])]
    with usual_signals():
        return subprocess.Popen(
            [*command, *arguments, "--kept", str(kept)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def test_no_attack_finds_anything(tmp_path):
    # Not those of TensorFlow, which takes longer to import than all of this.
    names = [attack.name for attack in ATTACKS if "to_tf" not in attack.name]
    rounds = len(names)
    run = torture(
        *("--only", ",".join(names), "--seed", "1", "--rounds", str(rounds)), kept=tmp_path
    )
    told, findings = run.communicate()
    assert (run.returncode, findings) == (0, ""), findings
    assert re.search(rf"^{rounds} rounds in .*, 0 failed$", told, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []


def test_a_finding_is_told_with_its_seed_and_its_files_are_kept(tmp_path):
    expected = {
        "8-accuse": "two versions",
        "9-divide": "ZeroDivisionError",
        "10-crash": "ended by SIGABRT",
        "11-misuse": "none of Datum's: FileNotFoundError",
        "12-hang": "still running after",
    }
    run = torture("--seed", "7", "--rounds", "6", kept=tmp_path, program=_PROGRAM)
    told, findings = run.communicate()
    assert run.returncode == 1
    assert {path.name for path in tmp_path.iterdir()} == expected.keys()
    for name, finding in expected.items():
        seed, attack = name.split("-")
        assert finding in (tmp_path / name / "failure.txt").read_text()
        assert f"make torture SEED={seed} ONLY={attack} ROUNDS=1" in findings
        assert re.search(rf"^{attack} +1 +1 *$", told, re.MULTILINE)
    assert re.search(r"^fine +1 +0  1 as ever$", told, re.MULTILINE)
    assert "Fatal Python error: Aborted" in (tmp_path / "12-hang/process-0.log").read_text()


def test_an_interrupt_ends_the_run_with_its_table(tmp_path):
    run = torture("--only", "fine,wait", kept=tmp_path, program=_PROGRAM)
    assert run.stdout is not None
    while run.stdout.readline() != "begun\n":
        assert run.poll() is None
    os.kill(run.pid, signal.SIGINT)
    told, findings = run.communicate()
    assert (run.returncode, findings) == (130, "")
    assert re.search(r"^fine +1 +0  1 as ever$", told, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []
