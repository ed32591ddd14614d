"""Records that do not fit into memory are written as if they did, also when the schema changes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import datum
from datum._write import spill
from datum.sources import python
from tests.unit.write.datasets import digests, read, write

COUNT = 400
LATE = COUNT - 5
BLOCK_RECORDS = 40


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Many blocks of few records, so that a few hundred go the way of millions."""
    monkeypatch.setattr(python, "BLOCK_RECORDS", BLOCK_RECORDS)


def within(monkeypatch, held_bytes, run_bytes):
    monkeypatch.setattr(spill, "HELD_BYTES", held_bytes)
    monkeypatch.setattr(spill, "MAX_RUN_BYTES", run_bytes)


# What a value is at first, and what it is at last.
WIDENINGS = {
    "int to float": (lambda i: i, lambda i: i + 0.5),
    "bool to int": (lambda i: bool(i % 2), lambda i: i),
    "float to wider float": (lambda i: 0.1 * i, lambda i: 1e9 + 0.1),
    "int to unsigned": (lambda i: i, lambda i: 2**64 - 1 - i),
    "three to any": (lambda i: [1, 2, 3], lambda i: [i] * (i % 9)),
    "rows to ragged rows": (lambda i: [[1, 2], [3, 4]], lambda i: [[i], [2, 3], []]),
    "always to sometimes": (lambda i: str(i), lambda i: None if i % 2 else str(i)),
    "never to sometimes": (lambda i: None, lambda i: f"late {i}"),
    "nothing to something": (lambda i: [], lambda i: [0.25, 0.5]),
    "short to long": (lambda i: [i, i + 1], lambda i: list(range(300 + i % 2))),
    "short to long of one length": (lambda i: [[i, i + 1]], lambda i: [[i, 0]] * 200),
    "one text to more": (lambda i: [str(i)], lambda i: ["a", "bb"]),
    "small array to larger": (
        lambda i: np.arange(4, dtype=np.int16),
        lambda i: np.arange(5, dtype=np.int32),
    ),
    "seconds to microseconds": (lambda i: np.datetime64(i, "s"), lambda i: np.datetime64(i, "us")),
    "nested names": (lambda i: {"a": i}, lambda i: {"a": i, "b": {"c": i}}),
}


def rows_of(kind, late=LATE):
    early_value, late_value = WIDENINGS[kind]
    for number in range(COUNT):
        value = (early_value if number < late else late_value)(number)
        yield {"id": number} if value is None else {"id": number, "x": value}


def plain(value):
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (list, np.ndarray)):
        return [plain(part) for part in value]
    return value.item() if isinstance(value, (np.number, np.bool_)) else value


def flattened(row, prefix=""):
    for name, value in row.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{prefix}{name}/")
        elif value is not None:
            yield prefix + name, plain(value)


SHAPES = {
    "plain": (LATE, {}),
    "divided": (100, {"splits": {"train": 0.7, "val": 0.2, "test": 0.1}, "shards": 2}),
    "in order": (LATE, {"shuffle": False, "compression": "zlib"}),
}


@pytest.mark.parametrize("kind", WIDENINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_goes_by_the_disk_is_what_stays_in_memory(tmp_path, monkeypatch, kind, shape):
    late, options = SHAPES[shape]
    write(rows_of(kind, late), tmp_path / "memory", **options)
    for held, run in ((5000, 10**9), (20_000, 100)):
        within(monkeypatch, held, run)
        out = tmp_path / f"disk {run}"
        write(rows_of(kind, late), out, **options)
        assert digests(out) == digests(tmp_path / "memory")
        assert not (tmp_path / f".disk {run}.partial").exists()
    found = {}
    for split in datum.load(tmp_path / "memory"):
        found.update({int(row["id"]): row for row in read(tmp_path / "memory", split)})
    for number, row in enumerate(rows_of(kind, late)):
        assert dict(flattened(found[number])) == dict(flattened(row))


def keyed(count):
    return lambda: (
        (f"key {number % (count - 100)}", {"x": number, "label": number % 3})
        for number in range(count)
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"splits": {"train": 0.7, "val": 0.3}},
        {"splits": {"train": 0.7, "val": 0.3}, "stratify": "label"},
        {"shuffle": False},
    ],
)
def test_duplicates_are_dropped_on_disk_as_in_memory(tmp_path, monkeypatch, options):
    write(keyed(COUNT), tmp_path / "memory", on_error="quarantine", **options)
    within(monkeypatch, 3000, 400)
    report = write(keyed(COUNT), tmp_path / "disk", on_error="quarantine", **options)
    assert digests(tmp_path / "disk") == digests(tmp_path / "memory")
    assert report.records == COUNT - 100
    found = [row["x"] for split in report.splits for row in read(tmp_path / "disk", split)]
    assert sorted(found) == list(range(COUNT - 100))


def test_records_that_cannot_be_told_apart_by_place_are_all_kept(tmp_path, monkeypatch):
    """The same place for all: no division of a file helps."""
    from datum._write import spill

    monkeypatch.setattr(spill, "shuffled_places", lambda hashes, seed: np.zeros_like(hashes))
    within(monkeypatch, 3000, 400)
    write(({"x": number} for number in range(COUNT)), tmp_path / "out", shards=3)
    assert [row["x"] for row in read(tmp_path / "out")] == list(range(COUNT))


def test_one_record_larger_than_all_that_may_be_held_goes_through(tmp_path, monkeypatch):
    within(monkeypatch, 1000, 500)
    sizes = [0, 1, 100_000, 5, 999, 1000, 1001, 300_000]
    rows = ({"x": bytes([number]) * size} for number, size in enumerate(sizes))
    write(rows, tmp_path / "out", shards=3)
    found = sorted((row["x"] for row in read(tmp_path / "out")), key=len)
    assert [len(value) for value in found] == sorted(sizes)


def test_columns_that_stream_go_by_the_disk_too(tmp_path, monkeypatch):
    from datum.sources import csv

    lines = [f"{number},{number / 3},text {number}\n" for number in range(20_000)]
    (tmp_path / "t.csv").write_text("a,b,c\n" + "".join(lines))
    write(tmp_path / "t.csv", tmp_path / "memory", shards=3)
    monkeypatch.setattr(csv, "MAX_MEMORY_BYTES", 1000)
    within(monkeypatch, 50_000, 2000)
    write(tmp_path / "t.csv", tmp_path / "disk", shards=3)
    assert digests(tmp_path / "disk") == digests(tmp_path / "memory")


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, width=32),
    st.lists(st.integers(-5, 5), max_size=3),
    st.lists(st.lists(st.integers(-5, 5), max_size=2), max_size=2),
)


@settings(max_examples=25)
@given(st.lists(st.fixed_dictionaries({}, optional={"x": VALUES, "y": VALUES}), max_size=12))
def test_any_mixture_of_types_is_judged_alike(tmp_path_factory, rows):
    """What is written and what is rejected does not depend on where records are kept."""
    place = tmp_path_factory.mktemp("mixed")
    spread = list(itertools.chain.from_iterable([row, {"n": 1}] * 20 for row in rows))
    with pytest.MonkeyPatch.context() as monkeypatch:
        found = []
        for held, run in ((10**9, 10**9), (2000, 300)):
            within(monkeypatch, held, run)
            try:
                write(iter(spread), place / f"{run}", on_error="quarantine")
                found.append(digests(place / f"{run}"))
            except datum.DatumError as error:
                found.append(str(error))
        assert found[0] == found[1]
