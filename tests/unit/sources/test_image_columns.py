"""Tables with a column of image files."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from PIL import Image

import datum
from datum import Feature
from datum.errors import SourceError
from datum.sources import IndexedPart
from datum.sources.image_columns import ImageTable
from datum.sources.image_files import IMAGE
from tests.unit.images.samples import pixels, save

COUNT = 12


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Photos and masks beside the table, seen from a working folder of its own."""
    folder = tmp_path / "data"
    (folder / "photos").mkdir(parents=True)
    for number in range(COUNT):
        Image.new("RGB", (4, 3), (number, 0, 0)).save(folder / f"photos/{number}.png")
        Image.new("L", (4, 3), number).save(folder / f"photos/mask{number}.png")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return folder


def rows_of(photos, **more):
    return [{"path": f"{photos}/{number}.png", "label": number, **more} for number in range(COUNT)]


def as_table(kind, rows, folder):
    """The same rows as a table of a kind."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    if kind in FILES:
        path = folder / f"t.{kind}"
        WRITERS[kind](path, rows, columns)
        return path
    pandas = pytest.importorskip("pandas")
    return {
        "frame": pandas.DataFrame(columns),
        "categories": pandas.DataFrame(columns).astype(dict.fromkeys(columns, "category")),
        "columns": columns,
        "arrow": pa.table(columns),
        "rows": rows,
        "generator": lambda: iter(rows),
        "iterator": iter(rows),
    }[kind]


def write_csv(path, rows, columns):
    lines = [",".join(columns), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines))


WRITERS = {
    "csv": write_csv,
    "parquet": lambda path, _, columns: pyarrow.parquet.write_table(pa.table(columns), path),
    "feather": lambda path, _, columns: pyarrow.feather.write_feather(pa.table(columns), path),
    "jsonl": lambda path, rows, _: path.write_text("\n".join(map(json.dumps, rows))),
    "json": lambda path, rows, _: path.write_text(json.dumps(rows)),
}
FILES = ["csv", "parquet", "feather", "jsonl", "json"]
MEMORY = ["frame", "categories", "columns", "arrow", "rows", "generator", "iterator"]


@pytest.mark.parametrize("kind", [*FILES, *MEMORY])
def test_every_kind_of_table_gives_the_same_images(photos, tmp_path, kind):
    source = as_table(kind, rows_of(photos / "photos"), photos)
    report = datum.write(source, tmp_path / "out", progress=False)
    assert "'path' names image files: stored as 'image'" in str(report)
    ds = datum.load(tmp_path / "out")
    assert list(ds.schema) == ["image", "label", "filename"]
    assert ds.schema["image"] == Feature("uint8", (3, 4, 3), encoding="image")
    for row in ds["train"]:
        assert row["image"][0, 0, 0] == row["label"]
        assert row["filename"] == f"{photos}/photos/{row['label']}.png"


@pytest.mark.parametrize("kind", [*FILES, *MEMORY[:-1]])
def test_a_plan_says_what_becomes_of_paths(photos, kind):
    plan = datum.plan(as_table(kind, rows_of(photos / "photos"), photos))
    assert plan.schema["image"].encoding == "image"
    assert any("'path' names image files" in note for note in plan.notes)
    assert any("'path' names image files" in note for note in plan.to_json()["notes"])


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "frame", "rows"])
def test_missing_files_are_errors_that_are_named(photos, tmp_path, kind):
    rows = rows_of(photos / "photos")
    rows[0]["path"] = f"{photos}/photos/gone.png"
    source = as_table(kind, rows, photos)
    with pytest.raises(SourceError, match=r"gone\.png: record 0.*no such file"):
        datum.write(source, tmp_path / "out", progress=False)
    report = datum.write(source, tmp_path / "out", on_error="quarantine", progress=False)
    assert report.quarantined == {"train": 1}
    assert "gone.png" in report.quarantine.read_text()


@pytest.mark.parametrize("kind", FILES)
def test_paths_are_relative_to_the_folder_of_the_table(photos, tmp_path, kind):
    datum.write(as_table(kind, rows_of("photos"), photos), tmp_path / "out", progress=False)
    assert "image" in datum.load(tmp_path / "out").schema


@pytest.mark.parametrize("kind", ["csv", "frame", "rows"])
def test_paths_are_relative_to_the_working_folder(photos, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(photos)
    (tmp_path / "elsewhere").mkdir()
    source = as_table(kind, rows_of("photos"), tmp_path / "elsewhere")
    datum.write(source, tmp_path / "out", progress=False)
    assert "image" in datum.load(tmp_path / "out").schema


@pytest.mark.parametrize("kind", [*FILES, *MEMORY])
def test_a_schema_keeps_the_text(photos, tmp_path, kind):
    source = as_table(kind, rows_of(photos / "photos"), photos)
    schema = {"path": Feature("str")}
    if kind == "categories":
        schema = {"path": Feature("int64")}
    report = datum.write(source, tmp_path / "out", schema=schema, progress=False)
    assert datum.load(tmp_path / "out").schema == datum.Schema(
        {**schema, "label": Feature("int64")}
    )
    assert not report.notes


@pytest.mark.parametrize("kind", ["csv", "jsonl", "frame", "rows"])
def test_several_columns_are_several_images(photos, tmp_path, kind):
    rows = [
        {"image": f"photos/{n}.png", "mask": f"photos/mask{n}.png", "label": n}
        for n in range(COUNT)
    ]
    rows = [{**row, **{k: f"{photos}/{row[k]}" for k in ("image", "mask")}} for row in rows]
    datum.write(as_table(kind, rows, photos), tmp_path / "out", progress=False)
    ds = datum.load(tmp_path / "out")
    assert ds.schema["image"].shape == (3, 4, 3)
    assert ds.schema["mask"].shape == (3, 4, 1)
    for row in ds["train"]:
        assert row["mask"][0, 0, 0] == row["label"] == row["image"][0, 0, 0]
        assert row["mask_filename"].endswith(f"mask{row['label']}.png")


def test_a_feature_that_is_given_as_image_keeps_its_name(photos, tmp_path):
    image = Feature("uint8", (None, None, 1), encoding="image")
    rows = rows_of(photos / "photos")
    datum.write(rows, tmp_path / "out", schema={"path": image}, progress=False)
    assert list(datum.load(tmp_path / "out").schema) == ["path", "label", "path_filename"]
    whole = datum.Schema({"path": image, "label": Feature("int64")})
    datum.write(rows, tmp_path / "whole", schema=whole, progress=False)
    assert list(datum.load(tmp_path / "whole").schema) == ["path", "label"]


def test_a_column_called_filename_keeps_its_paths(photos, tmp_path):
    columns = {"filename": [f"{photos}/photos/{number}.png" for number in range(COUNT)]}
    datum.write(columns, tmp_path / "out", progress=False)
    assert list(datum.load(tmp_path / "out").schema) == ["image", "filename"]


def test_another_column_called_image_keeps_its_name(photos, tmp_path):
    source = as_table("frame", rows_of(photos / "photos", image=7), photos)
    datum.write(source, tmp_path / "out", progress=False)
    ds = datum.load(tmp_path / "out")
    assert ds.schema["path"].encoding == "image"
    assert ds.schema["image"] == Feature("int64")


def test_records_that_hold_images_keep_their_texts(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(photos)
    rows = [{"image": photos / f"photos/{n}.png", "filename": f"photos/{n}.png"} for n in range(3)]
    datum.write(rows, tmp_path / "out", progress=False)
    again = list(datum.load(tmp_path / "out")["train"])
    datum.write(again, tmp_path / "again", progress=False)
    assert datum.load(tmp_path / "again").schema["filename"] == Feature("str")
    data = [(photos / f"photos/{n}.png").read_bytes() for n in range(3)]
    columns = {"bytes": data, "filename": [f"photos/{n}.png" for n in range(3)]}
    datum.write(columns, tmp_path / "bytes", progress=False)
    assert datum.load(tmp_path / "bytes").schema["filename"] == Feature("str")


def test_empty_cells_are_absent_images(photos, tmp_path):
    rows = rows_of(photos / "photos")
    rows[3]["path"] = ""
    datum.write(as_table("csv", rows, photos), tmp_path / "out", progress=False)
    ds = datum.load(tmp_path / "out")
    assert ds.schema["image"].optional
    assert sum(row["image"] is None for row in ds["train"]) == 1


def test_the_decision_is_not_made_by_the_first_rows(photos, tmp_path):
    rows = [{"path": f"photos/gone{n}.png", "label": n} for n in range(5)] + rows_of("photos")
    source = as_table("csv", rows, photos)
    report = datum.write(source, tmp_path / "out", on_error="skip", progress=False)
    assert report.records == COUNT
    assert report.quarantined == {"train": 5}


def test_paths_that_are_not_there_stay_text_with_a_warning(photos, tmp_path):
    names = [f"{n}.png" for n in range(COUNT)]
    (photos / "t.csv").write_text("\n".join(["file", *names]))
    report = datum.write(photos / "t.csv", tmp_path / "out", progress=False)
    assert datum.load(tmp_path / "out").schema["file"] == Feature("str")
    (warning,) = report.warnings
    assert warning in str(report)
    assert "'file' looks like paths of images, but only 0 of 12 sampled are files in" in warning
    root = str(photos / "photos")
    assert f"ImageTable(table, path_column='file', root={root!r})" in warning
    assert datum.plan(photos / "t.csv").warnings == report.warnings
    source = datum.sources.ImageTable(photos / "t.csv", path_column="file", root=root)
    assert datum.write(source, tmp_path / "images", progress=False).records == COUNT


@pytest.mark.parametrize("values", [["cat", "x.png", "dog"], ["https://a.b/c.png"] * 3])
def test_other_texts_stay_texts_without_a_word(photos, tmp_path, values):
    report = datum.write({"text": values}, tmp_path / "out", progress=False)
    assert datum.load(tmp_path / "out").schema["text"] == Feature("str")
    assert not report.warnings
    assert not report.notes


def test_splits_share_one_decision(photos, tmp_path):
    train, val = rows_of(photos / "photos"), [{"path": "gone.png", "label": 1}]
    source = {"train": train, "val": val}
    report = datum.write(source, tmp_path / "out", on_error="skip", progress=False)
    assert report.quarantined == {"train": 0, "val": 1}


def test_a_named_source_reads_what_it_says(photos, tmp_path):
    path = as_table("csv", rows_of("photos"), photos)
    datum.write(datum.sources.CsvTable(path), tmp_path / "names", progress=False)
    assert datum.load(tmp_path / "names").schema["path"].dtype == "str"
    datum.write(path, tmp_path / "text", problem="text_clf", progress=False)
    assert datum.load(tmp_path / "text").schema["path"].dtype == "str"


def test_a_problem_of_images_needs_some(photos, tmp_path):
    (photos / "t.csv").write_text("x\n1\n")
    with pytest.raises(SourceError, match="hint: datum.sources.ImageTable"):
        datum.write(photos / "t.csv", tmp_path / "out", problem="image_clf", progress=False)
    path = as_table("csv", rows_of("photos"), photos)
    report = datum.write(path, tmp_path / "out", problem="image_clf", progress=False)
    assert report.records == COUNT


def test_a_function_is_called_once(photos, tmp_path):
    calls = []

    def rows():
        calls.append(1)
        yield from rows_of(photos / "photos")

    datum.write(rows, tmp_path / "out", progress=False)
    assert calls == [1]


def test_images_are_split_by_their_paths(photos, tmp_path):
    rows = rows_of(photos / "photos")
    for name, some in (("one", rows), ("two", rows[::-1])):
        datum.write(some, tmp_path / name, splits={"train": 0.5, "val": 0.5}, progress=False)
    found = [
        sorted(row["label"] for row in datum.load(tmp_path / name)["val"])
        for name in ("one", "two")
    ]
    assert found[0] == found[1]


def test_paths_of_windows_are_understood(photos, tmp_path):
    if os.sep != "/":
        pytest.skip("paths as they are")
    rows = [{"path": f"photos\\{number}.png"} for number in range(COUNT)]
    (photos / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    datum.write(photos / "t.jsonl", tmp_path / "out", progress=False)
    assert datum.load(tmp_path / "out").schema["image"].encoding == "image"


def test_a_torch_dataset_of_paths_is_looked_at_too(photos, tmp_path):
    rows = rows_of(photos / "photos")

    class Data:
        def __len__(self):
            return len(rows)

        def __getitem__(self, number):
            return rows[number]

    datum.write(Data(), tmp_path / "out", workers=1, progress=False)
    ds = datum.load(tmp_path / "out")
    assert np.all([row["image"][0, 0, 0] == row["label"] for row in ds["train"]])


CSV = "id,path,score,name\n1,images/a.jpg,0.5,cat\n2,images/b.jpg,,01\n"


@pytest.fixture
def root(tmp_path):
    for name in ("a", "b"):
        save(tmp_path / f"images/{name}.jpg", pixels(4, 5))
    (tmp_path / "table.csv").write_text(CSV)
    return tmp_path


def columns():
    return {"path": ["images/a.jpg", "images/b.jpg"], "id": np.array([1, 2], np.int16)}


def read_all(part):
    return part.read(np.arange(len(part)))


def part_of(table, **options):
    return ImageTable(table, path_column="path", **options).parts()["train"]


def test_a_csv_file_names_images_beside_it(root):
    part = part_of(root / "table.csv")
    assert isinstance(part, IndexedPart)
    assert dict(part.schema) == {
        "image": IMAGE,
        "id": Feature("int64"),
        "score": Feature("float64", optional=True),
        "name": Feature("str"),
        "filename": Feature("str"),
    }
    block = read_all(part)
    assert block.data["image"].tolist() == [root / "images/a.jpg", root / "images/b.jpg"]
    assert block.data["id"].tolist() == [1, 2]
    assert block.data["name"].to_list() == ["cat", "01"]
    assert block.keys == ["images/a.jpg", "images/b.jpg"]
    assert part.stored_bytes == sum(path.stat().st_size for path in (root / "images").iterdir())
    assert not part.is_slow_python


def test_a_dict_of_columns_keeps_its_types(root):
    part = part_of(columns(), root=root)
    assert part.schema["id"] == Feature("int16")
    block = part.read(np.array([1, 0]))
    assert block.data["image"].tolist() == [root / "images/b.jpg", root / "images/a.jpg"]
    assert block.data["id"].tolist() == [2, 1]
    assert block.data["filename"].to_list() == ["images/b.jpg", "images/a.jpg"]


def test_a_frame_and_an_arrow_table_give_the_same(root):
    pandas = pytest.importorskip("pandas")
    import pyarrow as pa

    tables = [columns(), pandas.DataFrame(columns()), pa.table(columns())]
    blocks = [read_all(part_of(table, root=root)) for table in tables]
    for block in blocks[1:]:
        assert block.data["image"].tolist() == blocks[0].data["image"].tolist()
        assert block.data["id"].dtype == np.int16
        assert block.data["filename"].to_list() == blocks[0].data["filename"].to_list()


def test_paths_may_be_categories(root):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns()).astype({"path": "category"})
    assert read_all(part_of(frame, root=root)).keys == ["images/a.jpg", "images/b.jpg"]


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_files_of_arrow_are_read(root, suffix):
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    path = root / f"table{suffix}"
    write = pa.parquet.write_table if suffix == ".parquet" else pa.feather.write_feather
    write(pa.table(columns()), path)
    part = part_of(path)
    assert part.schema["id"] == Feature("int16")
    assert read_all(part).data["image"][0] == root / "images/a.jpg"


def test_paths_may_be_absolute_and_of_another_root(root, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "table.csv").write_text(f"path\n{root / 'images/a.jpg'}\nimages/b.jpg\n")
    images = read_all(part_of(other / "table.csv", root=root)).data["image"]
    assert images.tolist() == [root / "images/a.jpg", root / "images/b.jpg"]


def test_the_column_itself_may_be_called_image_or_filename(root):
    for name in ("image", "filename"):
        table = {name: ["images/a.jpg"], "x": [1]}
        part = ImageTable(table, path_column=name, root=root, split="all").parts()["all"]
        assert list(part.schema) == ["image", "x", "filename"]
        assert isinstance(read_all(part).data["image"][0], Path)


def test_a_table_of_paths_alone_will_do(root):
    part = part_of({"path": ["images/a.jpg"]}, root=root)
    assert list(part.schema) == ["image", "filename"]


@pytest.mark.parametrize("taken", ["image", "filename"])
def test_another_column_of_that_name_is_refused(taken):
    with pytest.raises(SourceError, match=f"expected no column {taken!r} beside 'path'"):
        part_of({"path": ["a.jpg"], taken: [1]})


def test_rows_without_a_path_have_no_image(root):
    part = part_of({"path": ["images/a.jpg", None, ""], "x": [1, 2, 3]}, root=root)
    assert part.schema["image"].optional
    block = read_all(part)
    assert block.data["image"].tolist() == [root / "images/a.jpg", None, None]
    assert block.keys == ["images/a.jpg", "record 1", "record 2"]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"path": ["images/a.jpg", float("nan"), pandas.NA]})
    assert read_all(part_of(frame, root=root)).data["image"].tolist()[1:] == [None, None]


def test_paths_that_occur_twice_name_no_record(root):
    part = part_of({"path": ["images/a.jpg", "images/a.jpg"], "x": [1, 2]}, root=root)
    assert part.keys is None
    assert len(read_all(part)) == 2


def test_rows_of_another_length_are_rejected_with_their_line(root):
    (root / "table.csv").write_text("path,x\nimages/a.jpg\nimages/b.jpg,1\n")
    block = read_all(part_of(root / "table.csv"))
    (reject,) = block.rejects
    assert reject.where == f"{root / 'table.csv'}, line 2"
    assert reject.reason == "expected 2 cells, got 1"
    assert block.keys == ["images/b.jpg"]


def test_a_missing_image_is_the_business_of_whoever_reads_it(root):
    part = part_of({"path": ["images/gone.jpg", "a\0b"]}, root=root)
    assert len(read_all(part)) == 2
    assert part.stored_bytes == 0


def test_the_fingerprint_tells_changes(root):
    first = part_of(columns(), root=root).fingerprint
    assert part_of(columns(), root=root).fingerprint == first
    second = part_of({**columns(), "id": np.array([1, 3], np.int16)}, root=root).fingerprint
    save(root / "images/a.jpg", pixels(9, 9))
    assert len({first, second, part_of(columns(), root=root).fingerprint}) == 3


def test_a_part_can_be_sent_to_another_process(root):
    part = pickle.loads(pickle.dumps(part_of(root / "table.csv")))
    assert read_all(part).data["id"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"paths": ["a.jpg"]}, "expected a column 'path' of paths, got none\nhint: did you mean"),
        ({"x": [1]}, "hint: there are x"),
        (5, "expected something with records, got int"),
        ("gone.csv", "gone.csv: expected a file"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(table, message):
    with pytest.raises(SourceError, match=message):
        part_of(table)


@pytest.mark.parametrize("name", ["table.xlsx", "table.parquet", "table.feather"])
def test_files_that_are_no_tables_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"no table")
    with pytest.raises(SourceError, match=f"{name}: expected a"):
        part_of(tmp_path / name)
