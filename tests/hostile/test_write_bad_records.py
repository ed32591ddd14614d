"""One record in a hundred is bad: written and rejected add up to all, each with its reason."""

import collections
import itertools
import json

import numpy as np
import pytest

import datum
from datum import Feature, Schema
from datum.sources import CsvTable, JsonLines
from datum.sources import csv as csv_source
from tests.unit.write.datasets import digests, picture, read, write

COUNT = 10_000
BAD = set(range(37, COUNT, 100))
FRACTIONS = {"train": 0.8, "val": 0.2}
DIVISIONS = [{}, {"splits": FRACTIONS}, {"splits": FRACTIONS, "stratify": "label"}]
LABELS = ["a", "b", "c"]


def plain_rows(folder):
    kinds = itertools.cycle(["text", object(), 2**70, [1, 2], {1, 2}])
    return [
        {"id": number, "x": next(kinds) if number in BAD else number, "label": LABELS[number % 3]}
        for number in range(COUNT)
    ]


def iterator(folder):
    rows = plain_rows(folder)
    return lambda: iter(rows)


def keyed_rows(folder):
    return [(f"key {row['id']}", row) for row in plain_rows(folder)]


def columns(folder):
    ids = np.arange(COUNT)
    return {
        "id": ids,
        "x": np.where(np.isin(ids, list(BAD)), 1000, ids % 100),
        "label": np.array(LABELS)[ids % 3],
    }


def csv_table(folder):
    damaged = itertools.cycle(["{0}", "{0},1,2,3", "{0},\0,{1}"])
    lines = ["id,x,label"]
    for number in range(COUNT):
        label = LABELS[number % 3]
        line = next(damaged) if number in BAD else "{0},{0},{1}"
        lines.append(line.format(number, label))
    (folder / "rows.csv").write_text("\n".join(lines))
    return CsvTable(folder / "rows.csv")


def keyed_csv(folder):
    csv_table(folder)
    return CsvTable(folder / "rows.csv", key="id")


def json_lines(folder):
    damaged = itertools.cycle(["{", "[]", "5", '{"x": 1, "x": 2}', '{"x": NaN}', '{"x": "text"}'])
    lines = [
        next(damaged)
        if number in BAD
        else json.dumps({"id": number, "x": number, "label": LABELS[number % 3]})
        for number in range(COUNT)
    ]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    return JsonLines(folder / "rows.jsonl")


SOURCES = [plain_rows, iterator, keyed_rows, columns, csv_table, keyed_csv, json_lines]


def options_of(source):
    return {"schema": {"x": Feature("int8")}} if source is columns else {}


def told(out):
    return [json.loads(line) for line in (out / "quarantine.jsonl").read_text().splitlines()]


CASES = [
    (source, division)
    for source in SOURCES
    for division in (DIVISIONS if source in (iterator, csv_table) else DIVISIONS[:2])
]


@pytest.mark.parametrize(("source", "division"), CASES)
def test_what_is_written_and_what_is_rejected_add_up(tmp_path, source, division):
    options = {**options_of(source), **division}
    out = tmp_path / "quarantine"
    report = write(source(tmp_path), out, on_error="quarantine", **options)
    rejected = told(out)
    assert {one["record"] for one in rejected} == BAD
    assert len(rejected) == len(BAD)
    assert all(one["reason"].startswith(("expected", "feature 'x': expected")) for one in rejected)
    found = [int(row["id"]) for split in report.splits for row in read(out, split)]
    assert sorted(found) == sorted(set(range(COUNT)) - BAD)
    by_split = collections.Counter(one["split"] for one in rejected)
    assert {name: split.rejected for name, split in report.splits.items()} == {
        name: by_split[name] for name in report.splits
    }
    for name, split in report.splits.items():
        assert datum.load(out).statistics[name]["records"] == split.records

    if not division:
        return
    skipped = write(source(tmp_path), tmp_path / "skip", on_error="skip", workers=1, **options)
    assert skipped.splits == report.splits
    files = digests(out)
    del files["quarantine.jsonl"]
    assert digests(tmp_path / "skip") == files


@pytest.mark.parametrize("source", SOURCES)
def test_the_first_bad_record_is_an_error_by_default(tmp_path, source):
    with pytest.raises((datum.SchemaError, datum.SourceError), match=r"record \d*37") as caught:
        write(source(tmp_path), tmp_path / "out", **options_of(source))
    assert "hint: " in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / ".out.partial").exists()


def test_a_file_read_piece_by_piece_is_judged_as_one_in_memory(tmp_path, monkeypatch):
    write(csv_table(tmp_path), tmp_path / "whole", on_error="quarantine")
    monkeypatch.setattr(csv_source, "MAX_MEMORY_BYTES", 1000)
    write(csv_table(tmp_path), tmp_path / "pieces", on_error="quarantine")
    assert digests(tmp_path / "whole") == digests(tmp_path / "pieces")


@pytest.mark.parametrize("division", DIVISIONS, ids=["whole", "divided", "stratified"])
@pytest.mark.parametrize("verify", [False, True])
def test_bad_images_are_rejected_by_their_files(tmp_path, division, verify):
    photos = tmp_path / "photos"
    bad = set()
    for number in range(300):
        label = LABELS[number % 3]
        path = picture(photos / label / f"{number}.png", number % 256)
        if number % 100 == 37:
            content = path.read_bytes()
            path.write_bytes([b"", b"junk", content[:20]][number // 100])
            bad.add(f"{label}/{number}.png")
    out = tmp_path / "out"
    report = write(photos, out, on_error="quarantine", verify=verify, **division)
    assert report.records == 297
    assert {one["key"] for one in told(out)} == bad
    assert all(one["where"].endswith(one["key"]) for one in told(out))
    with pytest.raises(datum.SourceError, match=r"37\.png"):
        write(photos, tmp_path / "none")


@pytest.mark.parametrize("kind", [list, iter])
def test_records_that_are_all_bad_are_no_dataset(tmp_path, kind):
    rows = [{"x": object()} for _ in range(500)]
    for options in ({}, {"splits": FRACTIONS}):
        with pytest.raises(datum.SourceError, match="none of 500 records.*record 0"):
            write(kind(rows), tmp_path / "out", on_error="quarantine", **options)
    assert not list(tmp_path.iterdir())


def test_many_bad_records_take_time_in_proportion(tmp_path):
    """All of a block is refused; a square of it would take minutes."""
    for rows in (
        [{"x": 1}] + [{"x": "text"} for _ in range(4096)],
        [{"x": 1 if number % 2 else "text"} for number in range(4096)],
    ):
        report = write(rows, tmp_path / "out", on_error="skip", overwrite=True)
        assert report.records + sum(report.quarantined.values()) == len(rows)


def test_a_complete_schema_rejects_what_it_does_not_name(tmp_path):
    rows = [{"x": number, **({"more": 1} if number % 10 == 3 else {})} for number in range(100)]
    rows[50] = {}
    schema = Schema({"x": Feature("int64")})
    for source in (rows, iter(rows)):
        report = write(
            source, tmp_path / "out", schema=schema, on_error="quarantine", overwrite=True
        )
        assert report.records == 89
        reasons = {one["record"]: one["reason"] for one in told(tmp_path / "out")}
        assert "'more'" in reasons[3]
        assert "'x'" in reasons[50]


def test_rejects_of_an_append_join_those_that_are_there(tmp_path):
    rows = [{"x": number if number != 3 else "text"} for number in range(10)]
    out = tmp_path / "out"
    write(rows, out, on_error="quarantine")
    report = write(iter(rows), out, on_error="quarantine", append=True)
    assert report.records == 9
    assert [one["record"] for one in told(out)] == [3, 3]
    write([{"x": 1}], out, append=True)
    assert len(told(out)) == 2
    write([{"x": 1}], out, overwrite=True)
    assert not (out / "quarantine.jsonl").exists()


def test_progress_is_shown_also_when_nothing_is_good(tmp_path, monkeypatch, capsys):
    from datum._write import report

    monkeypatch.setattr(report, "LINE_SECONDS", 0.0)
    rows = [{"x": object()} for _ in range(5000)] + [{"x": 1}]
    for source in (rows, iter(rows)):
        datum.write(source, tmp_path / "out", on_error="skip", overwrite=True)
    assert "reading" in capsys.readouterr().err
