"""Times and circumstances as a `Measurement`: costs, speeds, the bottleneck, advice, notes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from datum.errors import Message
from datum.format.threads import thread_count
from datum.loading import LoadOptions
from datum.measuring.advice import Facts, advise
from datum.measuring.costs import Costs, find_bottleneck, find_costs, to_stages
from datum.measuring.loaders import Entry
from datum.measuring.machine import Machine
from datum.measuring.measurement import Measurement, Paid, Speed
from datum.measuring.pictures import ImageSizes
from datum.measuring.sample import Sample
from datum.measuring.stages import MEASURED
from datum.measuring.timing import Timing
from datum.reading import Split

__all__ = ["Findings", "first_line", "make_measurement"]

NOISY = 0.15  # a spread from which on figures are only a hint
MAX_PROBLEM = 160  # letters of an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that was found out, and what was asked; `name` is what the user calls the dataset."""

    name: str
    split: Split
    sample: Sample
    options: LoadOptions
    seconds: float
    workers: int
    timings: Mapping[str, Timing]
    machine: Machine
    paid: Paid
    entries: tuple[Entry, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    sizes: ImageSizes | None = None
    notes: tuple[str, ...] = ()

    @property
    def record_bytes(self) -> float:
        """Of a record, in plain files."""
        return self.sample.bytes / self.sample.records


def first_line(error: BaseException) -> str:
    """What an error says, in one line that is not too long.

    >>> first_line(KeyError())
    'KeyError'
    """
    line = Message.of(error).line.strip() or type(error).__name__
    return line if len(line) <= MAX_PROBLEM else f"{line[: MAX_PROBLEM - 3]}..."


def make_measurement(found: Findings) -> Measurement:
    """What the findings tell."""
    times = {name: found.timings[name] for name in MEASURED if name in found.timings}
    costs = find_costs({name: time.median for name, time in times.items()}, found.sample.records)
    spreads = {name: time.spread for name, time in times.items()}
    runs = found.split.runs
    shards = {run.shard.name: run.shard for run in runs}
    kinds = {shard.compression for shard in shards.values()} - {None}
    compression = " and ".join(sorted(map(str, kinds))) or None
    nbytes = sum(shard.bytes for shard in shards.values())
    speeds = tuple(_speed(entry, found) for entry in found.entries)
    facts = _facts(found, costs, shards=len(shards), nbytes=nbytes, compression=compression)
    return Measurement(
        path=found.name,
        split=found.split.name,
        records=len(found.split),
        bytes=nbytes,
        shards=len(shards),
        compression=compression,
        measured_records=found.sample.records,
        record_bytes=found.record_bytes,
        options=_options(found),
        machine=found.machine,
        stages=to_stages(costs, spreads, record_bytes=found.record_bytes),
        speeds=speeds,
        paid=found.paid,
        missing=found.missing,
        bottleneck=find_bottleneck(costs),
        advice=advise(facts) if found.entries else (),
        notes=(*found.notes, *_notes(found)),
    )


def _speed(entry: Entry, found: Findings) -> Speed:
    timing = found.timings.get(entry.name)
    if timing is None:
        problem = found.problems.get(entry.name, "not run")
        return Speed(entry.framework, entry.name, entry.call, problem=problem)
    per_s = found.sample.records / timing.median
    return Speed(
        entry.framework,
        entry.name,
        entry.call,
        per_s,
        per_s * found.record_bytes / 1e6,
        1e6 / per_s,
        timing.spread if len(timing.seconds) > 1 else None,
    )


def _options(found: Findings) -> dict[str, Any]:
    options = found.options
    return {
        "batch_size": options.batch_size,
        "shuffle": options.shuffle,
        "columns": None if options.columns is None else list(options.columns),
        "threads": options.threads or thread_count(None),
        "workers": found.workers,
        "map": None if options.map is None else _name_of(options.map),
        "seconds": found.seconds,
    }


def _name_of(function: Any) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}:{name}"


def _facts(
    found: Findings, costs: Costs, *, shards: int, nbytes: int, compression: str | None
) -> Facts:
    options, sizes = found.options, found.sizes
    speeds = {
        name: found.sample.records / timing.median
        for name, timing in found.timings.items()
        if name not in MEASURED
    }
    return Facts(
        path=found.name,
        costs=costs,
        speeds=speeds,
        paid=found.paid,
        records=len(found.split),
        bytes=nbytes,
        shards=shards,
        record_bytes=found.record_bytes,
        compression=compression,
        features=len(options.selected(found.split.schema)) if found.split.schema else 0,
        is_narrowed=options.columns is not None,
        batch_size=options.plan_records,
        shuffle=bool(options.shuffle),
        threads=options.threads or thread_count(None),
        cores=found.machine.cores,
        memory_bytes=found.machine.memory_bytes,
        image_side=None if sizes is None else sizes.side,
        decoded_bytes=0.0 if sizes is None else sizes.bytes,
        auto_engine=_auto_engine(found),
    )


def _auto_engine(found: Findings) -> str | None:
    """What `to_tf` would read the whole split with; None where it was not measured."""
    if not any(name.startswith("to_tf") for name in found.timings):
        return None
    from datum.frameworks.tensorflow.engine import choose_engine, find_engine_inputs
    from datum.frameworks.tensorflow.options import TfOptions

    options = found.options
    asked = TfOptions(batch_size=options.batch_size, shuffle=options.shuffle)
    return choose_engine("auto", find_engine_inputs(asked)).engine


def _notes(found: Findings) -> Iterator[str]:
    spreads = [timing.spread for timing in found.timings.values()]
    noise = statistics.median(spreads) if spreads else 0.0
    if noise > NOISY:
        yield (
            f"turns lay {noise * 100:.0f} % apart: the machine is busy with something else, and"
            " small differences mean nothing"
        )
    if found.options.map is not None and any(entry.framework == "tf" for entry in found.entries):
        yield "TensorFlow was measured without `map`, since it takes functions of tensors"
    engine = _auto_engine(found)
    if engine is not None:
        yield f"`to_tf` takes its engine {engine!r} for this by itself"
    if found.sample.records < found.options.plan_records:
        yield "the split has fewer records than a batch"
