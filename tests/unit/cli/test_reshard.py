"""`datum reshard`."""

import json

import pytest

import datum
from datum.cli import main
from datum.cli.commands.reshard import parse_names, parse_splits
from tests.unit.rewrite.damaged import flip, numbers, shard_of, write_kinds, write_numbers
from tests.unit.write.datasets import picture


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder: its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["reshard", *map(str, words)])
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def small(tmp_path):
    write_numbers(tmp_path / "in")
    return tmp_path / "in"


def test_it_says_what_it_did_and_what_comes_next(run, small):
    code, out, err = run("in", "out", "--shards", 2)
    assert code == 0
    assert out.splitlines()[0].startswith("out: 90 records in ")
    assert "  train  90 records, 2 shards" in out
    assert err == "next: datum info out\n"


def test_a_part_is_chosen_by_an_expression(run, small, tmp_path):
    code, _, err = run("in", "out", "--where", "x < 10 and text != 't3'", "--drop", "text")
    assert code == 0
    assert numbers(tmp_path / "out") == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert list(datum.load(tmp_path / "out").schema) == ["x"]
    assert "9 of 90 records are in it" in err


def test_classes_may_be_called_by_their_names(run, tmp_path):
    for number in range(6):
        name = ("cat", "dog")[number % 2]
        picture(tmp_path / "photos" / name / f"{number}.png", number)
    datum.write(tmp_path / "photos", tmp_path / "in", progress=False)
    assert run("in", "out", "--where", "label == 'dog'")[0] == 0
    assert [int(record["label"]) for record in datum.load("out")["train"]] == [1, 1, 1]
    code, _, err = run("in", "again", "--where", "label == 'dgo'")
    assert code == 2
    assert "hint: did you mean 'dog'?" in err


def test_shards_are_filled_by_records(run, small):
    assert run("in", "out", "--records-per-shard", 40)[0] == 0
    assert [shard.records for shard in datum.load("out").splits["train"].shards] == [30, 30, 30]


def test_splits_by_fractions_and_by_instructions(run, small, tmp_path):
    assert run("in", "a", "--splits", "train=0.8,val=20%")[0] == 0
    assert run("in", "b", "--splits", "val=train[:10],train=train[10:]")[0] == 0
    assert run("in", "c", "--splits", "val=train[:10]", "--splits", "all_of_it=all")[0] == 0
    assert list(datum.load("a")) == ["train", "val"]
    assert numbers(tmp_path / "b", "val") == list(range(10))
    assert len(datum.load("c")["all_of_it"]) == 90


def test_all_options_reach_the_library(run, tmp_path):
    write_kinds(tmp_path / "in")
    code, out, _ = run(
        *("in", "out", "--columns", "x,flag", "--shuffle", "--seed", 3, "--compression", "zlib"),
        *("--splits", "train=0.5,val=0.5", "--stratify", "flag", "--shards", "train=2"),
        *("--shard-size", "1MB", "--workers", 1, "--json"),
    )
    assert code == 0
    found = json.loads(out)
    assert found["records"] == found["of_records"] == 60
    assert {name: split["shards"] for name, split in found["splits"].items()} == {
        "train": 2,
        "val": 1,
    }
    datum.reshard(
        *("in", "reference"),
        columns=["x", "flag"],
        shuffle=True,
        seed=3,
        compression="zlib",
        splits={"train": 0.5, "val": 0.5},
        stratify="flag",
        shards={"train": 2},
        progress=False,
    )
    made, reference = (
        {path.name: path.read_bytes() for path in (tmp_path / out).rglob("*") if path.is_file()}
        for out in ("out", "reference")
    )
    assert made == reference


@pytest.mark.parametrize(
    ("given", "compression"), [((), "gzip"), (("--compression", "none"), None)]
)
def test_compression_is_kept_unless_another_is_named(run, tmp_path, given, compression):
    write_numbers(tmp_path / "in", compression="gzip")
    assert run("in", "out", *given)[0] == 0
    assert datum.load("out").compression == compression


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--where", "x = 3"), "hint: compare with =="),
        (("--where", "y == 3"), "expected a feature, got 'y'"),
        (("--columns", "xx"), "did you mean 'x'"),
        (("--shards", "many"), "--shards: expected a number"),
        (("--records-per-shard", 0), "expected --records-per-shard of 1 or more, got 0"),
        (("--records-per-shard", 9, "--shards", 2), "--shards or --records-per-shard, got both"),
        (("--shard-size", "large"), "size: expected a number of bytes"),
        (("--splits", "train"), "--splits: expected name=value"),
        (("--splits", "train=0.5,val=train"), "expected fractions, or records of splits, got both"),
        (("--compression", "zip"), "did you mean 'gzip'"),
        (
            ("--stratify", "x"),
            "expected fractions in --splits, which --stratify divides by",
        ),
        (("--splits", "a=trian"), "did you mean 'train'"),
    ],
)
def test_what_cannot_be_meant_is_told(run, small, tmp_path, words, message):
    code, out, err = run("in", "out", *words)
    assert code in (1, 2)
    assert message in err
    assert "Traceback" not in err
    assert not out
    assert not (tmp_path / "out").exists()


def test_a_target_that_is_there_is_replaced_only_if_asked(run, small):
    assert run("in", "out")[0] == 0
    code, _, err = run("in", "out")
    assert (code, err.splitlines()[-1]) == (1, "hint: --overwrite replaces it")
    assert run("in", "out", "--overwrite")[0] == 0


def test_damage_names_the_command_that_saves_the_rest(run, small):
    flip(shard_of(small), 500)
    code, _, err = run("in", "out")
    assert code == 1
    assert err.splitlines()[-1] == "hint: datum repair in repaired writes the intact records"


def test_help_has_examples(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "$ datum reshard photos" in out


def test_names_are_parted_by_commas():
    assert parse_names(None) is None
    assert parse_names(["a, b,", "c"]) == ["a", "b", "c"]


def test_splits_are_fractions_or_instructions():
    assert parse_splits([]) is None
    assert parse_splits(["train=.9", "val=0.1"]) == {"train": 0.9, "val": 0.1}
    assert parse_splits(["a=train[:5%]+val"]) == {"a": "train[:5%]+val"}


def test_records_in_two_splits_are_not_told_as_more_than_all(run, small):
    code, _, err = run("in", "out", "--splits", "a=train,b=train")
    assert (code, err) == (0, "next: datum info out\n")


def test_floats_can_be_rounded(run, tmp_path):
    datum.write({"x": [0.1, 0.2]}, tmp_path / "in", floats="float64", progress=False)
    code, out, _ = run("in", "out", "--floats", "float32")
    assert code == 0
    assert out.splitlines()[-1] == "  rounded to float32: x (--floats float64 keeps every bit)"
    assert datum.load("out").schema["x"] == datum.Feature("float32")
