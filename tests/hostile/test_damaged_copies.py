"""Copies of sound files with one thing wrong: what is told of them, and what can still be read."""

import random
import shutil
import warnings

import pytest

import datum
from datum.format import Index, RecordFile, RecordWriter, encode
from datum.reader import verify

RECORDS = 40


def write(path, compression=None):
    """Records of many lengths, so that flips of lengths lead anywhere."""
    rows = [{"x": n, "text": "é" * (n * 7 % 50)} for n in range(RECORDS)]
    with RecordWriter(path, compression=compression) as writer:
        writer.write_framed(encode(rows))
    return writer.index


def flip(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def load_around(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return datum.load(path, on_error="skip")


def numbers(dataset):
    return [int(row["x"]) for row in dataset["train"]]


@pytest.mark.parametrize(
    ("place", "kind"),
    [(0, "length"), (8, "length"), (12, "payload"), (-1, "payload")],
    ids=["length", "its CRC", "payload", "its CRC as well"],
)
@pytest.mark.parametrize("record", [0, 17, RECORDS - 1])
def test_one_flipped_bit_costs_one_record(tmp_path, place, kind, record):
    path = tmp_path / "a.tfrecord"
    index = write(path)
    at = int(index.offsets[record]) + place
    if place < 0:
        at = [*index.offsets, index.stream_bytes][record + 1] + place
    data = path.read_bytes()
    for bit in range(8):
        path.write_bytes(flip(data, 8 * int(at) + bit))
        report = verify(path)
        (problem,) = report.problems
        assert problem.kind == f"{kind} checksum"
        assert (problem.record, problem.offset) == (record, int(index.offsets[record]))
        assert (report.records, report.lost) == (RECORDS - 1, 1)
        kept = [n for n in range(RECORDS) if n != record]
        assert numbers(load_around(path)) == kept


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_a_file_cut_anywhere_keeps_what_is_before(tmp_path, compression):
    path = tmp_path / "a.tfrecord"
    index = write(path, compression)
    data = path.read_bytes()
    ends = [*index.offsets[1:].tolist(), index.stream_bytes]
    for cut in random.Random(5).sample(range(1, len(data)), 40):
        path.write_bytes(data[:cut])
        try:
            report = verify(path)
        except datum.DatumError:  # no record is left
            assert compression or cut < ends[0]
            continue
        if compression is None and cut in (0, *ends):
            assert report.is_sound
            continue
        assert not report.is_sound
        kept = numbers(load_around(path))
        assert kept == list(range(len(kept)))
        assert len(kept) == report.records
        if compression is None:
            assert report.problems[0].offset == ([0, *ends][len(kept)])


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_zeros_in_the_place_of_the_end_are_told(tmp_path, compression):
    path = tmp_path / "a.tfrecord"
    write(path, compression)
    data = path.read_bytes()
    half = len(data) // 2
    path.write_bytes(data[:half] + bytes(len(data) - half))
    report = verify(path)
    assert not report.is_sound
    assert 0 < report.records < RECORDS
    assert numbers(load_around(path)) == list(range(report.records))


def test_zeros_after_the_end_are_told(tmp_path):
    path = tmp_path / "a.tfrecord"
    index = write(path)
    path.write_bytes(path.read_bytes() + bytes(4096))
    (problem,) = verify(path).problems
    assert (problem.record, problem.offset) == (RECORDS, index.stream_bytes)
    assert numbers(load_around(path)) == list(range(RECORDS))


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_random_damage_never_raises_and_never_hides(tmp_path, compression):
    path = tmp_path / "a.tfrecord"
    write(path, compression)
    data, chance = path.read_bytes(), random.Random(7)
    payloads = set(RecordFile(path))
    for _ in range(60):
        changed = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            start = chance.randrange(len(data))
            size = min(chance.choice([1, 4, 30]), len(data) - start)
            changed[start : start + size] = chance.randbytes(size)
        path.write_bytes(changed)
        try:
            report = verify(path)
        except datum.DatumError:  # nothing can be read
            continue
        if bytes(changed) == data:
            continue
        sound = list(RecordFile(path, recovery="skip"))
        assert report.records == len(sound)
        assert set(sound) <= payloads
        # What gzip does not check, as the time in its header, may change unseen.
        assert report.problems or len(sound) == RECORDS
        assert len(numbers(load_around(path))) == len(sound)


@pytest.fixture
def out(tmp_path):
    rows = ({"x": n, "text": "é" * (n % 9)} for n in range(90))
    datum.write(rows, tmp_path / "out", shards=3, shuffle=False, progress=False)
    return tmp_path / "out"


def shard(out, number):
    return out / f"train-0000{number}-of-00003.tfrecord"


def kinds(out):
    return [(one.shard[6:11], one.kind) for one in verify(out).problems]


def test_swapped_shards_are_told(out):
    shutil.move(shard(out, 0), out / "kept")
    shutil.move(shard(out, 1), shard(out, 0))
    shutil.move(out / "kept", shard(out, 1))
    found = kinds(out)
    assert {name for name, _ in found} == {"00000", "00001"}
    assert {kind for _, kind in found} <= {"size", "file checksum", "index", "record count"}


def test_a_deleted_index_is_no_damage(out):
    Index.path_for(shard(out, 1)).unlink()
    report = verify(out)
    assert report.is_sound
    assert "1 shard without an index" in report.notes[0]


def test_the_index_of_another_shard_is_told(out):
    shutil.copy(Index.path_for(shard(out, 0)), Index.path_for(shard(out, 1)))
    assert kinds(out) == [("00001", "index")]


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"records": 30', b'"records": 31'), (b"int64", b"int32"), (b"train", b"tra1n")],
)
def test_an_edited_manifest_is_told(out, old, new):
    manifest = out / "datum.json"
    data = manifest.read_bytes()
    assert old in data
    manifest.write_bytes(data.replace(old, new, 1))
    report = verify(out)
    assert [one.kind for one in report.problems] == ["manifest"]
    assert report.records == 90


def test_every_flipped_bit_of_a_manifest_is_told(out):
    manifest = out / "datum.json"
    data = manifest.read_bytes()
    for bit in random.Random(3).sample(range(8 * len(data)), 40):
        manifest.write_bytes(flip(data, bit))
        report = verify(out)
        assert [one.kind for one in report.problems] == ["manifest"]
        assert report.records == 90


def test_damaged_copies_of_real_files_are_told_and_read_around(shared_data, tmp_path):
    folder = shared_data / "foreign_tfrecords"
    chance = random.Random(11)
    files = [path for path in sorted(folder.iterdir()) if 3000 < path.stat().st_size < 400_000]
    assert len(files) > 30
    for source in chance.sample([path for path in files if path.suffix != ".tsv"], 15):
        path = tmp_path / source.name
        data = source.read_bytes()
        before = verify(source)
        for damaged in (data[:-7], flip(data, 8 * (len(data) // 2)), data[: len(data) // 2 + 3]):
            path.write_bytes(damaged)
            try:
                report = verify(path)
            except datum.CorruptRecordError:  # a single record, or all in one damaged stream
                continue
            assert not report.is_sound, source.name
            # The end of a gzip stream may be lost, and no record with it.
            assert (report.records < before.records) == (report.lost > 0), source.name
        path.unlink()
