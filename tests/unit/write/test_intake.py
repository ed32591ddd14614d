"""Taking in sources whose schema is not known."""

import pytest

from datum import Feature, Schema
from datum._write.blocks import BlockSettings
from datum._write.order import divide_part
from datum._write.parts import Intake
from datum._write.report import Progress
from datum._write.spill import read_parts
from datum.format import parse
from datum.images import ImageOptions
from tests.unit.write.parts import Numbers
from tests.unit.write.test_indexed_order import options

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
