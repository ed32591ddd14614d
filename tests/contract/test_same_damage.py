"""A damaged dataset: every framework leaves out the same records, and tells the same of them."""

import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import datum
from datum import CorruptRecordError
from datum._load.options import LoadOptions
from datum._load.stream import make_order
from datum.format import RecordFile

pytest.importorskip("jax")
tf = pytest.importorskip("tensorflow")
pytest.importorskip("torch")

RECORDS, SHARDS = 100, 4
LOADERS = ["numpy", "torch", "jax"]
ENGINES = ["native", "graph"]
SHUFFLES = [False, True, 32]

# Shard, record, and the byte of the record that is changed: 0-7 are its length, 8-11 the checksum
# of that, what follows its content.
FLIPS = [(0, 3, 20), (0, 24, 13), (1, 5, 1), (1, 9, 9), (3, 0, 30)]
LOST = {"own": {3, 24, 30, 34, 75}, "foreign": {3, 24, 30, 34, 75, *range(70, 75)}}
KINDS = {3: "payload checksum", 24: "payload checksum", 5: "length checksum", 9: "length checksum"}


def shards_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.tfrecord"))


def damage(folder: Path, offsets: list[list[int]]) -> None:
    for number, record, byte in FLIPS:
        path = shards_of(folder)[number]
        data = bytearray(path.read_bytes())
        data[offsets[number][record] + byte] ^= 4
        path.write_bytes(data)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """One of Datum, and plain files of others, one of them cut off within its 21st record."""
    folder = tmp_path_factory.mktemp("damage")
    rows = [{"id": i, "x": np.full(3, i, np.float32)} for i in range(RECORDS)]
    datum.write(rows, folder / "own", shuffle=False, shards=SHARDS, progress=False)
    (folder / "foreign").mkdir()
    for path in shards_of(folder / "own"):
        shutil.copy(path, folder / "foreign")
    found = {name: datum.load(folder / name) for name in ("own", "foreign")}
    offsets = [RecordFile(path).index.offsets.tolist() for path in shards_of(folder / "own")]
    for name in found:
        damage(folder / name, offsets)
    cut = shards_of(folder / "foreign")[2]
    cut.write_bytes(cut.read_bytes()[: offsets[2][20] + 7])
    return found


def sound_ids(name: str, shuffle) -> list[int]:
    """In the order of the whole dataset, without those that are lost."""
    order = make_order(RECORDS, LoadOptions(shuffle=shuffle, seed=3))
    numbers = order.numbers(0, np.arange(RECORDS)).tolist()
    return [number for number in numbers if number not in LOST[name]]


def read_with_tf(ds, **options) -> tuple[list[int], str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        batches = list(ds.to_tf("train", batch_size=7, seed=3, **options))
    told = [str(one.message) for one in caught if "lost to damage" in str(one.message)]
    return [int(i) for batch in batches for i in batch["id"]], "\n".join(told)


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("framework", LOADERS)
def test_loaders_skip_the_same_records_and_count_them(datasets, framework, shuffle, name):
    ds, lost = datasets[name], LOST[name]
    load = getattr(ds, f"to_{framework}")
    for threads in (1, 3):
        loader = load(batch_size=7, seed=3, shuffle=shuffle, threads=threads, on_error="skip")
        ids = [i for batch in loader for i in batch["id"].tolist()]
        assert ids == sound_ids(name, shuffle)
        assert (loader.report.records, loader.report.skipped) == (RECORDS - len(lost), len(lost))
        assert len(loader.report.damage) == len(lost)
        assert {Path(one.file).name for one in loader.report.damage} == {
            f"train-{number // 25:05}-of-00004.tfrecord" for number in lost
        }


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_the_native_engine_of_tensorflow_skips_the_same(datasets, shuffle, name):
    ids, told = read_with_tf(datasets[name], shuffle=shuffle, on_error="skip", engine="native")
    assert ids == sound_ids(name, shuffle)
    assert f"{len(LOST[name])} records of {RECORDS} lost" in told


@pytest.mark.parametrize("name", LOST)
def test_the_graph_of_tensorflow_skips_the_same(datasets, name):
    ids, told = read_with_tf(datasets[name], on_error="skip", engine="graph")
    assert ids == sound_ids(name, False)
    assert f"{len(LOST[name])} records of {RECORDS} lost" in told


@pytest.mark.parametrize("name", LOST)
def test_all_tell_the_same_places(datasets, name):
    _, told = read_with_tf(datasets[name], on_error="skip", engine="native")
    listed = {line.strip() for line in told.splitlines()[1:] if "more" not in line}
    for framework in LOADERS:
        loader = getattr(datasets[name], f"to_{framework}")(on_error="skip")
        list(loader)
        places = {str(one) for one in loader.report.damage}
        assert listed <= places
        assert {one.record: one.kind for one in loader.report.damage}.items() >= KINDS.items()


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("framework", LOADERS)
def test_otherwise_the_first_is_an_error_that_names_file_record_and_byte(datasets, framework, name):
    loader = getattr(datasets[name], f"to_{framework}")(batch_size=7)
    with pytest.raises(CorruptRecordError) as caught:
        list(loader)
    found = caught.value.damage
    where = f"{found.file}: record {found.record} at byte {found.offset}: "
    assert str(caught.value).startswith(where)
    assert (Path(found.file).name, found.record) == ("train-00000-of-00004.tfrecord", 3)


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("engine", ENGINES)
def test_tensorflow_tells_it_in_its_own_error(datasets, engine, name):
    with pytest.raises((CorruptRecordError, tf.errors.OpError)) as caught:
        list(datasets[name].to_tf("train", batch_size=7, engine=engine))
    assert re.search(
        r"\.tfrecord: record \d+ at byte \d+: expected an intact record", str(caught.value)
    )
