"""Options of a write, what they warn of, and the hints of errors."""

import inspect
import json

import numpy as np
import pytest

import datum
from datum import SplitError
from datum._options import options_of
from datum._write.options import PlanOptions
from datum._write.plan import find_cautions
from datum._write.report import PlannedSplit
from datum.errors import SchemaError, SourceError
from datum.sources import Reject
from tests.unit.write.datasets import rows, write


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"compression": "bz2"}, "compression"),
        ({"on_error": "ignore"}, "on_error"),
        ({"floats": "float16"}, "floats"),
        ({"shards": 0}, "shards"),
        ({"records_per_shard": 0}, "records_per_shard"),
        ({"records_per_shard": 5, "shards": 2}, "`shards` or `records_per_shard`, got both"),
        ({"records_per_shard": 5, "shards": {"train": 2}}, "`shards` or `records_per_shard`"),
        ({"shard_bytes": 10}, "shard_bytes"),
        ({"workers": 0}, "workers"),
        ({"executor": "cloud"}, "executor"),
        ({"keys": "coco"}, "keys"),
        ({"sidecars": ["older"], "compression": "gzip"}, "older"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(tmp_path, options, match):
    with pytest.raises(ValueError, match=match):
        write(rows(1), tmp_path / "out", **options)


@pytest.mark.parametrize("name", ["records_per_shard", "shards", "shard_bytes", "seed", "workers"])
def test_options_of_another_type_are_refused(tmp_path, name):
    with pytest.raises(TypeError, match=f"expected `{name}` to be a whole number, got 2.5"):
        write(rows(1), tmp_path / "out", **{name: 2.5})


@pytest.mark.parametrize("function", [datum.write, datum.plan, datum.reshard])
def test_every_option_is_in_the_signature_and_the_docstring(function):
    parameters = inspect.signature(function).parameters
    text = inspect.getdoc(function)
    for name, option in options_of(function).items():
        assert parameters[name].default == option.default
        assert parameters[name].annotation
        assert f"\n    {name}: " in text
        assert option.help.endswith(".")
    assert not any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def test_numbers_of_numpy_are_numbers(tmp_path):
    report = write(rows(4), tmp_path / "out", shards=np.int64(2), seed=np.uint8(3))
    assert report.splits["train"].shards == 2


def test_shards_of_a_split_that_there_is_not_are_refused():
    options = PlanOptions(shards={"trian": 2})
    options.check_split_names(["trian"])
    with pytest.raises(SplitError, match=r"got 'trian'\nhint: did you mean 'train'"):
        options.check_split_names(["train", "val"])
    with pytest.raises(SplitError, match=r"hint: there are other"):
        options.check_split_names(["other"])


REJECT = Reject(7, "k", "a.csv, line 9", "expected 2 cells, got 3", "none")


def cautions(
    splits=None, metadata=None, *, rejects=(), duplicates=(), unfitted=(), unread=(), **options
):
    return find_cautions(
        PlanOptions(**{"shard_bytes": 1 << 20, **options}),
        splits or {"train": PlannedSplit("", 10, 10, 1000, 1)},
        metadata or {},
        looked_at=10,
        rejects=rejects,
        duplicates=duplicates,
        unfitted=unfitted,
        unread=unread,
    )


def test_a_sound_plan_has_none():
    assert cautions() == ()


@pytest.mark.parametrize(
    ("on_error", "words"),
    [("raise", "will stop there"), ("skip", "left out"), ("quarantine", "put aside")],
)
def test_bad_records_are_told_with_what_becomes_of_them(on_error, words):
    (found,) = cautions(rejects=[REJECT], on_error=on_error)
    assert words in found
    assert found.endswith("the first: a.csv, line 9: record 7 (k): expected 2 cells, got 3")


def test_keys_that_occur_twice():
    assert "1 record with the key of another, such as 'k'" in cautions(duplicates=[REJECT])[0]
    assert "leave them out" in cautions(duplicates=[REJECT], on_error="skip")[0]


def test_what_else_lies_in_a_folder():
    (found,) = cautions(unread=["a", "b/", "c", "d"])
    assert found == "4 more in this folder will not be read: a, b/, c, ..."


def test_splits_and_shards_of_odd_sizes():
    split = {
        "empty": PlannedSplit("", 0, 0, 0, 1),
        "many": PlannedSplit("", 3, 3, 300, 10),
        "small": PlannedSplit("", 1000, 1000, 10_000, 10),
        "large": PlannedSplit("", 1000, 1000, 10**12, 2),
    }
    found = cautions(split)
    assert found == (
        "split 'empty' has no records",
        "split 'many': 10 shards for 3 records: some will be empty",
        "split 'small': 10 shards of only about 1.0 kB each",
        "split 'large': shards of about 500.0 GB each; more of them can be read side by side",
    )


def test_compression_empty_columns_and_encoders():
    metadata = {name: {"left_out": "no record has a value"} for name in "abcd"}
    learns = "encoders of text learn from all of the split 'train' first"
    assert cautions(metadata=metadata, compression="gzip", unfitted={"text"}) == (
        "compressed shards cannot be read by record number without a copy in the cache",
        "4 columns left out, as no record has a value: a, b, c, ...",
        f"{learns}: how large their features are is a guess",
    )


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
    with pytest.raises(SchemaError, match="hint: on_error='quarantine' sets such records aside"):
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
    assert hint == "schema={'x': datum.Feature('float32')} reads it as a float"
    assert raised.value.hint.options[0].value == {"x": datum.Feature("float32")}
    given = eval(hint.removeprefix("schema=").partition(" reads")[0], {"datum": datum})
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
    assert raised.value.hint.options[0].value == {
        "x": datum.Feature("float32", (None,), optional=True)
    }
    given = eval(hint.removeprefix("schema=").partition(" rounds")[0], {"datum": datum})
    datum.write(more, tmp_path / "out", append=True, schema=given, progress=False)
    assert len(datum.load(tmp_path / "out")["train"]) == 4
