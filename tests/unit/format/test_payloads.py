import gzip

import numpy as np

from datum.format import RecordFile, frame
from datum.format.file import as_records

PAYLOADS = [b"one", b"", b"three"]


def test_as_records_takes_whatever_holds_payloads():
    framed = frame(PAYLOADS)
    records = as_records(framed)
    assert list(records) == PAYLOADS
    assert as_records(records) is records
    assert list(as_records(PAYLOADS)) == PAYLOADS
    assert list(as_records(iter(PAYLOADS))) == PAYLOADS


def test_as_records_of_a_file_keeps_where_they_are_from(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame(PAYLOADS).to_bytes())
    records = as_records(RecordFile(path))
    assert list(records) == PAYLOADS
    assert records.locate(1) == (str(path), 1, 19)


def test_as_records_of_a_file_copies_nothing_if_it_can():
    data = np.frombuffer(frame(PAYLOADS).to_bytes(), np.uint8)
    assert as_records(RecordFile(data)).buffer is data


def test_as_records_of_a_compressed_file_keeps_where_they_are_from():
    payloads = [bytes(500_000)] * 9
    framed = frame(payloads)
    records = as_records(RecordFile(gzip.compress(framed.to_bytes(), 1)))
    assert list(records) == payloads
    assert [records.locate(i)[1:] for i in range(9)] == list(enumerate(framed.offsets.tolist()))


def test_as_records_of_a_damaged_file_keeps_the_numbers():
    framed = frame(PAYLOADS)
    data = bytearray(framed.to_bytes())
    data[13] ^= 1
    file = RecordFile(bytes(data), recovery="skip")
    records = as_records(file)
    assert list(records) == PAYLOADS[1:]
    assert records.locate(0) == ("<memory>", 1, 19)
    assert len(file.damage) == 1


def test_as_records_of_an_empty_file_is_empty():
    assert len(as_records(RecordFile(b""))) == 0
