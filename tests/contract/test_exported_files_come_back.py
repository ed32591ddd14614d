"""What `export_to` writes, written again as a dataset: the same records, schema and names."""

import io
import json
import math

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import datum
from datum import Feature, Sparse


def png(value: int, *, mode: str = "RGB") -> bytes:
    file = io.BytesIO()
    Image.new(mode, (5, 4), value if mode == "L" else (value, 2, 3)).save(file, "PNG")
    return file.getvalue()


def bag(*places: int) -> Sparse:
    return Sparse(np.array(places, np.int64).reshape(-1, 1), np.ones(len(places), np.float32), (9,))


@pytest.fixture
def written(tmp_path):
    rows = [
        {
            "photo": png(10 * n),
            "mask": png(n, mode="L"),
            "label": n % 2,
            "words": None if n == 2 else bag(n, n + 3),
            "grid": Sparse(np.array([[0, n]]), np.array([n]), (2, 7)),
            "note": f"number {n}",
            "maybe": None if n == 1 else n,
            "list": [0.5] * n,
        }
        for n in range(6)
    ]
    schema = {
        "photo": Feature("uint8", (None, None, 3), encoding="image"),
        "mask": Feature("uint8", (None, None, 1), encoding="image"),
    }
    splits = {"train": rows[:4], "val": rows[4:]}
    options = {"schema": schema, "shuffle": False, "progress": False}
    datum.write(None, tmp_path / "first", splits=splits, **options)
    manifest = tmp_path / "first" / "datum.json"
    told = json.loads(manifest.read_text())
    told["metadata"]["label"] = {"class_names": ["cat", "dog"]}
    manifest.write_text(json.dumps({**told, "checksum": None}))
    return datum.load(tmp_path / "first")


def assert_same(found, expected):
    assert len(found) == len(expected)
    for mine, other in zip(found, expected, strict=True):
        assert mine.keys() == other.keys()
        for name, value in other.items():
            if isinstance(value, Sparse):
                np.testing.assert_array_equal(mine[name].to_dense(), value.to_dense())
            else:
                np.testing.assert_array_equal(mine[name], value)


def test_parquet_comes_back_as_it_was(written, tmp_path):
    datum.export_to(written, tmp_path / "files", format="parquet", split=None)
    files = tmp_path / "files"
    again = datum.write(files, tmp_path / "second", shuffle=False, progress=False)
    assert again.records == 6
    second = datum.load(tmp_path / "second")
    assert second.schema == written.schema
    assert second.metadata == written.metadata
    for split in written:
        assert_same(second[split], written[split])


def test_a_table_in_memory_comes_back_as_it_was(written, tmp_path):
    table = written["train"].to_arrow()
    datum.write(table, tmp_path / "second", shuffle=False, progress=False)
    second = datum.load(tmp_path / "second")
    assert_same(second["train"], written["train"])
    assert second.schema["words"].encoding == "sparse"


def test_what_another_program_changed_is_taken_as_it_is(written, tmp_path):
    table = written["train"].to_arrow()
    told = table.schema.metadata
    label = table.schema.get_field_index("label")
    photo = table.schema.get_field_index("photo")
    table = table.set_column(photo, "photo", [["a", "b", "c", "d"]])
    table = table.rename_columns(
        ["kind" if n == label else name for n, name in enumerate(table.column_names)]
    )
    pq.write_table(table.slice(1).replace_schema_metadata(told), tmp_path / "changed.parquet")
    datum.write(tmp_path / "changed.parquet", tmp_path / "out", shuffle=False, progress=False)
    found = datum.load(tmp_path / "out")
    assert found["train"][0]["photo"] == "b"
    assert found.metadata["kind"] == {"class_names": ["cat", "dog"]}  # a dictionary of Arrow's
    assert found.schema["mask"].encoding == "image"
    assert found.schema["words"].optional


@pytest.mark.parametrize("told", [b"{}", b"not json", b'{"schema": 3, "metadata": {}}'])
def test_other_metadata_of_that_name_is_no_harm(told, tmp_path):
    table = datum.load(datum.write({"x": [1, 2]}, tmp_path / "a", progress=False).path)["train"]
    changed = table.to_arrow().replace_schema_metadata({"datum": told})
    datum.write(changed, tmp_path / "b", progress=False)
    assert len(datum.load(tmp_path / "b")["train"]) == 2


def test_json_lines_keep_floats_that_are_no_numbers_of_json(tmp_path):
    values = [1.5, math.nan, math.inf, -math.inf]
    rows = [{"x": x, "pair": [x, 0.0], "word": "NaN"} for x in values]
    datum.write(rows, tmp_path / "first", shuffle=False, progress=False)
    datum.export_to(tmp_path / "first", tmp_path / "x.jsonl", format="jsonl")
    text = (tmp_path / "x.jsonl").read_text()
    lines = [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]
    assert [line["x"] for line in lines] == [1.5, "NaN", "Infinity", "-Infinity"]
    assert lines[2]["pair"] == ["Infinity", 0.0]
    schema = {"x": Feature("float32"), "pair": Feature("float32", (2,))}
    datum.write(
        tmp_path / "x.jsonl", tmp_path / "out", schema=schema, shuffle=False, progress=False
    )
    assert_same(datum.load(tmp_path / "out")["train"], datum.load(tmp_path / "first")["train"])
