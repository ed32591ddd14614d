"""What `to_tf` gives is a tf.data.Dataset as any other: typed, counted, saved, resumed, trained on.

And with the engine "graph" no Python runs for it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

import datum
from datum._frameworks.tensorflow import graph
from datum.configs import BucketConfigs

RECORDS = 43
BUCKETS = BucketConfigs(bucket_boundaries=[1, 3], bucket_batch_sizes=[4, 4, 4])
INFINITE, UNKNOWN = tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> datum.Dataset:
    """A feature of each form."""
    schema = datum.Schema(
        {
            "id": datum.Feature("int64"),
            "x": datum.Feature("float32", (3,)),
            "label": datum.Feature("int64"),
            "words": datum.Feature("str", (None,)),
            "bag": datum.Feature("float32", (20,), encoding="sparse"),
            "score": datum.Feature("float64", optional=True),
        }
    )
    rows = [
        {
            "id": i,
            "x": np.full(3, i, np.float32),
            "label": i % 2,
            "words": ["a", "bc", "d"][: i % 4],
            "bag": datum.Sparse(np.array([[i % 20]]), np.array([1.0 + i], np.float32), (20,)),
            **({"score": i / 2} if i % 3 else {}),
        }
        for i in range(RECORDS)
    ]
    folder = tmp_path_factory.mktemp("graph") / "all"
    datum.write(rows, folder, schema=schema, shards=3, shuffle=False, progress=False)
    return datum.load(folder)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> datum.Dataset:
    """Records that are large, so that they are moved one by one; and decoded."""
    rng = np.random.default_rng(0)
    schema = {
        "id": datum.Feature("int64"),
        "image": datum.Feature("uint8", (None, None, 3), encoding="image"),
    }
    rows = [
        {"id": i, "image": rng.integers(0, 256, (60 + i % 2, 60, 3), np.uint8)} for i in range(20)
    ]
    folder = tmp_path_factory.mktemp("graph") / "pictures"
    datum.write(rows, folder, schema=schema, shards=2, shuffle=False, progress=False)
    return datum.load(folder)


def same(record: Any) -> Any:
    return record


def length(record: Any) -> Any:
    return tf.size(record["words"])


def add_one(batch: Any) -> Any:
    return {"more": batch["id"] + 1}


# Options, and how many elements they give.
CASES: dict[str, tuple[dict[str, Any], int]] = {
    "default": ({}, 2),
    "batches": ({"batch_size": 10}, 5),
    "full batches": ({"batch_size": 10, "drop_remainder": True}, 4),
    "records": ({"batch_size": None}, 43),
    "epochs": ({"batch_size": 10, "epochs": 3}, 15),
    "without end": ({"epochs": None}, INFINITE),
    "echo": ({"batch_size": 10, "echo": 3}, 15),
    "echo and epochs": (
        {"batch_size": 10, "echo": 2, "epochs": 2, "drop_remainder": True, "shuffle": True},
        16,
    ),
    "columns": ({"columns": ["words", "id"]}, 2),
    "supervised": ({"supervised": ("x", "label")}, 2),
    "dict of inputs": ({"supervised": (["x", "words"], "label"), "batch_size": 10}, 5),
    "padded": ({"pad": {"words": b"-", "bag": 0.5}, "batch_size": 10}, 5),
    "mapped": ({"map": same, "batch_size": 10}, 5),
    "batches mapped": ({"batch_map": add_one}, 2),
    "cached and shuffled": ({"cache": True, "batch_size": 10, "shuffle": True}, 5),
    "checked first": ({"on_error": "skip", "batch_size": 10}, 5),
    "a part": ({"host": (1, 3), "batch_size": 10}, 2),
    "for a service": ({"host": "service"}, UNKNOWN),
    "as they come": ({"deterministic": False, "shuffle": 5, "batch_size": 10}, 5),
    "in buckets": (
        {"bucket_fn": length, "bucket_op": BUCKETS},
        UNKNOWN,
    ),
}


ENGINES = ("graph", "native")
GRAPH_ONLY = {"for a service"}


@pytest.mark.parametrize(
    ("name", "engine"),
    [(name, engine) for engine in ENGINES for name in CASES if name not in GRAPH_ONLY]
    + [(name, "graph") for name in GRAPH_ONLY],
)
def test_elements_are_as_many_as_the_cardinality_and_what_the_spec_says(
    ds: datum.Dataset, name: str, engine: Any
) -> None:
    options, count = CASES[name]
    made = ds.to_tf(**options, engine=engine)
    if engine == "graph":
        assert python_ops(made) == set()
    assert int(made.cardinality()) == count
    given = list(made if count >= 0 else made.take(20))
    if count >= 0:
        assert len(given) == count
    assert given
    for element in given[:20]:
        tf.nest.assert_same_structure(made.element_spec, element, expand_composites=False)
        tf.nest.map_structure(check_spec, made.element_spec, element)


def check_spec(spec: Any, value: Any) -> None:
    assert spec.is_compatible_with(value), (spec, value)
    assert spec.dtype == value.dtype
    assert spec.shape.rank == value.shape.rank


def test_pictures_are_decoded_without_python(pictures: datum.Dataset) -> None:
    assert python_ops(pictures.to_tf(shuffle=True, epochs=2, engine="graph")) == set()


def test_a_step_that_calls_python_would_be_found(ds: datum.Dataset) -> None:
    made = ds.to_tf(map=lambda record: tf.py_function(lambda: 1, [], tf.int64), engine="graph")
    assert python_ops(made) == {"EagerPyFunc"}


def python_ops(dataset: Any) -> set[str]:
    """The operations of a dataset, and of all functions that it calls, that call Python."""
    serialized = tf.raw_ops.DatasetToGraphV2(
        input_dataset=tf.data.experimental.to_variant(dataset), external_state_policy=1
    )
    graph = graph_pb2.GraphDef.FromString(serialized.numpy())
    nodes = [*graph.node, *(node for one in graph.library.function for node in one.node_def)]
    assert len(nodes) > 10
    return {node.op for node in nodes if "PyFunc" in node.op or "Generator" in node.op}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_spec_names_dtypes_and_shapes(ds: datum.Dataset, engine: Any) -> None:
    def spec_of(**options: Any) -> Any:
        return ds.to_tf(engine=engine, **options).element_spec

    def scalars(dtype: Any, *shape: int | None) -> Any:
        return tf.TensorSpec(shape, dtype)

    assert spec_of() == {
        "id": scalars(tf.int64, None),
        "x": scalars(tf.float32, None, 3),
        "label": scalars(tf.int64, None),
        "words": tf.RaggedTensorSpec([None, None], tf.string, 1, tf.int64),
        "bag": tf.SparseTensorSpec([None, 20], tf.float32),
        "score": scalars(tf.float64, None),
    }
    full = spec_of(batch_size=10, drop_remainder=True)
    assert full["x"] == scalars(tf.float32, 10, 3)
    padded = spec_of(pad=True)
    assert padded["words"] == scalars(tf.string, None, None)
    assert padded["bag"] == scalars(tf.float32, None, 20)
    pair = spec_of(supervised=("x", "label"))
    assert pair == (scalars(tf.float32, None, 3), scalars(tf.int64, None))


@pytest.mark.parametrize("engine", ENGINES)
def test_single_records_are_dense_but_for_sparse_features(ds: datum.Dataset, engine: Any) -> None:
    made = ds.to_tf(batch_size=None, engine=engine)
    assert made.element_spec["id"] == tf.TensorSpec([], tf.int64)
    assert made.element_spec["bag"] == tf.SparseTensorSpec([20], tf.float32)
    assert made.element_spec["words"] == tf.TensorSpec([None], tf.string)
    few = ds.to_tf(batch_size=None, columns=["id", "words"], engine=engine)
    padded = few.padded_batch(RECORDS)
    assert next(iter(padded))["words"].shape == (RECORDS, 3)


# Used as any other.


def ids_of(batches: Any) -> list[int]:
    return [number for batch in batches for number in np.atleast_1d(batch["id"]).tolist()]


@pytest.mark.parametrize(
    "options", [{}, {"shuffle": True}, {"map": same}], ids=["in bulk", "shuffled", "by record"]
)
@pytest.mark.parametrize("engine", ENGINES)
def test_functions_of_the_graph_go_through_it(
    ds: datum.Dataset, options: dict[str, Any], engine: Any
) -> None:
    made = ds.to_tf(batch_size=10, engine=engine, **options)

    @tf.function
    def total(batches: Any) -> Any:
        found = tf.constant(0, tf.int64)
        for batch in batches:
            found += tf.reduce_sum(batch["id"])
        return found

    assert int(total(made)) == sum(range(RECORDS))
    reduced = made.reduce(np.int64(0), lambda so_far, batch: so_far + tf.reduce_sum(batch["id"]))
    assert int(reduced) == sum(range(RECORDS))


@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_taken_from_skipped_and_zipped(ds: datum.Dataset, engine: Any) -> None:
    made = ds.to_tf(batch_size=10, engine=engine)
    assert ids_of(made.skip(3)) == list(range(30, RECORDS))
    assert ids_of(made.take(2)) == list(range(20))
    zipped = tf.data.Dataset.zip((made, tf.data.Dataset.range(100)))
    assert int(zipped.cardinality()) == 5
    assert [(int(batch["id"][0]), int(at)) for batch, at in zipped] == [
        (0, 0), (10, 1), (20, 2), (30, 3), (40, 4),
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_saved_and_loaded(ds: datum.Dataset, tmp_path: Path, engine: Any) -> None:
    made = ds.to_tf(batch_size=10, engine=engine)
    made.save(str(tmp_path / "saved"))
    loaded = tf.data.Dataset.load(str(tmp_path / "saved"))
    assert loaded.element_spec == made.element_spec
    assert int(loaded.cardinality()) == 5
    for expected, got in zip(made, loaded, strict=True):
        tf.nest.map_structure(
            np.testing.assert_array_equal,
            tf.nest.flatten(expected, expand_composites=True),
            tf.nest.flatten(got, expand_composites=True),
        )


def test_it_is_snapshotted(ds: datum.Dataset, tmp_path: Path) -> None:
    made = ds.to_tf(batch_size=10, shuffle=True, engine="graph")
    made = made.snapshot(str(tmp_path / "snapshot"))
    first = ids_of(made)
    assert sorted(first) == list(range(RECORDS))
    assert ids_of(made) == first  # what was kept, not shuffled anew


@pytest.mark.parametrize("engine", ENGINES)
def test_a_model_is_fitted_on_pairs(ds: datum.Dataset, engine: Any) -> None:
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    pairs = ds.to_tf(batch_size=10, shuffle=True, supervised=("x", "label"), engine=engine)
    history = model.fit(pairs, epochs=2, validation_data=pairs, verbose=0, shuffle=False)
    assert len(history.history["val_loss"]) == 2


# Orders.


@pytest.mark.parametrize(
    "options",
    [{}, {"map": same}, {"cache": True}, {"cache": True, "map": same}],
    ids=["in bulk", "by record", "cached", "cached by record"],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_epochs_differ_only_if_reshuffled(
    ds: datum.Dataset, options: dict[str, Any], engine: Any
) -> None:
    options = {**options, "engine": engine}
    again = ds.to_tf(batch_size=10, shuffle=True, reshuffle=True, epochs=2, **options)
    orders = [ids_of(again), ids_of(again)]
    epochs = [order[at : at + RECORDS] for order in orders for at in (0, RECORDS)]
    assert all(sorted(epoch) == list(range(RECORDS)) for epoch in epochs)
    assert len(set(map(tuple, epochs))) == 4
    same_again = ds.to_tf(batch_size=10, shuffle=True, reshuffle=False, epochs=2, **options)
    order = ids_of(same_again)
    assert order == ids_of(same_again)
    assert order[:RECORDS] == order[RECORDS:]
    assert sorted(order[:RECORDS]) == list(range(RECORDS))


# Checkpoints.

RESUMED: dict[str, dict[str, Any]] = {
    "in order": {},
    "shuffled": {"shuffle": True, "epochs": 2},
    "small window": {"shuffle": 8, "epochs": 2},
    "by record": {"map": same, "epochs": 2},
    "by record, shuffled": {"map": same, "shuffle": True, "epochs": 2},
    "echo": {"echo": 3, "shuffle": True},
    "cached": {"cache": True, "epochs": 2},
    "cached, shuffled": {"cache": True, "shuffle": True, "epochs": 2},
    "cached by record": {"cache": True, "shuffle": True, "map": same, "epochs": 2},
}


def check_resumed(make: Callable[[], Any], taken: int, path: Path, *, epoch: int) -> None:
    """Of the epoch that was under way exactly the rest comes, and then the same records again.

    Later epochs may have another order: where tf.data reads ahead of the end of an epoch, it does
    not save how often it has shuffled.
    """
    running = iter(make())
    left = epoch - len(ids_of(next(running) for _ in range(taken))) % epoch
    saved = tf.train.Checkpoint(iterator=running).write(str(path / f"after {taken}"))
    rest = ids_of(running)
    resumed = iter(make())
    tf.train.Checkpoint(iterator=resumed).read(saved).assert_consumed()
    found = ids_of(resumed)
    assert found[:left] == rest[:left]
    assert sorted(found[left:]) == sorted(rest[left:])
    assert len(rest) >= left > 0


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        *((name, 3) for name in RESUMED),  # of echoes all of one batch: a place is between batches
        ("in order", 0),
        ("shuffled", 13),
        ("cached, shuffled", 13),
    ],
)
def test_an_iterator_goes_on_where_it_was_saved(
    ds: datum.Dataset, tmp_path: Path, name: str, taken: int
) -> None:
    options = {"batch_size": 4, "columns": ["id"], "engine": "graph", **RESUMED[name]}
    epoch = RECORDS * options.get("echo", 1)
    check_resumed(lambda: ds.to_tf(**options), taken, tmp_path, epoch=epoch)


def test_an_iterator_of_large_records_goes_on_where_it_was_saved(
    pictures: datum.Dataset, tmp_path: Path
) -> None:
    def jitter(record: Any) -> Any:
        return {**record, "random": tf.random.uniform([])}

    options = {"batch_size": 3, "shuffle": 6, "epochs": 2, "map": jitter}
    check_resumed(lambda: pictures.to_tf(**options), 8, tmp_path, epoch=20)


# Files that are others by the time they are read.


def write_over(folder: Path, other: Path) -> None:
    for path in sorted(other.glob("*.tfrecord")):
        with (folder / path.name).open("r+b") as file:
            file.write(path.read_bytes())


def replace_files(folder: Path, other: Path) -> None:
    for path in sorted(other.glob("*.tfrecord")):
        shutil.copy(path, folder / "new")
        (folder / "new").replace(folder / path.name)


def cut_files(folder: Path, other: Path) -> None:
    for path in sorted(other.glob("*.tfrecord")):
        os.truncate(folder / path.name, path.stat().st_size // 2)


@pytest.mark.parametrize("change", [write_over, replace_files, cut_files])
@pytest.mark.parametrize("shuffle", [False, True, "blocks"])
@pytest.mark.parametrize("batches", [0, 3])
def test_records_of_another_version_are_never_mixed_in(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, Path], None],
    shuffle: bool | str,
    batches: int,
) -> None:
    monkeypatch.setattr(graph, "MAX_HELD_BYTES", 0)
    monkeypatch.setattr(graph, "MAX_HELD_BLOCKS_BYTES", 0)
    for version in (1, 2):
        rows = {"x": np.arange(8000) + version * 100_000}
        datum.write(rows, tmp_path / f"{version}", shards=4, shuffle=False, progress=False)
    dataset = datum.load(tmp_path / "1")
    loader = dataset.to_tf("train", engine="graph", batch_size=100, shuffle=shuffle)
    seen: list[int] = []

    def read() -> None:
        found = iter(loader)
        for _ in range(batches):
            seen.extend(next(found)["x"].numpy().tolist())
        change(tmp_path / "1", tmp_path / "2")
        for batch in found:
            seen.extend(batch["x"].numpy().tolist())

    if batches:  # what was read ahead may be all there is
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            read()
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match=str(tmp_path / "1")):
            read()
    assert set(seen) <= set(range(100_000, 108_000))
    assert len(set(seen)) == len(seen)
