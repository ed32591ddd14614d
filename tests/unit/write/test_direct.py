"""Records that can be read in any order."""

import numpy as np

from datum._write.blocks import BLOCK_BYTES, BLOCK_RECORDS, BlockSettings, DirectSplit, block_bounds
from datum.format import parse
from datum.images import ImageOptions
from tests.unit.write.parts import Numbers


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
