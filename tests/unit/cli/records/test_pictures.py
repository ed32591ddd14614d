import io

import numpy as np
from PIL import Image

from datum import Feature
from datum.cli.record_images import colour_of, pictures_of
from datum.cli.record_values import Cell

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
