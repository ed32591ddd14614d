"""Batches placed over several devices, in one process or in two; what came of it as JSON.

A program of its own: the number of devices is set before JAX starts.
"""

import json
import sys

import numpy as np

import datum

BATCH = 8


def place(index: int, count: int, port: int, data: str) -> dict[str, object]:
    """Four devices in all; each process takes its part of every batch, and sums all of it."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 4 // count)
    if count > 1:
        jax.distributed.initialize(f"localhost:{port}", count, index)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows = NamedSharding(mesh, PartitionSpec("data"))
    ds = datum.load(data)
    options = dict(batch_size=BATCH // count, shuffle=True, seed=2, columns=["id", "x"])
    padded = {**options, "columns": ["id", "x", "items"], "pad": 4}
    loader = ds.to_jax("train", sharding=rows, remainder="pad", **padded)
    sum_all = jax.jit(lambda b: (b["x"].sum(axis=1) * b["batch_mask"]).sum())
    count_items = jax.jit(lambda b: (b["items_mask"] & b["batch_mask"][:, None]).sum())
    result: dict[str, object] = {"batches": [], "sums": [], "items": [], "length": len(loader)}
    for batch in loader:
        shards = batch["id"].addressable_shards
        result["batches"].append([shard.data.tolist() for shard in shards])
        result["sums"].append(float(sum_all(batch)))
        result["items"].append(int(count_items(batch)))
        assert batch["items"].shape == batch["items_mask"].shape == (BATCH, 4)
        assert batch["items_mask"].sharding == rows
        assert batch["x"].shape == (BATCH, 3)
        assert batch["x"].sharding == rows
    result["programs"] = count_items._cache_size()
    result["state"] = loader.state_dict()
    result["refused"] = []
    for way in ({}, {"bucket_by": "items", "buckets": [4]}):
        try:
            iter(ds.to_jax("train", sharding=rows, remainder="keep", **options, **way))
        except ValueError as error:
            result["refused"].append(str(error))
    by_name = ds.to_jax("train", sharding={"x": rows}, remainder="drop", **options)
    batch = next(iter(by_name))
    result["by name"] = [len(batch[name].sharding.device_set) for name in ("x", "id")]
    if count > 1:
        jax.distributed.shutdown()
    return result


if __name__ == "__main__":
    index, count, port = map(int, sys.argv[1:4])
    print(json.dumps(place(index, count, port, sys.argv[4])))
