"""The results as a plain text table and as JSON."""

import contextlib
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.measure import Timing
from benchmarks.suite import Goal, Outcome, Suite

PACKAGES = (
    "datum",
    "numpy",
    "simplejpeg",
    "tensorflow-cpu",
    "tensorflow-datasets",
    "tfrecord",
    "crc32c",
    "torch",
    "mosaicml-streaming",
    "litdata",
    "webdataset",
    "array_record",
)


@dataclass(frozen=True)
class Result:
    """A suite and what came of it."""

    suite: Suite
    outcome: Outcome


def table(result: Result) -> str:
    """The contenders of one suite with their ratios, then its goals."""
    suite, outcome = result.suite, result.outcome
    letters = dict(zip(suite.references, "ABCDEF", strict=False))
    header = ["", "records/s", "MB/s", *(f"x {letter}" for letter in letters.values())]
    header += ["peak MB", "own MB", "runs", ""]
    rows = [header]
    for name, timing in outcome.timings.items():
        label = f"{letters[name]}  {name}" if name in letters else f"   {name}"
        ratios = [_times(_ratio(timing, outcome.timings[each])) for each in letters]
        memory = outcome.memory.get(name)
        rows.append(
            [
                label,
                f"{timing.records_per_s:,.0f}" if timing.contender.records else "-",
                f"{timing.bytes_per_s / 1e6:,.0f}",
                *ratios,
                f"{memory.resident_bytes / 1e6:,.0f}" if memory else "-",
                f"{memory.own_bytes / 1e6:,.0f}" if memory else "-",
                str(len(timing.seconds)),
                timing.contender.note,
            ]
        )
    goals = [_goal_line(goal, outcome) for goal in suite.goals]
    return "\n".join([suite.title, *_aligned(rows), *goals, ""])


def versions() -> dict[str, str]:
    """Of the packages that take part, those that are installed."""
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def as_json(results: Sequence[Result], date: str, *, quick: bool) -> dict[str, Any]:
    """Everything measured, with what it was measured on."""
    return {
        "date": date,
        "quick": quick,
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": platform.system(),
            "python": platform.python_version(),
            "packages": versions(),
        },
        "suites": {result.suite.name: _suite_json(result) for result in results},
    }


def _suite_json(result: Result) -> dict[str, Any]:
    suite, outcome = result.suite, result.outcome
    contenders = {}
    for name, timing in outcome.timings.items():
        contenders[name] = {
            "records": timing.contender.records,
            "bytes": timing.contender.data_bytes,
            "seconds": [round(seconds, 6) for seconds in timing.seconds],
            "records_per_s": round(timing.records_per_s),
            "bytes_per_s": round(timing.bytes_per_s),
            "ratios": {
                each: _rounded(_ratio(timing, outcome.timings[each])) for each in suite.references
            },
            "memory": vars(outcome.memory[name]) if name in outcome.memory else None,
            "note": timing.contender.note,
        }
    goals = [_goal_json(goal, outcome) for goal in suite.goals]
    return {"title": suite.title, "contenders": contenders, "goals": goals}


def _goal_json(goal: Goal, outcome: Outcome) -> dict[str, Any]:
    got = goal.measure(outcome)
    return {
        "goal": goal.text,
        "bound": goal.bound,
        "is_ceiling": goal.is_ceiling,
        "unit": goal.unit,
        "got": _rounded(got),
        "is_met": None if got is None else goal.is_met(got),
    }


def _goal_line(goal: Goal, outcome: Outcome) -> str:
    got = goal.measure(outcome)
    sign = "<=" if goal.is_ceiling else ">="
    wanted = f"{sign} {_figure(goal.bound)} {goal.unit}"
    if got is None:
        return f"  -       {goal.text}: {wanted}, not measured"
    verdict = "met   " if goal.is_met(got) else "MISSED"
    return f"  {verdict}  {goal.text}: {wanted}, got {_figure(got)} {goal.unit}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _ratio(timing: Timing, reference: Timing) -> float | None:
    if not timing.contender.records:
        return None
    return timing.records_per_s / reference.records_per_s


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f}" if ratio >= 0.1 else f"{ratio:.3f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if index in (0, last) else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()
