"""DataLoader's workers give what the loader itself gives, in the same order, and all end."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from torch.utils.data import DataLoader

import datum

# Of more workers than the machine has cores.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")

RECORDS = 53
ENDS_WITHIN_S = 60  # a thread that is told to end; far more than it takes


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> datum.Dataset:
    rows = [
        {
            "id": i,
            "x": np.full((2, 3), i, np.float32),
            "small": np.uint16(i),
            "name": f"n{i}",
            "items": list(range(i % 4)),
            "deep": [[1.0] * (i % 2)] * (i % 3),
            "tags": datum.Sparse(np.array([[i % 5]]), np.array([i], np.float32), (5,)),
            "image": np.full((2 + i % 2, 2, 1), i, np.uint8),
        }
        for i in range(RECORDS)
    ]
    schema = {
        "image": datum.Feature("uint8", (None, None, 1), encoding="image"),
        "tags": datum.Feature("float32", (5,), encoding="sparse"),
    }
    path = tmp_path_factory.mktemp("rows") / "ds"
    datum.write(rows, path, schema=schema, shards=3, progress=False)
    return datum.load(path)


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def plain(value: Any) -> Any:
    """As lists, to be compared."""
    if isinstance(value, datum.Ragged):
        return value.to_list()
    if not isinstance(value, torch.Tensor):
        return [item.tolist() if isinstance(item, torch.Tensor) else item for item in value]
    if value.layout == torch.jagged:
        return [row.tolist() for row in value.unbind()]
    return value.to_dense().tolist()


def start(loader: Any, workers: int, method: str | None = "fork", **options: Any) -> DataLoader:
    if not workers:
        return DataLoader(loader, batch_size=None)
    return DataLoader(
        loader,
        batch_size=None,
        num_workers=workers,
        multiprocessing_context=method,
        **options,
    )


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """Every process and every thread that a test started has ended."""
    before = set(threading.enumerate())
    yield
    gc.collect()  # an error holds on to the frames it went through
    assert multiprocessing.active_children() == []
    # What shares file descriptors with other processes is one thread of Python for all.
    others = [thread for thread in threading.enumerate() if "_serve" not in thread.name]
    for thread in {*others} - before:
        thread.join(ENDS_WITHIN_S)
        assert not thread.is_alive(), thread.name


@pytest.mark.parametrize(
    ("workers", "method"),
    [(0, None), (1, "fork"), (2, "fork"), (3, "fork"), (2, "spawn")],
)
def test_batches_and_their_order_are_those_of_the_loader(ds, workers, method):
    options = dict(batch_size=4, shuffle=True, seed=5)
    expected = list(ds.to_torch(**options))
    given = list(start(ds.to_torch(**options), workers, method))
    assert len(given) == len(expected) == 14
    for ours, theirs in zip(expected, given, strict=True):
        assert list(ours) == list(theirs)
        for name, column in ours.items():
            assert type(column) is type(theirs[name]), name
            assert plain(column) == plain(theirs[name]), name
            if isinstance(column, torch.Tensor):
                assert column.dtype == theirs[name].dtype
                assert column.layout == theirs[name].layout


@pytest.mark.parametrize("workers", [0, 2, 3])
@pytest.mark.parametrize("remainder", ["keep", "drop", "pad", "wrap"])
def test_every_remainder_is_the_same_with_workers(ds, workers, remainder):
    options = dict(batch_size=5, shuffle=True, epochs=2, remainder=remainder, columns=["id"])
    loader = ds.to_torch(**options)
    assert len(start(loader, workers)) == len(loader)
    assert ids(start(loader, workers)) == ids(ds.to_torch(**options))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_that_start_anew_go_on_to_the_next_epoch(ds, method):
    options = dict(batch_size=16, shuffle=True, columns=["id"])
    plain = ds.to_torch(**options)
    expected = [ids(plain) for _ in range(7)]
    loader = ds.to_torch(**options)
    workers = start(loader, 2 if method == "fork" else 1, method)  # the others take long to start
    assert ids(workers) == expected[0]
    for batch in workers:  # broken off, which counts as a pass
        assert batch["id"].tolist() == expected[1][0]
        break
    assert ids(loader) == expected[2]  # read here
    if method == "fork":
        torch.manual_seed(0)
        assert ids(workers) == expected[3]
        torch.manual_seed(0)  # the same seed for the workers as before
        assert ids(workers) == expected[4]
        assert [ids(start(loader, n)) for n in (1, 3)] == expected[5:]
        loader.load_state_dict(loader.state_dict(batches=0) | {"epoch": 4, "position": 16})
    else:
        loader.set_epoch(3)
        loader.load_state_dict(loader.state_dict() | {"epoch": 4, "position": 16})
    assert loader.remaining == 3
    assert ids(workers) == expected[4][1:]
    assert ids(start(loader, 2)) == expected[5]


def test_the_main_process_does_not_claim_to_know_how_far_workers_are(ds):
    loader = ds.to_torch(batch_size=16, shuffle=True, columns=["id"])
    given = iter(start(loader, 2))
    next(given)
    with pytest.raises(datum.StateError, match=r"loader.state_dict\(batches=n\).*\n?.*Stateful"):
        loader.state_dict()
    with pytest.raises(datum.StateError, match="know how far they have read"):
        _ = loader.remaining
    state = loader.state_dict(batches=1)
    rest = ids(given)
    ids(start(loader, 2))  # the second epoch
    assert loader.state_dict(batches=1) == state | {"epoch": 1}
    loader.load_state_dict(state)
    assert loader.state_dict() == state
    assert ids(start(loader, 2)) == rest


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_of_batches_are_refused(ds, workers):
    loader = ds.to_torch(batch_size=16, columns=["id"])
    with pytest.raises(ValueError, match=r"hint: DataLoader\(loader, batch_size=None\)"):
        list(DataLoader(loader, batch_size=2, num_workers=workers))
    # A function of the program's own knows what it does.
    own = DataLoader(
        loader, batch_size=1, num_workers=workers, collate_fn=lambda batches: batches[0]
    )
    assert len(ids(own)) == 4


def test_a_dataloader_makes_batches_of_single_records(ds):
    options = dict(shuffle=True, columns=["id", "x", "name"])
    loader = ds.to_torch(batch_size=None, **options)
    record = next(iter(loader))
    assert (record["id"].shape, record["x"].shape, type(record["name"])) == ((), (2, 3), str)
    loader.set_epoch(0)
    alone = ids(DataLoader(loader, batch_size=8))
    assert alone == ids(ds.to_torch(batch_size=8, **options))
    for workers in (2, 3):
        loader.set_epoch(0)
        given = DataLoader(loader, batch_size=8, num_workers=workers)
        assert len(given) == 7
        batches = list(given)
        assert sorted(i for batch in ids(batches) for i in batch) == list(range(RECORDS))
        assert all(batch["x"].shape[1:] == (2, 3) for batch in batches)
        assert all(len(batch["name"]) == len(batch["id"]) for batch in batches)
    given = start(loader, 2)  # single ones from workers
    assert sorted(int(record["id"]) for record in given) == list(range(RECORDS))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_batches_of_a_number_of_tokens_are_the_same_with_workers(ds, method):
    options = dict(bucket_by="items", batch_tokens=12, buckets=[1, 3], pad=datum.Pad())
    options |= dict(shuffle=True, epochs=2, columns=["id", "items"])
    loader = ds.to_torch(**options)
    expected = list(loader)
    loader.set_epoch(0)
    given = list(start(loader, 3 if method == "fork" else 2, method))
    assert len(given) == len(loader) == len(expected)
    for ours, theirs in zip(expected, given, strict=True):
        assert {name: column.tolist() for name, column in ours.items()} == {
            name: column.tolist() for name, column in theirs.items()
        }
    state = loader.state_dict(batches=5)
    resumed = ds.to_torch(**options)
    resumed.load_state_dict(state)
    assert ids(start(resumed, 2)) == ids(expected)[5:]


def test_the_epoch_is_set_where_workers_start_anew(ds):
    loader = ds.to_torch(batch_size=4, shuffle=True, columns=["id"])
    expected = [ids(loader) for _ in range(3)]
    workers = start(loader, 2)
    for epoch in (0, 2, 1, 1):
        loader.set_epoch(epoch)
        assert ids(workers) == expected[epoch]


def test_workers_that_last_go_on_to_the_next_epoch_by_themselves(ds):
    loader = ds.to_torch(batch_size=4, shuffle=True, columns=["id"])
    expected = [ids(loader) for _ in range(5)]
    loader.set_epoch(0)
    workers = start(loader, 2, persistent_workers=True)
    assert [ids(workers) for _ in range(3)] == expected[:3]
    for batch in workers:  # the fourth is broken off
        assert batch["id"].tolist() == expected[3][0]
        break
    assert ids(workers) == expected[4]
    for epoch in (1, 1, 0):
        loader.set_epoch(epoch)
        assert ids(workers) == expected[epoch]
    assert ids(workers) == expected[1]
    del workers


@pytest.mark.parametrize("taken", [0, 1, 13])
def test_a_loop_that_is_broken_off_leaves_nothing_behind(ds, taken):
    given = iter(start(ds.to_torch(batch_size=4), 2))
    for _ in range(taken):
        next(given)
    pids = [worker.pid for worker in multiprocessing.active_children()]
    assert len(pids) == 2
    del given
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


# In a program of its own: PyTorch raises this in a signal handler, wherever the program is then.
KILLED = """
import multiprocessing, os, signal, sys
import datum
from torch.utils.data import DataLoader

loader = datum.load(sys.argv[1]).to_torch(batch_size=1, columns=["id"])
for at, batch in enumerate(DataLoader(loader, batch_size=None, num_workers=2)):
    if at == 0:
        workers = [worker.pid for worker in multiprocessing.active_children()]
        print(*workers, flush=True)
        os.kill(workers[0], signal.SIGKILL)
print("all was read")
"""


def test_a_worker_that_is_killed_is_an_error_and_leaves_nothing_behind(ds):
    program = [sys.executable, "-c", KILLED, str(ds.path)]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=ENDS_WITHIN_S)
    assert ran.returncode == 1
    assert "Error" in ran.stderr
    pids = ran.stdout.split()  # and not that all was read
    assert len(pids) == 2
    for pid in map(int, pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(ENDS_WITHIN_S)


def test_what_goes_wrong_in_a_worker_is_raised(ds):
    def fail(record: dict[str, Any]) -> dict[str, Any]:
        raise ZeroDivisionError(f"of {record['id']}")

    with pytest.raises(ZeroDivisionError, match="of "):
        # One: PyTorch takes five seconds for each to end after an error.
        list(start(ds.to_torch(batch_size=4, map=fail), 1))


def test_workers_are_started_while_the_main_process_reads(ds):
    outer = ds.to_torch(batch_size=4, shuffle=True, columns=["id"])
    inner = ds.to_torch(batch_size=8, columns=["id"])
    expected, inside = ids(outer), ids(inner)
    outer.set_epoch(0)
    seen = []
    for at, batch in enumerate(outer):
        seen.append(batch["id"].tolist())
        if at % 5 == 0:
            inner.set_epoch(0)
            assert ids(start(inner, 2)) == inside
    assert seen == expected


def test_random_numbers_of_a_function_are_the_same_with_workers(ds):
    def shift(record: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {**record, "x": record["x"] + rng.normal()}

    options = dict(batch_size=4, shuffle=True, columns=["id", "x"], map=shift)
    expected = [batch["x"].tolist() for batch in ds.to_torch(**options)]
    for workers in (2, 3):
        given = [batch["x"].tolist() for batch in start(ds.to_torch(**options), workers)]
        assert given == expected


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_have_the_rank_of_their_process(ds, method, monkeypatch):
    whole = ids(ds.to_torch(batch_size=8, shuffle=True, remainder="wrap"))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    parts = []
    for rank in range(2):
        monkeypatch.setattr(torch.distributed, "get_rank", lambda rank=rank: rank)
        workers = 2 if method == "fork" else 1
        parts.append(ids(start(ds.to_torch(batch_size=4, shuffle=True), workers, method)))
    assert [a + b for a, b in zip(*parts, strict=True)] == whole
