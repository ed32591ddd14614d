"""`datum.write`, from source to published dataset."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import LabelEncoder

import datum
from datum import Feature, Schema, SchemaError, SourceError, WriteError
from datum._write import order, report
from datum._write.blocks import BLOCK_BYTES, BLOCK_RECORDS, BlockSettings, DirectSplit, block_bounds
from datum._write.order import KeyLedger, find_duplicates, hash_records
from datum._write.report import SplitReport, WriteReport, show_progress
from datum.format import RecordFile, parse
from datum.images import ImageOptions
from datum.sources.table_part import TablePart
from tests.unit.write.datasets import digests, read, rows, values, write
from tests.unit.write.parts import Numbers


def test_rows_come_back_each_once(tmp_path):
    report = write(rows(1000), tmp_path / "out")
    assert report.records == 1000
    assert sorted(values(tmp_path / "out")) == list(range(1000))
    assert datum.load(tmp_path / "out").verify().is_sound


def test_a_source_without_records_is_an_error(tmp_path):
    spent = iter(rows(3))
    list(spent)
    for source in ([], spent, {"x": np.arange(0)}):
        with pytest.raises(SourceError, match=r"expected records, got none.*\nhint: an exhausted"):
            write(source, tmp_path / "out")
        with pytest.raises(SourceError, match="expected records, got none"):
            write(source, tmp_path / "out", schema={"x": Feature("int64")})
    assert list(tmp_path.iterdir()) == []
    write({"train": rows(3), "val": []}, tmp_path / "out")
    assert read(tmp_path / "out", "val") == []


def test_records_are_shuffled_by_seed_alone(tmp_path):
    for name, options in {"a": {}, "b": {}, "c": {"seed": 1}, "d": {"shuffle": False}}.items():
        write(rows(500), tmp_path / name, **options)
    assert values(tmp_path / "a") == values(tmp_path / "b") != values(tmp_path / "c")
    assert values(tmp_path / "d") == list(range(500))


def test_columns_and_rows_of_the_same_values_give_the_same_shards(tmp_path):
    write([{"x": i} for i in range(500)], tmp_path / "rows")
    write({"x": np.arange(500)}, tmp_path / "columns")
    name = "train-00000-of-00001.tfrecord"
    assert (tmp_path / "rows" / name).read_bytes() == (tmp_path / "columns" / name).read_bytes()


def test_types_are_taken_from_all_records(tmp_path):
    source = [{"x": 1} for _ in range(5000)] + [{"x": 0.25}, {"x": 2, "late": "a"}]
    write(source, tmp_path / "out", shuffle=False)
    ds = datum.load(tmp_path / "out")
    assert ds.schema["x"] == Feature("float32")
    assert ds.schema["late"] == Feature("str", optional=True)
    assert values(tmp_path / "out")[-3:] == [1.0, 0.25, 2.0]


def test_a_schema_is_enforced(tmp_path):
    schema = Schema({"x": Feature("uint8")})
    write([{"x": 1}], tmp_path / "out", schema=schema)
    assert datum.load(tmp_path / "out").schema == schema
    with pytest.raises(SchemaError, match=r"record 1.*'x'.*uint8.*300"):
        write([{"x": 1}, {"x": 300}], tmp_path / "b", schema=schema)
    with pytest.raises(SchemaError, match="'y'"):
        write([{"x": 1, "y": 2}], tmp_path / "b", schema=schema)
    assert not (tmp_path / "b").exists()


def test_a_dict_of_features_fixes_those_alone(tmp_path):
    write(rows(10), tmp_path / "out", schema={"x": Feature("float32")})
    schema = datum.load(tmp_path / "out").schema
    assert schema == Schema({"x": Feature("float32"), "text": Feature("str")})
    with pytest.raises(SchemaError, match="did you mean 'text'"):
        write(rows(10), tmp_path / "b", schema={"txt": Feature("str")})


@dataclass
class Point:
    x: int
    tag: str


def test_rows_may_be_dataclasses_and_nested(tmp_path):
    write([Point(1, "a"), Point(2, "b")], tmp_path / "a", shuffle=False)
    assert values(tmp_path / "a", "tag") == ["a", "b"]
    write([{"p": {"x": 1, "y": 2}}], tmp_path / "b")
    assert read(tmp_path / "b") == [{"p/x": 1, "p/y": 2}]


def test_a_function_a_generator_and_a_sequence_are_sources(tmp_path):
    write(lambda: iter(rows(5)), tmp_path / "a", shuffle=False)
    write((row for row in rows(5)), tmp_path / "b", shuffle=False)
    write(tuple(rows(5)), tmp_path / "c", shuffle=False)
    assert digests(tmp_path / "a") == digests(tmp_path / "b") == digests(tmp_path / "c")


def test_an_error_of_the_source_names_the_record(tmp_path):
    def broken():
        yield {"x": 1}
        raise RuntimeError("the disk is gone")

    with pytest.raises(SourceError, match="record 1.*the disk is gone"):
        write(broken(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_is_not_replaced_unasked(tmp_path):
    write(rows(3), tmp_path / "out")
    before = digests(tmp_path / "out")
    with pytest.raises(WriteError, match="overwrite=True"):
        write(rows(5), tmp_path / "out")
    assert digests(tmp_path / "out") == before
    write(rows(5), tmp_path / "out", overwrite=True)
    assert len(read(tmp_path / "out")) == 5


def test_a_failed_overwrite_leaves_the_old_dataset(tmp_path):
    write(rows(3), tmp_path / "out")
    before = digests(tmp_path / "out")
    with pytest.raises(SchemaError):
        write([{"x": object()}], tmp_path / "out", overwrite=True)
    assert digests(tmp_path / "out") == before


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    def refuse(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("datum._write.shards._ChecksummedFile.write", refuse)
    with pytest.raises(WriteError, match=r"published.*No space left.*\nhint: the same call"):
        write(rows(3), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_second_run_redoes_only_shards_that_were_not_finished(tmp_path, monkeypatch):
    from datum._write import shards
    from datum._write.staging import Staging

    real = Staging.save_done
    finished = []

    def stop_at_third(self, name, result):
        if len(finished) == 2:
            raise OSError(28, "No space left on device")
        finished.append(name)
        real(self, name, result)

    source = {"x": np.arange(1000)}
    write(source, tmp_path / "reference", shards=5)
    with monkeypatch.context() as patch:
        patch.setattr(Staging, "save_done", stop_at_third)
        patch.setattr(shards, "_PENDING_SHARDS", 1)  # one after the other
        with pytest.raises(WriteError):
            write(source, tmp_path / "out", shards=5)
    report = write(source, tmp_path / "out", shards=5)
    assert report.resumed_shards == 2
    assert digests(tmp_path / "out") == digests(tmp_path / "reference")


def test_other_data_does_not_resume(tmp_path, monkeypatch):
    from datum._write.staging import Staging

    def fail(self, *, overwrite):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Staging, "publish", fail)
        with pytest.raises(WriteError):
            write({"x": np.arange(10)}, tmp_path / "out")
    report = write({"x": np.arange(1, 11)}, tmp_path / "out")
    assert report.resumed_shards == 0
    assert sorted(values(tmp_path / "out")) == list(range(1, 11))


def test_a_stopped_write_says_how_to_go_on(tmp_path, capfd):
    def stopped():
        yield {"x": 1}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(stopped(), tmp_path / "out")
    assert "nothing was published\nhint: the same call starts anew" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("sidecar", "name"),
    [("older", "shard_info.json"), ("label_map", "label_map.pbtxt"), ("tfds", "features.json")],
)
def test_sidecars_replace_their_own_kind_alone(tmp_path, sidecar, name):
    out = tmp_path / "out"
    write([{"label": "cat"}, {"label": "background"}], out, encoders={"label": LabelEncoder()})
    (out / name).write_text('{"mine": 1}')
    with pytest.raises(WriteError, match="this file is not from Datum"):
        datum.write_sidecars(out, [sidecar])
    assert (out / name).read_text() == '{"mine": 1}'
    (out / name).unlink()
    for _ in range(2):
        datum.write_sidecars(out, [sidecar])
    assert (out / name).read_text() != '{"mine": 1}'


def test_shards_are_filled_evenly(tmp_path):
    report = write(rows(103), tmp_path / "out", shards=4)
    assert report.shards == 4
    counts = [shard.records for shard in datum.load(tmp_path / "out").splits["train"].shards]
    assert counts == [25, 26, 26, 26]
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["datum.json", "index", *(f"train-0000{n}-of-00004.tfrecord" for n in range(4))]
    indexes = sorted(path.name for path in (tmp_path / "out/index").iterdir())
    assert indexes == [f"of-train-0000{n}-of-00004.index" for n in range(4)]


@pytest.mark.parametrize(
    "make", [rows, lambda count: {"x": np.arange(count)}], ids=["rows", "columns"]
)
@pytest.mark.parametrize(
    ("records", "limit", "expected"),
    [
        (100, 25, [25, 25, 25, 25]),
        (103, 25, [20, 21, 20, 21, 21]),
        (9, 10, [9]),
        (10, 10, [10]),
        (11, 10, [5, 6]),
        (3, 1, [1, 1, 1]),
    ],
)
def test_shards_hold_at_most_as_many_records_as_asked(tmp_path, make, records, limit, expected):
    source = make(records)
    options = {"records_per_shard": limit, "shard_bytes": 1024}
    assert write(source, tmp_path / "out", **options).shards == len(expected)
    counts = [shard.records for shard in datum.load(tmp_path / "out").splits["train"].shards]
    assert counts == expected
    assert datum.plan(source, **options).splits["train"].shards == len(expected)


def test_each_split_and_each_addition_is_filled_by_records(tmp_path):
    sources = {"train": rows(50), "val": rows(5)}
    report = write(sources, tmp_path / "out", records_per_shard=20)
    assert {name: split.shards for name, split in report.splits.items()} == {"train": 3, "val": 1}
    report = write({"train": rows(21)}, tmp_path / "out", records_per_shard=20, append=True)
    assert report.splits["train"].shards == 2


def test_more_shards_than_names_can_count_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("datum._write.options.MAX_SHARDS", 10)
    message = (
        "expected at most 10 shards, got 21 by `records_per_shard` 1\nhint: records_per_shard=3"
    )
    for source in (rows(21), {"x": np.arange(21)}):
        with pytest.raises(ValueError, match=message):
            write(source, tmp_path / "out", records_per_shard=1)
        with pytest.raises(ValueError, match=message):
            datum.plan(source, records_per_shard=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "make", [rows, lambda count: {"x": np.arange(count)}], ids=["rows", "columns"]
)
def test_shards_become_about_as_large_as_asked(tmp_path, make):
    report = write(make(20_000), tmp_path / "out", shard_bytes=100_000)
    sizes = [shard.bytes for shard in datum.load(tmp_path / "out").splits["train"].shards]
    assert report.bytes / len(sizes) == pytest.approx(100_000, rel=0.2)
    assert max(sizes) < 1.1 * min(sizes)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_shards_may_be_compressed(tmp_path, compression):
    write(rows(500), tmp_path / "out", compression=compression)
    path = tmp_path / "out/train-00000-of-00001.tfrecord"
    assert RecordFile(path).compression == compression
    assert sorted(values(tmp_path / "out")) == list(range(500))


@pytest.mark.parametrize("make", [rows, lambda n: {"x": np.arange(n)}], ids=["rows", "columns"])
def test_the_bytes_do_not_depend_on_the_number_of_workers(tmp_path, make):
    for workers in (1, 2, 8):
        write(make(20_000), tmp_path / str(workers), workers=workers, shards=3)
    assert digests(tmp_path / "1") == digests(tmp_path / "2") == digests(tmp_path / "8")


def test_encoders_are_applied_and_described(tmp_path):
    text = pytest.importorskip("sklearn.feature_extraction.text")
    source = [{"text": "a bee"}, {"text": "bee sea"}]
    encoders = {"text": text.CountVectorizer()}
    write(source, tmp_path / "out", encoders=encoders, shuffle=False)
    ds = datum.load(tmp_path / "out")
    assert ds.schema["text"].encoding == "sparse"
    assert ds.metadata["text"]["size"] == 2
    assert read(tmp_path / "out")[1]["text"].to_dense().tolist() == [1, 1]


def test_statistics_are_kept(tmp_path):
    write([{"x": i % 10} for i in range(1000)], tmp_path / "out")
    found = datum.load(tmp_path / "out").statistics["train"]
    assert "x" in json.dumps(found)


def test_the_files_of_the_older_library_are_written_on_request(tmp_path):
    write(rows(3), tmp_path / "out", sidecars=["older"])
    assert json.loads((tmp_path / "out/shard_info.json").read_text()) == {
        "train": {"train-00000-of-00001.tfrecord": 3}
    }


def test_a_source_that_keeps_records_back_is_noticed(tmp_path):
    class Forgetful(TablePart):
        def read(self, numbers):
            return super().read(numbers[numbers != 7])

    class Source:
        def parts(self):
            return {"train": Forgetful({"x": np.arange(100)})}

    with pytest.raises(datum.WriteError, match="expected the 100 records of the source, got 99"):
        write(Source(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def split_of(part, order):
    return DirectSplit(part, order, BlockSettings(part.schema, {}, ImageOptions(), {}, "raise"))


def test_records_are_read_in_the_order_in_which_they_are_stored():
    part = Numbers(10, stored_bytes=100)
    order = np.array([3, 1, 9, 0])
    split = split_of(part, order)
    (piece,) = split.pieces(1, 4)
    made = split.write_piece(piece)
    assert part.read_numbers == [1, 9, 0]
    assert parse(made.framed, part.schema)["x"].tolist() == [1, 9, 0]


def test_the_size_is_that_which_the_part_tells_or_that_of_the_first_records():
    assert split_of(Numbers(10, stored_bytes=1000), np.arange(5)).nbytes == 500 + 5 * 64
    part = Numbers(100_000)
    split = split_of(part, np.arange(100_000)[::-1])
    assert 25 * 100_000 < split.nbytes < 40 * 100_000
    assert len(part.read_numbers) < 1000


def test_nothing_has_no_size_and_no_pieces():
    split = split_of(Numbers(0), np.arange(0))
    assert (split.nbytes, split.pieces(0, 0)) == (0, [])


def test_a_block_is_bounded_in_records_and_in_bytes():
    assert block_bounds(10, 10_000, 1.0)[0] == (10, 10 + BLOCK_RECORDS)
    assert block_bounds(0, 4, BLOCK_BYTES / 2) == [(0, 2), (2, 4)]
    assert block_bounds(0, 2, 10.0 * BLOCK_BYTES) == [(0, 1), (1, 2)]
    assert block_bounds(5, 5, 1.0) == []


def test_records_can_be_appended(tmp_path):
    write(rows(10), tmp_path / "out")
    shard = tmp_path / "out/train-00000-of-00001.tfrecord"
    before = shard.stat().st_mtime_ns
    more = [{"x": i, "text": "new", "extra": 1.5} for i in range(10, 15)]
    report = write(more, tmp_path / "out", append=True, shuffle=False)
    assert report.records == 5
    ds = datum.load(tmp_path / "out")
    assert ds.splits["train"].records == 15
    assert ds.schema["extra"] == Feature("float32", optional=True)
    assert shard.stat().st_mtime_ns == before
    assert values(tmp_path / "out")[10:] == [10, 11, 12, 13, 14]
    assert ds.verify().is_sound
    write([{"x": 1}], tmp_path / "out", append=True, splits={"val": 1.0})
    assert datum.load(tmp_path / "out").splits["val"].records == 1


def test_records_that_do_not_fit_are_not_appended(tmp_path):
    write(rows(10), tmp_path / "out")
    before = digests(tmp_path / "out")
    for source in ([{"x": 0.1, "text": "a"}], [{"x": "a", "text": "a"}]):
        with pytest.raises(SchemaError, match="'x'"):
            write(source, tmp_path / "out", append=True)
    assert digests(tmp_path / "out") == before


def test_nothing_to_append_to_is_an_error(tmp_path):
    with pytest.raises(WriteError, match="expected a dataset to append to"):
        write(rows(1), tmp_path / "out", append=True)


def hashes_of(keys):
    return hash_records(np.arange(len(keys)), keys)


@pytest.mark.parametrize("at_once", [2**24, 2])
def test_every_record_after_the_first_of_a_key_is_rejected(monkeypatch, at_once):
    monkeypatch.setattr(order, "_PASS_RECORDS", at_once)
    keys = ["a", "b", "a", "c", "b", "a"]
    found = find_duplicates(hashes_of(keys), keys.__getitem__)
    assert [(reject.record, reject.key) for reject in found] == [(2, "a"), (4, "b"), (5, "a")]
    assert "key of record 0 again" in found[0].reason


def test_keys_of_one_hash_that_differ_are_fine():
    assert find_duplicates(np.zeros(2, np.uint64), ["a", "b"].__getitem__) == []


@pytest.mark.parametrize("held", [2**20, 1])
def test_a_ledger_tells_keys_that_came_long_ago(tmp_path, monkeypatch, held):
    monkeypatch.setattr(order, "_HELD_RECORDS", held)
    ledger = KeyLedger(tmp_path / "deep/keys")
    for numbers, keys in [([0, 1], ["ä", "b"]), ([5, 6], ["", "c"]), ([8, 9], ["d", "ä"])]:
        ledger.add(hashes_of(keys), np.array(numbers), keys)
    found = ledger.find_duplicates()
    assert [(reject.record, reject.key) for reject in found] == [(9, "ä")]
    assert "key of record 0 again" in found[0].reason


def test_an_empty_ledger_has_no_duplicates(tmp_path):
    assert KeyLedger(tmp_path / "keys").find_duplicates() == []


def test_nothing_is_said_when_nothing_is_wanted(capfd):
    with show_progress(False) as shown:
        shown.stage("writing", 10)
        shown.advance(10, 100)
    assert capfd.readouterr() == ("", "")
    assert (shown.records, shown.nbytes) == (10, 100)


def test_without_a_terminal_there_is_a_line_now_and_then(capfd, monkeypatch):
    monkeypatch.setattr(report, "LINE_SECONDS", 0.0)
    with show_progress(None) as shown:
        shown.stage("writing", 10)
        shown.advance(5, 100)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("writing: 5 of 10 records, ")
    assert err.count("\n") == 1


def test_a_short_write_says_nothing_without_a_terminal(capfd):
    with show_progress(None) as shown:
        shown.stage("writing", None)
        shown.advance(5, 100)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_gets_a_bar(capfd, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with show_progress(None) as shown:
        shown.stage("writing", 10)
        shown.advance(5, 100)
    out, err = capfd.readouterr()
    assert out == ""
    assert "writing" in err
    assert "5/10" in err
    assert "records/s" in err


def test_a_stage_starts_to_count_anew():
    with show_progress(False) as shown:
        shown.advance(5, 100)
        shown.stage("writing", 10)
        assert shown.records == 0
        shown.advance(1, 10)
        records, nbytes = shown.rates
    assert nbytes == pytest.approx(10 * records)


def test_a_report_adds_up_its_splits():
    report = WriteReport(
        Path("photos"),
        {"train": SplitReport(900, 10_000, 2, 3), "val": SplitReport(1, 500, 1)},
        1.25,
        resumed_shards=1,
        quarantine=Path("photos/quarantine.jsonl"),
        skipped=("a.txt", "b.md", "c.db", "d.txt"),
    )
    assert (report.records, report.bytes, report.shards) == (901, 10_500, 3)
    assert report.quarantined == {"train": 3, "val": 0}
    assert str(report).splitlines() == [
        "photos: 901 records in 1.2 s",
        "  train  900 records, 2 shards, 10.0 kB; 3 left out",
        "  val    1 record, 1 shard, 500 B",
        "  resumed 1 shard of an earlier run",
        "  left out, with reasons: photos/quarantine.jsonl",
        "  skipped 4 files without records: a.txt, b.md, c.db, ...",
    ]
