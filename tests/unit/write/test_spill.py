"""Records that arrive in any order and leave in theirs."""

import numpy as np
import pytest

from datum import Feature, Schema
from datum._write import spill as spill_module
from datum._write.order import hash_records, shuffled_places
from datum._write.spill import Spill
from datum.format import encode, parse

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


def read(spill, schema=NARROW, **options):
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
    assert read(spill) == np.argsort(places).tolist()
    assert (limits == "in memory") == (not list(tmp_path.iterdir()))


def test_places_that_only_rise_keep_the_order(tmp_path, limits):
    spill = Spill(tmp_path, is_shuffled=False)
    fill(spill, np.arange(500), places=np.arange(500, dtype=np.uint64))
    assert read(spill) == list(range(500))


def test_records_of_one_place_stay_in_the_order_they_came(tmp_path, limits):
    spill = Spill(tmp_path, is_shuffled=True)
    fill(spill, np.arange(200), places=np.full(200, 2**63, np.uint64))
    assert read(spill) == list(range(200))


def test_records_under_an_older_schema_are_written_anew(tmp_path, limits):
    spill = Spill(tmp_path, is_shuffled=True)
    places = fill(spill, np.arange(100))
    more = np.arange(100, 200)
    numbers = more.copy()
    more_places = shuffled_places(hash_records(numbers, None), 0)
    spill.add(encode({"x": more + 0.5}, WIDE), more_places, numbers, WIDE)
    values = np.concatenate([np.arange(100), more + 0.5])
    order = np.argsort(np.concatenate([places, more_places]))
    assert read(spill, WIDE) == values[order].tolist()


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
