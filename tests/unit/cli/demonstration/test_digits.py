"""The digits of the demo, as files and as pictures."""

import io
import sys

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import datum
from datum.cli.demo_steps import draw_digits, read_digits, save_images

PIXELS = np.array([[[0, 255], [128, 0]], [[255, 255], [0, 0]]], np.uint8)


def console(*, colours: bool, encoding: str = "utf-8") -> Console:
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    system = "truecolor" if colours else None
    return Console(file=stream, force_terminal=colours, color_system=system, width=80)


def test_the_digits_are_those_of_scikit_learn():
    pixels, labels = read_digits()
    assert pixels.shape == (1797, 8, 8)
    assert (pixels.dtype, pixels.min(), pixels.max()) == (np.uint8, 0, 255)
    assert np.bincount(labels).min() > 170


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(datum.MissingDependencyError, match="hint: pip install scikit-learn"):
        read_digits()


def test_images_lie_in_folders_named_after_their_labels(tmp_path):
    saved = save_images(tmp_path, PIXELS, np.array([7, 3]))
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png"))
    assert files == ["3/0001.png", "7/0000.png"]
    assert [label for _, label in saved] == [7, 3]
    assert saved[1][0] == (tmp_path / "3/0001.png").read_bytes()
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "7/0000.png")), PIXELS[0])


def test_pictures_are_half_blocks_in_grey_where_there_are_colours():
    text = draw_digits(PIXELS, console(colours=True), width=20)
    assert text.plain == "▀▀  ▀▀  "
    assert str(text.spans[0].style) == "rgb(0,0,0) on rgb(128,128,128)"


def test_pictures_are_shades_without_colour():
    assert draw_digits(PIXELS, console(colours=False), width=20).plain == "  ██  ████\n▒▒"


def test_pictures_are_letters_where_there_is_only_ascii():
    text = draw_digits(PIXELS, console(colours=False, encoding="ascii"), width=20)
    assert text.plain == "  @@  @@@@\n=="


@pytest.mark.parametrize(("width", "count"), [(3, 1), (11, 1), (12, 2), (1000, 2)])
def test_there_are_as_many_pictures_as_fit(width, count):
    text = draw_digits(PIXELS, console(colours=False), width=width)
    assert text.plain.splitlines()[0].count("██") == [None, 1, 3][count]
