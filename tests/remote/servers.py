"""Object stores that tests start on this computer: real servers, on free ports of 127.0.0.1."""

import base64
import hashlib
import hmac
import http.client
import itertools
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

KEY, SECRET = "AKDATUMTEST", "a-secret-of-the-tests"
AZURE_ACCOUNT = "devstoreaccount1"  # of Azurite, as its documentation has it
AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
START_S = 60
_counter = itertools.count()


@dataclass(frozen=True)
class Server:
    """A store that is running.

    Attributes:
        port: where it listens.
        url: of a bucket or a folder in it.
        storage: the options that open it.
        folder: where an HTTP server has its files.
    """

    port: int
    url: str
    storage: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    def fresh(self) -> str:
        """A URL below that of the server that nothing has been written to."""
        return f"{self.url}/t{next(_counter)}"

    def through(self, port: int) -> "Server":
        """The same store, reached through a proxy at another port of this computer."""

        def moved(value: Any) -> Any:
            return value.replace(f":{self.port}", f":{port}") if isinstance(value, str) else value

        storage = {name: moved(value) for name, value in self.storage.items()}
        return replace(self, port=port, url=moved(self.url), storage=storage)


def program(name: str) -> str:
    """The path of a program that a package of the `test` extra installs."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    assert found, f"{name} is missing: pip install '.[test]'"
    return found


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


@contextmanager
def running(
    command: Sequence[object], log: Path, is_ready: Callable[[], bool]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
        )
    try:
        until = time.monotonic() + START_S
        while not _answers(is_ready):
            said = f"{command[0]}: {log.read_text(errors='replace')[-2000:]}"
            assert process.poll() is None, f"ended at once: {said}"
            assert time.monotonic() < until, f"not ready in {START_S} s: {said}"
            time.sleep(0.05)
        yield process
    finally:
        process.kill()  # nothing of it is kept
        process.wait()


def _answers(is_ready: Callable[[], bool]) -> bool:
    try:
        return is_ready()
    except (OSError, http.client.HTTPException):
        return False


def request(
    port: int, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
) -> int:
    """Send one request; return the status of its answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        sent = {"Content-Length": str(len(body)), **(headers or {})}
        connection.request(method, path, body=body, headers=sent)
        return connection.getresponse().status
    finally:
        connection.close()


@contextmanager
def seaweed(folder: Path) -> Iterator[Server]:
    """SeaweedFS, with credentials that it checks."""
    from datum._storage.store import open_store

    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    keys = [{"accessKey": KEY, "secretKey": SECRET}]
    known = {"identities": [{"name": "tests", "credentials": keys, "actions": actions}]}
    (folder / "s3.json").write_text(json.dumps(known))
    (folder / "data").mkdir()
    names = ("master.port", "volume.port", "filer.port", "s3.port")
    ports = free_ports(2 * len(names))
    listen: list[object] = []
    for name, port, grpc in zip(names, ports[::2], ports[1::2], strict=True):
        listen += [f"-{name}={port}", f"-{name}.grpc={grpc}"]
    port = ports[6]
    command = [
        *(program("weed"), "-logtostderr", "server", f"-dir={folder / 'data'}"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", *listen),
        *(f"-s3.config={folder / 's3.json'}", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        *("-volume.max=50", "-master.volumeSizeLimitMB=64", "-master.telemetry=false"),
    ]
    storage = {
        "endpoint": f"http://127.0.0.1:{port}",
        "access_key_id": KEY,
        "secret_access_key": SECRET,
        "region": "us-east-1",
    }

    def is_ready() -> bool:
        if request(port, "GET", "/healthz") != 200:
            return False
        make_bucket(storage, "tests")
        open_store("s3://tests", storage).put("ready", b"")
        return True

    with running(command, folder / "log", is_ready):
        yield Server(port, "s3://tests", storage)


def make_bucket(storage: dict[str, Any], name: str) -> None:
    s3_client(storage).create_bucket(Bucket=name)


def s3_client(storage: dict[str, Any]) -> Any:
    """Amazon's own client, for what obstore does not do."""
    import boto3

    return boto3.client(
        "s3",
        endpoint_url=storage["endpoint"],
        aws_access_key_id=storage["access_key_id"],
        aws_secret_access_key=storage["secret_access_key"],
        region_name="us-east-1",
    )


@contextmanager
def moto(folder: Path) -> Iterator[Server]:
    """moto's S3, which takes any credentials."""
    (port,) = free_ports(1)
    storage = {
        "endpoint": f"http://127.0.0.1:{port}",
        "access_key_id": KEY,
        "secret_access_key": SECRET,
        "region": "us-east-1",
    }

    def is_ready() -> bool:
        return request(port, "GET", "/moto-api/") == 200

    with running([program("moto_server"), "-H127.0.0.1", f"-p{port}"], folder / "log", is_ready):
        make_bucket(storage, "tests")
        yield Server(port, "s3://tests", storage)


def google(server: Server) -> Server:
    """moto's S3 as Google Cloud Storage, whose XML API is nearly the same.

    moto tells accounts by the key that a request is signed with; a bearer token that looks like one
    does as well. It ignores the preconditions of Google.
    """
    token = f"{KEY}/20260101/us-east-1/s3/aws4_request"
    return replace(
        server,
        url="gs://tests/google",
        storage={"base_url": f"http://127.0.0.1:{server.port}", "bearer_token": token},
    )


def azurite_program() -> str | None:
    """Azurite, which `make test` installs into the virtual environment where there is npm."""
    found = Path(sys.prefix) / "azurite" / "node_modules" / ".bin" / "azurite-blob"
    return str(found) if found.exists() else shutil.which("azurite-blob")


@contextmanager
def azurite(folder: Path) -> Iterator[Server]:
    """Azurite, the emulator of Azure Blob Storage."""
    (port,) = free_ports(1)
    command = [
        *(azurite_program(), "--silent", "--blobHost", "127.0.0.1", "--blobPort", port),
        *("--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence"),
    ]

    def is_ready() -> bool:
        return _make_container(port, "tests") in (201, 409)

    with running(command, folder / "log", is_ready):
        storage = {
            "endpoint": f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}",
            "account_name": AZURE_ACCOUNT,
            "account_key": AZURE_KEY,
        }
        yield Server(port, "az://tests", storage)


def _make_container(port: int, name: str) -> int:
    date, version = formatdate(usegmt=True), "2021-08-06"
    signed = (
        f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:{version}\n"
        f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/{name}\nrestype:container"
    )
    digest = hmac.new(base64.b64decode(AZURE_KEY), signed.encode(), hashlib.sha256).digest()
    signature = base64.b64encode(digest).decode()
    headers = {
        "x-ms-date": date,
        "x-ms-version": version,
        "Authorization": f"SharedKey {AZURE_ACCOUNT}:{signature}",
    }
    return request(port, "PUT", f"/{AZURE_ACCOUNT}/{name}?restype=container", headers)


@contextmanager
def caddy(folder: Path) -> Iterator[Server]:
    """Caddy, an HTTP server that answers ranges, over a folder."""
    (port,) = free_ports(1)
    files = folder / "files"
    files.mkdir()
    settings = {
        "admin": {"disabled": True},
        "apps": {
            "http": {
                "servers": {
                    "files": {
                        "listen": [f"127.0.0.1:{port}"],
                        "automatic_https": {"disable": True},
                        "routes": [{"handle": [{"handler": "file_server", "root": str(files)}]}],
                    }
                }
            }
        },
    }
    (folder / "caddy.json").write_text(json.dumps(settings))
    command = [program("caddy"), "run", "--config", folder / "caddy.json"]
    with running(command, folder / "log", lambda: request(port, "GET", "/") in (200, 404)):
        yield Server(port, f"http://127.0.0.1:{port}", {}, files)
