import numpy as np
from rich.color import Color

from datum.cli.terminal_images import ascii_lines, block_lines


def rgba(*rows):
    return np.array(rows, np.uint8)


RED, BLUE, CLEAR = (255, 0, 0, 255), (0, 0, 255, 255), (9, 9, 9, 0)


def test_two_pixels_share_a_character_in_their_colours():
    (line,) = block_lines(rgba([RED, BLUE], [BLUE, BLUE]))
    assert line.plain == "▀▀"
    first = line.spans[0].style
    assert first.color == Color.from_rgb(255, 0, 0)
    assert first.bgcolor == Color.from_rgb(0, 0, 255)


def test_what_is_transparent_keeps_the_background():
    (line,) = block_lines(rgba([RED, CLEAR, CLEAR], [CLEAR, BLUE, CLEAR]))
    assert line.plain == "▀▄ "
    assert all(span.style.bgcolor is None for span in line.spans)


def test_a_last_row_without_a_partner_is_shown():
    assert [line.plain for line in block_lines(rgba([RED], [RED], [RED]))] == ["▀", "▀"]


def test_letters_get_fuller_with_brightness():
    greys = rgba([(level, level, level, 255) for level in range(0, 256, 5)])
    (line,) = ascii_lines(greys)
    shades = " .:-=+*#%@"
    places = [shades.index(letter) for letter in line.plain]
    assert places == sorted(places)
    assert set(places) == set(range(10))


def test_lines_end_where_the_picture_does():
    assert [line.plain for line in ascii_lines(rgba([RED, CLEAR], [RED, CLEAR]))] == [":"]


def test_the_nearest_of_few_colours_is_taken():
    pixels = rgba([(255, 0, 0, 255), (30, 30, 32, 255), (200, 200, 200, 255), CLEAR])
    (line,) = block_lines(pixels, has_all_colours=False)
    assert line.plain == "▀▀▀ "
    assert [span.style.color.number for span in line.spans[:3]] == [196, 234, 251]
