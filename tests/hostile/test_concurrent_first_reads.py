"""Readers that start at the same time, when nothing is in the cache yet."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import datum

RECORDS = 3000
ROUNDS = 25  # of which several met the fault, before there was none
READERS = 8


def test_readers_that_inflate_the_same_shards_do_not_disturb_each_other(tmp_path, monkeypatch):
    path = tmp_path / "packed"
    columns = {"x": np.arange(RECORDS)}
    datum.write(columns, path, compression="gzip", shards=3, progress=False)

    def read(_: int) -> int:
        loader = datum.load(path).to_numpy(batch_size=100, shuffle=True)
        return sum(int(batch["x"].sum()) for batch in loader)

    for number in range(ROUNDS):
        monkeypatch.setenv("DATUM_CACHE", str(tmp_path / f"cache {number}"))
        with ThreadPoolExecutor(READERS) as pool:
            assert set(pool.map(read, range(READERS))) == {RECORDS * (RECORDS - 1) // 2}
