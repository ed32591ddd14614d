"""Train one PyTorch network in two processes, each on its half of every batch."""

import os
import socket
import tempfile

import numpy as np
import torch
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

import datum

PROCESSES = 2


def train(rank: int, port: int) -> None:
    """What each process runs; with `torchrun` this would be the whole program."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    address = f"tcp://127.0.0.1:{port}"
    distributed.init_process_group("gloo", address, rank=rank, world_size=PROCESSES)
    ds = datum.load("digits")
    # The rank is detected. The last batch is filled up, so every process has full batches.
    loader = ds.to_torch("train", batch_size=32, shuffle=True)
    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(6):
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch["pixels"]), batch["label"])
            optimizer.zero_grad()
            loss.backward()  # averages over all processes
            optimizer.step()

    # Each process counts its own records, and the sum covers all. Fillers do not count.
    counts = torch.zeros(2)
    with torch.no_grad():
        for batch in ds.to_torch("val", batch_size=64, remainder="pad"):
            is_right = network(batch["pixels"]).argmax(1) == batch["label"]
            mask = batch["batch_mask"]
            counts += torch.tensor([int(is_right[mask].sum()), int(mask.sum())])
    print(f"Process {rank} tested {int(counts[1])} records", flush=True)
    distributed.all_reduce(counts)
    if rank == 0:
        accuracy = float(counts[0] / counts[1])
        print(f"\nOf all {int(counts[1])} together they know {accuracy:.1%}")
        print("More than 95 %:", accuracy > 0.95, flush=True)
    distributed.barrier()  # wait for all processes, then end the group
    distributed.destroy_process_group()


def find_port() -> int:
    """A free port on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def main() -> None:
    from sklearn.datasets import load_digits  # here, because the processes do not need it

    digits = load_digits()
    columns = {"pixels": (digits.data / 16).astype(np.float32), "label": digits.target}
    print(datum.write(columns, "digits", splits={"train": 0.8, "val": 0.2}, stratify="label"))
    multiprocessing.spawn(train, (find_port(),), nprocs=PROCESSES)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder  # removed at the end
        main()
        os.chdir("..")
