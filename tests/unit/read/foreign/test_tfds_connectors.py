"""What versions of TFDS wrote, as they wrote it, and what none of them did."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datum import Feature, SchemaError
from datum._read.foreign.tfds_features import MAX_DEPTH, read_features

MODULES = {
    "Audio": "audio_feature",
    "BBoxFeature": "bounding_boxes",
    "ClassLabel": "class_label_feature",
    "FeaturesDict": "features_dict",
    "Image": "image_feature",
    "LabeledImage": "labeled_image",
    "Sequence": "sequence_feature",
    "Tensor": "tensor_feature",
    "Text": "text_feature",
    "Translation": "translation_feature",
    "Video": "video_feature",
}


def class_name(kind: str) -> str:
    return f"tensorflow_datasets.core.features.{MODULES[kind]}.{kind}"


def plain(kind: str, content: Any = None) -> dict[str, Any]:
    """A node as 4.0 wrote it."""
    return {"type": class_name(kind), "content": {} if content is None else content}


def message(kind: str, field: str, content: Any = None) -> dict[str, Any]:
    """A node as 4.5 and later write it."""
    return {"pythonClassName": class_name(kind), field: {} if content is None else content}


def of(**nodes: Any) -> dict[str, Any]:
    return message("FeaturesDict", "featuresDict", {"features": nodes})


def tensor(**content: Any) -> dict[str, Any]:
    return message("Tensor", "tensor", {"dtype": "int64", "shape": {}, **content})


def test_plain_json_of_4_0_is_read():
    objects = {
        "label": plain("ClassLabel", {"num_classes": 20}),
        "bbox": plain("BBoxFeature"),
        "is_difficult": plain("Tensor", {"shape": [], "dtype": "bool", "encoding": "none"}),
    }
    image = {"shape": [None, None, 3], "dtype": "uint8", "encoding_format": None}
    video = {"shape": [None, 64, 64, 3], "encoding_format": "png", "ffmpeg_extra_args": []}
    sequence = {"feature": plain("FeaturesDict", objects), "length": None}
    found = read_features(
        plain(
            "FeaturesDict",
            {
                "image": plain("Image", image),
                "image/filename": plain("Text"),
                "objects": plain("Sequence", sequence),
                "pair": plain("Sequence", {"feature": plain("Text"), "length": 2}),
                "features": plain("Translation", {"languages": ["en", "FR"]}),
                "video": plain("Video", video),
            },
        )
    )
    assert dict(found.schema) == {
        "image": Feature("uint8", (None, None, 3), encoding="image"),
        "image/filename": Feature("str"),
        "objects/label": Feature("int64", (None,)),
        "objects/bbox": Feature("float32", (None, 4)),
        "objects/is_difficult": Feature("bool", (None,)),
        "pair": Feature("str", (2,)),
        "features/en": Feature("str"),
        "features/FR": Feature("str"),
        "video": Feature("uint8", (None, 64, 64, 3), encoding="image"),
    }
    assert found.metadata["objects/label"] == {"num_classes": 20}
    assert found.metadata["objects/bbox"] == {"bbox_format": "REL_YXYX"}
    assert found.label_files == {"objects/label": "objects-label.labels.txt"}


@pytest.mark.parametrize("is_text", [True, False])
def test_messages_within_plain_json_of_4_3_are_read(is_text):
    features = {
        "image": message("Image", "image", {"shape": {"dimensions": ["-1", "-1", "1"]}}),
        "label": message("ClassLabel", "classLabel", {"numClasses": "10"}),
    }
    content = {"features": features}
    found = read_features(
        {
            "type": class_name("FeaturesDict"),
            "content": json.dumps(content) if is_text else content,
            "proto_cls": "tensorflow_datasets.FeaturesDict",
        }
    )
    assert dict(found.schema) == {
        "image": Feature("uint8", (None, None, 1), encoding="image"),
        "label": Feature("int64"),
    }
    assert found.metadata == {"label": {"num_classes": 10}}


def test_fields_are_read_in_both_spellings_that_messages_have():
    node = {"python_class_name": class_name("ClassLabel"), "class_label": {"num_classes": "3"}}
    found = read_features(
        {
            "python_class_name": class_name("FeaturesDict"),
            "features_dict": {"features": {"myLabel": node}},
        }
    )
    assert dict(found.schema) == {"myLabel": Feature("int64")}
    assert found.metadata == {"myLabel": {"num_classes": 3}}


@pytest.mark.parametrize(
    "text",
    [
        plain("Text", {"use_encoder": True}),
        message("Text", "jsonFeature", {"json": '{"use_encoder": true}'}),
    ],
)
def test_text_that_was_encoded_comes_as_its_numbers(text):
    found = read_features(of(x=text))
    assert dict(found.schema) == {"x": Feature("int64", (None,))}
    assert found.metadata["x"]["holds"]["encoding"] == "text encoder"


def test_names_of_classes_in_the_settings_are_taken():
    found = read_features(of(x=plain("ClassLabel", {"names": ["cat", "dog"]})))
    assert found.metadata == {"x": {"class_names": ["cat", "dog"]}}


def test_images_without_settings_have_those_that_tfds_gives_them():
    found = read_features(of(x=message("Image", "image"), y=message("Video", "video")))
    assert found.schema["x"] == Feature("uint8", (None, None, 3), encoding="image")
    assert found.schema["y"] == Feature("uint8", (None, None, None, 3), encoding="image")


def test_an_image_of_no_channels_has_those_of_its_file():
    shape = {"dimensions": ["-1", "-1", "0"]}
    found = read_features(of(x=message("Image", "image", {"shape": shape})))
    assert found.schema["x"].shape == (None, None, None)


def test_a_length_that_a_message_leaves_out_is_zero():
    sequence = message("Sequence", "sequence", {"feature": tensor()})
    assert read_features(of(x=sequence)).schema["x"] == Feature("int64", (0,))


@pytest.mark.parametrize("name", ["Tensor", "my.Tensor", "tensorflow_datasets.New", "", "."])
def test_unknown_connectors_are_left_out_whatever_they_hold(name):
    found = read_features(of(x={"pythonClassName": name, "odd": 5}, y=tensor()))
    assert list(found.schema) == ["y"]
    assert found.left_out["x"].startswith(f"{name}: ")


@pytest.mark.parametrize("dtype", ["", "float8", "resource", "int64\0", "datetime64", "x" * 10**5])
def test_unknown_dtypes_are_left_out(dtype):
    found = read_features(of(x=tensor(dtype=dtype), y=tensor()))
    assert list(found.schema) == ["y"]
    assert "dtype" in found.left_out["x"]
    assert len(found.left_out["x"]) < 500


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        (None, "feature 'x': expected a connector as an object, got null"),
        ([], "expected a connector as an object, got a list"),
        ({}, "expected `python_class_name` as text, got null"),
        ({"pythonClassName": 5}, "expected `python_class_name` as text, got 5"),
        ({"type": ["Tensor"]}, "expected `type` as text, got a list"),
        (plain("Tensor", 5), "expected `content` as an object, got 5"),
        (plain("Tensor", "{}"), "expected `content` as an object, got '{}'"),
        ({"pythonClassName": class_name("Tensor")}, "settings of one connector, got none"),
        ({**tensor(), "image": {}}, "settings of one connector, got image, tensor"),
        (message("Tensor", "tensor", []), "expected `tensor` as an object, got a list"),
        (tensor(dtype=5), "expected `dtype` as text, got 5"),
        (tensor(shape=5), "expected `shape` as a list, got 5"),
        (tensor(shape={"dimensions": {}}), "expected `shape` as a list, got an object"),
        (tensor(shape={"dimensions": ["x"]}), "expected `shape` of integers, got 'x'"),
        (tensor(shape={"dimensions": ["٣"]}), "expected `shape` of integers"),
        (tensor(shape={"dimensions": ["9" * 5000]}), "expected `shape` of integers"),
        (tensor(shape={"dimensions": [10**100]}), "of integers, got a huge number"),
        (tensor(shape={"dimensions": [True]}), "expected `shape` of integers, got true"),
        (tensor(shape={"dimensions": [1.0]}), "expected `shape` of integers, got 1.0"),
        (tensor(shape={"dimensions": ["-2"]}), "expected a length of -1 or more, got -2"),
        (tensor(optional="yes"), "expected true or false as `optional`, got 'yes'"),
        (tensor(encoding=5), "expected `encoding` as text, got 5"),
        ({**tensor(), "description": 5}, "expected `description` as text, got 5"),
        (message("Sequence", "sequence"), "expected a connector as an object, got null"),
        (
            message("Sequence", "sequence", {"feature": tensor(), "length": "x"}),
            "expected `length` of integers",
        ),
        (message("FeaturesDict", "featuresDict", {"features": 5}), "expected `features` as an obj"),
        (message("Translation", "translation", {"languages": [5]}), "`languages` as text, got 5"),
        (message("LabeledImage", "image", {"label": 5}), "expected `label` as an object, got 5"),
        (message("Text", "jsonFeature", {"json": "{"}), "expected settings as JSON: line 1"),
        (message("Text", "jsonFeature", {"json": "[" * 10**5}), "expected settings as JSON"),
        (message("Text", "jsonFeature", {"json": "\ud800"}), "expected settings as JSON"),
        (message("Text", "jsonFeature", {"json": "[]"}), "expected `json` as an object"),
    ],
)
def test_what_no_version_wrote_is_a_typed_error_that_names_the_feature(node, problem):
    with pytest.raises(SchemaError) as caught:
        read_features(of(x=node))
    assert problem in str(caught.value)
    assert caught.value.feature == "x"
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("root", [{}, tensor(), plain("Text"), {"pythonClassName": "odd"}, 5, None])
def test_a_root_that_is_no_dict_of_features_is_a_typed_error(root):
    with pytest.raises(SchemaError):
        read_features(root)


def test_two_features_of_one_name_are_a_typed_error():
    node = of(**{"a/b": tensor(), "a": of(b=tensor())})
    with pytest.raises(SchemaError, match="one feature 'a/b', got two"):
        read_features(node)


def test_two_features_under_one_key_are_a_typed_error():
    value = tensor(shape={"dimensions": ["-1", "-1"]}, encoding="bytes")
    with pytest.raises(SchemaError, match="'a/value'"):
        read_features(of(**{"a": value, "a/value": tensor()}))


def nested(depth: int, wrap: Any) -> Any:
    node = tensor()
    for _ in range(depth):
        node = wrap(node)
    return node


@pytest.mark.parametrize(
    "wrap",
    [
        lambda node: of(a=node),
        lambda node: message("Sequence", "sequence", {"feature": node, "length": "-1"}),
    ],
)
def test_nesting_is_read_to_a_limit_and_refused_beyond(wrap):
    assert len(read_features(of(x=nested(MAX_DEPTH - 1, wrap))).schema) == 1
    for depth in (MAX_DEPTH, 10_000):
        with pytest.raises(SchemaError, match=f"at most {MAX_DEPTH} deep"):
            read_features(of(x=nested(depth, wrap)))


def test_a_huge_shape_is_left_out_and_allocates_nothing():
    shape = {"dimensions": ["1000000000000"] * 5}
    found = read_features(of(x=tensor(shape=shape, optional=True), y=tensor()))
    assert list(found.schema) == ["y"]
    assert "values" in found.left_out["x"]
