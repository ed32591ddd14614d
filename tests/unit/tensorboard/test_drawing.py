"""Where boxes, masks and texts are in the pictures."""

import numpy as np
import pytest

from datum.tensorboard.drawing import Box, Pixels, Sample, Scale, colour_of, draw_card, draw_sheet

GREY = np.full((300, 400, 3), 100, np.uint8)
RED = (250, 10, 10)


def card(pixels=GREY, *, side=512, **sample):
    image = None if pixels is None else Pixels.of(pixels)
    return np.asarray(draw_card(Sample(image, **sample), Scale(), side))


def is_colour(pixels, colour):
    return (pixels == colour).all(-1)


def test_the_image_is_above_and_its_caption_below():
    picture = card(caption="a cat")
    assert (picture[:300] == GREY).all()
    assert picture.shape[1] == 400
    text = picture[300:]
    assert len(np.unique(text[:, :100])) > 10
    assert (text[:, 120:250] == text[0, 0]).all()


def test_the_size_before_is_told_at_the_right():
    wide, tall = card(caption="x"), card(np.full((800, 400, 3), 100, np.uint8), caption="x")
    assert len(np.unique(wide[300:, 330:])) > 10
    assert tall.shape[1] == 256


def test_small_images_are_enlarged_pixel_by_pixel():
    picture = card(np.array([[0, 255], [50, 90]], np.uint8))
    assert picture.shape[1] == 256
    assert set(np.unique(picture[:256])) == {0, 50, 90, 255}
    assert (picture[:128, 128:] == 255).all()


def test_a_box_is_drawn_along_its_first_and_last_pixels():
    picture = card(boxes=[Box(0.25, 0.125, 0.75, 0.5, RED)])[:300]
    rows, columns = np.nonzero(is_colour(picture, RED))
    assert (rows.min(), rows.max()) == (75, 224)
    assert (columns.min(), columns.max()) == (50, 199)
    assert (picture[77:223, 52:198] == 100).all()


def test_a_box_on_the_border_is_within_the_picture():
    picture = card(boxes=[Box(0, 0, 1, 1, RED)])[:300]
    frame = is_colour(picture, RED)
    assert frame[0].all()
    assert frame[-1].all()
    assert frame[:, 0].all()
    assert frame[:, -1].all()
    assert not frame[2:-2, 2:-2].any()


@pytest.mark.parametrize("place", [(0.5, 0.2, 0.5, 0.8), (0.5, 0.5, 0.5, 0.5), (1, 1, 1, 1)])
def test_a_box_without_area_is_still_seen(place):
    assert is_colour(card(boxes=[Box(*place, RED)])[:300], RED).any()


def test_the_name_of_a_box_is_written_above_it():
    plain = card(boxes=[Box(0.5, 0.25, 0.9, 0.75, RED)])
    named = card(boxes=[Box(0.5, 0.25, 0.9, 0.75, RED, "dog")])
    changed = (plain[:300] != named[:300]).any(-1)
    rows, columns = np.nonzero(changed)
    assert 130 <= rows.min() <= rows.max() <= 151
    assert 100 <= columns.min() <= columns.max() < 140
    assert len(np.unique(named[rows.min() : 150, 100 : columns.max()], axis=None)) > 5


def test_the_name_of_a_box_at_the_top_is_written_within():
    named = card(boxes=[Box(0, 0.9, 0.9, 1, RED, "a long name")])
    assert is_colour(named[:14], RED).sum() > 300


def test_where_names_would_hide_the_picture_there_is_a_legend():
    box = Box(0.1, 0.1, 0.3, 0.3, RED, "dog")
    few, many = card(boxes=[box]), card(boxes=[box] * 60)
    assert many.shape[0] > few.shape[0]
    assert is_colour(many[300:], RED).any()
    assert not is_colour(few[300:], RED).any()


def test_masks_are_blended_but_for_the_id_zero():
    ids = np.zeros((300, 400), np.int64)
    ids[100:200, 100:300] = 2
    legend = [(colour_of(2), "road")]
    picture = card(mask=ids, legend=legend)
    assert (picture[:99] == 100).all()
    blended = np.rint(0.55 * 100 + 0.45 * np.array(colour_of(2)))
    assert (picture[102:198, 102:298] == blended).all()
    assert tuple(picture[100, 150]) == colour_of(2)
    assert is_colour(picture[300:], colour_of(2)).sum() == 100


def test_a_mask_of_another_size_is_stretched():
    picture = card(mask=np.array([[0, 1], [0, 0]]))
    assert (picture[:300, :199] == 100).all()
    assert (picture[:148, 202:] != 100).any(-1).all()
    assert (picture[152:300] == 100).all()


def test_ids_out_of_reason_have_colours_too():
    ids = np.array([[-5, 2**60], [255, 1]])
    picture = card(mask=ids, legend=[(colour_of(int(id)), str(id)) for id in ids.flat])
    assert len(np.unique(picture[:300].reshape(-1, 3), axis=0)) >= 4


def test_a_legend_that_is_too_long_says_how_many_more():
    ids = np.arange(300 * 400).reshape(300, 400) % 40
    short = [(colour_of(id), f"class {id}") for id in range(12)]
    long = [(colour_of(id), f"class {id}") for id in range(40)]
    difference = card(mask=ids, legend=long).shape[0] - card(mask=ids, legend=short).shape[0]
    assert 0 <= difference <= 20


def test_transparent_pixels_show_a_chequered_ground():
    image = np.zeros((32, 32, 4), np.uint8)
    image[:, :16, 3] = 255
    picture = card(image)[:256]
    assert (picture[:, :128] == 0).all()
    assert set(np.unique(picture[:, 128:])) == {160, 220}


def test_an_absent_image_has_its_card():
    picture = card(None, caption="cat")
    assert picture.shape[1] == 128
    assert len(np.unique(picture[:128])) > 5


def test_texts_without_end_and_with_odd_letters_fit():
    caption = "\u732b\x00\n" * 5000 + "\u202e" + "\ud800"
    boxes = [Box(0.1, 0.1, 0.5, 0.5, RED, caption)]
    picture = card(caption=caption, boxes=boxes, notes=[caption], legend=[(RED, caption)])
    assert picture.shape[1] == 400
    assert picture.shape[0] < 500


def test_a_narrow_image_has_room_for_a_caption():
    picture = card(np.full((500, 3), 9, np.uint8), caption="cat")
    assert picture.shape[1] == 128


@pytest.mark.parametrize("count", [1, 2, 5, 16, 30])
def test_a_sheet_holds_every_card_once(count):
    colours = [(10 + number, 200 - number, 7) for number in range(count)]
    samples = [Sample(Pixels.of(np.full((40, 60, 3), one, np.uint8))) for one in colours]
    sheet = np.asarray(draw_sheet(samples, [Scale()] * count))
    areas = [int(is_colour(sheet, colour).sum()) for colour in colours]
    assert len(set(areas)) == 1
    assert areas[0] >= 240 * 160


def test_a_sheet_of_many_cards_has_small_ones():
    samples = [Sample(Pixels.of(np.full((500, 500), 90, np.uint8)), caption="x")] * 256
    assert max(draw_sheet(samples, [Scale()] * 256).size) < 3000


def test_a_card_in_a_sheet_is_drawn_smaller_with_text_of_the_same_size():
    small, large = card(caption="cat", side=200), card(caption="cat")
    assert small.shape[1] == 200
    assert (small[150:, :60] == large[300:, :60]).all()
