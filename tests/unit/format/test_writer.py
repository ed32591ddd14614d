"""TFRecord files written, plain and compressed."""

import gzip
import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from datum import _core
from datum.format import Framed, RecordFile, RecordWriter, frame
from datum.format.framing import (
    INPUT_BYTES,
    OUTPUT_BYTES,
    CompressedStreamError,
    compressor,
    detect_compression,
    inflate,
)

PAYLOADS = [b"one", b"", b"three"]


def test_a_frame_is_length_checksum_payload_checksum():
    data = frame([b"payload"]).to_bytes()

    def masked(part: bytes) -> bytes:
        return struct.pack("<I", _core.mask_crc(_core.crc32c(part)))

    length = struct.pack("<Q", 7)
    assert data == length + masked(length) + b"payload" + masked(b"payload")


def test_the_bytes_of_an_empty_record_are_known():
    assert frame([b""]).to_bytes().hex() == "000000000000000029039807d8ea82a2"


def test_framed_payloads_come_back():
    framed = frame(PAYLOADS)
    assert list(framed) == PAYLOADS
    assert len(framed) == 3
    assert framed.nbytes == 3 * 16 + 8 == len(framed.to_bytes())
    assert framed.offsets.tolist() == [0, 19, 35]
    assert framed.index.stream_bytes == framed.nbytes
    assert list(frame(payload for payload in PAYLOADS)) == PAYLOADS


def test_framing_nothing_gives_nothing():
    framed = frame([])
    assert framed.to_bytes() == b""
    assert len(framed) == 0
    assert list(framed) == []


@given(st.lists(st.binary(max_size=200), max_size=30))
def test_any_payloads_are_framed_one_after_the_other(payloads):
    framed = frame(payloads)
    assert framed.to_bytes() == b"".join(frame([payload]).to_bytes() for payload in payloads)
    assert list(RecordFile(framed.to_bytes())) == payloads


@pytest.mark.parametrize("payload", ["text", 3, None, [b"x"]])
def test_only_bytes_can_be_framed(payload):
    with pytest.raises(TypeError, match="expected bytes"):
        frame([payload])


def test_a_writer_to_memory_gives_its_value_once_closed():
    writer = RecordWriter()
    for payload in PAYLOADS:
        writer.write(payload)
    with pytest.raises(ValueError, match="expected a closed writer to memory"):
        writer.getvalue()
    writer.close()
    assert writer.getvalue() == frame(PAYLOADS).to_bytes()


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_a_writer_writes_a_file(tmp_path, compression):
    path = tmp_path / "a.tfrecord"
    with RecordWriter(path, compression=compression) as writer:
        writer.write(PAYLOADS[0])
        writer.write_framed(frame(PAYLOADS[1:]))
        writer.write_framed(frame([]))
        assert len(writer) == 3
    unpack = {None: bytes, "gzip": gzip.decompress, "zlib": zlib.decompress}[compression]
    assert unpack(path.read_bytes()) == frame(PAYLOADS).to_bytes()
    assert list(RecordFile(path)) == PAYLOADS
    assert RecordFile(path).compression == compression
    with pytest.raises(ValueError, match="expected a closed writer to memory"):
        writer.getvalue()


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_an_empty_file_is_sound(tmp_path, compression):
    path = tmp_path / "a.tfrecord"
    RecordWriter(str(path), compression=compression).close()
    assert list(RecordFile(path)) == []
    assert RecordFile(path).compression == compression


def test_an_open_file_is_written_to_and_left_open(tmp_path):
    with (tmp_path / "a.tfrecord").open("wb") as file:
        with RecordWriter(file) as writer:
            writer.write(b"one")
        file.write(b"more")
    assert (tmp_path / "a.tfrecord").read_bytes() == frame([b"one"]).to_bytes() + b"more"


def test_a_buffer_of_the_caller_is_left_open():
    target = io.BytesIO()
    with RecordWriter(target) as writer:
        writer.write(b"one")
    assert target.getvalue() == frame([b"one"]).to_bytes()


def test_a_file_that_is_there_is_replaced(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"x" * 1000)
    with RecordWriter(path) as writer:
        writer.write(b"one")
    assert list(RecordFile(path)) == [b"one"]


def test_the_index_counts_bytes_before_compression(tmp_path):
    with RecordWriter(tmp_path / "a", compression="gzip") as writer:
        assert len(writer.index) == 0
        writer.write(b"one")
        writer.write_framed(frame(PAYLOADS))
        assert writer.index.offsets.tolist() == [0, 19, 38, 54]
    assert writer.index.stream_bytes == 75


def test_a_closed_writer_takes_no_more():
    writer = RecordWriter()
    writer.close()
    writer.close()
    for write in (lambda: writer.write(b"x"), lambda: writer.write_framed(frame([b"x"]))):
        with pytest.raises(ValueError, match="expected an open writer, got a closed one"):
            write()


def test_an_unknown_compression_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected `compression` None, gzip or zlib, got 'zip'"):
        RecordWriter(tmp_path / "a", compression="zip")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("payload", ["text", None, 3])
def test_a_payload_that_is_no_bytes_is_refused_and_nothing_written(payload):
    with RecordWriter() as writer:
        with pytest.raises(TypeError, match="expected bytes"):
            writer.write(payload)
        writer.write(b"one")
    assert writer.getvalue() == frame([b"one"]).to_bytes()


def test_an_error_within_closes_the_file(tmp_path):
    path = tmp_path / "a.tfrecord"

    def fail():
        with RecordWriter(path) as writer:
            writer.write(b"one")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert list(RecordFile(path)) == [b"one"]


def test_framed_holds_arrays_that_can_be_used():
    framed = Framed(np.frombuffer(frame(PAYLOADS).to_bytes(), np.uint8), frame(PAYLOADS).offsets)
    assert list(framed) == PAYLOADS


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_bytes_depend_on_the_records_alone(compression):
    payloads = [bytes([i % 7]) * (i % 3000) for i in range(2000)]
    found = set()
    for step in (1, 7, 500, 2000):
        with RecordWriter(compression=compression) as writer:
            for first in range(0, len(payloads), step):
                writer.write_framed(frame(payloads[first : first + step]))
        found.add(writer.getvalue())
    assert len(found) == 1
    assert list(RecordFile(found.pop())) == payloads


KINDS = ["gzip", "zlib"]
NOISE = np.random.default_rng(0).bytes(3 * INPUT_BYTES + 5)


def deflate(data: bytes, compression: str) -> bytes:
    """By the standard library."""
    return gzip.compress(data, mtime=0) if compression == "gzip" else zlib.compress(data)


def collect(data: bytes, compression: str) -> tuple[bytes, str | None]:
    """What can be read, and the error that ended it."""
    out = io.BytesIO()
    try:
        for piece in inflate(data, compression):
            assert 0 < len(piece) <= OUTPUT_BYTES
            out.write(piece)
    except CompressedStreamError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), None


@pytest.mark.parametrize("compression", KINDS)
def test_compressed_files_are_told_by_their_content(compression):
    assert detect_compression(deflate(b"data" * 9, compression)) == compression
    stream = compressor(compression)
    assert detect_compression(stream.compress(b"data") + stream.flush()) == compression


@pytest.mark.parametrize("level", range(10))
def test_every_level_of_zlib_is_told(level):
    assert detect_compression(zlib.compress(b"data" * 9, level)) == "zlib"


@pytest.mark.parametrize("data", [b"", b"\x1f", b"x", b"\x1f\x8b", b"hello, world", bytes(12)])
def test_anything_else_is_not_compressed(data):
    assert detect_compression(data) is None


@given(st.integers(0, 70_000))
@example(0x0178)  # little-endian 78 01: what zlib streams start with
@example(0x9C78)
@example(0x1D08)
def test_a_record_of_any_length_is_not_taken_for_a_compressed_stream(length):
    assert detect_compression(frame([bytes(length)]).data[:12]) is None


@pytest.mark.parametrize("compression", KINDS)
@pytest.mark.parametrize("written_by", ["datum", "standard library"])
@pytest.mark.parametrize("kind", ["zeros", "noise"])
@pytest.mark.parametrize(
    "size",
    [0, 1, INPUT_BYTES, OUTPUT_BYTES - 1, OUTPUT_BYTES, OUTPUT_BYTES + 1, 5 * OUTPUT_BYTES + 7],
)
def test_a_stream_is_read_whole_in_pieces(compression, written_by, kind, size):
    data = bytes(size) if kind == "zeros" else NOISE[:size]
    if written_by == "datum":
        stream = compressor(compression)
        packed = stream.compress(data) + stream.flush()
    else:
        packed = deflate(data, compression)
    assert collect(packed, compression) == (data, None)


@given(st.integers(1, 2**22), st.sampled_from(KINDS), st.sampled_from([b"\0", b"abcabcabd"]))
@example(2**20 + 1, "zlib", b"\0")
def test_a_stream_of_any_size_is_read_whole(size, compression, pattern):
    data = (pattern * (size // len(pattern) + 1))[:size]
    found, error = collect(deflate(data, compression), compression)
    assert error is None
    assert found == data


@pytest.mark.parametrize("compression", KINDS)
def test_members_that_follow_one_another_are_one_stream(compression):
    packed = b"".join(deflate(part, compression) for part in (b"one", b"", NOISE, b"four"))
    assert collect(packed, compression) == (b"one" + NOISE + b"four", None)


@pytest.mark.parametrize("compression", KINDS)
@pytest.mark.parametrize("zeros", [1, 7, 512, INPUT_BYTES + 1])
def test_zeros_after_the_end_are_padding(compression, zeros):
    assert collect(deflate(b"data", compression) + bytes(zeros), compression) == (b"data", None)


@pytest.mark.parametrize("compression", KINDS)
def test_anything_else_after_the_end_is_an_error(compression):
    found, error = collect(deflate(b"data", compression) + b"\0\0trailer", compression)
    assert found == b"data"
    assert error == f"the {compression} stream is followed by other bytes"


@pytest.mark.parametrize("compression", KINDS)
@pytest.mark.parametrize("cut", [1, 3, 4, 9, 1000, INPUT_BYTES])
def test_a_stream_that_is_cut_off_gives_what_is_there(compression, cut):
    found, error = collect(deflate(NOISE, compression)[:-cut], compression)
    assert error == f"the {compression} stream is truncated"
    assert NOISE.startswith(found)
    assert len(found) >= len(NOISE) - cut - 100


@pytest.mark.parametrize("compression", KINDS)
def test_a_damaged_stream_is_an_error_after_what_could_be_read(compression):
    packed = bytearray(deflate(NOISE, compression))
    packed[-2] ^= 0xFF  # in the checksum
    found, error = collect(bytes(packed), compression)
    assert error == f"the {compression} stream is damaged"
    assert NOISE.startswith(found)
    assert len(found) >= 2 * INPUT_BYTES


@pytest.mark.parametrize("compression", KINDS)
def test_what_lies_before_a_damage_is_read(compression):
    words = b" ".join(b"%d" % (i * i) for i in range(200_000))
    packed = bytearray(deflate(words, compression))
    place = 3 * INPUT_BYTES
    sound = zlib.decompressobj(wbits=47).decompress(packed[: place - INPUT_BYTES])
    packed[place : place + 40] = b"\xff" * 40
    found, error = collect(bytes(packed), compression)
    assert error == f"the {compression} stream is damaged"
    assert found.startswith(sound)
    assert len(sound) > INPUT_BYTES


@pytest.mark.parametrize("make", [bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)])
def test_any_buffer_can_be_read(make):
    assert b"".join(inflate(make(gzip.compress(b"data")), "gzip")) == b"data"


@pytest.mark.parametrize("compression", KINDS)
def test_the_standard_library_reads_what_is_written(compression):
    with RecordWriter(compression=compression) as writer:
        for i in range(1000):
            writer.write(b"record %d" % i)
    unpack = {"gzip": gzip.decompress, "zlib": zlib.decompress}[compression]
    assert unpack(writer.getvalue()) == frame([b"record %d" % i for i in range(1000)]).to_bytes()


@pytest.mark.parametrize("compression", KINDS)
def test_the_bytes_depend_on_the_data_alone(compression):
    def pack() -> bytes:
        stream = compressor(compression)
        return stream.compress(NOISE[:1000]) + stream.flush()

    assert pack() == pack()
    if compression == "gzip":
        assert pack()[4:8] == bytes(4)  # no time of writing
