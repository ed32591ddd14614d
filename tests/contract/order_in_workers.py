"""The order in which workers of a DataLoader give records, printed as JSON.

A program of its own: its workers are forked, which no process with threads of JAX may do.
"""

import json
import sys

from torch.utils.data import DataLoader

import datum


def main(data: str, asked: str) -> None:
    ds = datum.load(data)
    orders = []
    for options in json.loads(asked):
        workers = options.pop("workers")
        loader = ds.to_torch("train", **options)
        batches = DataLoader(loader, batch_size=None, num_workers=workers)
        orders.append([batch["id"].tolist() for batch in batches])
    print(json.dumps(orders))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
