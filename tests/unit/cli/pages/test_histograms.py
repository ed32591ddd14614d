import pytest

from datum.cli.feature_table import bar, densities, rows, sparkline
from datum.cli.terminal import ASCII, UNICODE


def test_the_highest_bin_is_full_and_a_sliver_is_not_nothing():
    assert sparkline([1000, 1, 0, 500], UNICODE) == "█▁ ▄"
    assert sparkline([1000, 1, 0, 500], ASCII) == "%. ="
    assert sparkline([0, 0], UNICODE) == ""
    assert sparkline([], UNICODE) == ""


def test_neighbouring_bins_are_joined():
    assert densities(range(9), [1] * 8, 4) == [1.0] * 4
    assert len(densities(range(41), [1] * 40, 16)) == 14


def test_a_narrow_last_bin_is_as_high_as_the_others():
    assert densities([0, 3, 6, 7], [3, 3, 1], 10) == [1.0, 1.0, 1.0]


def test_bins_without_width_have_a_height():
    assert densities([5.0, 5.0], [7], 10) == [1.0]


def test_columns_stand_on_the_last_row():
    assert rows([1, 2, 4], 2, UNICODE) == ["  █", "▄██"]
    assert rows([0, 0], 2, UNICODE) == []


@pytest.mark.parametrize(("share", "text"), [(0, ""), (0.001, "▏"), (0.5, "██"), (1, "████")])
def test_bars_are_as_long_as_their_share(share, text):
    assert bar(share, 4, UNICODE) == text


def test_no_bar_is_longer_than_its_room():
    assert bar(1.7, 4, ASCII) == "####"
