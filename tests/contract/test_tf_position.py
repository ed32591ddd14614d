"""A dataset of TensorFlow saves its place and goes on from there, as any other loader does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import datum

RECORDS, BATCH = 103, 10


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> datum.Dataset:
    folder = tmp_path_factory.mktemp("position") / "rows"
    columns = {"id": np.arange(RECORDS), "label": np.arange(RECORDS) % 2}
    datum.write(columns, folder, shuffle=False, shards=3, progress=False)
    return datum.load(folder)


def same(record: Any) -> Any:
    return record


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].numpy().tolist() for batch in batches]


def expected(ds: datum.Dataset, **options: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in ds.to_numpy(batch_size=BATCH, **options)]


ENGINES = ["native", "graph"]
WAYS = [{}, {"map": same}]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_brings_the_seed_that_was_drawn(
    ds: datum.Dataset, engine: Any, tmp_path: Path
) -> None:
    def make() -> Any:
        columns = (name for name in ["id"])  # read again when the seed changes
        return ds.to_tf(
            batch_size=BATCH, engine=engine, shuffle=True, seed=None, epochs=2, columns=columns
        )

    made = make()
    batches = iter(made)
    for _ in range(3):
        next(batches)
    state = json.loads(json.dumps(made.state_dict()))
    saved = tf.train.Checkpoint(batches=batches).save(str(tmp_path / "checkpoint"))
    rest = ids(batches)
    again = make()
    again.load_state_dict(state)
    assert again.state_dict() == state
    assert ids(again) == rest
    restored = iter(make())
    tf.train.Checkpoint(batches=restored).restore(saved)
    assert ids(restored) == rest
    loader = ds.to_numpy(batch_size=BATCH, shuffle=True, seed=None, epochs=2, columns=["id"])
    loader.load_state_dict(state)
    assert [batch["id"].tolist() for batch in loader] == rest


@pytest.mark.parametrize("engine", ENGINES)
def test_a_seed_that_was_given_is_not_changed_by_a_state(ds: datum.Dataset, engine: Any) -> None:
    made = ds.to_tf(engine=engine, shuffle=True, seed=None)
    other = ds.to_tf(engine=engine, shuffle=True, seed=1)
    with pytest.raises(datum.StateError, match="the same `seed`"):
        other.load_state_dict(made.state_dict())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("way", WAYS, ids=["in bulk", "by record"])
def test_one_state_serves_every_framework(
    ds: datum.Dataset, engine: Any, way: dict[str, Any]
) -> None:
    options: Any = {"shuffle": True, "seed": 5, "epochs": 2}
    whole = expected(ds, shuffle=True, seed=5, epochs=4)
    made, again = (ds.to_tf(batch_size=BATCH, engine=engine, **options, **way) for _ in range(2))
    batches, seen = iter(made), []
    for taken in (0, 3, 11, 14, 22):
        seen += ids(next(batches) for _ in range(taken - len(seen)))
        assert seen == whole[:taken]
        state = json.loads(json.dumps(made.state_dict()))
        assert made.remaining == 22 - taken
        loader = ds.to_numpy(batch_size=BATCH, **options)
        assert state == loader.state_dict(batches=taken)
        loader.load_state_dict(state)
        assert [batch["id"].tolist() for batch in loader] == whole[taken:22]
        again.load_state_dict(state)
        assert len(again) == 22
        assert ids(again) == whole[taken:22]
        if taken in (14, 22):
            assert ids(again) == whole[22:]
    for taken in (0, 14):
        loader = ds.to_numpy(batch_size=BATCH, **options)
        assert made.state_dict(batches=taken) == loader.state_dict(batches=taken)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_that_was_broken_off_goes_on_with_the_next_pass(
    ds: datum.Dataset, engine: Any
) -> None:
    whole = expected(ds, shuffle=True, epochs=3)
    made = ds.to_tf(batch_size=BATCH, shuffle=True, engine=engine)
    for _ in made:
        break
    assert made.state_dict()["position"] == BATCH
    assert ids(made) == whole[11:22]
    assert (made.state_dict()["epoch"], made.state_dict()["position"]) == (2, 0)
    endless = ds.to_tf(batch_size=BATCH, shuffle=True, epochs=None, engine=engine)
    assert ids(batch for batch, _ in zip(endless, range(12), strict=False)) == whole[:12]
    assert ids(batch for batch, _ in zip(endless, range(11), strict=False)) == whole[22:]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_checkpoint_of_an_iterator_is_small_and_exact(
    ds: datum.Dataset, engine: Any, tmp_path: Path
) -> None:
    def make() -> Any:
        return ds.to_tf(batch_size=BATCH, shuffle=True, epochs=2, engine=engine)

    running = iter(make())
    whole = expected(ds, shuffle=True, epochs=2)
    for _ in range(13):
        next(running)
    saved = tf.train.Checkpoint(iterator=running).write(str(tmp_path / "place"))
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 4096
    resumed = iter(make())
    next(resumed)
    tf.train.Checkpoint(iterator=resumed).read(saved).assert_consumed()
    assert ids(resumed) == whole[13:]


@pytest.mark.filterwarnings("ignore:.*remainder='keep' ends:UserWarning")
@pytest.mark.parametrize("host", [(0, 3), (2, 3)])
@pytest.mark.parametrize("remainder", ["keep", "drop", "pad", "wrap"])
def test_hosts_share_one_state(ds: datum.Dataset, host: tuple[int, int], remainder: Any) -> None:
    options: Any = {"shuffle": True, "epochs": 3, "remainder": remainder}
    made = ds.to_tf("train[:62]", batch_size=BATCH, host=host, **options)
    loader = ds.to_numpy("train[:62]", batch_size=BATCH, host=host, **options)
    whole = [batch["id"].tolist() for batch in loader]
    assert ids(made) == [batch for batch in whole if batch]
    batches = iter(made)
    for _ in range(3):
        next(batches)
    again = ds.to_tf("train[:62]", batch_size=BATCH, host=host, **options)
    again.load_state_dict(made.state_dict())
    assert ids(again) == ids(batches)


def test_a_state_of_another_order_is_refused(ds: datum.Dataset) -> None:
    state = ds.to_tf(shuffle=True, seed=1).state_dict()
    with pytest.raises(datum.StateError, match="the same `seed`"):
        ds.to_tf(shuffle=True, seed=2).load_state_dict(state)
    with pytest.raises(datum.StateError, match="the same `shuffle`"):
        ds.to_tf(shuffle="blocks", seed=1).load_state_dict(state)


def test_an_order_of_the_papers_own_has_no_place(ds: datum.Dataset) -> None:
    made = ds.to_tf(shuffle=True, shuffle_files=False)
    with pytest.raises(datum.StateError, match="hint: leave out bucket_fn, shuffle_files"):
        made.state_dict()


@pytest.mark.parametrize("way", WAYS, ids=["in bulk", "by record"])
@pytest.mark.parametrize("engine", ENGINES)
def test_keras_resumes_within_an_epoch_without_losing_or_repeating_a_record(
    ds: datum.Dataset, way: dict[str, Any], engine: Any
) -> None:
    seen: list[list[int]] = []

    class Model(tf.keras.Model):  # type: ignore[misc]
        def train_step(self, data: Any) -> Any:
            inputs, _ = data
            note = tf.py_function(lambda x: seen.append(x.numpy().tolist()), [inputs], [])
            with tf.control_dependencies([note] if note is not None else []):
                return {"loss": tf.constant(0.0)}

    def train() -> tuple[Any, Any]:
        made = ds.to_tf(
            batch_size=BATCH, shuffle=True, supervised=("id", "label"), engine=engine, **way
        )
        model = Model()
        model.compile()
        return made, model

    class Stop(tf.keras.callbacks.Callback):  # type: ignore[misc]
        """Saves the place with each batch, and stops in the second epoch."""

        def __init__(self, made: Any) -> None:
            super().__init__()
            self.made = made
            self.state: dict[str, Any] = {}
            self.epoch = 0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.epoch = epoch

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.state = json.loads(json.dumps(self.made.state_dict(batches=batch + 1)))
            if (self.epoch, batch) == (1, 4):
                raise KeyboardInterrupt

    whole = expected(ds, shuffle=True, epochs=4)
    made, model = train()
    stop = Stop(made)
    with pytest.raises(KeyboardInterrupt):
        model.fit(made, epochs=4, verbose=0, shuffle=False, callbacks=[stop])
    assert seen == whole[:16]
    assert (stop.state["epoch"], stop.state["position"]) == (1, 50)

    made, model = train()
    made.load_state_dict(stop.state)
    epoch = stop.state["epoch"]
    model.fit(
        made,
        initial_epoch=epoch,
        epochs=epoch + 1,
        steps_per_epoch=made.remaining,
        verbose=0,
        shuffle=False,
    )
    assert seen == whole[:22]
    model.fit(made, initial_epoch=epoch + 1, epochs=4, verbose=0, shuffle=False)
    assert seen == whole
