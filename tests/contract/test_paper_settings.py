"""Every setting of the paper's reader has its effect, seen through `train_fn` and its like."""

from __future__ import annotations

import shutil
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datum
from datum.configs import BucketConfigs, DatasetConfigs, TFRReadConfigs
from datum.errors import SplitError
from tests.contract.oracle import tf

SHARDS, IN_SHARD = 4, 10
TRAIN = SHARDS * IN_SHARD
COUNTS = {"train": TRAIN, "val": 10, "test": 7}
ROLES = list(COUNTS)


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Splits of records `x`, in order, with `items` of x % 5 values; 4 shards of 10 in train."""
    out = tmp_path_factory.mktemp("settings") / "numbers"
    source = {
        split: [{"x": i, "items": [float(i)] * (i % 5)} for i in range(count)]
        for split, count in COUNTS.items()
    }
    datum.write(source, out, shuffle=False, shards={"train": SHARDS}, progress=False)
    return out


def make(path: Path, role: str = "train", *args: Any, **settings: Any) -> Any:
    """What `<role>_fn` gives with these settings."""
    ds = datum.load(path)
    ds.dataset_configs = DatasetConfigs(**settings)
    return getattr(ds, f"{role}_fn")(role, *args)


def batches(made: Any) -> list[list[int]]:
    return [batch["x"].numpy().tolist() for batch in made]


def flat(lists: list[list[int]]) -> list[int]:
    return list(chain.from_iterable(lists))


def order(path: Path, role: str = "train", *args: Any, **settings: Any) -> list[int]:
    """The numbers in the order they come, as single records."""
    made = make(path, role, *args, **{f"batch_size_{role}": None, **settings})
    return [int(record["x"]) for record in made]


def in_order(path: Path, role: str = "train", **settings: Any) -> list[list[int]]:
    return batches(make(path, role, 1, False, **settings))


@pytest.mark.parametrize("role", ROLES)
def test_batch_size_of_a_split_is_for_that_split(numbers: Path, role: str) -> None:
    made = in_order(numbers, role, **{f"batch_size_{role}": 4, "drop_remainder": False})
    assert [len(batch) for batch in made[:-1]] == [4] * (len(made) - 1)
    assert flat(made) == list(range(COUNTS[role]))
    other = next(other for other in ROLES if other != role)
    assert len(in_order(numbers, other, **{f"batch_size_{role}": 4})[0]) == min(32, COUNTS[other])


@pytest.mark.parametrize("role", ROLES)
def test_batch_size_none_gives_single_records(numbers: Path, role: str) -> None:
    made = make(numbers, role, 1, False, **{f"batch_size_{role}": None})
    assert made.element_spec["x"].shape == ()
    assert [int(record["x"]) for record in made] == list(range(COUNTS[role]))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("is_dropped", [True, False])
def test_drop_remainder_leaves_out_a_short_batch(
    numbers: Path, role: str, is_dropped: bool
) -> None:
    name = "drop_remainder" if role == "train" else f"drop_remainder_{role}"
    made = make(numbers, role, 1, False, **{f"batch_size_{role}": 6, name: is_dropped})
    sizes = [len(batch) for batch in batches(made)]
    assert COUNTS[role] % 6
    assert sizes == [6] * (COUNTS[role] // 6) + ([] if is_dropped else [COUNTS[role] % 6])
    assert made.element_spec["x"].shape.as_list() == [6 if is_dropped else None]
    assert int(made.cardinality()) == len(sizes)


def test_a_split_smaller_than_its_batch_is_an_error_not_nothing(numbers: Path) -> None:
    with pytest.raises(SplitError, match="train_fn: split 'train': .* 64 records, .* got 40\nhint"):
        make(numbers, batch_size_train=64)


@pytest.mark.parametrize("role", ROLES)
def test_echoing_repeats_each_batch_in_training(numbers: Path, role: str) -> None:
    plain = in_order(numbers, role, **{f"batch_size_{role}": 5})
    echoed = in_order(numbers, role, **{f"batch_size_{role}": 5, "echoing": 3})
    times = 3 if role == "train" else 1
    assert echoed == [batch for batch in plain for _ in range(times)]


def test_each_echo_goes_through_the_callback_by_itself(numbers: Path) -> None:
    def add_noise(batch: dict[str, Any]) -> dict[str, Any]:
        return {"x": batch["x"], "noise": tf.random.uniform([], maxval=2**60, dtype=tf.int64)}

    made = make(numbers, "train", 1, echoing=2, post_batching_callback=add_noise)
    noise = [int(batch["noise"]) for batch in made]
    assert len(set(noise)) == len(noise) == 2


def test_repeat_is_a_number_of_epochs(numbers: Path) -> None:
    one = in_order(numbers, "val")
    assert batches(make(numbers, "val")) == one
    assert batches(make(numbers, "val", False)) == one
    assert batches(make(numbers, "val", 3)) == one * 3
    endless = make(numbers, "val", -1)
    assert int(endless.cardinality()) == tf.data.INFINITE_CARDINALITY
    assert batches(endless.take(5)) == one * 5


def test_the_positions_are_instruction_repeat_shuffle(numbers: Path) -> None:
    ds = datum.load(numbers)
    ds.dataset_configs.batch_size_train = TRAIN
    expected = list(range(TRAIN))
    assert batches(ds.train_fn("train", 1, False)) == [expected]
    (shuffled,) = batches(ds.train_fn("train", 1, True))
    assert shuffled != expected
    assert sorted(shuffled) == expected
    assert batches(ds.train_fn()) == batches(ds.train_fn("train", None, True))
    assert batches(ds.val_fn()) == batches(ds.val_fn("val", None, False))
    assert batches(ds.test_fn()) == batches(ds.test_fn("test", 1, False))


@pytest.mark.parametrize("role", ROLES)
def test_a_split_is_what_was_asked_for_not_what_the_function_is_called(
    numbers: Path, role: str
) -> None:
    ds = datum.load(numbers)
    setattr(ds.dataset_configs, f"batch_size_{role}", 5)
    made = getattr(ds, f"{role}_fn")("train[10:20]", shuffle=False)
    assert batches(made) == [[10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]


def test_the_seed_decides_the_order(numbers: Path) -> None:
    first = order(numbers, seed=1)
    assert order(numbers, seed=1) == first
    assert order(numbers, seed=2) != first
    assert sorted(first) == sorted(order(numbers, seed=2)) == list(range(TRAIN))


def test_no_seed_gives_another_order_each_time(numbers: Path) -> None:
    read = TFRReadConfigs(seed=None)
    orders = {tuple(order(numbers, seed=None, read_config=read)) for _ in range(4)}
    assert len(orders) > 1


def test_a_shuffle_gives_another_order_each_epoch_unless_told(numbers: Path) -> None:
    def epochs(**settings: Any) -> tuple[list[int], list[int]]:
        both = order(numbers, "train", 2, True, **settings)
        return both[:TRAIN], both[TRAIN:]

    first, second = epochs()
    assert first != second
    assert sorted(first) == sorted(second) == list(range(TRAIN))
    read = TFRReadConfigs(shuffle_reshuffle_each_iteration=False)
    first, second = epochs(reshuffle_each_iteration=False, read_config=read)
    assert first == second
    assert first != list(range(TRAIN))


def test_buffer_size_says_how_far_a_shuffle_reaches(tmp_path: Path) -> None:
    count = 1000
    datum.write([{"x": i} for i in range(count)], tmp_path / "d", shuffle=False, progress=False)
    read = TFRReadConfigs(interleave_cycle_length=1)
    settings = {"shuffle_files": False, "read_config": read}
    reach = {}
    for size in (10, 100, None):
        come = np.array(order(tmp_path / "d", buffer_size=size, **settings))
        assert sorted(come) == list(range(count))
        reach[size] = np.abs(come - np.arange(count)).max()
    assert 0 < reach[10] < 10 * 2 < reach[100] < 100 * 2 < reach[None]


def shards_of(numbers: list[int]) -> list[int]:
    return [number // IN_SHARD for number in numbers]


def unmixed(path: Path, repeat: int = 1, **settings: Any) -> list[int]:
    """A shuffle in which records stay beside their neighbours: only what is read is mixed."""
    read = TFRReadConfigs(interleave_cycle_length=1, **settings.pop("read", {}))
    return order(path, "train", repeat, True, buffer_size=1, read_config=read, **settings)


def test_shuffle_files_mixes_the_order_of_reading(numbers: Path) -> None:
    assert unmixed(numbers, shuffle_files=False) == list(range(TRAIN))
    orders = {tuple(unmixed(numbers, read={"seed": seed})) for seed in range(4)}
    assert len(orders) > 1
    assert all(sorted(found) == list(range(TRAIN)) for found in orders)


def test_without_a_shuffle_the_order_is_that_of_writing(numbers: Path) -> None:
    for is_mixed in (True, False):
        assert order(numbers, "train", 1, False, shuffle_files=is_mixed) == list(range(TRAIN))


def test_the_seed_of_the_order_of_reading_is_its_own(numbers: Path) -> None:
    first = unmixed(numbers, read={"seed": 1}, seed=1)
    assert unmixed(numbers, read={"seed": 1}, seed=2) == first
    assert any(unmixed(numbers, read={"seed": seed}, seed=1) != first for seed in (2, 3, 4))


def test_the_order_of_reading_is_another_each_epoch_unless_told(numbers: Path) -> None:
    def epochs(is_mixed: bool) -> set[tuple[int, ...]]:
        come = unmixed(numbers, 4, read={"shuffle_reshuffle_each_iteration": is_mixed})
        return {tuple(come[at : at + TRAIN]) for at in range(0, 4 * TRAIN, TRAIN)}

    assert len(epochs(True)) > 1
    assert len(epochs(False)) == 1


def test_cycle_and_block_length_say_how_files_take_turns(numbers: Path) -> None:
    def first(cycle: int, block: int = 1) -> list[int]:
        read = TFRReadConfigs(interleave_cycle_length=cycle, interleave_block_length=block)
        come = order(numbers, "train", 1, False, read_config=read)
        assert sorted(come) == list(range(TRAIN))
        return shards_of(come)[:8]

    assert first(1) == [0] * 8
    assert first(2) == [0, 1] * 4
    assert first(4) == [0, 1, 2, 3] * 2
    assert first(2, block=3) == [0, 0, 0, 1, 1, 1, 0, 0]
    assert first(-1) == [0] * 8


def test_the_cycle_length_counts_in_a_shuffle_too(numbers: Path) -> None:
    def places(cycle: int) -> int:
        read = TFRReadConfigs(interleave_cycle_length=cycle)
        come = order(numbers, "train", 1, True, buffer_size=1, read_config=read)
        assert sorted(come) == list(range(TRAIN))
        return sum(abs(a - b) > 1 for a, b in pairwise(come))

    assert places(1) < places(4)


def test_the_sort_function_orders_the_files(numbers: Path) -> None:
    seen = []

    def last_first(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
        seen.extend(files)
        return files[::-1]

    read = TFRReadConfigs(experimental_interleave_sort_fn=last_first, interleave_cycle_length=1)
    come = order(numbers, "train", 1, False, read_config=read)
    assert [Path(file["filename"]).name for file in seen] == [
        f"train-0000{shard}-of-00004.tfrecord" for shard in range(4)
    ]
    assert shards_of(come) == [shard for shard in (3, 2, 1, 0) for _ in range(IN_SHARD)]
    assert come[:3] == [30, 31, 32]


def test_options_of_tf_data_are_those_of_the_pipeline(numbers: Path) -> None:
    options = tf.data.Options()
    options.threading.private_threadpool_size = 3
    made = make(numbers, read_config=TFRReadConfigs(options=options))
    assert made.options().threading.private_threadpool_size == 3
    assert make(numbers).options().threading.private_threadpool_size != 3


@pytest.mark.parametrize("role", ROLES)
def test_deterministic_says_whether_the_order_is_kept(numbers: Path, role: str) -> None:
    name = "deterministic" if role == "train" else f"deterministic_{role}"
    assert make(numbers, role).options().deterministic is not False
    assert make(numbers, role, **{name: False}).options().deterministic is False
    options = tf.data.Options()
    options.deterministic = False
    loose = {"read_config": TFRReadConfigs(options=options)}
    assert make(numbers, role, **loose).options().deterministic is False
    assert make(numbers, role, **{name: True}, **loose).options().deterministic is not False
    loosely = order(numbers, role, 1, False, **{name: False})
    assert sorted(loosely) == list(range(COUNTS[role]))


def test_the_number_of_parallel_calls_is_in_the_graph(numbers: Path) -> None:
    def calls(number: int | None) -> set[int]:
        made = make(
            numbers,
            num_parallel_calls=number,
            pre_batching_callback=lambda record: record,
            read_config=TFRReadConfigs(interleave_cycle_length=2),  # the graph's own
        )
        return parallelism(made)

    assert 3 in calls(3)
    assert 3 not in calls(None)
    assert calls(-1) == calls(None)


def parallelism(made: Any) -> set[int]:
    """The numbers of parallel calls in the graph of a dataset."""
    graph = tf.compat.v1.GraphDef.FromString(made._as_serialized_graph().numpy())
    constants = {
        node.name: tf.make_ndarray(node.attr["value"].tensor)
        for node in graph.node
        if node.op == "Const" and node.attr["dtype"].type == tf.int64.as_datatype_enum
    }
    mapped = [node for node in graph.node if node.op.startswith("ParallelMap")]
    return {int(constants[name]) for node in mapped for name in node.input if name in constants}


@pytest.fixture
def doomed(numbers: Path, tmp_path: Path) -> Path:
    """A dataset of one's own, to be taken away."""
    return Path(shutil.copytree(numbers, tmp_path / "doomed"))


def remove_records(path: Path) -> None:
    for file in path.glob("*.tfrecord"):
        file.unlink()


def test_a_cache_in_memory_is_read_in_the_second_epoch(doomed: Path) -> None:
    made = make(doomed, "val", 1, False, cache=True)
    first = batches(made)
    uncached = make(doomed, "val", 1, False)
    remove_records(doomed)
    assert batches(made) == first
    with pytest.raises(tf.errors.OpError):
        batches(uncached)


def test_a_cache_in_files_outlives_the_dataset(doomed: Path, tmp_path: Path) -> None:
    settings = {"cache": True, "cache_filename": tmp_path / "cache" / "c", "batch_size_train": 10}
    (tmp_path / "cache").mkdir()
    trained = sorted(flat(batches(make(doomed, "train", 1, True, **settings))))
    validated = batches(make(doomed, "val", 1, False, **settings))
    assert trained == list(range(TRAIN))
    assert validated == [list(range(10))]
    assert all(file.name.startswith("c-") for file in (tmp_path / "cache").iterdir())
    again = make(doomed, "train", 1, True, **settings), make(doomed, "val", 1, False, **settings)
    remove_records(doomed)
    assert sorted(flat(batches(again[0]))) == trained
    assert batches(again[1]) == validated


def test_a_cache_in_files_is_not_taken_for_one_of_another_form(
    numbers: Path, tmp_path: Path
) -> None:
    settings = {"cache": True, "cache_filename": tmp_path / "c"}
    for size, is_shuffled in ((10, False), (4, False), (4, True)):
        made = batches(make(numbers, "val", 1, is_shuffled, **settings, batch_size_val=size))
        assert [len(batch) for batch in made[:-1]] == [size] * (len(made) - 1)
        assert sorted(flat(made)) == list(range(10))


def test_a_cached_dataset_is_shuffled_anew_each_epoch(numbers: Path) -> None:
    come = order(numbers, "train", 2, True, cache=True)
    first, second = come[:TRAIN], come[TRAIN:]
    assert sorted(first) == sorted(second) == list(range(TRAIN))
    assert first != second


def length(record: dict[str, Any]) -> Any:
    return tf.shape(record["items"])[0]


@pytest.mark.parametrize("role", ROLES)
def test_buckets_hold_records_of_about_one_length(numbers: Path, role: str) -> None:
    buckets = BucketConfigs(bucket_boundaries=[2, 4], bucket_batch_sizes=[4, 3, 1])
    settings = {"bucket_fn": length, "bucket_op": buckets, "drop_remainder": False}
    made = list(make(numbers, role, 1, False, **settings))
    found = []
    for batch in made:
        lengths = batch["x"].numpy() % 5
        bucket = {int(np.searchsorted([2, 4], one, "right")) for one in lengths}
        assert len(bucket) == 1
        assert len(lengths) <= [4, 3, 1][bucket.pop()]
        assert batch["items"].shape == (len(lengths), max(lengths))
        for number, row in zip(batch["x"].numpy(), batch["items"].numpy(), strict=True):
            assert row.tolist() == [number] * (number % 5) + [0] * (max(lengths) - number % 5)
        found += batch["x"].numpy().tolist()
    assert sorted(found) == list(range(COUNTS[role]))


@pytest.mark.parametrize("name", ["use_tf_padding", "use_datum_padding"])
def test_padding_fills_up_with_zeros(numbers: Path, name: str) -> None:
    (batch,) = make(numbers, "val", 1, False, **{name: True})
    expected = [[float(i)] * (i % 5) + [0.0] * (4 - i % 5) for i in range(10)]
    assert batch["items"].numpy().tolist() == expected
    (ragged,) = make(numbers, "val", 1, False)
    assert isinstance(ragged["items"], tf.RaggedTensor)
    assert ragged["items"].to_list() == [[float(i)] * (i % 5) for i in range(10)]


@pytest.mark.parametrize("role", ROLES)
def test_a_full_dataset_is_one_batch_of_tensors(numbers: Path, role: str) -> None:
    made = make(numbers, role, 1, False, full_dataset=True, **{f"batch_size_{role}": 3})
    assert isinstance(made, dict)
    assert made["x"].numpy().tolist() == list(range(COUNTS[role]))
    part = datum.load(numbers)
    part.dataset_configs.full_dataset = True
    assert part.test_fn("train[5:8]")["x"].numpy().tolist() == [5, 6, 7]


def test_a_full_dataset_goes_through_the_callbacks(numbers: Path) -> None:
    made = make(
        numbers,
        "test",
        full_dataset=True,
        pre_batching_callback=lambda record: {"x": record["x"] + 1},
        post_batching_callback=lambda batch: tf.reduce_sum(batch["x"]),
    )
    assert int(made) == sum(range(1, 8))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("when", ["pre", "post"])
def test_callbacks_are_general_or_of_a_split(numbers: Path, role: str, when: str) -> None:
    def add(number: int) -> Any:
        return lambda it: {"x": it["x"] + number, "rank": tf.fill(tf.shape(it["x"]), it["x"].ndim)}

    name = f"{when}_batching_callback"
    for own, added in ((role, 200), (next(other for other in ROLES if other != role), 100)):
        settings = {name: add(100), f"{name}_{own}": add(200), f"batch_size_{role}": 5}
        come = list(make(numbers, role, 1, False, **settings, drop_remainder=False))
        found = flat([batch["x"].numpy().tolist() for batch in come])
        assert found == list(range(added, added + COUNTS[role]))
        assert {int(rank) for batch in come for rank in batch["rank"]} == {when == "post"}


def test_the_next_call_uses_what_was_set_before_it(numbers: Path) -> None:
    ds = datum.load(numbers)
    configs = ds.dataset_configs
    configs.batch_size_val = 5
    five = ds.val_fn("val")
    configs.batch_size_val = 2
    assert len(batches(ds.val_fn("val"))[0]) == 2
    assert len(batches(five)[0]) == 5
    ds.dataset_configs = DatasetConfigs(batch_size_val=3)
    assert len(batches(ds.val_fn("val"))[0]) == 3
    assert datum.load(numbers).dataset_configs == DatasetConfigs()


@pytest.mark.parametrize("engine", ["graph", "native"])
def test_engine_is_what_reads(numbers: Path, engine: str) -> None:
    ds = datum.load(numbers)
    ds.dataset_configs.engine = engine
    made = ds.train_fn("train")
    assert f"engine={engine}: as asked for" in repr(made)
    assert flat(batches(made)) != flat(batches(ds.train_fn("train", shuffle=False)))


def test_an_engine_that_does_not_exist_is_refused() -> None:
    with pytest.raises(
        TypeError, match="engine: expected 'auto' or 'graph' or 'native', got 'fast'"
    ):
        DatasetConfigs().engine = "fast"


def test_a_misspelt_setting_is_an_error_that_names_the_right_one(numbers: Path) -> None:
    ds = datum.load(numbers)
    with pytest.raises(AttributeError, match="did you mean 'batch_size_train'"):
        ds.dataset_configs.batchsize_train = 3
    with pytest.raises(AttributeError, match="did you mean 'pre_batching_callback'"):
        ds.dataset_configs.pre_batching_callbacks = len
    with pytest.raises(AttributeError, match="did you mean 'interleave_cycle_length'"):
        ds.dataset_configs.read_config.interleave_cycle = 4
    with pytest.raises(AttributeError, match="did you mean 'bucket_boundaries'"):
        ds.dataset_configs.bucket_op.boundaries = [4]
    with pytest.raises((AttributeError, TypeError), match="DatasetConfigs"):
        ds.dataset_configs = {"batch_size_train": 3}


def test_every_setting_is_tested_here() -> None:
    text = Path(__file__).read_text()
    roots = ["drop_remainder", "deterministic", "batch_size", "_batching_callback"]
    for name in [*DatasetConfigs().to_dict(), *TFRReadConfigs().to_dict()]:
        assert name in text or any(root in name for root in roots), name
