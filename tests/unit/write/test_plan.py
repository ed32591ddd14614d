"""`datum.plan`: what a write would do."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import datum
from datum import Feature, Schema, SourceError, SplitError, sources
from datum._write.preview import KnownSource, describe_layout, describe_origins, find_table_files
from datum._write.report import PlannedSplit, WritePlan, describe_split
from datum.sources import ImageTable, as_source
from tests.unit.images.samples import pixels, save
from tests.unit.write.datasets import digests, rows, write


def make(**splits):
    return WritePlan(
        "CSV table",
        splits,
        Schema({"x": Feature("int64"), "label": Feature("int64")}),
        ("x",),
        1000,
        {"label": {"class_names": list("abcdefg")}, "x": {"encoding": "cp1252"}},
        None,
        ("a.md",) * 7,
        ("look here",),
        KnownSource(dict),
    )


def test_sums_are_known_only_if_every_split_is():
    known = PlannedSplit("a.csv", 10, 10, 1000, 2)
    guessed = PlannedSplit("b.csv", None, 20, 2000, 2)
    unknown = PlannedSplit("c.csv", None, None, None, None)
    plan = make(a=known, b=guessed)
    assert (plan.records, plan.estimated_records, plan.estimated_bytes) == (None, 30, 3000)
    assert make(a=known).records == 10
    assert make(a=known, c=unknown).estimated_records is None


def test_a_split_is_told_in_one_line():
    assert describe_split(PlannedSplit("a.csv", 1, 1, 1000, 1)) == (
        "1 record, 1 shard, about 1.0 kB, from a.csv"
    )
    assert describe_split(PlannedSplit("", None, 1200, None, 3)) == "about 1,200 records, 3 shards"
    assert describe_split(PlannedSplit("", None, None, None, None)) == "records not counted yet"


def test_the_size_of_a_shard_is_that_of_all_by_their_number():
    assert PlannedSplit("", 10, 10, 1000, 4).shard_bytes == 250
    assert PlannedSplit("", None, None, None, 4).shard_bytes is None


def test_a_plan_shows_marks_classes_files_and_warnings():
    text = str(make(train=PlannedSplit("a.csv", 10, 10, 1000, 2)))
    assert "x      'int64' *" in text
    assert "label  'int64', 7 classes: a, b, c, d, e, ..." in text
    assert "skipped 7 files without records: a.md, a.md, a.md, a.md, a.md, ..." in text
    assert text.endswith("warning: look here")


def test_json_holds_plain_values():
    found = make(train=PlannedSplit("a.csv", 10, 10, 1000, 2)).to_json()
    assert found["class_names"] == {"label": list("abcdefg")}
    assert found["splits"]["train"] == {
        "origin": "a.csv",
        "records": 10,
        "estimated_records": 10,
        "estimated_bytes": 1000,
        "shards": 2,
        "shard_bytes": 500,
    }
    assert found["guessed"] == ["x"]


def images(root, *names):
    for name in names:
        save(root / name, pixels(4, 6), "PNG")
    return root


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "in").mkdir()
    for name, start in {"train": 0, "val": 100}.items():
        text = "".join(f"{i},name {i}\n" for i in range(start, start + 20))
        (tmp_path / "in" / f"{name}.csv").write_text("number,name\n" + text)
    return tmp_path / "in"


def test_class_folders_are_told_with_splits_and_classes(tmp_path):
    root = images(tmp_path / "in", "train/cat/1.png", "train/dog/2.png", "val/cat/3.png")
    (root / "train" / "notes.md").write_text("x")
    plan = datum.plan(root)
    assert plan.layout == "class folders: 2 classes"
    assert {name: split.records for name, split in plan.splits.items()} == {"train": 2, "val": 1}
    assert plan.splits["val"].origin == str(root / "val")
    assert plan.class_names == {"label": ["cat", "dog"]}
    assert plan.skipped == ("train/notes.md",)
    assert plan.schema["image"].shape == (4, 6, 3)
    assert plan.guessed == ()  # all records were looked at


def test_a_plan_tells_what_the_write_does(tmp_path, tables):
    plan = datum.plan(tables, shard_bytes=1024)
    report = write(tables, tmp_path / "out", shard_bytes=1024)
    dataset = datum.load(tmp_path / "out")
    assert plan.schema == dataset.schema
    assert list(plan.splits) == list(dataset.splits)
    for name, split in plan.splits.items():
        assert split.records == report.splits[name].records
        assert split.shards == report.splits[name].shards > 1
        assert abs(split.estimated_bytes - report.splits[name].bytes) < 200


@pytest.mark.parametrize("splits", [None, {"train": 0.7, "val": 0.3}])
def test_the_source_of_a_plan_is_written_as_the_source_itself(tmp_path, tables, splits):
    given = tables / "train.csv"
    plan = datum.plan(given, splits=splits)
    write(plan.source, tmp_path / "a", splits=splits)
    write(given, tmp_path / "b", splits=splits)
    assert digests(tmp_path / "a") == digests(tmp_path / "b")


def test_what_was_found_is_not_looked_for_twice(tmp_path, tables, monkeypatch):
    from datum.sources.csv import CsvTable

    calls = []
    parts = CsvTable.parts
    monkeypatch.setattr(CsvTable, "parts", lambda self: calls.append(1) or parts(self))
    plan = datum.plan(tables)
    write(plan.source, tmp_path / "out")
    assert len(calls) == 1


def test_fractions_are_counted_as_the_write_divides(tmp_path):
    for source in (rows(500), lambda: rows(500), {"x": np.arange(500)}, rows(3000)):
        plan = datum.plan(source, splits={"train": 0.8, "val": 0.2})
        report = write(source, tmp_path / "out", splits={"train": 0.8, "val": 0.2}, overwrite=True)
        for name, split in plan.splits.items():
            assert split.records == report.splits[name].records


def test_stratified_counts_are_estimates():
    columns = {"x": np.arange(100), "label": np.arange(100) % 2}
    plan = datum.plan(columns, splits={"train": 0.5, "val": 0.5}, stratify="label")
    assert plan.records is None
    assert 80 < plan.estimated_records < 120


def test_a_source_for_each_split(tmp_path, tables):
    sources = {"val": tables / "val.csv", "train": tables / "train.csv"}
    plan = datum.plan(None, splits=sources)
    assert list(plan.splits) == ["train", "val"]
    assert plan.splits["val"].origin == str(tables / "val.csv")
    assert datum.plan(sources).to_json() == plan.to_json()
    report = write(plan.source, tmp_path / "out")
    assert report.splits["val"].records == 20


def test_an_iterator_is_refused_and_left_whole():
    given = iter(rows(5))
    with pytest.raises(SourceError, match=r"can be read again.* got an iterator\nhint: pass a fun"):
        datum.plan(given)
    assert len(list(given)) == 5


def test_a_function_is_read_only_at_its_beginning():
    taken = []

    def endless():
        number = 0
        while True:
            taken.append(number)
            yield {"x": number}
            number += 1

    plan = datum.plan(endless)
    assert len(taken) <= 1001
    assert plan.records is plan.estimated_records is plan.splits["train"].shards is None
    assert plan.guessed == ("x",)
    assert plan.looked_at == 1000
    assert "records not counted yet" in str(plan)


def test_a_short_function_is_known_exactly():
    plan = datum.plan(lambda: iter(rows(7)))
    assert (plan.records, plan.guessed) == (7, ())


def test_given_features_are_not_guesses():
    def endless():
        while True:
            yield {"x": 1, "y": 2}

    plan = datum.plan(endless, schema={"x": Feature("uint8")})
    assert plan.schema["x"] == Feature("uint8")
    assert plan.guessed == ("y",)
    both = Schema({"x": Feature("uint8"), "y": Feature("int64")})
    assert datum.plan(endless, schema=both).guessed == ()


def test_records_that_cannot_be_written_are_told_before():
    given = [{"x": 1}, {"x": "one"}, {"x": 3}]
    plan = datum.plan(given)
    assert "1 of 3 records looked at cannot be written, and the write will stop" in plan.warnings[0]
    assert "put aside" in datum.plan(given, on_error="quarantine").warnings[0]


def test_the_same_key_twice_is_told_before():
    plan = datum.plan([("a", {"x": 1}), ("a", {"x": 2})], schema=Schema({"x": Feature("int64")}))
    assert "with the key of another, such as 'a'" in plan.warnings[0]


def test_images_are_guessed_where_some_were_not_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("datum._write.preview._FIRST_RECORDS", 2)
    monkeypatch.setattr("datum._write.preview.SAMPLE_RECORDS", 2)
    plan = datum.plan(images(tmp_path / "in", "a/1.png", "a/2.png", "b/3.png"))
    assert plan.guessed == ("image",)
    assert plan.looked_at == 2
    assert "(* inferred from 2 records)" in str(plan)


def test_changed_images_change_the_size(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "in" / name).mkdir(parents=True)
        noise = np.random.default_rng(1).integers(0, 255, (200, 200, 3), np.uint8)
        Image.fromarray(noise).save(tmp_path / "in" / name / "1.jpg", quality=95)
    whole = datum.plan(tmp_path / "in").estimated_bytes
    assert datum.plan(tmp_path / "in", max_side=50).estimated_bytes < whole / 5


def test_encoders_that_learn_are_guesses():
    from sklearn.preprocessing import LabelBinarizer

    given = [{"label": name} for name in "abcd"] * 10
    options = {"encoders": {"label": LabelBinarizer()}}
    assert datum.plan(given, **options).schema["label"].shape == (4,)
    divided = datum.plan(given, splits={"train": 0.5, "val": 0.5}, **options)
    assert divided.guessed == ("label",)
    assert "encoders of label learn" in divided.warnings[-1]


def test_what_a_write_refuses_is_refused():
    with pytest.raises(
        TypeError, match=r"plan: got an unknown option `shard`\nhint: did you mean `shar"
    ):
        datum.plan(rows(3), shard=3)
    with pytest.raises(SplitError, match=r"got 'trian'\nhint: did you mean 'train'"):
        datum.plan(rows(3), shards={"trian": 3})
    with pytest.raises(SplitError, match="expected fractions in `splits`"):
        datum.plan(rows(3), stratify="x")
    with pytest.raises(SplitError, match="add up to 1"):
        datum.plan(rows(3), splits={"train": 0.5, "val": 0.6})
    with pytest.raises(SourceError, match="expected one|nothing there"):
        datum.plan("no/such/path")


def test_a_plan_is_readable_and_json(tables):
    plan = datum.plan(tables, compression="gzip", shards=2)
    text = str(plan)
    assert text.startswith("CSV table, 2 files, gzip\n  splits:\n    train  20 records, 2 shards")
    assert "    number  'int64'" in text
    found = json.loads(json.dumps(plan.to_json()))
    assert found["splits"]["train"]["records"] == 20
    assert found["schema"]["number"]["dtype"] == "int64"
    assert found["compression"] == "gzip"
    assert Schema.from_json(found["schema"]) == plan.schema


def describe(given, problem=None):
    source = as_source(given, problem)
    parts = source.parts()
    files = find_table_files(given, source)
    origins = describe_origins(given, source, list(parts), files)
    return describe_layout(source, parts, files), origins


@pytest.fixture
def voc(tmp_path):
    save(tmp_path / "JPEGImages" / "a.jpg", pixels(8, 8), "JPEG")
    (tmp_path / "Annotations").mkdir()
    box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>4</xmax><ymax>4</ymax></bndbox>"
    (tmp_path / "Annotations" / "a.xml").write_text(
        "<annotation><size><width>8</width><height>8</height></size>"
        f"<object><name>cat</name>{box}</object></annotation>"
    )
    return tmp_path


def test_class_folders(tmp_path):
    save(tmp_path / "cat" / "1.png", pixels(4, 4), "PNG")
    save(tmp_path / "dog" / "1.png", pixels(4, 4), "PNG")
    assert describe(tmp_path) == ("class folders: 2 classes", {"train": str(tmp_path)})


def test_voc_and_its_lists(voc):
    assert describe(voc) == ("Pascal VOC detection: 1 class", {"train": str(voc)})
    (voc / "ImageSets" / "Main").mkdir(parents=True)
    listed = voc / "ImageSets" / "Main" / "val.txt"
    listed.write_text("a\n")
    assert describe(voc)[1] == {"val": str(listed)}


def test_masks(tmp_path):
    save(tmp_path / "JPEGImages" / "a.jpg", pixels(8, 8), "JPEG")
    save(tmp_path / "SegmentationClass" / "a.png", pixels(8, 8)[..., 0], "PNG")
    assert describe(tmp_path)[0] == "images and masks (segmentation)"


def test_images_with_a_table(tmp_path):
    save(tmp_path / "train" / "a.png", pixels(4, 4), "PNG")
    (tmp_path / "train.csv").write_text("filename,label\na,1\n")
    layout, origins = describe(tmp_path)
    assert layout == "images with a table of labels"
    assert origins == {"train": f"{tmp_path / 'train.csv'} and {tmp_path / 'train'}"}


def test_tables_in_files(tmp_path):
    for name in ("train.csv", "val.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    layout, origins = describe(tmp_path)
    assert layout == "CSV table, 2 files"
    assert origins == {name: str(tmp_path / f"{name}.csv") for name in ("train", "val")}
    assert describe(str(tmp_path / "train.csv"))[0] == "CSV table"
    layout, origins = describe(str(tmp_path / "*.csv"))
    assert (layout, list(origins)) == ("CSV table, 2 files", ["train", "val"])
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    assert describe(tmp_path / "a.parquet")[0] == "Parquet table"
    (tmp_path / "a.json").write_text('[{"text": "a"}]')
    assert describe(tmp_path / "a.json")[0] == "texts in JSON"
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    assert describe(tmp_path / "a.jsonl")[0] == "JSON lines"
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    assert describe(tmp_path / "a.npz") == ("NumPy arrays", {"train": str(tmp_path / "a.npz")})


def test_files_without_a_split_in_their_names_are_one(tmp_path):
    for name in ("a.csv", "train.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    assert describe(tmp_path)[1] == {"train": f"2 files, {tmp_path / 'a.csv'} ..."}


def test_objects_of_python():
    assert describe([{"x": 1}]) == ("Python rows", {"train": ""})
    assert describe({"x": [1]})[0] == "columns in memory"
    assert describe(sources.CsvTable(__file__))[0] == "CSV table"


def test_a_source_of_ones_own_is_named_by_its_class():
    class Mine:
        def parts(self):
            return as_source([{"x": 1}]).parts()

    assert describe(Mine()) == ("records of Mine", {"train": ""})


def test_a_path_of_images_in_a_table(tmp_path):
    save(tmp_path / "a.png", pixels(4, 4), "PNG")
    path = Path(tmp_path / "list.csv")
    path.write_text("path,label\na.png,1\n")
    assert datum.plan(path).layout == "CSV table of image files"
    named = ImageTable(path, path_column="path")
    assert datum.plan(named).layout == "table of image files"
