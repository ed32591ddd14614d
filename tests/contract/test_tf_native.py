"""`to_tf(engine="native")` gives what the graph gives, in the order of all other frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import datum
from datum.configs import BucketConfigs
from tests.contract.oracle import rows_of

RECORDS = 53


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A feature of each form; records come in the order written."""
    schema = datum.Schema(
        {
            "id": datum.Feature("int64"),
            "x": datum.Feature("float32", (3,)),
            "flag": datum.Feature("bool"),
            "half": datum.Feature("float16", (2, 2)),
            "wide": datum.Feature("complex128"),
            "when": datum.Feature("datetime64[us]"),
            "label": datum.Feature("uint8"),
            "name": datum.Feature("str", default="nobody"),
            "words": datum.Feature("str", (None,)),
            "nested": datum.Feature("int64", (None, None)),
            "grid": datum.Feature("float32", (None, None), encoding="raw"),
            "bag": datum.Feature("float32", (20,), encoding="sparse"),
            "score": datum.Feature("float64", optional=True),
            "image": datum.Feature("uint8", (None, None, 3), encoding="image"),
        }
    )
    rng = np.random.default_rng(0)
    rows = [
        {
            "id": i,
            "x": np.full(3, i, np.float32),
            "flag": i % 3 == 0,
            "half": np.full((2, 2), i, np.float16),
            "wide": complex(i, -i),
            "when": np.datetime64(i, "us"),
            "label": i % 2,
            "words": ["a", "bcö", ""][: i % 4],
            "nested": [[i] * k for k in range(i % 3)],
            "grid": np.full((i % 3, i % 2 + 1), i, np.float32),
            "bag": datum.Sparse(np.array([[i % 20]]), np.array([1.0 + i], np.float32), (20,)),
            "image": rng.integers(0, 256, (4 + i % 2, 5, 3), np.uint8),
            **({"score": i / 2} if i % 3 else {}),
            **({"name": f"n{i}"} if i % 5 else {}),
        }
        for i in range(RECORDS)
    ]
    folder = tmp_path_factory.mktemp("native") / "all"
    datum.write(rows, folder, schema=schema, shards=3, shuffle=False, progress=False)
    return folder


@pytest.fixture(scope="module")
def ds(folder: Path) -> datum.Dataset:
    return datum.load(folder)


def same(record: Any) -> Any:
    return record


def length(record: Any) -> Any:
    return tf.size(record["words"])


def add_one(batch: Any) -> Any:
    return {"id": batch["id"], "more": batch["id"] + 1}


class Jitter:
    """Draws for each element from the seed of `to_tf`."""

    takes_seed = True

    def __call__(self, element: Any, *, seed: Any) -> Any:
        drawn = tf.random.stateless_uniform([], seed)
        return {"id": element["id"], "drawn": tf.zeros_like(element["id"], tf.float32) + drawn}


BUCKETS = BucketConfigs(bucket_boundaries=[1, 3], bucket_batch_sizes=[4, 5, 6])
PLAIN = ["id", "x", "words", "bag", "score"]
FEW = [*PLAIN, "image"]  # read record by record; all forms together take long to trace

CASES: dict[str, dict[str, Any]] = {
    "default": {},
    "batches": {"batch_size": 10},
    "full batches": {"batch_size": 10, "drop_remainder": True},
    "full batches by record": {"batch_size": 10, "drop_remainder": True, "map": same},
    "records": {"batch_size": None},
    "encoded": {"batch_size": 10, "decode": False},
    "epochs": {"batch_size": 10, "epochs": 2, "columns": PLAIN},
    "epochs by record": {"batch_size": 10, "epochs": 2, "map": same, "columns": FEW},
    "echo": {"batch_size": 10, "echo": 3, "columns": PLAIN},
    "columns": {"columns": ["words", "id"]},
    "supervised": {"supervised": (["x", "words"], "label", "score")},
    "padded": {"pad": {"words": b"-", "bag": 0.5}, "batch_size": 10},
    "all padded": {"pad": True, "batch_size": 10, "columns": ["words", "nested", "grid", "bag"]},
    "mapped": {"map": same, "batch_map": add_one, "batch_size": 10, "columns": FEW},
    "drawn": {"map": Jitter(), "batch_size": 10, "seed": 5, "epochs": 2, "columns": FEW},
    "drawn for batches": {"batch_map": Jitter(), "batch_size": 10, "columns": PLAIN},
    "cached": {"cache": True, "batch_size": 10, "epochs": 2, "columns": PLAIN},
    "cached by record": {"cache": True, "batch_size": 10, "epochs": 2, "columns": FEW},
    "checked first": {"on_error": "skip", "batch_size": 10},
    "in buckets": {"bucket_fn": length, "bucket_op": BUCKETS, "columns": PLAIN},
    "a part": {"split": "train[3:-7]", "batch_size": 10, "columns": FEW},
    "read ahead": {"prefetch": 3, "num_parallel_calls": 2, "columns": PLAIN},
}


@pytest.mark.parametrize("name", CASES)
def test_elements_are_those_of_the_graph(ds: datum.Dataset, name: str) -> None:
    graph, native = (ds.to_tf(**CASES[name], engine=engine) for engine in ("graph", "native"))  # type: ignore[arg-type]
    assert native.element_spec == graph.element_spec
    assert int(native.cardinality()) == int(graph.cardinality())
    for _ in range(2):  # as Keras does, once for each epoch
        for got, expected in zip(native, graph, strict=True):
            tf.nest.map_structure(assert_same, got, expected)


def assert_same(got: Any, expected: Any) -> None:
    if isinstance(expected, tf.SparseTensor):
        got, expected = tf.sparse.to_dense(got), tf.sparse.to_dense(expected)
    assert got.dtype == expected.dtype
    assert got.shape.as_list() == expected.shape.as_list()
    if got.shape.rank:
        assert rows_of(got, exact=True) == rows_of(expected, exact=True)
    else:
        np.testing.assert_array_equal(got.numpy(), expected.numpy())  # NaN is NaN


# Order.


def ids_of(batches: Any) -> list[int]:
    return [number for batch in batches for number in np.atleast_1d(batch["id"]).tolist()]


@pytest.mark.parametrize("shuffle", [False, True, 16])
@pytest.mark.parametrize("seed", [0, 9])
@pytest.mark.parametrize("by_record", [False, True])
def test_the_order_is_that_of_numpy(
    ds: datum.Dataset, shuffle: bool | int, seed: int, by_record: bool
) -> None:
    options: Any = {"shuffle": shuffle, "seed": seed, "batch_size": 8, "columns": ["id"]}
    made = ds.to_tf(engine="native", map=same if by_record else None, **options)
    loader = ds.to_numpy(**options)
    for _ in range(3):
        assert ids_of(made) == ids_of(loader)


def test_another_program_has_the_same_order(ds: datum.Dataset, folder: Path) -> None:
    options: Any = {"shuffle": True, "seed": 3, "columns": ["id"], "engine": "native"}
    tf.random.set_seed(4)
    try:
        assert ids_of(ds.to_tf(**options)) == ids_of(datum.load(folder).to_tf(**options))
    finally:
        tf.random.set_seed(None)


def test_several_iterators_at_once_each_see_every_record(ds: datum.Dataset) -> None:
    made = ds.to_tf(shuffle=True, batch_size=5, columns=["id"], engine="native")
    zipped = list(tf.data.Dataset.zip((made, made)))
    one, other = ids_of(first for first, _ in zipped), ids_of(second for _, second in zipped)
    assert sorted(one) == sorted(other) == list(range(RECORDS))
    assert one != other


@pytest.mark.filterwarnings("ignore:.*remainder='keep' ends:UserWarning")
@pytest.mark.parametrize("hosts", [2, 3])
@pytest.mark.parametrize("by_record", [False, True])
def test_hosts_share_each_batch(ds: datum.Dataset, hosts: int, by_record: bool) -> None:
    options: Any = {
        "shuffle": True,
        "batch_size": 4,
        "columns": ["id"],
        "remainder": "keep",
    }
    made = [
        ds.to_tf(engine="native", host=(at, hosts), map=same if by_record else None, **options)
        for at in range(hosts)
    ]
    for at, part in enumerate(made):
        loader = ds.to_numpy(host=(at, hosts), **options)
        assert ids_of(part) == ids_of(loader)
    assert sorted(number for part in made for number in ids_of(part)) == list(range(RECORDS))
    assert [int(part.cardinality()) for part in made] == [len(list(part)) for part in made]


def test_keras_trains_with_another_order_each_epoch(ds: datum.Dataset) -> None:
    seen: list[list[float]] = []

    class Model(tf.keras.Model):  # type: ignore[misc]
        def train_step(self, data: Any) -> Any:
            inputs, _ = data
            tf.py_function(lambda x: seen.append(x.numpy()[:, 0].tolist()), [inputs], [])
            return {"loss": tf.constant(0.0)}

    model = Model()
    model.compile("sgd", "mse")
    pairs = ds.to_tf(shuffle=True, batch_size=RECORDS, supervised=("x", "label"), engine="native")
    model.fit(pairs, epochs=3, verbose=0, shuffle=False)
    loader = ds.to_numpy(shuffle=True, batch_size=RECORDS, columns=["x"])
    assert seen == [batch["x"][:, 0].tolist() for _ in range(3) for batch in loader]


# Other ways to use it.


def test_devices_of_one_process_share_each_batch(ds: datum.Dataset) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    made = ds.to_tf(batch_size=8, columns=["id"], engine="native")
    assert ids_of(strategy.experimental_distribute_dataset(made)) == list(range(RECORDS))


def test_it_is_made_within_a_function_of_the_graph(ds: datum.Dataset) -> None:
    @tf.function
    def total() -> Any:
        made = ds.to_tf(batch_size=8, columns=["id"], engine="native")
        return made.reduce(np.int64(0), lambda so_far, batch: so_far + tf.reduce_sum(batch["id"]))

    assert int(total()) == sum(range(RECORDS))


def test_compressed_shards_and_those_of_others_are_read(
    ds: datum.Dataset, folder: Path, tmp_path: Path
) -> None:
    rows = list(ds["train"])
    options: Any = {"schema": ds.schema, "shuffle": False, "progress": False}
    datum.write(rows, tmp_path / "gzip", compression="gzip", **options)
    files = sorted(folder.glob("*.tfrecord"))
    others = datum.load([str(path) for path in files], schema=ds.schema)
    for found in (datum.load(tmp_path / "gzip"), others):
        made = found.to_tf("all", shuffle=True, columns=["id"], engine="native")
        assert ids_of(made) == ids_of(ds.to_tf(shuffle=True, columns=["id"], engine="native"))


# What goes wrong.


def test_damage_is_told_with_its_place(tmp_path: Path) -> None:
    datum.write({"x": np.arange(100)}, tmp_path, shards=2, shuffle=False, progress=False)
    path = tmp_path / "train-00001-of-00002.tfrecord"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    made = datum.load(tmp_path).to_tf(batch_size=10, engine="native")
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{path}: record 49 at byte"):
        list(made)
    assert len(list(datum.load(tmp_path).to_tf("train[:99]", batch_size=10, engine="native"))) == 10


def test_a_dataset_that_was_replaced_is_refused(tmp_path: Path) -> None:
    datum.write({"x": np.arange(10)}, tmp_path / "set", progress=False)
    made = datum.load(tmp_path / "set").to_tf(engine="native")
    datum.write({"x": np.arange(20)}, tmp_path / "set", overwrite=True, progress=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="hint: load it again"):
        list(made)


@pytest.mark.parametrize("options", [{"host": "service"}, {"cache": "files"}])
def test_what_the_native_engine_cannot_do_is_refused(
    ds: datum.Dataset, options: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="hint: engine='graph'"):
        ds.to_tf(engine="native", **options)


def test_an_unknown_engine_is_refused(ds: datum.Dataset) -> None:
    with pytest.raises(ValueError, match="'auto' or 'graph' or 'native', got 'fast'"):
        ds.to_tf(engine="fast")  # type: ignore[arg-type]
