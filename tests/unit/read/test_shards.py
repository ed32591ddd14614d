import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest

import datum
from datum._read import shards as module
from datum._read.shards import Shards
from datum.errors import CorruptIndexError, CorruptRecordError, ManifestError
from datum.format import Index, ShardInfo, frame
from tests.unit.read.written import numbered, write_dataset, write_numbered


def test_an_open_shard_is_opened_once(tmp_path):
    shard = write_numbered(tmp_path).splits["train"].shards[0]
    shards = Shards(tmp_path)
    assert shards.open_indexed(shard) is shards.open_indexed(shard)
    assert shards.open(shard) is not shards.open(shard)


def test_only_the_last_ones_stay_open(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_OPEN_SHARDS", 2)
    parts = [numbered(x) for x in range(4)]
    infos = write_dataset(tmp_path, {"train": parts}).splits["train"].shards
    shards = Shards(tmp_path)
    first = shards.open_indexed(infos[0])
    shards.open_indexed(infos[1])
    assert shards.open_indexed(infos[0]) is first
    shards.open_indexed(infos[2])
    assert list(shards._open) == [infos[0].name, infos[2].name]
    assert first[0]


def test_a_missing_shard_is_named(tmp_path):
    shard = write_numbered(tmp_path).splits["val"].shards[0]
    (tmp_path / shard.name).unlink()
    with pytest.raises(ManifestError, match=r"val-00000-of-00001\.tfrecord: .*no such file"):
        Shards(tmp_path).open(shard)


def test_a_shard_of_another_size_is_refused_naming_both(tmp_path):
    shard = write_numbered(tmp_path).splits["val"].shards[0]
    path = tmp_path / shard.name
    data = path.read_bytes()
    for changed in (data[:-1], data[: len(data) // 3], data + data, b""):
        path.write_bytes(changed)
        problem = f"expected {len(data)} bytes, as the manifest says, got {len(changed)}"
        for open_shard in (Shards(tmp_path).open, Shards(tmp_path).open_indexed):
            with pytest.raises(CorruptRecordError, match=problem):
                open_shard(shard)


def test_a_shard_that_is_compressed_otherwise_is_refused(tmp_path):
    shard = write_numbered(tmp_path, compression="gzip").splits["val"].shards[0]
    with pytest.raises(CorruptRecordError, match="expected compression None, .* got gzip"):
        Shards(tmp_path).open(replace(shard, compression=None))


def test_an_empty_shard_may_stand_among_compressed_ones(tmp_path):
    (tmp_path / "empty").touch()
    shard = ShardInfo("empty", 0, 0, None, "gzip")
    assert list(Shards(tmp_path, "tfrecord files").open(shard)) == []


def test_only_a_published_dataset_is_held_against_its_manifest(tmp_path):
    shard = write_numbered(tmp_path).splits["val"].shards[0]
    (tmp_path / "datum.json").unlink()
    assert len(list(Shards(tmp_path, "tfrecord files").open(shard))) == 3
    with pytest.raises(ManifestError, match="was replaced since it was loaded"):
        Shards(tmp_path).open(shard)


def test_a_shard_may_have_an_absolute_name(tmp_path):
    shard = write_numbered(tmp_path / "out").splits["val"].shards[0]
    shard = replace(shard, name=str(tmp_path / "out" / shard.name))
    assert len(Shards(tmp_path / "elsewhere", "tfds").open_indexed(shard)) == 3


def test_who_said_what_a_shard_holds_is_told(tmp_path):
    shard = write_numbered(tmp_path).splits["val"].shards[0]
    with pytest.raises(CorruptRecordError, match="as dataset_info.json says"):
        Shards(tmp_path, "tfds").open(replace(shard, bytes=1))
    with pytest.raises(
        CorruptRecordError, match="expected 2 records, as when it was loaded, got 3"
    ):
        Shards(tmp_path, "older datum").open_indexed(replace(shard, records=2))


def test_an_index_beside_the_records_of_others_is_not_theirs(tmp_path):
    shard = write_numbered(tmp_path, has_index=False).splits["val"].shards[0]
    (tmp_path / "index").mkdir()
    Index.path_for(tmp_path / shard.name).write_text("0 17")
    assert len(Shards(tmp_path, "tfrecord files").open_indexed(shard)) == 3
    with pytest.raises(CorruptIndexError):
        Shards(tmp_path).open_indexed(shard)


def test_compressed_shards_cannot_be_read_at_random(tmp_path):
    shard = write_numbered(tmp_path, compression="zlib").splits["val"].shards[0]
    with pytest.raises(ValueError, match="got zlib\nhint: iterate"):
        Shards(tmp_path).open_indexed(shard)


def test_an_index_of_another_count_is_refused(tmp_path):
    shard = write_numbered(tmp_path).splits["val"].shards[0]
    index = frame([bytes(shard.bytes - 16)]).index
    index.save(Index.path_for(tmp_path / shard.name))
    with pytest.raises(CorruptIndexError, match="expected 3 records, .* got an index of 1"):
        Shards(tmp_path).open_indexed(shard)


def test_open_files_stay_with_their_process(tmp_path):
    shard = write_numbered(tmp_path).splits["val"].shards[0]
    shards = Shards(tmp_path)
    shards.open_indexed(shard)
    copy = pickle.loads(pickle.dumps(shards))
    assert (copy.folder, copy.writer, len(copy._open)) == (tmp_path, "datum", 0)


def test_threads_may_share_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_OPEN_SHARDS", 2)
    parts = [numbered(x) for x in range(8)]
    infos = write_dataset(tmp_path, {"train": parts}).splits["train"].shards
    shards = Shards(tmp_path)
    sizes = []

    def read():
        for _ in range(20):
            sizes.extend(len(shards.open_indexed(info)[0]) for info in infos)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sizes) == 4 * 20 * 8


def test_a_dataset_that_was_replaced_since_it_was_loaded_is_refused(tmp_path):
    source = {"x": np.arange(10)}
    datum.write(source, tmp_path / "out", progress=False)
    loaded, opened = datum.load(tmp_path / "out"), datum.load(tmp_path / "out")
    assert sorted(row["x"] for row in opened["train"]) == list(range(10))
    datum.write(source, tmp_path / "out", append=True, progress=False)
    assert len(list(loaded["train"])) == 10  # what was loaded is still there
    datum.write({"x": np.arange(10, 20)}, tmp_path / "out", overwrite=True, progress=False)
    for ds in (loaded, opened):
        with pytest.raises(ManifestError, match=r"was replaced since it was loaded\nhint: load it"):
            list(ds["train"])


def test_a_shard_with_damage_is_read_around_it_where_that_was_agreed(tmp_path):
    path = tmp_path / "a.tfrecord"
    data = bytearray(frame([b"0", b"1", b"2", b"3"]).to_bytes())
    data[12] ^= 1
    path.write_bytes(data)
    shard = ShardInfo(path.name, 2, len(data), None)
    shards = Shards(tmp_path, "tfrecord files", {path.name: (2,)})
    for opener in (shards, pickle.loads(pickle.dumps(shards))):
        assert list(opener.open(shard)) == [b"1", b"3"]
        assert list(opener.open_around(shard)) == [b"1", b"3"]
        assert opener.open_indexed(shard)[1] == b"3"
    strict = Shards(tmp_path, "tfrecord files")
    with pytest.raises(CorruptRecordError):
        list(strict.open(shard))
    around = strict.open_around(shard)
    assert [n for chunk in around.chunks() for n in chunk.numbers.tolist()] == [1, 2, 3]
