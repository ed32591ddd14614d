"""Datasets in object stores, read through local copies."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datum
from datum._storage.pieces import MAP_FOLDER, PIECE_BYTES, PieceMap
from datum._storage.store import open_store

RECORDS = 3000
SECRET = "a-secret-that-no-file-may-have"


def upload(folder: Path, url: str, storage: dict[str, Any]) -> None:
    store = open_store(url, storage)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            store.put_file(path.relative_to(folder).as_posix(), path)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An own cache; whoever serves it ends with its folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DATUM_CACHE", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def photos(tmp_path_factory, moto):
    """A dataset of three shards of two pieces and a bit each, here and in a store."""
    folder = tmp_path_factory.mktemp("written") / "photos"
    rng = np.random.default_rng(0)
    columns = {"x": np.arange(RECORDS), "v": rng.random((RECORDS, 2300), np.float32)}
    datum.write(columns, folder, shards=3, shuffle=False, progress=False)
    url = f"{moto.url}/photos"
    upload(folder, url, moto.storage)
    return folder, url, moto.storage


def ids(loader) -> list[int]:
    return np.concatenate([np.asarray(batch["x"]) for batch in loader]).tolist()


def status(dataset) -> dict[str, Any]:
    return dataset._contents.remote.status()


def total_bytes(dataset) -> int:
    return sum(split.bytes for split in dataset.splits.values())


def fill(dataset) -> None:
    for _ in dataset.to_numpy("train", batch_size=256):
        pass


# What is read.


def test_records_batches_and_checks_are_those_of_the_local_dataset(cache, photos):
    folder, url, storage = photos
    local, remote = datum.load(folder), datum.load(url, storage=storage)
    assert repr(remote).splitlines()[1:] == repr(local).splitlines()[1:]
    assert repr(remote).startswith(f"Dataset({url!r}")
    assert remote.url == url
    assert np.array_equal(remote["train"][-1]["v"], local["train"][-1]["v"])
    for options in ({}, {"shuffle": True, "seed": 3}, {"shuffle": "blocks"}, {"threads": 1}):
        assert ids(remote.to_numpy(batch_size=100, **options)) == ids(
            local.to_numpy(batch_size=100, **options)
        )
    assert [int(record["x"]) for record in remote["train[5:300]"]] == list(range(5, 300))
    assert remote.verify().is_sound
    assert datum.verify(url, storage=storage).records == RECORDS


def test_one_record_costs_one_piece(cache, photos):
    _, url, storage = photos
    remote = datum.load(url, storage=storage)
    remote["train"][10]
    assert status(remote)["downloaded"] == PIECE_BYTES
    remote["train"][11]
    assert status(remote)["downloaded"] == PIECE_BYTES


def test_a_second_program_reads_what_the_first_has_fetched(cache, photos):
    _, url, storage = photos
    first = datum.load(url, storage=storage)
    fill(first)
    fill(datum.load(url, storage=storage))
    assert status(first)["downloaded"] == total_bytes(first)


def test_compressed_shards_are_fetched_whole(cache, tmp_path, moto):
    datum.write({"x": np.arange(50)}, tmp_path / "z", compression="gzip", progress=False)
    upload(tmp_path / "z", f"{moto.url}/z", moto.storage)
    remote = datum.load(f"{moto.url}/z", storage=moto.storage)
    assert sorted(ids(remote.to_numpy(shuffle=True))) == list(range(50))
    assert sorted(int(record["x"]) for record in remote["train"]) == list(range(50))


def test_a_shard_without_its_index_is_fetched_whole(cache, tmp_path, moto):
    datum.write({"x": np.arange(50)}, tmp_path / "bare", progress=False)
    for path in (tmp_path / "bare" / "index").iterdir():
        path.unlink()
    upload(tmp_path / "bare", f"{moto.url}/bare", moto.storage)
    remote = datum.load(f"{moto.url}/bare", storage=moto.storage)
    assert sorted(ids(remote.to_numpy(shuffle=True))) == list(range(50))


def test_a_file_url_is_a_local_path(photos):
    folder, _, _ = photos
    assert datum.load(folder.as_uri()).path == folder


def test_a_position_saved_locally_continues_remotely(cache, photos):
    folder, url, storage = photos
    options = {"batch_size": 100, "shuffle": True, "seed": 1}
    local, remote = datum.load(folder).to_numpy(**options), None
    batches = iter(local)
    seen = [next(batches)["x"] for _ in range(5)]
    remote = datum.load(url, storage=storage).to_numpy(**options)
    remote.load_state_dict(local.state_dict())
    seen += [batch["x"] for batch in remote]
    assert np.sort(np.concatenate(seen)).tolist() == list(range(RECORDS))


# Processes and threads.


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_data_loader_fetch_each_piece_once(cache, photos, method):
    from torch.utils.data import DataLoader

    _, url, storage = photos
    remote = datum.load(url, storage=storage)
    remote["train"][0]  # the parent has used the fetcher
    loader = remote.to_torch(batch_size=50, shuffle=True, seed=2)
    workers = DataLoader(
        loader, batch_size=None, num_workers=2, multiprocessing_context=method, timeout=120
    )
    assert sorted(ids(workers)) == list(range(RECORDS))
    assert status(remote)["downloaded"] == total_bytes(remote)


def test_ranks_of_several_programs_fetch_each_piece_once(cache, photos):
    _, url, storage = photos
    code = (
        "import json, sys, datum\n"
        "url, storage, rank = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])\n"
        "ds = datum.load(url, storage=storage)\n"
        "loader = ds.to_numpy(batch_size=50, shuffle=True, host=(rank, 3))\n"
        "print(sum(int(batch['x'].sum()) for batch in loader))\n"
    )
    import json

    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code, url, json.dumps(storage), str(rank)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    found = [int(rank.communicate(timeout=200)[0]) for rank in ranks]
    assert sum(found) == sum(range(RECORDS))
    remote = datum.load(url, storage=storage)
    assert status(remote)["downloaded"] <= total_bytes(remote)
    assert status(remote)["used"] == total_bytes(remote)


def test_threads_share_a_split(cache, photos):
    _, url, storage = photos
    split = datum.load(url, storage=storage)["train"]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: int(split[number]["x"]), range(0, RECORDS, 37)))
    assert found == list(range(0, RECORDS, 37))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_fetcher_may_be_killed_at_any_time(cache, photos, method):
    _, url, storage = photos
    remote = datum.load(url, storage=storage)
    found = []
    loader = remote.to_numpy(batch_size=100)
    for number, batch in enumerate(loader):
        found += batch["x"].tolist()
        if number in (3, 9):
            os.kill(status(remote)["process"], signal.SIGKILL)
    assert found == list(range(RECORDS))
    process = status(remote)["process"]
    context = multiprocessing.get_context(method)
    with context.Pool(1) as pool:
        assert pool.apply(read_one, (remote["train"], 5)) == 5
        os.kill(process, signal.SIGKILL)
        assert pool.apply(read_one, (remote["train"], RECORDS - 1)) == RECORDS - 1


def read_one(split, number: int) -> int:
    return int(split[number]["x"])


def test_a_fetcher_ends_when_its_cache_is_removed(cache, photos):
    import psutil

    _, url, storage = photos
    process = psutil.Process(status(datum.load(url, storage=storage))["process"])
    shutil.rmtree(cache)
    process.wait(timeout=60)


# The bound of the cache.


def test_a_small_cache_holds_no_more_than_its_bound(cache, photos):
    _, url, storage = photos
    limit = 4 * PIECE_BYTES
    remote = datum.load(url, storage=storage, cache_bytes=limit)
    assert status(remote)["cache_bytes"] == limit
    assert total_bytes(remote) > limit
    for _ in range(2):
        assert ids(remote.to_numpy(batch_size=50)) == list(range(RECORDS))
        assert status(remote)["used"] <= limit
        shards = list(remote.path.glob("*.tfrecord"))
        assert sum(path.stat().st_blocks * 512 for path in shards) <= limit + 2**16 * len(shards)


def test_a_batch_that_is_larger_than_the_cache_is_refused(cache, photos):
    _, url, storage = photos
    remote = datum.load(url, storage=storage, cache_bytes=PIECE_BYTES)
    with pytest.raises(datum.StorageError, match="cache_bytes") as caught:
        next(iter(remote.to_numpy(batch_size=RECORDS)))
    assert caught.value.kind == "cache"


# Damage.


def test_a_damaged_copy_is_fetched_again(cache, photos):
    folder, url, storage = photos
    remote = datum.load(url, storage=storage)
    fill(remote)
    shard = remote.path / remote.splits["train"].shards[0].name
    with shard.open("r+b") as file:
        file.seek(1000)
        file.write(b"?" * 5000)
    local = datum.load(folder)
    assert np.array_equal(remote["train"][0]["v"], local["train"][0]["v"])
    assert ids(remote.to_numpy(on_error="skip")) == list(range(RECORDS))
    assert status(remote)["downloaded"] == total_bytes(remote) + PIECE_BYTES


def test_an_object_that_is_damaged_in_the_store_is_an_error_that_names_it(cache, tmp_path, moto):
    datum.write({"x": np.arange(500)}, tmp_path / "torn", shuffle=False, progress=False)
    shard = next((tmp_path / "torn").glob("*.tfrecord"))
    data = bytearray(shard.read_bytes())
    data[100] ^= 1
    shard.write_bytes(data)
    upload(tmp_path / "torn", f"{moto.url}/torn", moto.storage)
    remote = datum.load(f"{moto.url}/torn", storage=moto.storage)
    with pytest.raises(datum.DatumError, match=f"{moto.url}/torn/{shard.name}"):
        ids(remote.to_numpy())
    assert "file checksum" in {problem.kind for problem in remote.verify().problems}


def test_an_object_replaced_while_it_is_read_is_an_error(cache, tmp_path, moto):
    big = {"x": np.arange(300), "v": np.zeros((300, 8000), np.float32)}
    datum.write(big, tmp_path / "one", shuffle=False, progress=False)
    datum.write({**big, "v": big["v"] + 1}, tmp_path / "two", shuffle=False, progress=False)
    url = f"{moto.url}/changing"
    upload(tmp_path / "one", url, moto.storage)
    remote = datum.load(url, storage=moto.storage)
    assert remote["train"][0]["v"][0] == 0
    upload(tmp_path / "two", url, moto.storage)
    with pytest.raises(datum.StorageError) as caught:
        remote["train"][-1]
    assert caught.value.kind == "changed"
    assert datum.load(url, storage=moto.storage)["train"][-1]["v"][0] == 1


# Secrets, and what is not there.


def test_no_secret_is_in_a_pickle_a_text_or_a_file(cache, photos):
    _, url, storage = photos
    remote = datum.load(url, storage={**storage, "secret_access_key": SECRET})
    remote["train"][0]
    loader = remote.to_torch(batch_size=10)
    for held in (remote["train"], loader):
        assert SECRET.encode() not in pickle.dumps(held)
    assert SECRET not in repr(remote) + repr(remote["train"]) + repr(loader)
    for path in cache.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes()
    command = Path(f"/proc/{status(remote)['process']}/cmdline")
    if command.exists():
        assert SECRET.encode() not in command.read_bytes()
        assert SECRET.encode() not in command.with_name("environ").read_bytes()


def test_only_its_owner_can_talk_to_the_fetcher(cache, photos):
    from datum._storage.wire import find_socket

    _, url, storage = photos
    datum.load(url, storage=storage)
    assert find_socket(cache / "remote-1").stat().st_mode & 0o077 == 0


def test_a_url_without_a_dataset_is_an_error_that_names_it(cache, moto):
    with pytest.raises(datum.ManifestError, match=f"{moto.url}/nothing"):
        datum.load(f"{moto.url}/nothing", storage=moto.storage)


def test_options_of_a_store_need_a_url(photos):
    with pytest.raises(ValueError, match="`storage`"):
        datum.load(photos[0], storage={"region": "here"})


def test_the_map_of_a_copy_counts_its_bytes(tmp_path):
    pieces = PieceMap.create(tmp_path / "a", size=25, etag="tag", piece_bytes=10)
    assert len(pieces) == 3
    assert pieces.present_bytes == 0
    pieces.present[[0, 2]] = 1
    again = PieceMap(tmp_path / "a")
    assert (again.present_bytes, again.etag, again.is_complete) == (15, "tag", False)
    assert again.cover(np.array([3]), np.array([21])).tolist() == [0, 1, 2]
    assert again.lacks(np.array([0, 1])).tolist() == [1]
    assert (tmp_path / MAP_FOLDER / "a").is_file()


def test_a_load_is_not_disturbed_by_threads_that_start_it_at_once(cache, photos):
    _, url, storage = photos
    found: list[int] = []

    def load() -> None:
        found.append(len(datum.load(url, storage=storage)["train"]))

    threads = [threading.Thread(target=load) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [RECORDS] * 6


# The order of shards.


def test_pieces_to_come_are_fetched_while_others_are_read(cache, photos):
    _, url, storage = photos
    remote = datum.load(url, storage=storage)
    batches = iter(remote.to_numpy(batch_size=100))
    for _ in range(8):
        next(batches)
    # All of it fits into what is read ahead, of which a third was given.
    while status(remote)["downloaded"] < total_bytes(remote):
        pass
    assert sum(len(batch["x"]) for batch in batches) == RECORDS - 800


@pytest.fixture(scope="session")
def many(tmp_path_factory, moto):
    """A dataset of 16 shards of one piece each, here and in a store."""
    folder = tmp_path_factory.mktemp("written") / "many"
    columns = {"x": np.arange(1600), "v": np.zeros((1600, 9000), np.float32)}
    datum.write(columns, folder, shards=16, shuffle=False, progress=False)
    upload(folder, f"{moto.url}/many", moto.storage)
    return folder, f"{moto.url}/many", moto.storage


@pytest.mark.parametrize("workers", [0, 2])
def test_shards_in_random_order_fetch_each_piece_once_though_the_cache_is_small(
    cache, many, workers
):
    from torch.utils.data import DataLoader

    folder, url, storage = many
    limit = 10 * PIECE_BYTES
    local, remote = datum.load(folder), datum.load(url, storage=storage, cache_bytes=limit)
    assert total_bytes(remote) > limit
    options = {"batch_size": 50, "shuffle": "shards", "seed": 5}
    loader = remote.to_torch(**options)
    if workers:
        loader = DataLoader(loader, batch_size=None, num_workers=workers)
    assert ids(loader) == ids(local.to_numpy(**options))
    assert status(remote)["downloaded"] == total_bytes(remote)
    assert status(remote)["used"] <= limit
