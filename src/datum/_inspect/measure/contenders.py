"""Contenders of a measurement: stages of loading, loaders, TensorFlow pipelines."""

from __future__ import annotations

import functools
import logging
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from datum import _core
from datum._frameworks.tensorflow.engine import make_dataset
from datum._frameworks.tensorflow.options import TfOptions
from datum._frameworks.tensorflow.parse import GraphParser
from datum._frameworks.tensorflow.steps import batch_records, unbatch
from datum._inspect.measure.timing import Contender, Piece, Sample
from datum._load.decode import find_decoders
from datum._load.loader import Loader
from datum._load.options import LoadOptions
from datum._load.pipeline import Pipeline
from datum._load.stream import Place, Stream, order_split
from datum._optional import require
from datum._read.numbered import NumberedRecords
from datum._read.split import Split
from datum.errors import (
    Call,
    CorruptRecordError,
    Damage,
    Message,
    MissingDependencyError,
    Option,
    SourceError,
    Text,
    shell_word,
    suggest,
)
from datum.format import Parser, RecordFile
from datum.format.index import FRAME_BYTES
from datum.schema import Feature

__all__ = [
    "FRAMEWORKS",
    "MEASURED",
    "STAGES",
    "Entry",
    "ImageSizes",
    "Settings",
    "batches_of",
    "choose_frameworks",
    "clock_for",
    "decode_encoded",
    "find_image_sizes",
    "find_version",
    "go_through",
    "inflating_s",
    "loader_entries",
    "make_by_hand",
    "make_to_tf",
    "measure_disk",
    "opening_s",
    "quiet",
    "stage_contenders",
]

STAGES = ("read", "crc", "parse", "shuffle", "decode", "callback", "batch")
# Each is measured together with all before it. Batches are assembled before images are decoded,
# because images are decoded straight into them.
MEASURED = ("read", "crc", "parse", "batch", "shuffle", "decode", "callback")


def stage_contenders(sample: Sample, options: LoadOptions | None) -> list[Contender]:
    """Stages to measure, in the order of `MEASURED`; without options only the first two."""
    clock = clock_for(options)
    pieces = len(sample.pieces)
    found = [
        Contender("read", functools.partial(_read, sample), pieces, clock=clock),
        Contender("crc", functools.partial(_check, sample), pieces, clock=clock),
    ]
    if options is None:
        return found
    batches = batches_of(sample.records, options.plan_records)
    parse = functools.partial(_parse, sample, options)
    found.append(Contender("parse", parse, batches, clock=clock))
    for name, asked in _pipelines(sample.split, options):
        make = functools.partial(_make, sample.split, asked)
        found.append(Contender(name, make, batches, clock=clock))
    return found


def clock_for(options: LoadOptions | None) -> Callable[[], float]:
    """Choose the clock of one thread.

    Processor time leaves out other programs, but also the time that a user's function waits.
    """
    has_map = options is not None and options.map is not None
    return time.perf_counter if has_map else time.thread_time


def _pipelines(split: Split, options: LoadOptions) -> Iterator[tuple[str, LoadOptions]]:
    """Options of the stages that make batches, each adding one step."""
    asked = replace(options, shuffle=False, decode=False, map=None, epochs=1)
    yield "batch", asked
    if options.shuffle:
        asked = replace(asked, shuffle=options.shuffle)
        yield "shuffle", asked
    if find_decoders(options.selected(split.schema), options).images:
        asked = replace(asked, decode=options.decode)
        yield "decode", asked
    if options.map is not None:
        yield "callback", replace(asked, map=options.map)


def batches_of(records: int, batch_size: int) -> int:
    """Number of batches of an epoch.

    >>> batches_of(65, 64)
    2
    """
    return -(-records // batch_size)


def _read(sample: Sample, passes: int) -> Iterator[None]:
    """Copy the bytes of the records from their files."""
    for _ in range(passes):
        for piece in sample.pieces:
            piece.read()
            yield


def _check(sample: Sample, passes: int) -> Iterator[None]:
    """Check the CRCs of every record."""
    copies = [(piece, piece.read()) for piece in sample.pieces]
    for _ in range(passes):
        for piece, content in copies:
            places = piece.offsets - piece.start
            damaged = _core.first_damage(content, places, piece.lengths)
            if damaged is not None:
                raise _corrupt(piece, *damaged)
            yield


def _corrupt(piece: Piece, row: int, kind: str) -> CorruptRecordError:
    offset, number = int(piece.offsets[row]), piece.first + row
    end = offset + int(piece.lengths[row]) + FRAME_BYTES
    return CorruptRecordError(
        f"record {number} at byte {offset}: expected an intact record, got damage: {kind}",
        where=piece.path,
        hint=Text(
            Call(
                f"datum.verify({str(piece.path)!r})", shell=f"datum verify {shell_word(piece.path)}"
            ),
            " lists all damage",
        ),
        damage=Damage(str(piece.path), offset, end, number, kind),
    )


def _parse(sample: Sample, options: LoadOptions, passes: int) -> Iterator[Any]:
    """Parse the records into columns, a batch at a time."""
    split, size = sample.split, options.plan_records
    parser = Parser(options.selected(split.schema))
    records = NumberedRecords([(split.shards, run) for run in split.runs], parser, threads=0)
    numbers = np.arange(len(split))
    batches = [numbers[start : start + size] for start in range(0, len(split), size)]
    try:
        for _ in range(passes):
            for batch in batches:
                yield records.read(batch)
    finally:
        records.close()


def _make(split: Split, options: LoadOptions, passes: int) -> Iterator[Any]:
    return go_through(split, replace(options, epochs=passes))


def go_through(split: Split, options: LoadOptions) -> Iterator[Any]:
    """Iterate over the batches of `to_numpy`, made on the calling thread."""
    schema = options.selected(split.schema)
    ordered = order_split(split, options)
    source = NumberedRecords(ordered.parts, Parser(schema), threads=0)
    pipeline = Pipeline(source, schema, options, threads=0)
    stream = Stream(ordered.order, options.plan_records, epochs=options.epochs)
    try:
        for plan in stream.plans(Place()):
            pipeline.submit(plan)
            yield pipeline.take().batch
    finally:
        pipeline.close()


WORKER_TIMEOUT_S = 60  # a fork may hang while other threads hold locks
_PURPOSE = "measuring it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the loaders.

    Attributes:
        options: Options of all loaders.
        metadata: Metadata by feature.
        workers: Workers of a DataLoader.
        worker_epochs: Epochs per pass of a DataLoader, whose passes start slowly.
    """

    options: LoadOptions
    metadata: Any
    workers: int = 2
    worker_epochs: int = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A loader that may be measured.

    Attributes:
        framework: Framework of its arrays.
        name: Name of the loader.
        call: Code that creates it.
        make: Returns its contender, or raises the reason why there is none.
    """

    framework: str
    name: str
    call: str
    make: Callable[[], Contender]


def loader_entries(framework: str, sample: Sample, settings: Settings) -> Iterator[Entry]:
    """Yield the loaders of a framework."""
    if framework == "numpy":
        yield Entry("numpy", "to_numpy", "ds.to_numpy(...)", lambda: _numpy(sample, settings))
    elif framework == "torch":
        yield Entry("torch", "to_torch", "ds.to_torch(...)", lambda: _torch(sample, settings))
        call = f"DataLoader(ds.to_torch(...), batch_size=None, num_workers={settings.workers})"
        yield Entry("torch", "DataLoader", call, lambda: _data_loader(sample, settings))
    elif framework == "jax":
        yield Entry("jax", "to_jax", "ds.to_jax(...)", lambda: _jax(sample, settings))
    else:
        for engine in ("native", "graph"):
            make = functools.partial(_tensorflow, sample, settings, engine)
            yield Entry("tf", f"to_tf {engine}", f'ds.to_tf(..., engine="{engine}")', make)
        call = "TFRecordDataset, interleave, shuffle, batch, parse_example"
        yield Entry("tf", "tf.data by hand", call, lambda: _tensorflow(sample, settings, None))


def _contender(
    name: str,
    sample: Sample,
    settings: Settings,
    make: Callable[[LoadOptions], Iterable[Any]],
) -> Contender:
    """A loader that runs all epochs of a turn without a stop."""
    options = settings.options

    @functools.cache
    def run(passes: int) -> Iterable[Any]:
        return make(replace(options, epochs=passes))

    return Contender(name, run, batches_of(sample.records, options.plan_records))


def _numpy(sample: Sample, settings: Settings) -> Contender:
    split = sample.split
    return _contender("to_numpy", sample, settings, lambda o: Loader(order_split(split, o), o))


def _torch(sample: Sample, settings: Settings) -> Contender:
    from datum._frameworks.torch import make_loader

    split = sample.split
    return _contender("to_torch", sample, settings, lambda o: make_loader(order_split(split, o), o))


def _jax(sample: Sample, settings: Settings) -> Contender:
    from datum._frameworks.jax import make_loader

    jax = require("jax", purpose=_PURPOSE)
    split = sample.split
    made = _contender("to_jax", sample, settings, lambda o: make_loader(order_split(split, o), o))
    # JAX arrays are computed asynchronously.
    return replace(made, run=lambda passes: map(jax.block_until_ready, made.run(passes)))


def _data_loader(sample: Sample, settings: Settings) -> Contender:
    """A DataLoader with persistent workers, so that no turn starts them."""
    from datum._frameworks.torch import make_loader

    torch = require("torch", purpose=_PURPOSE)
    epochs = settings.worker_epochs
    options = replace(settings.options, epochs=epochs)
    loader = torch.utils.data.DataLoader(
        make_loader(order_split(sample.split, options), options),
        batch_size=None,
        num_workers=settings.workers,
        persistent_workers=True,
        multiprocessing_context=_start_method(),
        timeout=WORKER_TIMEOUT_S,
    )

    def run(passes: int) -> Iterator[Any]:
        for _ in range(passes):
            yield from loader

    batches = epochs * batches_of(sample.records, options.plan_records)
    return Contender("DataLoader", run, batches, epochs=epochs)


def _start_method() -> str | None:
    """Fork where PyTorch does by default; None elsewhere.

    Other start methods import the user's program again, which is not always safe to do.
    """
    return "fork" if sys.platform == "linux" else None


def _tensorflow(sample: Sample, settings: Settings, engine: str | None) -> Contender:
    from datum._inspect.measure import contenders as pipelines

    options = settings.options
    if engine is None:
        name, dataset = "tf.data by hand", pipelines.make_by_hand(sample, options)
    else:
        name = f"to_tf {engine}"
        dataset = pipelines.make_to_tf(sample, options, engine, settings.metadata)

    batches = batches_of(sample.records, options.plan_records)
    # TensorFlow optimises its graph at the start of each pass, within the first epoch.
    return Contender(name, lambda passes: dataset.repeat(passes + 1), batches, lead=batches)


tf: Any = require("tensorflow", purpose="measuring TensorFlow")

SHUFFLED_RECORDS = 8192  # a usual buffer size
INTERLEAVED_FILES = 4
_COMPRESSION = {None: "", "gzip": "GZIP", "zlib": "ZLIB"}


def make_to_tf(
    sample: Sample, options: LoadOptions, engine: Any, metadata: Mapping[str, Mapping[str, Any]]
) -> Any:
    """Make the `to_tf` dataset of the sample."""
    asked = TfOptions(
        batch_size=options.batch_size,
        shuffle=_shuffle(options),
        seed=options.seed,
        columns=options.columns,
        engine=engine,
        decode=options.decode,
    )
    return _with_threads(make_dataset(sample.split, asked, metadata=metadata), options)


def _shuffle(options: LoadOptions) -> bool | int:
    return True if isinstance(options.shuffle, str) else options.shuffle


def make_by_hand(sample: Sample, options: LoadOptions) -> Any:
    """Make the hand-written pipeline: interleaved files, a shuffle buffer, `parse_example`.

    Images are decoded one by one, in parallel.
    """
    schema = options.selected(sample.split.schema)
    records = _read_all(sample)
    if options.shuffle:
        records = records.shuffle(min(SHUFFLED_RECORDS, sample.records), seed=options.seed)
    size = options.batch_size
    parser = GraphParser(schema, is_trusted=sample.split.shards.writer == "datum")
    batches = records.batch(size).map(parser.parse, num_parallel_calls=tf.data.AUTOTUNE)
    images = find_decoders(schema, options).images
    if images:
        decoded = unbatch(batches).map(_decoder(images), num_parallel_calls=tf.data.AUTOTUNE)
        batches = batch_records(decoded, TfOptions(batch_size=size), is_full=False)
    return _with_threads(batches.prefetch(tf.data.AUTOTUNE), options)


def _read_all(sample: Sample) -> Any:
    split = sample.split
    kinds = {run.shard.compression for run in split.runs}
    if len(kinds) > 1:
        raise ValueError(Message("expected files that are all compressed alike"))
    compression = _COMPRESSION[kinds.pop()]
    paths = [str(split.shards.folder / run.shard.name) for run in split.runs]
    starts = tf.constant([run.start for run in split.runs], tf.int64)
    counts = tf.constant([len(run) for run in split.runs], tf.int64)
    files = tf.data.Dataset.from_tensor_slices((paths, starts, counts))

    def read(path: Any, start: Any, count: Any) -> Any:
        return tf.data.TFRecordDataset(path, compression).skip(start).take(count)

    parallel = tf.data.AUTOTUNE
    return files.interleave(read, cycle_length=INTERLEAVED_FILES, num_parallel_calls=parallel)


def _decoder(images: Mapping[str, Feature]) -> Callable[[Any], Any]:
    def decode(record: dict[str, Any]) -> dict[str, Any]:
        decoded = {name: _decode(record[name], feature) for name, feature in images.items()}
        return {**record, **decoded}

    return decode


def _decode(data: Any, feature: Feature) -> Any:
    channels = feature.shape[-1] or 0
    image = tf.io.decode_image(data, channels, getattr(tf, feature.dtype), expand_animations=False)
    return tf.ensure_shape(image, feature.shape)


def _with_threads(dataset: Any, options: LoadOptions) -> Any:
    if options.threads is None:
        return dataset
    chosen = tf.data.Options()
    chosen.threading.private_threadpool_size = options.threads
    return dataset.with_options(chosen)


FRAMEWORKS = {"numpy": "numpy", "torch": "torch", "jax": "jax", "tf": "tensorflow"}
_ALIASES = {"np": "numpy", "pytorch": "torch", "tensorflow": "tf"}
_SILENCE = {"TF_CPP_MIN_LOG_LEVEL": "3"}


def choose_frameworks(asked: Iterable[str] | str | None) -> list[str] | None:
    """Check names of frameworks, and return them in order; None means all installed ones.

    >>> choose_frameworks(["tensorflow", "torch"])
    ['torch', 'tf']
    """
    if asked is None or asked == "all":
        return None
    names = asked.split(",") if isinstance(asked, str) else list(asked)
    chosen = []
    for name in (str(name).strip().lower() for name in names):
        known = _ALIASES.get(name, name)
        if known not in FRAMEWORKS:
            hint = suggest(name, [*FRAMEWORKS, *_ALIASES], f"there are {', '.join(FRAMEWORKS)}")
            problem = Text("expected ", Option("frameworks"), f" to be known, got {name!r}")
            raise ValueError(Message(problem, hint=hint))
        chosen.append(known)
    return [name for name in FRAMEWORKS if name in chosen]


def find_version(name: str, *, is_needed: bool = False) -> str | None:
    """Import a framework; None if it is not installed, or MissingDependencyError if `is_needed`."""
    try:
        module: Any = require(FRAMEWORKS[name], purpose=f"measuring {name}")
    except MissingDependencyError:
        if is_needed:
            raise
        return None
    return str(getattr(module, "__version__", "unknown"))


@contextmanager
def quiet() -> Iterator[None]:
    """Silence log messages of frameworks while they run."""
    added = {name: value for name, value in _SILENCE.items() if name not in os.environ}
    os.environ.update(added)
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        for name in added:
            os.environ.pop(name, None)


ROUNDS = 3
READ_BYTES = 2**20
MAX_BYTES = 32 * 2**20  # dropped from the page cache; others may use them
MIN_BYTES = 2**20  # less measures only system calls
MAX_OPENED = 16  # shards opened for timing
COLD_FACTOR = 2.0  # below it, the bytes came from the page cache


def measure_disk(pieces: Sequence[Piece], *, seconds: float) -> float | None:
    """Bytes per second from the disk; None if it cannot be measured.

    Some pages are dropped from the page cache first, which the system refuses for files that were
    just written or are on a memory file system.
    """
    parts = _some(pieces)
    total = sum(end - start for _, start, end in parts)
    if total < MIN_BYTES or not hasattr(os, "posix_fadvise"):
        return None
    begun = time.perf_counter()
    cold, warm = [], []
    for _ in range(ROUNDS):
        _forget(parts)
        cold.append(_read_whole(parts))
        warm.append(_read_whole(parts))
        if time.perf_counter() - begun > seconds:
            break
    cold_s, warm_s = statistics.median(cold), statistics.median(warm)
    return total / cold_s if cold_s > COLD_FACTOR * warm_s else None


def _some(pieces: Sequence[Piece]) -> list[tuple[Path, int, int]]:
    parts, left = [], MAX_BYTES
    for piece in pieces:
        end = min(piece.end, piece.start + left)
        if end > piece.start:
            parts.append((piece.path, piece.start, end))
            left -= end - piece.start
    return parts


def _forget(parts: Sequence[tuple[Path, int, int]]) -> None:
    for path, start, end in parts:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), start, end - start, os.POSIX_FADV_DONTNEED)


def _read_whole(parts: Sequence[tuple[Path, int, int]]) -> float:
    begun = time.perf_counter()
    for path, start, end in parts:
        with path.open("rb", buffering=0) as file:
            file.seek(start)
            left = end - start
            while left > 0 and (read := len(file.read(min(READ_BYTES, left)))):
                left -= read
    return time.perf_counter() - begun


def inflating_s(sample: Sample) -> float | None:
    """Seconds per record for inflating; None without compression."""
    split = sample.split
    runs = [run for run in split.runs if run.shard.compression is not None]
    if not runs:
        return None
    records = 0
    begun = time.perf_counter()
    for run in runs:
        path = split.shards.folder / run.shard.name
        done = 0
        for found in RecordFile(path, check_crc=False, use_index=False).chunks():
            done += len(found)
            if done >= run.stop:
                break
        records += done
    return (time.perf_counter() - begun) / max(1, records)


def opening_s(split: Split, options: LoadOptions) -> float:
    """Seconds to open a shard and find its records, the best of several runs."""
    runs = split.runs[:MAX_OPENED]
    parser = Parser(options.selected(split.schema))
    firsts = np.cumsum([0, *map(len, runs)])[:-1]
    found = []
    for _ in range(ROUNDS):
        records = NumberedRecords([(split.shards, run) for run in runs], parser, threads=0)
        times = []
        for _ in range(2):  # the second time they are cached
            begun = time.perf_counter()
            records.read(firsts)
            times.append(time.perf_counter() - begun)
        records.close()
        found.append(max(0.0, times[0] - times[1]))
    return min(found) / max(1, len(runs))


_STARTS = (b"\xff\xd8\xff", b"\x89PNG\r\n", b"GIF8")  # and RIFF....WEBP


@dataclass(frozen=True, slots=True)
class ImageSizes:
    """Average longer side of images in pixels, and decoded bytes per record."""

    side: float
    bytes: float


def find_image_sizes(split: Split, options: LoadOptions) -> ImageSizes | None:
    """Image figures of one batch; None without images."""
    names = find_decoders(options.selected(split.schema), options).images
    if not names:
        return None
    asked = replace(options, map=None, shuffle=False, columns=tuple(names), epochs=1)
    batch: Any = next(iter(go_through(split, asked)))
    images = [[np.asarray(image) for image in batch[name]] for name in names]
    sides = [max(image.shape[:2], default=0) for column in images for image in column]
    nbytes = sum(image.nbytes for column in images for image in column)
    return ImageSizes(float(np.mean(sides)), nbytes / max(1, len(images[0])))


def decode_encoded(split: Split, options: LoadOptions) -> tuple[LoadOptions, tuple[str, ...]]:
    """Options that decode images stored as plain bytes, and a note on it.

    The schema does not mark them as images, but training decodes them.
    """
    schema = options.selected(split.schema)
    strings = [
        name
        for name, feature in schema.items()
        if feature.dtype == "bytes" and not feature.shape and not feature.sequence
    ]
    if not strings:
        return options, ()
    plain = replace(options, map=None, shuffle=False, columns=tuple(strings), epochs=1)
    batch: Any = next(iter(go_through(split, plain)))
    names = [name for name in strings if all(map(_is_image, batch[name]))]
    if not names:
        return options, ()
    asked = replace(options, decode=dict.fromkeys(names, True))
    try:
        for _ in go_through(split, replace(asked, map=None)):
            pass
    except (SourceError, ValueError):  # they only look like images
        return options, ()
    listed = ", ".join(map(repr, names))
    return asked, (f"bytes of images were decoded, as decode={{name: True}} does: {listed}",)


def _is_image(data: bytes) -> bool:
    return data.startswith(_STARTS) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")
