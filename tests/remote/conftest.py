"""Servers that the tests of object stores share; each starts when the first test wants it."""

from collections.abc import Iterator

import pytest

from tests.remote import servers
from tests.remote.faults import Faults
from tests.remote.servers import Server


@pytest.fixture(autouse=True)
def _no_clouds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment says of clouds is not for these tests."""
    import os

    for name in os.environ:
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.seaweed(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.moto(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture(scope="session")
def google(moto: Server) -> Server:
    return servers.google(moto)


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if servers.azurite_program() is None:
        pytest.skip("Azurite is missing: `make test` installs it where there is npm")
    with servers.azurite(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture(scope="session")
def caddy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.caddy(tmp_path_factory.mktemp("caddy")) as server:
        yield server


@pytest.fixture
def faults(seaweed: Server) -> Iterator[Faults]:
    """A proxy before SeaweedFS that fails as it is told."""
    with Faults(seaweed) as proxy:
        yield proxy
