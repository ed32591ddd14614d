import glob
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import CorruptIndexError
from datum.format import Index, RecordFile, RecordWriter, frame

INDEX = Index(np.array([0, 21, 40]), 61)
HINT = "hint: delete it; it can be rebuilt from the records"


def test_lengths_are_those_of_the_payloads():
    assert INDEX.lengths.tolist() == [5, 3, 5]
    assert len(INDEX) == 3


def test_an_index_of_no_records():
    index = Index.from_bytes(Index(np.empty(0, np.int64), 0).to_bytes())
    assert len(index) == 0
    assert index.stream_bytes == 0
    assert index.lengths.tolist() == []


@given(st.lists(st.integers(0, 2**33), max_size=50))
def test_bytes_bring_back_the_same_index(lengths):
    ends = np.cumsum(np.array([0, *lengths], np.int64) + 16)[: len(lengths) + 1] - 16
    found = Index.from_bytes(Index(ends[:-1], int(ends[-1])).to_bytes())
    assert found.offsets.tolist() == ends[:-1].tolist()
    assert found.stream_bytes == ends[-1]
    assert found.lengths.tolist() == lengths


def test_a_file_brings_back_the_same_index(tmp_path):
    INDEX.save(tmp_path / "a.index")
    found = Index.load(tmp_path / "a.index")
    assert found.offsets.tolist() == [0, 21, 40]
    assert found.stream_bytes == 61


@pytest.mark.parametrize(
    ("offsets", "stream_bytes"),
    [([1, 20], 40), ([0, 15], 40), ([0, 20], 35), ([0, 20, 10], 60), ([], 5), ([0, -20], 40)],
)
def test_offsets_that_leave_no_room_for_records_are_refused(offsets, stream_bytes):
    with pytest.raises(ValueError, match="not those of consecutive records"):
        Index(np.array(offsets, np.int64), stream_bytes).to_bytes()


@pytest.mark.parametrize(
    ("shard", "index"),
    [
        ("a/train-00000-of-00008.tfrecord", "a/index/of-train-00000-of-00008.index"),
        ("plain", "index/of-plain.index"),
        ("a.tfrecord.gz", "index/of-a,tfrecord,gz.index"),
    ],
)
def test_the_index_lies_in_a_folder_beside_its_shard(shard, index):
    assert Index.path_for(shard).as_posix() == index


@pytest.mark.parametrize(
    "shard",
    [
        "train-00000-of-00008.tfrecord",
        "train.1-00000-of-00002.tfrecord",
        "train-00000-of-00008",
        "mnist-train.tfrecord-00000-of-00001",
        "train.tfrecords",
        "train-1.tfrecord.gz",
    ],
)
@pytest.mark.parametrize(
    "pattern", ["*", "train*", "*.tfrecord*", "*-of-*", "**/train*", "**/*.tfrec*", "**/mnist-*"]
)
def test_no_pattern_of_shards_finds_an_index(tmp_path, shard, pattern):
    (tmp_path / shard).write_bytes(b"")
    INDEX.save(Index.path_for(tmp_path / shard))
    found = glob.glob(str(tmp_path / pattern), recursive=True)  # noqa: PTH207 - as users do
    assert str(Index.path_for(tmp_path / shard)) not in found


def test_a_name_too_long_for_an_index_has_none(tmp_path):
    path = tmp_path / ("a" * 250)
    path.write_bytes(frame([b"one", b"two"]).to_bytes())
    assert Index.find(path) is None
    assert RecordFile(path)[1] == b"two"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda b: b"", "the file is too short to be an index"),
        (lambda b: b[:39], "the file is too short to be an index"),
        (lambda b: b"NOTDATUM" + b[8:], "the file does not start with DATUMIDX"),
        (lambda b: b[:-1], "the number of records does not match the size of the file"),
        (lambda b: b + bytes(8), "the number of records does not match the size of the file"),
    ],
)
def test_what_is_no_index_is_refused_with_the_reason(change, reason):
    message = f"x.index: expected an index of records: {reason}\n{HINT}"
    with pytest.raises(CorruptIndexError, match=f"^{re.escape(message)}$"):
        Index.from_bytes(change(INDEX.to_bytes()), file="x.index")


def test_every_flipped_bit_is_noticed():
    data = INDEX.to_bytes()
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptIndexError, match="expected an index of records"):
            Index.from_bytes(bytes(damaged))


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "a.index"
    path.write_bytes(b"nonsense" * 10)
    with pytest.raises(CorruptIndexError, match=f"^{re.escape(str(path))}: expected an index"):
        Index.load(path)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        Index.load(tmp_path / "a.index")


def test_writer_frames_and_file_have_the_same_index(tmp_path):
    payloads = [b"", b"x" * 1000, b"yy"]
    with RecordWriter(tmp_path / "a.tfrecord") as writer:
        for payload in payloads:
            writer.write(payload)
    framed = frame(payloads)
    built = RecordFile(tmp_path / "a.tfrecord").index
    assert writer.index.to_bytes() == framed.index.to_bytes() == built.to_bytes()


def test_the_bytes_are_those_of_the_format():
    expected = bytes.fromhex("444154554d494458 01000000 00000000 0300000000000000 3d00000000000000")
    data = INDEX.to_bytes()
    assert data[:32] == expected
    assert data[40:] == np.array([0, 21, 40], "<i8").tobytes()
    assert len(data) == 64


def test_an_index_as_text_has_a_line_of_offset_and_size_for_each_record():
    assert INDEX.to_text() == "0 21\n21 19\n40 21\n"
    assert Index(np.empty(0, np.int64), 0).to_text() == ""


@given(st.lists(st.integers(0, 2**33), max_size=50))
def test_text_brings_back_the_same_index(lengths):
    ends = np.cumsum(np.array([0, *lengths], np.int64) + 16)[: len(lengths) + 1] - 16
    found = Index.from_text(Index(ends[:-1], int(ends[-1])).to_text())
    assert found.offsets.tolist() == ends[:-1].tolist()
    assert found.lengths.tolist() == lengths


@pytest.mark.parametrize(
    "text",
    [
        *("0", "0 21\n21", "0 21 3\n", "a b\n", "0 21\n22 19\n", "5 21\n", "0 15\n", "-1 20\n"),
        *("0 99999999999999999999\n", "0.0 21\n", "0 21\n21 19\n21 19\n", "\0\1\2"),
    ],
)
def test_text_that_is_no_index_is_refused(text):
    message = "x.idx: expected a line of offset and size for each record: "
    with pytest.raises(CorruptIndexError, match=f"^{re.escape(message)}"):
        Index.from_text(text, file="x.idx")


def test_text_is_written_and_read(tmp_path):
    assert Index.text_path_for("a/b.tfrecord").as_posix() == "a/b.tfrecord.idx"
    INDEX.save_text(tmp_path / "a.idx")
    assert (tmp_path / "a.idx").read_bytes() == b"0 21\n21 19\n40 21\n"
    assert Index.load_text(tmp_path / "a.idx").to_bytes() == INDEX.to_bytes()
    (tmp_path / "a.idx").write_bytes(b"\xff\xfe")
    with pytest.raises(CorruptIndexError):
        Index.load_text(tmp_path / "a.idx")


def test_the_tfrecord_package_writes_the_same_text_and_reads_by_it(tmp_path):
    path = tmp_path / "a.tfrecord"
    payloads = [b"x" * size for size in (0, 1, 1000, 0, 70_000, 3)]
    with RecordWriter(path) as writer:
        for payload in payloads:
            writer.write(payload)
    writer.index.save_text(tmp_path / "ours")
    # In a process of its own: it defines the messages of TensorFlow a second time.
    found = subprocess.run(
        [sys.executable, "-c", USE_OF_TFRECORD, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    if found.stdout == "absent":
        pytest.skip("no tfrecord package")
    assert (tmp_path / "theirs").read_bytes() == (tmp_path / "ours").read_bytes()
    assert found.stdout.split() == ["0", "1", "1000", "0", "70000", "3"]


USE_OF_TFRECORD = """
import sys, warnings
warnings.simplefilter("ignore")
try:
    from tfrecord.reader import tfrecord_iterator
    from tfrecord.tools.tfrecord2idx import create_index
except ImportError:
    sys.exit(print("absent", end=""))
file, ours, theirs = (f"{sys.argv[1]}/{name}" for name in ("a.tfrecord", "ours", "theirs"))
create_index(file, theirs)
for part in range(3):
    print(*(len(record) for record in tfrecord_iterator(file, ours, (part, 3))))
"""


def test_an_index_of_ours_is_told_by_its_first_bytes(tmp_path):
    INDEX.save(tmp_path / "a")
    (tmp_path / "b").write_bytes(b"DATUM")
    (tmp_path / "c").touch()
    assert [Index.is_index(tmp_path / name) for name in "abc"] == [True, False, False]


def test_a_file_that_cannot_be_written_is_as_it_was(tmp_path, monkeypatch):
    INDEX.save(tmp_path / "a")

    def refuse(*_):
        raise OSError("no")

    monkeypatch.setattr("os.fsync", refuse)
    for save in (INDEX.save, INDEX.save_text):
        with pytest.raises(OSError, match="no"):
            save(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert Index.load(tmp_path / "a").to_bytes() == INDEX.to_bytes()
