"""Programs written for the older library of this name, with its imports and its calls."""

import functools
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import datum
from datum._paper.modules import MODULES
from datum.configs import (
    BucketConfigs,
    ConfigBase,
    DatasetConfigs,
    TFRReadConfigs,
    TFRWriteConfigs,
    config_base,
)
from datum.configs.default_configs import get_default_write_configs
from datum.encoder.encoder import Encoder, ImageEncoder, datum_name_to_encoder
from datum.export import export
from datum.export.export import export_to_tfrecord
from datum.generator import DatumGenerator, deserialize, image, text
from datum.generator.image import ClfDatumGenerator
from datum.problem import types
from datum.problem.problem import PROBLEM_PARAMS
from datum.reader import DatumParser, Reader
from datum.reader.dataset import Dataset
from datum.reader.loader import load
from datum.serializer.serializer import DatumSerializer, datum_to_tf_example, serialize_datum
from datum.utils.common_utils import AttrDict, is_string, load_module
from datum.writer.tfrecord_writer import TFRecordWriter

VOC = "<annotation><size><width>40</width><height>20</height></size>{}</annotation>"
OBJECT = """<object><name>{}</name><pose>Left</pose><truncated>1</truncated>
<difficult>0</difficult><bndbox><xmin>10</xmin><ymin>5</ymin><xmax>30</xmax><ymax>15</ymax></bndbox>
</object>"""
CLASSES = {"cat": 1, "dog": 2}


def save_image(path: Path, *, width: int = 40, height: int = 20) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def labelled(tmp_path):
    root = tmp_path / "clf"
    for split, names in {"train": ["a", "b"], "val": ["c"]}.items():
        for name in names:
            save_image(root / split / f"{name}.jpg")
        lines = [f"{name},{number},0.5,cat" for number, name in enumerate(names)]
        (root / f"{split}.csv").write_text("\n".join(["filename,number,weight,kind", *lines]))
    return root


@pytest.fixture
def detection(tmp_path):
    root = tmp_path / "det"
    for folder in ("Annotations", "ImageSets"):
        (root / folder).mkdir(parents=True)
    for name, objects in {"one": ["cat"], "two": ["Dog", "cat"]}.items():
        save_image(root / "JPEGImages" / f"{name}.jpg")
        boxes = "".join(OBJECT.format(kind) for kind in objects)
        (root / "Annotations" / f"{name}.xml").write_text(VOC.format(boxes))
    (root / "ImageSets" / "train.txt").write_text("one\ntwo\n")
    (root / "ImageSets" / "val.txt").write_text("two\n")
    (root / "classes.names").write_text("cat\ndog\n")
    return root


@pytest.fixture
def masks(tmp_path):
    root = tmp_path / "seg"
    for name in ("p", "q"):
        save_image(root / "JPEGImages" / f"{name}.jpg")
        mask = Image.fromarray(np.full((20, 40), 7, np.uint8), "P")
        mask.putpalette([9, 8, 7] * 256)
        (root / "SegmentationClass").mkdir(exist_ok=True)
        mask.save(root / "SegmentationClass" / f"{name}.png")
    (root / "train.txt").write_text("p\nq\n")
    return root


def det_generator(root):
    config = AttrDict(has_test_annotations=True, class_map=CLASSES)
    return image.DetDatumGenerator(str(root), gen_config=config)


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_the_table_has_what_it_lists(name):
    module = importlib.import_module(name)
    expected = sorted(one for found in MODULES[name].values() for one in found)
    assert module.__all__ == expected
    assert all(hasattr(module, one) for one in expected)


def test_older_names_bring_no_framework():
    code = (
        "import sys; from datum.generator.image import ClfDatumGenerator;"
        "from datum.serializer import DatumSerializer;"
        "from datum.writer.tfrecord_writer import TFRecordWriter;"
        "print([m for m in ('jax', 'tensorflow', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Settings.


class Answer(config_base.ConfigBase):
    x = config_base.create_config("x", int, "the answer", default_factory=lambda: 42)
    y = config_base.create_config(
        name="y", ty=float, docstring="a pie", default_factory=lambda: 3.1
    )


class Nested(config_base.ConfigBase):
    inner = config_base.create_config(name="inner", ty=Answer, docstring="another")


def test_a_program_makes_settings_of_its_own():
    assert Answer.x.__doc__ == "the answer"
    made = Answer()
    assert (made.x, made.y) == (42, 3.1)
    made.x = 0
    assert made.x == 0
    assert made != Answer()
    with pytest.raises(TypeError, match=r"Answer.x: expected .*int.*, got 3.1"):
        made.x = 3.1
    with pytest.raises(AttributeError, match="Answer has no setting 'z'"):
        made.z = 1
    with pytest.raises(AttributeError):
        _ = made.z


def test_settings_are_merged():
    first, second = Answer(), Answer()
    first.x, second.y = 0, 0.0
    merged = first.merge(second)
    assert (merged.x, merged.y) == (0, 0.0)
    assert Nested().merge(Nested()).inner is None
    one, two = Nested(), Nested()
    one.inner, two.inner = first, second
    assert config_base.merge_configs(one, two).inner == merged
    second.x = 1
    with pytest.raises(ValueError, match=r"Answer.x: expected one value, got 0 and 1"):
        first.merge(second)
    with pytest.raises(ValueError, match="got none"):
        config_base.merge_configs()
    for wrong in ([0], [first, one]):
        with pytest.raises(TypeError, match="settings of one class"):
            config_base.merge_configs(*wrong)


def test_the_settings_of_the_library_are_merged_too():
    first, second = DatasetConfigs(), DatasetConfigs()
    assert isinstance(first, ConfigBase)
    first.batch_size_train, second.seed = 4, 1
    second.bucket_op = BucketConfigs(bucket_boundaries=[3])
    merged = first.merge(second)
    assert (merged.batch_size_train, merged.seed) == (4, 1)
    assert merged.bucket_op.bucket_boundaries == [3]


def test_dicts_have_attributes():
    made = AttrDict({"a": {"b": [{"c": 1}]}}, d=2)
    assert made.a.b[0].c == 1
    made.a.e = 5
    made.update(a={"f": 6})
    assert made.to_dict() == {"a": {"b": [{"c": 1}], "e": 5, "f": 6}, "d": 2}
    assert made.deepcopy() == made
    del made.d
    assert not hasattr(made, "d")
    with pytest.raises(AttributeError):
        made.items = 1


# Generators.


def test_the_classification_generator_gives_paths_and_labels(labelled):
    expected = {"image": f"{labelled}/val/c.jpg", "number": 0, "weight": 0.5, "kind": "cat"}
    generator = ClfDatumGenerator(str(labelled))
    assert list(generator(split="val")) == [(0, expected)]
    assert list(generator(split="val", extension=".jpg", csv_path="val.csv")) == [(0, expected)]
    assert len(list(generator(split="x", image_dir="train", csv_path="train.csv"))) == 2


def test_the_detection_generator_gives_boxes(detection):
    (_, one), (key, two) = det_generator(detection)(split="train", set_dir="ImageSets")
    assert key == "two"
    assert list(one) == [
        *("image", "xmin", "xmax", "ymin", "ymax", "area", "pose", "labels"),
        *("is_truncated", "labels_difficult"),
    ]
    path = f"{detection}/JPEGImages/one.jpg"
    assert list(one.values()) == [
        *(path, [0.25], [0.75], [0.25], [0.75], [0.25], ["left"], [1], [True], [False])
    ]
    assert two["labels"] == [2, 1]
    plain = image.DetDatumGenerator(detection)
    assert [row["labels"] for _, row in plain(split="train")] == [[1], [2, 1]]
    config = AttrDict(has_test_annotations=False)
    bare = image.DetDatumGenerator(detection, gen_config=config)
    assert [row["labels"] for _, row in bare(split="val")] == [[]]


def test_the_generators_of_masks_and_texts(masks, tmp_path):
    rows = dict(image.SegDatumGenerator(str(masks))(split="train"))
    assert rows["q"]["label"] == f"{masks}/SegmentationClass/q.png"
    (tmp_path / "train.json").write_text(json.dumps({"1": {"text": "a", "label": {"n": "5"}}}))
    (tmp_path / "train_2.json").write_text(json.dumps({"2": {"text": "b", "label": {"n": 6}}}))
    texts = text.TextJsonDatumGenerator(tmp_path)
    assert list(texts(split="train")) == [
        ("1", {"text": "a", "n": 5}),
        ("2", {"text": "b", "n": 6}),
    ]
    assert len(list(texts(split="train", json_path="train_2.json"))) == 1


def test_generators_say_what_they_lack(tmp_path, labelled):
    with pytest.raises(ValueError, match="expected `path` to be a folder that exists"):
        ClfDatumGenerator(str(tmp_path / "none"))
    with pytest.raises(ValueError, match="expected the name of a split"):
        list(ClfDatumGenerator(labelled)())
    assert deserialize("clf") is ClfDatumGenerator
    with pytest.raises(ValueError, match="expected the name of a generator, got 'json'"):
        deserialize("json")


# Serializers.


def test_a_datum_is_serialized_as_an_example(labelled):
    path = str(labelled / "train" / "a.jpg")
    row = {"image": path, "many": [1, 2, 3], "one": True, "half": 0.5, "words": ["a", "b"]}
    example = tf.train.Example.FromString(DatumSerializer("image")(row))
    feature = example.features.feature
    assert feature["image"].bytes_list.value[0] == Path(path).read_bytes()
    assert list(feature["many"].int64_list.value) == [1, 2, 3]
    assert list(feature["one"].int64_list.value) == [1]
    assert list(feature["half"].float_list.value) == [0.5]
    assert list(feature["words"].bytes_list.value) == [b"a", b"b"]
    assert DatumSerializer("text")({"image": path}) == serialize_datum({"image": path})
    assert (
        datum_to_tf_example({"deep": np.ones((40, 5), np.uint8)})
        .features.feature["deep"]
        .int64_list.value
        == [1] * 200
    )
    with pytest.raises(ValueError, match="feature 'odd': expected numbers, texts or bytes"):
        serialize_datum({"odd": {1, 2}})


def test_strings_are_told_from_numbers():
    assert all(map(is_string, ["a", b"b", ["a", "b"], np.array(["a"])]))
    assert not any(map(is_string, [1, 0.5, [1, 2], ["a", 1], np.ones(2)]))


# Writing and loading.


def test_a_writer_adds_one_split_at_a_time(detection, tmp_path):
    out, boxes = str(tmp_path / "out"), ["xmin", "xmax", "pose", "labels"]
    Path(out).mkdir()
    for split, count in {"train": 2, "val": 1}.items():
        writer = TFRecordWriter(
            det_generator(detection),
            DatumSerializer("image"),
            out,
            split,
            count,
            sparse_features=boxes,
            image_set="ImageSets",
        )
        writer.create_records()
        assert writer.current_examples == count
    configs = DatasetConfigs()
    configs.batch_size_train = configs.batch_size_val = 1
    dataset = Dataset(out, configs)
    assert {name: len(dataset[name]) for name in dataset} == {"train": 2, "val": 1}
    batch = next(iter(dataset.val_fn("val", False)))
    assert batch["image"].shape == [1, 20, 40, 3]
    assert batch["labels"].numpy().tolist() == [[2, 1]]
    assert dataset.padded_shapes["image"] == [None] * 3
    assert dataset.padded_shapes["xmin"] == [None]
    with pytest.raises(datum.WriteError, match="without the split 'val', got one that has it"):
        writer.create_records()


def test_a_writer_first_reads_and_then_writes(labelled, tmp_path):
    generator, serializer = ClfDatumGenerator(labelled), DatumSerializer("image")
    writer = TFRecordWriter(generator, serializer, tmp_path / "out", "train", 3)
    writer.cache_records()
    assert writer.current_examples == 2
    with pytest.warns(UserWarning, match="expected 3 records, got 2; all of them were written"):
        writer.flush()
    assert len(datum.load(tmp_path / "out")["train"]) == 2


def test_a_parser_and_a_reader_give_dense_tensors(detection, masks, tmp_path):
    out = str(tmp_path / "out")
    TFRecordWriter(
        det_generator(detection), DatumSerializer("image"), out, "train"
    ).create_records()
    files = tf.data.Dataset.list_files(f"{out}/train-*.tfrecord")
    parsed = list(tf.data.TFRecordDataset(files).map(DatumParser(out).parse_fn))
    assert sorted(len(one["xmin"]) for one in parsed) == [1, 2]
    assert all(one["image"].shape == (20, 40, 3) for one in parsed)
    reader = Reader(out, TFRReadConfigs())
    for records in (reader.read("train", False), reader.read(["train"], True)[0]):
        assert sorted(one["labels"].numpy().tolist() for one in records) == [[1], [2, 1]]
    seg = image.SegDatumGenerator(masks)
    TFRecordWriter(seg, DatumSerializer("image"), tmp_path / "ids", "train").create_records()
    record = next(iter(Reader(tmp_path / "ids").read("train", False)))
    assert record["label"].shape == (20, 40, 1)
    assert set(record["label"].numpy().ravel()) == {7}  # the class, not the colour of the palette


def test_export_takes_the_default_configs_of_each_problem(labelled, detection, masks, tmp_path):
    names = detection / "classes.names"
    given = {types.IMAGE_CLF: labelled, types.IMAGE_DET: detection, types.IMAGE_SEG: masks}
    assert sorted(PROBLEM_PARAMS) == sorted(datum.problem.PROBLEMS)
    for problem, root in given.items():
        configs = get_default_write_configs(problem, names)
        mine = TFRWriteConfigs()
        mine.splits = {"train": {"num_examples": 2}}
        export.export_to_tfrecord(str(root), str(tmp_path / problem), problem, configs.merge(mine))
        dataset = load(str(tmp_path / problem))
        dataset.dataset_configs.batch_size_train = 2
        dataset.dataset_configs.use_datum_padding = True
        batch = next(iter(dataset.train_fn("train", False)))
        assert batch["image"].shape == [2, 20, 40, 3]
    assert set(batch["label"].numpy().ravel()) == {7}
    with pytest.raises(ValueError, match="image_det: expected `label_names_file`"):
        get_default_write_configs(types.IMAGE_DET)


class Halves(Encoder):
    def encode(self, inputs):
        return [value / self.kwargs["by"] for value in inputs]


class Rows(DatumGenerator):
    def generate_datum(self, **kwargs):
        for number in range(kwargs["num_examples"]):
            path = str(Path(self.path) / "train" / "a.jpg")
            words = ["x"] * (number + 1)
            yield number, {"image": path, "pair": [2, 4], "words": words, "scale": number}


class Serializer(DatumSerializer):
    def __call__(self, datum):
        return super().__call__({**datum, "scale": 10 * datum["scale"]})


def test_generators_encoders_and_serializers_are_subclassed(labelled, tmp_path):
    def encoders(datum, problem_type):
        return {**datum_name_to_encoder(datum, problem_type), "pair": Halves(by=2)}

    configs = TFRWriteConfigs()
    configs.generator = functools.partial(Rows, gen_config=None)
    configs.serializer = Serializer("image", datum_name_to_encoder_fn=encoders)
    configs.sparse_features = ["words"]
    configs.splits = {"train": {"num_examples": 3}}
    export_to_tfrecord(str(labelled), str(tmp_path / "out"), types.IMAGE_CLF, configs)
    rows = sorted(datum.load(tmp_path / "out")["train"], key=lambda row: row["scale"])
    assert [row["scale"] for row in rows] == [0, 10, 20]
    assert rows[1]["pair"].tolist() == [1.0, 2.0]
    assert [len(row["words"]) for row in rows] == [1, 2, 3]
    assert rows[0]["image"].shape == (20, 40, 3)
    assert isinstance(datum_name_to_encoder({"i": "a.png"}, "image")["i"], ImageEncoder)


def test_texts_may_be_sparse_features(detection, tmp_path):
    configs = TFRWriteConfigs(sparse_features=["xmin", "pose", "labels"])
    export_to_tfrecord(detection, tmp_path / "out", types.IMAGE_DET, configs, progress=False)
    assert datum.load(tmp_path / "out")["val"][0]["pose"] == ["Left", "Left"]


def test_configs_are_given_to_load(labelled, tmp_path):
    export_to_tfrecord(labelled, tmp_path / "out", types.IMAGE_CLF, progress=False)
    configs = DatasetConfigs(batch_size_train=2)
    dataset = load(str(tmp_path / "out"), configs)
    assert dataset.dataset_configs is configs
    assert next(iter(dataset.train_fn()))["number"].shape == [2]
    with pytest.raises(TypeError, match="expected a DatasetConfigs"):
        load(tmp_path / "out", {"batch_size_train": 2})


def test_a_file_of_settings_is_loaded(tmp_path):
    (tmp_path / "mine.py").write_text("cnf = {'splits': ['train']}")
    assert load_module("config", str(tmp_path / "mine.py")).cnf == {"splits": ["train"]}
    with pytest.raises(ValueError, match=r"expected a file of Python, `.py`"):
        load_module("config", tmp_path / "mine.txt")


def test_an_export_is_added_to_another(labelled, tmp_path):
    settings = {"train": {"num_examples": 1}}
    configs = TFRWriteConfigs(splits=settings)
    call = functools.partial(
        export_to_tfrecord, labelled, tmp_path / "out", types.IMAGE_CLF, configs, progress=False
    )
    call()
    with pytest.raises(datum.WriteError, match="overwrite=True replaces it, append=True adds"):
        call()
    call(append=True)
    assert len(datum.load(tmp_path / "out")["train"]) == 2
