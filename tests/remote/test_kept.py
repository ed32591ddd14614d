"""Local copies of datasets in object stores: listed, measured, removed."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import datum
from tests.remote.servers import Server

READ = """
import datum, json, sys
dataset = datum.load(sys.argv[1], storage=json.loads(sys.argv[2]))
assert sum(len(batch["x"]) for batch in dataset.to_numpy("train", batch_size=100)) == 1000
print("read", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DATUM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_copies_are_listed_and_removed(cache: Path, moto: Server) -> None:
    assert datum.cached_datasets() == []
    assert datum.clear_cache() == 0
    urls = [moto.fresh(), moto.fresh()]
    for url in urls:
        datum.write({"x": np.arange(1000)}, url, storage=moto.storage, progress=False)
    for url in urls:
        with subprocess.Popen(
            [sys.executable, "-c", READ, url, json.dumps(moto.storage)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == "read\n"
            if url == urls[1]:  # while it reads
                with pytest.raises(datum.StorageError, match="a program is reading"):
                    datum.clear_cache()
    first, second = datum.cached_datasets()
    assert [first.url, second.url] == sorted(urls)
    assert first.bytes > 0
    assert first.last_used is not None
    until = time.monotonic() + 60
    while True:  # whoever fetched ends some seconds after the last reader
        try:
            assert datum.clear_cache(f"{first.url}/") == first.bytes
            break
        except datum.StorageError:
            assert time.monotonic() < until
            time.sleep(0.2)
    assert [one.url for one in datum.cached_datasets()] == [second.url]
    listed = run("cache", "--json")
    assert [one["url"] for one in json.loads(listed)["datasets"]] == [second.url]
    assert second.url in run("cache")
    run("cache", "--clear")
    assert datum.cached_datasets() == []
    shutil.rmtree(cache, ignore_errors=True)


def run(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "datum", *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    ).stdout
