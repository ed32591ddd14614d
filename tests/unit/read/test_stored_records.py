"""Records of plain files as they lie there, in any order."""

import numpy as np
import pytest

import datum
from datum._read.copy import PlacedRun, Places, StoredRecords, gather_frames
from datum.format import Index, RecordFile, frame
from datum.sources import IndexedPart

SCHEMA = datum.Schema({"x": datum.Feature("int64"), "y": datum.Feature("int64")})
METADATA = {"x": {"a": 1}, "y": {"b": 2}, "other": {"c": 3}}


@pytest.fixture
def part(tmp_path):
    """Two files of ten payloads each; of the second, the last eight are in the part."""
    runs = []
    for name, start in (("a", 0), ("b", 2)):
        framed = frame([f"{name}{number}".encode() * (number + 1) for number in range(10)])
        (tmp_path / name).write_bytes(framed.to_bytes())
        index = Index(framed.offsets, framed.nbytes)
        bounds = np.append(index.offsets, index.stream_bytes)
        places = Places(tmp_path / name, bounds[:-1], bounds[1:])
        runs.append(PlacedRun(lambda places=places: places, start, 10))
    return StoredRecords(runs, SCHEMA, METADATA, "fingerprint")


def payload(number):
    name, number = ("a", number) if number < 10 else ("b", number - 8)
    return f"{name}{number}".encode() * (number + 1)


def read(part, numbers):
    block = part.read(np.array(numbers, np.int64))
    return list(RecordFile(block.data.frames.tobytes())), block


def test_it_is_a_part_that_can_be_read_in_any_order(part):
    assert isinstance(part, IndexedPart)
    assert (len(part), part.keys, part.is_slow_python) == (18, None, False)


@pytest.mark.parametrize(
    "numbers", [[0], [3, 4, 5], [5, 3, 5], [9, 10], [17, 0, 11, 4], list(range(18)), []]
)
def test_records_come_in_the_order_that_was_asked_for(part, numbers):
    found, block = read(part, numbers)
    assert found == [payload(number) for number in numbers]
    assert block.numbers.tolist() == numbers
    assert block.data.schema == SCHEMA
    assert block.data.sizes.tolist() == [16 + len(payload(number)) for number in numbers]


def test_places_are_told_by_file_record_and_byte(part):
    _, block = read(part, [12, 1])
    assert block.data.locate(0).endswith("b (record 4 at byte 84)")
    assert block.data.locate(1).endswith("a (record 1 at byte 18)")


def test_damaged_records_are_rejects_and_the_others_are_read(part, tmp_path):
    data = bytearray((tmp_path / "b").read_bytes())
    for number in (4, 6):
        data[int(part.runs[1].places().offsets[number]) + 13] ^= 1
    (tmp_path / "b").write_bytes(data)
    found, block = read(part, [13, 14, 0, 12, 11])
    assert found == [payload(number) for number in (13, 0, 11)]
    assert block.numbers.tolist() == [13, 0, 11]
    assert [(reject.record, reject.reason) for reject in block.rejects] == [
        (12, "expected a sound record, got damage: payload checksum"),
        (14, "expected a sound record, got damage: payload checksum"),
    ]
    assert block.rejects[0].where.startswith(f"{tmp_path / 'b'} (record 4 at byte ")


def test_some_of_the_records_are_counted_anew(part):
    some = part.select(np.array([1, 5, 12]))
    assert len(some) == 3
    assert read(some, [2, 0])[0] == [payload(12), payload(1)]
    assert read(some.select(np.array([1, 2])), [0, 1])[0] == [payload(5), payload(12)]
    assert some.fingerprint not in (None, part.fingerprint)
    assert some.fingerprint != part.select(np.array([1, 5, 13])).fingerprint
    assert part.select(np.array([1])).statistics is None


def test_how_many_bytes_they_take_is_known(part):
    sizes = [16 + len(payload(number)) for number in range(18)]
    assert part.stored_bytes == sum(sizes)
    assert part.select(np.array([1, 12])).stored_bytes == sizes[1] + sizes[12]
    assert part.narrow(SCHEMA.select(["x"])).stored_bytes is None


def test_features_that_are_left_out_lose_their_metadata(part):
    narrow = part.narrow(SCHEMA.select(["x"]))
    assert narrow.metadata == {"x": {"a": 1}, "other": {"c": 3}}
    assert narrow.is_partial
    assert narrow.read(np.array([0])).data.is_partial
    assert narrow.fingerprint != part.fingerprint


def test_a_part_without_a_fingerprint_stays_without(part):
    bare = StoredRecords(part.runs, SCHEMA, {}, None)
    assert bare.select(np.array([1])).fingerprint is None
    assert bare.narrow(SCHEMA).fingerprint is None


def test_a_file_that_is_cut_while_it_is_read_is_an_error(part, tmp_path):
    part.read(np.array([0]))
    with (tmp_path / "a").open("r+b") as file:
        file.truncate(50)
    with pytest.raises(datum.CorruptRecordError, match="the file was cut while it was read"):
        part.read(np.array([0]))


def test_frames_with_gaps_are_put_together():
    data = np.arange(100, dtype=np.uint8)
    frames, offsets = gather_frames(data, np.array([10, 30]), np.array([13, 32]))
    assert frames.tolist() == [10, 11, 12, 30, 31]
    assert offsets.tolist() == [0, 3]
    assert gather_frames(data, np.empty(0, np.int64), np.empty(0, np.int64))[0].tolist() == []
