"""The place of a loader in a checkpoint of orbax, beside the weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import datum

ocp = pytest.importorskip("orbax.checkpoint")

RECORDS, STEPS = 53, 30


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    random = np.random.default_rng(0)
    x = random.normal(size=(RECORDS, 4)).astype(np.float32)
    folder = tmp_path_factory.mktemp("checkpoint") / "rows"
    datum.write({"x": x, "y": x.sum(axis=1), "id": np.arange(RECORDS)}, folder, progress=False)
    return datum.load(folder)


@jax.jit
def step(weights, batch):
    gradient = jax.grad(lambda w: ((batch["x"] @ w - batch["y"]) ** 2).mean())(weights["w"])
    return {"w": weights["w"] - 0.05 * gradient}


def make_loader(ds, **options):
    return ds.to_jax("train", batch_size=8, shuffle=True, seed=3, epochs=None, **options)


def train(loader, weights, steps: int, log: list) -> dict:
    for _, batch in zip(range(steps), loader, strict=False):
        weights = step(weights, batch)
        log.append((batch["id"].tolist(), weights["w"].tolist()))
    return weights


def save(manager, number, weights, loader) -> None:
    state = ocp.args.JsonSave(loader.state_dict())
    parts = ocp.args.Composite(weights=ocp.args.StandardSave(weights), loader=state)
    manager.save(number, args=parts)
    manager.wait_until_finished()


def restore(manager, weights, loader) -> dict:
    like = ocp.args.StandardRestore(weights)
    parts = ocp.args.Composite(weights=like, loader=ocp.args.JsonRestore())
    found = manager.restore(manager.latest_step(), args=parts)
    loader.load_state_dict(found["loader"])
    return found["weights"]


@pytest.mark.parametrize("stop", [1, 7, 14, 20])  # the first and the last batch of an epoch too
def test_a_restored_training_is_the_undisturbed_one(ds, tmp_path, stop):
    start = {"w": jnp.zeros(4)}
    undisturbed: list = []
    train(make_loader(ds), start, STEPS, undisturbed)

    resumed: list = []
    with ocp.CheckpointManager(tmp_path) as manager:
        loader = make_loader(ds)
        weights = train(loader, start, stop, resumed)
        save(manager, stop, weights, loader)
    with ocp.CheckpointManager(tmp_path) as manager:
        loader = make_loader(ds, threads=1)
        weights = restore(manager, start, loader)
        train(loader, weights, STEPS - stop, resumed)
    assert resumed == undisturbed


def test_a_checkpoint_of_other_records_is_refused(ds, tmp_path):
    with ocp.CheckpointManager(tmp_path) as manager:
        save(manager, 0, {"w": jnp.zeros(4)}, make_loader(ds))
        with pytest.raises(datum.StateError, match="the same records"):
            restore(manager, {"w": jnp.zeros(4)}, ds.to_jax("train[:50]", shuffle=True, seed=3))
