from __future__ import annotations

import io
import json
import wave
import zlib

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image

import datum
from datum import Feature
from datum._read.foreign.tfds_features import parse_labels, read_features
from datum._read.tables import iterate_rows
from datum.format import RecordFile, parse
from tests.unit.read.foreign.tfds_cases import EQUAL, EXAMPLES, FEATURES, RANDOM, encoded, pixels
from tests.unit.read.foreign.tfds_written import read_tfds, write_tfds

f = tfds.features


def found_in(folder):
    return read_features(json.loads((folder / "features.json").read_text()))


def rows_in(folder, schema):
    rows = []
    for path in sorted(folder.glob("*.tfrecord-*")):
        batch = parse(RecordFile(path), schema)
        numbers = range(len(next(iter(batch.values()))))
        rows += iterate_rows(batch, schema, numbers, where=path.name)
    return rows


def as_lists(value):
    """Values of either reader as nested lists, with texts as TensorFlow has them."""
    if hasattr(value, "to_list"):
        return value.to_list()
    if isinstance(value, (list, np.ndarray)):
        return [as_lists(item) for item in value]
    if isinstance(value, str):
        return value.encode()
    return value.item() if isinstance(value, np.generic) else value


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write_tfds(tmp_path_factory.mktemp("tfds"), FEATURES, {"train": EXAMPLES})


@pytest.fixture(scope="module")
def theirs(written):
    return read_tfds(written, "train")


@pytest.fixture(scope="module")
def ours(written):
    return rows_in(written, found_in(written).schema)


def test_every_feature_is_found_by_the_name_that_nesting_gives_it(ours, theirs):
    assert len(ours) == len(theirs) == 3
    assert ours[0].keys() == theirs[0].keys()


@pytest.mark.parametrize("name", EQUAL)
def test_the_values_of_a_connector_are_those_that_tfds_reads(name, ours, theirs):
    parts = [part for part in theirs[0] if part == name or part.startswith(f"{name}/")]
    assert parts
    for part in parts:
        assert [as_lists(row[part]) for row in ours] == [as_lists(row[part]) for row in theirs]


def test_numbers_keep_the_dtype_that_tfds_gives_them(ours, theirs):
    for name, value in theirs[0].items():
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
            assert ours[0][name].dtype == value.dtype, name


# What the schema has in another form than TFDS.


def written_alone(tmp_path, connector, values):
    """The rows of a dataset of one feature "x", its records by TFDS, and what was found."""
    folder = write_tfds(tmp_path, {"x": connector}, {"train": [{"x": value} for value in values]})
    found = found_in(folder)
    assert not found.left_out
    return rows_in(folder, found.schema), folder, found


def test_float64_lists_are_float32_as_they_were_stored(tmp_path):
    rows, folder, found = written_alone(tmp_path, np.float64, [0.1, 2.0])
    assert dict(found.schema) == {"x": Feature("float32")}
    assert [row["x"] for row in rows] == [row["x"] for row in read_tfds(folder, "train")]
    assert rows[0]["x"] == np.float32(0.1)


def test_a_float_image_comes_as_the_bytes_of_its_floats(tmp_path):
    values = [RANDOM.normal(size=(2, 3, 1)).astype(np.float32) for _ in range(2)]
    rows, folder, found = written_alone(
        tmp_path, f.Image(shape=(None, None, 1), dtype=np.float32), values
    )
    assert dict(found.schema) == {"x": Feature("uint8", (None, None, 4), encoding="image")}
    holds = {"encoding": "bits", "dtype": "float32", "shape": [None, None, 1]}
    assert found.metadata == {"x": {"holds": holds}}
    for row, theirs, value in zip(rows, read_tfds(folder, "train"), values, strict=True):
        np.testing.assert_array_equal(row["x"].view(np.float32), theirs["x"])
        np.testing.assert_array_equal(theirs["x"], value)


@pytest.mark.parametrize(
    ("connector", "shape"),
    [
        (f.Video(shape=(None, 4, 5, 3)), (None, 4, 5, 3)),
        (f.Video(), (None, None, None, 3)),
        (f.Video(shape=(2, 4, 5, 3)), (2, 4, 5, 3)),
        (f.Sequence(f.Image(shape=(4, 5, 3))), (None, 4, 5, 3)),
        (f.Sequence(f.Image(shape=(4, 5, 3)), length=2), (2, 4, 5, 3)),
        (f.Dataset(f.Image(shape=(4, 5, 3))), (None, 4, 5, 3)),
    ],
)
def test_several_images_come_decoded(connector, shape, tmp_path):
    rows, folder, found = written_alone(tmp_path, connector, list(pixels(2, 2, 4, 5, 3)))
    assert dict(found.schema) == {"x": Feature("uint8", shape, encoding="image")}
    assert found.metadata == {}
    for row, theirs in zip(rows, read_tfds(folder, "train"), strict=True):
        np.testing.assert_array_equal(row["x"], theirs["x"])
        assert row["x"].dtype == np.uint8
    (batch,) = datum.load(folder).to_numpy("train", batch_size=2)
    for found_images, row in zip(batch["x"], rows, strict=True):
        np.testing.assert_array_equal(found_images, row["x"])


def test_images_in_nested_sequences_come_as_ragged_files(tmp_path):
    frames = list(pixels(3, 2, 2, 3))
    connector = f.Sequence(f.Sequence(f.Image(shape=(2, 2, 3))))
    rows, _, found = written_alone(tmp_path, connector, [[frames[:1], [], frames[1:]], []])
    keys = ("x/ragged_flat_values", "x/ragged_row_lengths_0")
    assert dict(found.schema) == {"x": Feature("bytes", (None, None), keys=keys)}
    assert [len(row) for row in rows[0]["x"]] == [1, 0, 2]
    assert len(rows[1]["x"]) == 0
    opened = Image.open(io.BytesIO(rows[0]["x"][2][1]))
    np.testing.assert_array_equal(np.asarray(opened), frames[2])


@pytest.mark.parametrize(
    ("connector", "value"),
    [
        (f.Image(shape=(2, 4, 5, 3)), pixels(4, 5, 3)),
        (f.Image(shape=(None, None, 2)), pixels(4, 5, 2)),
    ],
)
def test_images_that_have_no_three_usual_dimensions_stay_files(connector, value, tmp_path):
    file = encoded(value[..., 0], "GIF")
    rows, _, found = written_alone(tmp_path, connector, [file])
    assert dict(found.schema) == {"x": Feature("bytes")}
    assert found.metadata["x"]["holds"]["encoding"] == "image"
    assert rows == [{"x": file}]


def test_zlib_tensors_stay_compressed(tmp_path):
    values = [np.array([0.1, 1e300]), np.array([1.0, -1.0])]
    connector = f.Tensor(shape=(2,), dtype=np.float64, encoding="zlib")
    rows, folder, found = written_alone(tmp_path, connector, values)
    holds = {"encoding": "zlib", "dtype": "float64", "shape": [2]}
    assert dict(found.schema) == {"x": Feature("bytes")}
    assert found.metadata == {"x": {"holds": holds}}
    for row, theirs in zip(rows, read_tfds(folder, "train"), strict=True):
        np.testing.assert_array_equal(np.frombuffer(zlib.decompress(row["x"])), theirs["x"])


def test_the_shapes_of_zlib_tensors_are_a_feature_where_they_differ(tmp_path):
    values = [pixels(2, 3), pixels(1, 4)]
    connector = f.Tensor(shape=(None, None), dtype=np.uint8, encoding="zlib")
    rows, _, found = written_alone(tmp_path, connector, values)
    assert dict(found.schema) == {
        "x": Feature("bytes", keys="x/value"),
        "x/shape": Feature("int32", (2,)),
    }
    for row, value in zip(rows, values, strict=True):
        flat = np.frombuffer(zlib.decompress(row["x"]), np.uint8)
        np.testing.assert_array_equal(flat.reshape(row["x/shape"]), value)


def test_raw_tensors_in_sequences_are_byte_strings(tmp_path):
    connector = f.Sequence(f.Tensor(shape=(2,), dtype=np.int16, encoding="bytes"))
    rows, folder, found = written_alone(tmp_path, connector, [[[1, 2], [3, 4]], []])
    assert dict(found.schema) == {"x": Feature("bytes", (None,))}
    assert found.metadata["x"]["holds"] == {"encoding": "raw", "dtype": "int16", "shape": [2]}
    theirs = read_tfds(folder, "train")
    assert [np.frombuffer(item, np.int16).tolist() for item in rows[0]["x"]] == [[1, 2], [3, 4]]
    assert theirs[0]["x"].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("encoding", ["none", "bytes"])
def test_an_inner_dimension_that_differs_makes_a_flat_list(encoding, tmp_path):
    values = [np.arange(6, dtype=np.int64).reshape(3, 2), np.zeros((3, 1), np.int64)]
    connector = f.Tensor(shape=(3, None), dtype=np.int64, encoding=encoding)
    rows, folder, found = written_alone(tmp_path, connector, values)
    assert found.schema["x"].shape == (None,)
    assert found.metadata["x"]["holds"]["shape"] == [3, None]
    for row, theirs in zip(rows, read_tfds(folder, "train"), strict=True):
        np.testing.assert_array_equal(row["x"].reshape(3, -1), theirs["x"])


def test_audio_that_is_decoded_when_read_stays_a_file(tmp_path):
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", "NONE"))
        file.writeframes(bytes(range(10)))
    (tmp_path / "a.wav").write_bytes(stream.getvalue())
    connector = f.Audio(file_format="wav", sample_rate=8000, lazy_decode=True)
    rows, _, found = written_alone(tmp_path, connector, [tmp_path / "a.wav"])
    assert rows == [{"x": stream.getvalue()}]
    holds = {"encoding": "audio", "dtype": "int64", "shape": [None]}
    assert found.metadata == {"x": {"file_format": "wav", "sample_rate": 8000, "holds": holds}}


def test_optional_values_are_absent_where_tfds_fills_in_the_smallest_number(tmp_path):
    rows, folder, found = written_alone(tmp_path, f.Scalar(np.int64, optional=True), [5, None])
    assert dict(found.schema) == {"x": Feature("int64", optional=True)}
    assert rows == [{"x": 5}, {"x": None}]
    assert [row["x"] for row in read_tfds(folder, "train")] == [5, np.iinfo(np.int64).min]


@pytest.mark.parametrize(
    ("connector", "shape", "lengths"),
    [
        (f.Sequence(f.Sequence(np.int64, length=2)), (None, 2), 0),
        (f.Sequence(f.Sequence(np.int64), length=2), (None, None), 1),
        (f.Sequence(f.Sequence(np.int64, length=2), length=2), (2, 2), 0),
    ],
)
def test_nested_sequences_of_known_length_are_read_though_tfds_cannot(
    connector, shape, lengths, tmp_path
):
    rows, folder, found = written_alone(tmp_path, connector, [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    assert found.schema["x"].shape == shape
    assert len(found.schema["x"].keys) == 1 + lengths
    assert [as_lists(row["x"]) for row in rows] == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    with pytest.raises(Exception, match="ragged|indices|subscriptable"):
        read_tfds(folder, "train")


# What is said of features, and which cannot be read.


def test_names_and_numbers_of_classes_are_found(written):
    found = found_in(written)
    assert found.metadata["label"] == {"num_classes": 2}
    assert found.metadata["bare label"] == {"num_classes": 7}
    assert found.metadata["mask"] == {"num_classes": 2}
    assert found.metadata["list labels"] == {"num_classes": 2}
    assert found.metadata["box"] == {"bbox_format": "REL_YXYX"}
    assert found.metadata["audio"] == {"sample_rate": 16000}
    assert "image" not in found.metadata


def test_the_files_of_class_names_are_those_that_tfds_wrote(tmp_path):
    label = f.ClassLabel(names=["cat", "dog"])
    features = {
        "y": label,
        "a/b": {"c/d": label},
        "objects": f.Sequence({"id": label, "deep": f.Sequence({"id": label})}),
        "mask": f.LabeledImage(labels=["cat", "dog"]),
        "steps": f.Dataset({"action": label}),
    }
    tfds.features.FeaturesDict(features).save_config(tmp_path)
    files = found_in(tmp_path).label_files
    assert sorted(files) == [
        "a/b/c/d",
        "mask",
        "objects/deep/id",
        "objects/id",
        "steps/action",
        "y",
    ]
    for file in files.values():
        assert parse_labels((tmp_path / file).read_text()) == ["cat", "dog"]
    assert len(files) == len(list(tmp_path.glob("*.labels.txt")))


def test_what_the_author_said_of_a_feature_is_kept(tmp_path):
    doc = tfds.features.Documentation(desc="in metres", value_range="0 to 9")
    features = {"x": f.Scalar(np.int64, doc=doc), "list": f.Sequence(np.int64, doc="all of them")}
    tfds.features.FeaturesDict(features).save_config(tmp_path)
    assert found_in(tmp_path).metadata == {
        "x": {"description": "in metres", "value_range": "0 to 9"},
        "list": {"description": "all of them"},
    }


@pytest.mark.parametrize(
    ("connector", "why"),
    [
        (f.Sequence(f.Tensor(shape=(None,), dtype=np.int64)), "each of its own"),
        (f.Tensor(shape=(None, None), dtype=np.int64), "each of its own"),
        (f.Sequence(f.Sequence(f.Tensor(shape=(None,), dtype=np.int64))), "each of its own"),
        (f.Tensor(shape=(2,), dtype=np.complex64), "no exact list type"),
        (f.Sequence(f.Tensor(shape=(0,), dtype=np.int64)), "rows of no values"),
    ],
)
def test_what_cannot_be_read_is_left_out_with_a_reason(connector, why, tmp_path):
    tfds.features.FeaturesDict({"x": connector, "y": np.int64}).save_config(tmp_path)
    found = found_in(tmp_path)
    assert dict(found.schema) == {"y": Feature("int64")}
    assert list(found.left_out) == ["x"]
    assert "tensor_feature.Tensor" in found.left_out["x"]
    assert why in found.left_out["x"]


def test_connectors_that_others_made_are_left_out_with_their_names(tmp_path):
    class Image(f.Image):
        pass

    tfds.features.FeaturesDict({"x": {"y": f.Sequence(Image())}, "z": f.Text()}).save_config(
        tmp_path
    )
    found = found_in(tmp_path)
    assert dict(found.schema) == {"z": Feature("str")}
    assert list(found.left_out) == ["x/y"]
    assert "test_tfds_features.Image: expected a connector of TFDS" in found.left_out["x/y"]
