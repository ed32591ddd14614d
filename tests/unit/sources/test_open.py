"""What `datum.write` takes as a source, and how it is recognised."""

import bz2
import gzip
import json
import lzma
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse

import datum
from datum.errors import SourceError
from datum.sources import (
    ArrowTable,
    Block,
    ClassFolders,
    ColumnTable,
    CsvTable,
    IndexedPart,
    JsonLines,
    JsonText,
    NumpyFile,
    PythonRows,
    Reject,
    Source,
    StreamedPart,
    as_source,
)
from datum.sources.files import (
    find_files,
    find_split_files,
    fingerprint_files,
    open_file,
    unpacked_suffix,
)
from datum.sources.open import detect
from datum.sources.options import is_split_name, read_split_options, split_of_file
from datum.sources.protocol import SerializedRecords
from tests.unit.images.samples import pixels, save


def test_a_reject_reads_as_where_what_and_why():
    assert str(Reject(7, "a.jpg", "photos/a.jpg", "expected an image, got text")) == (
        "photos/a.jpg: record 7 (a.jpg): expected an image, got text"
    )
    assert str(Reject(7, None, "", "expected an image")) == "record 7: expected an image"


def test_a_block_is_as_long_as_its_records():
    assert len(Block([{"x": 1}], np.array([5]), rejects=[Reject(4, None, "", "bad")])) == 1


def test_parts_are_told_apart_by_what_they_can():
    (listed,) = PythonRows([{"x": 1}]).parts().values()
    (streamed,) = PythonRows(iter([{"x": 1}])).parts().values()
    assert isinstance(listed, IndexedPart)
    assert not isinstance(listed, StreamedPart)
    assert isinstance(streamed, StreamedPart)
    assert not isinstance(streamed, IndexedPart)


def test_sources_have_the_protocol_and_others_do_not(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    assert isinstance(CsvTable(tmp_path / "a.csv"), Source)
    assert isinstance(ClassFolders(tmp_path), Source)
    assert not isinstance([{"x": 1}], Source)
    assert isinstance(Path(), Source)  # by chance: paths have `parts`; so they are asked first


def test_stored_records_are_taken_by_their_places():
    framed = datum.format.frame([b"a", b"bb", b"ccc"])
    schema = datum.Schema({"x": datum.Feature("int64")})
    whole = SerializedRecords(framed.data, framed.offsets, schema, True, lambda at: f"record {at}")
    assert len(whole) == 3
    assert whole.sizes.tolist() == [17, 18, 19]
    taken = whole.take(np.array([2, 0]))
    assert list(datum.format.RecordFile(taken.frames.tobytes())) == [b"ccc", b"a"]
    assert taken.offsets.tolist() == [0, 19]
    assert (taken.schema, taken.is_partial, taken.locate(0)) == (schema, True, "record 2")
    assert whole.take(np.arange(3)) is whole
    assert len(whole.take(np.array([], np.intp))) == 0


def images(root, *names):
    for name in names:
        save(root / name, pixels(4, 4), "PNG")


def texts(root, *names, content="filename\n"):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def kind(path, problem=None):
    return type(detect(path, problem)).__name__


def test_class_folders_are_told_by_two_folders_of_images(tmp_path):
    images(tmp_path, "cat/1.jpg", "dog/2.png")
    assert kind(tmp_path) == kind(str(tmp_path), "image_clf") == "ClassFolders"


def test_splits_of_class_folders_are_told(tmp_path):
    images(tmp_path, "train/cat/1.jpg", "train/dog/2.png", "val/cat/3.jpg")
    assert kind(tmp_path) == "ClassFolders"


def test_a_table_beside_a_folder_of_its_name_is_the_layout_of_the_paper(tmp_path):
    images(tmp_path, "train/1.jpg", "val/2.jpg")
    texts(tmp_path, "train.csv", "val.csv")
    assert kind(tmp_path) == kind(tmp_path, "image_clf") == "LabelledImages"


def test_a_table_says_more_than_names_of_folders(tmp_path):
    images(tmp_path, "train/cat/1.jpg", "train/dog/2.jpg")
    texts(tmp_path, "train.csv")
    assert kind(tmp_path) == kind(tmp_path, "image_clf") == "LabelledImages"


def test_voc_is_told_by_its_folders(tmp_path):
    images(tmp_path, "JPEGImages/1.jpg")
    texts(tmp_path, "Annotations/1.xml")
    assert kind(tmp_path) == kind(tmp_path, "image_det") == "VocDetection"


def test_masks_are_told_by_their_folders(tmp_path):
    images(tmp_path, "JPEGImages/1.jpg", "SegmentationClass/1.png")
    assert kind(tmp_path) == kind(tmp_path, "image_seg") == "SegmentationMasks"


def test_masks_are_told_by_lists_of_pairs(tmp_path):
    images(tmp_path, "train/1.png", "trainannot/1.png")
    texts(tmp_path, "train.txt", content="/train/1.png /trainannot/1.png\n")
    assert kind(tmp_path) == "SegmentationMasks"


def test_boxes_and_masks_at_once_must_be_chosen_from(tmp_path):
    images(tmp_path, "JPEGImages/1.jpg", "SegmentationClass/1.png")
    texts(tmp_path, "Annotations/1.xml")
    with pytest.raises(
        SourceError,
        match=r"several that fit: .*\nhint: pass problem='image_det' or problem='image_seg'",
    ):
        detect(tmp_path)
    assert kind(tmp_path, "image_det") == "VocDetection"
    assert kind(tmp_path, "image_seg") == "SegmentationMasks"


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.CSV", "a.csv.gz", "a.parquet", "a.feather", "a.jsonl", "a.json"]
)
def test_files_are_told_by_their_ending(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    expected = {"csv": "CsvTable", "tsv": "CsvTable", "jsonl": "JsonLines", "json": "JsonText"}
    assert kind(tmp_path / name) == expected.get(name.lower().split(".")[1], "ArrowTable")


def test_files_of_one_kind_are_a_table_with_a_split_for_each(tmp_path):
    texts(tmp_path, "train.csv", "test.csv", content="x\n1\n")
    source = detect(tmp_path)
    assert type(source).__name__ == "CsvTable"
    assert sorted(source.parts()) == ["test", "train"]


def test_numbered_files_belong_to_their_split(tmp_path):
    names = ("train-0-of-2.csv", "train-1-of-2.csv", "test-0-of-1.csv")
    texts(tmp_path, *names, content="x\n1\n")
    parts = detect(tmp_path).parts()
    assert {name: len(part) for name, part in parts.items()} == {"test": 1, "train": 2}


def test_files_of_other_names_are_one_split(tmp_path):
    texts(tmp_path, "part-0.csv", "part-1.csv", content="x\n1\n")
    (part,) = detect(tmp_path).parts().values()
    assert len(part) == 2


def test_text_can_be_asked_for(tmp_path):
    texts(tmp_path, "train.json", content="{}")
    assert kind(tmp_path) == kind(tmp_path, "text_clf") == "JsonText"
    with pytest.raises(SourceError, match="expected JPEGImages/ or images/, and Annotations/"):
        detect(tmp_path, "image_det")


@pytest.mark.parametrize(
    "names",
    [
        ("images/1.jpg", "annotations/1.png"),
        ("images/train/1.jpg",),
        ("train/1.jpg", "val/2.jpg"),
        ("1.jpg", "2.jpg"),
        ("cat/1.jpg",),
        (),
    ],
)
def test_what_fits_nothing_is_refused_with_what_was_found(tmp_path, names):
    images(tmp_path, *names)
    found = ", ".join(sorted({name.split("/")[0] + "/" * ("/" in name) for name in names}))
    message = f"expected folders named after classes.*, got {found or 'nothing'}\nhint: "
    with pytest.raises(SourceError, match=message):
        detect(tmp_path)


def test_images_beside_a_table_of_another_name_get_a_hint(tmp_path):
    images(tmp_path, "images/1.jpg")
    texts(tmp_path, "labels.csv")
    with pytest.raises(SourceError, match=r"hint: .*LabelledImages.*ImageTable\('labels.csv'"):
        detect(tmp_path)


def test_many_entries_are_told_in_short(tmp_path):
    texts(tmp_path, *(f"{number:03}.dat" for number in range(50)))
    with pytest.raises(SourceError, match="007.dat and 42 more"):
        detect(tmp_path)


def test_hidden_files_do_not_count(tmp_path):
    images(tmp_path, "cat/1.jpg", "dog/2.jpg")
    texts(tmp_path, ".DS_Store", ".cache/x.csv")
    assert kind(tmp_path) == "ClassFolders"


@pytest.mark.parametrize("problem", ["image_cls", "text", 5])
def test_a_wrong_problem_names_the_right_ones(tmp_path, problem):
    with pytest.raises(SourceError, match="expected `problem` image_clf, image_det, image_seg"):
        detect(tmp_path, problem)
    with pytest.raises(SourceError, match="hint: did you mean 'image_clf'"):
        detect(tmp_path, "image_cls")


def test_a_path_to_nothing_is_named(tmp_path):
    with pytest.raises(SourceError, match="gone: expected a file or a folder, got nothing there"):
        detect(tmp_path / "gone")


@pytest.mark.parametrize("problem", [None, "image_clf", "image_det", "image_seg", "text_clf"])
def test_a_file_of_another_kind_is_refused(tmp_path, problem):
    images(tmp_path, "a.jpg")
    texts(tmp_path, "a.pkl")
    for name in ("a.jpg", "a.pkl"):
        with pytest.raises(SourceError, match=f"{name}: expected a folder"):
            detect(tmp_path / name, problem)


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.bin")
    with pytest.raises(SourceError, match="a.bin: expected a folder"):
        detect(tmp_path / "a.bin")


def test_real_folders_are_recognised(shared_data):
    assert kind(shared_data / "clothing") == "ClassFolders"
    assert kind(shared_data / "bccd_voc") == "VocDetection"
    assert kind(shared_data / "formats/imagenet_dataset") == "ClassFolders"
    assert kind(shared_data / "formats/camvid_dataset") == "SegmentationMasks"
    assert kind(shared_data / "formats/coco_dataset/coco") == "CocoAnnotations"
    assert kind(shared_data / "formats/yolo_dataset/strict") == "YoloLabels"
    for other in ("pets", "odd_images"):
        with pytest.raises(SourceError, match="hint: "):
            detect(shared_data / other)


class Own:
    def parts(self):
        return {}


class Dataset:
    def __len__(self):
        return 1

    def __getitem__(self, number):
        return {"x": number}


def rows():
    yield {"x": 1}


KINDS = [
    ({"x": [1, 2]}, ColumnTable),
    (pd.DataFrame({"x": [1]}), ColumnTable),
    (pd.Series([1], name="x"), ColumnTable),
    (pa.table({"x": [1]}), ColumnTable),
    (pa.record_batch({"x": [1]}), ColumnTable),
    (np.zeros((2, 3)), ColumnTable),
    (np.zeros(2, [("a", "i4")]), ColumnTable),
    (scipy.sparse.eye(2, format="csr"), ColumnTable),
    ([{"x": 1}], PythonRows),
    (({"x": 1},), PythonRows),
    (rows(), PythonRows),
    (rows, PythonRows),
    (Dataset(), PythonRows),
    ([], PythonRows),
]


@pytest.mark.parametrize(
    ("source", "kind"), KINDS, ids=[type(source).__name__ for source, _ in KINDS]
)
def test_each_kind_of_data_has_its_source(source, kind):
    found = as_source(source)
    assert type(found) is kind
    assert list(found.parts()) == ["train"]


def test_a_source_is_itself():
    source = Own()
    assert as_source(source) is source


def test_a_table_of_another_library_comes_by_arrow():
    class Frame:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table({"x": [1, 2]}).__arrow_c_stream__(requested_schema)

    part = as_source(Frame()).parts()["train"]
    assert part.read(np.arange(2)).data["x"].tolist() == [1, 2]


def test_paths_are_looked_at(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.csv").write_text("x\n2\n")
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    (tmp_path / "train.json").write_text(json.dumps({"1": {"text": "a"}}))
    pa.parquet.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    np.save(tmp_path / "a.npy", np.arange(3))
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    expected = {
        "a.csv": CsvTable,
        "*.csv": CsvTable,
        "a.jsonl": JsonLines,
        "train.json": JsonText,
        "a.parquet": ArrowTable,
        "*.parquet": ArrowTable,
        "a.npy": NumpyFile,
        "a.npz": NumpyFile,
    }
    for name, kind in expected.items():
        assert type(as_source(str(tmp_path / name))) is kind
    assert type(as_source(tmp_path / "a.csv")) is CsvTable
    part = as_source(str(tmp_path / "*.csv")).parts()["train"]
    assert part.read(np.arange(2)).data["x"].tolist() == [1, 2]


def test_a_pattern_names_files_of_one_kind(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    with pytest.raises(SourceError, match=r"expected files of one kind, got .csv, .jsonl"):
        as_source(str(tmp_path / "a.*"))
    for name in ("1.json", "2.json"):
        (tmp_path / name).write_text("[]")
    with pytest.raises(SourceError, match=r"expected one file of .json, got 2"):
        as_source(str(tmp_path / "*.json"))


async def coroutine():
    return []


async def asynchronous():
    yield {"x": 1}


WRONG = [
    (7, "expected something with records, got int"),
    (None, "got NoneType"),
    (b"bytes", "got bytes"),
    ({1, 2}, "got set"),
    (object(), "got object"),
    (np.float64(3), "got float64"),
    (np.array(3), "expected an array of records, got a single value"),
    (Dataset, r"got the class Dataset\nhint: Dataset\(\)"),
    ("no such path", "no such path: expected a file or a folder, got nothing there"),
    ("s3://bucket/key", "expected a path on this computer, got a URL"),
    ("nothing/*.csv", "no file matches this pattern"),
    ({"a": [1], "b": [1, 2]}, "expected columns of one length, got 'a': 1, 'b': 2"),
    ({"a": 1}, "column 'a': expected an array or a list"),
    (asynchronous(), "got the asynchronous async_generator"),
]


@pytest.mark.parametrize(("source", "message"), WRONG, ids=[message for _, message in WRONG])
def test_anything_else_is_refused_by_name(source, message):
    with pytest.raises(SourceError, match=message):
        as_source(source)


def test_a_coroutine_is_refused_and_closed():
    with pytest.raises(SourceError, match="got the asynchronous coroutine"):
        as_source(coroutine())


def test_a_problem_is_told_of_a_path():
    with pytest.raises(SourceError, match="expected a path where problem='text_clf' is given"):
        as_source([{"x": 1}], "text_clf")


def test_a_byte_path_is_refused(tmp_path):
    class Place:
        def __fspath__(self):
            return b"bytes"

    with pytest.raises(SourceError, match="expected a path that is text"):
        as_source(Place())


def test_plain_data_needs_no_other_package(tmp_path):
    code = (
        "import sys; from datum.sources import as_source; as_source([{'x': 1}]).parts();"
        "as_source({'x': __import__('numpy').arange(3)}).parts();"
        "print([name for name in ('pandas', 'pyarrow', 'torch') if name in sys.modules])"
    )
    import subprocess

    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert finished.stdout.strip() == "[]"


@pytest.fixture
def folder(tmp_path):
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_a_path_is_a_file_of_its_own(folder):
    assert find_files(folder / "a.csv") == [folder / "a.csv"]
    assert find_files(str(folder / "a.csv")) == [folder / "a.csv"]


def test_a_pattern_gives_its_files_sorted(folder):
    assert [file.name for file in find_files(str(folder / "*.csv"))] == ["a.csv", "b.csv"]


def test_a_list_keeps_its_order(folder):
    files = find_files([folder / "b.csv", str(folder / "a*")])
    assert [file.name for file in files] == ["b.csv", "a.csv"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path):
    odd = tmp_path / "a[1].csv"
    odd.write_text("x")
    (tmp_path / "a1.csv").write_text("y")
    assert find_files(odd) == [odd]


def test_splits_have_files_of_their_own(folder):
    found = find_split_files({"train": folder / "a.csv", "test": [folder / "b.csv"]}, "all")
    assert found == {"train": [folder / "a.csv"], "test": [folder / "b.csv"]}
    assert find_split_files(folder / "a.csv", "all") == {"all": [folder / "a.csv"]}


@pytest.mark.parametrize("paths", [[], {}, 5, {"x"}, None])
def test_what_names_no_file_is_refused(paths):
    with pytest.raises(SourceError, match="expected"):
        find_split_files(paths, "train")


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"gone.csv: expected a file, got: no such file"):
        find_files(tmp_path / "gone.csv")
    with pytest.raises(SourceError, match=r"\*.csv: no file matches this pattern"):
        find_files(str(tmp_path / "*.csv"))
    with pytest.raises(SourceError, match="expected a file, got a folder"):
        find_files(tmp_path)
    with pytest.raises(SourceError, match="expected a file, got"):
        find_files("a\0b")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="expected a file, got something else"):
        find_files(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_packed_files_are_unpacked(tmp_path, suffix, pack):
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(pack(b"content"))
    with open_file(path) as file:
        assert file.read() == b"content"
    assert unpacked_suffix(path) == ".csv"


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_damage_in_packed_files_is_told(tmp_path, suffix, pack):
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(pack(os.urandom(1000))[:-20])
    with pytest.raises(SourceError, match="a.csv"), open_file(path) as file:
        file.read()


def test_the_fingerprint_changes_with_a_file_and_with_the_options(folder):
    path = folder / "a.csv"
    first = fingerprint_files([path], "key")
    assert fingerprint_files([path], "key") == first
    assert fingerprint_files([path], "other") != first
    path.write_text("another content")
    assert fingerprint_files([path], "key") != first


def test_a_suffix_in_capitals_counts():
    assert unpacked_suffix(Path("A.JSONL.GZ")) == ".jsonl"


@dataclass(frozen=True, kw_only=True)
class Options:
    extension: str | None = None
    image_dir: str = "images"


@pytest.mark.parametrize("name", ["train", "Train", "val", "valid", "validation", "dev", "test"])
def test_splits_have_customary_names(name):
    assert is_split_name(name)


@pytest.mark.parametrize("name", ["train2017", "test_1", "trainval", "val-2"])
def test_splits_may_be_numbered(name):
    assert is_split_name(name)


@pytest.mark.parametrize("name", ["cat", "trains", "testament", "", "training_set"])
def test_other_names_are_no_splits(name):
    assert not is_split_name(name)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train.csv", "train"),
        ("Train.csv", "train"),
        ("train-00000-of-00002.parquet", "train"),
        ("validation_1.jsonl.gz", "validation"),
        ("val2017.csv", "val2017"),
        ("test", "test"),
        ("tests.csv", None),
        ("labels.csv", None),
        ("my_train.csv", None),
    ],
)
def test_files_belong_to_the_split_that_they_are_named_after(name, split):
    assert split_of_file(name) == split


def test_options_of_a_split_are_a_dict_or_an_object():
    splits = {"train": {"extension": ".png"}, "val": {}, "test": Options(image_dir="x")}
    assert read_split_options(Options, splits) == {
        "train": Options(extension=".png"),
        "val": Options(),
        "test": Options(image_dir="x"),
    }


def test_a_misspelt_option_names_the_nearest():
    with pytest.raises(SourceError, match="'train': unknown option 'imagedir'\nhint: did you"):
        read_split_options(Options, {"train": {"imagedir": "x"}})
    with pytest.raises(SourceError, match="hint: there are extension, image_dir"):
        read_split_options(Options, {"train": {"zzz": "x"}})


def test_options_that_are_no_dict_are_refused():
    with pytest.raises(SourceError, match="split 'train': expected a dict of extension, image_dir"):
        read_split_options(Options, {"train": 5})
