"""`datum.write`, from source to published dataset."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.preprocessing import LabelEncoder

import datum
from datum import Feature, Schema, SchemaError, SourceError, WriteError
from tests.unit.write.datasets import digests, read, rows, values, write


def test_rows_come_back_each_once(tmp_path):
    report = write(rows(1000), tmp_path / "out")
    assert report.records == 1000
    assert sorted(values(tmp_path / "out")) == list(range(1000))
    assert datum.load(tmp_path / "out").verify().is_sound


def test_a_source_without_records_is_an_error(tmp_path):
    spent = iter(rows(3))
    list(spent)
    for source in ([], spent, {"x": np.arange(0)}):
        with pytest.raises(SourceError, match=r"expected records, got none.*\nhint: an iterator"):
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
    with pytest.raises(WriteError, match="expected no such file, or one of Datum, got another"):
        datum.write_sidecars(out, [sidecar])
    assert (out / name).read_text() == '{"mine": 1}'
    (out / name).unlink()
    for _ in range(2):
        datum.write_sidecars(out, [sidecar])
    assert (out / name).read_text() != '{"mine": 1}'
