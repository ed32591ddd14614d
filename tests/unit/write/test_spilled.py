"""Records that lie in runs."""

import numpy as np

from datum import Feature, Schema
from datum._write import spill as spill_module
from datum._write.spill import Spill, SpilledSplit
from datum.format import encode, parse

SCHEMA = Schema({"x": Feature("int64")})


def test_pieces_cover_every_record_once_whatever_the_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(spill_module, "HELD_BYTES", 400)
    spill = Spill(tmp_path, is_shuffled=False)
    for first in range(0, 100, 5):
        numbers = np.arange(first, first + 5)
        spill.add(encode({"x": numbers}, SCHEMA), numbers.astype(np.uint64), numbers, SCHEMA)
    split = SpilledSplit(spill.runs(), SCHEMA)
    assert (split.records, split.nbytes) == (100, spill.nbytes)
    found = []
    for first, last in [(0, 33), (33, 33), (33, 100)]:
        for piece in split.pieces(first, last):
            found += parse(split.write_piece(piece), SCHEMA)["x"].tolist()
    assert found == list(range(100))


def test_nothing_makes_no_pieces():
    split = SpilledSplit([], SCHEMA)
    assert (split.records, split.nbytes, split.pieces(0, 0)) == (0, 0, [])
