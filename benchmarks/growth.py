"""Memory of reading a file, and one four times as long: it must not grow with the file."""

from functools import partial

from benchmarks import generate, reading
from benchmarks.measure import Contender
from benchmarks.reader import HAND_WRITTEN, TWO_THREADS
from benchmarks.suite import Goal, Outcome, Setting, Suite
from benchmarks.workloads import Workload, all_workloads

ONCE_BYTES = 64 << 20  # far more than a reader may hold
ONCE, FOUR_TIMES = "1x file", "4x file"
CONSTANT = 0.05  # of the bytes that the long file has more: what chance makes of it


def growth(setting: Setting) -> Suite:
    """A shard of `tabular` again and again in one file, and four times as often."""
    workload = all_workloads(quick=setting.quick)["tabular"]
    readers = (TWO_THREADS,) if setting.quick else (HAND_WRITTEN, TWO_THREADS)
    contenders = tuple(
        _contender(name, size, workload, setting) for name in readers for size in (ONCE, FOUR_TIMES)
    )
    megabytes = contenders[0].data_bytes / 1e6
    return Suite(
        name="growth",
        title=f"memory for a file of {megabytes:.0f} MB of {workload.name}, and for one of 4x that",
        contenders=contenders,
        references=(contenders[0].name,),
        goals=(
            _constant("resident memory grown, of the bytes added to the file", "resident_bytes"),
            _constant("own memory grown, of the bytes added to the file", "own_bytes"),
        ),
        check=lambda: None,  # the suite `tabular` checks these readers
        max_rounds=2,  # its times are of no interest
    )


def _contender(name: str, size: str, workload: Workload, setting: Setting) -> Contender:
    shard_bytes = generate.shard_paths(workload, setting.cache)[0].stat().st_size
    copies = ONCE_BYTES // shard_bytes * (4 if size == FOUR_TIMES else 1)
    path = generate.repeated_path(workload, copies, setting.cache)
    return Contender(
        f"{name}, {size}",
        prepare=lambda: reading.reader(name).passes(workload, [path]),
        records=len(workload.shard_rows(0)) * copies,
        data_bytes=path.stat().st_size,
    )


def _constant(text: str, part: str) -> Goal:
    return Goal(text, CONSTANT, "x", partial(_growth, part=part), is_ceiling=True)


def _growth(outcome: Outcome, *, part: str) -> float | None:
    once, four_times = f"{TWO_THREADS}, {ONCE}", f"{TWO_THREADS}, {FOUR_TIMES}"
    if not {once, four_times} <= outcome.memory.keys():
        return None
    grown = getattr(outcome.memory[four_times], part) - getattr(outcome.memory[once], part)
    files = outcome.timings
    added = files[four_times].contender.data_bytes - files[once].contender.data_bytes
    return float(max(0, grown) / added)
