"""`datum write`."""

import io
import json

import numpy as np
import pytest

import datum
from datum.cli import main
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
    assert "hint: --columns union takes every column" in err
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
    assert out.endswith("dry run: nothing was written. made is as it was.\n")
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
    assert "1 file without records: cat/notes.md" in out


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
    assert "hint: --on-error quarantine puts such records aside" in err
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
        "error: made: expected no dataset there, got one\n"
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
    assert "expected --floats to be one of 'float32', 'float64', got 'float16'" in err


def test_a_value_that_cannot_be_added_has_a_hint_that_works(run, tmp_path):
    (tmp_path / "a.csv").write_text("x\n0.5\n")
    (tmp_path / "b.csv").write_text("x\n1700000000.5\n")
    run("a.csv", "out")
    code, _, err = run("b.csv", "out", "--append")
    assert code == 1
    assert "hint: --schema x=float32 rounds it" in err
    assert run("b.csv", "out", "--append", "--schema", "x=float32")[0] == 0
