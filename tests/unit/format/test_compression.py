import gzip
import io
import zlib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from datum.format import RecordWriter, frame
from datum.format.framing import (
    INPUT_BYTES,
    OUTPUT_BYTES,
    CompressedStreamError,
    compressor,
    detect_compression,
    inflate,
)

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
    assert error == f"the {compression} stream is cut off"
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
