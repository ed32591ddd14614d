"""`python -m benchmarks`: runs the suites, prints the tables, writes the JSON and the chart."""

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import generate, report
from benchmarks.measure import race
from benchmarks.memory import IS_MEASURABLE, peak_memory
from benchmarks.suite import Outcome, Setting, Suite
from benchmarks.suites import SUITES
from benchmarks.workloads import all_workloads

ROOT = Path(__file__).parent.parent
USES = {"write": "tabular", "growth": "tabular"}  # the workload, where it is not the suite's name
ALWAYS_MEMORY = ("growth", "native_first")  # measured even when quick: memory is what it is about


def main() -> None:
    """Runs what the arguments ask for."""
    arguments = _arguments()
    setting = Setting(arguments.quick, ROOT / "build" / "bench")
    rounds = arguments.repeat or (3 if arguments.quick else 5)
    _say("files: writing those that are not there yet")
    used = {USES.get(name, name) for name in arguments.only}
    workloads = all_workloads(quick=setting.quick).values()
    generate.write_shards([each for each in workloads if each.name in used], setting.cache)
    print("with", ", ".join(f"{name} {version}" for name, version in report.versions().items()))
    results = []
    for name in arguments.only:
        start = time.perf_counter()
        result = _run(SUITES[name](setting), setting, rounds)
        results.append(result)
        print(report.table(result), flush=True)
        _say(f"{name}: {time.perf_counter() - start:.0f} s")
    _save(results, arguments.out, quick=arguments.quick)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="an eighth of the data, 3 rounds")
    parser.add_argument("--only", nargs="+", choices=SUITES, default=list(SUITES), metavar="SUITE")
    parser.add_argument("--repeat", type=int, help="rounds; the best of each contender counts")
    parser.add_argument("--out", type=Path, help="folder for the JSON and the chart")
    arguments = parser.parse_args()
    if arguments.out is None:  # only a run of everything is for keeping
        is_whole = not arguments.quick and set(arguments.only) == set(SUITES)
        arguments.out = ROOT / ("benchmarks/results" if is_whole else "build/bench/results")
    return arguments


def _run(suite: Suite, setting: Setting, rounds: int) -> report.Result:
    _say(f"{suite.name}: checking that the outputs are equal")
    suite.check()  # and with that the files are in the page cache
    timings = race(suite.contenders, min(rounds, suite.max_rounds or rounds))
    memory = {}
    for contender in suite.contenders if _is_memory_wanted(suite, setting) else ():
        if contender.records:
            _say(f"{suite.name}: memory of {contender.name}")
            memory[contender.name] = peak_memory(suite, contender, setting)
    return report.Result(suite, Outcome(timings, memory))


def _is_memory_wanted(suite: Suite, setting: Setting) -> bool:
    is_time_taken = not setting.quick or suite.name in ALWAYS_MEMORY
    return IS_MEASURABLE and suite.has_memory and is_time_taken


def _save(results: list[report.Result], out: Path, *, quick: bool) -> None:
    from benchmarks import chart

    date = datetime.now(UTC).date().isoformat()
    out.mkdir(parents=True, exist_ok=True)
    figures = report.as_json(results, date, quick=quick)
    (out / f"{date}.json").write_text(json.dumps(figures, indent=1) + "\n")
    machine = figures["machine"]
    subtitle = f"{date}, {machine['processor']}, {machine['cores']} cores"
    chart.draw(results, out / f"{date}.png", subtitle=subtitle)
    _say(f"wrote {out / date}.json and .png")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
