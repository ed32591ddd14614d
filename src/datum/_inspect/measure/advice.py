"""Costs of stages, and advice where the figures support it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from datum._inspect.measure.contenders import MEASURED, STAGES
from datum._inspect.measure.measurement import Advice, Bottleneck, Paid, Stage
from datum.errors import count_of, format_bytes

__all__ = [
    "CACHED",
    "LARGER_BATCHES",
    "MORE_THREADS",
    "PART_OF_MEMORY",
    "Costs",
    "Facts",
    "advise",
    "find_bottleneck",
    "find_costs",
    "larger_batch",
    "speed_up",
    "to_stages",
]

STANDS_OUT = 0.35  # share of a stage that stands out
_DOING = {
    "read": "reading the bytes takes",
    "crc": "checking the CRC of each record takes",
    "parse": "parsing records into columns takes",
    "shuffle": "fetching records in random order takes",
    "decode": "decoding images takes",
    "callback": "the function given as `map` takes",
    "batch": "assembling batches takes",
}


@dataclass(frozen=True, slots=True)
class Costs:
    """Cost of each stage, in microseconds per record."""

    us: Mapping[str, float]

    @property
    def total(self) -> float:
        """Cost of all stages."""
        return sum(self.us.values())

    def share(self, *names: str) -> float:
        """Share of some stages; 0 for stages that were not measured."""
        found = sum(self.us.get(name, 0.0) for name in names)
        return found / self.total if self.total else 0.0


def find_costs(seconds: Mapping[str, float], records: int) -> Costs:
    """Costs from cumulative times, where each stage was measured with those before it.

    Negative differences, which noise can cause, count as 0.

    >>> costs = find_costs({"read": 1e-6, "crc": 3e-6, "parse": 2e-6, "batch": 7e-6}, 1)
    >>> {name: round(cost, 3) for name, cost in costs.us.items()}
    {'read': 1.0, 'crc': 2.0, 'parse': 0.0, 'batch': 4.0}
    """
    found, so_far = {}, 0.0
    for name in MEASURED:
        if name in seconds:
            here = max(so_far, seconds[name] / max(1, records) * 1e6)
            found[name] = here - so_far
            so_far = here
    return Costs({name: found[name] for name in STAGES if name in found})


def to_stages(
    costs: Costs, spreads: Mapping[str, float], *, record_bytes: float
) -> tuple[Stage, ...]:
    """Return the stages with shares and speeds."""
    stages, so_far = [], 0.0
    for name, cost in costs.us.items():
        so_far += cost
        speed = 1e6 / max(so_far, 1e-9)
        share = costs.share(name)
        spread = spreads.get(name, 0.0)
        stages.append(Stage(name, cost, share, speed, speed * record_bytes / 1e6, spread))
    return tuple(stages)


def find_bottleneck(costs: Costs) -> Bottleneck | None:
    """Return the stage that takes most of the time; None without measurements.

    >>> find_bottleneck(Costs({"parse": 1.0, "decode": 9.0})).text
    'decoding images takes 90 % of the time: 9.00 of 10.0 µs per record'
    """
    if not costs.total:
        return None
    name = max(costs.us, key=lambda stage: costs.us[stage])
    share = costs.share(name)
    figures = f"{_number(costs.us[name])} of {_number(costs.total)} µs per record"
    text = f"{_DOING[name]} {share * 100:.0f} % of the time: {figures}"
    if share < STANDS_OUT:
        text = f"no stage stands out: {text}"
    return Bottleneck(name, share, text)


def speed_up(share: float, factor: float = float("inf")) -> float:
    """Speed-up of the whole if a share of it becomes `factor` times as fast (Amdahl's law).

    >>> speed_up(0.5), speed_up(0.9, 3.0)
    (2.0, 2.5)
    """
    left = 1 - share + share / factor
    return 1 / max(left, 1e-3)


def _number(value: float) -> str:
    """Format three significant digits."""
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


# Trials: `to_numpy` with one setting changed, to measure its gain.
CACHED, LARGER_BATCHES, MORE_THREADS = "cached", "larger batches", "more threads"

MIN_GAIN = 1.1  # less is within the noise
MIN_SHARE = 0.2
MIN_BATCH_GAIN = 1.25  # higher, because the batch size is chosen for training
IMAGE_SIDE = 256  # usual size for training, with room for crops
PART_OF_MEMORY = 0.5  # that data may fill and stay cached
SHARD_BYTES = 128 * 2**20  # default of `datum.write`
MANY_SHARDS = 32
LARGER = 8  # factor of the larger batch size tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Figures that advice is based on.

    Attributes:
        path: Dataset as given.
        costs: Costs of the stages on one thread.
        speeds: Records per second of loaders and trials, by name.
        paid: One-time costs.
        records: Records of the split.
        bytes: Size of its shards on disk.
        shards: Number of shards.
        record_bytes: Uncompressed size of a record.
        compression: Compression of the shards.
        features: Number of features read.
        is_narrowed: Whether `columns` were selected.
        batch_size: Batch size of the measurement.
        shuffle: Shuffle mode of the measurement.
        threads: Threads of the loaders.
        cores: Cores of the machine.
        memory_bytes: Memory of the machine; None if unknown.
        image_side: Average longer side of images; None without images.
        decoded_bytes: Decoded size of the images of a record.
        auto_engine: Engine that `to_tf` would choose.
    """

    path: str = "PATH"
    costs: Costs
    speeds: Mapping[str, float] = field(default_factory=dict)
    paid: Paid = field(default_factory=Paid)
    records: int = 0
    bytes: int = 0
    shards: int = 1
    record_bytes: float = 0.0
    compression: str | None = None
    features: int = 1
    is_narrowed: bool = False
    batch_size: int = 64
    shuffle: bool = False
    threads: int = 1
    cores: int = 1
    memory_bytes: int | None = None
    image_side: float | None = None
    decoded_bytes: float = 0.0
    auto_engine: str | None = None

    def ratio(self, one: str, other: str) -> float:
        """Return the speed of one relative to the other; 0 unless both were measured."""
        other_speed = self.speeds.get(other, 0.0)
        return self.speeds.get(one, 0.0) / other_speed if other_speed else 0.0

    @property
    def fits_in_memory(self) -> bool:
        """Whether uncompressed records stay cached between epochs."""
        plain = self.records * self.record_bytes
        return self.memory_bytes is not None and plain <= PART_OF_MEMORY * self.memory_bytes


def advise(facts: Facts) -> tuple[Advice, ...]:
    """Return advice, the largest gain first."""
    found = [advice for rule in _RULES for advice in rule(facts) if advice.gain >= MIN_GAIN]
    return tuple(sorted(found, key=lambda advice: -advice.gain))


def _smaller_images(facts: Facts) -> Iterator[Advice]:
    share, side = facts.costs.share("decode"), facts.image_side
    if share >= MIN_SHARE and side is not None and side > IMAGE_SIDE:
        fewer = (side / IMAGE_SIDE) ** 2
        yield Advice(
            "smaller images",
            f"decoding is {_percent(share)} of the time, of images of {side:.0f} pixels along the"
            f" longer side; with {IMAGE_SIDE} there are {fewer:.1f} times fewer pixels to decode",
            f"datum.write(source, out, max_side={IMAGE_SIDE})",
            speed_up(share, fewer),
            "expected",
        )


def _cache(facts: Facts) -> Iterator[Advice]:
    gain = facts.ratio(CACHED, "to_numpy")
    if gain:
        size = format_bytes(facts.records * facts.decoded_bytes)
        yield Advice(
            "cache",
            f"all images of the split, decoded, take {size} of memory; kept there, every epoch"
            " after the first is faster",
            "ds.to_numpy(..., cache=True)",
            gain,
            "measured",
        )


def _callback(facts: Facts) -> Iterator[Advice]:
    share = facts.costs.share("callback")
    if share < MIN_SHARE:
        return
    yield Advice(
        "vectorise",
        f"the function given as `map` takes {_percent(share)} of the time, called for each record;"
        " one that works on whole batches calls NumPy once for all of them",
        "ds.to_numpy(..., batch_map=function)",
        speed_up(share),
        "at most",
    )
    gain = facts.ratio("DataLoader", "to_torch")
    if gain:
        yield Advice(
            "workers",
            "threads wait for the interpreter's lock while the function runs; the processes of a"
            " DataLoader do not",
            "DataLoader(ds.to_torch(...), batch_size=None, num_workers=2)",
            gain,
            "measured",
        )


def _columns(facts: Facts) -> Iterator[Advice]:
    share = facts.costs.share("parse")
    if share >= MIN_SHARE and facts.features > 1 and not facts.is_narrowed:
        yield Advice(
            "columns",
            f"parsing is {_percent(share)} of the time, of {facts.features} features; those that"
            " training does not use need not be parsed",
            "ds.to_numpy(..., columns=[...])",
            speed_up(share * (facts.features - 1) / facts.features),
            "at most",
        )


def larger_batch(batch_size: int) -> int:
    """Larger batch size to try."""
    return LARGER * batch_size


def _larger_batches(facts: Facts) -> Iterator[Advice]:
    gain = facts.ratio(LARGER_BATCHES, "to_numpy")
    if gain >= MIN_BATCH_GAIN:
        yield Advice(
            "larger batches",
            "records are small, and each batch has a fixed cost",
            f"ds.to_numpy(..., batch_size={larger_batch(facts.batch_size)})",
            gain,
            "measured",
        )


def _more_threads(facts: Facts) -> Iterator[Advice]:
    yield Advice(
        "threads",
        f"{count_of(facts.threads, 'thread')} of {facts.cores} cores work",
        f"ds.to_numpy(..., threads={facts.cores})",
        facts.ratio(MORE_THREADS, "to_numpy"),
        "measured",
    )


def _shuffle(facts: Facts) -> Iterator[Advice]:
    share = facts.costs.share("shuffle")
    if share >= MIN_SHARE:
        yield Advice(
            "blocks",
            f"records from all over the split take {_percent(share)} of the time to fetch; runs of"
            " neighbours is faster, and still mixes well",
            'ds.to_numpy(..., shuffle="blocks")',
            speed_up(share),
            "at most",
        )


def _disk(facts: Facts) -> Iterator[Advice]:
    """Advice on a disk that is too slow for data that is not cached."""
    disk, speed = facts.paid.disk_mb_per_s, facts.speeds.get("to_numpy", 0.0)
    if disk is None or not facts.record_bytes or facts.fits_in_memory:
        return
    limit = disk * 1e6 / facts.record_bytes
    if limit >= speed:
        return
    figures = (
        f"the split does not stay in memory, and the disk reads {disk:,.0f} MB/s, which is"
        f" {limit:,.0f} records/s"
    )
    yield Advice(
        "faster disk",
        f"{figures}; a copy on a faster local disk would do",
        f"cp -r {facts.path} /a/faster/disk",
        speed / limit,
        "at most",
    )
    if facts.shuffle:
        yield Advice(
            "blocks on disk",
            f"{figures}; a full shuffle reads it in single records, blocks in long runs",
            'ds.to_numpy(..., shuffle="blocks")',
            speed / limit,
            "at most",
        )


def _compression(facts: Facts) -> Iterator[Advice]:
    inflating = facts.paid.inflate_us_per_record
    if facts.compression is None or inflating is None:
        return
    share = inflating / (inflating + facts.costs.total)
    yield Advice(
        "compression",
        f"inflating {facts.compression} takes {_percent(share)} of a pass over the files: of every"
        " one with TensorFlow, of the first one otherwise, which keeps an inflated copy in the"
        " cache directory",
        f"datum reshard {facts.path} OUT --compression none",
        speed_up(share),
        "expected",
    )


def _tiny_shards(facts: Facts) -> Iterator[Advice]:
    opening = facts.paid.open_us_per_shard
    is_large = facts.bytes >= facts.shards * SHARD_BYTES / 8
    if opening is None or facts.shards < MANY_SHARDS or is_large:
        return
    needed = -(-facts.bytes // SHARD_BYTES)
    opened = opening * (facts.shards - needed)
    share = opened / max(opened + facts.costs.total * facts.records / facts.threads, 1e-9)
    size = format_bytes(facts.bytes / facts.shards)
    yield Advice(
        "larger shards",
        f"to open {facts.shards:,} shards of {size} takes {_percent(share)} of an epoch",
        f"datum reshard {facts.path} OUT --shards {max(1, needed)}",
        speed_up(share),
        "expected",
    )


def _no_workers(facts: Facts) -> Iterator[Advice]:
    yield Advice(
        "no workers",
        "the threads of `to_torch` already make batches ahead; the workers of a DataLoader"
        " have to send each batch to this process",
        "for batch in ds.to_torch(...): ...",
        facts.ratio("to_torch", "DataLoader"),
        "measured",
    )


def _engine(facts: Facts) -> Iterator[Advice]:
    if facts.auto_engine is not None:
        other = "native" if facts.auto_engine == "graph" else "graph"
        yield Advice(
            "engine",
            f"`to_tf` reads this with its engine {facts.auto_engine!r}; the other one is faster"
            " here",
            f'ds.to_tf(..., engine="{other}")',
            facts.ratio(f"to_tf {other}", f"to_tf {facts.auto_engine}"),
            "measured",
        )


def _handover(facts: Facts) -> Iterator[Advice]:
    """Advice on frameworks whose arrays cost more than the batches themselves."""
    for name in ("to_torch", "to_jax"):
        gain = facts.ratio("to_numpy", name)
        if gain >= 2 and facts.batch_size < 1024:
            yield Advice(
                "handover",
                f"`{name}` spends {_percent(1 - 1 / gain)} of its time on handing batches over,"
                " which costs as much for small ones as for large ones",
                f"ds.{name}(..., batch_size={8 * facts.batch_size})",
                gain,
                "at most",
            )


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


_RULES: tuple[Callable[[Facts], Iterator[Advice]], ...] = (
    _smaller_images,
    _cache,
    _callback,
    _columns,
    _larger_batches,
    _more_threads,
    _shuffle,
    _disk,
    _compression,
    _tiny_shards,
    _no_workers,
    _engine,
    _handover,
)
