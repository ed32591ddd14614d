"""Processes that train one model together, each on its part of every batch."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import torch
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import datum

RANKS = 2
BATCH = 16
EPOCHS = 2


def find_port() -> int:
    """One that nobody uses, on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


Run = tuple[dict[str, Any], dict[str, Any]]  # options of `to_torch`, and those of a DataLoader


def train_together(path: Path, out: Path, runs: list[Run]) -> list[Any]:
    """What each rank saw in each run: records by epoch and batch, the last weights, the state."""
    arguments = (find_port(), str(path), str(out), runs)
    multiprocessing.spawn(train_rank, arguments, nprocs=RANKS)
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(RANKS)]


def train_rank(rank: int, port: int, path: str, out: str, runs: list[Run]) -> None:
    """Train as one of the ranks, with a DataLoader if options of one are given."""
    torch.set_num_threads(1)
    # Made before there is a process group, as programs may do.
    ds = datum.load(path)
    loaders = [ds.to_torch("train", batch_size=BATCH, **options) for options, _ in runs]
    address = f"tcp://127.0.0.1:{port}"
    distributed.init_process_group("gloo", address, rank=rank, world_size=RANKS)
    found = [
        train(rank, loader, workers) for loader, (_, workers) in zip(loaders, runs, strict=True)
    ]
    Path(out, f"{rank}.json").write_text(json.dumps(found))
    distributed.barrier()
    distributed.destroy_process_group()


def train(rank: int, loader: Any, workers: dict[str, Any]) -> dict[str, Any]:
    """Train a model of its own, together with the other ranks."""
    torch.manual_seed(rank)  # DistributedDataParallel has to make the weights equal itself
    model = DistributedDataParallel(torch.nn.Linear(30, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    given = DataLoader(loader, batch_size=None, **workers) if workers else loader
    seen = []
    for epoch in range(EPOCHS):
        loader.set_epoch(epoch)
        seen.append([step(model, optimizer, batch) for batch in given])
    return {
        "seen": seen,
        "length": len(given),
        "weights": [part.tolist() for part in model.parameters()],
        "state": loader.state_dict(batches=len(seen[-1])),
    }


def step(model: Any, optimizer: Any, batch: Any) -> list[int]:
    """Learn from a batch; the records of it."""
    columns = [column for name, column in batch.items() if name not in ("id", "target")]
    inputs = torch.stack(columns, 1)
    inputs = (inputs - inputs.mean(0)) / (inputs.std(0) + 1e-6)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        model(inputs)[:, 0], batch["target"].float()
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers: list[int] = batch["id"].tolist()
    return numbers
