"""Where the plain file and the index of a shard are, and what is kept of them."""

import errno
import os
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import datum
from datum._frameworks.tensorflow.blocks import find_sound_stretches
from datum._read import local
from datum._read import local as module
from datum._read.local import (
    cache_folder,
    check_unchanged,
    find_local,
    keep,
    keep_for_process,
    name_for,
    places,
)
from datum._read.numbered import NumberedRecords
from datum._read.shards import ShardRange, Shards, SoundFile
from datum._read.split import Split
from datum.errors import CorruptIndexError, CorruptRecordError, ManifestError, WriteError
from datum.format import Index, Parser, RecordFile, RecordWriter, ShardInfo, encode, frame
from tests.unit.read.written import NUMBERED, numbered, write_dataset

ROWS = numbered(*range(500))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DATUM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write_shard(folder, **options):
    return write_dataset(folder, {"train": [ROWS]}, **options).splits["train"].shards[0]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def payloads_of(local):
    """Every record that is found, as `local` says where; None for those that are lost."""
    data = local.path.read_bytes()
    assert len(data) == local.bytes
    offsets = Index.load(local.index).offsets if local.offsets is None else local.offsets
    found = []
    for offset in offsets.tolist():
        length = int.from_bytes(data[offset : offset + 8], "little")
        found.append(None if offset < 0 else data[offset + 12 : offset + 12 + length])
    return found


def flip(path, at, count=1):
    data = bytearray(path.read_bytes())
    for place in range(at, at + count):
        data[place] ^= 0x5A
    path.write_bytes(data)


# Plain shards.
def test_a_shard_with_its_index_is_read_in_place(tmp_path, cache):
    shard = write_shard(tmp_path / "out")
    path = tmp_path / "out" / shard.name
    local = find_local(Shards(tmp_path / "out"), shard)
    assert (local.path, local.bytes) == (path, shard.bytes)
    assert (local.index, local.offsets) == (Index.path_for(path), None)
    assert names_in(cache) == []


def test_an_index_that_is_missing_is_built_once_and_kept_elsewhere(tmp_path, cache, monkeypatch):
    shard = write_shard(tmp_path / "out", has_index=False)
    before = names_in(tmp_path / "out")
    local = find_local(Shards(tmp_path / "out"), shard)
    assert payloads_of(local) == list(RecordFile(tmp_path / "out" / shard.name))
    assert local.index.parent == cache
    assert names_in(tmp_path / "out") == before
    monkeypatch.delattr(RecordFile, "index")  # nobody asks for it again
    assert find_local(Shards(tmp_path / "out"), shard).index == local.index


def test_an_index_that_others_wrote_is_neither_read_nor_touched(tmp_path, cache):
    shard = write_shard(tmp_path / "out", has_index=False)
    path = tmp_path / "out" / shard.name
    Index.path_for(path).parent.mkdir()
    Index.path_for(path).write_text("0 17")
    local = find_local(Shards(tmp_path / "out", "tfrecord files"), shard)
    assert payloads_of(local) == list(RecordFile(path, use_index=False))
    assert local.index.parent == cache
    assert Index.path_for(path).read_text() == "0 17"


@pytest.mark.parametrize("damage", [b"", b"DATUMIDX", b"\0" * 4040])
def test_a_damaged_index_in_the_cache_is_built_anew(tmp_path, cache, damage):
    shard = write_shard(tmp_path / "out", has_index=False)
    shards = Shards(tmp_path / "out")
    index = find_local(shards, shard).index
    sound = index.read_bytes()
    index.write_bytes(damage)
    assert find_local(shards, shard).index == index
    assert index.read_bytes() == sound
    assert names_in(cache) == [index.name]


def test_the_index_of_a_shard_that_was_replaced_is_built_anew(tmp_path, cache):
    shards = Shards(tmp_path / "out", "tfrecord files")
    shard = write_shard(tmp_path / "out", has_index=False)
    first = find_local(shards, shard)
    rows = numbered(*range(1000, 1200))
    split = write_dataset(tmp_path / "out", {"train": [rows]}, has_index=False).splits["train"]
    second = find_local(shards, split.shards[0])
    assert second.index != first.index
    assert len(payloads_of(second)) == 200


def test_where_nothing_can_be_kept_an_index_lasts_as_long_as_the_process(tmp_path, cache):
    cache.write_text("no folder")
    shard = write_shard(tmp_path / "out", has_index=False)
    local = find_local(Shards(tmp_path / "out"), shard)
    assert len(payloads_of(local)) == 500
    assert find_local(Shards(tmp_path / "out"), shard).index == local.index


def test_a_missing_shard_a_cut_one_and_a_replaced_one_are_told(tmp_path, cache):
    shard = write_shard(tmp_path / "out")
    shards, path = Shards(tmp_path / "out"), tmp_path / "out" / shard.name
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(CorruptRecordError, match="expected .* bytes, as the manifest says"):
        find_local(shards, shard)
    path.unlink()
    for skips_damage in (False, True):
        with pytest.raises(ManifestError, match="no such file"):
            find_local(shards, shard, skips_damage=skips_damage)
    path.write_bytes(data)
    (tmp_path / "out" / "datum.json").unlink()
    for skips_damage in (False, True):
        with pytest.raises(ManifestError, match="was replaced since it was loaded"):
            find_local(Shards(tmp_path / "out"), shard, skips_damage=skips_damage)


def test_an_index_beside_that_is_damaged_or_of_another_file_is_refused(tmp_path, cache):
    shard = write_shard(tmp_path / "out")
    shards, index = Shards(tmp_path / "out"), Index.path_for(tmp_path / "out" / shard.name)
    sound = index.read_bytes()
    for at in (0, 8, 16, 24, 32, 36):
        flip(index, at)
        with pytest.raises(CorruptIndexError, match=r"\nhint: delete it"):
            find_local(shards, shard)
        index.write_bytes(sound)
    for size in (0, 39, len(sound) - 1):
        index.write_bytes(sound[:size])
        with pytest.raises(CorruptIndexError):
            find_local(shards, shard)
    offsets = Index.from_bytes(sound).offsets
    Index(offsets, shard.bytes + 1).save(index)
    with pytest.raises(CorruptIndexError, match="expected an index of .* bytes"):
        find_local(shards, shard)
    Index(offsets[:-1], shard.bytes).save(index)
    with pytest.raises(CorruptIndexError, match="expected 500 records, .* an index of 499"):
        find_local(shards, shard)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_another_number_of_records_is_told(tmp_path, cache, compression):
    shard = write_shard(tmp_path / "out", has_index=False, compression=compression)
    shard = replace(shard, records=499)
    shards = Shards(tmp_path / "out", "tfds")
    with pytest.raises(CorruptRecordError, match="expected 499 records, .* got 500"):
        find_local(shards, shard)
    assert names_in(cache) == []
    local = find_local(shards, shard, skips_damage=True)
    assert payloads_of(local) == list(RecordFile(tmp_path / "out" / shard.name))[:499]


# Compressed shards.
@pytest.mark.parametrize("compression", ["gzip", "zlib"])
@pytest.mark.parametrize("skips_damage", [False, True])
def test_a_compressed_shard_is_inflated_once(
    tmp_path, cache, monkeypatch, compression, skips_damage
):
    monkeypatch.setattr(module, "COPIED_RECORDS", 7)
    shard = write_shard(tmp_path / "out", compression=compression)
    before = names_in(tmp_path / "out")
    shards = Shards(tmp_path / "out")
    local = find_local(shards, shard, skips_damage=skips_damage)
    assert payloads_of(local) == list(RecordFile(tmp_path / "out" / shard.name))
    assert RecordFile(local.path).compression is None
    assert local.path.parent == cache
    assert names_in(cache) == sorted([local.path.name, local.index.name])
    assert names_in(tmp_path / "out") == before
    monkeypatch.delattr(RecordFile, "chunks")  # nobody reads it again
    again = find_local(shards, shard, skips_damage=skips_damage)
    assert (again.path, again.index) == (local.path, local.index)


def test_a_copy_that_is_damaged_in_size_or_index_is_made_anew(tmp_path, cache):
    shard = write_shard(tmp_path / "out", compression="gzip")
    shards = Shards(tmp_path / "out")
    local = find_local(shards, shard)
    expected = payloads_of(local)
    local.path.write_bytes(b"short")
    assert payloads_of(find_local(shards, shard)) == expected
    flip(local.index, 100)
    assert payloads_of(find_local(shards, shard)) == expected
    local.path.unlink()
    assert payloads_of(find_local(shards, shard)) == expected


def test_an_empty_compressed_shard_has_no_records(tmp_path, cache):
    written = write_dataset(tmp_path / "out", {"train": [[]]}, compression="gzip")
    local = find_local(Shards(tmp_path / "out"), written.splits["train"].shards[0])
    assert payloads_of(local) == []


def test_a_damaged_compressed_stream_is_told_and_leaves_nothing(tmp_path, cache):
    shard = write_shard(tmp_path / "out", compression="gzip")
    flip(tmp_path / "out" / shard.name, shard.bytes // 2, 50)
    with pytest.raises(CorruptRecordError, match="the gzip stream is damaged"):
        find_local(Shards(tmp_path / "out"), shard)
    assert names_in(cache) == []


def test_threads_may_ask_for_one_shard_at_once(tmp_path, cache):
    shard = write_shard(tmp_path / "out", compression="gzip")
    shards = Shards(tmp_path / "out")
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(find_local(shards, shard))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({local.path for local in found}) == 1
    assert len(payloads_of(found[0])) == 500
    assert len(names_in(cache)) == 2


# Damage that is to be skipped.
def graph_finds(shards, shard):
    """How many records TensorFlow's reader is left with."""
    split = Split("train", NUMBERED, shards, [ShardRange(shard, 0, shard.records)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sum(stretch.records for stretch in find_sound_stretches(split))


SPOILS = {
    "cut": lambda data: data[:-100],
    "halved": lambda data: data[: len(data) // 2],
    "spot": lambda data: data[: len(data) // 2] + bytes(40) + data[len(data) // 2 + 40 :],
    "gap": lambda data: data[: len(data) // 2] + bytes(300) + data[len(data) // 2 + 300 :],
    "inserted": lambda data: data[: len(data) // 2] + b"inserted" + data[len(data) // 2 :],
    "start": lambda data: bytes(200) + data[200:],
    "nothing": lambda data: bytes(len(data)),
    "empty": lambda data: b"",
    "longer": lambda data: data + data[:100],
}


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_sound_records_are_found_as_many_as_the_graph_finds(tmp_path, cache, compression, spoil):
    shard = write_shard(tmp_path / "out", has_index=False, compression=compression)
    path = tmp_path / "out" / shard.name
    expected = list(RecordFile(path))
    path.write_bytes(spoil(path.read_bytes()))
    shards = Shards(tmp_path / "out")
    found = payloads_of(find_local(shards, shard, skips_damage=True))
    assert len(found) <= 500  # those after the last one that was found are lost
    sound = [payload for payload in found if payload is not None]
    assert len(sound) == graph_finds(shards, shard)
    assert sound == [payload for payload in expected if payload in set(sound)]


@pytest.mark.parametrize("has_index", [False, True])
@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_as_many_records_are_read_as_the_graph_finds(
    tmp_path, cache, has_index, compression, spoil
):
    shard = write_shard(tmp_path / "out", has_index=has_index, compression=compression)
    path = tmp_path / "out" / shard.name
    path.write_bytes(spoil(path.read_bytes()))
    shards = Shards(tmp_path / "out")
    parts = [(shards, ShardRange(shard, 0, shard.records))]
    reader = NumberedRecords(parts, Parser(NUMBERED), threads=0, on_error="skip")
    taken = reader.take(reader.submit(range(500)))
    assert len(taken.columns["x"]) == graph_finds(shards, shard)
    assert len(taken.columns["x"]) + len(taken.damage) == 500


def test_lost_records_are_told_by_their_numbers(tmp_path, cache):
    shard = write_shard(tmp_path / "out", has_index=False)
    path = tmp_path / "out" / shard.name
    expected = list(RecordFile(path))
    offsets = RecordFile(path).index.offsets
    flip(path, int(offsets[7]))  # a length
    flip(path, int(offsets[20]) + 14)  # a payload
    found = payloads_of(find_local(Shards(tmp_path / "out"), shard, skips_damage=True))
    assert [number for number, payload in enumerate(found) if payload is None] == [7, 20]
    assert all(a == b for a, b in zip(found, expected, strict=True) if a is not None)


def test_a_sound_index_tells_the_numbers_though_headers_are_damaged(tmp_path, cache):
    shard = write_shard(tmp_path / "out")
    path = tmp_path / "out" / shard.name
    flip(path, 100, 300)
    local = find_local(Shards(tmp_path / "out"), shard, skips_damage=True)
    assert (local.index, local.offsets) == (Index.path_for(path), None)


@pytest.mark.parametrize("at", [0, 100])
def test_a_damaged_index_is_done_without_where_damage_is_skipped(tmp_path, cache, at):
    shard = write_shard(tmp_path / "out")
    path = tmp_path / "out" / shard.name
    flip(Index.path_for(path), at)
    local = find_local(Shards(tmp_path / "out"), shard, skips_damage=True)
    assert local.index is None
    assert payloads_of(local) == list(RecordFile(path, use_index=False))


def test_the_copy_of_a_damaged_shard_is_made_once_a_process(tmp_path, cache, monkeypatch):
    shard = write_shard(tmp_path / "out", compression="gzip")
    path = tmp_path / "out" / shard.name
    path.write_bytes(path.read_bytes()[:-20])
    shards = Shards(tmp_path / "out")
    local = find_local(shards, shard, skips_damage=True)
    assert np.count_nonzero(local.offsets < 0) < 500
    assert names_in(cache) == []
    assert find_local(shards, shard, skips_damage=True) is local
    local.path.unlink()
    assert payloads_of(find_local(shards, shard, skips_damage=True))


def test_an_index_of_ours_beside_files_of_others_is_used(tmp_path, cache):
    shard = write_shard(tmp_path / "out")
    path = tmp_path / "out" / shard.name
    shards = Shards(tmp_path / "out", "tfrecord files")
    assert find_local(shards, shard).index == Index.path_for(path)


def test_an_index_beside_files_of_others_is_not_believed_if_it_is_older_or_another(tmp_path, cache):
    shard = write_shard(tmp_path / "out")
    path = tmp_path / "out" / shard.name
    shards, index = Shards(tmp_path / "out", "tfrecord files"), Index.path_for(path)
    sound = index.read_bytes()
    os.utime(index, ns=(0, path.stat().st_mtime_ns - 1))
    assert find_local(shards, shard).index.parent == cache
    for content in (sound[:-1], Index(np.array([0]), shard.bytes).to_bytes(), b""):
        index.write_bytes(content)
        assert find_local(shards, shard).index.parent == cache


def test_an_index_beside_another_file_of_the_same_size_and_time_is_not_believed(tmp_path, cache):
    rows = [{"x": 1, "text": "a" * length} for length in (3, 5, 4)]
    first = write_dataset(tmp_path / "out", {"train": [rows]}).splits["train"].shards[0]
    write_dataset(tmp_path / "other", {"train": [rows[::-1]]})
    path, other = (tmp_path / name / first.name for name in ("out", "other"))
    status = path.stat()
    other.replace(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    local = find_local(Shards(tmp_path / "out", "tfrecord files"), first)
    assert local.index.parent == cache
    with RecordFile(path, use_index=False) as file:
        assert payloads_of(local) == [bytes(one) for chunk in file.chunks() for one in chunk]


@pytest.mark.parametrize("suffix", [".tfrecord", ".tfrecord.gz"])
def test_records_by_number_are_those_of_the_file_that_is_there(tmp_path, cache, suffix):
    folder, path = tmp_path / "in", tmp_path / "in" / f"train{suffix}"
    folder.mkdir()
    compression = "gzip" if suffix.endswith(".gz") else None
    for first in (0, 9):  # digits of one length; packed as they are, streams have one size
        other = tmp_path / "other"
        with RecordWriter(other, compression=compression) as writer:
            writer.write_framed(encode([{"x": 1, "text": f"text {first}"}], NUMBERED))
        os.utime(other, ns=(7, 7))
        assert not path.exists() or path.stat().st_size == other.stat().st_size
        other.replace(path)
        split = datum.load(folder)["train"]
        assert split[0]["text"] == next(row["text"] for row in split) == f"text {first}"


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_what_is_sound_of_a_shard_known_to_be_damaged_is_found(tmp_path, cache, compression):
    path = tmp_path / "a.tfrecord"
    with RecordWriter(path, compression=compression) as writer:
        for n in range(200):
            writer.write(b"%d" % n)
    data = path.read_bytes()
    path.write_bytes(data[:-30])
    sound = list(RecordFile(path, recovery="skip"))
    del sound[6], sound[0]
    shard = ShardInfo(path.name, len(sound), len(data) - 30, None, compression)
    shards = Shards(tmp_path, "tfrecord files", {path.name: (0, 6)})
    for skips_damage in (False, True):
        assert payloads_of(find_local(shards, shard, skips_damage=skips_damage)) == sound


SHARD = ShardInfo("shard", 1, 3, None)


def write(target):
    target.write(b"abc")


def test_the_cache_directory_is_told_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DATUM_CACHE", "~/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("DATUM_CACHE")
    assert cache_folder() == Path("/xdg/datum")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache_folder() == tmp_path / ".cache" / "datum"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "datum"


def test_who_has_no_home_keeps_files_for_now(monkeypatch):
    monkeypatch.delenv("DATUM_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def find_no_home(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", find_no_home)
    assert cache_folder() is None
    path = keep("a", write)
    assert path in places("a")
    assert path.read_bytes() == b"abc"


def test_a_file_is_kept_whole_and_under_its_name_alone(cache):
    assert keep("a", write) == cache / "a" == places("a")[0]
    assert keep("a", write).read_bytes() == b"abc"
    assert list(cache.iterdir()) == [cache / "a"]


def test_what_fails_leaves_nothing(cache):
    def fail(target):
        target.write(b"half")
        raise ValueError("cut short")

    with pytest.raises(ValueError, match="cut short"):
        keep("a", fail)
    assert list(cache.iterdir()) == []


def test_where_nothing_can_be_written_files_are_kept_for_now(cache):
    cache.write_text("a file where the folder should be")
    path = keep("a", write)
    assert path.read_bytes() == b"abc"
    assert path.parent != cache
    assert path in places("a")
    assert cache.read_text() == "a file where the folder should be"


@pytest.mark.parametrize("make", [keep, keep_for_process])
def test_a_full_disk_is_told_with_what_to_do(cache, monkeypatch, make):
    def find_full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(local.os, "fsync", find_full)
    with pytest.raises(WriteError, match=r"No space left on device\nhint: set DATUM_CACHE"):
        make("a", write)
    assert not cache.exists() or list(cache.iterdir()) == []


def test_a_shard_that_changed_has_another_name(tmp_path):
    path, link = tmp_path / "shard", tmp_path / "link"
    path.write_bytes(b"abc")
    link.symlink_to(path)
    name = name_for(path, SHARD)
    assert name == name_for(path, SHARD) == name_for(link, SHARD)
    os.utime(path, ns=(5, 5))
    assert name_for(path, SHARD) != name
    os.utime(path, ns=(7, 7))
    later = name_for(path, SHARD)
    path.write_bytes(b"abcd")
    os.utime(path, ns=(7, 7))
    assert name_for(path, SHARD) != later


def test_a_shard_replaced_at_the_same_size_and_time_has_another_name(tmp_path):
    path, other = tmp_path / "shard", tmp_path / "other"
    for one, content in ((path, b"abc"), (other, b"xyz")):
        one.write_bytes(content)
        os.utime(one, ns=(7, 7))
    name = name_for(path, SHARD)
    other.replace(path)
    assert name_for(path, SHARD) != name


def test_what_was_made_of_a_file_that_changed_meanwhile_is_refused(tmp_path):
    path = tmp_path / "shard"
    path.write_bytes(b"abc")
    name = name_for(path, SHARD)
    check_unchanged(path, SHARD, name)
    path.write_bytes(b"xyz")
    with pytest.raises(CorruptRecordError, match="shard: the file was changed while it was read"):
        check_unchanged(path, SHARD, name)


RUN = """
import multiprocessing, sys
from datum._read.local import keep_for_process

def make(name):
    return print(keep_for_process(name, lambda target: target.write(b"abc")), flush=True)

if __name__ == "__main__":
    make("parent")
    worker = multiprocessing.get_context(sys.argv[1]).Process(target=make, args=("worker",))
    worker.start()
    worker.join()
    make("again")
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_is_kept_for_now_goes_with_its_process(tmp_path, method):
    script = tmp_path / "run.py"
    script.write_text(RUN)
    command = [sys.executable, script, method]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    parent, worker, again = map(Path, ran.stdout.split())
    assert parent.parent == again.parent != worker.parent
    assert not parent.parent.exists()
    assert not worker.parent.exists()


KILLED = """
import os, signal
from datum._read.local import keep, keep_for_process

def fill(target):
    target.write(b"half")
    target.flush()
    os.kill(os.getpid(), signal.SIGKILL)

keep_for_process("whole", lambda target: target.write(b"abc"))
keep("a", fill)
"""


def test_what_killed_processes_left_is_removed_by_the_next(cache, tmp_path):
    for _ in range(2):
        environment = {**os.environ, "DATUM_CACHE": str(cache), "TMPDIR": str(tmp_path)}
        ran = subprocess.run([sys.executable, "-c", KILLED], check=False, env=environment)
        assert ran.returncode < 0
        assert len(list(cache.iterdir())) == 1
        assert len(list(tmp_path.glob("datum-cache-*"))) == 1
    keep("b", write)
    assert [path.name for path in cache.iterdir()] == ["b"]


def write_sound(path, compression=None):
    """Records 0 to 9, of which 3 is damaged, and half of another one."""
    with RecordWriter(path, compression=compression) as writer:
        for n in range(10):
            writer.write(b"%d" % n)
    if compression is None:
        data = bytearray(path.read_bytes())
        data[3 * 17 + 12] ^= 1
        path.write_bytes(bytes(data) + frame([b"torn"]).to_bytes()[:9])


def test_what_is_sound_is_numbered_without_gaps(tmp_path):
    write_sound(tmp_path / "a")
    file = SoundFile(tmp_path / "a")
    assert list(file) == [b"0", b"1", b"2", b"4", b"5", b"6", b"7", b"8", b"9"]
    assert [(one.record, one.kind) for one in file.damage] == [
        (3, "payload checksum"),
        (10, "torn header"),
    ]
    assert len(file) == 9
    assert file[[0, 3, -1]] == [b"0", b"4", b"9"]
    numbers = [n for chunk in file.chunks(2) for n in chunk.numbers.tolist()]
    assert numbers == list(range(9))


def test_records_are_left_out_by_the_numbers_they_had(tmp_path):
    write_sound(tmp_path / "a")
    file = SoundFile(tmp_path / "a", left_out=[9, 0, 4])
    assert list(file) == [b"1", b"2", b"5", b"6", b"7", b"8"]
    assert file[2] == b"5"
    assert file.records([2]).locate(0)[2] == 5 * 17


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_a_compressed_file_is_read_likewise(tmp_path, compression):
    write_sound(tmp_path / "a", compression)
    file = SoundFile(tmp_path / "a", left_out=[1])
    assert b"".join(file) == b"023456789"
    assert [len(records) for records in file.chunks(3)] == [2, 3, 3, 1]


def test_gaps_cannot_be_indexed(tmp_path):
    write_sound(tmp_path / "a")
    with pytest.raises(CorruptRecordError, match="without gaps"):
        SoundFile(tmp_path / "a").index  # noqa: B018 - it is made when asked for
