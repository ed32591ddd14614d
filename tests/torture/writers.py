"""Attacks on whatever writes: killed, refused by the system, raced, or with its source changed."""

from __future__ import annotations

import collections
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

import datum
from tests.torture import data
from tests.torture.harness import (
    REFUSALS,
    Attack,
    End,
    Files,
    Round,
    Violation,
    difference,
    files_of,
    reach,
    strike,
)

COUNT = 240
PAGE = 4096  # bytes
_DATASET = "out/data"
_OF_OTHERS = ("notes.txt", "train-00000-of-00003.tfrecord.new", "datum.json.new")


@dataclass(frozen=True)
class Call:
    """One call that writes, with its options, in a folder that has what it reads in `in`.

    Attributes:
        operation: which call it is.
        source: what is written.
        options: those that the bytes may depend on.
        workers: of those they must not.
        version: of the data that is written.
    """

    operation: Operation
    source: str
    options: tuple[tuple[str, Any], ...]
    workers: int
    version: int = 1

    def prepare(self, folder: Path) -> None:
        """Make what is there before the call."""
        (folder / "in").mkdir(parents=True)
        (folder / "out").mkdir()
        (folder / "out" / "mine.partial").write_text("of somebody else")
        prepare_source(self.source, folder / "in", self.version)
        self.operation.prepare(folder)

    def run(self, folder: Path, overwrite: bool = False) -> None:
        """Make the call."""
        options = dict(self.options)
        if self.operation.takes_workers:
            options["workers"] = self.workers
        if overwrite and self.operation.takes_overwrite:
            options["overwrite"] = True
        self.operation.run(folder, self, options)

    @property
    def key(self) -> str:
        """The name of what it gives: that does not depend on the number of workers."""
        options = "-".join(f"{name}={value}" for name, value in self.options)
        return f"{self.operation.name}-{self.source}-{self.version}-{options}".replace("/", ".")


@dataclass(frozen=True)
class Operation:
    """A kind of call that writes.

    Attributes:
        name: what is done to what.
        run: makes the call in a folder.
        prepare: makes what must be there before it, beside the source.
        target: what the call makes.
        sources: what it can be given.
        options: sets of options to choose from.
        takes_workers: whether it has the option `workers`.
        takes_overwrite: whether it has the option `overwrite`; else it adds to what is there.
    """

    name: str
    run: Callable[[Path, Call, dict[str, Any]], object]
    prepare: Callable[[Path], object] = lambda folder: None
    target: str = _DATASET
    sources: tuple[str, ...] = ("",)
    options: tuple[dict[str, Any], ...] = ({},)
    takes_workers: bool = True
    takes_overwrite: bool = True

    def __str__(self) -> str:
        return self.name


def prepare_source(source: str, folder: Path, version: int) -> None:
    """Make the files of a source, if it has any."""
    if source == "csv":
        data.make_csv(folder / "table.csv", version, COUNT)
    elif source == "images":
        data.make_images(folder / "images", version, 60)


def open_source(source: str, folder: Path, version: int) -> Any:
    """What `datum.write` is given."""
    if source in ("csv", "images"):
        return folder / {"csv": "table.csv", "images": "images"}[source]
    makers = {"rows": data.make_rows, "columns": data.make_columns, "generator": data.Generator}
    return {**makers, "mapped": data.Mapped}[source](version, COUNT)


def _write(folder: Path, call: Call, options: dict[str, Any]) -> None:
    source = open_source(call.source, folder / "in", call.version)
    datum.write(source, folder / _DATASET, progress=False, **options)


def _write_old(folder: Path, **options: Any) -> None:
    """The dataset that is there before, of version 0."""
    datum.write(data.make_rows(0, COUNT), folder / _DATASET, shards=3, progress=False, **options)


def _write_old_with_files(folder: Path) -> None:
    _write_old(folder)
    for name in _OF_OTHERS:
        (folder / _DATASET / name).write_text("of somebody else")


def _write_input(folder: Path) -> None:
    datum.write(data.make_rows(0, COUNT), folder / "in/data", shards=3, progress=False)


def _write_images_input(folder: Path) -> None:
    data.make_images(folder / "in/images", 0, 60)
    datum.write(folder / "in/images", folder / "in/data", shards=3, progress=False)


def _write_damaged(folder: Path) -> None:
    _write_input(folder)
    shard = sorted((folder / "in/data").glob("*.tfrecord"))[1]
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)


def _reshard(folder: Path, call: Call, options: dict[str, Any]) -> None:
    datum.reshard(folder / "in/data", folder / _DATASET, progress=False, **options)


def _repair(folder: Path, call: Call, options: dict[str, Any]) -> None:
    datum.repair(folder / "in/data", folder / _DATASET, progress=False, **options)


def _export(folder: Path, call: Call, options: dict[str, Any]) -> None:
    datum.export_to(folder / "in/data", folder / "out/files", **options)


_SOURCES = ("rows", "columns", "csv", "images", "generator", "mapped")
_WRITE_OPTIONS = (
    {"shards": 4},
    {"shards": 4, "shuffle": False},
    {"shards": 3, "compression": "gzip"},
    {"records_per_shard": 20, "compression": "gzip", "shuffle": False},
    {"shards": {"train": 4, "val": 2}, "splits": {"train": 0.8, "val": 0.2}},
    {"shard_bytes": 4000, "sidecars": ("tfds",)},
)
OPERATIONS = (
    Operation("write", _write, sources=_SOURCES, options=_WRITE_OPTIONS),
    Operation(
        "overwrite",
        _write,
        _write_old_with_files,
        sources=_SOURCES,
        options=tuple({**options, "overwrite": True} for options in _WRITE_OPTIONS),
    ),
    Operation(
        "append",
        _write,
        _write_old,
        sources=("rows", "columns", "generator"),
        options=({"append": True}, {"append": True, "shards": 2, "shuffle": False}),
        takes_overwrite=False,
    ),
    Operation(
        "reshard",
        _reshard,
        _write_input,
        options=({"shards": 5}, {"shards": 2, "compression": "gzip", "shuffle": True}),
    ),
    Operation("repair", _repair, _write_damaged, options=({}, {"deep": True})),
    Operation(
        "export",
        _export,
        _write_input,
        "out/files",
        options=({"format": "parquet"}, {"format": "jsonl"}),
        takes_workers=False,
    ),
    Operation(
        "export images",
        _export,
        _write_images_input,
        "out/files",
        options=({"format": "images"},),
        takes_workers=False,
    ),
)


@dataclass(frozen=True)
class Undisturbed:
    """What a call gives that nothing disturbs.

    Attributes:
        folder: as it is before the call.
        before: the files of that.
        after: the files after the call.
        later: the files after the next call, which replaces or adds to what the first has made.
        contents: what a reader may find in the target, with the words for it.
        pages: the room that is taken after it.
        largest: the bytes of the largest file after it.
        steps: how many steps on the file system the call takes.
        seconds: how long it takes.
    """

    folder: Path
    before: Files
    after: Files
    later: Files
    contents: dict[Any, str]
    pages: int
    largest: int
    steps: int
    seconds: float


def find_undisturbed(this: Round, call: Call) -> Undisturbed:
    """Make the call with one worker where nothing disturbs it, once in a run of the harness."""
    folder = this.cache / call.key
    if call.key not in _undisturbed:
        shutil.rmtree(folder, ignore_errors=True)
        alone = replace(call, workers=1)
        _undisturbed[call.key] = this.finish(_call_undisturbed, alone, folder)
    return _undisturbed[call.key]


_undisturbed: dict[str, Undisturbed] = {}


def _call_undisturbed(call: Call, folder: Path) -> Undisturbed:
    start = folder / "start"
    call.prepare(start)
    trial = folder / "trial"
    shutil.copytree(start, trial)
    target = trial / call.operation.target
    contents = {read_contents(target): "the old one"}
    count_steps = strike(-1, None)
    started, steps = time.monotonic(), count_steps()
    call.run(trial)
    steps, seconds = count_steps() - steps, time.monotonic() - started
    after = files_of(trial)
    pages = pages_of(trial / "out")
    largest = max(path.stat().st_size for path in (trial / "out").rglob("*"))
    contents.setdefault(read_contents(target), "the new one")
    call.run(trial, overwrite=True)
    later = files_of(trial)
    contents.setdefault(read_contents(target), "the next one")
    shutil.rmtree(trial)
    before = files_of(start)
    return Undisturbed(start, before, after, later, contents, pages, largest, steps, seconds)


def read_contents(target: Path) -> Any:
    """All records of a dataset, counted; "no dataset" where there is none."""
    try:
        dataset = datum.load(target)
    except datum.ManifestError as error:
        if "no such folder" in str(error) or "expected a dataset" in str(error):
            return "no dataset"
        raise
    found: collections.Counter[Any] = collections.Counter()
    for name in dataset.splits:
        for row in dataset[name]:
            found[tuple(repr(value) for value in row.values())] += 1
    return frozenset(found.items())


def choose_call(this: Round, operation: Operation) -> Call:
    """A call with options by chance."""
    return Call(
        operation,
        this.choose(source=operation.sources),
        tuple(this.choose(options=operation.options).items()),
        this.choose(workers=(1, 2, 4)),
    )


def watch(target: Path, contents: dict[Any, str]) -> dict[str, int]:
    """In a process of its own: read the target again and again, until the harness says so."""
    found: collections.Counter[str] = collections.Counter()
    while not _is_stopped:
        try:
            seen = read_contents(target)
        except datum.DatumError as error:
            if "replaced" not in str(error):
                raise
            found["told that it was replaced"] += 1
            continue
        if seen not in contents:
            what = seen if seen == "no dataset" else f"{sum(n for _, n in seen)} records"
            raise Violation(f"a reader saw neither the old dataset nor the new one: {what}")
        if seen == "no dataset":
            time.sleep(0.001)
        else:
            found[contents[seen]] += 1
    return dict(found)


_is_stopped = False


def _stop(*_: object) -> None:
    global _is_stopped
    _is_stopped = True


@contextlib.contextmanager
def watched(this: Round, target: Path, contents: dict[Any, str]) -> Iterator[None]:
    """Have a reader look at the target meanwhile: it sees the old dataset, the new one, or none."""

    def look() -> dict[str, int]:
        signal.signal(signal.SIGUSR1, _stop)
        reach(waits=False)
        return watch(target, contents)

    reader = this.start(look)
    reader.wait_for_word()
    yield
    if reader.is_running():
        os.kill(reader.pid, signal.SIGUSR1)
    end = reader.wait()
    if not end.is_done:
        raise Violation(f"a reader that looked on: {end}")
    this.tally["datasets read while a writer was at work or killed"] += sum(end.value.values())


def check_target(expected: Undisturbed, folder: Path, call: Call) -> bool:
    """Whether the target is the new one; Violation if it is neither that nor the old one.

    What is added to a dataset is moved in first, and belongs to it only with the new manifest.
    Files of others may come back with the next call only.
    """
    name = call.operation.target

    def within(files: Files) -> Files:
        found = {path: one for path, one in files.items() if path.startswith(f"{name}/")}
        return {path: one for path, one in found.items() if Path(path).name not in _OF_OTHERS}

    found, before = within(files_of(folder)), within(expected.before)
    if found == within(expected.after):
        return True
    if not call.operation.takes_overwrite:
        found = {path: one for path, one in found.items() if path in before}
    if wrong := difference(before, found):
        raise Violation(f"the target is neither the old one nor the new one: {wrong}")
    return False


def check_next_call(this: Round, expected: Undisturbed, folder: Path, call: Call) -> str:
    """Make the call again, undisturbed: it ends with the same bytes, and leaves nothing else."""
    is_new = check_target(expected, folder, call)
    this.finish(call.run, folder, is_new)
    if wrong := difference(expected.later if is_new else expected.after, files_of(folder)):
        raise Violation(f"after the next call: {wrong}")
    return "published before; the next call clears up" if is_new else "resumed to identical bytes"


def copy_start(this: Round, expected: Undisturbed) -> Path:
    folder = this.folder / "work"
    shutil.copytree(expected.folder, folder)
    return folder


def kill_at_random(this: Round, call: Call, folder: Path, expected: Undisturbed) -> End:
    """Start the call and kill it: at a step by number, or within the time that it takes."""
    if this.random.random() < 0.6:
        step = this.random.randint(1, max(1, expected.steps))
        this.note(killed_at_step=f"{step} of {expected.steps}")
        child = this.start(_struck_call, call, folder, step, None)
        child.wait()
    else:
        delay_s = this.random.random() * expected.seconds
        this.note(killed_after_s=f"{delay_s:.3f}")
        child = this.start(call.run, folder)
        time.sleep(delay_s)
        child.kill()
    end = child.wait()
    this.tally["writers killed"] += end.signal == "SIGKILL"
    if end.signal and end.signal != "SIGKILL":
        end.check()
    return end


def _struck_call(call: Call, folder: Path, step: int, fault: int | None) -> None:
    strike(step, fault)
    call.run(folder)


def kill(operation: Operation) -> Callable[[Round], str]:
    def run(this: Round) -> str:
        call = choose_call(this, operation)
        expected = find_undisturbed(this, call)
        folder = copy_start(this, expected)
        with watched(this, folder / operation.target, expected.contents):
            for _ in range(this.random.choice((1, 1, 2, 3))):
                kill_at_random(this, call, folder, expected)
                if check_target(expected, folder, call):
                    break
            return check_next_call(this, expected, folder, call)

    return run


def kill_worker(this: Round) -> str:
    call = Call(
        OPERATIONS[0],
        "mapped",
        tuple(this.choose(options=_WRITE_OPTIONS).items()),
        this.choose(workers=(2, 4)),
    )
    expected = find_undisturbed(this, call)
    folder = copy_start(this, expected)
    child = this.start(call.run, folder)
    kills = this.choose(kills=(1, 1, 2, 5))
    after_s = this.random.random() * 0.2
    while child.is_running() and kills:
        if workers := child.workers():
            time.sleep(after_s)
            with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended meanwhile
                this.random.choice(workers).kill()
                this.tally["workers killed"] += 1
                kills -= 1
    end = child.wait()
    end.check()
    if end.is_done and (wrong := difference(expected.after, files_of(folder))):
        raise Violation(f"after a worker was replaced: {wrong}")
    if end.is_done:
        return "work of the dead done again"
    check_next_call(this, expected, folder, call)
    return f"{end.error}, then resumed to identical bytes"


def refuse(this: Round) -> str:
    call = choose_call(this, this.choose(operation=OPERATIONS))
    expected = find_undisturbed(this, call)
    folder = copy_start(this, expected)
    step = this.random.randint(1, max(1, expected.steps))
    fault = this.random.choice(REFUSALS)
    this.note(refused=f"step {step} of {expected.steps}: {os.strerror(fault)}")
    with watched(this, folder / call.operation.target, expected.contents):
        end = this.start(_struck_call, call, folder, step, fault).wait()
        return check_refused(this, end, expected, folder, call)


def check_refused(this: Round, end: End, expected: Undisturbed, folder: Path, call: Call) -> str:
    end.check()
    this.tally["writes refused by the system"] += not end.is_done
    is_new = check_target(expected, folder, call)
    if end.is_done and not is_new:
        raise Violation("the call returned, but has not published anything")
    if end.is_done and not difference(expected.after, files_of(folder)):
        return "written all the same"
    if is_new and not end.is_done:  # what is published, is: a failure to clear up is no failure
        outcome = f"{end.error} after publishing"
    else:
        outcome = "typed error, then resumed to identical bytes"
    check_next_call(this, expected, folder, call)
    return outcome


def fill_disk(this: Round) -> str:
    call = choose_call(this, this.choose(operation=OPERATIONS))
    expected = find_undisturbed(this, call)
    folder = copy_start(this, expected)
    share = this.random.random()
    if os.geteuid() == 0 and this.random.random() < 0.7:
        taken, needed = pages_of(folder / "out"), expected.pages
        room = (taken + 1 + int(1.2 * needed * share)) * PAGE
        this.note(disk=f"{room} bytes")
        with small_disk(this, folder / "out", room) as grow:
            if grow is not None:
                end = this.start(call.run, folder).wait()
                grow()
                return check_refused(this, end, expected, folder, call)
    limit = int(expected.largest * share)
    this.note(limit=f"{limit} bytes a file")
    end = this.start(_limited_call, call, folder, limit).wait()
    return check_refused(this, end, expected, folder, call)


def pages_of(folder: Path) -> int:
    """The room that files take on a disk in memory."""
    return sum(-(-path.stat().st_size // PAGE) for path in folder.rglob("*") if path.is_file())


def _limited_call(call: Call, folder: Path, limit: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        call.run(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)


@contextlib.contextmanager
def small_disk(this: Round, folder: Path, nbytes: int) -> Iterator[Callable[[], None] | None]:
    """A disk of this size in place of a folder; gives what makes it larger, None without leave."""
    aside = this.folder / "aside"
    folder.rename(aside)
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={nbytes}", "tmpfs", str(folder)]
    is_there = subprocess.run(options, capture_output=True, check=False).returncode == 0
    if not is_there:
        folder.rmdir()
        aside.rename(folder)
        yield None
        return

    def grow() -> None:
        command = ["mount", "-o", "remount,size=64m", str(folder)]
        subprocess.run(command, check=True, capture_output=True)

    try:
        shutil.copytree(aside, folder, dirs_exist_ok=True)
        yield grow
    finally:
        this.end_processes()
        shutil.rmtree(aside)
        shutil.copytree(folder, aside)  # what a failure is told by
        subprocess.run(["umount", str(folder)], check=True, capture_output=True)
        folder.rmdir()
        aside.rename(folder)


def race(this: Round) -> str:
    operation = this.choose(operation=OPERATIONS[:2])
    options = tuple(this.choose(options=operation.options).items())
    calls = [
        Call(operation, "rows", options, this.choose(workers=(1, 2)), version) for version in (1, 2)
    ]
    expected = [find_undisturbed(this, call) for call in calls]
    folder = copy_start(this, expected[0])
    with watched(this, folder / operation.target, expected[0].contents | expected[1].contents):
        first = this.start(calls[0].run, folder)
        time.sleep(this.random.random() * expected[0].seconds)
        ends = [child.wait() for child in (first, this.start(calls[1].run, folder))]
    this.tally["races of two writers"] += 1
    for end in ends:
        end.check()
    if not any(end.is_done for end in ends):
        raise Violation(f"of two writers none wins: {' / '.join(map(str, ends))}")
    found = files_of(folder)
    wrong = [
        difference(one.after, found) for one, end in zip(expected, ends, strict=True) if end.is_done
    ]
    if all(wrong):
        raise Violation(f"after two writers: {wrong[0]}")
    return "one wins, the other is refused" if len(wrong) == 1 else "one after the other"


def change_source(this: Round) -> str:
    operation = this.choose(operation=OPERATIONS[:2])
    source = this.choose(source=("csv", "images"))
    options = tuple(this.choose(options=operation.options).items())
    call = Call(operation, source, options, this.choose(workers=(1, 2)))
    changed = Call(operation, source, options, call.workers, version=2)
    expected, wanted = find_undisturbed(this, call), find_undisturbed(this, changed)
    folder = copy_start(this, expected)
    step = this.random.randint(expected.steps // 3, max(1, expected.steps))
    this.note(killed_at_step=f"{step} of {expected.steps}")
    this.start(_struck_call, call, folder, step, None).wait()
    this.tally["writers killed"] += 1
    if check_target(expected, folder, call):
        return "published before the change"
    is_hidden = this.choose(times_restored=(True, False))
    for path in sorted((folder / "in").rglob("*")):
        if path.is_file():
            times = path.stat()
            other = wanted.folder / path.relative_to(folder)
            path.write_bytes(other.read_bytes())
            if is_hidden:
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    this.finish(changed.run, folder)
    if wrong := difference(wanted.after, files_of(folder)):
        raise Violation(f"the source was changed after a kill: {wrong}")
    return "written from the changed source"


ATTACKS = (
    *(
        Attack(
            f"kill-{operation.name.replace(' ', '-')}",
            "the old target or the new one; the same call again ends with identical bytes",
            kill(operation),
        )
        for operation in OPERATIONS
    ),
    Attack("kill-worker", "its work is done again, or a typed error; no hang", kill_worker),
    Attack("refuse-step", "a typed error; the old target stays; the same call resumes", refuse),
    Attack("fill-disk", "a typed error; the old target stays; the same call resumes", fill_disk),
    Attack("race-writers", "one wins, the other is refused; readers see a whole", race),
    Attack("change-source", "nothing of the old source is taken over", change_source),
)
