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
