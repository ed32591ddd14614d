import pytest

from datum._read.shards import SoundFile
from datum.errors import CorruptRecordError
from datum.format import RecordWriter, frame


def write(path, compression=None):
    """Records 0 to 9, of which 3 is damaged, and half of another one."""
    with RecordWriter(path, compression=compression) as writer:
        for n in range(10):
            writer.write(b"%d" % n)
    if compression is None:
        data = bytearray(path.read_bytes())
        data[3 * 17 + 12] ^= 1
        path.write_bytes(bytes(data) + frame([b"torn"]).to_bytes()[:9])


def test_what_is_sound_is_numbered_without_gaps(tmp_path):
    write(tmp_path / "a")
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
    write(tmp_path / "a")
    file = SoundFile(tmp_path / "a", left_out=[9, 0, 4])
    assert list(file) == [b"1", b"2", b"5", b"6", b"7", b"8"]
    assert file[2] == b"5"
    assert file.records([2]).locate(0)[2] == 5 * 17


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_a_compressed_file_is_read_likewise(tmp_path, compression):
    write(tmp_path / "a", compression)
    file = SoundFile(tmp_path / "a", left_out=[1])
    assert b"".join(file) == b"023456789"
    assert [len(records) for records in file.chunks(3)] == [2, 3, 3, 1]


def test_gaps_cannot_be_indexed(tmp_path):
    write(tmp_path / "a")
    with pytest.raises(CorruptRecordError, match="without gaps"):
        SoundFile(tmp_path / "a").index  # noqa: B018 - it is made when asked for
