"""One file that may be damaged."""

import numpy as np
import pytest

import datum
from datum._rewrite.salvage import ExpectedFile, salvage_file
from datum.format import RecordFile, RecordWriter, encode
from tests.unit.rewrite.damaged import cut, flip

SCHEMA = datum.Schema({"x": datum.Feature("int64")})


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(encode([{"x": n} for n in range(50)], SCHEMA).to_bytes())
    return tmp_path / "a.tfrecord"


def salvage(path, schema=SCHEMA, *, records=50, deep=False):
    seen = []
    expected = ExpectedFile("train", path, path.name, records, None)
    found = salvage_file(expected, schema, deep=deep, advance=lambda *given: seen.append(given))
    return found, seen


def kept(found):
    return [payload for records in found.runs() for payload in records]


def test_all_of_a_sound_file_is_kept(path):
    found, seen = salvage(path)
    assert len(found) == 50
    assert kept(found) == list(RecordFile(path))
    assert (found.losses, found.extra, found.compression) == ((), 0, None)
    assert sum(records for records, _ in seen) == 50


def test_places_are_those_of_the_records_that_are_kept(path):
    sizes = [16 + len(payload) for payload in RecordFile(path)]
    flip(path, sizes[0] + 14)
    found, _ = salvage(path)
    starts = np.cumsum([0, *sizes])
    assert found.places.offsets.tolist() == [0, *starts[2:-1].tolist()]
    assert found.places.ends.tolist() == [sizes[0], *starts[3:].tolist()]
    assert [(loss.damage.record, loss.records) for loss in found.losses] == [(1, 1)]


def test_the_kept_records_of_a_compressed_file_are_those_of_its_places(tmp_path):
    path = tmp_path / "a.gz"
    with RecordWriter(path, compression="gzip") as writer:
        writer.write_framed(encode([{"x": n} for n in range(50)], SCHEMA))
        writer.write(b"\xff\xff")
        writer.write_framed(encode([{"x": 50}], SCHEMA))
    found, _ = salvage(path, records=52)
    assert found.compression == "gzip"
    assert [loss.damage.kind for loss in found.losses] == ["malformed"]
    whole = list(RecordFile(path))
    assert kept(found) == [*whole[:50], whole[51]]


def test_a_file_that_is_not_there_is_a_loss_of_all_its_records(tmp_path):
    found, _ = salvage(tmp_path / "gone.tfrecord")
    assert [(loss.damage.kind, loss.records) for loss in found.losses] == [("missing file", 50)]
    assert len(found) == 0


def test_a_folder_in_place_of_a_file_is_a_loss(tmp_path):
    (tmp_path / "a.tfrecord").mkdir()
    found, _ = salvage(tmp_path / "a.tfrecord")
    assert found.losses[0].damage.kind == "unreadable file"
    assert found.losses[0].reason


def test_without_a_schema_records_may_be_anything(tmp_path):
    with RecordWriter(tmp_path / "a") as writer:
        for payload in (b"text", b"\xff", b""):
            writer.write(payload)
    found, _ = salvage(tmp_path / "a", schema=None, records=None)
    assert kept(found) == [b"text", b"\xff", b""]


def test_losses_are_in_the_order_of_the_file(path):
    data = path.read_bytes()
    stranger = encode([{"x": 0.5}]).to_bytes()
    path.write_bytes(data + stranger + data + stranger)
    flip(path, len(data) + len(stranger) + 14)
    found, _ = salvage(path, records=None)
    kinds = [(loss.damage.record, loss.damage.kind) for loss in found.losses]
    assert kinds == [(50, "schema"), (51, "payload checksum"), (101, "schema")]
    assert len(found) == 99


def test_a_run_of_strangers_is_told_one_by_one(tmp_path):
    (tmp_path / "a").write_bytes(encode([{"x": 0.5}] * 30).to_bytes())
    found, _ = salvage(tmp_path / "a", records=30)
    assert [loss.damage.record for loss in found.losses] == list(range(30))
    assert {loss.reason for loss in found.losses} == {
        "feature 'x': expected int64 values, got float values"
    }


def test_what_only_the_whole_value_tells_is_a_loss_of_its_record(tmp_path):
    schema = datum.Schema({"nested": datum.Feature("int64", (None, None))})
    rows = encode([{"nested": [[1], [2, 3]]}] * 4, schema)
    flat = datum.Schema({"nested": datum.Feature("int64", (None,))})
    lengths = {"nested": [1, 2, 3], "nested_lengths_1": [1, 7]}
    both = datum.Schema({**flat, "nested_lengths_1": datum.Feature("int64", (None,))})
    wrong = encode([lengths], both)
    path = tmp_path / "a"
    path.write_bytes(rows.to_bytes() + wrong.to_bytes() + rows.to_bytes())
    found, _ = salvage(path, schema=schema, records=9)
    assert [(loss.damage.record, loss.damage.kind) for loss in found.losses] == [(4, "schema")]
    assert len(found) == 8


def test_more_records_than_expected_are_counted(path):
    assert salvage(path, records=40)[0].extra == 10


@pytest.mark.parametrize("size", range(0, 60, 7))
def test_a_file_may_be_cut_anywhere(path, size):
    cut(path, size)
    found, _ = salvage(path)
    assert len(found) + sum(loss.records for loss in found.losses) == 50
