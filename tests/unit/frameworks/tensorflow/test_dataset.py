"""The `tf.data.Dataset` that `to_tf` returns."""

import inspect
import json
import types

import numpy as np
import pytest
import tensorflow as tf

import datum
from datum._frameworks.tensorflow.dataset import DatumDataset, TfPipeline
from datum._frameworks.tensorflow.engine import (
    EngineChoice,
    EngineInputs,
    choose_engine,
    find_engine_inputs,
    find_host,
)
from datum._frameworks.tensorflow.options import TfKeywords, TfOptions
from datum._frameworks.tensorflow.windowed import part_of
from datum._load.options import LoadKeywords, LoadOptions
from datum._options import fields_of, help_of
from datum.configs import BucketConfigs, TFRReadConfigs
from datum.schema import Feature, Schema
from tests.unit.frameworks.tensorflow.written import damage_record, numbers, write_numbers


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return write_numbers(tmp_path_factory.mktemp("numbers"), 100)


@pytest.fixture(params=["graph", "native"])
def engine(request):
    return request.param


def both_ways(**options):
    """The options, without and with work on each record."""
    return [options, {**options, "map": lambda record: record}]


@pytest.mark.parametrize("way", both_ways())
@pytest.mark.parametrize("batch_size", [1, 7, 32, 100, 1000])
def test_batches_come_in_the_order_written(dataset, way, batch_size, engine):
    batches = dataset.to_tf(engine=engine, batch_size=batch_size, **way)
    assert numbers(batches) == list(range(100))
    assert batches.cardinality() == -(-100 // batch_size)
    dropped = dataset.to_tf(engine=engine, batch_size=batch_size, drop_remainder=True, **way)
    assert numbers(dropped) == list(range(100 // batch_size * batch_size))
    assert dropped.element_spec["x"].shape == (batch_size,)


def test_single_records_come_without_a_batch_dimension(dataset, engine):
    records = dataset.to_tf(engine=engine, batch_size=None)
    assert records.element_spec["x"].shape == ()
    assert records.cardinality() == 100
    items = [record["items"].numpy().tolist() for record in records.take(3)]
    assert items == [[], [1], [2, 2]]


@pytest.mark.parametrize("way", both_ways(shuffle=True, batch_size=8))
def test_a_shuffle_differs_by_epoch_and_by_seed(dataset, way, engine):
    batches = dataset.to_tf(engine=engine, **way)
    first, second = numbers(batches), numbers(batches)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second
    assert numbers(dataset.to_tf(engine=engine, **way)) == first
    assert numbers(dataset.to_tf(engine=engine, seed=1, **way)) != first
    once = numbers(dataset.to_tf(engine=engine, seed=None, **way))
    assert numbers(dataset.to_tf(engine=engine, seed=None, **way)) != once


@pytest.mark.parametrize("way", both_ways(shuffle=True, batch_size=8, reshuffle=False))
def test_a_shuffle_can_stay_the_same(dataset, way, engine):
    batches = dataset.to_tf(engine=engine, **way)
    assert numbers(batches) == numbers(batches) != list(range(100))


@pytest.mark.parametrize("way", both_ways(batch_size=30))
def test_epochs_end_with_their_own_batch(dataset, way, engine):
    batches = dataset.to_tf(engine=engine, epochs=2, **way)
    assert [int(tf.size(b["x"])) for b in batches] == [30, 30, 30, 10] * 2
    assert batches.cardinality() == 8
    endless = dataset.to_tf(engine=engine, epochs=None, **way)
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY
    assert len(list(endless.take(9))) == 9


def test_an_epoch_of_a_repeated_shuffle_has_every_record(dataset, engine):
    found = numbers(dataset.to_tf(engine=engine, shuffle=True, epochs=2, batch_size=10))
    assert sorted(found[:100]) == sorted(found[100:]) == list(range(100))
    assert found[:100] != found[100:]


def test_columns_are_all_that_is_read(dataset, engine):
    assert list(dataset.to_tf(engine=engine, columns=["x"]).element_spec) == ["x"]
    assert numbers(dataset.to_tf(engine=engine, columns="x")) == list(range(100))


@pytest.mark.parametrize("way", both_ways(batch_size=3))
def test_lengths_that_differ_are_ragged_or_padded(dataset, way, engine):
    ragged = next(iter(dataset.to_tf("train[:3]", engine=engine, **way)))["items"]
    assert ragged.to_list() == [[], [1], [2, 2]]
    padded = next(iter(dataset.to_tf("train[:3]", engine=engine, pad=True, **way)))["items"]
    assert padded.numpy().tolist() == [[0, 0], [1, 0], [2, 2]]
    way = {**way, "pad": {"items": -1}}
    filled = next(iter(dataset.to_tf("train[:3]", engine=engine, **way)))["items"]
    assert filled.numpy().tolist() == [[-1, -1], [1, -1], [2, 2]]


@pytest.mark.parametrize("way", both_ways(columns=["items"], batch_size=1))
def test_a_batch_of_one_record_is_dense(dataset, way, engine):
    batches = dataset.to_tf("train[3:6]", engine=engine, **way)
    assert [batch["items"].numpy().tolist() for batch in batches] == [[[n] * n] for n in (3, 4, 5)]
    spec = dataset.to_tf(engine=engine, **way, drop_remainder=True).element_spec["items"]
    assert spec == tf.TensorSpec([1, None], tf.int64)


def test_a_convolution_takes_a_batch_of_one_image_of_any_size(tmp_path, engine):
    rows = [{"image": np.full((8 + n, 9, 3), n, np.uint8), "label": 1} for n in range(3)]
    schema = {"image": datum.Feature("uint8", (None, None, 3), encoding="image")}
    datum.write(rows, tmp_path, schema=schema, shuffle=False, progress=False)
    dataset = datum.load(tmp_path)
    layer = tf.keras.layers.Conv2D(2, 3)
    for n, batch in enumerate(dataset.to_tf(batch_size=1, engine=engine)):
        assert batch["image"].shape == (1, 8 + n, 9, 3)
        assert layer(tf.cast(batch["image"], tf.float32)).shape == (1, 6 + n, 7, 2)
    last = list(dataset.to_tf(batch_size=2, engine=engine))[-1]["image"]
    assert isinstance(last, tf.RaggedTensor)  # as all of that dataset are, though it is alone


@pytest.mark.parametrize("way", both_ways(batch_size=3))
def test_a_length_makes_shapes_static_and_adds_masks(dataset, way, engine):
    batches = dataset.to_tf("train[:3]", engine=engine, pad=4, drop_remainder=True, **way)
    assert batches.element_spec["items"].shape == (3, 4)
    assert batches.element_spec["items_mask"] == tf.TensorSpec((3, 4), tf.bool)
    (batch,) = batches
    assert batch["items"].numpy().tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [2, 2, 0, 0]]
    assert tf.math.count_nonzero(batch["items_mask"], axis=1).numpy().tolist() == [0, 1, 2]
    (single,) = dataset.to_tf("train[2:3]", engine=engine, pad=4, **{**way, "batch_size": 1})
    assert single["items"].numpy().tolist() == [[2, 2, 0, 0]]
    assert single["items_mask"].numpy().tolist() == [[True, True, False, False]]
    pairs = dataset.to_tf(engine=engine, pad=100, supervised=("items", "items_mask"), **way)
    assert [spec.shape[1] for spec in pairs.element_spec] == [100, 100]


def test_callbacks_see_records_and_batches(dataset, engine):
    batches = dataset.to_tf(
        engine=engine,
        batch_size=4,
        map=lambda record: {"double": record["x"] * 2},
        batch_map=lambda batch: {"sum": tf.reduce_sum(batch["double"], keepdims=True)},
    )
    assert numbers(batches.take(2), "sum") == [12, 44]


def test_tuples_are_made_last(dataset, engine):
    batches = dataset.to_tf(
        engine=engine,
        batch_size=4,
        supervised=("x", "y"),
        batch_map=lambda b: {"x": b["x"], "y": b["x"] + 1},
    )
    x, y = next(iter(batches))
    assert (y - x).numpy().tolist() == [1] * 4
    inputs, target = next(iter(dataset.to_tf(engine=engine, supervised=(["x", "items"], "x"))))
    assert sorted(inputs) == ["items", "x"]
    assert target.shape == (32,)


def test_batches_are_echoed_before_their_callback(dataset, engine):
    batches = dataset.to_tf("train[:4]", engine=engine, batch_size=2, echo=3)
    assert numbers(batches) == [0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3]
    assert batches.cardinality() == 6
    noisy = dataset.to_tf(
        "train[:2]",
        engine=engine,
        batch_size=2,
        echo=8,
        batch_map=lambda b: {"x": b["x"], "noise": tf.random.uniform([1])},
    )
    assert len({float(b["noise"][0]) for b in noisy}) > 1


def test_buckets_hold_records_of_about_a_length(dataset, engine):
    batches = dataset.to_tf(
        engine=engine,
        bucket_fn=lambda record: tf.size(record["items"]),
        bucket_op=BucketConfigs(bucket_boundaries=[5], bucket_batch_sizes=[10, 5]),
    )
    for batch in batches:
        is_short = batch["items"].row_lengths().numpy() < 5
        assert is_short.all() or not is_short.any()
        assert len(is_short) == (10 if is_short.all() else 5)
    assert batches.cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert sorted(numbers(batches)) == list(range(100))


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("way", both_ways(batch_size=10, columns=["x"]))
def test_what_is_cached_needs_no_files_any_more(tmp_path, way, shuffle, engine):
    dataset = write_numbers(tmp_path / "set", 100)
    batches = dataset.to_tf(engine=engine, cache=True, shuffle=shuffle, **way)
    first = numbers(batches)
    for path in (tmp_path / "set").glob("*.tfrecord"):
        path.write_bytes(b"")
    second = numbers(batches)
    assert sorted(first) == sorted(second) == list(range(100))
    assert (first != second) is shuffle


@pytest.mark.parametrize("way", both_ways(batch_size=10, columns=["x"]))
def test_a_cache_can_be_a_file(tmp_path, way):
    dataset = write_numbers(tmp_path / "set", 100)
    batches = dataset.to_tf(cache=tmp_path / "kept", **way)
    assert numbers(batches) == numbers(batches) == list(range(100))
    assert list(tmp_path.glob("kept*"))


def test_a_callback_runs_anew_on_what_is_cached(dataset, engine):
    batches = dataset.to_tf(
        "train[:50]",
        engine=engine,
        cache=True,
        map=lambda r: {"noise": tf.random.uniform([])},
    )
    first, second = ([b["noise"].numpy() for b in batches] for _ in range(2))
    assert not np.array_equal(first[0], second[0])


@pytest.mark.parametrize("way", both_ways(batch_size=10))
def test_damage_raises_or_costs_one_record(tmp_path, way, engine):
    dataset = write_numbers(tmp_path, 100)
    path = sorted(tmp_path.glob("*.tfrecord"))[2]
    damage_record(path, 11)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{path}: record 11 at byte"):
        numbers(dataset.to_tf(engine=engine, **way))
    with pytest.warns(UserWarning, match="1 record of 100 lost"):
        batches = dataset.to_tf(engine=engine, on_error="skip", **way)
    assert numbers(batches) == [n for n in range(100) if n != 61]
    assert batches.cardinality() == 10
    with pytest.warns(UserWarning, match="1 record of 100 lost"):
        mixed = dataset.to_tf(engine=engine, on_error="skip", shuffle=True, **way)
    assert sorted(numbers(mixed)) == [n for n in range(100) if n != 61]


@pytest.mark.parametrize("split", ["train[10:-5]", "train[:0%]+train[90:]", "all", "train+train"])
def test_parts_of_splits_are_read(dataset, split, engine):
    expected = [int(r["x"]) for r in dataset[split]]
    assert numbers(dataset.to_tf(split, engine=engine)) == expected
    assert sorted(numbers(dataset.to_tf(split, engine=engine, shuffle=True))) == sorted(expected)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_compressed_shards_are_read(tmp_path, compression, shuffle, engine):
    dataset = write_numbers(tmp_path, 100, compression=compression)
    found = numbers(dataset.to_tf("train[7:]", engine=engine, shuffle=shuffle))
    assert (sorted(found) if shuffle else found) == list(range(7, 100))


def test_an_empty_split_gives_no_batches(tmp_path, engine):
    datum.write([{"x": 1}], tmp_path, progress=False)
    split = datum.load(tmp_path)
    assert list(split.to_tf("train", engine=engine, batch_size=2, drop_remainder=True)) == []


def test_columns_without_values_do_not_crash(tmp_path, engine):
    schema = {"none": datum.Feature("int64", (0,)), "x": datum.Feature("int64")}
    rows = [{"none": np.zeros(0, np.int64), "x": n} for n in range(3)]
    datum.write(rows, tmp_path, schema=schema, shuffle=False, progress=False)
    records = list(datum.load(tmp_path).to_tf(engine=engine, batch_size=None))
    assert [r["none"].shape for r in records] == [(0,)] * 3
    assert [int(r["x"]) for r in records] == [0, 1, 2]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_hosts_share_the_records(dataset, count):
    hosts = [(index, count) for index in range(count)]
    parts = [numbers(dataset.to_tf(host=host, remainder="keep")) for host in hosts]
    assert sorted(n for part in parts for n in part) == list(range(100))


def test_the_engine_is_told_with_its_reason(dataset):
    assert "engine=native: Python runs in this process" in repr(dataset.to_tf(shuffle=True))
    assert "engine=graph: as asked for" in repr(dataset.to_tf(engine="graph"))
    assert "engine=graph: deterministic=False" in repr(dataset.to_tf(deterministic=False))


def test_what_only_the_graph_can_do_is_refused_natively(dataset):
    with pytest.raises(ValueError, match="no cache=<files> with engine='native'"):
        dataset.to_tf(cache="kept", engine="native")


def test_files_are_read_as_the_settings_say(dataset):
    read = TFRReadConfigs(interleave_cycle_length=2, interleave_block_length=5)
    found = numbers(dataset.to_tf(read=read))
    assert found[:20] == [*range(5), *range(25, 30), *range(5, 10), *range(30, 35)]
    assert sorted(found) == list(range(100))


def test_options_of_tf_data_are_kept(dataset):
    options = tf.data.Options()
    options.threading.private_threadpool_size = 3
    options.deterministic = False
    made = dataset.to_tf(read=TFRReadConfigs(options=options)).options()
    assert made.threading.private_threadpool_size == 3
    assert made.deterministic is False


def test_images_are_decoded_or_left_as_they_are(tmp_path, engine):
    pixels = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    feature = datum.Feature("uint8", (4, 5, 3), encoding="image")
    rows = [{"image": p} for p in pixels]
    datum.write(rows, tmp_path, schema={"image": feature}, shuffle=False, progress=False)
    dataset = datum.load(tmp_path)
    (batch,) = dataset.to_tf(engine=engine)
    assert np.array_equal(batch["image"], pixels)
    spec = dataset.to_tf(engine=engine, drop_remainder=True).element_spec
    assert spec["image"].shape == (32, 4, 5, 3)
    (raw,) = dataset.to_tf(engine=engine, decode={"image": False})
    assert raw["image"].dtype == tf.string
    assert dataset.to_tf(engine=engine, decode=False).element_spec["image"].dtype == tf.string
    (sizes,) = dataset.to_tf(engine=engine, decode={"image": tf.strings.length})
    assert (sizes["image"].numpy() > 0).all()


def test_bytes_that_hold_an_image_are_decoded_on_request(tmp_path, engine):
    png = tf.io.encode_png(np.full((3, 2, 3), 7, np.uint8)).numpy()
    datum.write(
        [{"image": png}], tmp_path, schema={"image": datum.Feature("bytes")}, progress=False
    )
    dataset = datum.load(tmp_path)
    (batch,) = dataset.to_tf(engine=engine, decode={"image": True})
    assert batch["image"].to_tensor().numpy().tolist() == [[[[7] * 3] * 2] * 3]


def test_numbers_cannot_be_decoded(dataset):
    with pytest.raises(ValueError, match="holds an image, got 'x'"):
        dataset.to_tf(decode={"x": True})


@pytest.mark.parametrize("option", ["map", "batch_map"])
def test_a_function_that_returns_nothing_is_told(dataset, option):
    with pytest.raises(ValueError, match=f"`{option}` to return the new value, got None"):
        dataset.to_tf(**{option: lambda record: None})


def test_a_function_of_the_user_may_have_conditions_and_loops(dataset, engine):
    def halve(record):
        x = record["x"]
        while x > 10:
            x = x // 2
        return {"x": x}

    assert max(numbers(dataset.to_tf(engine=engine, map=halve))) == 10


def test_a_value_to_pad_with_must_fit(dataset):
    with pytest.raises(ValueError, match="`pad` of 'items' to be a value of int64, got 'x'"):
        dataset.to_tf(pad={"items": "x"})


def test_the_folder_of_a_cache_is_made(tmp_path):
    dataset = write_numbers(tmp_path / "set", 10)
    assert numbers(dataset.to_tf(cache=tmp_path / "new" / "kept")) == list(range(10))
    assert list((tmp_path / "new").glob("kept*"))


def test_what_is_drawn_for_a_picture_follows_from_the_seed(tmp_path, engine):
    pixels = np.random.default_rng(0).integers(0, 255, (6, 40, 40, 3), dtype=np.uint8)
    datum.write([{"image": p} for p in pixels], tmp_path, progress=False, **IMAGES)
    dataset = datum.load(tmp_path)
    crop = datum.transforms.random_crop(8, 8)

    def crops(**options):
        return dataset.to_tf(engine=engine, decode={"image": crop}, shuffle=True, **options)

    def images(batches):
        return np.concatenate([batch["image"].numpy() for batch in batches])

    made = crops(seed=3)
    first, second = images(made), images(made)
    assert not np.array_equal(first, second)
    assert np.array_equal(images(crops(seed=3)), first)
    assert not np.array_equal(images(crops(seed=4)), first)


IMAGES = {"schema": {"image": datum.Feature("uint8", (40, 40, 3), encoding="image")}}


def test_a_dataset_tells_its_engine_and_is_like_any_other():
    options = tf.data.Options()
    options.deterministic = False
    made = tf.data.Dataset.range(5).with_options(options)
    told = DatumDataset(TfPipeline(lambda _: made, "engine=native: as asked for"))
    assert repr(told) == str(told)
    assert repr(told) == (
        "<datum to_tf engine=native: as asked for; _OptionsDataset"
        f" element_spec={made.element_spec}>"
    )
    assert isinstance(told, tf.data.Dataset)
    assert told.element_spec == made.element_spec
    assert told.options().deterministic is False
    assert int(told.cardinality()) == len(told) == 5
    assert [int(n) for n in told.batch(2).unbatch()] == list(range(5))


AUTO = [
    ({}, "native", "Python runs in this process"),
    ({"only_in_graph": "cache=<files>"}, "graph", "cache=<files>"),
    ({"about_graph": "deterministic=False"}, "graph", "deterministic=False"),
    ({"is_traced": True}, "graph", "within a tf.function"),
    ({"is_shared": True}, "graph", "other processes may read it"),
    ({"is_shared": True, "is_traced": True}, "graph", "within a tf.function"),
]


@pytest.mark.parametrize(("situation", "engine", "reason"), AUTO)
def test_auto_is_native_unless_the_graph_is_needed(situation, engine, reason):
    assert choose_engine("auto", EngineInputs(**situation)) == EngineChoice(engine, reason)


@pytest.mark.parametrize("engine", ["graph", "native"])
@pytest.mark.parametrize("situation", [{}, {"is_traced": True}, {"is_shared": True}])
def test_what_is_asked_for_is_taken(engine, situation):
    assert choose_engine(engine, EngineInputs(**situation)) == EngineChoice(engine, "as asked for")


def test_what_only_the_graph_can_do_is_refused():
    situation = EngineInputs(only_in_graph="host='service'")
    with pytest.raises(ValueError, match=r"no host='service' with engine='native'.*\nhint: engine"):
        choose_engine("native", situation)
    assert choose_engine("graph", situation).engine == "graph"
    about = EngineInputs(about_graph="deterministic=False")
    assert choose_engine("native", about).engine == "native"


def situation(**options):
    return find_engine_inputs(TfOptions(**options))


def test_a_plain_call_is_nothing_special():
    found = situation(shuffle=True, host=(1, 3), cache=True, read=TFRReadConfigs())
    assert found == EngineInputs()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"host": "service"}, "host='service'"),
        ({"cache": "kept"}, "cache=<files>"),
        ({"shuffle": True, "shuffle_files": False}, "shuffle_files=False"),
        (
            {"read": TFRReadConfigs(experimental_interleave_sort_fn=list)},
            "read.experimental_interleave_sort_fn",
        ),
        ({"read": TFRReadConfigs(interleave_cycle_length=2)}, "read.interleave_cycle_length"),
        ({"shuffle_files": False}, None),
    ],
)
def test_what_only_the_graph_can_do_is_found(options, named):
    assert situation(**options).only_in_graph == named


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"deterministic": False}, "deterministic=False"),
        ({"read": TFRReadConfigs(options=tf.data.Options())}, "read.options"),
        ({"read": TFRReadConfigs(seed=1)}, "read.seed"),
        ({"deterministic": True}, None),
    ],
)
def test_what_is_about_the_graph_is_found(options, named):
    assert situation(**options).about_graph == named


def test_a_strategy_of_this_process_is_nothing_special():
    assert situation(host=tf.distribute.InputContext(2, 0, 2)) == EngineInputs()
    assert situation(host=tf.distribute.get_strategy()) == EngineInputs()
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        assert situation() == EngineInputs()


def test_tracing_is_found():
    seen = []

    @tf.function
    def trace():
        seen.append(situation().is_traced)

    trace()
    assert seen == [True]


@pytest.mark.parametrize(("workers", "is_cluster"), [(1, False), (2, True)])
def test_a_cluster_reads_what_no_host_is_told_for(monkeypatch, workers, is_cluster):
    cluster = {"worker": [f"localhost:{4000 + index}" for index in range(workers)]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert situation().is_shared is is_cluster
    assert not situation(host=(0, workers)).is_shared


def cluster(jobs, task_type, task_id):
    spec = types.SimpleNamespace(jobs=list(jobs), num_tasks=jobs.get)
    resolver = types.SimpleNamespace(
        cluster_spec=lambda: spec, task_type=task_type, task_id=task_id
    )
    return Placed(resolver)


class Placed(tf.distribute.Strategy):
    """A strategy of which nothing but its cluster is known."""

    def __init__(self, resolver):
        self.resolver = resolver

    @property
    def cluster_resolver(self):
        return self.resolver


@pytest.mark.parametrize(
    ("host", "found"),
    [
        (None, (0, 1)),
        ("service", (0, 1)),
        ((2, 3), (2, 3)),
        ([0, 1], (0, 1)),
        (tf.distribute.InputContext(4, 1, 4), (1, 4)),
        (Placed(None), (0, 1)),
        (cluster({}, "", 0), (0, 1)),
        (cluster({"worker": 3}, "worker", 2), (2, 3)),
        (cluster({"chief": 1, "worker": 2}, "chief", 0), (0, 3)),
        (cluster({"chief": 1, "worker": 2}, "worker", 1), (2, 3)),
        (cluster({"worker": 2, "evaluator": 1}, "evaluator", 0), (0, 1)),
    ],
)
def test_a_host_is_found(host, found):
    assert find_host(TfOptions(host=host).host) == found


@pytest.mark.parametrize("host", [(3, 3), (-1, 2), (0, 0)])
def test_a_host_outside_its_count_is_refused(host):
    with pytest.raises(ValueError, match="an index from 0"):
        find_host(TfOptions(host=host).host)


@pytest.mark.parametrize("host", [3, "01", (1, 2, 3), (0.5, 2)])
def test_what_tells_no_host_is_refused(host):
    with pytest.raises(TypeError, match=r"\(index, count\)"):
        find_host(TfOptions(host=host).host)


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("records", [0, 1, 5, 8, 97])
def test_parts_are_even_and_make_up_the_whole(records, count):
    parts = [part_of(records, (index, count)) for index in range(count)]
    assert [n for start, stop in parts for n in range(start, stop)] == list(range(records))
    sizes = [stop - start for start, stop in parts]
    assert max(sizes) - min(sizes) <= 1


SCHEMA = Schema(
    {"image": Feature("uint8", (None, None, 3), encoding="image"), "label": Feature("int64")}
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "`batch_size` of 1 or more, got 0"),
        ({"batch_size": True}, "`batch_size` of 1 or more, got True"),
        ({"epochs": -1}, "`epochs` of 1 or more, got -1"),
        ({"echo": 0}, "`echo` of 1 or more"),
        ({"shuffle": -5}, "`shuffle` of 0 or more"),
        ({"prefetch": -2}, "`prefetch` of 0 or more"),
        ({"num_parallel_calls": 0}, "`num_parallel_calls` of 1 or more"),
        ({"engine": "fast"}, "`engine` to be 'auto' or 'graph' or 'native', got 'fast'"),
        ({"on_error": "ignore"}, "`on_error` to be 'raise' or 'skip', got 'ignore'"),
        ({"bucket_op": BucketConfigs()}, "a `bucket_fn` with `bucket_op`"),
        ({"bucket_fn": len}, "hint: bucket_op=datum.configs.BucketConfigs"),
        (
            {"bucket_fn": len, "bucket_op": BucketConfigs(), "batch_size": None},
            "a `batch_size` with `bucket_fn`",
        ),
        ({"epochs": 0}, "hint: epochs=None has no end"),
        ({"seed": -1}, "`seed` of 0 or more"),
    ],
)
def test_an_option_out_of_range_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TfOptions(**options)


@pytest.mark.parametrize("name", ["prefetch", "num_parallel_calls"])
def test_autotune_leaves_the_number_to_tf_data(name):
    assert getattr(TfOptions(**{name: -1}), name) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 1.5}, "`batch_size` to be a whole number, got 1.5"),
        ({"seed": "a"}, "`seed` to be a whole number, got 'a'"),
        ({"pad": 1.5}, "`pad` to be True, False, a length, a datum.Pad, or a dict by feature"),
        ({"decode": "image"}, "`decode` to be True, False, or a dict by feature"),
        ({"decode": ["image"]}, "`decode` to be True, False, or a dict by feature"),
        ({"drop_remainder": "yes"}, "`drop_remainder` to be True or False, got 'yes'"),
        ({"cache": 3}, "`cache` to be True, False, or a file name, got 3"),
        ({"read": {"seed": 1}}, "`read` to be a datum.configs.TFRReadConfigs"),
        ({"map": "resize"}, "`map` to be a function, got 'resize'"),
        (
            {"bucket_fn": len, "bucket_op": [1, 2]},
            "`bucket_op` to be a datum.configs.BucketConfigs",
        ),
    ],
)
def test_an_option_of_another_kind_is_refused(options, message):
    with pytest.raises(TypeError, match=message):
        TfOptions(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["labl"]},
        {"columns": "labl"},
        {"decode": {"labl": False}},
        {"pad": {"labl": 0}},
        {"supervised": ("image", "labl")},
    ],
)
def test_a_misspelt_feature_is_refused_and_the_nearest_named(options):
    with pytest.raises(ValueError, match="hint: did you mean 'label'"):
        TfOptions(**options).selected(SCHEMA)


@pytest.mark.parametrize(
    "supervised", [True, ("image",), "image", ("image", 3), ("a", "b", "c", "d")]
)
def test_supervised_names_inputs_and_targets(supervised):
    with pytest.raises(TypeError, match="inputs, the targets"):
        TfOptions(supervised=supervised)


def test_only_what_is_asked_for_is_read():
    assert list(TfOptions(columns=["label"]).selected(SCHEMA)) == ["label"]
    assert list(TfOptions(supervised=("label", "label")).selected(SCHEMA)) == ["label"]
    both = TfOptions(supervised=("label", "label"), map=lambda record: record)
    assert list(both.selected(SCHEMA)) == ["image", "label"]


def test_names_that_a_callback_makes_are_its_own_affair():
    TfOptions(supervised=("pixels", "label"), map=lambda record: record).selected(SCHEMA)


def test_at_least_one_column_is_read():
    with pytest.raises(ValueError, match="at least one feature, got none"):
        TfOptions(columns=[]).selected(SCHEMA)


@pytest.mark.parametrize(
    ("declared", "keywords"), [(TfOptions, TfKeywords), (LoadOptions, LoadKeywords)]
)
def test_options_and_the_keywords_of_editors_agree(declared, keywords):
    assert set(fields_of(declared)) == set(keywords.__annotations__) == set(help_of(declared))


def test_to_tf_shows_every_option_with_its_default_and_help():
    parameters = inspect.signature(datum.Dataset.to_tf).parameters
    for name, option in fields_of(TfOptions).items():
        assert parameters[name].default == option.default
        assert f"    {name}: " in datum.Dataset.to_tf.__doc__
    assert not {"threads", "batch_tokens", "buckets"} & set(parameters)


@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("bucket_fun", "did you mean `bucket_fn`"),
        ("buckets", "`bucket_fn` and `bucket_op` set a batch size"),
        ("batch_tokens", "`bucket_fn` and `bucket_op` set a batch size"),
        ("threads", "to_tf: got an unknown option `threads`"),
    ],
)
def test_an_unknown_option_is_refused_with_a_way_out(keyword, hint):
    with pytest.raises(TypeError, match=hint):
        TfOptions.of({keyword: 1}, caller="to_tf")


def test_a_padded_batch_needs_its_mask_among_the_supervised_names():
    padded = {"remainder": "pad"}
    with pytest.raises(ValueError, match="expected 'batch_mask' among the names"):
        TfOptions(supervised=("image", "label"), **padded).selected(SCHEMA)
    masked = TfOptions(supervised=("image", "label", "batch_mask"), **padded)
    assert list(masked.selected(SCHEMA)) == ["image", "label"]
