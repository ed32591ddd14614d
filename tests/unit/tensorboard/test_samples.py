"""Records read for drawing."""

import numpy as np
import pytest

from datum.errors import SchemaError, SourceError
from datum.tensorboard.drawing import colour_of
from datum.tensorboard.records import ClassNames, Roles, Row
from datum.tensorboard.write import MAX_BOXES, read_sample

PHOTO = np.full((6, 8, 3), 50, np.uint8)
SIDES = ("ymin", "xmin", "ymax", "xmax")


def read(roles, class_names=None, **features):
    return read_sample(Row(features), roles, ClassNames.read(class_names), number=7)


def boxes_of(*boxes, labels=None):
    roles = Roles("image", boxes=("bbox",), box_label="labels" if labels is not None else None)
    return read(roles, image=PHOTO, bbox=np.array(boxes), labels=labels)


def places(sample):
    return [(box.ymin, box.xmin, box.ymax, box.xmax) for box in sample.boxes]


def test_a_label_is_the_caption():
    assert read(Roles("image", ("label",)), ["cat", "dog"], image=PHOTO, label=1).caption == "dog"


def test_several_labels_are_told_by_their_names():
    roles = Roles("image", ("breed", "age"))
    sample = read(roles, {"breed": ["cat", "dog"]}, image=PHOTO, breed=0, age=4.5)
    assert sample.caption == "breed: cat, age: 4.5"


def test_boxes_of_four_features_are_put_together():
    sides = {"ymin": [0.1, 0.2], "xmin": [0.3, 0.4], "ymax": [0.5, 0.6], "xmax": [0.7, 0.8]}
    sample = read(Roles("image", boxes=SIDES), image=PHOTO, **sides)
    assert places(sample) == [(0.1, 0.3, 0.5, 0.7), (0.2, 0.4, 0.6, 0.8)]
    assert (sample.caption, sample.notes) == ("2 box", [])


def test_one_box_without_a_list_is_one():
    sides = dict(zip(SIDES, (0.1, 0.2, 0.3, 0.4), strict=True))
    assert len(read(Roles("image", boxes=SIDES), image=PHOTO, **sides).boxes) == 1
    assert places(boxes_of(0.1, 0.2, 0.3, 0.4)) == [(0.1, 0.2, 0.3, 0.4)]


def test_boxes_are_cut_at_the_border_and_turned_the_right_way():
    assert places(boxes_of([-0.5, 0.5, 0.5, 1.5])) == [(0, 0.5, 0.5, 1)]
    assert places(boxes_of([0.9, 0.8, 0.1, 0.2])) == [(0.1, 0.2, 0.9, 0.8)]
    assert places(boxes_of([0.5, 0.1, 0.5, 0.9])) == [(0.5, 0.1, 0.5, 0.9)]


@pytest.mark.parametrize(
    "box",
    [
        (1.5, 0.1, 1.8, 0.5),
        (30, 20, 100, 200),
        (0.1, -0.5, 0.5, -0.1),
        (np.nan, 0.1, 0.5, 0.5),
        (0.1, 0.1, np.inf, 0.5),
    ],
)
def test_boxes_outside_the_image_are_counted(box):
    sample = boxes_of(box, [0.1, 0.1, 0.2, 0.2])
    assert len(sample.boxes) == 1
    assert sample.notes == ["boxes outside the image: 1"]


def test_padding_is_no_box():
    sample = boxes_of([0.1, 0.1, 0.2, 0.2], [0, 0, 0, 0], [-1, -1, -1, -1])
    assert (len(sample.boxes), sample.notes) == (1, [])


def test_boxes_without_end_are_cut():
    sample = boxes_of(*[[0.1, 0.1, 0.2, 0.2]] * 5000)
    assert len(sample.boxes) == MAX_BOXES
    assert sample.notes == ["200 of 5,000 boxes"]


def test_boxes_have_the_names_and_colours_of_their_classes():
    roles = Roles("image", boxes=("bbox",), box_label="labels")
    bbox = np.array([[0.1, 0.1, 0.2, 0.2]] * 3)
    features = {"image": PHOTO, "bbox": bbox, "labels": np.array([1, 2, 1])}
    sample = read(roles, {"labels": ["background", "cat", "dog"]}, **features)
    assert [box.name for box in sample.boxes] == ["cat", "dog", "cat"]
    assert [box.colour for box in sample.boxes] == [colour_of(1), colour_of(2), colour_of(1)]
    assert sample.caption == "2 cat, 1 dog"


def test_names_as_labels_of_boxes_have_one_colour_each():
    box = [0.1, 0.1, 0.2, 0.2]
    for labels in (["a", "b", "a"], np.array([b"a", b"b", b"a"], object)):
        first, second, third = boxes_of(box, box, box, labels=labels).boxes
        assert first == third
        assert (first.name, second.name) == ("a", "b")
        assert first.colour != second.colour


def test_labels_that_do_not_fit_the_boxes_are_left_out():
    (box,) = boxes_of([0.1, 0.1, 0.2, 0.2], labels=[1, 2, 3]).boxes
    assert (box.name, box.colour) == ("", colour_of(None))


def test_no_boxes_are_told():
    for given in (np.zeros((0, 4)), np.zeros(0), None):
        sample = read(Roles("image", boxes=("bbox",)), image=PHOTO, bbox=given)
        assert (sample.caption, sample.boxes) == ("no boxes", [])


@pytest.mark.parametrize("bbox", [np.zeros((2, 3)), ["a"]])
def test_what_is_no_box_is_told(bbox):
    with pytest.raises(SchemaError, match="record 7, boxes 'bbox': expected ymin, xmin") as caught:
        read(Roles("image", boxes=("bbox",)), image=PHOTO, bbox=bbox)
    assert (caught.value.record, caught.value.feature) == (7, "bbox")


def test_sides_of_different_lengths_are_told():
    sides = {"ymin": [0.1], "xmin": [0.3, 0.4], "ymax": [0.5], "xmax": [0.7]}
    with pytest.raises(SchemaError, match=r"\(1,\), \(2,\), \(1,\), \(1,\)"):
        read(Roles("image", boxes=SIDES), image=PHOTO, **sides)


def test_a_mask_has_a_legend_of_its_classes_without_the_ground():
    mask = np.array([[0, 1], [3, 255]])
    sample = read(Roles("image", mask="mask"), {"mask": ["ground", "sky"]}, image=PHOTO, mask=mask)
    assert sample.mask.tolist() == mask.tolist()
    assert sample.legend == [
        (colour_of(1), "sky"),
        (colour_of(3), "3"),
        (colour_of(255), "255"),
    ]


def test_an_absent_mask_is_not_drawn():
    sample = read(Roles("image", mask="mask"), image=PHOTO, mask=None)
    assert (sample.mask, sample.legend) == (None, [])


@pytest.mark.parametrize("image", [None, b""])
def test_an_absent_image_is_none(image):
    features = {"image": image, "label": 3, "mask": np.zeros((2, 2), np.uint8)}
    sample = read(Roles("image", ("label",), mask="mask"), **features)
    assert (sample.pixels, sample.mask, sample.caption) == (None, None, "3")


def test_values_that_are_not_finite_are_noted():
    image = np.where(PHOTO == 50, np.nan, 0.5)
    assert read(Roles("image"), image=image).notes == ["144 values not finite"]


@pytest.mark.parametrize(("name", "value"), [("image", b"GIF89a"), ("mask", np.zeros((2, 2, 3)))])
def test_what_cannot_be_shown_is_told_with_its_record(name, value):
    features = {"image": PHOTO, "mask": np.zeros((6, 8), np.uint8), name: value}
    with pytest.raises(SourceError, match=f"record 7, feature '{name}': expected a"):
        read(Roles("image", mask="mask"), **features)
