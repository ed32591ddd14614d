"""Records that come one after the other, as they lie there."""

import numpy as np
import pytest

import datum
from datum._read.copy import StoredStream, frames_of, read_run
from datum.format import RecordFile
from datum.sources import IndexedPart, StreamedPart
from tests.unit.rewrite.damaged import cut, payloads, shard_of, write_numbers


@pytest.fixture
def split(tmp_path):
    write_numbers(tmp_path / "in", compression="gzip")
    return datum.load(tmp_path / "in")["train"]


def records_of(part):
    return [
        payload for block in part.blocks() for payload in RecordFile(block.data.frames.tobytes())
    ]


def test_it_is_a_part_that_is_read_in_order(split, tmp_path):
    (part,) = split.parts().values()
    assert isinstance(part, StreamedPart)
    assert not isinstance(part, IndexedPart)
    assert records_of(part) == records_of(part) == payloads(tmp_path / "in")
    numbers = np.concatenate([block.numbers for block in part.blocks()])
    assert numbers.tolist() == list(range(90))


def test_a_slice_has_its_records_alone(split, tmp_path):
    (part,) = split[25:65].parts().values()
    assert records_of(part) == payloads(tmp_path / "in")[25:65]


def test_records_that_are_left_are_counted_anew(split, tmp_path):
    (part,) = split.parts().values()
    made = []

    def keep():
        made.append(1)
        return lambda stored: np.arange(len(stored)) % 2 == 0

    some = part.filtered(keep)
    found = records_of(some)
    assert found == [p for at in range(3) for p in payloads(tmp_path / "in")[30 * at :: 2][:15]]
    assert np.concatenate([b.numbers for b in some.blocks()]).tolist() == list(range(45))
    assert len(made) == 2
    assert some.fingerprint is None


def test_features_can_be_left_out(split):
    (part,) = split.parts().values()
    narrow = part.narrow(split.schema.select(["x"]))
    block = next(iter(narrow.blocks()))
    assert block.data.is_partial
    assert list(block.data.schema) == ["x"]
    assert narrow.fingerprint not in (None, part.fingerprint)
    assert StoredStream(part.runs, split.schema, {}, None).narrow(split.schema).fingerprint is None


def test_places_are_told(split):
    (part,) = split.parts().values()
    block = next(iter(part.blocks()))
    assert block.data.locate(0).endswith("train-00000-of-00003.tfrecord (record 0 at byte 0)")


def test_a_shard_that_is_not_as_known_is_an_error(split, tmp_path):
    run = split.runs[0]
    more = type(run)(type(run.shard)(run.shard.name, 31, run.shard.bytes, None, "gzip"), 0, 31)
    split.shards.writer = "tfrecord files"
    with pytest.raises(datum.CorruptRecordError, match="expected 31 records, .* got 30"):
        list(read_run(split.shards, more))
    cut(shard_of(tmp_path / "in"), 20)
    with pytest.raises(datum.CorruptRecordError, match="expected"):
        list(read_run(split.shards, run))


def test_frames_are_those_around_the_payloads(tmp_path):
    write_numbers(tmp_path / "in", shards=1)
    path = shard_of(tmp_path / "in")
    (records,) = RecordFile(path).chunks(100)
    frames, offsets = frames_of(records)
    assert frames.tobytes() == path.read_bytes()
    assert offsets[0] == 0
