"""Batches over several devices of JAX, of one process and of two."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import datum

pytest.importorskip("jax")

PROGRAM = Path(__file__).with_name("jax_devices.py")
RECORDS, BATCH = 27, 8


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("devices") / "rows"
    rows = [
        {"id": i, "x": np.full(3, i, np.float32), "name": f"n{i}", "items": [i] * (i % 5)}
        for i in range(RECORDS)
    ]
    datum.write(rows, folder, shuffle=False, shards=2, progress=False)
    return datum.load(folder)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


def run(ds: datum.Dataset, processes: int) -> list[dict]:
    port = free_port()
    started = [
        subprocess.Popen(
            [sys.executable, PROGRAM, *map(str, (index, processes, port)), ds.path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(processes)
    ]
    results = []
    for process in started:
        printed, told = process.communicate(timeout=240)
        assert process.returncode == 0, told
        results.append(json.loads(printed.splitlines()[-1]))
    return results


@pytest.fixture(scope="module")
def expected(ds):
    """The batches of one host, and what the real records of each sum up to."""
    loader = ds.to_numpy(batch_size=BATCH, shuffle=True, seed=2, remainder="pad")
    batches = list(loader)
    sums = [float((batch["x"].sum(axis=1) * batch["batch_mask"]).sum()) for batch in batches]
    ids = [batch["id"].tolist() for batch in batches]
    masks = [batch["batch_mask"].tolist() for batch in batches]
    return ids, sums, loader.state_dict(), list(zip(ids, masks, strict=True))


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two processes"])
def results(ds, request):
    return run(ds, request.param)


def test_each_device_has_its_rows_of_the_one_order(results, expected):
    whole = expected[0]
    for number, ids in enumerate(whole[:-1]):
        parts = [part for result in results for part in result["batches"][number]]
        assert len(parts) == 4
        assert [i for part in parts for i in part] == ids


def test_padding_only_fills_up(results, expected):
    parts = [part for result in results for part in result["batches"][-1]]
    assert [len(part) for part in parts] == [BATCH // 4] * 4
    assert results[0]["length"] == len(expected[0])


def test_a_computation_over_all_devices_sees_all_of_a_batch(results, expected):
    for result in results:
        assert result["sums"] == expected[1]


def test_masks_are_cut_over_devices_like_their_columns(results, expected):
    real = [ids[: sum(mask)] for ids, mask in expected[3]]
    for result in results:
        assert result["items"] == [sum(i % 5 for i in ids) for ids in real]
        assert result["programs"] == 1


def test_the_state_is_that_of_one_process(results, expected):
    for result in results:
        assert result["state"] == expected[2]


def test_a_short_batch_is_refused_before_the_first(results):
    for result in results:
        assert len(result["refused"]) == 2  # also of batches by length
        for message in result["refused"]:
            assert "expected full batches of 8 records on all hosts" in message
            assert "got 3 records at the end of an epoch\nhint: remainder=" in message


def test_columns_that_are_not_named_stay_on_one_device(results):
    for result in results:
        assert result["by name"] == [4, 1]
