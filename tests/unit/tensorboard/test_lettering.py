"""Text that fits."""

import pytest

from datum.tensorboard import drawing
from datum.tensorboard.drawing import clean, font_for, shorten, text_width, wrap


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  a\r\nb\tc ", "a b c"),
        ("\x00\x1b[31mred\x7f", "[31mred"),
        ("\u202eevil\u2066", "evil"),
        ("half \ud800", "half"),
        ("", ""),
        ("x" * 1000, "x" * 200 + "..."),
    ],
)
def test_controls_and_length_are_taken_out(text, cleaned):
    assert clean(text) == cleaned


def test_a_text_is_shortened_to_its_room():
    text = "a fairly long name of a class"
    short = shorten(text, 13, 80)
    assert short.endswith("...")
    assert text.startswith(short[:-3])
    assert text_width(short, 13) <= 80
    assert shorten(text, 13, 1000) == text


def test_no_room_at_all_leaves_dots():
    assert shorten("anything", 13, 0) == "..."


def test_words_are_wrapped_and_the_last_line_is_cut():
    text = "one two three four five six seven eight nine ten"
    lines = wrap(text, 13, 90, lines=3)
    assert len(lines) == 3
    assert all(text_width(line, 13) <= 90 for line in lines)
    assert lines[-1].endswith("...")
    assert wrap(text, 13, 1000, lines=3) == [text]
    assert wrap("", 13, 90, lines=2) == []


def test_a_word_without_room_is_cut_in_its_line():
    lines = wrap("x" * 100 + " y", 13, 60, lines=2)
    assert (lines[0][-3:], lines[1]) == ("...", "y")


def test_letters_that_no_font_has_are_spelled(monkeypatch):
    monkeypatch.setattr(drawing, "_FONTS", ())
    assert font_for("caf\xe9", 13)[1] == "cafe"
    assert font_for("\u732b", 13)[1] == "\\u732b"
    assert font_for("plain (1) #2", 13)[1] == "plain (1) #2"


def test_a_font_that_is_not_there_is_passed_over(monkeypatch):
    monkeypatch.setattr(drawing, "_FONTS", ("no such font.ttf",))
    assert font_for("\xe9", 13)[1] == "e"
