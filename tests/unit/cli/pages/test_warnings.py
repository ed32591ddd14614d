import pytest

from datum._inspect.profile.results import ProfileWarning
from datum.cli.info_page import show_warnings
from datum.cli.terminal import ASCII, UNICODE

MISSING = [
    ProfileWarning("missing", f"{n} % lack it", "fill them in", f"feature {n}", figure=f"{n} %")
    for n in range(10)
]
LEAK = ProfileWarning("leakage", "2 records of val are in train too", "drop them", split="val")


def lines_of(warnings, width=80, **options):
    return [line.plain for line in show_warnings(warnings, width, UNICODE, **options)]


def test_one_warning_has_a_title_a_sentence_and_a_hint():
    assert lines_of([LEAK]) == [
        "! records in two splits",
        "  2 records of val are in train too",
        "  hint: drop them",
    ]


def test_a_warning_of_a_feature_names_it():
    assert lines_of(MISSING[:1])[1] == "  feature 0: 0 % lack it"


def test_many_of_one_kind_are_one_list():
    text = " ".join(line.strip() for line in lines_of(MISSING))
    assert text.startswith("! missing values 10 features: feature 0 (0 %), feature 1 (1 %),")
    assert "feature 5 (5 %) and 4 more" in text
    assert text.count("hint:") == 1


def test_in_a_file_nothing_is_cut_or_wrapped():
    lines = lines_of(MISSING, 4096)
    assert len(lines) == 3
    assert "feature 9 (9 %)" in lines[1]


@pytest.mark.parametrize("width", [120, 60, 40])
def test_lines_are_as_long_as_the_terminal_is_wide(width):
    assert all(len(line) <= width for line in lines_of([LEAK, *MISSING], width))


def test_names_of_strangers_cannot_steer_a_terminal():
    warning = ProfileWarning("missing", "5 % lack it", "fill in", "a\x1b[2J", figure="5 %")
    assert "\x1b" not in "".join(lines_of([warning])) + "".join(lines_of([warning, warning]))


def test_ascii_is_ascii():
    lines = show_warnings([LEAK, *MISSING], 80, ASCII)
    assert all(line.plain.isascii() for line in lines)
