"""Datasets written to object stores: published by their manifest, resumed, never torn."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datum
from datum._storage.store import Store, open_store
from datum.errors import StorageError, WriteError
from datum.format import Index, Manifest
from tests.remote.faults import Fault, Faults
from tests.remote.servers import KEY, SECRET, Server, s3_client

COLUMNS = {"x": np.arange(1000), "v": np.arange(4000, dtype=np.float32).reshape(1000, 4)}


def write(data: Any, url: str, server: Server, **options: Any) -> Any:
    return datum.write(data, url, storage=server.storage, progress=False, **options)


def objects(store: Store) -> dict[str, bytes]:
    return {info.path: store.get(info.path) for info in store.list()}


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def manifest(store: Store) -> Manifest:
    return Manifest.from_bytes(store.get("datum.json"))


@pytest.mark.parametrize("name", ["seaweed", "moto", "google", "azurite"])
def test_a_store_gets_the_files_that_a_folder_gets(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    url = server.fresh()
    report = write(COLUMNS, url, server, shards=3)
    datum.write(COLUMNS, tmp_path / "local", shards=3, progress=False)
    assert objects(open_store(url, server.storage)) == files(tmp_path / "local")
    assert report.path == url
    assert report.records == 1000
    assert SECRET not in repr(report)


def test_a_target_that_is_taken_is_refused(seaweed: Server) -> None:
    url = seaweed.fresh()
    write(COLUMNS, url, seaweed)
    with pytest.raises(WriteError, match="a dataset already exists") as caught:
        write(COLUMNS, url, seaweed)
    assert caught.value.where == url
    other = seaweed.fresh()
    open_store(other, seaweed.storage).put("holiday.jpg", b"")
    with pytest.raises(WriteError, match=r"holiday\.jpg"):
        write(COLUMNS, other, seaweed)


def test_overwriting_never_touches_what_the_old_manifest_names(seaweed: Server) -> None:
    url = seaweed.fresh()
    store = open_store(url, seaweed.storage)
    write(COLUMNS, url, seaweed, shards=2)
    old = objects(store)
    denied = Fault("status", 403, paths=r"^PUT .*datum\.json")
    refused = pytest.raises(StorageError, match="access denied")
    with Faults(seaweed) as proxy, proxy.failing(denied), refused:
        write({"x": [1, 2]}, url, proxy.server, overwrite=True)
    assert {name: data for name, data in objects(store).items() if name in old} == old
    write({"x": [1, 2]}, url, seaweed, overwrite=True)
    named = [shard.name for shard in manifest(store).splits["train"].shards]
    assert named == ["train.1-00000-of-00001.tfrecord"]
    assert set(objects(store)) == {"datum.json", *named, Index.path_for(named[0]).as_posix()}


def test_appending_adds_shards_of_another_generation(seaweed: Server, tmp_path: Path) -> None:
    url = seaweed.fresh()
    for out, options in ((url, {"storage": seaweed.storage}), (tmp_path / "local", {})):
        datum.write({"x": [1, 2]}, out, progress=False, sidecars=["older"], **options)
        datum.write({"x": [3]}, out, append=True, progress=False, **options)
    assert objects(open_store(url, seaweed.storage)) == files(tmp_path / "local")


def test_of_two_writers_one_wins_and_the_dataset_is_whole(seaweed: Server) -> None:
    url = seaweed.fresh()
    outcomes: list[Any] = []

    def run(value: int) -> None:
        # The folder of one machine is held by one writer: the other is on another machine.
        program = textwrap.dedent(f"""
            import datum, json, sys
            def records():
                for i in range(500):
                    yield {{"x": {value}, "i": i}}
            datum.write(records, {url!r}, shards=4, progress=False, storage=json.loads(sys.argv[1]))
        """)
        environment = {**os.environ, "DATUM_CACHE": f"{os.environ['DATUM_CACHE']}/{value}"}
        outcomes.append(
            subprocess.run(
                [sys.executable, "-c", program, json.dumps(seaweed.storage)],
                capture_output=True,
                text=True,
                env=environment,
                check=False,
            )
        )

    threads = [threading.Thread(target=run, args=(value,)) for value in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = [one for one in outcomes if one.returncode == 0]
    assert len(won) == 1, [one.stderr for one in outcomes]
    lost = next(one for one in outcomes if one.returncode)
    assert re.search("another writer has published|already exists", lost.stderr)
    store = open_store(url, seaweed.storage)
    found = manifest(store)
    for shard in found.splits["train"].shards:
        data = store.get(shard.name)
        assert len(data) == shard.bytes
        assert datum._core.crc32c(data) == shard.crc32c


KILLED = """
import datum, json, sys
import numpy as np
columns = {"x": np.arange(40_000), "v": np.zeros((40_000, 100), np.float32)}
datum.write(columns, sys.argv[1], shards=20, progress=False, storage=json.loads(sys.argv[2]))
"""


def noted(cache: Path) -> list[bytes]:
    """The shards that a write has noted as done."""
    journals = [path.read_bytes() for path in cache.rglob("done.jsonl")]
    return journals[0].splitlines() if journals else []


def test_the_same_call_after_a_kill_goes_on(
    seaweed: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = seaweed.fresh()
    monkeypatch.setenv("DATUM_CACHE", str(tmp_path / "cache"))
    with Faults(seaweed, bytes_per_s=2**20, latency_s=0.05) as proxy:
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, url, json.dumps(proxy.server.storage)]
        )
        until = time.monotonic() + 60
        while len(noted(tmp_path / "cache")) < 3:
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    store = open_store(url, seaweed.storage)
    assert not store.exists("datum.json")
    columns = {"x": np.arange(40_000), "v": np.zeros((40_000, 100), np.float32)}
    report = write(columns, url, seaweed, shards=20)
    assert report.resumed_shards >= 3
    datum.write(columns, tmp_path / "local", shards=20, progress=False)
    assert objects(store) == files(tmp_path / "local")


def test_shards_that_another_machine_uploaded_are_found_by_their_checksum(
    seaweed: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = seaweed.fresh()
    with Faults(seaweed) as proxy:
        denied = Fault("status", 403, paths=r"^PUT .*datum\.json")
        with proxy.failing(denied), pytest.raises(StorageError):
            write(COLUMNS, url, proxy.server, shards=5)
        monkeypatch.setenv("DATUM_CACHE", str(tmp_path / "elsewhere"))
        proxy.seen.clear()
        write(COLUMNS, url, proxy.server, shards=5)
        uploads = [one.line for one in proxy.seen if one.line.startswith("PUT")]
        assert uploads
        assert not [line for line in uploads if line.endswith(".tfrecord")]


@pytest.mark.parametrize("name", ["seaweed", "moto"])
def test_uploads_that_a_kill_left_unfinished_are_dropped(
    name: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(name)
    url = server.fresh()
    client = s3_client(server.storage)
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    own = f"{prefix}/train-00000-of-00009.tfrecord"
    for key in (own, f"{prefix}/film.mp4"):
        begun = client.create_multipart_upload(Bucket=bucket, Key=key)
        client.upload_part(
            Bucket=bucket, Key=key, PartNumber=1, UploadId=begun["UploadId"], Body=b"x" * 100
        )
    write(COLUMNS, url, server)
    left = client.list_multipart_uploads(Bucket=bucket, Prefix=f"{prefix}/").get("Uploads", [])
    assert [one["Key"] for one in left] == [f"{prefix}/film.mp4"]


def test_shards_leave_this_computer_as_they_are_done(
    moto: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DATUM_CACHE", str(tmp_path))
    counts = []
    upload = Store.put_file

    def counted(self: Store, path: str, local: Path, **options: Any) -> Any:
        counts.append(len(list(local.parent.glob("*.tfrecord"))))
        return upload(self, path, local, **options)

    monkeypatch.setattr(Store, "put_file", counted)
    write({"x": np.arange(1000)}, moto.fresh(), moto, shards=40)
    assert len(counts) == 40
    assert max(counts) <= 18
    assert list((tmp_path / "uploads").iterdir()) == []


def test_a_failed_write_of_an_iterator_leaves_nothing(seaweed: Server) -> None:
    url = seaweed.fresh()

    def records() -> Any:
        yield {"x": 1}
        yield {"x": "text"}

    with pytest.raises(datum.SchemaError):
        write(records, url, seaweed)
    assert objects(open_store(url, seaweed.storage)) == {}


def test_what_fails_for_a_while_does_not_stop_a_write(faults: Faults, tmp_path: Path) -> None:
    url = faults.server.fresh()
    with faults.failing(Fault("status", 503, headers={"Retry-After": "1"}, count=3)):
        write(COLUMNS, url, faults.server, shards=3)
    datum.write(COLUMNS, tmp_path / "local", shards=3, progress=False)
    assert objects(open_store(url, faults.server.storage)) == files(tmp_path / "local")


def test_no_object_has_a_secret(seaweed: Server) -> None:
    url = seaweed.fresh()
    write(COLUMNS, url, seaweed)
    for data in objects(open_store(url, seaweed.storage)).values():
        assert SECRET.encode() not in data
        assert KEY.encode() not in data


def test_a_dataset_is_resharded_into_a_store(seaweed: Server, tmp_path: Path) -> None:
    datum.write(COLUMNS, tmp_path / "old", shards=1, progress=False)
    url = seaweed.fresh()
    storage = seaweed.storage
    datum.reshard(tmp_path / "old", url, shards=4, storage=storage, progress=False)
    assert len(manifest(open_store(url, storage)).splits["train"].shards) == 4
    with pytest.raises(WriteError, match="already exists"):
        datum.reshard(tmp_path / "old", url, storage=storage, progress=False)
    local = (tmp_path / "new").as_uri()
    assert datum.reshard(tmp_path / "old", local, progress=False).records == 1000


def test_exports_stay_on_this_computer(tmp_path: Path) -> None:
    datum.write(COLUMNS, tmp_path / "old", progress=False)
    with pytest.raises(WriteError, match="got a URL\nhint: export to a folder"):
        datum.export_to(datum.load(tmp_path / "old"), "s3://bucket/x", format="jsonl")


@pytest.mark.parametrize("name", ["seaweed", "moto", "azurite"])
def test_a_bucket_that_is_not_there_is_named(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(name)
    url = server.url.replace("tests", "no-such-bucket")
    with pytest.raises(StorageError, match="no such bucket") as caught:
        write(COLUMNS, f"{url}/x", server)
    assert caught.value.where.startswith(url)


def test_a_file_url_is_a_folder(tmp_path: Path) -> None:
    datum.write({"x": [1]}, (tmp_path / "here").as_uri(), progress=False)
    assert (tmp_path / "here" / "datum.json").is_file()


def test_a_web_server_is_not_written_to(caddy: Server) -> None:
    with pytest.raises(StorageError, match="only read"):
        write({"x": [1]}, f"{caddy.url}/new", caddy)


def test_options_of_a_store_are_refused_for_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`storage` is for object stores"):
        datum.write({"x": [1]}, tmp_path / "a", storage={"region": "x"}, progress=False)
