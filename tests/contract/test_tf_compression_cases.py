"""The cases that TensorFlow tests its compressed streams with, put to ours, and a few more."""

from __future__ import annotations

import gzip
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

from datum import CorruptRecordError
from datum.format import RecordFile, RecordWriter
from tests.contract.oracle import tensorflow_reads, write_tfrecords

TINY = [*range(1, 21), 65536]


def _write(payloads: list[bytes], compression: Any = None) -> bytes:
    with RecordWriter(compression=compression) as writer:
        for payload in payloads:
            writer.write(payload)
    return writer.getvalue()


@pytest.mark.parametrize("size", TINY)
@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_tiny_buffers_of_compressed_bytes(
    monkeypatch: pytest.MonkeyPatch, compression: Any, size: int
) -> None:
    content = _write([b"abc", b"defg", b"", b"h" * 100], compression)
    file = RecordFile(content)
    for name in ("INPUT_BYTES", "OUTPUT_BYTES"):
        monkeypatch.setattr(f"datum.format.framing.{name}", size)
    assert list(file) == [b"abc", b"defg", b"", b"h" * 100]


@pytest.mark.parametrize(
    "payloads", [[b"foo", b"bar"], [b"Gaily bedight, a gallant knight" * 10**5]]
)
def test_streams_of_the_standard_library_are_read(tmp_path: Path, payloads: list[bytes]) -> None:
    plain = _write(payloads)
    with gzip.GzipFile(tmp_path / "named.gz", "wb") as file:  # its header holds name and time
        file.write(plain)
    streams = [zlib.compress(plain), gzip.compress(plain), (tmp_path / "named.gz").read_bytes()]
    for stream in streams:
        assert list(RecordFile(stream)) == payloads


@pytest.mark.parametrize("payloads", [[b"foo", b"bar"], [b"In search of Eldorado" * 10**5], []])
def test_our_streams_are_read_by_the_standard_library(payloads: list[bytes]) -> None:
    plain = _write(payloads)
    assert zlib.decompress(_write(payloads, "zlib")) == plain
    assert gzip.decompress(_write(payloads, "gzip")) == plain


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_large_records_go_both_ways(tmp_path: Path, compression: Any) -> None:
    payloads = [random.Random(1).randbytes(3 * 2**20), b"knight so bold" * 3 * 10**5, b"end"]
    content = _write(payloads, compression)
    assert tensorflow_reads(tmp_path / "ours", content, compression) == payloads
    theirs = write_tfrecords(tmp_path / "theirs", payloads, compression=compression)
    assert list(RecordFile(theirs)) == payloads


@pytest.mark.parametrize("window", [9, 10, 12, 15])
def test_zlib_streams_of_any_window(window: int) -> None:
    compressor = zlib.compressobj(9, zlib.DEFLATED, window)
    stream = compressor.compress(_write([b"a" * 5000, b"b"])) + compressor.flush()
    assert list(RecordFile(stream)) == [b"a" * 5000, b"b"]


@pytest.mark.parametrize("window", [15, 31], ids=["zlib", "gzip"])
def test_streams_flushed_after_every_byte(tmp_path: Path, window: int) -> None:
    compressor = zlib.compressobj(9, zlib.DEFLATED, window)
    stream = b"".join(
        compressor.compress(bytes([byte])) + compressor.flush(zlib.Z_FULL_FLUSH)
        for byte in _write([b"small record"])
    )
    stream += compressor.flush(zlib.Z_FULL_FLUSH) * 2 + compressor.flush(zlib.Z_FINISH)
    assert list(RecordFile(stream)) == [b"small record"]
    compression = {15: "zlib", 31: "gzip"}[window]
    assert tensorflow_reads(tmp_path / "flushed", stream, compression) == [b"small record"]


@pytest.mark.parametrize("window", [15, 31], ids=["zlib", "gzip"])
def test_a_stream_flushed_but_never_finished_is_damage(window: int) -> None:
    compressor = zlib.compressobj(9, zlib.DEFLATED, window)
    stream = compressor.compress(_write([b"one", b"two"])) + compressor.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(CorruptRecordError, match="is truncated"):
        list(RecordFile(stream))
    file = RecordFile(stream, recovery="tail")
    assert list(file) == [b"one", b"two"]
    assert [damage.kind for damage in file.damage] == ["compressed stream"]


MEMBERS = {
    "one after the other": lambda a, b: gzip.compress(a) + gzip.compress(b),
    "cut within a record": lambda a, b: gzip.compress((a + b)[:9]) + gzip.compress((a + b)[9:]),
    "one for each byte": lambda a, b: b"".join(gzip.compress(bytes([c])) for c in a + b),
}


@pytest.mark.parametrize("join", MEMBERS.values(), ids=MEMBERS)
def test_gzip_of_many_members_is_read_whole_by_both(tmp_path: Path, join: Any) -> None:
    stream = join(_write([b"one", b"two"]), _write([b"three"]))
    assert list(RecordFile(stream)) == [b"one", b"two", b"three"]
    assert tensorflow_reads(tmp_path / "members", stream, "gzip") == [b"one", b"two", b"three"]


def test_members_that_tensorflow_loses_are_read() -> None:
    one, two = _write([b"one"]), _write([b"two"])
    assert list(RecordFile(zlib.compress(one) + zlib.compress(two))) == [b"one", b"two"]
    empty = gzip.compress(b"")
    assert list(RecordFile(empty + gzip.compress(one) + empty)) == [b"one"]


def test_padding_with_zeros_is_fine_and_with_junk_is_not() -> None:
    for stream in (gzip.compress(_write([b"one"])), zlib.compress(_write([b"one"]))):
        assert list(RecordFile(stream + bytes(1000))) == [b"one"]
        with pytest.raises(CorruptRecordError, match="followed by other bytes"):
            list(RecordFile(stream + b"junk"))


def test_other_compressions_are_refused() -> None:
    with pytest.raises(ValueError, match="expected `compression` None, gzip or zlib"):
        RecordWriter(compression="snappy")  # type: ignore[arg-type]
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)  # neither gzip's nor zlib's wrapper
    raw = deflate.compress(_write([b"abc" * 100])) + deflate.flush()
    with pytest.raises(CorruptRecordError):
        list(RecordFile(raw))


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_the_name_of_a_file_does_not_say_how_it_is_compressed(
    tmp_path: Path, compression: Any
) -> None:
    others = {"gzip": "zlib", "zlib": "gzip"}
    for name in (f"x.{compression}", f"x.{others[compression]}", "x.gz", "x.tfrecord", "x"):
        path = tmp_path / name
        path.write_bytes(_write([b"one"], compression))
        assert list(RecordFile(path)) == [b"one"]
        path.write_bytes(_write([b"one"]))
        assert list(RecordFile(path)) == [b"one"]


@pytest.mark.parametrize("compress", [zlib.compress, gzip.compress])
def test_a_damaged_stream_is_not_taken_for_plain_records(compress: Any) -> None:
    for count in (3, 1000):
        stream = bytearray(compress(_write([random.Random(2).randbytes(100)] * count)))
        stream[-1] ^= 1  # of its checksum, or of its length
        with pytest.raises(CorruptRecordError) as caught:
            list(RecordFile(bytes(stream)))
        assert caught.value.damage.kind == "compressed stream"
