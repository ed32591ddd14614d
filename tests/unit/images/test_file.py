"""Image files."""

import os
from pathlib import Path

import pytest

from datum.images import ImageError, read_file, read_file_header, sniff_file
from datum.images.header import name_file
from tests.unit.images.samples import encoded, pixels, save


def test_a_file_is_read_whole(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(range(256)) * 1000)
    assert read_file(path) == path.read_bytes()
    assert read_file(str(path)) == path.read_bytes()


def test_an_empty_file_has_no_bytes(tmp_path):
    (tmp_path / "a.jpg").touch()
    assert read_file(tmp_path / "a.jpg") == b""
    with pytest.raises(ImageError, match="a.jpg: expected a JPEG.*got no bytes"):
        read_file_header(tmp_path / "a.jpg")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ImageError, match="gone.jpg: expected a file, got: no such file"):
        read_file(tmp_path / "gone.jpg")


def test_a_name_with_a_null_is_refused():
    with pytest.raises(ImageError, match="null"):
        read_file("a\0b")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ImageError, match="got a folder|is a directory"):
        read_file(tmp_path)


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.jpg")
    with pytest.raises(ImageError, match="a.jpg: expected a regular file, got a pipe"):
        read_file(tmp_path / "a.jpg")
    assert sniff_file(tmp_path / "a.jpg") is None


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices here")
def test_a_device_is_refused():
    with pytest.raises(ImageError, match="got a device"):
        read_file("/dev/zero")


def test_a_file_that_shrinks_while_it_is_read_is_told(tmp_path, monkeypatch):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"x" * 100)
    real = os.read

    def read_less(file, count):
        os.truncate(path, 40)
        return real(file, count)

    monkeypatch.setattr(os, "read", read_less)
    with pytest.raises(ImageError, match="expected 100 bytes, got 40: the file has changed"):
        read_file(path)


def test_a_file_read_in_pieces_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.jpg"
    path.write_bytes(bytes(range(100)))
    real = os.read
    monkeypatch.setattr(os, "read", lambda file, count: real(file, min(count, 7)))
    assert read_file(path) == bytes(range(100))


def test_the_header_of_a_file_is_read(tmp_path):
    header = read_file_header(save(tmp_path / "a.png", pixels(8, 9)))
    assert (header.format, header.height, header.width) == ("png", 8, 9)


def test_a_header_that_comes_late_is_found(tmp_path):
    data = encoded(pixels(8, 9), "JPEG")
    comment = b"\xff\xfe\xff\xff" + b"c" * 65533
    path = tmp_path / "late.jpg"
    path.write_bytes(data[:2] + comment * 3 + data[2:])
    assert read_file_header(path).width == 9


def test_an_error_names_its_file_once(tmp_path):
    error = name_file("a.jpg", ImageError("expected"))
    assert str(error) == "a.jpg: expected"
    assert name_file("a.jpg", error) is error


def test_files_are_sniffed_whatever_they_are_called(tmp_path):
    path = save(tmp_path / "a.txt", pixels(4, 4), "WEBP")
    assert sniff_file(path) == "webp"
    (tmp_path / "b.jpg").write_text("no image")
    assert sniff_file(tmp_path / "b.jpg") is None
    assert sniff_file(tmp_path / "gone") is None
