"""Which record an error names, and whether its hint leads on."""

import json

import pytest

import datum
from datum.cli.shell import say_for_shell
from datum.errors import SchemaError, SourceError


def write_lines(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_bad_line_of_a_table_is_named_whatever_the_order_of_writing(tmp_path, workers):
    lines = ["a,b", *(f"{n},x" for n in range(5000))]
    lines[10], lines[1010] = "9,x,too,many", "1009,x,too,many"
    source = write_lines(tmp_path / "x.csv", lines)
    with pytest.raises(SourceError, match=r"line 11\b"):
        datum.write(source, tmp_path / "out", workers=workers, progress=False)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_bad_line_of_json_is_named_whatever_is_wrong_with_it(tmp_path, workers):
    lines = [json.dumps({"x": n}) for n in range(3000)]
    lines[9], lines[1010] = json.dumps({"x": "nine"}), "{broken"
    source = write_lines(tmp_path / "x.jsonl", lines)
    with pytest.raises(
        SchemaError, match=r"line 10: record 9: feature 'x': expected int64, got str"
    ):
        datum.write(source, tmp_path / "out", workers=workers, progress=False)
    lines[9] = json.dumps({"x": 9})
    write_lines(source, lines)
    with pytest.raises(SourceError, match="line 1011"):
        datum.write(source, tmp_path / "out", workers=workers, progress=False)


def test_to_put_records_aside_is_proposed_where_few_are_bad(tmp_path):
    rows = [{"x": n} for n in range(100)]
    rows[5] = {"x": "five"}
    with pytest.raises(SchemaError, match="hint: on_error='quarantine' puts such records aside"):
        datum.write(rows, tmp_path / "out", progress=False)


def test_to_put_records_aside_is_not_proposed_where_nearly_all_would_go(tmp_path):
    rows = [{"x": 1}, *({"x": "text"} for _ in range(99))]
    with pytest.raises(SchemaError, match="record 1: feature 'x': expected int64") as raised:
        datum.write(rows, tmp_path / "out", progress=False)
    assert "quarantine" not in str(raised.value)
    source = write_lines(tmp_path / "x.csv", ["a,b", "1,2", *["1,2,3"] * 50])
    with pytest.raises(SourceError, match="line 3") as raised:
        datum.write(source, tmp_path / "out", progress=False)
    assert "quarantine" not in str(raised.value)


def test_a_text_that_names_a_float_leads_to_a_schema_that_takes_it(tmp_path):
    rows = [{"x": 0.5}, {"x": "NaN"}]
    with pytest.raises(SchemaError) as raised:
        datum.write(rows, tmp_path / "out", progress=False)
    hint = str(raised.value).partition("hint: ")[2]
    assert say_for_shell(hint) == "--schema x=float32 takes it for a float"
    given = eval(hint.removeprefix("schema=").partition(" takes")[0], {"datum": datum})
    assert datum.write(rows, tmp_path / "out", schema=given, progress=False).records == 2


def test_a_folder_without_anything_in_it_is_told_as_empty(tmp_path):
    for name in ("JPEGImages", "SegmentationClass"):
        (tmp_path / "data" / name).mkdir(parents=True)
    with pytest.raises(SourceError) as raised:
        datum.write(tmp_path / "data", tmp_path / "out", problem="image_seg", progress=False)
    assert "SegmentationClass/ with masks" in str(raised.value)
    assert "got JPEGImages/ (empty), SegmentationClass/ (empty)" in str(raised.value)


def test_values_that_a_dataset_cannot_take_lead_to_its_own_feature(tmp_path):
    rows = [{"x": [0.5]}, {"x": [1.5, 2.5]}, {}]
    datum.write(rows, tmp_path / "out", progress=False)
    more = [{"x": [2.0**24 + 1]}]
    with pytest.raises(SchemaError) as raised:
        datum.write(more, tmp_path / "out", append=True, progress=False)
    hint = str(raised.value).partition("hint: ")[2]
    assert say_for_shell(hint).startswith("--schema 'x=float32[?]?' rounds it")
    given = eval(hint.removeprefix("schema=").partition(" rounds")[0], {"datum": datum})
    datum.write(more, tmp_path / "out", append=True, schema=given, progress=False)
    assert len(datum.load(tmp_path / "out")["train"]) == 4
