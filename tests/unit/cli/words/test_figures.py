import numpy as np
import pytest

from datum.cli.formatting import (
    cut,
    cut_middle,
    describe_number,
    describe_range,
    describe_share,
    one_line,
)
from datum.cli.terminal import ASCII, UNICODE


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (2014, "2014"),
        (10_000, "10,000"),
        (-123456, "-123,456"),
        (2**63, "9.223e+18"),
        (0.5, "0.5"),
        (3.0, "3"),
        (0.123456, "0.1235"),
        (1234.5678, "1,235"),
        (12345.6, "12,346"),
        (1e-9, "1e-09"),
        (1.5e300, "1.5e+300"),
        (float("nan"), "nan"),
        (None, ""),
    ],
)
def test_numbers_are_as_short_as_they_can_be(value, text):
    assert describe_number(value) == text


def test_times_are_dates():
    assert describe_number(19723, dtype="datetime64[D]") == "2024-01-01"
    assert describe_number(1_704_067_200_000, dtype="datetime64[ms]") == "2024-01-01 00:00:00.000"
    assert describe_number(90.0, dtype="timedelta64[s]") == "90 seconds"


def test_a_range_of_one_value_is_that_value():
    assert describe_range(5, 5, UNICODE) == "5"
    assert describe_range(0.10001, 0.10002, UNICODE) == "0.1"


def test_signs_do_not_run_together_with_dashes():
    assert describe_range(1, 5, ASCII) == "1-5"
    assert describe_range(-1, 5, ASCII) == "-1 - 5"
    assert describe_range(0, 1, ASCII, dtype="datetime64[D]") == "1970-01-01 - 1970-01-02"


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0 %"), (1, "100 %"), (0.0001, "<0.1 %"), (0.99999, ">99.9 %")]
)
def test_a_share_is_never_all_or_nothing_where_it_is_not(share, text):
    assert describe_share(share) == text


def test_text_of_strangers_is_one_harmless_line():
    assert one_line("a\n\tb\x1b[2Jc") == "a b\\x1b[2Jc"


@pytest.mark.parametrize("width", range(1, 30))
def test_what_is_cut_fits(width):
    for text in ("a long name of a feature", "寿司と刺身と天ぷら", "image/object/class/label"):
        for made in (cut(text, width, UNICODE), cut_middle(text, width, UNICODE)):
            assert np.sum([2 if ord(sign) > 0x2E80 else 1 for sign in made]) <= max(width, 2)


def test_names_keep_their_ends():
    assert cut_middle("image/object/bbox/xmax", 13, UNICODE) == "image/…x/xmax"
    assert cut_middle("short", 13, UNICODE) == "short"
