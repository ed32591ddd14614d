"""The course of a measurement: a sample, contenders made warm, a race, and what it tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from datum.dataset import Dataset
from datum.errors import DatumError
from datum.loading import LoadOptions
from datum.measuring.disk import inflating_s, measure_disk, opening_s
from datum.measuring.frameworks import FRAMEWORKS, find_version
from datum.measuring.loaders import Entry, Settings, loader_entries
from datum.measuring.machine import find_machine
from datum.measuring.measurement import Measurement, Paid
from datum.measuring.pictures import decode_encoded, find_image_sizes
from datum.measuring.report import Findings, first_line, make_measurement
from datum.measuring.sample import Sample, choose_records, take_sample
from datum.measuring.stages import clock_for, go_through, stage_contenders
from datum.measuring.timing import ROUNDS, Contender, calibrate, race
from datum.measuring.trials import trial_contenders
from datum.reading import Split

__all__ = ["Asked", "check_records", "measure_records"]

MAX_PROBED = 1024  # epochs of one batch
CHECKED_BYTES = 32 * 2**20  # of records that are no Examples


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be measured, and how; `name` is what the user calls the dataset."""

    name: str
    dataset: Dataset
    split: Split
    options: LoadOptions
    seconds: float
    workers: int
    progress: Callable[[int, int], None] | None

    @property
    def turn_s(self) -> float:
        """How long a turn takes."""
        return self.seconds / ROUNDS


class _Steps:
    """Tells how far it has come: contenders are made warm, and then have their turns."""

    def __init__(self, asked: Asked, planned: int) -> None:
        self._tell = asked.progress or (lambda _done, _total: None)
        self._planned = planned
        self._warm = 0
        self._tell(0, planned * (1 + ROUNDS))

    def add_warm(self) -> None:
        """One contender is warm, or cannot be."""
        self._warm = min(self._warm + 1, self._planned)
        self._tell(self._warm, self._planned * (1 + ROUNDS))

    def add_turn(self, done: int, total: int) -> None:
        """So many turns are over."""
        self._tell(self._planned + done, self._planned + total)


def check_records(asked: Asked, unknown: DatumError | None) -> Measurement:
    """Read and check records that are no Examples, of whose content nothing is known."""
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
            notes=(f"records were only read and checked, since they are no Examples{reason}",),
        )
    )


def measure_records(asked: Asked, chosen: list[str] | None) -> Measurement:
    """Measure all stages, and the frameworks that were chosen; None for those that are here."""
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
    """About how many seconds a record takes; what takes `long_s` is believed."""
    before_s, epochs = _pass_s(few, options, 1), 1
    while True:  # what it takes to open files is in both times, so it is not counted
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
    """Loaders that are warm, and what is in the way of the others."""

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
            except Exception as error:  # whatever it is: the others can be measured
                loaders.problems[entry.name] = first_line(error)
                steps.add_warm()
    return loaders


def _mega(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else bytes_per_s / 1e6


def _micro(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6
