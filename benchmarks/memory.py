"""Peak memory of one pass of one contender, in a fresh process that loads nothing else (Linux)."""

import argparse
import json
import subprocess
import sys
import threading
from pathlib import Path

from benchmarks.measure import Contender
from benchmarks.suite import Memory, Setting, Suite

SAMPLE_S = 0.001
CLEAR_PEAK = Path("/proc/self/clear_refs")
IS_MEASURABLE = CLEAR_PEAK.exists()


def peak_memory(suite: Suite, contender: Contender, setting: Setting) -> Memory:
    """Starts a process for `contender`, which prepares and then runs once."""
    command = [sys.executable, "-m", "benchmarks.memory", suite.name, contender.name]
    command += ["--cache", str(setting.cache), *(["--quick"] if setting.quick else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Memory(**json.loads(done.stdout))


def _status() -> dict[str, int]:
    """Bytes by name, of the lines such as `VmHWM:  10240 kB`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    words = [line.split() for line in lines]
    return {word[0][:-1]: int(word[1]) * 1024 for word in words if word[-1] == "kB"}


def _run(contender: Contender) -> Memory:
    run = contender.prepare()
    CLEAR_PEAK.write_text("5")  # the peak so far becomes what is used now
    before = _status()
    own_bytes = before["RssAnon"]
    is_done = threading.Event()

    def sample() -> None:  # the kernel keeps the peak of the whole, but not of this part
        nonlocal own_bytes
        while not is_done.wait(SAMPLE_S):
            own_bytes = max(own_bytes, _status()["RssAnon"])

    sampler = threading.Thread(target=sample)
    sampler.start()
    run()
    is_done.set()
    sampler.join()
    return Memory(_status()["VmHWM"] - before["VmRSS"], own_bytes - before["RssAnon"])


def main() -> None:
    """Prints the memory of the contender named, as JSON."""
    from benchmarks.suites import SUITES

    parser = argparse.ArgumentParser()
    parser.add_argument("suite")
    parser.add_argument("contender")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    suite = SUITES[arguments.suite](Setting(arguments.quick, arguments.cache))
    (contender,) = (each for each in suite.contenders if each.name == arguments.contender)
    print(json.dumps(vars(_run(contender))))


if __name__ == "__main__":
    main()
