"""A run that is stopped and goes on sees what an undisturbed one sees, each record once."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import datum

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*remainder='keep' ends:UserWarning"),
    # Of more workers than the machine has cores.
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    # Of torchdata, with a PyTorch that is newer than it knows.
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),
]

RECORDS = 23
ENDS_WITHIN_S = 120  # a program that is waited for; far more than it takes


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> datum.Dataset:
    path = tmp_path_factory.mktemp("rows") / "ds"
    datum.write({"id": range(RECORDS)}, path, shards=3, progress=False)
    return datum.load(path)


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def flat(batches: list[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


def start(loader: Any, workers: int, kind: Any = DataLoader, **options: Any) -> Any:
    return kind(loader, batch_size=None, num_workers=workers, **options)


# torchdata's StatefulDataLoader.


def run_epochs(loader: Any, given: Any, epochs: range) -> list[list[list[int]]]:
    """What the epochs of a run are made of."""
    seen = []
    for epoch in epochs:
        loader.set_epoch(epoch)
        seen.append(ids(given))
    return seen


@pytest.mark.parametrize(
    ("workers", "remainder"),
    [(0, "keep"), (0, "drop"), (1, "keep"), (2, "keep"), (2, "drop"), (3, "drop")],
)
def test_a_stateful_dataloader_goes_on_after_every_batch(ds, workers, remainder):
    options = dict(batch_size=4, shuffle=True, remainder=remainder)
    loader = ds.to_torch(**options)
    whole = run_epochs(loader, loader, range(3))
    loader = ds.to_torch(**options)
    given = start(loader, workers, StatefulDataLoader, snapshot_every_n_steps=1)
    for epoch in range(2):
        loader.set_epoch(epoch)
        for at, _ in enumerate(given, 1):
            state = given.state_dict()
            other = ds.to_torch(**options)
            again = start(other, workers, StatefulDataLoader, snapshot_every_n_steps=1)
            again.load_state_dict(state)
            assert ids(again) == whole[epoch][at:]
            if at == 3:
                other.set_epoch(epoch + 1)
                assert ids(again) == whole[epoch + 1]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_dataloader_goes_on_after_an_epoch(ds, workers):
    options = dict(batch_size=4, shuffle=True)
    loader = ds.to_torch(**options)
    whole = run_epochs(loader, loader, range(2))
    loader = ds.to_torch(**options)
    given = start(loader, workers, StatefulDataLoader)
    assert ids(given) == whole[0]
    state = given.state_dict()
    other = ds.to_torch(**options)
    again = start(other, workers, StatefulDataLoader)
    again.load_state_dict(state)
    other.set_epoch(1)
    assert ids(again) == whole[1]


def test_a_stateful_dataloader_with_workers_that_last_goes_on(ds):
    options = dict(batch_size=4, shuffle=True)
    loader = ds.to_torch(**options)
    whole = run_epochs(loader, loader, range(4))
    kept = dict(persistent_workers=True, snapshot_every_n_steps=1)
    given = start(ds.to_torch(**options), 2, StatefulDataLoader, **kept)
    assert ids(given) == whole[0]
    for at, _ in enumerate(given, 1):  # the second epoch
        again = start(ds.to_torch(**options), 2, StatefulDataLoader, **kept)
        again.load_state_dict(given.state_dict())
        assert ids(again) == whole[1][at:]
        assert ids(again) == whole[2]
        if at == 3:
            break
    given_again = iter(given)  # broken off: the third epoch
    state = given.state_dict()  # before any of its batches
    assert ids(given_again) == whole[2]
    again = start(ds.to_torch(**options), 2, StatefulDataLoader, **kept)
    again.load_state_dict(state)
    assert ids(again) == whole[2]


def test_a_stateful_dataloader_refuses_the_state_of_other_records(ds, tmp_path):
    datum.write({"id": range(9)}, tmp_path / "other", progress=False)
    for workers in (0, 1):  # torchdata takes five seconds for each worker to end after an error
        given = start(ds.to_torch(batch_size=4), workers, StatefulDataLoader)
        next(iter(given))
        other = datum.load(tmp_path / "other").to_torch(batch_size=4)
        again = start(other, workers, StatefulDataLoader)
        again.load_state_dict(given.state_dict())
        with pytest.raises(datum.StateError, match="expected state of the same records"):
            ids(again)


# A program that is killed.

PROGRAM = """
import json, os, signal, sys
import torch, datum
from torchdata.stateful_dataloader import StatefulDataLoader

path, checkpoint, workers, stop = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
loader = datum.load(path).to_torch(batch_size=2, shuffle=True, seed=3)
given = StatefulDataLoader(loader, batch_size=None, num_workers=workers)
first, step = 0, 0
if os.path.exists(checkpoint):
    saved = torch.load(checkpoint, weights_only=True)
    first, step = saved["epoch"], saved["step"]
    given.load_state_dict(saved["loader"])
for epoch in range(first, 3):
    loader.set_epoch(epoch)
    for batch in given:
        step += 1
        print(json.dumps([epoch, batch["id"].tolist()]), flush=True)
        state = {"epoch": epoch, "step": step, "loader": given.state_dict()}
        torch.save(state, checkpoint)
        if step == stop:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def run_program(ds: datum.Dataset, checkpoint: Path, workers: int, stop: int = 0) -> list[Any]:
    arguments = [str(ds.path), str(checkpoint), str(workers), str(stop)]
    program = [sys.executable, "-c", PROGRAM, *arguments]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=ENDS_WITHIN_S)
    assert ran.returncode == (-9 if stop else 0), ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_program_that_is_killed_goes_on_as_if_it_had_not_been(ds, tmp_path, workers):
    loader = ds.to_torch(batch_size=2, shuffle=True, seed=3)
    undisturbed = [[epoch, batch] for epoch in range(3) for batch in ids(loader)]
    assert len(undisturbed) == 36
    seen = run_program(ds, tmp_path / "saved.pt", workers, 19)  # in the second epoch
    seen += run_program(ds, tmp_path / "saved.pt", workers)
    assert seen == undisturbed


# Other numbers of hosts and workers. Workers are played here, so that all cases can be gone
# through; test_torch_workers.py shows that real ones are like that.


def play_host(ds: Any, options: Any, state: Any, workers: int, monkeypatch: Any) -> list[list[int]]:
    """The batches that one host gets from its workers."""
    parts = []
    for index in range(max(1, workers)):
        with monkeypatch.context() as patch:
            info = (
                SimpleNamespace(id=index, num_workers=workers, seed=7 + index) if workers else None
            )
            patch.setattr(torch.utils.data, "get_worker_info", lambda info=info: info)
            loader = ds.to_torch(**options)
            loader.load_state_dict(state)
            parts.append(ids(loader))
    turns = itertools.zip_longest(*parts)
    return [batch for turn in turns for batch in turn if batch is not None]


def play_all(ds: Any, options: Any, state: Any, hosts: int, workers: int, patch: Any) -> list[int]:
    """The records that all hosts get, in the order of their positions."""
    parts = [
        play_host(ds, {**options, "host": (host, hosts)}, state, workers, patch)
        for host in range(hosts)
    ]
    assert len({len(part) for part in parts}) == 1, "every host has as many batches"
    return [number for turn in zip(*parts, strict=True) for batch in turn for number in batch]


@pytest.mark.parametrize("shuffle", [False, True, 8])
@pytest.mark.parametrize(("hosts", "workers"), [(1, 0), (2, 2), (3, 0)])
def test_stopped_anywhere_it_goes_on_with_any_other_number(
    ds, shuffle, hosts, workers, monkeypatch
):
    options = dict(batch_size=2, shuffle=shuffle, seed=11, remainder="keep")
    order = flat(ids(ds.to_torch(**options)))
    assert sorted(order) == list(range(RECORDS))
    batches = len(ds.to_torch(**options, host=(0, hosts)))
    for stop in range(batches + 1):
        loader = ds.to_torch(**options, host=(0, hosts))
        state = loader.state_dict(batches=stop)
        done = order[: stop * 2 * hosts]
        for other_hosts, other_workers in itertools.product((1, 2, 3), (0, 1, 2, 3)):
            rest = play_all(ds, options, state, other_hosts, other_workers, monkeypatch)
            assert done + rest == order


@pytest.mark.parametrize("hosts", [1, 2])
def test_every_host_has_the_same_state(ds, hosts):
    options = dict(batch_size=2, shuffle=True, epochs=2)
    loaders = [ds.to_torch(**options, host=(host, hosts)) for host in range(hosts)]
    for batches in zip(*loaders, strict=True):
        assert len(batches) == hosts
        states = [loader.state_dict() for loader in loaders]
        assert all(state == states[0] for state in states)


@pytest.mark.parametrize(("before", "after"), [(2, 3), (2, 0), (0, 2), (3, 2)])
def test_real_workers_go_on_from_a_number_of_batches(ds, before, after):
    options = dict(batch_size=4, shuffle=True)
    loader = ds.to_torch(**options)
    whole = run_epochs(loader, loader, range(2))
    for stop in (1, 3, 6):
        loader = ds.to_torch(**options)
        given = iter(start(loader, before))
        seen = [next(given)["id"].tolist() for _ in range(stop)]
        state = json.loads(json.dumps(loader.state_dict(batches=stop)))
        del given
        other = ds.to_torch(**options)
        other.load_state_dict(state)
        assert seen + ids(start(other, after)) == whole[0]
        other.set_epoch(1)
        assert ids(start(other, after)) == whole[1]


def test_a_state_of_one_worker_says_what_it_is(ds, monkeypatch):
    loader = ds.to_torch(batch_size=4)
    with monkeypatch.context() as patch:
        info = SimpleNamespace(id=1, num_workers=2, seed=8)
        patch.setattr(torch.utils.data, "get_worker_info", lambda: info)
        next(iter(loader))
        state = loader.state_dict()
    with pytest.raises(datum.StateError, match=r"loader.state_dict\(batches=n\)"):
        ds.to_torch(batch_size=4).load_state_dict(state)
