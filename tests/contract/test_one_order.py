"""One order through every framework, whatever the number of hosts, workers and threads."""

import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import datum
from datum import _core
from datum._load.epoch_order import WINDOW_RECORDS, Order, ShardOrder

pytest.importorskip("jax")
pytest.importorskip("tensorflow")
pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore:.*remainder='keep' ends:UserWarning")

RECORDS, EPOCHS, BATCH, SEED = 157, 3, 10, 4
SHUFFLES = [False, True, "blocks", 64, "shards"]
SHARDS = 6  # of which four are mixed at a time
HOSTS = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("order") / "rows"
    rows = [{"id": i, "x": np.full(3, i, np.float32), "name": f"n{i}"} for i in range(RECORDS)]
    datum.write(rows, folder, shuffle=False, shards=SHARDS, progress=False)
    return datum.load(folder)


def expected(ds, shuffle, host: tuple[int, int]) -> list[list[int]]:
    """What the definition says: slices of the order of each epoch, and even parts of each."""
    modes = {False: ("none", 0), True: ("full", 0), "blocks": ("blocks", WINDOW_RECORDS)}
    mode, window = modes.get(shuffle, ("blocks", shuffle))
    order = Order(RECORDS, mode, SEED, window)
    if shuffle == "shards":
        order = ShardOrder([shard.records for shard in ds.splits["train"].shards], SEED)
    index, hosts = host
    batches = []
    for epoch in range(EPOCHS):
        numbers = order.numbers(epoch, np.arange(RECORDS)).tolist()
        for first in range(0, RECORDS, BATCH * hosts):
            part = numbers[first : first + BATCH * hosts]
            batches.append(part[len(part) * index // hosts : len(part) * (index + 1) // hosts])
    return batches


@pytest.fixture(scope="module")
def documented() -> dict:
    """The functions that the documentation defines the order with."""
    page = (Path(__file__).parents[2] / "docs/concepts/order.md").read_text()
    exact = page[page.index("## The order, exactly") :]
    scope: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```$", exact, re.MULTILINE | re.DOTALL):
        exec(block.partition("\ndef flat(")[0], scope)  # the rest needs the dataset of the page
    return scope


@pytest.mark.parametrize("records", [1, 2, 3, 10, 97, 100, 65535, 65536, 70001])
def test_the_permutation_is_as_documented(documented, records):
    for key in (0, 1, 2**64 - 1) if records < 1000 else (5,):
        found = _core.permute(np.arange(records), records, key)
        assert found.tolist() == documented["permute"](records, key)


@pytest.mark.parametrize("records", [1, 2, 63, 64, 65, 1000, 1003])
def test_orders_are_as_documented(documented, records):
    positions = np.arange(records)
    for seed, epoch in ((0, 0), (9, 3)):
        full = Order(records, "full", seed).numbers(epoch, positions)
        assert full.tolist() == documented["full"](records, seed, epoch)
        for window in (1, 63, 64, 200, 640, WINDOW_RECORDS):
            blocks = Order(records, "blocks", seed, window).numbers(epoch, positions)
            assert blocks.tolist() == documented["blocks"](records, seed, epoch, window)
        sizes = np.bincount(np.arange(records) % 7).tolist()
        shards = ShardOrder(sizes, seed).numbers(epoch, positions)
        assert shards.tolist() == documented["shards"](sizes, seed, epoch)


def by_loader(ds, framework, **options) -> list[list[int]]:
    always = dict(batch_size=BATCH, epochs=EPOCHS, seed=SEED, columns=["id", "x"])
    options = {**always, "remainder": "keep", **options}
    loader = getattr(ds, f"to_{framework}")("train", **options)
    batches = list(loader)
    for batch in batches:
        assert batch["x"][:, 0].tolist() == batch["id"].tolist()
    assert loader.report.records == sum(len(batch["id"]) for batch in batches)
    return [batch["id"].tolist() for batch in batches]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("framework", ["numpy", "torch", "jax"])
def test_every_framework_gives_the_order_that_is_defined(ds, framework, shuffle, host):
    for threads in (1, 2, 4):
        got = by_loader(ds, framework, shuffle=shuffle, host=host, threads=threads)
        assert got == expected(ds, shuffle, host)


@pytest.mark.parametrize(
    ("way", "host"),
    [
        *(({}, host) for host in HOSTS),
        *((way, host) for way in ({"map": dict}, {"cache": True}) for host in ((0, 1), (1, 3))),
    ],
)
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_tensorflow_gives_it_too(ds, shuffle, host, way):
    batches = ds.to_tf(
        "train",
        batch_size=BATCH,
        epochs=EPOCHS,
        seed=SEED,
        shuffle=shuffle,
        host=host,
        remainder="keep",
        **way,
    )
    got = [batch["id"].numpy().tolist() for batch in batches]
    assert got == [batch for batch in expected(ds, shuffle, host) if batch]


@pytest.mark.parametrize(("shuffle", "host"), [(True, (0, 1)), ("blocks", (1, 3)), (64, (0, 1))])
def test_the_graph_of_tensorflow_computes_it_too(ds, shuffle, host):
    options = dict(batch_size=BATCH, epochs=EPOCHS, seed=SEED, remainder="keep", engine="graph")
    batches = ds.to_tf("train", shuffle=shuffle, host=host, **options)
    got = [batch["id"].numpy().tolist() for batch in batches]
    assert got == [batch for batch in expected(ds, shuffle, host) if batch]


def test_workers_of_a_dataloader_give_it_too(ds):
    asked = [
        dict(shuffle=shuffle, host=host, workers=workers, threads=threads)
        for shuffle, host in product(SHUFFLES, [(0, 1), (1, 2), (2, 3)])
        for workers, threads in ((2, 1), (3, 2))
    ]
    always = dict(batch_size=BATCH, epochs=EPOCHS, seed=SEED, remainder="keep")
    program = Path(__file__).with_name("order_in_workers.py")
    ran = subprocess.run(
        [sys.executable, program, ds.path, json.dumps([always | one for one in asked])],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    for got, one in zip(json.loads(ran.stdout), asked, strict=True):
        assert got == expected(ds, one["shuffle"], one["host"]), one


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_hosts_together_give_the_order_of_one(ds, shuffle):
    alone = [i for batch in by_loader(ds, "numpy", shuffle=shuffle) for i in batch]
    for hosts in (2, 3):
        parts = [by_loader(ds, "numpy", shuffle=shuffle, host=(h, hosts)) for h in range(hosts)]
        together = [i for batches in zip(*parts, strict=True) for part in batches for i in part]
        assert together == alone


def test_the_order_is_not_that_of_the_disk_and_differs_by_seed_and_epoch(ds):
    one, other = (by_loader(ds, "numpy", shuffle=True, seed=seed) for seed in (4, 5))
    epochs = [one[0:16], one[16:32], one[32:48]]
    assert one != other
    assert epochs[0] != epochs[1] != epochs[2]
    assert epochs[0][0] != list(range(BATCH))
