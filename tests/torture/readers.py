"""Attacks on readers: files that are cut, rewritten, replaced or removed while they are read."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import datum
from tests.torture import data
from tests.torture.data import Record
from tests.torture.harness import Attack, Round, Violation, files_of, reach

COUNT = 480
SHARDS = 4
KINDS = ("dataset", "gzip dataset", "files", "gzip files")

Given = tuple[Any, Callable[[Any], list[Record]]]  # what a reader gives, and how it is looked at


@dataclass(frozen=True)
class Reading:
    """How a dataset is read.

    Attributes:
        reader: the name of the reader, in READERS.
        on_error: "raise" or "skip".
        batch_size: of readers that have batches.
        options: more for loaders.
        seed: of the order in which single records are read.
    """

    reader: str
    on_error: str
    batch_size: int
    options: tuple[tuple[str, Any], ...]
    seed: int


@dataclass(frozen=True)
class Found:
    """What a reader gave.

    Attributes:
        records: in the order they came.
        changed: how many batches changed after they were handed out.
        skipped: how many records it says that it left out.
        error: the class of the error that ended it; empty if it came to the end.
        text: the message of that.
    """

    records: list[Record]
    changed: int = 0
    skipped: int = 0
    error: str = ""
    text: str = ""


def _by_number(dataset: datum.Dataset, how: Reading) -> Iterator[Given]:
    split = dataset["train"]
    numbers = list(range(COUNT))
    Random(how.seed).shuffle(numbers)
    for number in numbers:
        yield split[number], lambda row: [data.record_of(row)]


def _rows(dataset: datum.Dataset, how: Reading) -> Iterator[Given]:
    for row in dataset["train"]:
        yield row, lambda row: [data.record_of(row)]


def _batches(dataset: datum.Dataset, how: Reading) -> Iterator[Given]:
    for batch in dataset["train"].batches(how.batch_size):
        yield batch, data.records_of


def _to_numpy(dataset: datum.Dataset, how: Reading) -> Iterator[Given]:
    loader = dataset.to_numpy(batch_size=how.batch_size, on_error=how.on_error, **dict(how.options))
    for batch in loader:
        yield batch, data.records_of
    yield loader.report.skipped, lambda _: []


def _torch_records(batch: dict[str, Any]) -> list[Record]:
    arrays = {name: batch[name].numpy() for name in ("id", "version", "x")}
    return data.records_of({**batch, **arrays})


def _to_torch(dataset: datum.Dataset, how: Reading) -> Iterator[Given]:
    loader = dataset.to_torch(batch_size=how.batch_size, on_error=how.on_error, **dict(how.options))
    for batch in loader:
        yield batch, _torch_records
    yield loader.report.skipped, lambda _: []


def _torch_workers(dataset: datum.Dataset, how: Reading) -> Iterator[Given]:
    from torch.utils.data import DataLoader

    loader = dataset.to_torch(batch_size=how.batch_size, on_error=how.on_error, **dict(how.options))
    for batch in DataLoader(loader, batch_size=None, num_workers=2):
        yield batch, _torch_records


def _to_tf(dataset: datum.Dataset, how: Reading, engine: str) -> Iterator[Given]:
    options = {name: value for name, value in how.options if name != "threads"}
    loader = dataset.to_tf(
        batch_size=how.batch_size, on_error=how.on_error, engine=engine, **options
    )
    for batch in loader:
        yield batch, lambda batch: data.records_of({k: v.numpy() for k, v in batch.items()})


READERS: dict[str, Callable[[datum.Dataset, Reading], Iterator[Given]]] = {
    "records by number": _by_number,
    "rows": _rows,
    "batches": _batches,
    "to_numpy": _to_numpy,
    "to_torch": _to_torch,
    "to_torch in workers": _torch_workers,
    "to_tf native": lambda dataset, how: _to_tf(dataset, how, "native"),
    "to_tf graph": lambda dataset, how: _to_tf(dataset, how, "graph"),
}
CAN_SKIP = ("to_numpy", "to_torch")
# A file is not what it was: as the native engine and the graph tell it.
_OF_TENSORFLOW = ("InvalidArgumentError", "DataLossError", "NotFoundError")


def read(folder: Path, how: Reading, pause_at: int = -1, waits: bool = False) -> Found:
    """In a process of its own: read all there is, and look twice at whatever was handed out.

    Before batch `pause_at` it says so to the harness.
    """
    kept: list[tuple[Any, Callable[[Any], list[Record]], list[Record]]] = []
    error, text, skipped = "", "", 0
    try:
        dataset = datum.load(folder, on_error=how.on_error)
        if pause_at == 0:
            reach(waits=waits)
        for number, (given, look) in enumerate(READERS[how.reader](dataset, how), start=1):
            if isinstance(given, int):
                skipped = given
                break
            kept.append((given, look, copy.deepcopy(look(given))))
            if number == pause_at:
                reach(waits=waits)
    except Exception as raised:
        found = typed(raised, folder)
        if found is None:
            raise
        error, text = type(found).__name__, str(found)
    changed = sum(look(given) != before for given, look, before in kept)
    records = [record for _, _, before in kept for record in before]
    return Found(records, changed, skipped, error, text)


def read_twice(
    undisturbed: Path, folder: Path, how: Reading, pause_at: int, waits: bool
) -> tuple[Found, Found]:
    """In a process of its own: read a dataset that nobody touches, then one that is disturbed."""
    return read(undisturbed, how), read(folder, how, pause_at, waits)


def typed(error: BaseException, folder: Path) -> BaseException | None:
    """The error of Datum in one that a framework has wrapped, or an error of TensorFlow that names
    the dataset or one of its files."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, datum.DatumError):
        found = found.__cause__ or found.__context__
    is_of_tensorflow = type(error).__name__ in _OF_TENSORFLOW and names_file(str(error), folder)
    return error if found is None and is_of_tensorflow else found


def names_file(text: str, folder: Path) -> bool:
    """Whether a message names a dataset, or a file that was made of one of its shards."""
    return any(name in text for name in (str(folder), ".tfrecord", ".index"))


def verify(folder: Path, pause_at: int = -1, waits: bool = False) -> str:
    """In a process of its own: what a verification says, while the harness disturbs it."""

    has_paused = pause_at < 0

    def tell(done: int, total: int) -> None:
        nonlocal has_paused
        if not has_paused and done >= pause_at:
            has_paused = True
            reach(waits=waits)

    dataset = datum.load(folder)
    report = dataset.verify(progress=tell)
    return "sound" if report.is_sound else "problems"


# How files are disturbed: each takes the round, the folder, and another version of it.


def _shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("train-*"))


def _pick(this: Round, folder: Path) -> Path:
    return this.random.choice(_shards(folder))


def _truncate(this: Round, folder: Path, other: Path) -> None:
    path = _pick(this, folder)
    os.truncate(path, this.random.randrange(path.stat().st_size))


def _grow(this: Round, folder: Path, other: Path) -> None:
    path = _pick(this, folder)
    content = path.read_bytes()
    extra = this.random.choice((content, bytes(5000), this.random.randbytes(3000)))
    with path.open("ab") as file:
        file.write(extra)


def _rewrite(this: Round, folder: Path, other: Path) -> None:
    for path in this.random.sample(_shards(folder), this.random.randint(1, SHARDS)):
        with path.open("r+b") as file:
            file.write((other / path.name).read_bytes())
            file.truncate()


def _rewrite_restored(this: Round, folder: Path, other: Path) -> None:
    path = _pick(this, folder)
    times = path.stat()
    with path.open("r+b") as file:
        file.write((other / path.name).read_bytes())
        file.truncate()
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _replace(this: Round, folder: Path, other: Path) -> None:
    for path in this.random.sample(_shards(folder), this.random.randint(1, SHARDS)):
        new = path.with_name("replacement")
        shutil.copyfile(other / path.name, new)
        new.rename(path)


def _swap(this: Round, folder: Path, other: Path) -> None:
    one, two = this.random.sample(_shards(folder), 2)
    aside = one.with_name("aside")
    one.rename(aside)
    two.rename(one)
    aside.rename(two)


def _swap_contents(this: Round, folder: Path, other: Path) -> None:
    one, two = this.random.sample(_shards(folder), 2)
    contents = two.read_bytes(), one.read_bytes()
    for path, content in zip((one, two), contents, strict=True):
        with path.open("r+b") as file:
            file.write(content)
            file.truncate()


def _delete(this: Round, folder: Path, other: Path) -> None:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    for path in this.random.sample(files, this.random.randint(1, 2)):
        path.unlink()


def _flip(this: Round, folder: Path, other: Path) -> None:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    path = this.random.choice([*files, *_shards(folder)])
    for _ in range(this.random.choice((1, 1, 8))):
        with path.open("r+b") as file:
            at = this.random.randrange(path.stat().st_size)
            file.seek(at)
            byte = file.read(1)[0] ^ (1 << this.random.randrange(8))
            file.seek(at)
            file.write(bytes([byte]))


def _zero(this: Round, folder: Path, other: Path) -> None:
    path = _pick(this, folder)
    with path.open("r+b") as file:
        file.seek(this.random.randrange(path.stat().st_size))
        file.write(bytes(min(4096, path.stat().st_size - file.tell())))


def _replace_folder(this: Round, folder: Path, other: Path) -> None:
    new = folder.with_name("new")
    shutil.copytree(other, new)
    folder.rename(folder.with_name("old"))
    new.rename(folder)


def _overwrite(this: Round, folder: Path, other: Path) -> None:
    """As Datum does."""
    this.finish(overwrite, folder, other)


def overwrite(folder: Path, other: Path) -> None:
    """In a process of its own: put the other version in the place of a dataset."""
    datum.reshard(other, folder, shards=SHARDS, overwrite=True, progress=False)


def _replace_in_folder(this: Round, folder: Path, other: Path) -> None:
    """As rsync does: each file by itself."""
    files = [path for path in sorted(other.rglob("*")) if path.is_file()]
    this.random.shuffle(files)
    for path in files:
        new = folder / "incoming"
        shutil.copyfile(path, new)
        new.rename(folder / path.relative_to(other))


DISTURBANCES: dict[str, Callable[[Round, Path, Path], None]] = {
    "truncate": _truncate,
    "grow": _grow,
    "rewrite": _rewrite,
    "rewrite-restored": _rewrite_restored,
    "replace": _replace,
    "swap": _swap,
    "swap-contents": _swap_contents,
    "delete": _delete,
    "flip": _flip,
    "zero": _zero,
    "replace-folder": _replace_folder,
    "replace-files": _replace_in_folder,
    "overwrite": _overwrite,
}


def find_datasets(this: Round, kind: str) -> tuple[Path, Path]:
    """Two versions of a dataset, made once in a run of the harness."""
    folder = this.cache / kind.replace(" ", "-")
    if not folder.exists():
        for version in (1, 2):
            this.finish(make_dataset, folder / f"{version}", kind, version)
    return folder / "1", folder / "2"


def make_dataset(folder: Path, kind: str, version: int) -> None:
    """A dataset of a version, or the same files without all that Datum knows of them."""
    datum.write(
        data.make_rows(version, COUNT),
        folder,
        shards=SHARDS,
        shuffle=False,
        compression="gzip" if "gzip" in kind else None,
        progress=False,
    )
    if "files" in kind:
        (folder / "datum.json").unlink()
        shutil.rmtree(folder / "index")


def choose_reading(this: Round, reader: str) -> Reading:
    """How to read, by chance."""
    shuffle = this.random.choice((False, True, "full", "blocks"))
    options = {"shuffle": shuffle, "seed": this.random.randrange(9)}
    if this.random.random() < 0.3:
        options["threads"] = this.random.choice((1, 2, 4))
    how = Reading(
        reader,
        this.random.choice(("raise", "skip")) if reader in CAN_SKIP else "raise",
        this.random.choice((1, 7, 32, 100)),
        tuple(options.items()),
        this.random.randrange(100),
    )
    this.note(reading=how)
    return how


def choose_disturbance(this: Round, kind: str) -> str:
    """One by chance; Datum overwrites only what it has written."""
    names = [name for name in DISTURBANCES if name != "overwrite" or "files" not in kind]
    return this.choose(disturbance=names)


def disturb(reader: str) -> Callable[[Round], str]:
    def run(this: Round) -> str:
        kind = this.choose(kind=KINDS)
        name = choose_disturbance(this, kind)
        how = choose_reading(this, reader)
        one, other = find_datasets(this, kind)
        folder = this.folder / "data"
        shutil.copytree(one, folder)
        batches = COUNT if reader in ("records by number", "rows") else COUNT // how.batch_size
        pause_at = this.random.choice((0, 0, 1, this.random.randint(0, batches)))
        waits = this.choose(waits=(True, True, False))
        this.note(before_batch=pause_at)
        child = this.start(read_twice, one, folder, how, pause_at, waits)
        child.wait_for_word()
        DISTURBANCES[name](this, folder, other)
        child.answer()
        end = child.wait()
        this.tally["epochs read while files changed"] += 1
        this.tally[f"{name} under a reader"] += 1
        end.check()
        whole, found = end.value
        if whole.error or len(whole.records) != COUNT:
            raise Violation(f"nothing disturbs it, but: {whole.error} {whole.text}")
        if name in IN_PLACE and not waits and is_noticed_late(whole.records, found):
            return f"{found.error}, some records late"
        return check(whole.records, found, how)

    return run


# A file that is written to in place is noticed within 20 milliseconds, not at once: concepts/
# guarantees.md. A reader that does not wait may be faster.
IN_PLACE = ("rewrite", "rewrite-restored", "swap-contents")


def is_noticed_late(whole: list[Record], found: Found) -> bool:
    """Whether a reader returned undisturbed records, then others, then an error."""
    pairs = enumerate(zip(found.records, whole, strict=False))
    first = next((number for number, (one, two) in pairs if one != two), 0)
    return bool(found.error and first and not found.changed)


def check(whole: list[Record], found: Found, how: Reading) -> str:
    """What kind of result this is; Violation if it is none that may be."""
    if found.changed:
        raise Violation(f"{found.changed} batches changed after they were handed out")
    versions = {record[1] for record in found.records}
    if len(versions) > 1:
        raise Violation(f"a mixture of versions {sorted(versions)}; {found.error or 'no error'}")
    if versions and versions != {whole[0][1]}:
        raise Violation(f"{len(found.records)} records of a version that was not opened")
    known = set(whole)
    if strange := [record for record in found.records if record not in known]:
        raise Violation(f"{len(strange)} records that were never there, the first: {strange[0]}")
    if found.records == whole and not found.error:
        return "undisturbed"
    return check_skipped(whole, found) if how.on_error == "skip" else check_raised(whole, found)


def check_raised(whole: list[Record], found: Found) -> str:
    if found.records != whole[: len(found.records)]:
        raise Violation(f"not the undisturbed records before {found.error or 'the end'}")
    if not found.error:
        raise Violation(f"{len(found.records)} of {len(whole)} records, and no error")
    return found.error


def check_skipped(whole: list[Record], found: Found) -> str:
    if not is_part(found.records, whole):
        raise Violation("with on_error='skip': not the order of an undisturbed epoch")
    if not found.error and len(found.records) + found.skipped != len(whole):
        raise Violation(
            f"with on_error='skip': {len(found.records)} records given and {found.skipped}"
            f" reported as skipped, of {len(whole)}"
        )
    return found.error or "skipped as reported"


def is_part(part: list[Record], whole: list[Record]) -> bool:
    """Whether a list is the other one with some left out."""
    rest = iter(whole)
    return all(record in rest for record in part)


def is_rest_of(folder: Path, whole: Path) -> bool:
    """Whether a folder has all shards of another one, and nothing but its files: reading needs no
    index, and without the manifest these are plain TFRecord files."""
    has_shards = len(_shards(folder)) == SHARDS
    return has_shards and files_of(folder).items() <= files_of(whole).items()


def disturb_verify(this: Round) -> str:
    kind = this.choose(kind=KINDS)
    name = choose_disturbance(this, kind)
    one, other = find_datasets(this, kind)
    folder = this.folder / "data"
    shutil.copytree(one, folder)
    nbytes = sum(path.stat().st_size for path in _shards(folder))
    pause_at = this.random.randrange(nbytes)
    this.note(pause_at_byte=pause_at)
    child = this.start(verify, folder, pause_at, this.choose(waits=(True, False)))
    child.wait_for_word()
    DISTURBANCES[name](this, folder, other)
    child.answer()
    end = child.wait()
    this.tally["verifications while files changed"] += 1
    end.check()
    settled = this.start(verify, folder).wait()
    settled.check()
    is_whole = name == "overwrite" or any(is_rest_of(folder, whole) for whole in (one, other))
    if settled.value == "sound" and "files" not in kind and not is_whole:
        raise Violation("verify calls what became of the files sound")
    return end.value or end.error


ATTACKS = (
    *(
        Attack(
            f"read-{name.replace(' ', '-')}",
            "the undisturbed result, a typed error, or what `skip` reports; batches stay",
            disturb(name),
            ("torch",) if "torch" in name else (),
        )
        for name in READERS
    ),
    Attack("read-verify", "an answer, or a typed error", disturb_verify),
)
