import numpy as np
import pytest

import datum
from datum._inspect.profile.counting import Failure, Piece, read_pieces
from datum.format import RecordWriter


def write(path, records=1000, **options):
    datum.write({"x": np.arange(records)}, path, shuffle=False, progress=False, **options)
    return datum.load(path)["train"]


def numbers_of(split, sample):
    found = list(read_pieces(split, sample))
    assert all(isinstance(piece, Piece) for piece in found)
    return np.concatenate([piece.numbers for piece in found])


def values_of(split, pieces):
    parsed = [datum.format.parse(piece.records, split.schema)["x"] for piece in pieces]
    return np.concatenate(parsed)


def test_all_records_come_in_order(tmp_path):
    split = write(tmp_path / "out", shards=3)
    assert numbers_of(split, None).tolist() == list(range(1000))


@pytest.mark.parametrize("sample", [1, 2, 31, 100, 999])
def test_a_sample_has_as_many_records_as_asked_for_from_all_over(tmp_path, sample):
    split = write(tmp_path / "out", shards=3)
    numbers = numbers_of(split, sample)
    assert len(numbers) == sample == len(set(numbers.tolist()))
    if sample > 1:
        assert numbers[0] == 0
        assert numbers[-1] == 999


def test_records_and_numbers_belong_together(tmp_path):
    split = write(tmp_path / "out", shards=4)
    pieces = list(read_pieces(split, 100))
    assert values_of(split, pieces).tolist() == numbers_of(split, 100).tolist()


def test_a_sample_is_one_piece(tmp_path):
    assert len(list(read_pieces(write(tmp_path / "out", shards=3), 500))) == 1


def test_a_sample_larger_than_the_split_is_all_of_it(tmp_path):
    assert len(numbers_of(write(tmp_path / "out"), 5000)) == 1000


@pytest.mark.parametrize("sample", [None, 90])
def test_parts_of_splits_can_be_looked_at(tmp_path, sample):
    split = write(tmp_path / "out", shards=3)[250:750]
    pieces = list(read_pieces(split, sample))
    values = values_of(split, pieces)
    assert (values.min(), values.max()) == (250, 749)
    assert (values - 250).tolist() == np.concatenate([p.numbers for p in pieces]).tolist()


def test_of_compressed_shards_the_starts_are_read(tmp_path):
    split = write(tmp_path / "out", shards=4, compression="gzip")
    pieces = list(read_pieces(split, 40))
    assert values_of(split, pieces).tolist() == [
        *range(10),
        *range(250, 260),
        *range(500, 510),
        *range(750, 760),
    ]


def test_a_part_of_a_compressed_shard_can_be_looked_at(tmp_path):
    split = write(tmp_path / "out", compression="gzip")[400:500]
    assert values_of(split, read_pieces(split, None)).tolist() == list(range(400, 500))


def test_files_of_others_are_sampled_too(tmp_path):
    schema = datum.Schema({"x": datum.Feature("int64")})
    rows = [{"x": number} for number in range(300)]
    with RecordWriter(tmp_path / "a.tfrecord") as writer:
        for payload in datum.format.RecordFile(datum.format.encode(rows, schema).to_bytes()):
            writer.write(payload)
    split = datum.load(tmp_path / "a.tfrecord")["train"]
    assert values_of(split, read_pieces(split, 50)).tolist() == numbers_of(split, 50).tolist()


def test_a_shard_that_is_gone_is_told_of_and_passed_by(tmp_path):
    split = write(tmp_path / "out", shards=2)
    (tmp_path / "out" / "train-00000-of-00002.tfrecord").unlink()
    found = list(read_pieces(split, None))
    assert isinstance(found[0], Failure)
    assert found[0].shard == "train-00000-of-00002.tfrecord"
    assert "no such file" in found[0].text
    assert str(tmp_path) not in found[0].text
    assert values_of(split, found[1:]).tolist() == list(range(500, 1000))
