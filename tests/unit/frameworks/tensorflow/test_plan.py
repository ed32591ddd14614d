import pytest

from datum.configs import TFRReadConfigs
from datum.frameworks.tensorflow import windowed as module
from datum.frameworks.tensorflow.options import TfOptions
from datum.frameworks.tensorflow.windowed import make_plan
from tests.unit.frameworks.tensorflow.written import write_numbers


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    return write_numbers(tmp_path_factory.mktemp("plan"), 1000)["train"]


def test_records_in_order_are_read_as_whole_batches(split):
    plan = make_plan(split, TfOptions(batch_size=32))
    assert plan.shuffling is None
    assert (plan.reading.chunk, plan.table.block_records) == (512, 2048)
    assert make_plan(split, TfOptions(batch_size=500)).reading.chunk == 500
    assert make_plan(split, TfOptions(batch_size=1000)).reading.chunk == 1000
    assert make_plan(split, TfOptions(batch_size=None)).reading.chunk == 512


def test_a_window_is_bounded_by_records_and_by_bytes(split, monkeypatch):
    assert make_plan(split, TfOptions(shuffle=True)).shuffling.window == module.WINDOW_RECORDS
    monkeypatch.setattr(module, "WINDOW_BYTES", 50 * 100)
    assert 10 < make_plan(split, TfOptions(shuffle=True)).shuffling.window < 200
    assert make_plan(split, TfOptions(shuffle=77)).shuffling.window == 77
    assert make_plan(split, TfOptions(shuffle=0)).shuffling is None


def test_a_window_is_made_of_many_places(split):
    plan = make_plan(split, TfOptions(shuffle=320))
    assert plan.reading.chunk == 320 // module.CYCLE
    assert plan.reading.cycle == module.CYCLE


def test_what_is_cached_is_read_in_order(split):
    plan = make_plan(split, TfOptions(shuffle=True, cache=True), is_cached=True)
    assert plan.table.block_records == plan.reading.chunk * module.ORDERED_BLOCK_CHUNKS


def test_large_records_are_told(split, monkeypatch):
    assert not make_plan(split, TfOptions()).has_large_records
    monkeypatch.setattr(module, "LARGE_RECORD_BYTES", 10)
    assert make_plan(split, TfOptions()).has_large_records


def test_seeds_are_those_given_or_new_ones(split):
    plans = [make_plan(split, TfOptions(shuffle=True, seed=None)) for _ in range(2)]
    assert plans[0].shuffling.seed != plans[1].shuffling.seed
    fixed = make_plan(split, TfOptions(shuffle=True, seed=7)).shuffling
    assert (fixed.seed, fixed.block_seed) == (7, 7)
    own = make_plan(split, TfOptions(shuffle=True, seed=7, read=TFRReadConfigs(seed=9))).shuffling
    assert (own.seed, own.block_seed) == (7, 9)
    assert (
        make_plan(split, TfOptions(shuffle=True, shuffle_files=False)).shuffling.block_seed is None
    )


def test_files_come_in_the_order_asked_for(split):
    read = TFRReadConfigs(experimental_interleave_sort_fn=lambda files: files[::-1])
    plan = make_plan(split, TfOptions(batch_size=250, read=read))
    paths = [block.path for block in plan.table.blocks]
    assert paths == sorted(paths, reverse=True)
    assert plan.table.records == 1000


def test_files_that_are_none_of_the_split_are_refused(split):
    read = TFRReadConfigs(
        experimental_interleave_sort_fn=lambda files: [{"filename": "x", "skip": 0}]
    )
    with pytest.raises(ValueError, match="return the files it was given"):
        make_plan(split, TfOptions(read=read))


def test_files_are_interleaved_to_the_record_where_asked(split):
    read = TFRReadConfigs(interleave_cycle_length=2, interleave_block_length=3)
    plan = make_plan(split, TfOptions(read=read))
    assert (plan.reading.cycle, plan.reading.chunk, plan.reading.run) == (2, 3, 1)
    assert len(plan.table.blocks) == 4


def test_chunks_and_blocks_are_bounded_by_bytes(split, monkeypatch):
    record_bytes = make_plan(split, TfOptions()).table.record_bytes
    monkeypatch.setattr(module, "CHUNK_BYTES", record_bytes * 10)
    plan = make_plan(split, TfOptions(batch_size=32))
    assert plan.reading.chunk == plan.table.block_records == 10
    plan = make_plan(split, TfOptions(batch_size=4))
    assert (plan.reading.chunk, plan.table.block_records) == (8, 8)
