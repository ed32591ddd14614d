"""Files that let other libraries read the shards."""

import io
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image
from scipy.sparse import csr_matrix

import datum
from datum import Feature, Schema
from datum._write.sidecars import older_files
from datum.errors import SchemaError
from datum.format.manifest import ShardInfo, SplitInfo
from datum.schema import numpy_dtype
from tests.unit.read.foreign.tfds_written import read_tfds
from tests.unit.write.datasets import write


def mapping_of(**features):
    return json.loads(older_files(Schema(features), {})["datum_to_type_and_shape_mapping.json"])


def split(*shards):
    return SplitInfo(tuple(ShardInfo(name, records, 99, 0) for name, records in shards))


def entry(kind, shape, *, dense=True):
    return {"type": kind, "shape": shape, "dense": dense}


def test_the_shards_of_each_split_and_their_records_are_listed():
    splits = {
        "train": split(("train-00000-of-00002.tfrecord", 2), ("train-00001-of-00002.tfrecord", 1)),
        "val": split(("val-00000-of-00001.tfrecord", 4)),
    }
    files = older_files(Schema({}), splits)
    assert sorted(files) == ["datum_to_type_and_shape_mapping.json", "shard_info.json"]
    assert files["shard_info.json"] == (
        b'{"train": {"train-00000-of-00002.tfrecord": 2, "train-00001-of-00002.tfrecord": 1},'
        b' "val": {"val-00000-of-00001.tfrecord": 4}}'
    )


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Feature("int64"), entry("int", [])),
        (Feature("bool", (3,)), entry("int", [3])),
        (Feature("uint8", (2, 3)), entry("int", [2, 3])),
        (Feature("datetime64[us]"), entry("int", [])),
        (Feature("float32", (4,)), entry("float", [4])),
        (Feature("float16"), entry("float", [])),
        (Feature("str"), entry("string", [])),
        (Feature("bytes"), entry("string", [])),
    ],
)
def test_numbers_and_strings_have_their_type_and_shape(feature, expected):
    assert mapping_of(x=feature) == {"x": expected}


def test_images_have_the_rank_that_tells_colours_from_grey_values():
    assert mapping_of(
        photo=Feature("uint8", (281, 500, 3), encoding="image"),
        photos=Feature("uint8", (None, None, 3), encoding="image"),
        mask=Feature("uint8", (None, None, 1), encoding="image"),
    ) == {
        "photo": entry("string", [281, 500, 3]),
        "photos": entry("string", [-1, -1, 3]),
        "mask": entry("string", [-1, -1]),
    }


def test_what_differs_in_length_is_not_dense():
    assert mapping_of(
        boxes=Feature("float32", (None, 4)),
        ids=Feature("int64", (None,)),
        words=Feature("str", (None,)),
    ) == {
        "boxes": entry("float", [-1, 4], dense=False),
        "ids": entry("int", [-1], dense=False),
        "words": entry("string", [-1], dense=False),
    }


def test_several_strings_are_not_taken_for_one_or_for_an_image():
    assert mapping_of(
        words=Feature("str", (2,)), grid=Feature("bytes", (2, 2, 2)), one=Feature("str", (1,))
    ) == {
        "words": entry("string", [-1], dense=False),
        "grid": entry("string", [-1], dense=False),
        "one": entry("string", [-1], dense=False),
    }


def test_what_may_be_absent_is_not_dense():
    assert mapping_of(
        n=Feature("int64", optional=True),
        v=Feature("float32", (2, 3), optional=True),
        s=Feature("str", optional=True),
    ) == {
        "n": entry("int", [-1], dense=False),
        "v": entry("float", [-1, 3], dense=False),
        "s": entry("string", [], dense=False),
    }


def test_raw_tensors_are_strings_with_their_shape_beside_them_if_it_differs():
    assert mapping_of(same=Feature("float64", (2, 2)), other=Feature("float64", (None, None))) == {
        "same": entry("string", []),
        "other": entry("string", []),
        "other_shape": entry("int", [2]),
    }


def test_sparse_features_are_listed_under_the_keys_that_they_lie_under():
    assert mapping_of(
        words=Feature("int64", (1000,), encoding="sparse"),
        grid=Feature("float32", (9, 9), encoding="sparse"),
    ) == {
        "words_value": entry("int", [-1], dense=False),
        "words_index": entry("int", [-1], dense=False),
        "grid_value": entry("float", [-1], dense=False),
        "grid_index_0": entry("int", [-1], dense=False),
        "grid_index_1": entry("int", [-1], dense=False),
    }


def test_lists_of_lists_have_their_row_lengths_beside_them():
    assert mapping_of(tokens=Feature("int64", (None, None))) == {
        "tokens": entry("int", [-1], dense=False),
        "tokens_lengths_1": entry("int", [-1], dense=False),
    }


def test_a_feature_under_another_key_is_listed_under_that():
    assert list(mapping_of(x=Feature("int64", keys=("image/class",)))) == ["image/class"]


def test_a_sequence_is_refused_by_name():
    with pytest.raises(SchemaError, match="'steps': the older library cannot read a seq.*\nhint"):
        mapping_of(steps=Feature("int64", (None,), sequence=True))


PIXELS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)


def png_of(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def written(folder, rows, schema=None, **options):
    """Rows as Datum writes them, in their order, with the files for TFDS; and the report."""
    options = {"shuffle": False, "sidecars": ["tfds"], **options}
    return write(rows, folder, schema=schema, **options)


def read_back(folder, rows, schema, **options):
    report = written(folder, rows, schema, **options)
    return read_tfds(folder, "train"), report


def features_of(folder):
    return tfds.builder_from_directory(folder).info.features


SCALARS = {
    "bool": [True, False],
    "int8": [-128, 127],
    "uint8": [0, 255],
    "int16": [-(2**15), 2**15 - 1],
    "uint16": [0, 2**16 - 1],
    "int32": [-(2**31), 2**31 - 1],
    "uint32": [0, 2**32 - 1],
    "int64": [-(2**63), 2**63 - 1],
    "uint64": [0, 2**64 - 1],
    "float16": [-1.5, 65504.0],
    "bfloat16": [-1.5, 3.0],
    "float32": [np.pi, -np.inf],
    "float64": [np.pi, 1e300],
    "complex64": [1 + 2j, -3j],
    "complex128": [1 + 2j, -3j],
}


def value_of(dtype, shape):
    values = np.array(SCALARS[dtype], numpy_dtype(dtype))
    return values[np.indices([2] * len(shape)).sum(0) % 2] if shape else values[1]


def check_all(folder, schema):
    """Whether TFDS gives all features as Datum does, with types and shapes."""
    row = {name: value_of(feature.dtype, feature.shape) for name, feature in schema.items()}
    (record, _), report = read_back(folder, [row] * 2, schema)
    expected = datum.load(folder)["train"][0]
    assert record.keys() == expected.keys()
    for name, value in expected.items():
        found = np.asarray(record[name])
        np.testing.assert_array_equal(found, value, err_msg=name)
        assert (found.dtype, found.shape) == (np.asarray(value).dtype, np.shape(value)), name
    assert report.notes == ()


def test_numbers_of_each_type_and_shape_come_back(tmp_path):
    shapes = [(), (2,), (None,), (2, 2), (None, 2)]
    features = {f"{dtype} {shape}": Feature(dtype, shape) for dtype in SCALARS for shape in shapes}
    check_all(tmp_path / "out", Schema(features))


def test_raw_bytes_are_tensors_of_encoding_bytes(tmp_path):
    shapes = [(2,), (None,), (2, 2), (None, 2), (2, None)]
    features = {
        f"{dtype} {shape}": Feature(dtype, shape, encoding="raw")
        for dtype in SCALARS
        for shape in shapes
        if dtype != "uint32"  # which TensorFlow makes of no bytes
    }
    check_all(tmp_path / "out", Schema(features))


def test_texts_and_bytes_come_back(tmp_path):
    rows = [
        {"text": "ä", "texts": ["a", "b"], "bytes": b"\xff\0", "two": [b"c", b"d"]},
        {"text": "", "texts": [], "bytes": b"", "two": [b"", b"e"]},
    ]
    schema = Schema(
        {
            "text": Feature("str"),
            "texts": Feature("str", (None,)),
            "bytes": Feature("bytes"),
            "two": Feature("bytes", (2,)),
        }
    )
    records, report = read_back(tmp_path / "out", rows, schema)
    assert [record["text"].decode() for record in records] == ["ä", ""]
    assert [record["texts"].tolist() for record in records] == [[b"a", b"b"], []]
    assert [record["bytes"] for record in records] == [b"\xff\0", b""]
    assert [record["two"].tolist() for record in records] == [[b"c", b"d"], [b"", b"e"]]
    assert report.notes == ()
    assert isinstance(features_of(tmp_path / "out")["text"], tfds.features.Text)


def test_images_are_decoded_with_their_type_and_encoding(tmp_path):
    deep = (PIXELS.astype(np.uint16) * 3001)[..., :1]
    rows = [{"png": PIXELS, "grey": PIXELS[..., :1], "deep": deep}] * 2
    schema = Schema(
        {
            "png": Feature("uint8", (None, None, 3), encoding="image"),
            "grey": Feature("uint8", (None, None, 1), encoding="image"),
            "deep": Feature("uint16", (None, None, 1), encoding="image"),
        }
    )
    (record, _), report = read_back(tmp_path / "out", rows, schema)
    np.testing.assert_array_equal(record["png"], PIXELS)
    np.testing.assert_array_equal(record["grey"], PIXELS[..., :1])
    np.testing.assert_array_equal(record["deep"], deep)
    assert record["deep"].dtype == np.uint16
    assert report.notes == ()
    features = features_of(tmp_path / "out")
    assert features["png"].encoding_format == "png"
    assert features["png"].shape == (2, 3, 3)


def test_photos_of_class_folders_come_with_class_names(tmp_path, shared_data):
    out = tmp_path / "out"
    report = datum.write(shared_data / "clothing", out, sidecars=["tfds"], progress=False)
    assert report.notes == ()
    builder = tfds.builder_from_directory(out)
    ours = datum.load(out)
    label = builder.info.features["label"]
    assert label.names == ours.metadata["label"]["class_names"]
    splits = {name: info.num_examples for name, info in builder.info.splits.items()}
    assert splits == {name: info.records for name, info in ours.splits.items()}
    name = next(iter(splits))
    count = len(ours[f"{name}[:10%]"])
    records = list(tfds.as_numpy(builder.as_dataset(split=f"{name}[:10%]")))
    assert len(records) == count > 0
    for record, expected in zip(records, ours[name], strict=False):
        assert record["label"] == expected["label"]
        assert record["filename"].decode() == expected["filename"]
        assert record["image"].shape == expected["image"].shape
    pairs = list(tfds.as_numpy(builder.as_dataset(split=f"{name}[:3]", as_supervised=True)))
    assert [label for _, label in pairs] == [ours[name][at]["label"] for at in range(3)]


def test_shard_lengths_and_slices_are_those_of_the_splits(tmp_path):
    rows = {"train": [{"x": i} for i in range(25)], "val": [{"x": i} for i in range(5)]}
    out = tmp_path / "out"
    written(out, None, splits=rows, shards={"train": 4})
    builder = tfds.builder_from_directory(out)
    assert builder.info.splits["train"].shard_lengths == [
        shard.records for shard in datum.load(out).splits["train"].shards
    ]
    assert [record["x"] for record in read_tfds(out, "train[40%:80%]")] == list(range(10, 20))
    assert [record["x"] for record in read_tfds(out, "val+train[:1]")] == [0, 1, 2, 3, 4, 0]


def write_known(folder, rows, schema, **metadata):
    """A dataset with metadata of its features, as sources may give it."""
    write(rows, folder, schema=schema, shuffle=False)
    manifest = datum.format.Manifest.load(folder)
    replace(manifest, metadata=metadata).save(folder)
    return datum.write_sidecars(folder, ["tfds"])


def test_labels_in_lists_have_their_names(tmp_path):
    out = tmp_path / "out"
    rows = [{"tags": [1, 0]}, {"tags": []}]
    schema = Schema({"tags": Feature("int64", (None,))})
    assert write_known(out, rows, schema, tags={"class_names": ["a", "b"]}) == ()
    assert features_of(out)["tags"].feature.names == ["a", "b"]
    assert [record["tags"].tolist() for record in read_tfds(out, "train")] == [[1, 0], []]


@pytest.mark.parametrize("names", [["a", "a"], ["a", ""], ["a", "b\nc"], [" a", "b"]])
def test_class_names_that_lines_cannot_hold_are_noted(tmp_path, names):
    out = tmp_path / "out"
    schema = Schema({"tag": Feature("int64")})
    (note,) = write_known(out, [{"tag": 1}], schema, tag={"class_names": names})
    assert note == "tfds: 'tag' has no names of classes: names of TFDS are lines, each another"
    assert [record["tag"] for record in read_tfds(out, "train")] == [1]


def test_boxes_are_boxes_where_their_format_is_known(tmp_path):
    out = tmp_path / "out"
    boxes = np.array([[0, 0, 0.5, 1], [0.25, 0, 1, 1]], np.float32)
    schema = Schema({"box": Feature("float32", (4,)), "boxes": Feature("float32", (None, 4))})
    known = {"bbox_format": "REL_YXYX"}
    rows = [{"box": boxes[0], "boxes": boxes}]
    assert write_known(out, rows, schema, box=known, boxes=known) == ()
    assert isinstance(features_of(out)["box"], tfds.features.BBoxFeature)
    assert isinstance(features_of(out)["boxes"].feature, tfds.features.BBoxFeature)
    (record,) = read_tfds(out, "train")
    np.testing.assert_array_equal(record["box"], boxes[0])
    np.testing.assert_array_equal(record["boxes"], boxes)


def test_what_records_lack_comes_as_tfds_can(tmp_path):
    schema = Schema(
        {
            "int": Feature("int32", optional=True),
            "float": Feature("float32", (2,), optional=True),
            "text": Feature("str", optional=True),
            "list": Feature("int64", (None,), optional=True),
            "default": Feature("int64", default=5),
            "label": Feature("int64", optional=True),
            "raw": Feature("float64", (2,), optional=True),
            "photo": Feature("uint8", (None, None, 3), encoding="image", optional=True),
        }
    )
    full = {
        "int": 1,
        "float": [1, 2],
        "text": "t",
        "list": [1, 2],
        "default": 6,
        "label": 0,
        "raw": [0.1, 0.2],
        "photo": png_of(PIXELS),
    }
    out = tmp_path / "out"
    notes = write_known(out, [full, {}], schema, label={"class_names": ["a"]})
    assert list(notes) == [
        "tfds: 'int' comes as the smallest number where a record lacks it",
        "tfds: 'float' comes as the smallest number where a record lacks it",
        "tfds: 'list' comes empty where a record lacks it",
        "tfds: 'default' comes as the smallest number, or empty, where a record has the default",
        "tfds: 'label' comes as the smallest number where a record lacks it",
        "tfds: 'label' has no names of classes: a ClassLabel is in every record",
        "tfds: 'raw' comes as little-endian bytes: of bytes TFDS makes nothing optional",
        "tfds: 'photo' comes as the bytes of its file: TFDS has no optional images",
    ]
    there, lacking = read_tfds(out, "train")
    assert (there["int"], there["text"], there["default"], there["label"]) == (1, b"t", 6, 0)
    assert there["photo"] == full["photo"]
    assert np.frombuffer(there["raw"], "<f8").tolist() == [0.1, 0.2]
    assert there["float"].tolist() == [1, 2]
    assert lacking["int"] == np.iinfo(np.int32).min
    assert lacking["float"].tolist() == [np.finfo(np.float32).min] * 2
    assert (lacking["text"], lacking["photo"], lacking["raw"]) == (b"", b"", b"")
    assert lacking["list"].tolist() == []


def test_what_tfds_has_no_name_for_comes_as_it_is_stored(tmp_path):
    rows = [
        {
            "nested": [[1, 2], [], [3]],
            "sparse": csr_matrix([[0, 0.5, 0, 0, 1.5, 0]], dtype=np.float32),
            "pixels": np.arange(6, dtype=np.int16).reshape(2, 3),
            "when": np.datetime64("1970-01-02", "s"),
            "many": np.array([1, 2**32 - 1], np.uint32),
        }
    ]
    schema = Schema(
        {
            "nested": Feature("int64", (None, None)),
            "sparse": Feature("float32", (6,), encoding="sparse"),
            "pixels": Feature("int16", (None, None), encoding="raw"),
            "when": Feature("datetime64[s]"),
            "many": Feature("uint32", (2,), encoding="raw"),
        }
    )
    (record,), report = read_back(tmp_path / "out", rows, schema)
    assert record["nested"].tolist() == [1, 2, 3]
    assert record["nested_lengths_1"].tolist() == [2, 0, 1]
    assert record["sparse_index"].tolist() == [1, 4]
    assert record["sparse_value"].tolist() == [0.5, 1.5]
    assert record["pixels"] == rows[0]["pixels"].tobytes()
    assert record["pixels_shape"].tolist() == [2, 3]
    assert record["when"] == 24 * 60 * 60
    assert np.frombuffer(record["many"], "<u4").tolist() == [1, 2**32 - 1]
    assert list(report.notes) == [
        (
            "tfds: 'nested' comes as it is stored, values and row lengths: 'nested',"
            " 'nested_lengths_1'"
        ),
        (
            "tfds: 'sparse' comes as it is stored, values and where they are: 'sparse_value',"
            " 'sparse_index'"
        ),
        (
            "tfds: 'pixels' comes as it is stored, little-endian bytes and their shape: 'pixels',"
            " 'pixels_shape'"
        ),
        "tfds: 'when' comes as int64, the count of its unit, s",
        "tfds: 'many' comes as little-endian bytes: of bytes TFDS makes no uint32",
    ]


def test_sequences_are_left_out_and_the_context_is_read(tmp_path):
    schema = Schema({"n": Feature("int64"), "steps": Feature("float32", (None,), sequence=True)})
    (record,), report = read_back(tmp_path / "out", [{"n": 7, "steps": [1.0, 2.0]}], schema)
    assert record == {"n": 7}
    assert report.notes == (
        "tfds: 'steps' is left out: TFDS reads no feature lists of SequenceExample",
    )


def test_images_that_tensorflow_does_not_decode_come_as_their_files(tmp_path):
    Image.fromarray(PIXELS).save(tmp_path / "a.webp", lossless=True)
    (record,), report = read_back(tmp_path / "out", [{"photo": tmp_path / "a.webp"}], None)
    assert record["photo"] == (tmp_path / "a.webp").read_bytes()
    assert report.notes == (
        "tfds: 'photo' comes as the bytes of its file: TFDS does not decode webp",
    )


def test_an_append_keeps_the_sidecar_and_tfds_reads_all_records(tmp_path):
    out = tmp_path / "out"
    written(out, [{"x": i} for i in range(5)], shards=2)
    before = {path.name for path in out.iterdir()}
    for start in (5, 7):
        report = write([{"x": i} for i in range(start, start + 2)], out, append=True, shuffle=False)
        assert report.notes == (
            (
                "tfds: split 'train': its shards come from several writes, and TFDS expects one"
                " pattern of names: it finds them by links in tfds/"
            ),
        )
    assert [record["x"] for record in read_tfds(out, "train")] == list(range(9))
    assert len(list((out / "tfds").iterdir())) == 4
    assert [record["x"] for record in datum.load(out)["train"]] == list(range(9))
    written(out, [{"x": 3}], overwrite=True, shards=2)
    assert {path.name for path in out.iterdir()} == before
    assert [record["x"] for record in read_tfds(out, "train")] == [3]


def test_an_overwrite_without_the_sidecar_removes_it_and_nothing_else(tmp_path):
    out = tmp_path / "out"
    schema = Schema({"tag": Feature("int64")})
    write_known(out, [{"tag": 1}], schema, tag={"class_names": ["a", "b"]})
    assert (out / "tag.labels.txt").exists()
    (out / "notes.txt").write_text("mine")
    write([{"x": 1}], out, overwrite=True)
    names = {path.name for path in out.iterdir()}
    assert "notes.txt" in names
    assert not names & {"dataset_info.json", "features.json", "tag.labels.txt"}


def test_the_same_call_makes_the_same_bytes_in_any_folder(tmp_path):
    for name in ("a", "b"):
        written(tmp_path / name, [{"x": 1, "y": "t"}])
    for file in ("dataset_info.json", "features.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_reshard_writes_the_sidecar_too(tmp_path):
    write([{"x": i} for i in range(4)], tmp_path / "in", shuffle=False)
    datum.reshard(tmp_path / "in", tmp_path / "out", sidecars=["tfds"], progress=False)
    assert [record["x"] for record in read_tfds(tmp_path / "out", "train")] == [0, 1, 2, 3]


def test_a_plan_tells_what_tfds_would_read_otherwise():
    plan = datum.plan([{"x": [[1], [2, 3]]}], sidecars=["tfds"])
    assert any(warning.startswith("tfds: 'x' comes as it is stored") for warning in plan.warnings)


def test_a_dataset_that_tfds_described_is_left_alone(tmp_path, shared_data):
    folder = tmp_path / "1.0.0"
    shutil.copytree(shared_data / "rlds_bridge/1.0.0", folder)
    datum.load(folder).save_manifest()
    before = (folder / "dataset_info.json").read_bytes()
    with pytest.raises(datum.WriteError, match="this file is not from Datum"):
        datum.write_sidecars(folder, ["tfds"])
    assert (folder / "dataset_info.json").read_bytes() == before


def test_sidecars_are_for_datasets_of_datum(tmp_path):
    with pytest.raises(datum.WriteError, match=r"save_manifest\(\) writes one"):
        datum.write_sidecars(tmp_path, ["tfds"])


@pytest.mark.parametrize(
    ("sidecars", "error", "match"),
    [
        ("tfds", TypeError, r"hint: sidecars=\['tfds'\]"),
        (["tfd"], ValueError, "hint: did you mean 'tfds'?"),
        (3, TypeError, "list of names"),
    ],
)
def test_names_of_sidecars_are_checked(tmp_path, sidecars, error, match):
    with pytest.raises(error, match=match):
        write([{"x": 1}], tmp_path / "out", sidecars=sidecars)
    assert not (tmp_path / "out").exists()


def test_datum_reads_its_dataset_without_its_manifest_by_the_sidecar(tmp_path):
    out = tmp_path / "out"
    rows = [{"x": i, "text": f"t{i}", "f": [0.5 * i, 2.0]} for i in range(5)]
    written(out, rows, shards=2)
    (out / "datum.json").unlink()
    found = datum.load(out)
    assert [row["text"] for row in found["train"]] == [row["text"] for row in rows]
    assert [row["f"].tolist() for row in found["train"]] == [row["f"] for row in rows]
