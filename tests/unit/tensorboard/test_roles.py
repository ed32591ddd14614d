"""Which feature is what, by names and by values."""

import io

import numpy as np
import pytest
from PIL import Image

from datum.errors import SchemaError
from datum.tensorboard.records import Roles, Row, find_roles

PHOTO = np.zeros((6, 8, 3), np.uint8)
IDS = np.zeros((6, 8, 1), np.uint8)
SIDES = {side: np.array([0.1, 0.2], np.float32) for side in ("xmin", "xmax", "ymin", "ymax")}


def roles(_options=None, **features):
    return find_roles(Row(features), **(_options or {}))


def encode(pixels, palette=None):
    image = Image.fromarray(pixels)
    if palette:
        image.putpalette(palette)
    file = io.BytesIO()
    image.save(file, "png")
    return file.getvalue()


def test_an_image_and_its_label():
    assert roles(label=3, image=PHOTO, filename="a.jpg") == Roles("image", ("label",))


@pytest.mark.parametrize(
    "value", [PHOTO, PHOTO.astype(np.float32), PHOTO[..., :1].astype(np.uint16), encode(PHOTO)]
)
def test_the_only_image_is_found_whatever_its_name(value):
    assert roles(cam_left=value, size=(6, 8), vector=np.zeros(9)).image == "cam_left"


def test_of_several_images_the_one_of_that_name_is_taken():
    assert roles(depth=PHOTO, image=PHOTO).image == "image"
    assert roles(**{"depth": PHOTO, "image/encoded": encode(PHOTO)}).image == "image/encoded"


def test_a_grey_image_without_a_channel_is_one_if_it_is_called_so():
    assert roles(image=np.zeros((8, 8)), table=np.zeros((8, 8))).image == "image"


def test_several_images_are_a_question():
    with pytest.raises(
        SchemaError, match="(?s)one feature that is an image, got 'a', 'b'.*image='a'"
    ):
        roles(a=PHOTO, b=PHOTO)


def test_no_image_is_told_with_what_there_is():
    with pytest.raises(SchemaError, match=r"'x' \(float32 of shape \(3,\)\), 'word' \(str\)"):
        roles(x=np.zeros(3, np.float32), word="cat")


@pytest.mark.parametrize("option", ["image", "label", "boxes", "mask"])
def test_a_misspelt_name_gets_the_nearest(option):
    with pytest.raises(SchemaError, match=f"(?s)`{option}`: .*'piktures'.*did you mean 'pictures'"):
        roles({option: "piktures"}, pictures=PHOTO, label=1)


def test_a_name_like_no_other_gets_all():
    with pytest.raises(SchemaError, match="there are 'image', 'label'"):
        roles({"label": "zzz"}, image=PHOTO, label=1, image_present=True)


def test_features_can_be_left_out():
    options = {"label": False, "boxes": False, "mask": False}
    assert roles(options, image=PHOTO, label=1, mask=IDS, **SIDES) == Roles("image")


def test_several_labels_can_be_named():
    found = roles({"label": ["breed", "age"]}, image=PHOTO, breed="cat", age=4, label=1)
    assert found.labels == ("breed", "age")


def test_labels_of_other_shapes_are_not_taken():
    assert roles(image=PHOTO, label=np.zeros((3, 4))).labels == ()
    assert roles(image=PHOTO, label=np.zeros(3)).labels == ("label",)


def test_four_features_are_boxes_and_labels_are_theirs():
    found = roles(image=PHOTO, labels=[1, 2], pose=["a", "b"], **SIDES)
    assert found == Roles("image", (), ("ymin", "xmin", "ymax", "xmax"), "labels")


def test_a_label_of_the_image_is_told_from_those_of_boxes():
    found = roles(image=PHOTO, label=1, labels=[1, 2], **SIDES)
    assert (found.labels, found.box_label) == (("label",), "labels")
    found = roles(image=PHOTO, label=np.array([0.0, 1.0]), labels=[1, 2], **SIDES)
    assert (found.labels, found.box_label) == (("label",), "labels")


@pytest.mark.parametrize("name", ["bbox", "boxes", "objects/bbox"])
def test_a_feature_of_four_sides_is_boxes(name):
    features = {name: np.zeros((3, 4)), "image/label": [4, 5, 6], "objects/label": [1, 2, 3]}
    found = roles(image=PHOTO, **features)
    assert found.boxes == (name,)
    assert found.box_label == ("objects/label" if "/" in name else "image/label")


def test_boxes_may_be_none_or_one():
    assert roles(image=PHOTO, bbox=np.zeros((0, 4))).boxes == ("bbox",)
    assert roles(image=PHOTO, bbox=np.zeros(4)).boxes == ("bbox",)
    assert roles(image=PHOTO, bbox=np.zeros((2, 5))).boxes == ()


def test_boxes_named_by_the_start_of_four_features():
    features = {f"image/object/bbox/{side}": value for side, value in SIDES.items()}
    wanted = tuple(f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax"))
    assert roles(image=PHOTO, **features).boxes == wanted
    assert roles({"boxes": "image/object/bbox"}, image=PHOTO, **features).boxes == wanted


@pytest.mark.parametrize("name", ["mask", "segmentation_mask", "label", "ground_truth"])
@pytest.mark.parametrize("value", [IDS, IDS[..., 0].astype(np.int32), IDS.astype(np.uint16)])
def test_ids_of_the_size_of_the_image_are_a_mask(name, value):
    found = roles(image=PHOTO, **{name: value})
    assert (found.mask, found.labels) == (name, ())


def test_encoded_masks_are_found_by_their_palette():
    mask = encode(IDS[..., 0], palette=[0, 0, 0, 9, 9, 9])
    assert roles(image=encode(PHOTO), label=mask).mask == "label"
    assert roles(image=encode(PHOTO), other=encode(PHOTO)).mask is None


def test_floats_are_a_mask_only_if_they_are_called_so():
    assert roles(image=PHOTO, mask=IDS.astype(np.float32)).mask == "mask"
    assert roles(image=PHOTO, depth=IDS.astype(np.float32)).mask is None


def test_ids_of_another_size_are_a_mask_only_if_named():
    other = np.zeros((3, 4, 1), np.uint8)
    assert roles(image=PHOTO, mask=other).mask is None
    assert roles({"mask": "mask"}, image=PHOTO, mask=other).mask == "mask"


def test_the_columns_of_presence_are_not_features():
    assert roles(label=1, label_present=True, image=PHOTO, image_present=True).labels == ("label",)


def test_an_absent_image_is_found_by_its_name():
    assert roles(image=None, label=1).image == "image"
