import numpy as np
import pytest

from datum import Feature
from datum.cli.record_images import find_boxes
from datum.cli.record_values import Cell

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
