import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datum import problem
from datum._paper import export
from datum.configs import TFRWriteConfigs
from datum.errors import SchemaError, SourceError, SplitError
from datum.format import encode
from datum.schema import Feature, Schema

CLF, DET, SEG, TEXT = problem.PROBLEMS


class Written:
    """What was handed to the writer."""

    def __init__(self, source, out, **options):
        self.out = out
        self.options = options
        self.parts = source.parts()

    def rows(self, split="train"):
        part = self.parts[split]
        if hasattr(part, "read"):
            return list(part.read(np.arange(len(part))).data)
        return [row for block in part.blocks() for row in block.data]


@pytest.fixture
def export_to(monkeypatch):
    """Calls `export_to_tfrecord`, and gives what it asks the writer for."""
    monkeypatch.setattr(export, "write", Written)

    def call(root, kind, configs=None, **options):
        return export.export_to_tfrecord(root, "out", kind, configs, **options)

    return call


def save_image(path, *, size=(4, 3)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, "red").save(path)


@pytest.fixture
def labelled(tmp_path):
    """Three images of train and one of val, with tables."""
    for name in ("a", "b", "c"):
        save_image(tmp_path / "train" / f"{name}.jpg")
    save_image(tmp_path / "val" / "d.jpg")
    (tmp_path / "train.csv").write_text("filename,label\na,0\nb,1\nc,2\n")
    (tmp_path / "val.csv").write_text("filename,label\nd,1\n")
    return tmp_path


@pytest.fixture
def voc(tmp_path):
    for name in ("1", "2"):
        save_image(tmp_path / "JPEGImages" / f"{name}.jpg")
    folder = tmp_path / "Annotations"
    folder.mkdir()
    for name, boxes in (("1", 2), ("2", 0)):
        box = (
            "<object><name>dog</name><pose>Left</pose><truncated>0</truncated>"
            "<difficult>1</difficult><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax>"
            "<ymax>3</ymax></bndbox></object>"
        )
        size = "<size><width>4</width><height>3</height><depth>3</depth></size>"
        text = f"<annotation>{size}{box * boxes}</annotation>"
        (folder / f"{name}.xml").write_text(text)
    (tmp_path / "ImageSets").mkdir()
    (tmp_path / "ImageSets" / "train.txt").write_text("1\n2\n")
    (tmp_path / "classes.names").write_text("cat\ndog\n")
    return tmp_path


@pytest.fixture
def masks(tmp_path):
    save_image(tmp_path / "JPEGImages" / "1.jpg")
    (tmp_path / "SegmentationClass").mkdir()
    Image.new("L", (4, 3), 2).save(tmp_path / "SegmentationClass" / "1.png")
    (tmp_path / "train.txt").write_text("1\n")
    return tmp_path


@pytest.fixture
def texts(tmp_path):
    rows = {str(n): {"text": f"text {n}", "label": {"polarity": n}} for n in range(3)}
    (tmp_path / "train.json").write_text(json.dumps(rows))
    (tmp_path / "val.json").write_text(json.dumps({"9": rows["0"]}))
    return tmp_path


def test_splits_and_counts_are_those_of_the_settings(labelled, export_to):
    configs = TFRWriteConfigs()
    configs.splits = {"train": {"num_examples": 2}}
    written = export_to(labelled, CLF, configs)
    assert list(written.parts) == ["train"]
    assert [row["label"] for row in written.rows()] == [0, 1]
    assert written.rows()[0]["image"] == labelled / "train" / "a.jpg"


def test_without_settings_all_splits_are_written_whole(labelled, export_to):
    written = export_to(labelled, CLF)
    assert {split: len(part) for split, part in written.parts.items()} == {"train": 3, "val": 1}


def test_the_counts_of_the_settings_hold_where_splits_have_none(labelled, export_to):
    written = export_to(labelled, CLF, TFRWriteConfigs(num_train_examples=1))
    assert {split: len(part) for split, part in written.parts.items()} == {"train": 1, "val": 1}
    configs = TFRWriteConfigs(splits={"train": {}, "val": {}}, num_train_examples=2)
    assert len(export_to(labelled, CLF, configs).parts["train"]) == 2


def test_counts_that_contradict_each_other_are_refused(labelled, export_to):
    configs = TFRWriteConfigs(splits={"train": {"num_examples": 2}}, num_train_examples=3)
    with pytest.raises(SplitError, match="'train': .*num_examples=2 and num_train_examples=3"):
        export_to(labelled, CLF, configs)
    configs = TFRWriteConfigs(splits={"train": {}}, num_val_examples=3)
    with pytest.raises(SplitError, match="num_val_examples: expected a split 'val'.*got train"):
        export_to(labelled, CLF, configs)


def test_more_records_than_there_are_name_both_numbers(labelled, export_to):
    configs = TFRWriteConfigs(splits={"train": {"num_examples": 60}})
    with pytest.raises(SourceError, match="split 'train': expected 60 records, got 3"):
        export_to(labelled, CLF, configs)


@pytest.mark.parametrize("count", ["3", -1, 2.0])
def test_a_count_that_is_none_is_refused(labelled, export_to, count):
    configs = TFRWriteConfigs(splits={"train": {"num_examples": count}})
    with pytest.raises(SplitError, match="split 'train': expected a number of records"):
        export_to(labelled, CLF, configs)


def test_the_options_of_images_with_a_table(tmp_path, export_to):
    save_image(tmp_path / "photos" / "a.png")
    save_image(tmp_path / "photos" / "a.jpg")
    (tmp_path / "labels.csv").write_text("filename,label\na,7\n")
    options = {"extension": ".png", "image_dir": "photos", "csv_path": "labels.csv"}
    written = export_to(tmp_path, CLF, TFRWriteConfigs(splits={"train": options}))
    (row,) = written.rows()
    assert row["image"] == tmp_path / "photos" / "a.png"
    assert row["label"] == 7


def test_folders_of_classes_need_no_table(tmp_path, export_to):
    for split, name in (("train", "cat"), ("train", "dog"), ("held_out", "dog")):
        save_image(tmp_path / split / name / "1.jpg")
    written = export_to(tmp_path, CLF)
    assert set(written.parts) == {"train", "held_out"}
    splits = {"train": {}, "val": {"image_dir": "held_out", "num_examples": 1}}
    written = export_to(tmp_path, CLF, TFRWriteConfigs(splits=splits))
    assert [row["label"] for row in written.rows("train")] == [0, 1]
    assert [row["label"] for row in written.rows("val")] == [1]
    with pytest.raises(SourceError, match="split 'train': expected a table .*`extension`"):
        export_to(tmp_path, CLF, TFRWriteConfigs(splits={"train": {"extension": ".jpg"}}))


def test_a_table_that_is_not_there_is_named(labelled, export_to):
    with pytest.raises(SourceError, match="test.csv"):
        export_to(labelled, CLF, TFRWriteConfigs(splits={"test": {}}))


def test_the_options_of_detection(voc, export_to):
    (voc / "JPEGImages").rename(voc / "images")
    (voc / "Annotations").rename(voc / "boxes")
    (voc / "ImageSets").rename(voc / "lists")
    options = {"image_dir": "images", "annotation_dir": "boxes", "set_dir": "lists"}
    configs = TFRWriteConfigs(splits={"train": {**options, "extension": ".jpg"}})
    first, second = export_to(voc, DET, configs).rows()
    assert first["labels"] == [2, 2]
    assert first["xmin"] == [0.25, 0.25]
    assert second["labels"] == []


def test_detection_without_options(voc, export_to):
    written = export_to(voc, DET, TFRWriteConfigs(splits={"train": {"num_examples": 1}}))
    assert len(written.rows()) == 1


def test_the_options_of_segmentation(masks, export_to):
    (masks / "JPEGImages").rename(masks / "images")
    (masks / "SegmentationClass").rename(masks / "ids")
    (masks / "lists").mkdir()
    (masks / "train.txt").rename(masks / "lists" / "train.txt")
    options = {
        "set_dir": "lists",
        "image_dir": "images",
        "label_dir": "ids",
        "image_extension": ".jpg",
        "label_extension": ".png",
    }
    (row,) = export_to(masks, SEG, TFRWriteConfigs(splits={"train": options})).rows()
    assert row["image"] == masks / "images" / "1.jpg"
    assert row["label"] == masks / "ids" / "1.png"


def test_segmentation_without_options(masks, export_to):
    assert len(export_to(masks, SEG).rows()) == 1


def test_texts(texts, export_to):
    configs = TFRWriteConfigs(splits={"train": {"num_examples": 2}, "val": {}})
    written = export_to(texts, TEXT, configs)
    assert list(written.parts) == ["train", "val"]
    assert written.rows() == [{"text": f"text {n}", "polarity": n} for n in range(2)]


def test_the_options_of_texts(texts, export_to):
    (texts / "train.json").rename(texts / "first.json")
    splits = {"train": {"json_path": "first.json", "num_examples": 3}, "val": {}}
    written = export_to(texts, TEXT, TFRWriteConfigs(splits=splits))
    assert list(written.parts) == ["train", "val"]
    assert [row["polarity"] for row in written.rows("train")] == [0, 1, 2]
    assert [row["polarity"] for row in written.rows("val")] == [0]
    both = {"train": [["a", "x"]], "test": [["b", "y"]]}
    (texts / "both.json").write_text(json.dumps(both))
    written = export_to(texts, TEXT, TFRWriteConfigs(splits={"test": {"json_path": "both.json"}}))
    assert [row["text"] for row in written.rows("test")] == ["b"]
    with pytest.raises(SplitError, match="both.json: expected the records of 'val', got those of"):
        export_to(texts, TEXT, TFRWriteConfigs(splits={"val": {"json_path": "both.json"}}))


def test_all_texts_without_settings(texts, export_to):
    assert set(export_to(texts, TEXT).parts) == {"train", "val"}


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        (CLF, "extention", "extension"),
        (CLF, "num_example", "num_examples"),
        (CLF, "csvpath", "csv_path"),
        (DET, "anotation_dir", "annotation_dir"),
        (SEG, "label_extenson", "label_extension"),
        (TEXT, "nun_examples", "num_examples"),
    ],
)
def test_a_misspelt_option_names_the_nearest_right_one(tmp_path, export_to, kind, wrong, right):
    configs = TFRWriteConfigs(splits={"train": {wrong: 1}})
    with pytest.raises(
        SourceError, match=f"(?s)'train': {kind} has no .*{wrong}.*did you mean '{right}'"
    ):
        export_to(tmp_path, kind, configs)


def test_an_option_of_another_problem_lists_those_there_are(tmp_path, export_to):
    configs = TFRWriteConfigs(splits={"train": {"annotation_dir": "x"}})
    with pytest.raises(SourceError, match="there are extension, image_dir, csv_path, num_examples"):
        export_to(tmp_path, CLF, configs)


def test_a_misspelt_problem_names_the_nearest(tmp_path, export_to):
    with pytest.raises(SourceError, match="got 'image_cls'\nhint: did you mean 'image_clf'"):
        export_to(tmp_path, "image_cls")


def test_settings_of_another_kind_are_refused(tmp_path, export_to):
    with pytest.raises(TypeError, match="expected `write_configs` to be TFRWriteConfigs"):
        export_to(tmp_path, CLF, {"splits": {}})


def test_the_options_of_the_writer_are_handed_on(labelled, export_to):
    options = dict(
        schema={"label": Feature("uint8")},
        floats="float64",
        shuffle=False,
        seed=3,
        shard_bytes=4096,
        shards=2,
        records_per_shard=None,
        compression="gzip",
        workers=1,
        on_error="skip",
        overwrite=True,
        append=False,
        encoders={},
        max_side=64,
        quality=80,
        verify=True,
        sidecars=("label_map",),
        storage=None,
        progress=False,
    )
    written = export_to(labelled, CLF, **options)
    assert written.out == "out"
    assert written.options == options
    with pytest.raises(TypeError, match="unknown option `suffle`\nhint: did you mean `shuffle`"):
        export_to(labelled, CLF, suffle=True)


class Generator:
    """As the older library has them: made with the path, called for each split."""

    calls: list = []  # noqa: RUF012 - reset by each test

    def __init__(self, path):
        self.path = path

    def __call__(self, **options):
        type(self).calls.append((self.path, options))
        for number in range(3):
            yield f"{options['split']}{number}", {"n": number, "words": [0, number, 0]}


def test_a_generator_is_called_for_each_split_with_its_options(tmp_path, export_to):
    Generator.calls = []
    splits = {"train": {"num_examples": 2, "depth": 3}, "val": {}}
    configs = TFRWriteConfigs(generator=Generator, splits=splits)
    written = export_to(tmp_path, CLF, configs)
    assert [row["n"] for row in written.rows("train")] == [0, 1]
    assert [row["n"] for row in written.rows("val")] == [0, 1, 2]
    expected = {"split": "train", "num_examples": 2, "depth": 3}
    assert (tmp_path, expected) in Generator.calls
    assert (tmp_path, {"split": "val"}) in Generator.calls
    (block,) = written.parts["val"].blocks()
    assert list(block.keys) == ["val0", "val1", "val2"]


def test_a_generator_needs_to_be_told_the_splits(tmp_path, export_to):
    with pytest.raises(SplitError, match="expected `splits` to name those that the generator has"):
        export_to(tmp_path, CLF, TFRWriteConfigs(generator=Generator))


def test_a_generator_must_give_what_can_be_called(tmp_path, export_to):
    configs = TFRWriteConfigs(generator=lambda path: [1], splits={"train": {}})
    with pytest.raises(SourceError, match="must return a callable that accepts `split=`, got"):
        export_to(tmp_path, CLF, configs)


@pytest.mark.parametrize("ending", [".jpg", ".JPEG", ".png", ".bmp", ".webp"])
def test_a_generator_may_give_images_as_the_names_of_files(tmp_path, export_to, ending):
    file = tmp_path / f"x{ending}"
    save_image(file)
    gone = tmp_path / "gone.jpg"
    row = {"image": str(file), "gone": str(gone), "name": "x.jpg", "text": "a jpg", "n": 1}

    def generate(path):
        return lambda split: iter([("k", row)])

    configs = TFRWriteConfigs(generator=generate, splits={"train": {}})
    (found,) = export_to(tmp_path, CLF, configs).rows()
    assert found == {**row, "image": Path(file), "gone": Path(gone)}
    (found,) = export_to(tmp_path, TEXT, configs).rows()
    assert found == row


def test_a_serializer_makes_the_records(tmp_path, export_to):
    def serializer(row):
        return bytes(next(iter(encode([{"sum": sum(row["words"])}]))))

    configs = TFRWriteConfigs(
        generator=Generator, serializer=serializer, splits={"train": {"num_examples": 2}}
    )
    written = export_to(tmp_path, CLF, configs)
    assert written.parts["train"].schema == Schema({"sum": Feature("int64")})
    (block,) = written.parts["train"].blocks()
    assert block.data["sum"].tolist() == [0, 1]


def test_a_serializer_gets_images_as_the_names_of_files(labelled, export_to):
    seen = []

    def serializer(row):
        seen.append(row["image"])
        return bytes(next(iter(encode([{"x": 1}]))))

    configs = TFRWriteConfigs(serializer=serializer, splits={"val": {}})
    export_to(labelled, CLF, configs)
    assert seen == [str(labelled / "val" / "d.jpg")]


def test_a_serializer_gets_the_shape_of_sparse_features_of_rank_two(tmp_path, export_to):
    seen = []

    def generate(path):
        return lambda split: iter([("k", {"flat": [1, 2], "deep": [[1, 2, 3], [4, 5, 6]]})])

    def serializer(row):
        seen.append(row)
        return bytes(next(iter(encode([{"x": 1}]))))

    configs = TFRWriteConfigs(
        generator=generate,
        serializer=serializer,
        sparse_features=["flat", "deep", "none"],
        splits={"train": {}},
    )
    export_to(tmp_path, CLF, configs)
    assert seen == [{"flat": [1, 2], "deep": [[1, 2, 3], [4, 5, 6]], "deep_shape": [2, 3]}]


def test_sparse_features_are_made_of_dense_vectors(tmp_path, export_to):
    configs = TFRWriteConfigs(
        generator=Generator, sparse_features=["words"], splits={"train": {"num_examples": 2}}
    )
    written = export_to(tmp_path, CLF, configs)
    feature = Feature("int64", (3,), encoding="sparse")
    assert written.options["schema"] == {"words": feature}
    assert [row["words"].to_list() for row in written.rows()] == [[0, 0, 0], [0, 1, 0]]


def test_sparse_features_join_the_schema_that_was_given(tmp_path, export_to):
    configs = TFRWriteConfigs(generator=Generator, sparse_features=["words"], splits={"train": {}})
    sparse = Feature("int64", (3,), encoding="sparse")
    given = {"n": Feature("uint8")}
    found = export_to(tmp_path, CLF, configs, schema=given).options["schema"]
    assert found == {**given, "words": sparse}
    assert not isinstance(found, Schema)
    found = export_to(tmp_path, CLF, configs, schema=Schema(given)).options["schema"]
    assert found == Schema({**given, "words": sparse})


def test_a_misspelt_sparse_feature_names_the_nearest(tmp_path, export_to):
    configs = TFRWriteConfigs(generator=Generator, sparse_features=["word"], splits={"train": {}})
    with pytest.raises(SchemaError, match="got 'word'\nhint: did you mean 'words'"):
        export_to(tmp_path, CLF, configs)


def test_sparse_features_of_boxes_stay_lists_of_their_own_length(voc, export_to):
    written = export_to(voc, DET, TFRWriteConfigs(sparse_features=["xmin", "labels"]))
    assert written.options["schema"] is None
    assert written.rows()[0]["labels"] == [2, 2]
