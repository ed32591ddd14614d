"""Two processes of `torch.distributed` train one model on a real table."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_breast_cancer

import datum
from tests.contract.torch_ranks import BATCH, EPOCHS, RANKS, train_together

RECORDS = 569


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    frame = load_breast_cancer(as_frame=True).frame
    frame.columns = [name.replace(" ", "_") for name in frame.columns]
    frame = frame.astype({name: "float32" for name in frame.columns if name != "target"})
    frame["id"] = range(len(frame))
    path = tmp_path_factory.mktemp("table") / "tumours"
    datum.write(frame, path, shards=3, progress=False)
    return path


FORKED = {"num_workers": 2, "multiprocessing_context": "fork"}
# Started without the process group, and once only, which takes seconds.
SPAWNED = {"num_workers": 2, "multiprocessing_context": "spawn", "persistent_workers": True}
RUNS = {
    "alone": ({}, None),
    "forked workers": (FORKED, "keep"),
    "spawned workers that last": (SPAWNED, None),
}


def options_of(remainder):
    return {"shuffle": True, "seed": 7, "remainder": remainder}


@pytest.fixture(scope="module")
def trained(table, tmp_path_factory):
    """What each rank saw in each run."""
    asked = [(options_of(remainder), workers) for workers, remainder in RUNS.values()]
    ranks = train_together(table, tmp_path_factory.mktemp("ranks"), asked)
    return dict(zip(RUNS, zip(*ranks, strict=True), strict=True))


@pytest.mark.parametrize("name", RUNS)
def test_two_ranks_share_every_epoch_and_end_with_the_same_weights(table, trained, name):
    ranks, remainder = trained[name], RUNS[name][1]
    options = options_of(remainder)
    assert ranks[0]["weights"] == ranks[1]["weights"]
    assert ranks[0]["state"] == ranks[1]["state"]

    options["remainder"] = remainder or "wrap"
    alone = datum.load(table).to_torch("train", batch_size=BATCH * RANKS, **options)
    assert [rank["length"] for rank in ranks] == [len(alone)] * RANKS
    for epoch in range(EPOCHS):
        parts = [rank["seen"][epoch] for rank in ranks]
        assert [len(part) for part in parts] == [len(alone)] * RANKS
        together = [[*a, *b] for a, b in zip(*parts, strict=True)]
        assert together == [batch["id"].tolist() for batch in alone]
        seen = [number for batch in together for number in batch]
        assert sorted(seen[:RECORDS]) == list(range(RECORDS))
        assert seen[RECORDS:] == (seen[:7] if remainder is None else [])
