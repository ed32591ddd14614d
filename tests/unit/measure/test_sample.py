"""Which records are measured, and where they lie."""

import numpy as np
import pytest

import datum
from datum._inspect.measure.timing import choose_records, spread, take_sample
from datum.errors import CorruptRecordError
from datum.format import RecordFile


@pytest.mark.parametrize(
    ("available", "record_s", "expected"),
    [
        (10**6, 1e-4, 1984),  # a fifth of a turn
        (10**6, 2e-3, 256),  # a few batches
        (10**6, 8e-3, 64),  # what there is time for
        (10**6, 1.0, 64),  # one batch at least
        (10**6, 0.0, 10**6),
        (10, 1e-3, 10),
    ],
)
def test_records_fill_a_part_of_a_turn_in_whole_batches(available, record_s, expected):
    found = choose_records(available=available, batch_size=64, record_s=record_s, turn_s=1.0)
    assert found == expected


@pytest.mark.parametrize(
    ("lengths", "wanted", "expected"),
    [
        ([100], 30, [(0, 30)]),
        ([100, 100], 30, [(0, 15), (1, 15)]),
        ([100] * 4, 4, [(0, 1), (1, 1), (2, 1), (3, 1)]),
        ([100] * 4, 2, [(0, 1), (1, 1)]),
        ([3, 3, 3], 100, [(0, 3), (1, 3), (2, 3)]),
        ([1] * 10, 6, [(0, 1), (1, 1), (3, 1), (5, 1), (6, 1), (8, 1)]),
        ([1, 50, 1, 50], 40, [(0, 1), (1, 19), (2, 1), (3, 19)]),
    ],
)
def test_records_come_from_all_over(lengths, wanted, expected):
    assert spread(lengths, wanted) == expected


@pytest.mark.parametrize("wanted", [1, 7, 60, 96, 1000])
def test_as_many_records_are_taken_as_are_wanted(numbers, wanted):
    sample = take_sample(numbers["train"], wanted)
    assert sample.records == min(wanted, 96)
    assert sum(len(piece.offsets) for piece in sample.pieces) == sample.records


def test_pieces_hold_the_bytes_of_the_records(numbers):
    sample = take_sample(numbers["train"], 30)
    for piece, run in zip(sample.pieces, sample.split.runs, strict=True):
        records = RecordFile(piece.path)
        found = RecordFile(memoryview(piece.read()))
        assert list(found) == records[run.start : run.stop]
    assert sample.bytes == sum(piece.end - piece.start for piece in sample.pieces)


def test_a_part_of_a_split_is_sampled_from_that_part(numbers):
    sample = take_sample(numbers["train[50:60]"], 10)
    found = sorted(int(record["x"]) for record in sample.split)
    assert found == sorted(int(record["x"]) for record in numbers["train[50:60]"])


def test_compressed_shards_are_measured_as_plain_files(squeezed):
    sample = take_sample(squeezed["train"], 20)
    assert sample.records == 20
    assert all(RecordFile(piece.path).compression is None for piece in sample.pieces)


def test_records_of_damaged_files_are_found_by_where_they_are(tmp_path):
    from datum._inspect.measure.timing import _lengths_at
    from datum.format import frame

    path = tmp_path / "two.tfrecord"
    path.write_bytes(frame([b"four", b"sixsix"]).to_bytes())
    assert _lengths_at(path, np.array([0, 20])).tolist() == [4, 6]


def test_a_file_that_lost_its_end_is_refused(tmp_path):
    datum.write({"x": range(10)}, tmp_path / "d", progress=False)
    sample = take_sample(datum.load(tmp_path / "d")["train"], 10)
    (piece,) = sample.pieces
    piece.path.write_bytes(piece.path.read_bytes()[:-5])
    with pytest.raises(CorruptRecordError, match="expected .* bytes, got"):
        piece.read()
