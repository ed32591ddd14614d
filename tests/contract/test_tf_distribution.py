"""Every record exactly once: over hosts, devices, processes, and workers of the tf.data service."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import datum
from tests.contract.spread_worker import BATCH, ORDERS

WORKER = Path(__file__).with_name("spread_worker.py")
TIMEOUT_S = 240  # of one process; it takes a tenth of that on a machine that does nothing else
service = tf.data.experimental.service


def write_ids(folder: Path, records: int, **options: Any) -> datum.Dataset:
    columns = {"id": np.arange(records), "label": np.arange(records) % 2}
    datum.write(columns, folder, shuffle=False, progress=False, **options)
    return datum.load(folder)


def ids_of(batches: Any) -> list[int]:
    return [number for batch in batches for number in np.atleast_1d(batch["id"]).tolist()]


# Parts for hosts.


@pytest.fixture(scope="module")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, datum.Dataset]:
    root = tmp_path_factory.mktemp("layouts")
    return {
        "one shard": write_ids(root / "one", 53, shards=1),
        "nine shards": write_ids(root / "nine", 53, shards=9),
        "gzip": write_ids(root / "gzip", 53, shards=3, compression="gzip"),
        "fewer records than hosts": write_ids(root / "few", 3, shards=2),
    }


SHUFFLED: dict[str, Any] = {"shuffle": True, "seed": 5}


@pytest.mark.parametrize(
    ("layout", "hosts", "split", "options"),
    [
        ("one shard", 1, "train", SHUFFLED),
        ("one shard", 2, "train", {}),
        ("one shard", 7, "train", {}),
        ("nine shards", 4, "train", {}),
        ("nine shards", 3, "train[10:-5]", {}),
        ("nine shards", 6, "train", SHUFFLED),
        ("gzip", 2, "train", SHUFFLED),
        ("gzip", 5, "train[10:-5]", {}),
        ("fewer records than hosts", 5, "train", {}),
    ],
    ids=str,
)
def test_hosts_read_every_record_once_and_about_as_many(
    layouts: Mapping[str, datum.Dataset],
    layout: str,
    hosts: int,
    split: str,
    options: dict[str, Any],
) -> None:
    ds = layouts[layout]
    made = [
        ds.to_tf(
            split,
            batch_size=8,
            columns=["id"],
            host=(index, hosts),
            remainder="keep",
            **options,
        )
        for index in range(hosts)
    ]
    parts = [ids_of(part) for part in made]
    expected = [int(record["id"]) for record in ds[split]]
    assert sorted(number for part in parts for number in part) == expected
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert [int(part.cardinality()) for part in made] == [-(-size // 8) for size in sizes]


def test_hosts_without_a_record_read_nothing(layouts: Mapping[str, datum.Dataset]) -> None:
    made = layouts["fewer records than hosts"].to_tf(
        host=(0, 7), epochs=None, shuffle=True, remainder="keep"
    )
    assert int(made.cardinality()) == 0
    assert list(made) == []


def test_an_input_context_tells_the_part(layouts: Mapping[str, datum.Dataset]) -> None:
    contexts = [tf.distribute.InputContext(3, index, 6) for index in range(3)]
    made = [layouts["nine shards"].to_tf(batch_size=10, host=context) for context in contexts]
    parts = [ids_of(part) for part in made]
    assert [part[:10] for part in parts] == [list(range(at, at + 10)) for at in (0, 10, 20)]
    # Every host has as many batches, all of them full: what is short begins anew.
    assert [n for part in parts for n in part[10:]] == [*range(30, 53), *range(7)]


def test_a_strategy_of_one_host_reads_everything(layouts: Mapping[str, datum.Dataset]) -> None:
    made = layouts["gzip"].to_tf(host=tf.distribute.get_strategy())
    assert ids_of(made) == list(range(53))


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("AUTO", {}),
        ("DATA", {"shuffle": True, "reshuffle": False}),
        ("DATA", {"echo": 2}),
    ],
    ids=str,
)
def test_what_tensorflow_shards_by_itself_comes_once(
    layouts: Mapping[str, datum.Dataset], policy: str, options: dict[str, Any]
) -> None:
    chosen = tf.data.Options()
    chosen.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
    made = layouts["nine shards"].to_tf(batch_size=4, engine="graph", **options)
    made = made.with_options(chosen)
    parts = [shard_automatically(made, 3, index) for index in range(3)]
    times = options.get("echo", 1)
    assert sorted(number for part in parts for number in ids_of(part)) == sorted(
        list(range(53)) * times
    )
    assert [int(part.cardinality()) for part in parts] == [len(list(part)) for part in parts]


def shard_automatically(dataset: Any, count: int, index: int) -> Any:
    """The part of one worker, as `experimental_distribute_dataset` makes it."""
    variant = tf.raw_ops.AutoShardDataset(
        input_dataset=tf.data.experimental.to_variant(dataset),
        num_workers=count,
        index=index,
        auto_shard_policy=int(dataset.options().experimental_distribute.auto_shard_policy.value),
        num_replicas=count,
        output_types=tf.nest.flatten(
            tf.nest.map_structure(lambda s: s.dtype, dataset.element_spec)
        ),
        output_shapes=tf.nest.flatten(
            tf.nest.map_structure(lambda s: s.shape.as_list(), dataset.element_spec)
        ),
    )
    return tf.data.experimental.from_variant(variant, dataset.element_spec)


# Strategies, in processes of their own.


def run_workers(program: str, folder: Path, configs: list[str | None]) -> list[dict[str, Any]]:
    """What the processes print; one for each TF_CONFIG, all at a time."""
    # Files, not pipes: a process that waits to be read would keep the others waiting for it.
    logs = [folder.with_name(f"{program} {number}.log") for number in range(len(configs))]
    workers = []
    try:
        for config, log in zip(configs, logs, strict=True):
            given = {} if config is None else {"TF_CONFIG": config}
            with log.open("w") as talk:
                workers.append(
                    subprocess.Popen(
                        [sys.executable, WORKER, program, folder],
                        stdout=subprocess.PIPE,
                        stderr=talk,
                        text=True,
                        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **given},
                    )
                )
        printed = [worker.communicate(timeout=TIMEOUT_S)[0] for worker in workers]
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
                worker.communicate()
    for worker, log in zip(workers, logs, strict=True):
        assert worker.returncode == 0, log.read_text()[-3000:]
    return [json.loads(lines.splitlines()[-1]) for lines in printed]


def cluster_of(count: int) -> list[str]:
    """TF_CONFIG of each worker of a cluster on free ports of this machine."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    workers = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    tasks = [{"type": "worker", "index": index} for index in range(count)]
    return [json.dumps({"cluster": {"worker": workers}, "task": task}) for task in tasks]


@pytest.fixture(scope="module")
def two_devices(tmp_path_factory: pytest.TempPathFactory) -> tuple[datum.Dataset, dict[str, Any]]:
    """A dataset, and what a process with two devices saw of it."""
    folder = tmp_path_factory.mktemp("two") / "ids"
    ds = write_ids(folder, 101, shards=3)
    (seen,) = run_workers("mirrored", folder, [None])
    return ds, seen


def test_two_devices_of_one_host_see_every_record_once(
    two_devices: tuple[datum.Dataset, dict[str, Any]],
) -> None:
    _, seen = two_devices
    assert seen["replicas"] == 2
    for way in ("function", "dataset"):
        assert sorted(seen[way]) == list(range(101)), way
    assert seen["host=strategy"] == list(range(101))
    assert seen["times seen"] == [1] * 101


@pytest.mark.parametrize("name", ORDERS)
def test_a_seed_gives_the_same_order_in_another_process(
    two_devices: tuple[datum.Dataset, dict[str, Any]], name: str
) -> None:
    ds, seen = two_devices
    made = ds.to_tf(batch_size=BATCH, **ORDERS[name])
    assert ids_of(made) + ids_of(made) == seen["orders"][name]


def test_two_processes_see_every_record_once(tmp_path: Path) -> None:
    write_ids(tmp_path / "ids", 101, shards=3)  # five batches for one, six for the other
    first, second = run_workers("multiworker", tmp_path / "ids", cluster_of(2))
    assert first["replicas"] == second["replicas"] == 2
    for way in ("host=strategy", "function", "dataset"):
        assert sorted(first[way] + second[way]) == list(range(101)), way
        assert abs(len(first[way]) - len(second[way])) <= 1, way
    assert first["times seen"] == second["times seen"] == [2] * 101  # in two epochs


# The tf.data service.


@pytest.fixture(scope="module")
def dispatcher() -> Iterator[str]:
    """The address of a service with two workers."""
    server = service.DispatchServer(service.DispatcherConfig(port=0))
    address = server.target.split("://")[1]
    # A worker can be stopped between two heartbeats, which are half a minute apart if left alone.
    config = service.WorkerConfig(address, port=0, heartbeat_interval_ms=100)
    workers = [service.WorkerServer(config) for _ in range(2)]
    yield server.target
    for worker in workers:
        worker._stop()
    server._stop()


def through_service(made: Any, mode: Any, dispatcher: str) -> list[int]:
    return sorted(ids_of(made.apply(service.distribute(mode, dispatcher))))


@pytest.mark.parametrize(
    ("mode", "layout", "options"),
    [
        ("distributed_epoch", "nine shards", {"batch_size": 4}),
        ("distributed_epoch", "gzip", {"batch_size": 4, "shuffle": True, "epochs": 2}),
        ("distributed_epoch", "one shard", {"batch_size": None, "shuffle": 16, "map": dict}),
        (service.ShardingPolicy.DYNAMIC, "nine shards", {"batch_size": 4, "shuffle": True}),
    ],
    ids=str,
)
def test_workers_of_a_service_share_the_records(
    layouts: Mapping[str, datum.Dataset],
    dispatcher: str,
    mode: Any,
    layout: str,
    options: dict[str, Any],
) -> None:
    made = layouts[layout].to_tf(host="service", **options)
    times = options.get("epochs", 1)
    assert through_service(made, mode, dispatcher) == sorted(list(range(53)) * times)


@pytest.mark.parametrize(
    ("mode", "host"), [("parallel_epochs", "service"), (service.ShardingPolicy.OFF, "service")]
)
def test_workers_of_a_service_may_each_read_everything(
    layouts: Mapping[str, datum.Dataset], dispatcher: str, mode: Any, host: str | None
) -> None:
    made = layouts["gzip"].to_tf(batch_size=4, shuffle=True, host=host)
    assert through_service(made, mode, dispatcher) == sorted(list(range(53)) * 2)
