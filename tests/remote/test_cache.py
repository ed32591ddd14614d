"""The copies that the fetcher keeps: what is fetched, checked, and gives way."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from datum import _core
from datum._storage.cache import Cache, Mirror, Wanted
from datum._storage.location import Location
from datum._storage.store import ObjectInfo
from datum.errors import StorageError

SIZE = 100


class MemoryStore:
    """Objects in memory, each of bytes of its own; counts what is read of them."""

    location = Location.parse("s3://memory")

    def __init__(self) -> None:
        self.reads: list[str] = []
        self.wrong: list[bytes] = []  # given instead of what is asked for, the last first
        self.is_open = threading.Event()  # until then readers wait
        self.is_open.set()

    def content(self, name: str) -> bytes:
        return name.encode() * SIZE

    def head(self, name: str) -> ObjectInfo:
        return ObjectInfo(name, SIZE, "tag", None)

    def get_range(self, name: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        self.reads.append(name)
        assert self.is_open.wait(60)
        found = self.wrong.pop() if self.wrong else self.content(name)
        return found[start : start + length]


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


@pytest.fixture
def wanted(cache, store, tmp_path):
    """What makes the request for all of an object."""
    mirror = Mirror(tmp_path / "mirror", store)

    def make(name: str, *, crc32c: int | None = None) -> list[Wanted]:
        copy = cache.open(mirror, name, SIZE, crc32c)
        return [Wanted(copy, np.arange(1))]

    return make


def test_a_piece_is_fetched_once(cache, store, wanted):
    for _ in range(2):
        cache.need(wanted("a"))
    assert store.reads == ["a"]
    assert wanted("a")[0].copy.map.path.read_bytes() == b"a" * SIZE
    assert (cache.used, cache.downloaded) == (SIZE, SIZE)


def test_many_who_need_a_queued_piece_wait_for_one_download(cache, store, wanted):
    store.is_open.clear()
    with ThreadPoolExecutor(40) as pool:
        busy = [pool.submit(cache.need, wanted(f"busy {n}")) for n in range(16)]
        while len(store.reads) < 16:  # every thread that fetches has something to do
            threading.Event().wait(0.01)
        waiting = [pool.submit(cache.need, wanted("late")) for _ in range(20)]
        copy = wanted("late")[0].copy
        while copy.uses[0] < 20 and not any(one.done() for one in waiting):
            threading.Event().wait(0.01)
        store.is_open.set()
        for one in [*busy, *waiting]:
            one.result(60)
    assert store.reads.count("late") == 1


def test_what_is_needed_last_gives_way_first(cache, store, wanted):
    cache.limit = 2 * SIZE
    for name in ("a", "b"):
        cache.need(wanted(name))
    paths = {name: wanted(name)[0].copy.map.path for name in ("a", "b", "c")}
    cache.plan("a program", {paths["a"]: 1, paths["b"]: 2, paths["c"]: 0})
    cache.need(wanted("c"))
    assert cache.used == 2 * SIZE
    cache.need(wanted("a"))
    assert store.reads == ["a", "b", "c"]


def test_what_no_program_needs_gives_way_before_what_one_needs_late(cache, store, wanted):
    cache.limit = 2 * SIZE
    for name in ("a", "b"):
        cache.need(wanted(name))
    cache.plan("a program", {wanted("a")[0].copy.map.path: 9})
    cache.need(wanted("c"))
    cache.need(wanted("a"))
    assert store.reads == ["a", "b", "c"]


def test_what_is_held_does_not_give_way(cache, wanted):
    cache.limit = SIZE
    held = wanted("a")[0].copy
    cache.hold(held)
    cache.announce(wanted("b"))
    assert held.map.is_complete
    assert cache.used == SIZE
    cache.release(held)
    cache.need(wanted("b"))
    assert not held.map.is_complete


def test_more_than_the_cache_at_once_is_refused(cache, wanted):
    cache.limit = SIZE
    with pytest.raises(StorageError, match="200 B at once") as caught:
        cache.need([*wanted("a"), *wanted("b")])
    assert caught.value.kind == "cache"
    assert cache.used == 0


def test_a_copy_with_another_checksum_is_fetched_again(cache, store, wanted):
    store.wrong = [b"?" * SIZE]
    cache.hold(wanted("a", crc32c=_core.crc32c(b"a" * SIZE))[0].copy)
    assert store.reads == ["a", "a"]


def test_an_object_with_another_checksum_is_an_error_that_names_it(cache, store, wanted):
    with pytest.raises(StorageError, match="s3://memory/a: expected an object with checksum"):
        cache.hold(wanted("a", crc32c=1)[0].copy)
    assert store.reads == ["a", "a"]


def test_a_piece_that_cannot_be_fetched_takes_no_room(cache, store, wanted):
    store.wrong = [b"cut"]
    with pytest.raises(StorageError, match="100 bytes at 0, got 3"):
        cache.need(wanted("a"))
    assert cache.used == 0
    cache.need(wanted("a"))
    assert cache.used == SIZE


def test_copies_of_before_are_counted(cache, wanted, tmp_path):
    cache.need(wanted("a"))
    assert Cache(tmp_path).used == SIZE
