"""Images of records in a terminal, with their boxes."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image
from rich.color import Color
from rich.console import Console

from datum import Feature
from datum.cli.record_images import colour_of, find_boxes, pictures_of
from datum.cli.record_values import Cell
from datum.cli.terminal_images import (
    Box,
    Picture,
    ascii_lines,
    block_lines,
    choose_style,
    encode_iterm,
    encode_kitty,
    encode_sixel,
    show_pictures,
)

IMAGE = Feature("uint8", (None, None, 3), encoding="image")
MASK = Feature("uint8", (None, None, 1), encoding="image")


def png(array):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "png")
    return file.getvalue()


PHOTO = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)


def test_images_are_decoded_whatever_they_are_stored_as():
    cells = [Cell("image", IMAGE, png(PHOTO)), Cell("encoded", Feature("bytes"), png(PHOTO))]
    cells.append(Cell("pixels", Feature("uint8", (4, 6, 3)), PHOTO))
    for picture in pictures_of(cells):
        np.testing.assert_array_equal(picture.pixels, PHOTO)
    assert len(pictures_of(cells)) == 3


def test_masks_come_after_photos_in_the_colours_of_their_classes():
    ids = np.zeros((4, 6), np.uint8)
    ids[0], ids[1] = 1, 2
    mask, photo = pictures_of(
        [Cell("mask", MASK, png(ids), ["none", "cat", "dog"]), Cell("image", IMAGE, png(PHOTO))]
    )[::-1]
    assert not photo.is_exact
    assert mask.is_exact
    assert mask.pixels[0, 0].tolist() == list(colour_of(1))
    assert [name for _, name in mask.legend] == ["none", "cat", "dog"]


def test_ids_beside_a_photo_of_the_same_size_are_a_mask():
    grey = Cell("seg", Feature("uint8", (4, 6), encoding="raw"), np.eye(6, dtype=np.uint8)[:4])
    alone = Cell("image", Feature("uint8", (6, 6)), np.eye(6, dtype=np.uint8))
    photo = Cell("image", IMAGE, png(PHOTO))
    assert not pictures_of([alone])[0].is_exact
    labelled = Cell("label_image", grey.feature, np.zeros((4, 6, 1), np.uint8))
    assert pictures_of([photo, labelled])[1].is_exact


def test_numbers_of_any_type_become_brightness():
    unit = Cell("image", Feature("float32", (8, 8)), np.linspace(0, 1, 64).reshape(8, 8))
    wide = Cell("image", Feature("float64", (8, 8)), np.linspace(-3, 9, 64).reshape(8, 8))
    flat = Cell("image_floats", Feature("float32", (64,)), np.linspace(-0.5, 0.5, 64))
    deep = Cell("image", Feature("uint16", (8, 8, 1)), np.full((8, 8, 1), 40000, np.uint16))
    for cell in (unit, wide, flat, deep):
        (picture,) = pictures_of([cell])
        assert picture.pixels.shape == (8, 8, 3)
        assert picture.pixels.dtype == np.uint8
    (picture,) = pictures_of([unit])
    assert (picture.pixels.min(), picture.pixels.max()) == (0, 255)
    odd = np.full((8, 8), np.nan)
    assert pictures_of([Cell("image", Feature("float64", (8, 8)), odd)])[0].pixels.max() == 0


def test_the_first_frames_of_a_list_of_images_are_shown():
    frames = Cell("video", Feature("bytes", (None,)), [png(PHOTO)] * 9)
    assert len(pictures_of([frames])) == 4
    array = Cell("video", Feature("uint8", (None, 4, 6, 3)), np.stack([PHOTO] * 9))
    assert len(pictures_of([array])) == 4


def test_what_is_no_picture_is_passed_over():
    cells = [
        Cell("image", IMAGE, png(PHOTO)[:30]),
        Cell("image", IMAGE, None),
        Cell("matrix", Feature("float32", (20, 20)), np.zeros((20, 20), np.float32)),
        Cell("vector", Feature("float32", (64,)), np.zeros(64, np.float32)),
        Cell("boxes", Feature("float32", (None, 4)), np.zeros((3, 4), np.float32)),
        Cell("text", Feature("str"), "x"),
        Cell("nested", Feature("int64", (None, None)), [np.zeros(3), np.zeros(2)]),
        Cell("empty", Feature("uint8", (None, None, 3)), np.zeros((0, 0, 3), np.uint8)),
    ]
    assert pictures_of(cells) == []


def test_boxes_are_drawn_onto_the_first_photo():
    sides = {"ymin": 0.1, "xmin": 0.1, "ymax": 0.5, "xmax": 0.5}
    cells = [Cell("image", IMAGE, png(PHOTO))]
    cells += [Cell(name, Feature("float32", (None,)), np.float32([x])) for name, x in sides.items()]
    assert len(pictures_of(cells)[0].boxes) == 1


LIST = Feature("float32", (None,))


def colour(number):
    return (number, 0, 0)


def cell(name, value, names=(), told=None):
    return Cell(name, LIST, np.asarray(value), names, told)


def sides(*rows, prefix=""):
    names = ("ymin", "xmin", "ymax", "xmax")
    columns = np.array(rows, np.float32).T
    return [cell(prefix + name, column) for name, column in zip(names, columns, strict=True)]


def places(boxes):
    return [
        tuple(round(side, 3) for side in (box.ymin, box.xmin, box.ymax, box.xmax)) for box in boxes
    ]


def test_four_features_of_fractions_are_boxes_with_the_colours_of_their_classes():
    cells = [*sides((0.1, 0.2, 0.3, 0.4), (0, 0, 1, 1)), cell("labels", [1, 0], ["cat", "dog"])]
    boxes, legend = find_boxes(cells, (100, 200), colour)
    assert places(boxes) == [(0.1, 0.2, 0.3, 0.4), (0, 0, 1, 1)]
    assert [box.colour for box in boxes] == [(2, 0, 0), (1, 0, 0)]
    assert legend == [((2, 0, 0), "dog"), ((1, 0, 0), "cat")]


def test_pixels_are_divided_by_the_size_of_the_image():
    boxes, legend = find_boxes(sides((10, 20, 50, 100)), (100, 200), colour)
    assert places(boxes) == [(0.1, 0.1, 0.5, 0.5)]
    assert legend == []


@pytest.mark.parametrize(
    ("given", "told", "expected"),
    [
        ([[0.1, 0.2, 0.3, 0.4]], None, (0.1, 0.2, 0.3, 0.4)),
        ([[20, 10, 100, 50]], None, (0.1, 0.1, 0.5, 0.5)),  # xmin, ymin, xmax, ymax
        ([[150, 60, 20, 30]], None, (0.6, 0.75, 0.9, 0.85)),  # x, y, width, height
        ([[10, 20, 50, 100]], {"order": ["ymin", "xmin", "ymax", "xmax"]}, (0.1, 0.1, 0.5, 0.5)),
    ],
)
def test_one_feature_of_four_sides_is_read_in_the_usual_orders(given, told, expected):
    boxes, _ = find_boxes([cell("objects/bbox", given, told=told)], (100, 200), colour)
    assert places(boxes) == [expected]


def test_a_single_box_of_numbers_with_the_label_of_a_text_is_drawn():
    cells = [
        *(
            Cell(f"object/{side}", Feature("float32"), np.float32(value))
            for side, value in (("ymin", 0.1), ("xmin", 0.1), ("ymax", 0.5), ("xmax", 0.5))
        ),
        Cell("object/class/text", Feature("str"), "raccoon"),
    ]
    boxes, legend = find_boxes(cells, (10, 10), colour)
    assert len(boxes) == 1
    assert [name for _, name in legend] == ["raccoon"]


def test_what_lies_outside_is_left_out_and_the_rest_cut():
    boxes, _ = find_boxes(sides((-0.5, -0.5, -0.1, -0.1), (0.5, 0.5, 1.005, 1)), (9, 9), colour)
    assert places(boxes) == [(0.5, 0.5, 1, 1)]


def test_lists_of_steps_and_sides_that_do_not_agree_are_no_boxes():
    ragged = [Cell(side, LIST, [np.ones(2), np.ones(1)]) for side in ("ymin", "xmin", "ymax")]
    assert find_boxes(ragged, (9, 9), colour) == ([], [])
    unequal = [cell("ymin", [0]), cell("xmin", [0, 1]), cell("ymax", [1]), cell("xmax", [1])]
    assert find_boxes(unequal, (9, 9), colour) == ([], [])


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
