import io

import numpy as np
import pytest
from rich.console import Console

from datum.cli.terminal_images import Box, Picture, choose_style, show_pictures


def console(*, terminal=True, colours="truecolor", encoding="utf-8", width=80, **options):
    file = io.TextIOWrapper(io.BytesIO(), encoding)
    return Console(file=file, force_terminal=terminal, color_system=colours, width=width, **options)


def written(target):
    target.file.flush()
    return target.file.buffer.getvalue().decode()


@pytest.mark.parametrize(
    ("environ", "style"),
    [
        ({"TERM": "xterm-256color"}, "blocks"),
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "230800"}, "kitty"),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "210400"}, "blocks"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "mlterm"}, "sixel"),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, "blocks"),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/x"}, "blocks"),
    ],
)
def test_the_environment_tells_what_a_terminal_can(environ, style):
    assert choose_style(console(), environ=environ) == style


def test_without_colours_or_blocks_there_are_letters():
    assert choose_style(console(colours=None), environ={}) == "ascii"
    assert choose_style(console(colours="standard"), environ={}) == "ascii"
    assert choose_style(console(no_color=True), environ={}) == "ascii"
    assert choose_style(console(encoding="ascii"), environ={}) == "ascii"
    assert choose_style(console(colours="256"), environ={}) == "blocks"


def test_nothing_is_shown_where_no_terminal_is_unless_asked_for():
    plain = console(terminal=False, colours=None)
    assert choose_style(plain, environ={"TERM": "xterm-kitty"}) == "none"
    assert choose_style(plain, wanted="auto", environ={}) == "ascii"
    assert choose_style(plain, wanted="sixel") == "sixel"
    assert choose_style(console(), wanted="none") == "none"
    with pytest.raises(ValueError, match="expected one of auto, kitty"):
        choose_style(plain, wanted="ansi")


def test_pictures_stand_side_by_side_within_the_width():
    target = console(width=40, colours=None)
    white = np.full((300, 400, 3), 255, np.uint8)
    show_pictures(target, [Picture(white), Picture(white)], "ascii")
    lines = written(target).splitlines()
    assert max(map(len, lines)) <= 40
    first, second = lines[0].split()
    assert set(first) == set(second) == {"@"}
    assert lines[0].startswith("  @")


def test_small_pictures_are_enlarged_by_whole_numbers():
    target = console(colours=None)
    show_pictures(target, [Picture(np.full((4, 4, 3), 255, np.uint8))], "ascii")
    assert written(target).splitlines() == ["  " + "@" * 16] * 8


def test_a_tall_picture_is_limited_in_height():
    target = console(colours=None)
    show_pictures(target, [Picture(np.full((900, 90, 3), 255, np.uint8))], "ascii")
    assert len(written(target).splitlines()) == 16


def test_boxes_are_drawn_in_their_colour():
    target = console()
    black = np.zeros((20, 20, 3), np.uint8)
    box = Box(0.2, 0.2, 0.8, 0.8, (255, 0, 0))
    show_pictures(target, [Picture(black, [box])], "blocks")
    assert "38;2;255;0;0" in written(target)
    show_pictures(plain := console(), [Picture(black)], "blocks")
    assert "255;0;0" not in written(plain)


def test_classes_are_told_apart_without_colours():
    target = console(colours=None)
    halves = np.zeros((16, 16, 3), np.uint8)
    halves[:, :8], halves[:, 8:] = (230, 57, 70), (42, 157, 255)  # about equally bright
    show_pictures(target, [Picture(halves, is_exact=True)], "ascii")
    (line,) = set(written(target).splitlines())
    assert len(set(line.strip())) == 1  # one class is black, the other white


def test_none_writes_nothing():
    target = console()
    show_pictures(target, [Picture(np.zeros((4, 4, 3), np.uint8))], "none")
    show_pictures(target, [], "blocks")
    assert written(target) == ""
