import io

import numpy as np
import pytest

from datum import _core
from datum.errors import SourceError
from datum.sources.text_encoding import TextReader, check_encoding, other_encoding


def read(content, encoding=None, run_bytes=7):
    reader = TextReader("file", encoding)
    runs = list(reader.runs(io.BytesIO(content), run_bytes))
    assert [is_last for _, is_last in runs] == [False] * (len(runs) - 1) + [True]
    return b"".join(text.tobytes() for text, _ in runs).decode(), reader


TEXT = "naïve, 12 €, \U0001f600\n" * 3


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-32", "utf-32"),
    ],
)
@pytest.mark.parametrize("run_bytes", [1, 5, 1000])
def test_a_byte_order_mark_tells_the_encoding(encoding, found, run_bytes):
    if run_bytes < 4 and found != "utf-8":
        run_bytes = 4  # what it takes to see the mark
    text, reader = read(TEXT.encode(encoding), run_bytes=run_bytes)
    assert text == TEXT
    assert reader.encoding == found


def test_a_big_endian_mark_is_known_too():
    content = b"\xfe\xff" + TEXT.encode("utf-16-be")
    assert read(content)[0] == TEXT


def test_an_encoding_that_is_given_is_used():
    text, reader = read("é€".encode("cp1252"), "cp1252")
    assert text == "é€"
    assert reader.encoding == "cp1252"


def test_bytes_that_the_encoding_has_not_raise():
    with pytest.raises(UnicodeDecodeError):
        read(b"\x81", "cp1252")
    with pytest.raises(UnicodeDecodeError):
        read("é".encode("utf-16")[:-1])


def test_the_checksum_is_that_of_the_file():
    content = "é".encode("utf-16")
    assert read(content)[1].crc == _core.crc32c(content)


def test_runs_can_be_written_to():
    reader = TextReader("file", None)
    for text, _ in reader.runs(io.BytesIO(b"abc"), 2):
        assert text.flags.writeable


def test_the_usual_name_of_an_encoding_is_found():
    assert check_encoding("UTF8") == "utf-8"
    assert check_encoding("Windows-1252") == "cp1252"


@pytest.mark.parametrize("name", ["latin-99", "base64", "rot13", "", 5])
def test_an_encoding_that_is_none_is_refused(name):
    with pytest.raises(SourceError, match="expected an encoding that Python knows"):
        check_encoding(name)


def test_some_damage_makes_no_other_encoding():
    damaged = "é".encode() * 5 + b"\xff" + "ü".encode()
    assert other_encoding(np.frombuffer(damaged, np.uint8)) is None
    foreign = "café olé".encode("cp1252")
    assert other_encoding(np.frombuffer(foreign, np.uint8)) == "cp1252"
