"""A loader that is stopped anywhere goes on as if nothing had happened."""

import json
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import pytest

import datum

# With few records most epochs end so.
pytestmark = pytest.mark.filterwarnings("ignore:.*remainder='keep' ends:UserWarning")

TRAINER = Path(__file__).with_name("stoppable_trainer.py")
POLICIES = ["keep", "drop", "pad", "wrap"]
SIZES = [1, 2, 3, 5, 7, 11, 13]


def write(folder: Path, records: int) -> datum.Dataset:
    rows = {
        "id": np.arange(records),
        "x": np.random.default_rng(0).normal(size=(records, 4)),
        "label": np.arange(records) % 2,
    }
    datum.write(rows, folder, shuffle=False, shards=min(3, records), progress=False)
    return datum.load(folder)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sizes")
    return {records: write(folder / str(records), records) for records in SIZES}


def real_ids(batch) -> list[int]:
    ids = batch["id"]
    return ids[batch["batch_mask"]].tolist() if "batch_mask" in batch else ids.tolist()


def take(ds, state, batches: int, hosts: int, **options) -> tuple[list[int], dict]:
    """What all hosts are given in so many batches each, and the state that all then have."""
    ids, states = [], []
    for host in range(hosts):
        loader = ds.to_numpy(host=(host, hosts), shuffle=True, seed=5, threads=1, **options)
        if state is not None:
            loader.load_state_dict(state)
        iterator = iter(loader)
        ids += [i for batch in islice(iterator, batches) for i in real_ids(batch)]
        states.append(json.loads(json.dumps(loader.state_dict())))
        iterator.close()
    assert all(one == states[0] for one in states)
    return ids, states[0]


def check_epoch(ids: list[int], records: int, policy: str, largest_batch: int) -> None:
    if policy in ("keep", "pad"):
        assert sorted(ids) == list(range(records))
    elif policy == "drop":
        assert len(set(ids)) == len(ids) > records - largest_batch
    else:
        assert set(ids) == set(range(records))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("records", SIZES)
def test_stopped_at_any_batch_and_restored_with_any_hosts(datasets, records, policy):
    ds = datasets[records]
    for batch_size in (1, 2, 4):
        for before in (1, 2, 3):
            if policy == "drop" and batch_size * before > records:
                continue
            batches = len(ds.to_numpy(batch_size=batch_size, host=(0, before), remainder=policy))
            for stop in range(1, batches):
                options = dict(batch_size=batch_size, remainder=policy)
                done, state = take(ds, None, stop, before, **options)
                for after in (1, 2, 3):
                    if policy == "drop" and batch_size * after > records:
                        continue
                    rest, _ = take(ds, state, records, after, **options)
                    largest = batch_size * max(before, after)
                    check_epoch(done + rest, records, policy, largest)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("records", SIZES)
def test_stopped_after_every_batch_each_time_with_other_hosts_and_batches(
    datasets, records, policy
):
    ids, state = [], None
    shapes = cycle([(1, 2), (2, 1), (3, 1), (1, 1), (2, 2)])
    for hosts, batch_size in shapes:
        if policy == "drop" and hosts * batch_size > records:
            continue
        got, state = take(
            datasets[records], state, 1, hosts, batch_size=batch_size, remainder=policy
        )
        ids += got
        if state["epoch"] or not got or state["position"] >= records:
            break
    check_epoch(ids, records, policy, 4)


@pytest.mark.parametrize("shuffle", [False, True, "blocks", 5, "shards"])
def test_the_rest_of_a_pass_is_the_same_whatever_threads_made_it(datasets, shuffle):
    ds = datasets[13]
    options = dict(shuffle=shuffle, seed=2, batch_size=2, epochs=3)
    whole = [batch["id"].tolist() for batch in ds.to_numpy(**options)]
    for stop, threads in zip(range(1, len(whole)), cycle([1, 2, 4]), strict=False):
        loader = ds.to_numpy(**options, threads=threads, prefetch=threads + 1)
        iterator = iter(loader)
        first = [batch["id"].tolist() for batch in islice(iterator, stop)]
        other = ds.to_numpy(**options, threads=5 - threads)
        other.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        assert other.remaining == len(whole) - stop
        assert first + [batch["id"].tolist() for batch in other] == whole
        iterator.close()


def test_resuming_far_ahead_costs_no_reading(datasets):
    """The place is a number: no record before it is looked at, not even a damaged one."""
    ds = datasets[13]
    loader = ds.to_numpy(batch_size=1, epochs=None, shuffle=True)
    state = loader.state_dict() | {"epoch": 10**12, "position": 6}
    loader.load_state_dict(state)
    iterator = iter(loader)
    next(iterator)
    assert loader.state_dict() == state | {"position": 7}
    assert loader.report.records == 1
    iterator.close()


def start(data: Path, folder: Path, **options) -> subprocess.Popen:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, TRAINER, data, folder, json.dumps(options)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finish(trainer: subprocess.Popen) -> None:
    trainer.communicate(timeout=120)
    assert trainer.returncode == 0


def kill_after(trainer: subprocess.Popen, steps: int) -> None:
    """End it while it saves its checkpoint, or just after, or waits to go on."""
    trainer.stdin.write("\n" * steps)
    trainer.stdin.flush()
    for _ in range(steps):
        assert trainer.stdout.readline().strip()
    trainer.kill()
    trainer.communicate(timeout=120)
    assert trainer.returncode != 0


@pytest.mark.parametrize("shuffle", [True, "blocks"])
def test_a_training_that_is_killed_and_started_again_is_the_undisturbed_one(tmp_path, shuffle):
    write(tmp_path / "data", 101)
    options = dict(batch_size=8, shuffle=shuffle, seed=11)
    finish(start(tmp_path / "data", tmp_path / "undisturbed", **options))
    for steps, threads in [(1, 1), (5, 2), (9, 4), (7, 1)]:
        trainer = start(tmp_path / "data", tmp_path / "killed", **options, threads=threads)
        kill_after(trainer, steps)
    finish(start(tmp_path / "data", tmp_path / "killed", **options))
    expected = (tmp_path / "undisturbed/log").read_text()
    assert len(expected.splitlines()) == 3 * 13
    assert (tmp_path / "killed/log").read_text() == expected


def test_a_state_of_other_records_is_refused(datasets):
    state = datasets[7].to_numpy(shuffle=True).state_dict()
    with pytest.raises(datum.StateError, match="expected state of the same records"):
        datasets[11].to_numpy(shuffle=True).load_state_dict(state)
