"""Numbers of bytes as people write them."""

import pytest

from datum.cli.arguments import parse_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1048576", 1 << 20),
        ("1_048_576", 1 << 20),
        ("1,048,576", 1 << 20),
        ("128MiB", 128 << 20),
        ("128 mib", 128 << 20),
        ("128Mi", 128 << 20),
        ("128M", 128 << 20),
        ("128MB", 128_000_000),
        ("1GB", 1_000_000_000),
        ("1.5GiB", 3 << 29),
        (".5k", 512),
        ("500k", 512_000),
        ("500kB", 500_000),
        ("2TiB", 2 << 40),
        ("1P", 1 << 50),
        (" 7 bytes ", 7),
        ("7B", 7),
        ("0.1GB", 100_000_000),
    ],
)
def test_a_size_is_read_as_people_write_it(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "12 apples", "-5k", "1e9", "nan", "1.2.3", "12kk"])
def test_what_is_no_size_is_an_error_that_shows_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a number of bytes, got .*\nhint: .*128MiB"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["0", "0MiB", "0.1"])
def test_less_than_a_byte_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected at least one byte"):
        parse_bytes(text)
