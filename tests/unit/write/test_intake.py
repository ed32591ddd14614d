"""Sources whose length or schema is not known beforehand."""

import numpy as np
import pytest

from datum import Feature, Schema
from datum._write import spill as spill_module
from datum._write.blocks import BlockSettings
from datum._write.order import divide_part, hash_records, shuffled_places
from datum._write.parts import Intake
from datum._write.report import Progress
from datum._write.spill import Spill, SpilledSplit, read_parts
from datum.format import encode, parse
from datum.images import ImageOptions
from tests.unit.write.parts import Numbers, options

SCHEMA = Schema({"x": Feature("int64")})
SETTINGS = BlockSettings(None, {}, ImageOptions(), {}, "raise")


def read(split):
    found = []
    for run in split.runs(SCHEMA):
        found += parse(run.take(0, run.records, SCHEMA, threads=1), SCHEMA)["x"].tolist()
    return found


def take(part, folder, *, fractions=None, **given):
    division = None if fractions is None else divide_part(part, fractions, stratify=None)
    return read_parts(
        Intake({"train": part}, fractions),
        SETTINGS,
        options(**given),
        division=division,
        folder=folder,
        progress=Progress(),
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_all_records_are_taken_in_and_their_schema_found(tmp_path, workers):
    taken = take(Numbers(5000, schema=None), tmp_path, shuffle=False, workers=workers)
    assert taken.schema == SCHEMA
    assert read(taken.splits["train"]) == list(range(5000))


def test_a_part_that_keeps_the_interpreter_busy_is_read_by_processes(tmp_path):
    part = Numbers(9000, schema=None, is_slow_python=True)
    fractions = {"a": 0.5, "b": 0.5}
    taken = take(part, tmp_path, shuffle=False, workers=2, fractions=fractions)
    assert len(part.read_numbers) <= 8  # here only a few, to see how large they are
    here = take(Numbers(9000, schema=None), tmp_path, shuffle=False, fractions=fractions)
    for name in fractions:
        assert read(taken.splits[name]) == read(here.splits[name])
    assert taken.schema == here.schema


def test_keys_that_come_twice_are_dropped_from_every_split(tmp_path):
    keys = [f"k{i % 90}" for i in range(100)]
    part = Numbers(100, keys=keys, schema=None)
    settings = BlockSettings(None, {}, ImageOptions(), {}, "skip")
    taken = read_parts(
        Intake({"train": part}, None),
        settings,
        options(on_error="skip"),
        division=None,
        folder=tmp_path,
        progress=Progress(),
    )
    assert sorted(read(taken.splits["train"])) == list(range(90))
    assert [reject.record for reject in taken.splits["train"].rejects] == list(range(90, 100))


NARROW = Schema({"x": Feature("int64")})
WIDE = Schema({"x": Feature("float64")})


def fill(spill, values, *, places=None, schema=NARROW, step=10):
    values = np.asarray(values)
    numbers = np.arange(len(values))
    if places is None:
        places = shuffled_places(hash_records(numbers, None), 0)
    for first in range(0, len(values), step):
        part = slice(first, first + step)
        framed = encode({"x": values[part]}, schema)
        spill.add(framed, places[part], numbers[part], schema)
    return places


def read_spill(spill, schema=NARROW, **options):
    found = []
    for run in spill.runs(**options):
        middle = run.records // 2
        for first, last in [(0, middle), (middle, run.records)]:
            framed = run.take(first, last, schema, threads=2)
            found += parse(framed, schema)["x"].tolist()
    return found


@pytest.fixture(params=["in memory", "on disk", "in files of files"])
def limits(request, monkeypatch):
    if request.param != "in memory":
        monkeypatch.setattr(spill_module, "HELD_BYTES", 1000)
    if request.param == "in files of files":
        monkeypatch.setattr(spill_module, "MAX_RUN_BYTES", 150)
    return request.param


def test_records_leave_in_the_order_of_their_places(tmp_path, limits):
    spill = Spill(tmp_path, is_shuffled=True)
    places = fill(spill, np.arange(500))
    assert spill.records == 500
    assert read_spill(spill) == np.argsort(places).tolist()
    assert (limits == "in memory") == (not list(tmp_path.iterdir()))


def test_places_that_only_rise_keep_the_order(tmp_path, limits):
    spill = Spill(tmp_path, is_shuffled=False)
    fill(spill, np.arange(500), places=np.arange(500, dtype=np.uint64))
    assert read_spill(spill) == list(range(500))


def test_records_of_one_place_stay_in_the_order_they_came(tmp_path, limits):
    spill = Spill(tmp_path, is_shuffled=True)
    fill(spill, np.arange(200), places=np.full(200, 2**63, np.uint64))
    assert read_spill(spill) == list(range(200))


def test_records_under_an_older_schema_are_written_anew(tmp_path, limits):
    spill = Spill(tmp_path, is_shuffled=True)
    places = fill(spill, np.arange(100))
    more = np.arange(100, 200)
    numbers = more.copy()
    more_places = shuffled_places(hash_records(numbers, None), 0)
    spill.add(encode({"x": more + 0.5}, WIDE), more_places, numbers, WIDE)
    values = np.concatenate([np.arange(100), more + 0.5])
    order = np.argsort(np.concatenate([places, more_places]))
    assert read_spill(spill, WIDE) == values[order].tolist()


def test_dropped_records_are_left_out(tmp_path, limits):
    spill = Spill(tmp_path, is_shuffled=True)
    places = fill(spill, np.arange(300))
    gone = {0, 7, 299}
    runs = spill.runs(dropped=gone)
    assert sum(run.records for run in runs) == 297
    expected = [n for n in np.argsort(places).tolist() if n not in gone]
    found = [
        x for run in runs for x in parse(run.take(0, run.records, NARROW, threads=1), NARROW)["x"]
    ]
    assert found == expected


def test_nothing_gives_no_runs(tmp_path):
    assert Spill(tmp_path, is_shuffled=True).runs() == []


def test_a_run_lets_go_of_its_memory_once_all_of_it_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(spill_module, "HELD_BYTES", 1000)
    spill = Spill(tmp_path, is_shuffled=True)
    fill(spill, np.arange(100))
    run = spill.runs()[0]
    run.take(0, run.records, NARROW, threads=1)
    assert run._sorted is None


def test_pieces_cover_every_record_once_whatever_the_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(spill_module, "HELD_BYTES", 400)
    spill = Spill(tmp_path, is_shuffled=False)
    for first in range(0, 100, 5):
        numbers = np.arange(first, first + 5)
        spill.add(encode({"x": numbers}, SCHEMA), numbers.astype(np.uint64), numbers, SCHEMA)
    split = SpilledSplit(spill.runs(), SCHEMA)
    assert (split.records, split.nbytes) == (100, spill.nbytes)
    found = []
    for first, last in [(0, 33), (33, 33), (33, 100)]:
        for piece in split.pieces(first, last):
            found += parse(split.write_piece(piece), SCHEMA)["x"].tolist()
    assert found == list(range(100))


def test_nothing_makes_no_pieces():
    split = SpilledSplit([], SCHEMA)
    assert (split.records, split.nbytes, split.pieces(0, 0)) == (0, 0, [])
