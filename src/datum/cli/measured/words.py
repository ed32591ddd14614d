"""The words and numbers of `datum bench`, for the terminal and for the page alike."""

from __future__ import annotations

from datum import Measurement
from datum.cli.words.wording import count_of, describe_size

__all__ = [
    "STAGES",
    "apart",
    "describe_programs",
    "describe_run",
    "describe_split",
    "describe_threads",
    "gain",
    "percent",
    "rounded",
    "verdict",
]

STAGES = {
    "read": "bytes out of the files",
    "crc": "every record checked",
    "parse": "columns by the schema",
    "shuffle": "records in random order",
    "decode": "images into pixels",
    "callback": "the function of --map",
    "batch": "arrays put together",
}


def rounded(value: float) -> str:
    """A number with the three digits that a measurement is good for.

    >>> rounded(1_234_567), rounded(45.678), rounded(0.12345), rounded(0)
    ('1,230,000', '45.7', '0.123', '0')
    """
    if not value:
        return "0"
    text = f"{float(f'{value:.3g}'):,.12f}"
    whole, _, decimals = text.partition(".")
    digits = 3 - len(whole.replace(",", "").lstrip("0"))
    if whole != "0":
        return whole if digits <= 0 else f"{whole}.{decimals[:digits]}"
    zeros = len(decimals) - len(decimals.lstrip("0"))
    return f"0.{decimals[: min(zeros + 3, 6)]}" if zeros < 4 else "0"


def percent(share: float) -> str:
    """A part of one.

    >>> percent(0.914), percent(0.001), percent(0)
    ('91 %', '<1 %', '0 %')
    """
    return "<1 %" if 0 < share < 0.005 else f"{share * 100:.0f} %"


def apart(spread: float | None, sign: str = "±") -> str:
    """How far turns lay apart; nothing where there was one alone.

    >>> apart(0.04), apart(None)
    ('±4 %', '')
    """
    return "" if spread is None else f"{sign}{percent(spread)}"


def gain(factor: float) -> str:
    """How many times as fast.

    >>> gain(1.234), gain(45.6)
    ('1.2x', '46x')
    """
    return f"{factor:.1f}x" if factor < 10 else f"{factor:,.0f}x"


def describe_split(found: Measurement) -> str:
    """What was measured, in one line."""
    parts = [
        count_of(found.records, "record"),
        count_of(found.shards, "shard"),
        describe_size(found.bytes),
        *([found.compression] if found.compression else []),
    ]
    return f"split {found.split}: {', '.join(parts)}"


def describe_threads(found: Measurement) -> str:
    """How many threads the loaders had."""
    return count_of(found.options["threads"], "thread")


def describe_programs(found: Measurement) -> str:
    """The versions that it was measured with, in one line."""
    return ", ".join(f"{name} {version}" for name, version in found.machine.versions.items())


def describe_run(found: Measurement) -> str:
    """How it was measured, in one line."""
    options = found.options
    part = "all" if found.measured_records == found.records else f"{found.measured_records:,}"
    words = [
        f"{part} records of {describe_size(found.record_bytes)}",
        f"batches of {options['batch_size']:,}",
        "shuffled" if options["shuffle"] else "in order",
    ]
    if options["columns"] is not None:
        words.append(f"columns {', '.join(options['columns'])}")
    return ", ".join(words)


def verdict(found: Measurement) -> str:
    """When training waits for data, and when it does not."""
    best = found.best
    if best is None or not best.records_per_s:
        return ""
    size = found.options["batch_size"]
    step_ms = size / best.records_per_s * 1000
    return (
        f"A training step of {count_of(size, 'record')} that takes longer than"
        f" {rounded(step_ms)} ms does not wait for data ({best.name})."
    )
