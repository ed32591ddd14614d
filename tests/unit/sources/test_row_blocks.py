from datum.sources.protocol import BLOCK_RECORDS, RowBlocks


def test_numbers_go_on_from_block_to_block():
    blocks = RowBlocks(has_keys=True)
    blocks.add({"x": 0}, "a")
    blocks.reject("file", "bad", "b")
    first = blocks.take()
    blocks.reject("file", "worse")
    blocks.add({"x": 3}, "d")
    second = blocks.take()
    assert first.numbers.tolist() == [0]
    assert [(reject.record, reject.key) for reject in first.rejects] == [(1, "b")]
    assert second.numbers.tolist() == [3]
    assert second.keys == ["d"]
    assert [reject.record for reject in second.rejects] == [2]
    assert len(blocks) == 0


def test_without_keys_a_block_has_none():
    blocks = RowBlocks(has_keys=False)
    blocks.add({"x": 0})
    assert blocks.take().keys is None


def test_a_block_is_full_by_rows_and_rejects_together():
    blocks = RowBlocks(has_keys=False)
    for _ in range(BLOCK_RECORDS - 1):
        blocks.add({})
    assert not blocks.is_full
    blocks.reject("", "bad")
    assert blocks.is_full
    assert len(blocks) == BLOCK_RECORDS
