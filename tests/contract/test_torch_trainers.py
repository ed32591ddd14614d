"""Accelerate, Lightning and Trainer read each record once, also after stops with other ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datum

RECORDS = 100
ENDS_WITHIN_S = 300  # a program that is waited for; far more than it takes
PROGRAM = Path(__file__).with_name("torch_trainers.py")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("points") / "points"
    columns = {
        "id": np.arange(RECORDS),
        "x": np.arange(RECORDS, dtype=np.float32)[:, None],
        "labels": np.arange(RECORDS) % 2,
    }
    datum.write(columns, path, shards=3, progress=False)
    return path


def run(name: str, data: Path, out: Path, *, ranks: int, stage: str) -> list[Any]:
    """What each rank has seen."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    ran = subprocess.run(
        [*launch, "--nproc-per-node", str(ranks), PROGRAM, name, data, out, stage],
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads((out / f"{stage}-{rank}.json").read_text()) for rank in range(ranks)]


def flat(batches: list[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


def together(ranks: list[list[list[int]]]) -> list[int]:
    """The records of all ranks, in the order of their batches."""
    assert len({len(batches) for batches in ranks}) == 1, "every rank has as many batches"
    return [number for turn in zip(*ranks, strict=True) for batch in turn for number in batch]


def order(data: Path, epoch: int, seed: int = 3) -> list[int]:
    loader = datum.load(data).to_numpy(shuffle=True, seed=seed, columns=["id"])
    loader.set_epoch(epoch)
    return flat([batch["id"].tolist() for batch in loader])


def test_accelerate_reads_every_record_once(data, tmp_path):
    ranks = run("accelerate", data, tmp_path, ranks=2, stage="train")
    first = together([rank["next"] for rank in ranks])
    (alone,) = run("accelerate", data, tmp_path, ranks=1, stage="resume")
    assert first + flat(alone["rest"]) == order(data, 0)
    assert flat(alone["next"]) == order(data, 1)[:24]
    more = run("accelerate", data, tmp_path, ranks=2, stage="more")
    assert together([rank["rest"] for rank in more])[:76] == order(data, 1)[24:]
    assert together([rank["next"] for rank in more])[:RECORDS] == order(data, 2)

    # What a DataLoader that is prepared gives; the last batches may be filled up.
    assert all(rank["length"] == [7, 7, 7] for rank in ranks)
    for name in ("dispatched", "singles"):
        for epoch in range(2):
            seen = together([rank[name][epoch] for rank in ranks])
            assert seen[:96] == order(data, epoch, seed=0)[:96], name
            assert set(seen) == set(range(RECORDS)), name
    assert together([rank["skipped"] for rank in ranks])[:64] == order(data, 2, seed=0)[32:96]
    for name in ("by workers", "by a spawned worker", "sharded singles"):
        assert set(together([rank[name] for rank in ranks])) == set(range(RECORDS)), name


def test_lightning_reads_every_record_once_and_goes_on_within_an_epoch(data, tmp_path):
    ranks = run("lightning", data, tmp_path, ranks=2, stage="train")
    seen = [together([rank["seen"][epoch] for rank in ranks]) for epoch in range(3)]
    assert [rank["length"] for rank in ranks] == [7, 7]
    assert seen[0] == order(data, 0) + order(data, 0)[:12]  # filled up, since there are two
    assert len(seen[1]) == 48
    (alone,) = run("lightning", data, tmp_path, ranks=1, stage="resume")
    assert alone["seen"][0] == []
    assert seen[1] + flat(alone["seen"][1]) == order(data, 1)
    assert flat(alone["seen"][2]) == order(data, 2)[:40]
    more = run("lightning", data, tmp_path, ranks=2, stage="more")
    rest, last = (together([rank["seen"][epoch] for rank in more]) for epoch in (2, 3))
    assert (rest[:60], len(rest)) == (order(data, 2)[40:], 64)  # filled up
    assert (last[:RECORDS], len(last)) == (order(data, 3), 112)
    # No epoch ended by surprise, which would leave out its validation.
    assert [rank["validated"] for rank in (ranks[0], alone, more[0])] == [[0], [1], [2, 3]]


def test_trainer_reads_every_record_once_and_goes_on_within_an_epoch(data, tmp_path):
    ranks = run("trainer", data, tmp_path, ranks=2, stage="train")
    assert [rank["steps"] for rank in ranks] == [10, 10]
    first = together([rank["seen"][:7] for rank in ranks])
    assert first[:96] == order(data, 0)[:96]
    assert set(first) == set(range(RECORDS))
    second = together([rank["seen"][7:] for rank in ranks])
    (alone,) = run("trainer", data, tmp_path, ranks=1, stage="resume")
    assert alone["steps"] == 17
    assert second + flat(alone["seen"]) == order(data, 1) + order(data, 2)[:48]
    more = run("trainer", data, tmp_path, ranks=2, stage="more")
    assert [(rank["epochs"], rank["steps"]) for rank in more] == [(4, 28), (4, 28)]
    rest = together([rank["seen"][:4] for rank in more])
    assert rest[:48] == order(data, 2)[48:96]
    assert set(rest) == set(order(data, 2)[48:])
