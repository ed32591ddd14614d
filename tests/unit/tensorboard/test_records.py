"""Records chosen for TensorBoard."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SchemaError, SourceError
from datum.tensorboard.drawing import colour_of
from datum.tensorboard.records import (
    ClassNames,
    Roles,
    Row,
    count_names,
    describe_label,
    find_roles,
    iterate_records,
    name_class,
)
from datum.tensorboard.write import MAX_BOXES, read_sample


def encode(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def images(count, height=5, width=6, channels=3):
    shape = count, height, width, channels
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape).astype(np.uint8)


def test_dicts_of_a_batched_dataset_become_single_records():
    pixels = images(5)
    data = tf.data.Dataset.from_tensor_slices({"image": pixels, "label": range(5)}).batch(2)
    rows = list(iterate_records(data))
    assert [int(row["label"]) for row in rows] == [0, 1, 2, 3, 4]
    assert np.array_equal(np.stack([row["image"] for row in rows]), pixels)


def test_single_records_stay_single_even_if_their_lengths_agree():
    record = {"image": images(1, 6, 6)[0], "mask": np.zeros((6, 6), np.uint8), "ids": range(6)}
    (row,) = iterate_records([record])
    assert row["image"].shape == (6, 6, 3)
    assert row["ids"].tolist() == [0, 1, 2, 3, 4, 5]


def test_what_is_called_image_tells_batches_from_records():
    record = {"image": images(1)[0], "activations": np.zeros((5, 6, 512))}
    (row,) = iterate_records([record])
    assert row["image"].shape == (5, 6, 3)
    named = {"photo": np.zeros((5, 6, 3)), "image": np.zeros((5, 6, 512))}
    assert len(list(iterate_records([named], image="photo"))) == 1
    assert len(list(iterate_records([named], image="image"))) == 5


def test_grey_images_without_a_channel_are_a_batch():
    rows = list(iterate_records([{"image": np.zeros((7, 8, 8)), "label": np.arange(7)}]))
    assert len(rows) == 7
    assert rows[3]["image"].shape == (8, 8)


def test_tuples_get_the_names_of_keras():
    inputs, targets = tf.data.Dataset.from_tensor_slices(images(2)), tf.data.Dataset.range(2)
    weights = tf.data.Dataset.from_tensors(0.5).repeat(2)
    (row, _) = iterate_records(tf.data.Dataset.zip(inputs, targets, weights))
    assert list(row.columns) == ["inputs", "targets", "weights"]
    assert (int(row["targets"]), float(row["weights"])) == (0, 0.5)


def test_dicts_in_tuples_keep_their_names():
    (row,) = iterate_records([({"image": images(1)[0], "a": 1}, {"a": 2, "b": 3})])
    assert list(row.columns) == ["image", "a", "targets/a", "b"]
    (row,) = iterate_records([((1, 2), 3)])
    assert list(row.columns) == ["inputs/0", "inputs/1", "targets"]


def test_dicts_in_dicts_get_paths():
    (row,) = iterate_records([{"image": images(1)[0], "objects": {"bbox": np.zeros((2, 4))}}])
    assert row["objects/bbox"].shape == (2, 4)


def test_a_bare_tensor_is_the_input():
    rows = list(iterate_records(tf.data.Dataset.from_tensor_slices(images(3)).batch(3)))
    assert [list(row.columns) for row in rows] == [["inputs"]] * 3


def test_a_batch_may_be_given_by_itself():
    assert len(list(iterate_records({"image": images(4), "label": np.arange(4)}))) == 4


def test_images_of_different_sizes_come_out_of_ragged_batches():
    sizes = [(3, 4), (5, 2), (1, 1)]
    data = tf.data.Dataset.from_generator(
        lambda: (
            {"image": np.full((*size, 3), 7, np.uint8), "ids": [1] * size[0]} for size in sizes
        ),
        output_signature={
            "image": tf.TensorSpec((None, None, 3), tf.uint8),
            "ids": tf.TensorSpec((None,), tf.int32),
        },
    ).ragged_batch(3)
    rows = list(iterate_records(data))
    assert [row["image"].shape for row in rows] == [(3, 4, 3), (5, 2, 3), (1, 1, 3)]
    assert all((row["image"] == 7).all() for row in rows)
    assert [len(row["ids"]) for row in rows] == [3, 5, 1]


def test_encoded_images_make_a_batch_too():
    files = [encode(one) for one in images(3)]
    data = tf.data.Dataset.from_tensor_slices({"image": files, "name": ["a", "b", "c"]})
    assert [row["image"] for row in iterate_records(data.batch(3))] == files
    assert [row["name"] for row in iterate_records(data)] == [b"a", b"b", b"c"]


def test_what_a_batch_marks_as_absent_is_none():
    batch = {"image": images(2), "label": [4, 0], "label_present": [True, False]}
    data = tf.data.Dataset.from_tensor_slices(batch)
    for given in (data, data.batch(2)):
        first, second = iterate_records(given)
        assert int(first["label"]) == 4
        assert second["label"] is None


@pytest.mark.parametrize("marker", [0, np.zeros(3, bool), np.zeros((0, 4)), "no"])
def test_what_only_sounds_like_a_mark_of_absence_is_ignored(marker):
    (row,) = iterate_records([{"image": images(1)[0], "label": 4, "label_present": marker}])
    assert int(row["label"]) == 4


def test_columns_of_datum_are_taken_apart():
    batch = {
        "image": BytesColumn.from_values([encode(one) for one in images(2)]),
        "ids": Ragged.from_rows([[1, 2], [3]]),
        "label": Masked(np.array([5, 6]), np.array([True, False])),
        "tags": Sparse(np.array([[0, 1], [1, 0], [1, 2]]), np.array([1, 1, 0]), (2, 4)),
    }
    first, second = iterate_records(batch)
    assert first["image"].startswith(b"\x89PNG")
    assert (first["ids"].tolist(), second["ids"].tolist()) == ([1, 2], [3])
    assert (int(first["label"]), second["label"]) == (5, None)
    assert (first["tags"].tolist(), second["tags"].tolist()) == ([1], [0])


def test_sparse_tensors_are_the_ids_of_what_is_set():
    sparse = tf.sparse.from_dense([[0, 1, 1], [0, 0, 0]])
    data = tf.data.Dataset.from_tensor_slices({"image": images(2), "tags": sparse})
    for given in (data, data.batch(2)):
        assert [row["tags"].tolist() for row in iterate_records(given)] == [[1, 2], []]


def test_features_that_a_record_lacks_are_none():
    rows = list(iterate_records([{"image": images(1)[0], "label": 1}, {"image": None}]))
    assert rows[1]["image"] is None
    assert rows[1]["label"] is None


@pytest.mark.parametrize("data", [5, None, object()])
def test_what_holds_no_records_is_told(data):
    with pytest.raises(SourceError, match=r"expected a tf.data.Dataset or an iterable of records"):
        list(iterate_records(data))


def test_names_of_splits_are_no_records():
    with pytest.raises(
        SourceError, match="(?s)element 0: expected a dict.*got 'train'.*pass a split"
    ):
        list(iterate_records(["train", "val"]))


def test_nothing_beyond_what_is_taken_is_read():
    def endless():
        number = 0
        while True:
            assert number < 3
            yield {"image": images(1)[0], "label": number}
            number += 1

    rows = iterate_records(endless())
    assert [int(next(rows)["label"]) for _ in range(3)] == [0, 1, 2]


PHOTO = np.zeros((6, 8, 3), np.uint8)
IDS = np.zeros((6, 8, 1), np.uint8)
SIDES = {side: np.array([0.1, 0.2], np.float32) for side in ("xmin", "xmax", "ymin", "ymax")}


def roles(_options=None, **features):
    return find_roles(Row(features), **(_options or {}))


def to_png(pixels, palette=None):
    image = Image.fromarray(pixels)
    if palette:
        image.putpalette(palette)
    file = io.BytesIO()
    image.save(file, "png")
    return file.getvalue()


def test_an_image_and_its_label():
    assert roles(label=3, image=PHOTO, filename="a.jpg") == Roles("image", ("label",))


@pytest.mark.parametrize(
    "value", [PHOTO, PHOTO.astype(np.float32), PHOTO[..., :1].astype(np.uint16), to_png(PHOTO)]
)
def test_the_only_image_is_found_whatever_its_name(value):
    assert roles(cam_left=value, size=(6, 8), vector=np.zeros(9)).image == "cam_left"


def test_of_several_images_the_one_of_that_name_is_taken():
    assert roles(depth=PHOTO, image=PHOTO).image == "image"
    assert roles(**{"depth": PHOTO, "image/encoded": to_png(PHOTO)}).image == "image/encoded"


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
    mask = to_png(IDS[..., 0], palette=[0, 0, 0, 9, 9, 9])
    assert roles(image=to_png(PHOTO), label=mask).mask == "label"
    assert roles(image=to_png(PHOTO), other=to_png(PHOTO)).mask is None


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


NAMES = ["cat", "dog", "cow"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.int64(1), "dog"),
        (np.array([2]), "cow"),
        (np.float32(1), "dog"),
        (np.float32(0.25), "0.25"),
        (np.uint8(9), "9"),
        (-1, "-1"),
        (b"a bird", "a bird"),
        ("\u732b", "\u732b"),
        (b"\xff", "\ufffd"),
        (np.array([0, 1, 0]), "dog"),
        (np.array([0.0, 0.0, 1.0]), "cow"),
        (np.array([True, False, True]), "cat, cow"),
        (np.array([0, 0, 0]), "none"),
        (np.array([0.9, 0.05, 0.05]), "cat 0.90, dog 0.05, cow 0.05"),
        (np.array([0.96, 0.02, 0.02]), "cat 0.96"),
        (np.array([2, 0]), "cow, cat"),
        (np.array([b"x", b"y"], object), "x, y"),
        (["x", "y"], "x, y"),
        (np.array(["x", "y"]), "x, y"),
        ([], "none"),
        (None, "no label"),
    ],
)
def test_labels_are_told_by_the_names_of_classes(value, words):
    assert describe_label(value, NAMES) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (7, "7"),
        (2**63, str(2**63)),
        (True, "true"),
        (np.bool_(False), "false"),
        (np.array([0, 1, 0, 0]), "1"),
        (np.array([1, 0]), "1, 0"),
        (np.array([12.5, -3.0]), "12.5, -3"),
        (np.float32("nan"), "nan"),
        (np.float32("inf"), "inf"),
        (np.array([np.nan, 0.5]), "nan, 0.5"),
        (np.zeros((2, 2)), "float64 of shape (2, 2)"),
        (10**400, "1" + "0" * 400),
        (np.array(["a", None], object), "a, None"),
    ],
)
def test_without_names_labels_are_numbers(value, words):
    assert describe_label(value) == words


def test_a_long_list_is_cut():
    assert describe_label(np.arange(5, 1000)) == "5, 6, 7, 8, 9, 10, 11, 12 and 987 more"
    assert describe_label(np.ones(20)).endswith(", 7 and 12 more")


def test_names_of_one_list_are_those_of_every_feature():
    names = ClassNames.read(NAMES)
    assert names.of("label") == names.of("mask") == NAMES
    assert ClassNames.read(None).of("label") is None
    assert ClassNames.read(np.array(["a", "b"])).of("label") == ["a", "b"]


def test_names_by_feature_are_found_and_so_is_the_metadata_of_a_dataset():
    metadata = {"label": {"class_names": NAMES}, "image": {"channels": [3, 3]}}
    for given in ({"label": NAMES}, metadata):
        names = ClassNames.read(given)
        assert names.of("label") == NAMES
        assert names.of("image") is None


def test_a_tuple_that_lost_the_name_gets_the_names_of_the_label():
    assert ClassNames.read({"breed": ["a"]}).of("targets") == ["a"]
    assert ClassNames.read({"label": ["a"], "mask": ["b"]}).of("targets") == ["a"]
    assert ClassNames.read({"one": ["a"], "two": ["b"]}).of("targets") is None


@pytest.mark.parametrize("given", ["cat", 5, {"label": "cat"}])
def test_names_that_are_no_list_are_told(given):
    with pytest.raises(SchemaError, match="`class_names.*: expected a list of names"):
        ClassNames.read(given)


def test_ids_start_at_zero_and_others_stay_numbers():
    assert [name_class(id, NAMES) for id in (-1, 0, 2, 3)] == ["-1", "cat", "cow", "3"]


def test_classes_are_counted_the_most_frequent_first():
    assert count_names(["b", "a", "b", "a", "c", "b"]) == "3 b, 2 a, 1 c"


IMAGE = np.full((6, 8, 3), 50, np.uint8)
BOX_SIDES = ("ymin", "xmin", "ymax", "xmax")


def read(roles, class_names=None, **features):
    return read_sample(Row(features), roles, ClassNames.read(class_names), number=7)


def boxes_of(*boxes, labels=None):
    roles = Roles("image", boxes=("bbox",), box_label="labels" if labels is not None else None)
    return read(roles, image=IMAGE, bbox=np.array(boxes), labels=labels)


def places(sample):
    return [(box.ymin, box.xmin, box.ymax, box.xmax) for box in sample.boxes]


def test_a_label_is_the_caption():
    assert read(Roles("image", ("label",)), ["cat", "dog"], image=IMAGE, label=1).caption == "dog"


def test_several_labels_are_told_by_their_names():
    roles = Roles("image", ("breed", "age"))
    sample = read(roles, {"breed": ["cat", "dog"]}, image=IMAGE, breed=0, age=4.5)
    assert sample.caption == "breed: cat, age: 4.5"


def test_boxes_of_four_features_are_put_together():
    sides = {"ymin": [0.1, 0.2], "xmin": [0.3, 0.4], "ymax": [0.5, 0.6], "xmax": [0.7, 0.8]}
    sample = read(Roles("image", boxes=BOX_SIDES), image=IMAGE, **sides)
    assert places(sample) == [(0.1, 0.3, 0.5, 0.7), (0.2, 0.4, 0.6, 0.8)]
    assert (sample.caption, sample.notes) == ("2 box", [])


def test_one_box_without_a_list_is_one():
    sides = dict(zip(BOX_SIDES, (0.1, 0.2, 0.3, 0.4), strict=True))
    assert len(read(Roles("image", boxes=BOX_SIDES), image=IMAGE, **sides).boxes) == 1
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
    features = {"image": IMAGE, "bbox": bbox, "labels": np.array([1, 2, 1])}
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
        sample = read(Roles("image", boxes=("bbox",)), image=IMAGE, bbox=given)
        assert (sample.caption, sample.boxes) == ("no boxes", [])


@pytest.mark.parametrize("bbox", [np.zeros((2, 3)), ["a"]])
def test_what_is_no_box_is_told(bbox):
    with pytest.raises(SchemaError, match="record 7, boxes 'bbox': expected ymin, xmin") as caught:
        read(Roles("image", boxes=("bbox",)), image=IMAGE, bbox=bbox)
    assert (caught.value.record, caught.value.feature) == (7, "bbox")


def test_sides_of_different_lengths_are_told():
    sides = {"ymin": [0.1], "xmin": [0.3, 0.4], "ymax": [0.5], "xmax": [0.7]}
    with pytest.raises(SchemaError, match=r"\(1,\), \(2,\), \(1,\), \(1,\)"):
        read(Roles("image", boxes=BOX_SIDES), image=IMAGE, **sides)


def test_a_mask_has_a_legend_of_its_classes_without_the_ground():
    mask = np.array([[0, 1], [3, 255]])
    sample = read(Roles("image", mask="mask"), {"mask": ["ground", "sky"]}, image=IMAGE, mask=mask)
    assert sample.mask.tolist() == mask.tolist()
    assert sample.legend == [
        (colour_of(1), "sky"),
        (colour_of(3), "3"),
        (colour_of(255), "255"),
    ]


def test_an_absent_mask_is_not_drawn():
    sample = read(Roles("image", mask="mask"), image=IMAGE, mask=None)
    assert (sample.mask, sample.legend) == (None, [])


@pytest.mark.parametrize("image", [None, b""])
def test_an_absent_image_is_none(image):
    features = {"image": image, "label": 3, "mask": np.zeros((2, 2), np.uint8)}
    sample = read(Roles("image", ("label",), mask="mask"), **features)
    assert (sample.pixels, sample.mask, sample.caption) == (None, None, "3")


def test_values_that_are_not_finite_are_noted():
    image = np.where(IMAGE == 50, np.nan, 0.5)
    assert read(Roles("image"), image=image).notes == ["144 values not finite"]


@pytest.mark.parametrize(("name", "value"), [("image", b"GIF89a"), ("mask", np.zeros((2, 2, 3)))])
def test_what_cannot_be_shown_is_told_with_its_record(name, value):
    features = {"image": IMAGE, "mask": np.zeros((6, 8), np.uint8), name: value}
    with pytest.raises(SourceError, match=f"record 7, feature '{name}': expected a"):
        read(Roles("image", mask="mask"), **features)
