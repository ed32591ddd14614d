"""Objects of every kind of store, on real servers, and every way in which they fail."""

import multiprocessing
import os
import pickle
import re
from pathlib import Path

import pytest

from datum._storage.store import Location, Store, StoreOptions, is_url, local_path, open_store
from datum.errors import StorageError
from tests.remote.faults import Fault, Faults
from tests.remote.servers import KEY, SECRET, Server

WRITABLE = ("seaweed", "moto", "google", "azurite")
NAMES = ("plain.bin", "a b/ü%20#+.bin", "deep/er/and=more/x")
QUICK = {
    "retry_config": {"max_retries": 2, "backoff": {"init_backoff": 0.01, "max_backoff": 0.05}},
    "client_options": {"read_timeout": "500ms"},
}


@pytest.fixture(params=WRITABLE)
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(request.param)


@pytest.fixture
def store(server: Server) -> Store:
    return open_store(server.fresh(), server.storage)


def quick(server: Server, url: str = "") -> Store:
    """A store that gives up soon."""
    return open_store(url or server.url, {**server.storage, **QUICK})


def test_objects_come_back_as_they_were_written(store: Store) -> None:
    for name in NAMES:
        data = name.encode() * 100
        put = store.put(name, data)
        head = store.head(name)
        assert store.get(name) == data
        assert (head.size, head.etag) == (len(data), put.etag)
        assert store.get_range(name, 3, 10) == data[3:13]
        assert store.get_range(name, len(data) - 4, 10) == data[-4:]
        assert store.get_range(name, 5, 0) == b""
    assert {info.path for info in store.list()} == set(NAMES)
    assert [info.path for info in store.list("deep")] == [NAMES[2]]
    store.delete(NAMES[0])
    store.delete(NAMES[0])
    assert not store.exists(NAMES[0])
    assert store.exists(NAMES[1])


def test_a_file_is_uploaded_in_parts(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(os.urandom(2**20) * 18)
    info = store.put_file("large", file)
    assert info.size == 18 * 2**20
    assert store.get("large") == file.read_bytes()


@pytest.mark.parametrize("server", ["seaweed", "moto", "azurite"], indirect=True)
def test_conditions_let_one_writer_win(store: Store) -> None:
    first = store.put("manifest", b"one", if_absent=True)
    assert store.put("manifest", b"one", if_absent=True).size == 3  # it is what was meant
    with pytest.raises(StorageError, match="already") as caught:
        store.put("manifest", b"two", if_absent=True)
    assert caught.value.kind == "exists"
    second = store.put("manifest", b"two", if_match=first)
    with pytest.raises(StorageError, match="replaced meanwhile") as caught:
        store.put("manifest", b"three", if_match=first)
    assert caught.value.kind == "changed"
    assert store.get_range("manifest", 0, 3, etag=second.etag) == b"two"
    with pytest.raises(StorageError, match="replaced meanwhile"):
        store.get_range("manifest", 0, 3, etag=first.etag)


def test_a_missing_object_and_a_missing_bucket_are_told_apart(server: Server) -> None:
    with pytest.raises(StorageError, match="no such object\nhint: check the URL") as caught:
        open_store(server.url, server.storage).get("nowhere")
    assert caught.value.kind == "missing"
    assert caught.value.where == f"{server.url}/nowhere"
    scheme = server.url.partition(":")[0]
    with pytest.raises(StorageError, match="no such bucket"):
        open_store(f"{scheme}://no-such-bucket", server.storage).get("nowhere")


def test_listings_come_page_by_page(moto: Server) -> None:
    store = open_store(moto.fresh(), moto.storage)
    for number in range(1010):
        store.put(f"{number:04}", b"")
    with Faults(moto) as proxy:
        listed = open_store(store.location, proxy.server.storage).list()
        next(listed)
        assert len(proxy.seen) <= 2  # obstore may be a page ahead
        assert 1 + sum(1 for _ in listed) == 1010


def test_a_web_server_is_read_by_ranges(caddy: Server) -> None:
    assert caddy.folder is not None
    (caddy.folder / "a b").mkdir(exist_ok=True)
    (caddy.folder / "a b" / "x%.bin").write_bytes(bytes(range(200)))
    store = open_store(f"{caddy.url}/a%20b")
    assert store.get("x%.bin") == bytes(range(200))
    assert store.get_range("x%.bin", 10, 5) == bytes(range(10, 15))
    assert store.head("x%.bin").size == 200
    with pytest.raises(StorageError, match="no such object"):
        store.head("y")
    for call in (lambda: list(store.list()), lambda: store.put("x", b"")):
        with pytest.raises(StorageError, match="HTTP server, which is only read") as caught:
            call()
        assert caught.value.kind == "unsupported"


def test_a_folder_is_a_store_too(tmp_path: Path) -> None:
    store = open_store(tmp_path.as_uri())
    store.put("a/b", b"123")
    assert (tmp_path / "a" / "b").read_bytes() == b"123"
    assert store.get_range("a/b", 1, 1) == b"2"
    assert local_path((tmp_path / "a b").as_uri()) == tmp_path / "a b"


# Failures.


@pytest.fixture(scope="module")
def written(seaweed: Server) -> str:
    url = seaweed.fresh()
    open_store(url, seaweed.storage).put("object", bytes(range(256)) * 4000)
    return url


ALWAYS = [
    (Fault("status", 403, "<Code>AccessDenied</Code><Message>No</Message>"), "denied"),
    (Fault("status", 401), "credentials"),
    (Fault("status", 301), "region"),
    (Fault("status", 404), "missing"),
    (Fault("status", 412), "changed"),
    (Fault("status", 416), "range"),
    (Fault("status", 500), "unavailable"),
    (Fault("status", 503, headers={"Retry-After": "1"}), "unavailable"),
    (Fault("status", 429, headers={"Retry-After": "1"}), "unavailable"),
    (Fault("reset"), "short"),
    (Fault("short"), "short"),
    (Fault("stall"), "timeout"),
    (Fault("whole"), "no ranges"),
]


@pytest.mark.parametrize(("fault", "kind"), ALWAYS, ids=lambda value: getattr(value, "kind", value))
def test_every_failure_names_the_object_and_the_next_step(
    faults: Faults, written: str, fault: Fault, kind: str
) -> None:
    store = quick(faults.server, written)
    with faults.failing(fault), pytest.raises(StorageError) as caught:
        store.get_range("object", 100, 50_000)
    assert caught.value.kind == kind
    assert caught.value.where == f"{written}/object"
    assert caught.value.hint
    assert SECRET not in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", 503, headers={"Retry-After": "1"}, count=2),
        Fault("status", 500, count=1),
        Fault("reset", count=2),
        Fault("stall", count=1),
        Fault("short", count=1),
    ],
    ids=lambda fault: fault.kind,
)
def test_what_fails_for_a_while_is_tried_again(faults: Faults, written: str, fault: Fault) -> None:
    store = quick(faults.server, written)
    with faults.failing(fault):
        assert store.get_range("object", 0, 512) == bytes(range(256)) * 2
    assert len(faults.seen) >= 2


def test_a_lost_answer_to_a_conditional_write_is_no_failure(faults: Faults) -> None:
    """The store has written the object; only the answer is lost."""
    store = quick(faults.server, faults.server.fresh())
    with faults.failing(Fault("reset", paths="^PUT", after=0, count=1)):
        store.put("manifest", b"one", if_absent=True)
    assert store.get("manifest") == b"one"


def test_an_unknown_host_and_a_closed_port_are_told_apart() -> None:
    keys = {"access_key_id": KEY, "secret_access_key": SECRET, **QUICK}
    with pytest.raises(StorageError, match="name of the host") as caught:
        open_store("s3://b", {"endpoint": "https://host.invalid", **keys}).get("x")
    assert caught.value.kind == "name"
    with pytest.raises(StorageError, match="cannot connect to the store in 3 tries") as caught:
        open_store("s3://b", {"endpoint": "http://127.0.0.1:9", **keys}).get("x")
    assert caught.value.kind == "connection"


def test_wrong_credentials_are_denied(seaweed: Server) -> None:
    wrong = {**seaweed.storage, "secret_access_key": "wrong-wrong"}
    with pytest.raises(StorageError, match="access denied") as caught:
        open_store(seaweed.url, wrong).get("x")
    assert caught.value.kind == "denied"


@pytest.mark.parametrize("url", ["s3://b", "gs://b", "az://b"])
def test_without_credentials_the_hint_names_the_variables(
    url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise OSError("no route")

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("socket.create_connection", refuse)
    with pytest.raises(StorageError, match="expected credentials of .*, got none") as caught:
        open_store(url)
    assert caught.value.kind == "credentials"
    assert re.search("AWS_|GOOGLE_|AZURE_", caught.value.hint)


def test_variables_of_the_environment_open_a_store(
    seaweed: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(seaweed.storage["endpoint"]))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    store = open_store(seaweed.fresh())
    store.put("x", b"1")
    assert store.get("x") == b"1"


@pytest.mark.parametrize(
    ("url", "storage", "message"),
    [
        ("s4://b", {}, "did you mean s3://"),
        ("s3://", {}, "name of a bucket"),
        ("https://user:pw@host/x", {}, "without a user"),
        ("az://c/x?sig=abc", {}, r"without `\?`"),
        ("s3://b", {"regoin": "x"}, "did you mean 'region'"),
        ("https://host/x", {"region": "x"}, "no option 'region'"),
        ("s3://b", {"endpoint": "http://host", "skip_signature": True}, "allow_http"),
    ],
)
def test_what_cannot_be_opened_says_why(url: str, storage: dict[str, object], message: str) -> None:
    with pytest.raises(StorageError, match=message) as caught:
        open_store(url, storage)
    assert "pw" not in str(caught.value)
    assert "abc" not in str(caught.value)


def test_no_text_and_no_pickle_has_a_secret(seaweed: Server) -> None:
    header = {"default_headers": {"authorization": "Basic c2VjcmV0"}}
    store = open_store(seaweed.url, {**seaweed.storage, "client_options": header})
    for text in (repr(store), repr(store.options), str(store.options.redacted())):
        assert SECRET not in text
        assert KEY not in text
        assert "c2VjcmV0" not in text
    for data in (pickle.dumps(store.options), pickle.dumps(store)):
        assert SECRET.encode() not in data
        assert b"c2VjcmV0" not in data
    options = pickle.loads(pickle.dumps(store.options))
    assert options.redacted() == store.options.redacted()
    with pytest.raises(StorageError, match="secrets are not kept") as caught:
        open_store(seaweed.url, options)
    assert "AWS_ACCESS_KEY_ID" in caught.value.hint


def test_a_forked_process_is_told(seaweed: Server) -> None:
    store = open_store(seaweed.url, seaweed.storage)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def child() -> None:
        try:
            store.get("ready")
        except StorageError as error:
            there.send(error.kind)

    process = context.Process(target=child)
    process.start()
    assert here.poll(30)
    assert here.recv() == "forked"
    process.join()


def test_locations_read_like_their_urls() -> None:
    assert str(Location.parse("s3://bucket/a/b/") / "c") == "s3://bucket/a/b/c"
    assert Location.parse("https://host:80/a%20b").path == "a b"
    assert str(Location.parse("https://host:80/a%20b") / "c d") == "https://host:80/a%20b/c%20d"
    assert Location.parse("gs://bucket").name == "bucket"
    assert not is_url("C:/data")
    assert not is_url(Path("s3://b"))
    assert StoreOptions({"a": 1}) == {"a": 1}
