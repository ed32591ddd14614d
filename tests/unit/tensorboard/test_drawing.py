"""Pictures for TensorBoard."""

import io

import numpy as np
import pytest
from PIL import Image

from datum.images import ImageError
from datum.tensorboard import drawing
from datum.tensorboard.drawing import (
    MAX_SIDE,
    NOT_FINITE,
    Box,
    Pixels,
    Sample,
    Scale,
    clean,
    colour_of,
    draw_card,
    draw_sheet,
    fit_size,
    font_for,
    read_ids,
    shorten,
    text_width,
    wrap,
)

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


RANDOM = np.random.default_rng(5)
PHOTO = RANDOM.integers(0, 256, (10, 12, 3)).astype(np.uint8)
PHOTO[0, 0], PHOTO[0, 1] = 0, 255
CAFFE_MEAN = [103.939, 116.779, 123.68]


def seen(*images):
    """The images as they are shown together."""
    pixels = [Pixels.of(image) for image in images]
    scale = Scale.of(pixels)
    return [scale.apply(one) for one in pixels]


def test_bytes_are_shown_as_they_are():
    assert np.array_equal(seen(PHOTO)[0], PHOTO)


def test_grey_gets_three_channels_with_or_without_its_own():
    grey = PHOTO[..., 0]
    for given in (grey, grey[..., None]):
        assert np.array_equal(seen(given)[0], np.stack([grey] * 3, axis=-1))


def test_transparency_is_kept():
    image = np.dstack([PHOTO, PHOTO[..., 0]])
    assert np.array_equal(seen(image)[0], image)


@pytest.mark.parametrize(
    "given",
    [
        PHOTO / 255,
        PHOTO / np.float32(127.5) - 1,
        PHOTO.astype(np.float64),
        PHOTO.astype(np.int32),
        PHOTO.astype(np.uint16) * 257,
        (PHOTO[..., ::-1] - np.array(CAFFE_MEAN)).astype(np.float32),
        (PHOTO / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225],
        (PHOTO.astype(np.float32) - 1000) * 7,
    ],
    ids=["0..1", "-1..1", "0..255", "int32", "uint16", "caffe", "torch", "anything"],
)
def test_normalised_images_look_like_the_original(given):
    assert np.abs(seen(given)[0].astype(int) - PHOTO).max() <= 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_are_shown(dtype):
    import ml_dtypes

    dtype = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    assert np.abs(seen((PHOTO / 255).astype(dtype))[0].astype(int) - PHOTO).max() <= 2


def test_bools_are_black_and_white():
    assert seen(np.eye(4, dtype=bool))[0][..., 0].tolist() == (np.eye(4) * 255).tolist()


def test_twelve_bits_of_sixteen_are_seen():
    image = np.array([[0, 4095]], np.uint16)
    assert seen(image)[0][..., 0].tolist() == [[0, 255]]


def test_negative_integers_are_stretched():
    assert seen(np.array([[-100, -40, 100]], np.int16))[0][0, :, 0].tolist() == [0, 76, 255]


def test_images_share_one_scale_so_that_a_dark_one_stays_dark():
    dark, light = seen(np.full((2, 2), 0.1), np.full((2, 2), 0.8))
    assert (dark[0, 0, 0], light[0, 0, 0]) == (26, 204)
    half, _ = seen(np.full((2, 2), 0.5), np.full((2, 2), -0.9))
    assert half[0, 0, 0] == 191


def test_augmentation_may_leave_the_range_a_little():
    assert seen(np.array([[-0.2, 0.5, 1.2]]))[0][0, :, 0].tolist() == [0, 128, 255]


def test_one_value_everywhere_is_no_division_by_zero():
    assert seen(np.full((2, 2), 1e30))[0].max() == 0
    assert seen(np.full((2, 2), 0.0))[0].max() == 0


def test_values_that_are_not_finite_are_marked_and_counted():
    image = np.full((4, 4, 3), 0.5)
    image[1, 2] = np.nan
    image[3, 0, 1] = np.inf
    pixels = Pixels.of(image)
    assert pixels.not_finite == 4
    shown = Scale.of([pixels]).apply(pixels)
    assert tuple(shown[1, 2]) == tuple(shown[3, 0]) == NOT_FINITE
    assert tuple(shown[0, 0]) == (128, 128, 128)


def test_an_image_of_nothing_finite_is_all_marked():
    shown = seen(np.full((3, 3), np.nan))[0]
    assert (shown == NOT_FINITE).all()
    assert (seen(np.array([[1e300]]))[0] == NOT_FINITE).all()


def test_a_single_nan_is_still_seen_in_a_large_image():
    image = np.zeros((2000, 2000), np.float32)
    image[777, 888] = np.nan
    assert (seen(image)[0] == NOT_FINITE).all(-1).any()


def test_large_images_are_made_smaller_at_once():
    pixels = Pixels.of(np.full((1000, 2000, 3), 9, np.uint8))
    assert pixels.values.shape == (256, MAX_SIDE, 3)
    assert pixels.size == (1000, 2000)
    assert (pixels.values == 9).all()
    assert Pixels.of(np.zeros((2000, 1))).values.shape == (MAX_SIDE, 1, 1)


def test_encoded_images_are_decoded():
    file = io.BytesIO()
    Image.fromarray(PHOTO).save(file, "png")
    assert np.array_equal(Pixels.of(file.getvalue()).values, PHOTO)


def test_the_given_array_is_left_as_it_is():
    image = np.full((3, 3), np.nan, np.float32)
    seen(image)
    assert np.isnan(image).all()


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 4, 2)),
        np.zeros((0, 4, 3)),
        np.zeros(4),
        np.zeros((1, 4, 4, 3)),
        np.zeros((4, 4, 3), complex),
        np.full((4, 4, 3), "a"),
        b"not an image",
    ],
)
def test_what_is_no_image_is_told(image):
    with pytest.raises(ImageError, match="expected a"):
        Pixels.of(image)


@pytest.mark.parametrize(
    ("size", "side", "shown"),
    [
        ((8, 8), 512, (256, 256)),
        ((28, 14), 512, (252, 126)),
        ((129, 129), 512, (129, 129)),
        ((8, 8), 96, (96, 96)),
        ((512, 100), 512, (512, 100)),
        ((1024, 100), 512, (512, 50)),
        ((100000, 1), 512, (512, 1)),
    ],
)
def test_small_images_grow_by_whole_numbers_and_large_ones_shrink(size, side, shown):
    assert fit_size(size, side) == shown


def test_masks_become_ids():
    ids = np.array([[0, 1], [255, 7]], np.uint8)
    for given in (ids, ids[..., None], ids.astype(np.float32) + 0.2, ids.astype(np.int64)):
        assert read_ids(given).tolist() == ids.tolist()
    assert read_ids(np.eye(2, dtype=bool)).tolist() == [[1, 0], [0, 1]]
    assert read_ids(np.array([[np.nan, np.inf]])).tolist() == [[0, 2**53]]
    assert read_ids(np.array([[3, -1]], np.float16)).tolist() == [[3, -1]]


def test_the_ids_of_a_palette_are_kept():
    image = Image.fromarray(np.array([[0, 2]], np.uint8))
    image.putpalette([9, 9, 9, 8, 8, 8, 7, 7, 7])
    file = io.BytesIO()
    image.save(file, "png")
    assert read_ids(file.getvalue()).tolist() == [[0, 2]]


@pytest.mark.parametrize("mask", [np.zeros((2, 2, 3)), np.zeros(4), np.zeros((0, 2))])
def test_what_is_no_mask_is_told(mask):
    with pytest.raises(ImageError, match="expected a mask"):
        read_ids(mask)
