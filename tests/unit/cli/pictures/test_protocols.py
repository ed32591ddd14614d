import base64
import io
import re

import numpy as np
from PIL import Image

from datum.cli.terminal_images import encode_iterm, encode_kitty, encode_sixel

RNG = np.random.default_rng(0)
NOISE = RNG.integers(0, 256, (60, 80, 4), np.uint8)


def assert_png(data, pixels):
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data))), pixels)


def test_kitty_gets_a_png_in_chunks_and_is_asked_for_no_answer():
    text = encode_kitty(NOISE, columns=8, rows=3)
    commands = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", text)
    assert len(commands) > 1
    assert commands[0][0] == "a=T,f=100,q=2,c=8,r=3,m=1"
    assert [options for options, _ in commands[1:]] == ["m=1"] * (len(commands) - 2) + ["m=0"]
    assert all(len(data) <= 4096 for _, data in commands)
    assert_png(base64.b64decode("".join(data for _, data in commands)), NOISE)


def test_iterm_gets_a_png_with_its_size_in_cells():
    text = encode_iterm(NOISE, columns=8, rows=3)
    options, data = re.fullmatch(r"\x1b\]1337;File=([^:]*):([^\x07]*)\x07", text).groups()
    assert "inline=1" in options
    assert "width=8;height=3" in options
    assert_png(base64.b64decode(data), NOISE)


def decode_sixel(text):
    """The colours of a sixel picture, in hundredths; None where nothing was drawn."""
    head, body = re.fullmatch(r'\x1bP0;1;0q"1;1;(\d+;\d+)(.*)\x1b\\', text, re.DOTALL).groups()
    width, height = map(int, head.split(";"))
    palette = {
        int(number): tuple(map(int, rest.split(";")))
        for number, rest in re.findall(r"#(\d+);2;(\d+;\d+;\d+)", body)
    }
    body = re.sub(r"#\d+;2;\d+;\d+;\d+", "", body)
    picture = [[None] * width for _ in range(height)]
    top = left = colour = 0
    for move, number, count, letter in re.findall(r"([-$])|#(\d+)|(?:!(\d+))?([?-~])", body):
        if move:
            left, top = 0, top + 6 * (move == "-")
        elif number:
            colour = int(number)
        else:
            end = left + int(count or 1)
            for bit in range(6):
                if (ord(letter) - 63) >> bit & 1:
                    picture[top + bit][left:end] = [palette[colour]] * (end - left)
            left = end
    return picture


def test_sixel_holds_every_pixel_and_leaves_out_what_is_transparent():
    pixels = np.zeros((13, 20, 4), np.uint8)
    pixels[:, :10] = (255, 0, 0, 255)
    pixels[4:, 10:] = (0, 255, 0, 255)
    picture = decode_sixel(encode_sixel(pixels, columns=2, rows=1))
    assert picture[0][0] == (100, 0, 0)
    assert picture[12][19] == (0, 100, 0)
    assert picture[0][15] is None
    assert all(one == (100, 0, 0) for row in picture for one in row[:10])
