"""Keys that come twice, in every source that has keys; keys that only look alike."""

import csv
import json
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import datum
from datum.sources import ArrowTable, CsvTable, JsonLines
from tests.unit.write.datasets import digests, read, write

KEYS = ["a", "b", "c", "b", "d", "b"]  # records 3 and 5 are duplicates


def rows(folder, keys):
    return [(key, {"key": key, "x": number}) for number, key in enumerate(keys)]


def iterator(folder, keys):
    return iter(rows(folder, keys))


def function(folder, keys):
    return lambda: iter(rows(folder, keys))


def json_lines(folder, keys):
    lines = [json.dumps({"key": key, "x": number}) for number, key in enumerate(keys)]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    return JsonLines(folder / "rows.jsonl", key="key")


def csv_table(folder, keys):
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["key", "x"])
        writer.writerows([key, number] for number, key in enumerate(keys))
    return CsvTable(folder / "rows.csv", key="key")


def arrow_table(folder, keys):
    table = pa.table({"key": keys, "x": list(range(len(keys)))})
    parquet.write_table(table, folder / "rows.parquet")
    return ArrowTable(folder / "rows.parquet", key="key")


SOURCES = [rows, iterator, function, json_lines, csv_table, arrow_table]


@pytest.mark.parametrize("source", SOURCES)
def test_a_key_that_comes_twice_is_an_error_that_names_both(tmp_path, source):
    with pytest.raises(datum.SourceError, match=r"record 3 \(b\).*key of record 1 again"):
        write(source(tmp_path, KEYS), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / ".out.partial").exists()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("splits", [None, {"train": 0.5, "val": 0.5}])
@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_of_a_key_is_kept_and_the_others_are_told(tmp_path, source, splits, workers):
    out = tmp_path / "out"
    options = {"splits": splits, "workers": workers}
    report = write(source(tmp_path, KEYS), out, on_error="quarantine", **options)
    kept = [row["x"] for split in report.splits for row in read(out, split)]
    assert sorted(kept) == [0, 1, 2, 4]
    told = [json.loads(line) for line in (out / "quarantine.jsonl").read_text().splitlines()]
    assert sorted((one["record"], one["key"]) for one in told) == [(3, "b"), (5, "b")]
    for split, found in report.splits.items():
        statistics = datum.load(out).statistics[split]
        assert statistics.get("records", 0) == found.records
        assert found.rejected == sum(one["split"] == split for one in told)

    skipped = write(source(tmp_path, KEYS), tmp_path / "skipped", on_error="skip", **options)
    assert skipped.splits == report.splits
    files = digests(out)
    del files["quarantine.jsonl"]
    assert digests(tmp_path / "skipped") == files


@pytest.mark.parametrize("source", SOURCES)
def test_keys_that_look_alike_are_not_the_same(tmp_path, source):
    composed = "é"
    keys = ["a", "A", " a", "a ", composed, unicodedata.normalize("NFD", composed), "ß", "ss"]
    report = write(source(tmp_path, keys), tmp_path / "out")
    assert report.records == len(keys)
    assert sorted(row["key"] for row in read(tmp_path / "out")) == sorted(keys)


@pytest.mark.parametrize("kind", [list, iter])
def test_integers_and_their_texts_are_one_key(tmp_path, kind):
    with pytest.raises(datum.SourceError, match="key of record 0 again"):
        write(kind([(1, {"x": 1}), ("1", {"x": 2})]), tmp_path / "out")


@pytest.mark.parametrize("kind", [list, iter])
def test_a_key_that_utf8_cannot_hold_is_a_key_like_others(tmp_path, kind):
    def keyed(*keys):
        return kind([(key, {"x": 1}) for key in keys])

    out = tmp_path / "out"
    assert write(keyed("a", "\ud800", "\ud801", "?"), out).records == 4
    with pytest.raises(datum.SourceError, match="key of record 0 again"):
        write(keyed("\ud800", "\ud800"), out, overwrite=True)
    report = write(keyed("\ud800", "\ud800"), out, overwrite=True, on_error="quarantine")
    assert report.records == 1
    assert json.loads((out / "quarantine.jsonl").read_text())["record"] == 1


def test_a_duplicate_of_many_records_is_found_across_blocks(tmp_path, monkeypatch):
    from datum._write import order

    monkeypatch.setattr(order, "_HELD_RECORDS", 1000)
    keys = [f"key {number}" for number in range(10_000)]
    keys[9_999] = keys[3]
    keys[5_000] = keys[4_999]
    source = [(key, {"x": number}) for number, key in enumerate(keys)]
    for given in (source, iter(source)):
        report = write(given, tmp_path / "out", on_error="quarantine", overwrite=True)
        assert report.records == 9_998
        lines = (tmp_path / "out" / "quarantine.jsonl").read_text().splitlines()
        assert [json.loads(line)["record"] for line in lines] == [5_000, 9_999]


def test_the_split_of_a_key_stays_when_others_are_added(tmp_path):
    splits = {"train": 0.6, "val": 0.4}
    few = [(f"key {number}", {"x": number}) for number in range(500)]
    more = [(f"new {number}", {"x": 500 + number}) for number in range(500)]
    rng = np.random.default_rng(0)
    mixed = [few[at] if at < 500 else more[at - 500] for at in rng.permutation(1000)]
    write(few, tmp_path / "few", splits=splits)
    write(mixed, tmp_path / "mixed", splits=splits)
    for split in splits:
        before = {row["x"] for row in read(tmp_path / "few", split)}
        after = {row["x"] for row in read(tmp_path / "mixed", split)}
        assert before == {x for x in after if x < 500}


def test_keys_of_class_folders_are_paths_of_any_letters(tmp_path):
    from tests.unit.write.datasets import picture

    names = ["a.png", "A.png", "é.png", unicodedata.normalize("NFD", "é.png")]
    for label in ("cat", "Cat"):
        for number, name in enumerate(names):
            picture(tmp_path / "photos" / label / name, number)
    report = write(tmp_path / "photos", tmp_path / "out")
    assert report.records == 8
