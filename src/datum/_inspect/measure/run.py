"""`datum.measure`: the stages and loaders of a dataset, timed in turn."""

from __future__ import annotations

import functools
import math
import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from datum._inspect.measure.advice import (
    CACHED,
    LARGER_BATCHES,
    MORE_THREADS,
    PART_OF_MEMORY,
    Costs,
    Facts,
    advise,
    find_bottleneck,
    find_costs,
    larger_batch,
    to_stages,
)
from datum._inspect.measure.contenders import (
    FRAMEWORKS,
    MEASURED,
    Entry,
    ImageSizes,
    Settings,
    batches_of,
    choose_frameworks,
    clock_for,
    decode_encoded,
    find_image_sizes,
    find_version,
    go_through,
    inflating_s,
    loader_entries,
    measure_disk,
    opening_s,
    quiet,
    stage_contenders,
)
from datum._inspect.measure.measurement import Machine, Measurement, Paid, Speed, find_machine
from datum._inspect.measure.timing import (
    ROUNDS,
    Contender,
    Sample,
    Timing,
    calibrate,
    choose_records,
    race,
    take_sample,
)
from datum._load.loader import Loader
from datum._load.options import LoadOptions, Shuffle
from datum._load.stream import order_split
from datum._options import check_count, thread_count, wrong_kind
from datum._read.split import Split
from datum.dataset import Dataset
from datum.errors import DatumError, Message, Option, SplitError, Text, inert
from datum.reader import load

__all__ = [
    "Asked",
    "Findings",
    "check_records",
    "first_line",
    "make_measurement",
    "measure",
    "measure_records",
    "trial_contenders",
]

NOISY = 0.15  # spread above which figures are only a hint
MAX_PROBLEM = 160  # characters of an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Raw findings and their settings; `name` is the dataset as given."""

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
        """Uncompressed size of a record."""
        return self.sample.bytes / self.sample.records


def first_line(error: BaseException) -> str:
    """First line of an error, shortened.

    >>> first_line(KeyError())
    'KeyError'
    """
    first = str(error).strip().partition("\n")[0]  # some libraries print long messages
    line = inert(first) or type(error).__name__
    return line if len(line) <= MAX_PROBLEM else f"{line[: MAX_PROBLEM - 3]}..."


def make_measurement(found: Findings) -> Measurement:
    """Turn findings into a measurement."""
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
    """Engine that `to_tf` would choose for the whole split; None if not measured."""
    if not any(name.startswith("to_tf") for name in found.timings):
        return None
    from datum._frameworks.tensorflow.engine import choose_engine, find_engine_inputs
    from datum._frameworks.tensorflow.options import TfOptions

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
        yield "TensorFlow was measured without `map`, because it needs functions of tensors"
    engine = _auto_engine(found)
    if engine is not None:
        yield f"`to_tf` takes its engine {engine!r} for this by itself"
    if found.sample.records < found.options.plan_records:
        yield "the split has fewer records than a batch"


MAX_BATCH = 256  # larger batches hardly save fixed costs
SMALL_IMAGES = 16  # images in a batch; with more, decoding dominates


def trial_contenders(
    sample: Sample,
    options: LoadOptions,
    *,
    records: int,
    sizes: ImageSizes | None,
    machine: Machine,
) -> Iterator[Contender]:
    """Choose trials for a split of this size."""
    memory = PART_OF_MEMORY * (machine.memory_bytes or 0)
    if sizes is not None and records * sizes.bytes <= memory:
        yield _trial(CACHED, sample, replace(options, cache=True))
    most = MAX_BATCH if sizes is None and options.map is None else SMALL_IMAGES
    larger = larger_batch(options.plan_records)
    if options.plan_records <= most and sample.records >= larger:
        yield _trial(LARGER_BATCHES, sample, replace(options, batch_size=larger))
    if options.threads is not None and options.threads < thread_count(None):
        yield _trial(MORE_THREADS, sample, replace(options, threads=None))


def _trial(name: str, sample: Sample, options: LoadOptions) -> Contender:
    @functools.cache
    def run(passes: int) -> Loader:
        asked = replace(options, epochs=passes)
        return Loader(order_split(sample.split, asked), asked)

    return Contender(name, run, batches_of(sample.records, options.plan_records))


MAX_PROBED = 1024  # epochs of one batch
CHECKED_BYTES = 32 * 2**20  # of records that are no Examples


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Settings of a measurement; `name` is the dataset as given."""

    name: str
    dataset: Dataset
    split: Split
    options: LoadOptions
    seconds: float
    workers: int
    progress: Callable[[int, int], None] | None

    @property
    def turn_s(self) -> float:
        """Duration of a turn."""
        return self.seconds / ROUNDS


class _Steps:
    """Progress of a measurement: contenders warm up, then take turns."""

    def __init__(self, asked: Asked, planned: int) -> None:
        self._tell = asked.progress or (lambda _done, _total: None)
        self._planned = planned
        self._warm = 0
        self._tell(0, planned * (1 + ROUNDS))

    def add_warm(self) -> None:
        """Count a contender that has warmed up or failed."""
        self._warm = min(self._warm + 1, self._planned)
        self._tell(self._warm, self._planned * (1 + ROUNDS))

    def add_turn(self, done: int, total: int) -> None:
        """Count finished turns."""
        self._tell(self._planned + done, self._planned + total)


def check_records(asked: Asked, unknown: DatumError | None) -> Measurement:
    """Measure records that are no Examples: read and check only."""
    split = asked.split
    mean = sum(run.shard.bytes for run in split.runs) / len(split)
    sample = take_sample(split, max(1, int(CHECKED_BYTES / max(1.0, mean))))
    disk = measure_disk(sample.pieces, seconds=asked.seconds)
    contenders = stage_contenders(sample, None)
    steps = _Steps(asked, len(contenders))
    contenders = _calibrated(contenders, asked, steps)
    timings = race(contenders, seconds=asked.seconds, progress=steps.add_turn)
    reason = "" if unknown is None else f": {first_line(unknown).removeprefix(asked.name + ': ')}"
    return make_measurement(
        Findings(
            name=asked.name,
            split=split,
            sample=sample,
            options=asked.options,
            seconds=asked.seconds,
            workers=asked.workers,
            timings=timings,
            machine=find_machine({}),
            paid=Paid(_mega(disk), _micro(inflating_s(sample))),
            notes=(f"records were only read and checked, because they are no Examples{reason}",),
        )
    )


def measure_records(asked: Asked, chosen: list[str] | None) -> Measurement:
    """Measure all stages and the given frameworks; None means all installed ones."""
    split = asked.split
    few = take_sample(split, min(len(split), asked.options.plan_records))
    options, notes = decode_encoded(few.split, asked.options)
    record_s = _probe(few, options, long_s=asked.turn_s / 2)
    sizes = find_image_sizes(few.split, options)
    wanted = choose_records(
        available=len(split),
        batch_size=options.plan_records,
        record_s=record_s,
        turn_s=asked.turn_s,
    )
    sample = take_sample(split, wanted)
    disk = measure_disk(sample.pieces, seconds=asked.seconds)
    paid = Paid(_mega(disk), _micro(inflating_s(sample)), _micro(opening_s(sample.split, options)))
    machine = find_machine({})
    stages = stage_contenders(sample, options)
    trials = list(
        trial_contenders(sample, options, records=len(split), sizes=sizes, machine=machine)
    )
    names = [name for name in FRAMEWORKS if name == "numpy" or chosen is None or name in chosen]
    settings = Settings(
        options=options,
        metadata=asked.dataset.metadata,
        workers=asked.workers,
        worker_epochs=max(1, round(asked.turn_s / 2 / (record_s * sample.records))),
    )
    entries = {name: list(loader_entries(name, sample, settings)) for name in names}
    steps = _Steps(asked, len(stages) + len(trials) + sum(map(len, entries.values())))
    stages = _calibrated(stages, asked, steps)
    loaders = _prepare(entries, asked, steps, is_needed=chosen is not None)
    contenders = [*stages, *loaders.contenders, *_calibrated(trials, asked, steps)]
    timings = race(contenders, seconds=asked.seconds, progress=steps.add_turn)
    return make_measurement(
        Findings(
            name=asked.name,
            split=split,
            sample=sample,
            options=options,
            seconds=asked.seconds,
            workers=asked.workers,
            timings=timings,
            machine=replace(machine, versions={**machine.versions, **loaders.versions}),
            paid=paid,
            entries=tuple(loaders.entries),
            problems=loaders.problems,
            missing=tuple(loaders.missing),
            sizes=sizes,
            notes=notes,
        )
    )


def _probe(few: Sample, options: LoadOptions, *, long_s: float) -> float:
    """Estimate seconds per record, from passes of at least `long_s`."""
    before_s, epochs = _pass_s(few, options, 1), 1
    while True:  # the difference leaves out the cost of opening files
        elapsed_s = _pass_s(few, options, 1 + epochs)
        if elapsed_s > long_s or epochs >= MAX_PROBED:
            return max(elapsed_s - before_s, elapsed_s / 8) / epochs / few.records
        epochs *= 4


def _pass_s(sample: Sample, options: LoadOptions, epochs: int) -> float:
    clock = clock_for(options)
    begun = clock()
    for _ in go_through(sample.split, replace(options, epochs=epochs)):
        pass
    return clock() - begun


def _calibrated(contenders: Iterable[Contender], asked: Asked, steps: _Steps) -> list[Contender]:
    found = []
    for contender in contenders:
        passes = calibrate(contender, turn_s=asked.turn_s)
        found.append(replace(contender, passes=passes))
        steps.add_warm()
    return found


@dataclass(slots=True)
class _Loaders:
    """Loaders ready to be measured, and problems of the others."""

    versions: dict[str, str]
    missing: list[str]
    entries: list[Entry]
    contenders: list[Contender]
    problems: dict[str, str]


def _prepare(
    entries: Mapping[str, Sequence[Entry]], asked: Asked, steps: _Steps, *, is_needed: bool
) -> _Loaders:
    """Import one framework after the other, and try its loaders.

    PyTorch comes first: its workers are best forked before others have threads.
    """
    loaders = _Loaders({}, [], [], [], {})
    for name, some in entries.items():
        version = find_version(name, is_needed=is_needed)
        if version is None:
            loaders.missing.append(name)
            continue
        loaders.versions[FRAMEWORKS[name]] = version
        for entry in some:
            loaders.entries.append(entry)
            try:
                loaders.contenders += _calibrated([entry.make()], asked, steps)
            except Exception as error:  # the others can still be measured
                loaders.problems[entry.name] = first_line(error)
                steps.add_warm()
    return loaders


def _mega(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else bytes_per_s / 1e6


def _micro(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6


Path = str | os.PathLike[str]


def measure(
    dataset: Dataset | Path | Iterable[Path],
    *,
    split: str | None = None,
    batch_size: int = 64,
    seconds: float = 2.0,
    frameworks: Iterable[str] | str | None = None,
    shuffle: Shuffle = True,
    columns: Iterable[str] | None = None,
    threads: int | None = None,
    workers: int = 2,
    map: Callable[..., Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure how fast a dataset is read on this machine, and find the bottleneck.

    One thread runs the stages: read bytes, check CRCs, parse columns, decode images, map records,
    assemble batches. Then the loaders of each installed framework run with all threads. All use
    the same records, a part of the split that fits the time, in alternating turns; medians and
    spreads are reported. Files are cached by then; the speed of the disk is reported separately.

    Records that are no Examples are only read and checked. Damaged records raise an error.

    Args:
        dataset: A dataset or its path.
        split: Split such as "train" or "train[:10%]"; None for "train", or else the first.
        batch_size: Records per batch.
        seconds: Time for each stage and each loader.
        frameworks: Some of "numpy", "torch", "jax" and "tf"; None for all that are installed.
        shuffle: Shuffle mode, as in `to_numpy`.
        columns: Features to read; None for all.
        threads: Threads of the loaders; None for one per core.
        workers: Worker processes of a DataLoader.
        map: Function of a record, as in `to_numpy`; TensorFlow is measured without it.
        progress: Function called with the steps done and the total.

    >>> import datum
    >>> report = datum.write({"x": range(100)}, "hundred", progress=False)
    >>> found = datum.measure("hundred", seconds=0.01, frameworks=["numpy"])
    >>> [stage.name for stage in found.stages]
    ['read', 'crc', 'parse', 'shuffle', 'batch']
    """
    chosen = choose_frameworks(frameworks)
    seconds = _check_seconds(seconds)
    workers = check_count("workers", workers, least=1)
    batch_size = check_count("batch_size", batch_size, least=1)
    options = LoadOptions(
        batch_size=batch_size, shuffle=shuffle, columns=columns, threads=threads, map=map
    )
    opened, unknown = _open(dataset)
    records = _find_split(opened, split)
    asked = Asked(
        name=_name(dataset, opened),
        dataset=opened,
        split=records,
        options=options,
        seconds=seconds,
        workers=workers,
        progress=progress,
    )
    if not opened.schema:
        return check_records(asked, unknown)
    with quiet():
        return measure_records(asked, chosen)


def _check_seconds(seconds: Any) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise wrong_kind("seconds", "a number", seconds)
    if not 0 < seconds < math.inf:
        raise ValueError(
            Message(Text("expected ", Option("seconds"), f" above 0, got {seconds!r}"))
        )
    return float(seconds)


def _open(dataset: Any) -> tuple[Dataset, DatumError | None]:
    """Open a dataset; for records that are no Examples, without features and with the error."""
    if isinstance(dataset, Dataset):
        return dataset, None
    try:
        return load(dataset), None
    except DatumError as error:
        try:
            return load(dataset, schema={}), error
        except DatumError:
            raise error from None


def _name(given: Any, opened: Dataset) -> str:
    """Name of the dataset as given; for a single file its path, not its folder."""
    return os.fspath(given) if isinstance(given, (str, os.PathLike)) else str(opened.path)


def _find_split(dataset: Dataset, name: str | None) -> Split:
    if name is None:
        names = list(dataset)
        name = "train" if "train" in names or not names else names[0]
    split = dataset[name]
    if not len(split):
        others = [other for other, info in dataset.splits.items() if info.records]
        hint = f"there are some in {', '.join(others)}" if others else ""
        raise SplitError(
            f"split {name!r}: expected records to measure with, got none",
            where=dataset.path,
            hint=hint,
        )
    return split
