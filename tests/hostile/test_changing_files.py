"""Files that are cut, rewritten, appended to or replaced while somebody reads them."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import datum
from datum import _core
from datum.errors import CorruptRecordError, DatumError
from datum.format import Index, Parser, RecordFile

RECORDS = 40_000
BATCH = 500
OTHER = "other.tfrecord"  # the shard of the other version
OLD, NEW = 1_000_000, 2_000_000  # what `x` starts from in each version: records of one size


def write_version(path, first, *, shards=1):
    x = np.arange(first, first + RECORDS)
    rows = {"x": x, "text": [f"record {number}" for number in x.tolist()]}
    datum.write(rows, path, shuffle=False, shards=shards, progress=False)


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("versions")
    write_version(folder / "old", OLD)
    write_version(folder / "new", NEW)
    return folder


@pytest.fixture
def dataset(tmp_path, versions):
    shutil.copytree(versions / "old", tmp_path / "data")
    shutil.copy(shard_of(versions / "new"), tmp_path / OTHER)
    return tmp_path / "data"


def shard_of(dataset):
    return next(dataset.glob("*.tfrecord"))


# What happens to a shard. All but the last two leave the file, and change its bytes.


def cut_in_half(path):
    os.truncate(path, path.stat().st_size // 2 + 1234)


def cut_to_nothing(path):
    os.truncate(path, 0)


def write_zeros(path):
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))


def write_sound_records(path):
    """Those of another version, of the same size: every CRC is right."""
    data = (path.parent.parent / OTHER).read_bytes()
    with path.open("r+b") as file:
        assert len(data) == path.stat().st_size
        file.write(data)


def write_sound_records_and_restore_times(path):
    times = path.stat()
    write_sound_records(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def append(path):
    with path.open("ab") as file:
        file.write(path.read_bytes()[:10_000])


def replace_by_another(path):
    (path.parent.parent / OTHER).replace(path)


def delete(path):
    path.unlink()


CHANGES = [cut_in_half, cut_to_nothing, write_zeros, write_sound_records, append]
CHANGES += [write_sound_records_and_restore_times, replace_by_another, delete]


# Who reads. Each gives pairs of numbers and texts, as they come.


def iterate(dataset):
    for record in datum.load(dataset)["train"]:
        yield [record["x"]], [record["text"]]


def take_batches(dataset):
    for batch in datum.load(dataset)["train"].batches(BATCH):
        yield batch["x"], batch["text"].to_list()


def take_batches_of_a_part(dataset):
    for batch in datum.load(dataset)["train[100:]"].batches(BATCH, threads=1):
        yield batch["x"], batch["text"].to_list()


def read_by_number(dataset):
    split = datum.load(dataset)["train"]
    order = np.random.default_rng(0).permutation(len(split))
    for start in range(0, len(order), BATCH):
        batch = split.read(order[start : start + BATCH])
        yield batch["x"], batch["text"].to_list()


def load_in_order(dataset):
    for batch in datum.load(dataset).to_numpy(batch_size=BATCH):
        yield batch["x"], list(batch["text"])


def load_shuffled(dataset):
    for batch in datum.load(dataset).to_numpy(batch_size=BATCH, shuffle=True):
        yield batch["x"], list(batch["text"])


def copy_stored(dataset):
    part = datum.load(dataset)["train"].parts()["train"]
    parser = datum.format.Parser(part.schema)
    for start in range(0, RECORDS, BATCH):
        stored = part.read(np.arange(start, start + BATCH)).data
        payloads = list(RecordFile(bytes(stored.frames)))
        batch = datum.format.parse(payloads, parser.schema)
        yield batch["x"], batch["text"].to_list()


def read_file(dataset):
    schema = datum.load(dataset).schema
    for records in RecordFile(shard_of(dataset)).chunks(BATCH):
        batch = datum.format.parse(records, schema)
        yield batch["x"], batch["text"].to_list()


def read_file_by_number(dataset):
    schema = datum.load(dataset).schema
    file = RecordFile(shard_of(dataset))
    for start in range(0, RECORDS, BATCH):
        batch = datum.format.parse(file.records(np.arange(start, start + BATCH)), schema)
        yield batch["x"], batch["text"].to_list()


READERS = [iterate, take_batches, take_batches_of_a_part, read_by_number, load_in_order]
READERS += [load_shuffled, copy_stored, read_file, read_file_by_number]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("read", READERS)
def test_a_reader_gives_what_it_opened_or_a_typed_error(dataset, read, change):
    pairs = read(dataset)
    seen = [next(pairs)]
    change(shard_of(dataset))
    try:
        seen += pairs
    except DatumError as error:
        assert str(dataset) in str(error)  # noqa: PT017 - either will do
    else:
        # Whoever has the file open need not notice that its name is gone.
        assert sum(len(x) for x, _ in seen) in (RECORDS, RECORDS - 100)
    known = set(range(OLD, OLD + RECORDS))
    for x, text in seen:
        assert known.issuperset(x)
        assert text == [f"record {number}" for number in x]


def link_elsewhere(path):
    os.link(path, path.parent.parent / "backup")


def link_and_unlink(path):
    link_elsewhere(path)
    (path.parent.parent / "backup").unlink()


def forbid_others(path):
    path.chmod(0o600)


def restore_times(path):
    times = path.stat()
    os.utime(path, ns=(0, times.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [link_elsewhere, link_and_unlink, forbid_others, restore_times],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("read", READERS[:6], ids=lambda f: f.__name__)
def test_new_links_rights_and_times_of_a_shard_do_no_harm(dataset, read, change):
    pairs = read(dataset)
    seen = [next(pairs)]
    change(shard_of(dataset))
    seen += pairs
    assert sum(len(x) for x, _ in seen) in (RECORDS, RECORDS - 100)


def forget_description(dataset):
    """Leave only the records, as others write them."""
    (dataset / "datum.json").unlink()
    shutil.rmtree(dataset / "index")


@pytest.mark.parametrize("change", [link_elsewhere, forbid_others], ids=lambda f: f.__name__)
def test_new_links_and_rights_of_a_file_of_others_do_no_harm(dataset, change):
    forget_description(dataset)
    path = shard_of(dataset)
    loader = datum.load(dataset).to_numpy("train", batch_size=BATCH)
    change(path)
    batches = iter(loader)
    seen = len(next(batches)["x"])
    path.chmod(0o640)
    assert seen + sum(len(batch["x"]) for batch in batches) == RECORDS


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_file_of_others_that_was_rewritten_after_it_was_loaded_is_refused(dataset, on_error):
    forget_description(dataset)
    loaded = datum.load(dataset, on_error=on_error)
    write_sound_records_and_restore_times(shard_of(dataset))
    with pytest.raises(CorruptRecordError, match="got another one of its name"):
        next(iter(loaded.to_numpy("train", batch_size=BATCH, on_error=on_error)))


@pytest.mark.parametrize("change", CHANGES[:5])
def test_strings_that_were_handed_out_stay_as_they_are(dataset, change):
    split = datum.load(dataset)["train"]
    batches = [split.read(np.arange(BATCH)), next(iter(split.batches(BATCH)))]
    records = next(RecordFile(shard_of(dataset)).chunks(BATCH))
    payloads = list(records)
    change(shard_of(dataset))
    for batch in batches:
        assert batch["text"].to_list() == [f"record {OLD + row}" for row in range(BATCH)]
    assert list(records) == payloads


@pytest.mark.parametrize("change", CHANGES[:4])
def test_verify_tells_what_happened_while_it_read(dataset, change):
    done = []

    def on_progress(*_):
        if not done:
            done.append(change(shard_of(dataset)))

    report = datum.load(dataset).verify(progress=on_progress)
    assert done
    assert report.problems


@pytest.mark.parametrize("change", [cut_in_half, cut_to_nothing, write_zeros])
def test_an_index_that_is_changed_is_no_crash(dataset, change):
    split = datum.load(dataset)["train"]
    split.read([0])
    change(Index.path_for(shard_of(dataset)))
    order = np.random.default_rng(0).permutation(RECORDS)
    with pytest.raises(DatumError, match="index"):
        split.read(order)


@pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="of systems that have this signal")
@pytest.mark.parametrize("order", ["before", "after"])
def test_other_handlers_of_bus_errors_still_hear_of_theirs(dataset, order):
    """faulthandler tells of a crash that is none of ours, and the process ends as it would."""
    lines = [f"split = datum.load({str(dataset)!r})['train']; split.read([0])"]
    lines.insert(0 if order == "before" else 1, "faulthandler.enable()")
    code = f"""
import datum, faulthandler, mmap, os, tempfile
{chr(10).join(lines)}
split.read(range(1000))
os.truncate({str(shard_of(dataset))!r}, 5000)
try:
    split.read(range(30_000))
except datum.CorruptRecordError as error:
    print("typed error", flush=True)
with tempfile.TemporaryFile() as file:
    file.write(bytes(10_000))
    file.flush()
    pages = mmap.mmap(file.fileno(), 0)
    file.truncate(0)
    file.flush()
    pages[9_000]
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout == "typed error\n"
    assert done.returncode == -signal.SIGBUS, done.stderr
    assert "Fatal Python error: Bus error" in done.stderr


def test_a_dataset_that_is_replaced_again_and_again_is_never_mixed(tmp_path):
    """Every epoch is of one version, or an error that says that there is another."""
    target = tmp_path / "data"
    write_version(target, OLD, shards=4)
    code = f"""
from tests.hostile.test_changing_files import *
for turn in range(12):
    first = (OLD, NEW)[turn % 2]
    x = np.arange(first, first + RECORDS)
    rows = {{"x": x, "text": [f"record {{number}}" for number in x.tolist()]}}
    datum.write(rows, {str(target)!r}, shuffle=False, shards=4, progress=False, overwrite=True)
"""
    writer = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    epochs = 0
    try:
        while writer.poll() is None:
            try:
                loader = datum.load(target).to_numpy(batch_size=BATCH, shuffle=True)
                found = np.concatenate([batch["x"] for batch in loader])
            except DatumError as error:
                assert "hint: load it again" in str(error)  # noqa: PT017 - either will do
                continue
            epochs += 1
            assert sorted(found) in (
                [*range(OLD, OLD + RECORDS)],
                [*range(NEW, NEW + RECORDS)],
            )
    finally:
        writer.wait()
    assert writer.returncode == 0
    assert epochs


def test_shards_of_two_splits_that_were_swapped_are_refused(tmp_path):
    x = np.arange(1000, 3000)
    splits = {"train": {"x": x}, "val": {"x": x + 5000}}
    datum.write(splits, tmp_path / "data", shuffle=False, progress=False)
    train, val = sorted((tmp_path / "data").glob("*.tfrecord"))
    assert train.stat().st_size == val.stat().st_size
    aside = tmp_path / "aside"
    train.rename(aside)
    val.rename(train)
    aside.rename(val)
    ds = datum.load(tmp_path / "data")
    with pytest.raises(DatumError, match="expected the shard"):
        ds["train"][0]
    with pytest.raises(DatumError, match="expected the shard"):
        next(iter(ds["val"]))
    with pytest.raises(DatumError, match="expected the shard"):
        next(iter(ds.to_numpy(batch_size=10)))


def test_any_number_of_shards_is_read_with_few_of_them_open(tmp_path):
    """A batch that touches more shards than may be in use at a time, and a set that closes most."""
    shards, records = 300, 1200  # too many bytes of each to be copied when it is opened
    x = np.arange(shards * records)
    datum.write({"x": x}, tmp_path / "data", shuffle=False, shards=shards, progress=False)
    split = datum.load(tmp_path / "data")["train"]
    order = np.random.default_rng(0).permutation(len(split))[:5000]
    before = count_maps()
    assert split.read(order)["x"].tolist() == order.tolist()
    ends = np.cumsum([0, *map(len, split.runs)])
    few = _core.ShardSet(ends, max_open=3)
    for place, run in enumerate(split.runs):
        path = tmp_path / "data" / run.shard.name
        version, index = _core.MappedFile(path).version, Index.path_for(path)
        few.open(place, path, version, index, 0, run.shard.records, run.shard.crc32c)
    assert count_maps() - before < 700  # two of each shard of the split, and few of the set
    loader = _core.BatchLoader(Parser(split.schema).plan, few, 2, False)
    columns, *_ = loader.take(loader.submit(order))
    assert columns[0][0].tolist() == order.tolist()


def test_a_shard_that_is_opened_again_has_to_be_the_same(dataset):
    split = datum.load(dataset)["train"]
    path = shard_of(dataset)
    shards = _core.ShardSet(np.array([0, RECORDS, RECORDS + 1]), max_open=1)
    version, index = _core.MappedFile(path).version, Index.path_for(path)
    for run in (0, 1):  # to open the second closes the first
        shards.open(run, path, version, index, 0, RECORDS)
    loader = _core.BatchLoader(Parser(split.schema).plan, shards, 0, False)
    replace_by_another(path)
    with pytest.raises(_core.Fault, match="not open"):
        loader.read(np.array([0]))
    assert shards.missing(np.array([0])) == [0]


def count_maps():
    maps = Path("/proc/self/maps")
    return len(maps.read_text().splitlines()) if maps.exists() else 0


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_file_of_others_that_was_replaced_after_it_was_loaded_is_refused(
    tmp_path, compression, shuffle
):
    folder = tmp_path / "bare"
    folder.mkdir()
    for number in (0, 1):
        with datum.format.RecordWriter(
            folder / f"train-{number}-of-2", compression=compression
        ) as writer:
            writer.write_framed(datum.format.frame(datum.format.encode([{"x": number}] * 50)))
    ds = datum.load(folder)
    with datum.format.RecordWriter(tmp_path / "new", compression=compression) as writer:
        writer.write_framed(datum.format.frame(datum.format.encode([{"x": 7}] * 50)))
    (tmp_path / "new").replace(folder / "train-1-of-2")
    message = "expected the file that was loaded, got another one of its name"
    with pytest.raises(CorruptRecordError, match=message):
        list(ds.to_numpy("train", batch_size=10, shuffle=shuffle))
    with pytest.raises(CorruptRecordError, match=message):
        list(ds["train"])
    assert sum(batch["x"].sum() for batch in datum.load(folder).to_numpy("train")) == 350


def gzip_members(*contents):
    """Stored, not compressed, so that contents of one size take one size."""
    return b"".join(gzip.compress(content, compresslevel=0, mtime=0) for content in contents)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_compressed_shard_is_checked_whole_when_it_is_inflated(tmp_path, on_error):
    old, new = ([{"x": first + i, "pad": b"p" * 90} for i in range(200)] for first in (1000, 2000))
    for name, rows in {"data": old, "other": new}.items():
        datum.write(rows, tmp_path / name, shuffle=False, progress=False)
    frames = {name: shard_of(tmp_path / name).read_bytes() for name in ("data", "other")}
    half = len(frames["data"]) // 2
    # The last 4 KiB, which are checked when the shard is opened, are the same in both.
    content = gzip_members(frames["data"][:half], frames["data"][half:])
    changed = gzip_members(frames["other"][:half], frames["data"][half:])
    assert len(content) == len(changed)
    shutil.rmtree(tmp_path / "data" / "index")
    shard = shard_of(tmp_path / "data")
    shard.write_bytes(content)
    manifest = json.loads((tmp_path / "data" / "datum.json").read_text())
    (described,) = manifest["splits"]["train"]["shards"]
    described |= {
        "bytes": len(content),
        "crc32c": f"{_core.crc32c(content):08x}",
        "tail_crc32c": f"{_core.crc32c(content[-4096:]):08x}",
    }
    manifest |= {"checksum": None, "compression": "gzip"}
    (tmp_path / "data" / "datum.json").write_text(json.dumps(manifest))
    x = np.concatenate([b["x"] for b in datum.load(tmp_path / "data").to_numpy(on_error=on_error)])
    assert x.tolist() == list(range(1000, 1200))

    shard.write_bytes(changed)
    with pytest.raises(CorruptRecordError, match="another file"):
        list(datum.load(tmp_path / "data").to_numpy(on_error=on_error))
