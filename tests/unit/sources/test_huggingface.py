"""Datasets of Hugging Face: folders, files of the hub, and objects."""

import io
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

import datum
from datum import Feature
from datum.errors import SourceError
from datum.sources import HuggingFaceFolder, arrow

FILE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
FEATURES = {
    "image": {"_type": "Image"},
    "label": {"names": ["cat", "dog"], "_type": "ClassLabel"},
    "matrix": {"shape": [2, 3], "dtype": "float32", "_type": "Array2D"},
    "frames": {"shape": [None, 2, 2], "dtype": "uint8", "_type": "Array3D"},
    "tags": {"feature": {"names": ["O", "B"], "_type": "ClassLabel"}, "_type": "List"},
    "messages": [{"role": {"dtype": "string", "_type": "Value"}}],
    "audio": {"sampling_rate": 8000, "_type": "Audio"},
}
SCHEMA = pa.schema(
    {
        "image": FILE,
        "label": pa.int64(),
        "matrix": pa.list_(pa.list_(pa.float32())),
        "frames": pa.list_(pa.list_(pa.list_(pa.uint8()))),
        "tags": pa.list_(pa.int64()),
        "messages": pa.list_(pa.struct({"role": pa.string()})),
        "audio": FILE,
    },
    metadata={"huggingface": json.dumps({"info": {"features": FEATURES}})},
)
EXPECTED = {
    "image": Feature("uint8", (3, 4, 3), encoding="image"),
    "image_filename": Feature("str"),
    "label": Feature("int64"),
    "matrix": Feature("float32", (2, 3)),
    "frames": Feature("uint8", (None, 2, 2)),
    "tags": Feature("int64", (None,)),
    "messages/role": Feature("str", (None,)),
    "audio": Feature("bytes"),
    "audio_filename": Feature("str"),
}


def png(number):
    buffer = io.BytesIO()
    Image.new("RGB", (4, 3), (number, 0, 0)).save(buffer, "PNG")
    return buffer.getvalue()


def row(number):
    return {
        "image": {"bytes": png(number), "path": f"{number}.png"},
        "label": number % 2,
        "matrix": np.full((2, 3), number).tolist(),
        "frames": np.full((1 + number, 2, 2), number).tolist(),
        "tags": [0, 1][: number % 3],
        "messages": [{"role": "user"}, {"role": "model"}],
        "audio": {"bytes": b"RIFF", "path": "a.wav"},
    }


def table_of(first, last):
    return pa.Table.from_pylist([row(number) for number in range(first, last)], SCHEMA)


def save_stream(table, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def save_folder(folder, tables):
    """What `Dataset.save_to_disk` writes."""
    names = [f"data-{number:05}-of-{len(tables):05}.arrow" for number in range(len(tables))]
    for name, table in zip(names, tables, strict=True):
        save_stream(table, folder / name)
    state = {"_data_files": [{"filename": name} for name in names], "_split": folder.name}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))


@pytest.fixture
def saved(tmp_path):
    """What `DatasetDict.save_to_disk` writes."""
    folder = tmp_path / "saved"
    save_folder(folder / "train", [table_of(0, 3), table_of(3, 5)])
    save_folder(folder / "unsupervised", [table_of(5, 6)])
    splits = {"splits": ["train", "unsupervised"]}
    (folder / "dataset_dict.json").write_text(json.dumps(splits))
    return folder


@pytest.fixture
def hub(tmp_path):
    """What the hub holds."""
    folder = tmp_path / "hub"
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text("---\n---\n")
    names = ("train-00000-of-00002", "train-00001-of-00002", "unsupervised-00000-of-00001")
    for name, table in zip(names, (table_of(0, 3), table_of(3, 5), table_of(5, 6)), strict=True):
        pyarrow.parquet.write_table(table, folder / f"data/{name}.parquet")
    return folder


def check(ds):
    assert dict(ds.schema) == EXPECTED
    assert {name: len(ds[name]) for name in ds.splits} == {"train": 5, "unsupervised": 1}
    assert ds.metadata["label"]["class_names"] == ["cat", "dog"]
    assert ds.metadata["tags"]["class_names"] == ["O", "B"]
    for found in ds["train"]:
        number = int(found["image_filename"].removesuffix(".png"))
        assert found["image"][0, 0, 0] == number
        assert found["matrix"].tolist() == np.full((2, 3), number).tolist()
        assert found["frames"].shape == (1 + number, 2, 2)
        assert found["messages/role"] == ["user", "model"]
        assert found["audio"] == b"RIFF"


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("name", ["saved", "hub"])
def test_folders_keep_types_names_and_splits(request, tmp_path, monkeypatch, name, is_streamed):
    if is_streamed:
        monkeypatch.setattr(arrow, "MAX_MEMORY_BYTES", 0)
    report = datum.write(request.getfixturevalue(name), tmp_path / "out", progress=False)
    assert not report.warnings
    check(datum.load(tmp_path / "out"))


@pytest.mark.parametrize(
    ("name", "layout"),
    [("saved", "Hugging Face dataset, 3 files"), ("hub", "Parquet table, 3 files")],
)
def test_a_plan_tells_what_it_is(request, name, layout):
    plan = datum.plan(request.getfixturevalue(name))
    assert plan.layout == layout
    assert plan.schema == datum.Schema(EXPECTED)
    assert not plan.warnings
    assert plan.records == 6


def test_one_split_has_its_name(saved, tmp_path):
    datum.write(saved / "unsupervised", tmp_path / "out", progress=False)
    assert list(datum.load(tmp_path / "out").splits) == ["unsupervised"]
    datum.write(HuggingFaceFolder(saved / "train", columns=["label"]), tmp_path / "labels")
    assert list(datum.load(tmp_path / "labels").schema) == ["label"]


def test_the_package_is_not_needed(saved, tmp_path):
    code = (
        "import sys; sys.modules['datasets'] = None; import datum;"
        f" print(datum.write({str(saved)!r}, {str(tmp_path / 'out')!r}, progress=False).records)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "6"


def test_a_cache_of_load_dataset_is_read(tmp_path):
    folder = tmp_path / "cache"
    save_stream(table_of(0, 5), folder / "pets-train.arrow")
    save_stream(table_of(5, 6), folder / "pets-unsupervised.arrow")
    info = {"features": FEATURES, "splits": {"train": {}, "unsupervised": {}}}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    datum.write(folder, tmp_path / "out", progress=False)
    check(datum.load(tmp_path / "out"))


def test_several_configurations_are_to_be_chosen_from(tmp_path):
    for name in ("en", "fr"):
        (tmp_path / name).mkdir()
        pyarrow.parquet.write_table(table_of(0, 2), tmp_path / name / "train.parquet")
    with pytest.raises(SourceError, match="expected one folder of Parquet files, got en, fr\nhint"):
        datum.write(tmp_path, tmp_path / "out", progress=False)


def test_folders_of_splits_hold_parquet_files(tmp_path):
    for name in ("train", "test"):
        (tmp_path / "data" / name).mkdir(parents=True)
        pyarrow.parquet.write_table(table_of(0, 2), tmp_path / "data" / name / "0000.parquet")
    datum.write(tmp_path / "data", tmp_path / "out", progress=False)
    assert list(datum.load(tmp_path / "out").splits) == ["train", "test"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("dataset_dict.json", "{", "dataset_dict.json: expected JSON"),
        ("dataset_dict.json", '{"splits": 5}', "expected a list of splits, got 5"),
        ("dataset_dict.json", '{"splits": ["gone"]}', "expected a folder of split 'gone'"),
        ("train/state.json", "[]", "expected an object, got list"),
        ("train/state.json", "{}", "expected a list of data files, got None"),
        ("train/state.json", '{"_data_files": []}', "expected files with records, got none"),
        (
            "train/state.json",
            '{"_data_files": [{"filename": "../../a.arrow"}]}',
            "expected names of files",
        ),
        (
            "train/state.json",
            '{"_data_files": [], "_indices_data_files": [{"filename": "x"}]}',
            "hint: datasets.load_from_disk",
        ),
    ],
)
def test_folders_that_are_not_whole_are_refused(saved, tmp_path, name, text, message):
    (saved / name).write_text(text)
    with pytest.raises(SourceError, match=message):
        datum.write(saved, tmp_path / "out", progress=False)


def test_images_are_known_by_their_bytes_where_nothing_else_tells(tmp_path):
    table = table_of(0, 3).select(["image", "audio"]).replace_schema_metadata(None)
    datum.write(table, tmp_path / "out", progress=False)
    schema = datum.load(tmp_path / "out").schema
    assert schema["image"].encoding == "image"
    assert schema["audio"] == Feature("bytes")


def test_absent_images_and_arrays_stay_absent(tmp_path):
    rows = [row(0), {**row(1), "image": None, "matrix": None}, row(2)]
    table = pa.Table.from_pylist(rows, SCHEMA)
    datum.write(table, tmp_path / "out", shuffle=False, progress=False)
    ds = datum.load(tmp_path / "out")
    assert ds.schema["image"].optional
    assert ds.schema["matrix"] == Feature("float32", (2, 3), optional=True)
    assert [found["image"] is None for found in ds["train"]] == [False, True, False]


def test_images_that_have_a_path_alone_are_read(tmp_path):
    (tmp_path / "a.png").write_bytes(png(7))
    rows = [
        {"image": {"bytes": None, "path": str(tmp_path / "a.png")}},
        {"image": {"bytes": png(8), "path": None}},
    ]
    kept = pa.schema([SCHEMA.field("image")], metadata=SCHEMA.metadata)
    table = pa.Table.from_pylist(rows, kept)
    datum.write(table, tmp_path / "out", shuffle=False, progress=False)
    found = [one["image"][0, 0, 0] for one in datum.load(tmp_path / "out")["train"]]
    assert found == [7, 8]


def test_other_files_that_have_a_path_alone_are_refused(tmp_path):
    rows = [{"audio": {"bytes": None, "path": "a.wav"}}]
    kept = pa.schema([SCHEMA.field("audio")], metadata=SCHEMA.metadata)
    with pytest.raises(SourceError, match="expected the bytes of a file.*\nhint: ds.save_to_disk"):
        datum.write(pa.Table.from_pylist(rows, kept), tmp_path / "out", progress=False)


# With the package itself.


@pytest.fixture
def package():
    return pytest.importorskip("datasets")


def dataset_of(package, first, last):
    features = package.Features(
        {
            "image": package.Image(),
            "label": package.ClassLabel(names=["cat", "dog"]),
            "matrix": package.Array2D((2, 3), "float32"),
            "frames": package.Array3D((None, 2, 2), "uint8"),
            "tags": package.Sequence(package.ClassLabel(names=["O", "B"])),
            "messages": [{"role": package.Value("string")}],
            "audio": package.Audio(sampling_rate=8000),
        }
    )
    table = package.table.table_cast(table_of(first, last), features.arrow_schema)
    return package.Dataset(table)


@pytest.fixture
def dataset(package):
    return dataset_of(package, 0, 5)


def test_its_own_folder_is_read(package, tmp_path):
    made = package.DatasetDict(
        {
            "train": dataset_of(package, 0, 5),
            "unsupervised": dataset_of(package, 5, 6),
        }
    )
    made.save_to_disk(str(tmp_path / "saved"))
    datum.write(tmp_path / "saved", tmp_path / "out", progress=False)
    check(datum.load(tmp_path / "out"))
    datum.write(made, tmp_path / "object", progress=False)
    check(datum.load(tmp_path / "object"))


def test_selected_rows_and_columns_of_a_format_are_respected(dataset, tmp_path):
    chosen = dataset.select([3, 1]).with_format("numpy", columns=["label", "matrix"])
    datum.write(chosen, tmp_path / "out", shuffle=False, progress=False)
    ds = datum.load(tmp_path / "out")
    assert dict(ds.schema) == {name: EXPECTED[name] for name in ("label", "matrix")}
    assert [found["matrix"][0, 0] for found in ds["train"]] == [3, 1]


def test_a_large_dataset_is_read_in_batches(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "MAX_MEMORY_BYTES", 0)
    datum.write(dataset.select([3, 1]), tmp_path / "out", shuffle=False, progress=False)
    found = [one["image_filename"] for one in datum.load(tmp_path / "out")["train"]]
    assert found == ["3.png", "1.png"]


def test_a_transform_is_applied(dataset, tmp_path):
    def double(batch):
        return {"twice": [2 * label for label in batch["label"]]}

    chosen = dataset.select_columns(["label"]).with_transform(double)
    datum.write(chosen, tmp_path / "out", shuffle=False, workers=1, progress=False)
    assert [found["twice"] for found in datum.load(tmp_path / "out")["train"]] == [0, 2, 0, 2, 0]


def test_a_streamed_dataset_is_rows(dataset, tmp_path):
    streamed = dataset.select_columns(["label", "tags"]).to_iterable_dataset()
    datum.write(streamed, tmp_path / "out", progress=False)
    ds = datum.load(tmp_path / "out")
    assert len(ds["train"]) == 5
    assert ds.metadata["label"]["class_names"] == ["cat", "dog"]


def test_a_command_writes_a_folder(saved, tmp_path):
    command = [sys.executable, "-m", "datum", "write", str(saved), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "found: Hugging Face dataset" in done.stderr
    check(datum.load(tmp_path / "out"))
