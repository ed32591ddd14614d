"""`datum write`: options, preview, report."""

import inspect
import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import datum
from datum import Feature, MissingDependencyError, SchemaError, SourceError, WriteReport
from datum._write.report import SplitReport
from datum.cli import main
from datum.cli.arguments import read_toml
from datum.cli.commands import write
from datum.cli.flags import parse_flags
from datum.cli.formatting import spell_feature
from datum.cli.shell import find_hint
from datum.cli.write_options import (
    WRITE_FLAGS,
    LinesOfStdin,
    encoders_of,
    features_of,
    parse_feature,
    parse_fractions,
    parse_shards,
    read_encoders,
    read_options,
    read_schema,
    source_of,
)
from datum.cli.write_report import report_to_json, show_plan, show_report, tell_plan
from tests.unit.images.samples import pixels, save


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder: its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["write", *map(str, words)])
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("number,name\n" + "".join(f"{i},row {i}\n" for i in range(50)))
    return path


def test_it_says_what_it_found_what_it_did_and_what_comes_next(run, table):
    code, out, err = run("table.csv", "made")
    assert code == 0
    assert err.splitlines() == [
        "found: CSV table; train 50 records, about 2.7 kB",
        "features: number=int64, name=str",
        "next: datum info made",
    ]
    assert out.splitlines()[0].startswith("made: 50 records in ")
    assert len(datum.load("made")["train"]) == 50


def test_options_of_tables_are_given_by_flags_and_in_a_file(run, tmp_path):
    (tmp_path / "a.csv").write_text("by hand\n#\n1,5;x;01\n2;NONE;2\n")
    words = [
        "--no-header",
        "--delimiter",
        ";",
        "--skip-rows",
        1,
        "--comment",
        "#",
        "--decimal",
        ",",
    ]
    words += [
        "--decimal",
        ",",
        "--names",
        "a,b,c",
        "--columns",
        "c,a,b",
        "--rename",
        "b=B",
        "--null-values",
        "NONE",
    ]
    code, _, err = run("a.csv", "made", *words, "--schema", "c=int64", "--no-shuffle")
    assert (code, err.splitlines()[1]) == (0, "features: c=int64, a=float32, B=str?")
    expected = [{"c": 1, "a": 1.5, "B": "x"}, {"c": 2, "a": 2.0, "B": None}]
    assert list(datum.load("made")["train"]) == expected
    (tmp_path / "o.toml").write_text(
        'header = false\ndelimiter = ";"\nskip_rows = 1\ncomment = "#"\ndecimal = ","\n'
        'names = ["a", "b", "c"]\ncolumns = ["c", "a", "b"]\nnull_values = ["NONE"]\n'
        'shuffle = false\n[rename]\nb = "B"\n[schema]\nc = "int64"\n'
    )
    code, _, _ = run("a.csv", "again", "--options", "o.toml")
    assert code == 0
    assert list(datum.load("again")["train"]) == expected


def test_options_of_tables_that_do_not_apply_are_named_as_flags(run, tmp_path, monkeypatch):
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    code, _, err = run("a.jsonl", "made", "--skip-rows", 1)
    assert code == 1
    assert "error: --skip-rows applies to CSV files; a.jsonl holds JSON Lines\n" in err
    assert "hint" not in err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"x": 1}\n')))
    code, _, err = run("-", "made", "--delimiter", ";")
    assert code != 0
    assert "--delimiter applies to tables in files; stdin holds JSON lines" in err


def test_a_dry_run_names_files_of_other_columns_and_the_flags_to_go_on(run, tmp_path):
    (tmp_path / "days").mkdir()
    (tmp_path / "days" / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "days" / "2.csv").write_text("a,c\n1,2\n")
    code, _, err = run("days", "--dry-run")
    assert code == 1
    assert "days/2.csv: lacks b; also has c" in err
    assert "hint: --columns union reads every column" in err
    assert run("days", "made", "--columns", "union")[0] == 0
    for name in ("train", "test", "sample_submission"):
        (tmp_path / "days" / f"{name}.csv").write_text("a\n1\n")
    code, _, err = run("days", "--dry-run")
    assert "datum write OUT --source test=days/test.csv --source train=days/train.csv" in err


def test_sidecars_are_given_by_flags_and_in_a_file(run, table, tmp_path):
    names = {"dataset_info.json", "features.json", "shard_info.json"}
    code, _, _ = run(table, "a", "--sidecar", "tfds", "--sidecar", "older")
    assert code == 0
    (tmp_path / "options.toml").write_text('sidecars = ["tfds", "older"]')
    code, _, _ = run(table, "b", "--options", "options.toml")
    assert code == 0
    for out in ("a", "b"):
        assert names <= {path.name for path in (tmp_path / out).iterdir()}
    code, _, err = run(table, "c", "--sidecar", "tfd")
    assert code == 2
    assert "hint: did you mean 'tfds'?" in err
    code, _, err = run(table, "c", "--sidecar", "tfds", "--compression", "gzip")
    assert code == 2
    assert "expected no --compression with 'tfds'" in err
    assert "hint: leave out --compression gzip" in err


def test_keys_are_those_of_another_library(run, table, shared_data, tmp_path):
    source, name = shared_data / "bccd_voc", "tf_object_detection"
    code, _, _ = run(source, "a", "--keys", name)
    assert code == 0
    (tmp_path / "options.toml").write_text(f'keys = "{name}"')
    assert run(source, "b", "--options", "options.toml")[0] == 0
    for out in ("a", "b"):
        assert datum.load(out).schema["image"].keys == ("image/encoded",)
        assert (tmp_path / out / "label_map.pbtxt").is_file()
    code, _, err = run(table, "c", "--keys", name)
    assert code == 1
    assert "expected records with an image and boxes" in err
    assert run(source, "c", "--keys", "coco")[0] == 2


def test_options_reach_the_library(run, table):
    words = "--splits train=0.8,val=0.2 --seed 3 --shards train=2,val=1 --compression gzip"
    code, _, _ = run(table, "a", *words.split(), "--schema", "number=uint8", "--workers", 1)
    assert code == 0
    splits = {"train": 0.8, "val": 0.2}
    datum.write(
        table,
        "b",
        splits=splits,
        seed=3,
        shards={"train": 2, "val": 1},
        compression="gzip",
        schema={"number": datum.Feature("uint8")},
        progress=False,
    )
    for name in ("train-00001-of-00002.tfrecord", "datum.json"):
        with open(f"a/{name}", "rb") as ours, open(f"b/{name}", "rb") as theirs:
            assert ours.read() == theirs.read()


def test_a_source_for_each_split(run, table):
    code, _, _ = run("made", "--source", "train=table.csv", "--source", "test=table.csv")
    assert code == 0
    assert {name: split.records for name, split in datum.load("made").splits.items()} == {
        "train": 50,
        "test": 50,
    }


def test_a_dry_run_shows_the_plan_and_writes_nothing(run, tmp_path, table):
    code, out, err = run("table.csv", "made", "--dry-run", "--splits", "train=0.8,val=0.2")
    assert (code, err) == (0, "")
    words = [line.split() for line in out.splitlines()]
    assert words[0] == ["CSV", "table"]
    assert words[2] == ["split", "records", "size", "shards", "from"]
    assert words[3] == ["train", "40", "~2.2", "kB", "1", "0.8", "of", "table.csv"]
    assert ["number", "int64"] in words
    assert out.endswith("dry run: nothing was written. made is unchanged.\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv"]


def test_a_dry_run_needs_no_target(run, table):
    code, out, _ = run("table.csv", "-n", "--json")
    assert code == 0
    assert json.loads(out) == datum.plan("table.csv").to_json()


def test_json_is_the_report(run, table):
    code, out, err = run("table.csv", "made", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["path"], found["records"], found["shards"]) == ("made", 50, 1)
    assert found["splits"]["train"]["rejected"] == 0
    assert found["quarantine"] is None
    assert err.startswith("found: ")


def test_classes_and_files_that_are_none_are_shown(run, tmp_path):
    for name in ("cat/1.png", "dog/2.png"):
        save(tmp_path / "photos" / name, pixels(4, 4), "PNG")
    (tmp_path / "photos" / "cat" / "notes.md").write_text("x")
    _, out, _ = run("photos", "--dry-run")
    assert "class folders: 2 classes" in out
    assert "2 classes: cat, dog" in out
    assert "image uint8 (4, 4, 3)" in out
    assert "skipped 1 file without records: cat/notes.md" in out


def test_lines_of_stdin(run, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"".join(b'{"x": %d}\n' % i for i in range(2000)))
        isatty = staticmethod(lambda: False)

    monkeypatch.setattr("sys.stdin", Stdin)
    code, _, err = run("-", "made", "--no-shuffle")
    assert code == 0
    assert err.startswith("found: JSON lines of stdin; train records not counted yet\n")
    assert [int(row["x"]) for row in datum.load("made")["train"][[0, 1999]]] == [0, 1999]


def test_bad_records_are_put_aside_and_told(run, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"x": 1}\nno\n{"x": 3}\n')
    code, _, err = run("a.jsonl", "made")
    assert code == 1
    assert "a.jsonl, line 2: record 1: expected JSON" in err
    assert "hint: --on-error quarantine sets such records aside" in err
    code, out, err = run("a.jsonl", "made", "--on-error", "quarantine")
    assert code == 0
    assert "1 left out" in out
    assert "warning: 1 record could not be written; the reasons are in made/quarantine.jsonl" in err


def test_a_file_of_options_and_the_line_that_wins(run, table, tmp_path):
    (tmp_path / "o.toml").write_text(
        'source = "table.csv"\nout = "made"\nshards = 3\n[splits]\na = 0.5\nb = 0.5\n'
    )
    code, _, _ = run("--options", "o.toml")
    assert code == 0
    assert [len(split.shards) for split in datum.load("made").splits.values()] == [3, 3]
    code, _, _ = run("--options", "o.toml", "other", "--shards", 1)
    assert [len(split.shards) for split in datum.load("other").splits.values()] == [1, 1]


def test_records_per_shard_on_the_line_and_in_a_file(run, table, tmp_path):
    code, _, _ = run(table, "made", "--records-per-shard", 20)
    assert code == 0
    assert [shard.records for shard in datum.load("made").splits["train"].shards] == [16, 17, 17]
    (tmp_path / "o.toml").write_text('source = "table.csv"\nrecords_per_shard = 10\n')
    assert run("--options", "o.toml", "five")[0] == 0
    assert len(datum.load("five").splits["train"].shards) == 5
    assert run("--options", "o.toml", "two", "--shards", 2)[0] == 0
    assert len(datum.load("two").splits["train"].shards) == 2
    code, _, err = run(table, "both", "--shards", 2, "--records-per-shard", 20)
    assert code == 2
    assert "expected --shards or --records-per-shard, got both: 2 and 20" in err
    (tmp_path / "o.toml").write_text('records_per_shard = "10"\n')
    assert "records_per_shard: expected a number, got '10'" in run(table, "--options", "o.toml")[2]
    found = run(table, "--dry-run", "--records-per-shard", 20, "--json")[1]
    assert json.loads(found)["splits"]["train"]["shards"] == 3


def test_an_unknown_option_of_a_file_names_the_nearest(run, tmp_path):
    (tmp_path / "o.toml").write_text("shufle = true\n")
    code, _, err = run("a", "b", "--options", "o.toml")
    assert code == 2
    assert "got 'shufle'\nhint: did you mean 'shuffle'?" in err


def test_a_dataset_that_is_there_is_replaced_or_added_to_only_when_asked(run, table):
    assert run("table.csv", "made")[0] == 0
    code, _, err = run("table.csv", "made")
    assert code == 1
    assert err == (
        "error: made: a dataset already exists\n"
        "hint: --overwrite replaces it, --append adds to it\n"
    )
    assert run("table.csv", "made", "--append")[0] == 0
    assert len(datum.load("made")["train"]) == 100
    assert run("table.csv", "made", "--overwrite")[0] == 0
    assert len(datum.load("made")["train"]) == 50


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "error: expected SRC, what to write, got none\nhint: datum write SRC OUT"),
        (["table.csv"], "hint: datum write table.csv OUT, or --dry-run to see"),
        (["a", "b", "--source", "train=c"], "expected SRC or a source for each split, got both"),
        (["table.csv", "b", "--splits", "train=0.5"], "expected fractions that add up to 1"),
        (["table.csv", "b", "--splits", "half"], "--splits: expected name=value"),
        (["table.csv", "b", "--shard-size", "big"], "expected a number of bytes, got 'big'"),
        (["table.csv", "b", "--on-error", "skipp"], "did you mean 'skip'?"),
        (["table.csv", "b", "--problem", "image_cls"], "did you mean 'image_clf'?"),
        (["table.csv", "b", "--options", "no.toml"], "no.toml"),
        (["nowhere", "b"], "nowhere: expected a file or a folder, got nothing there"),
    ],
)
def test_a_call_that_cannot_be_meant_is_told(run, table, words, message):
    code, out, err = run(*words)
    assert code in (1, 2)
    assert out == ""
    assert message in err


def test_images_beside_a_folder_of_tables_lead_on(run, tmp_path):
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "x.npy", np.arange(3))
    code, _, err = run("in", "made")
    assert code == 1
    assert "hint: records of any kind can come as JSON lines" in err


def test_encoders_and_stratified_splits(run, tmp_path):
    rows = "".join(f"{'ab'[i % 2]},text {i}\n" for i in range(40))
    (tmp_path / "t.csv").write_text("label,text\n" + rows)
    words = ["--encoders", "label=LabelEncoder", "--splits", "a=0.5,b=0.5", "--stratify", "label"]
    code, _, err = run("t.csv", "made", *words)
    assert code == 0
    assert "about " in err.splitlines()[0]
    dataset = datum.load("made")
    assert dataset.metadata["label"]["class_names"] == ["a", "b"]
    assert [len(dataset[name]) for name in ("a", "b")] == [20, 20]


def test_a_dataset_is_not_taken_for_texts_in_json(run, table, tmp_path):
    assert run("table.csv", "made", "--no-progress")[0] == 0
    code, out, err = run("made", "again")
    assert (code, out) == (1, "")
    assert "made: expected data to write, got a dataset of TFRecord files" in err
    assert "hint: these are TFRecord files already" in err
    assert "datum reshard made again" in err
    assert not (tmp_path / "again").exists()


def test_the_only_path_is_where_to_write_in_a_dry_run_too(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("x\n1\n2\n")
    options = tmp_path / "options.toml"
    options.write_text(f'source = "{tmp_path / "rows.csv"}"\n')
    with pytest.raises(SystemExit) as ended:
        main(["write", str(tmp_path / "out"), "--options", str(options), "--dry-run"])
    assert ended.value.code == 0
    assert "CSV" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_rounded_floats_are_told_and_can_be_kept(run, tmp_path):
    (tmp_path / "table.csv").write_text("x,t\n0.9876,1700000000.5\n0.5,2.5\n")
    _, out, _ = run("table.csv", "rounded")
    assert out.splitlines()[-2:] == [
        "  rounded to float32: x (--floats float64 keeps every bit)",
        "  kept as float64: t, as float32 cannot hold 1700000000.5 (record 0 of 'train')",
    ]
    assert run("table.csv", "exact", "--floats", "float64")[0] == 0
    assert datum.load("exact").schema["x"] == datum.Feature("float64")
    (tmp_path / "options.toml").write_text('floats = "float64"\n')
    assert run("table.csv", "again", "--options", "options.toml")[0] == 0
    assert datum.load("again").schema == datum.load("exact").schema
    code, out, _ = run("table.csv", "told", "--json")
    assert json.loads(out)["rounded"] == ["x"]
    code, _, err = run("table.csv", "no", "--floats", "float16")
    assert code == 2
    assert "expected --floats to be 'float32' or 'float64', got 'float16'" in err


def test_a_value_that_cannot_be_added_has_a_hint_that_works(run, tmp_path):
    (tmp_path / "a.csv").write_text("x\n0.5\n")
    (tmp_path / "b.csv").write_text("x\n1700000000.5\n")
    run("a.csv", "out")
    code, _, err = run("b.csv", "out", "--append")
    assert code == 1
    assert "hint: --schema x=float32 rounds it" in err
    assert run("b.csv", "out", "--append", "--schema", "x=float32")[0] == 0


def read(tmp_path, text):
    path = tmp_path / "o.toml"
    path.write_text(text)
    return read_options(str(path))


def test_every_option_of_the_library_is_one_of_the_command():
    ours = set(inspect.signature(write.command).parameters)
    theirs = set(inspect.signature(datum.write).parameters)
    assert {"shuffle", "delimiter"} < theirs
    assert theirs - ours == set()


def test_every_option_of_a_plan_is_one_of_a_write():
    planned = set(inspect.signature(datum.plan).parameters)
    written = set(inspect.signature(datum.write).parameters)
    assert planned <= written
    run = {"workers", "executor", "overwrite", "append", "storage", "progress"}
    assert written - planned == {"out", *run}


def test_the_line_is_read_as_the_library_takes_it():
    line = {
        "splits": ["train=0.9", "val=10%"],
        "schema": ["x=int64"],
        "shard_bytes": "1MiB",
        "shards": "train=2,val=1",
        "compression": "none",
        "seed": 3,
        "shuffle": False,
        "workers": None,
        "rename": [],
        "delimiter": "tab",
        "null_values": ["NA,-", ""],
    }
    assert parse_flags(WRITE_FLAGS, line) == {
        "splits": {"train": 0.9, "val": 0.1},
        "schema": {"x": Feature("int64")},
        "shard_bytes": 1 << 20,
        "shards": {"train": 2, "val": 1},
        "compression": None,
        "seed": 3,
        "shuffle": False,
        "delimiter": "\t",
        "null_values": ["NA", "-", ""],
    }


def test_what_cannot_be_read_is_told():
    with pytest.raises(
        ValueError, match=r"train: expected a fraction .*got 'a.csv'\nhint: --source"
    ):
        parse_fractions({"train": "a.csv"})
    with pytest.raises(ValueError, match=r"--shards: expected a number, got 'many'"):
        parse_shards("many")
    with pytest.raises(ValueError, match="expected --splits or --source, got both"):
        write.command("out", source=["a=b"], splits=["a=1"])


def test_a_file_has_the_names_of_the_library(tmp_path):
    found = read(
        tmp_path,
        """
        source = "photos"
        out = "made"
        shard_bytes = "256MiB"
        seed = 7
        shuffle = false
        compression = "none"
        on_error = "skip"
        [splits]
        train = 0.9
        val = 0.1
        [schema]
        age = "int64?"
        [schema.box]
        dtype = "float32"
        shape = ["?", 4]
        [encoders.label]
        class = "LabelEncoder"
        [shards]
        train = 8
        """,
    )
    assert type(found.pop("encoders")["label"]).__name__ == "LabelEncoder"
    assert found == {
        "source": "photos",
        "out": "made",
        "shard_bytes": 256 << 20,
        "seed": 7,
        "shuffle": False,
        "compression": None,
        "on_error": "skip",
        "splits": {"train": 0.9, "val": 0.1},
        "schema": {"age": Feature("int64", optional=True), "box": Feature("float32", (None, 4))},
        "shards": {"train": 8},
    }


def test_a_file_may_say_size_as_the_line_does(tmp_path):
    assert read(tmp_path, "shard_size = '1MiB'") == {"shard_bytes": 1 << 20}


def test_splits_of_a_file_may_be_sources(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    text = f"""
    [splits]
    val = "b.csv"
    train = {{class = "CsvTable", path = "{tmp_path / "a.csv"}"}}
    """
    found = read(tmp_path, text)["splits"]
    assert found["val"] == "b.csv"
    assert isinstance(found["train"], datum.sources.CsvTable)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shards_bytes = 3", r"got 'shards_bytes'\nhint: did you mean 'shard_bytes'"),
        ("xyz = 3", r"got 'xyz'\nhint: there are source, out, problem"),
        ("shuffle = 'yes'", "o.toml: shuffle: expected true or false, got 'yes'"),
        ("seed = 1.5", "seed: expected a number, got 1.5"),
        ("seed = true", "seed: expected a number, got True"),
        ("problem = 3", "problem: expected a text, got 3"),
        ("splits = 'train'", "splits: expected fractions or sources by split, got 'train'"),
        ("[splits]", "splits: expected fractions or sources by split"),
        ("[splits]\ntrain = []", "o.toml: splits.train: expected a path"),
        ("shard_bytes = 'many'", "expected a number of bytes"),
    ],
)
def test_what_a_file_should_not_say_is_told(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text)


def lines(text):
    return LinesOfStdin(io.BytesIO(text if isinstance(text, bytes) else text.encode()))


def test_a_path_or_a_class_of_sources(tmp_path):
    assert source_of("a/b", where="o") == "a/b"
    (tmp_path / "a.txt").write_text("x;y\n1;2\n")
    table = {"class": "CsvTable", "path": str(tmp_path / "a.txt"), "delimiter": ";"}
    found = source_of(table, where="o")
    assert isinstance(found, datum.sources.CsvTable)
    assert list(found.parts()["train"].schema) == ["x", "y"]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (7, "o: expected a path, or a table with a `class` of datum.sources, got 7"),
        ({"path": "a"}, "expected a path, or a table with a `class`"),
        ({"class": "CsvTabel"}, "did you mean CsvTable"),
        ({"class": "Block"}, "expected a class of datum.sources, got 'Block'"),
        ({"class": "CsvTable", "file": "a"}, "CsvTable: expected its options, got"),
    ],
)
def test_what_is_no_source_is_told(found, message):
    with pytest.raises(ValueError, match=message):
        source_of(found, where="o")


def test_lines_are_records_and_others_are_rejected():
    source = lines('{"x": 1}\n\n[2]\n{"x": NaN}\nno\n{"x": 6}\n')
    assert source.head == [{"x": 1}, {"x": 6}]
    (block,) = source.parts()["train"].blocks()
    assert block.data == [{"x": 1}, {"x": 6}]
    assert block.numbers.tolist() == [0, 4]
    assert [(reject.record, reject.where) for reject in block.rejects] == [
        (1, "stdin, line 3"),
        (2, "stdin, line 4"),
        (3, "stdin, line 5"),
    ]
    assert block.rejects[1].reason == "expected JSON, got NaN, which is none"


def test_many_lines_come_in_blocks_and_none_is_lost():
    source = lines("".join(f'{{"x": {i}}}\n' for i in range(10_000)))
    assert len(source.head) == 1001
    blocks = list(source.parts()["train"].blocks())
    assert [len(block) for block in blocks] == [4096, 4096, 1808]
    assert [row["x"] for block in blocks for row in block.data] == list(range(10_000))


def test_large_lines_come_in_small_blocks():
    source = lines("".join(f'{{"x": "{"a" * 3_000_000}"}}\n' for _ in range(4)))
    assert [len(block) for block in source.parts()["train"].blocks()] == [3, 1]


@pytest.mark.parametrize("text", ["", "\n \n", b"\xff\n", "no json\n"])
def test_no_records_are_an_error(text):
    with pytest.raises(SourceError, match=r"stdin: expected [^,]*, got .*\nhint: an object on ea"):
        lines(text)


def test_lines_can_be_read_once(tmp_path):
    with pytest.raises(SourceError, match="read twice"):
        datum.write(
            lines('{"x": 1}\n'),
            tmp_path / "out",
            splits={"a": 0.5, "b": 0.5},
            stratify="x",
            progress=False,
        )


FEATURES = [
    ("int64", Feature("int64")),
    ("str?", Feature("str", optional=True)),
    ("float32[3,4]", Feature("float32", (3, 4))),
    ("float32[?,4]", Feature("float32", (None, 4))),
    ("uint8[?,?,3]:image", Feature("uint8", (None, None, 3), encoding="image")),
    ("float32[9]:sparse?", Feature("float32", (9,), encoding="sparse", optional=True)),
    ("float64[2]", Feature("float64", (2,))),
    ("uint8[?,3,?]:raw", Feature("uint8", (None, 3, None), encoding="raw")),
    ("datetime64[us]", Feature("datetime64[us]")),
    ("datetime64[us][2]", Feature("datetime64[us]", (2,))),
]


@pytest.mark.parametrize(("text", "feature"), FEATURES)
def test_features_are_read_and_spelt(text, feature):
    assert parse_feature(text) == feature
    assert spell_feature(feature) == text


@pytest.mark.parametrize("text", ["float32[ None , 4 ]", "float32[*,4]", "float32[-1,4]"])
def test_lengths_that_differ_are_written_in_many_ways(text):
    assert parse_feature(text).shape == (None, 4)


@pytest.mark.parametrize("text", ["", "3", "int64[a]", "int64[", "int64[1.5]", "Int 64"])
def test_what_is_no_feature_is_told(text):
    with pytest.raises(ValueError, match=r"schema: expected .* got .*\nhint: name=dtype"):
        parse_feature(text)


def test_a_misspelt_type_names_the_nearest():
    with pytest.raises(SchemaError, match="did you mean 'float32'"):
        parse_feature("flaot32")


def test_pairs_and_files_are_joined(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"a": {"dtype": "int8", "shape": [None]}}))
    (tmp_path / "b.toml").write_text('b = "str?"\n[c]\ndtype = "int64"\nshape = ["?", 2]\n')
    found = read_schema(
        [str(tmp_path / "a.json"), str(tmp_path / "b.toml"), "d=int64,e=float32[2,2]"]
    )
    assert found == {
        "a": Feature("int8", (None,)),
        "b": Feature("str", optional=True),
        "c": Feature("int64", (None, 2)),
        "d": Feature("int64"),
        "e": Feature("float32", (2, 2)),
    }


def test_the_manifest_of_a_dataset_is_a_schema(tmp_path):
    datum.write({"x": [1.5, 2.5]}, tmp_path / "a", progress=False)
    assert read_schema([str(tmp_path / "a" / "datum.json")]) == dict(
        datum.load(tmp_path / "a").schema
    )


def test_what_is_no_schema_is_told(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ValueError, match=r"a\.json: expected JSON"):
        read_schema([str(tmp_path / "a.json")])
    with pytest.raises(ValueError, match="o: expected features by name, got 7"):
        features_of(7, where="o")
    with pytest.raises(ValueError, match="o: x: expected a type such as 'float32"):
        features_of({"x": 7}, where="o")
    with pytest.raises(SchemaError, match="expected a feature as JSON"):
        features_of({"x": {"dtipe": "int64"}}, where="o")


def test_classes_by_feature():
    found = read_encoders(["a=LabelEncoder,b=OneHotEncoder", "c=LabelBinarizer"])
    assert {name: type(one).__name__ for name, one in found.items()} == {
        "a": "LabelEncoder",
        "b": "OneHotEncoder",
        "c": "LabelBinarizer",
    }


def test_calls_have_parameters():
    (found,) = read_encoders(["t = CountVectorizer(max_features=5, ngram_range=(1, 2))"]).values()
    assert (found.max_features, found.ngram_range) == (5, (1, 2))


def test_tables_have_a_class_and_parameters():
    table = {
        "t": {"class": "TfidfVectorizer", "ngram_range": [1, 2], "lowercase": False},
        "l": "LabelEncoder",
        "h": "HashingVectorizer(n_features=8)",
    }
    found = encoders_of(table, where="f.toml: encoders")
    assert (found["t"].ngram_range, found["t"].lowercase) == ((1, 2), False)
    assert type(found["l"]).__name__ == "LabelEncoder"
    assert found["h"].n_features == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t=CountVectoriser", r"got 'CountVectoriser'\nhint: did you mean CountVectorizer"),
        ("t=Something", r"expected a class of scikit-learn.*\nhint: there are CountVectorizer"),
        ("t=CountVectorizer(max_feature=5)", r"got 'max_feature'\nhint: did you mean 'max_feature"),
        ("t=CountVectorizer(5)", "expected a class and its parameters"),
        ("t=CountVectorizer(__import__('os'))", "expected a class and its parameters"),
        ("t=CountVectorizer(min_df=open('x'))", "expected a class and its parameters"),
        ("t=CountVectorizer(", "expected a class and its parameters"),
        ("t", "--encoders: expected name=value"),
    ],
)
def test_what_is_no_encoder_is_told(text, message):
    with pytest.raises(ValueError, match=message):
        read_encoders([text])


def test_tables_that_are_none_are_told():
    with pytest.raises(ValueError, match="expected encoders by feature"):
        encoders_of(7, where="o")
    with pytest.raises(ValueError, match=r"expected the name of a class.*\nhint: \[encoders.t\]"):
        encoders_of({"t": {"kind": "LabelEncoder"}}, where="o")


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.preprocessing", None)
    with pytest.raises(MissingDependencyError, match="pip install scikit-learn"):
        read_encoders(["a=LabelEncoder"])


BOX = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>4</xmax><ymax>4</ymax></bndbox>"
XML = f"<annotation><object><name>cat</name>{BOX}</object></annotation>"


def test_records_are_for_reshard(tmp_path):
    (tmp_path / "train.tfrecord").write_bytes(b"")
    for path in (tmp_path, tmp_path / "train.tfrecord"):
        assert find_hint(str(path), "my out")[0].endswith(f"datum reshard {path} 'my out'")


def test_annotations_of_coco_are_not_taken_for_texts(tmp_path):
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "instances_train.json").write_text(
        '{"licenses": [], "images": [], "annotations": [], "categories": []}'
    )
    assert "annotations of COCO can come as JSON lines" in find_hint(str(tmp_path), None)[0]


def test_boxes_in_folders_of_other_names_are_told_as_options_that_work(tmp_path):
    root = tmp_path / "pets"
    for name in ("a", "b"):
        save(root / "images" / f"{name}.jpg", pixels(8, 8), "JPEG")
        save(root / "annotations" / "masks" / f"{name}.png", pixels(8, 8, 1), "PNG")
        (root / "annotations" / "xmls").mkdir(exist_ok=True)
        (root / "annotations" / "xmls" / f"{name}.xml").write_text(XML)
    lines = find_hint(str(root), None)
    assert lines[-1] == "  and write with: datum write OUT --options source.toml"
    file = tmp_path / "source.toml"
    file.write_text("\n".join(lines[1:-1]))
    assert read_toml(file)["source"]["splits"]["train"]["image_dir"] == "images"
    plan = datum.plan(read_options(str(file))["source"])
    assert (plan.layout, plan.records) == ("Pascal VOC detection: 1 class", 2)


def test_images_without_classes_are_told_as_a_command_that_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.png", "b.png", "c.jpg"):
        save(tmp_path / "my photos" / name, pixels(4, 4), "PNG")
    (hint,) = find_hint("my photos", None)
    listing = hint.partition("table: ")[2].partition(";")  # up to the ; in the brackets
    command = listing[0] + ";" + listing[2].partition(";")[0]
    subprocess.run(["sh", "-c", command], check=True)
    assert datum.plan("images.csv").records == 2


def test_a_folder_within_or_a_file_is_named(tmp_path):
    save(tmp_path / "deep" / "cat" / "1.png", pixels(4, 4), "PNG")
    save(tmp_path / "deep" / "dog" / "1.png", pixels(4, 4), "PNG")
    (tmp_path / "b.json").write_text("{}")
    found = shlex.quote(str(tmp_path / "deep"))
    assert find_hint(str(tmp_path), None) == [f"name a folder within: datum write {found} OUT"]
    (tmp_path / "deep" / "cat" / "1.png").unlink()
    found = shlex.quote(str(tmp_path / "b.json"))
    assert find_hint(str(tmp_path), None)[0].endswith(f"its files: datum write {found} OUT")


def test_anything_else_can_come_as_json_lines(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    for place in (tmp_path, tmp_path / "a.wav", tmp_path / "nowhere"):
        assert find_hint(str(place), None)[0].endswith("your-program | datum write - OUT")


def test_what_was_found_is_two_lines_and_warnings(capsys):
    rows = [{f"f{i}": i for i in range(9)}, {"f0": "x"}]
    tell_plan(datum.plan(rows))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("found: Python rows; train 2 records, about ")
    assert lines[1].startswith(
        "features: f0=int64, f1=int64, f2=int64, f3=int64, f4=int64, f5=int64"
    )
    assert lines[1].endswith("and 3 more")
    assert lines[2].startswith("warning: 1 of 2 records looked at cannot be written")
    assert "--on-error" not in lines[1]


def test_text_of_strangers_cannot_steer_the_terminal(capsys):
    plan = datum.plan([{"a\x1b[2J[bold]": 1}])
    tell_plan(plan)
    show_plan(plan, None)
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert "\x1b[2J" not in text
        assert "a\\x1b[2J[bold]" in text


def test_what_is_unknown_is_a_question_mark(capsys):
    def endless():
        while True:
            yield {"x": 1}

    show_plan(datum.plan(endless), "out")
    out = capsys.readouterr().out
    assert ["train", "?", "?", "?"] in [line.split() for line in out.splitlines()]
    assert "int64 *" in out
    assert "* inferred from 1,000 records; others may widen it" in out


def test_a_narrow_terminal_shows_the_end_of_where_splits_come_from(capsys, monkeypatch, tmp_path):
    path = tmp_path / f"{'long' * 20}.csv"
    path.write_text("x\n1\n")
    plan = datum.plan(path)
    for columns, shown in ((4000, str(path)), (60, "longlong.csv"), (30, None)):
        monkeypatch.setenv("COLUMNS", str(columns))
        show_plan(plan, None)
        line = capsys.readouterr().out.splitlines()[3]
        assert len(line.rstrip()) <= columns
        assert line.rstrip().endswith(shown or "1")
        assert ("..." in line) == (columns == 60)


def test_the_size_of_each_shard_is_shown_where_there_are_several(capsys):
    show_plan(datum.plan({"x": [1, 2]}, shards=2), None)
    assert capsys.readouterr().out.splitlines()[2].split() == [
        "split",
        "records",
        "size",
        "shards",
        "each",
        "from",
    ]


def test_a_report_is_shown_and_told(capsys):
    split = SplitReport(3, 100, 1, 2)
    report = WriteReport(Path("a b"), {"train": split}, 1.5, 0, Path("a b/quarantine.jsonl"))
    show_report(report, "'a b'")
    said = capsys.readouterr()
    assert said.out == f"{report}\n"
    assert said.err.splitlines() == [
        "warning: 2 records could not be written; the reasons are in a b/quarantine.jsonl",
        "next: datum info 'a b'",
    ]
    assert report_to_json(report) == {
        "path": "a b",
        "records": 3,
        "bytes": 100,
        "shards": 1,
        "seconds": 1.5,
        "splits": {"train": {"records": 3, "bytes": 100, "shards": 1, "rejected": 2}},
        "resumed_shards": 0,
        "quarantine": "a b/quarantine.jsonl",
        "skipped": [],
        "notes": [],
        "rounded": [],
        "kept_float64": {},
        "warnings": [],
    }
