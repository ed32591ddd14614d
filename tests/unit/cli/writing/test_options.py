"""The options of `datum write`."""

import inspect

import pytest

import datum
from datum import Feature
from datum.cli.commands import write
from datum.cli.write_options import (
    given_on_line,
    list_options,
    parse_fractions,
    parse_shards,
    read_options,
)


def read(tmp_path, text):
    path = tmp_path / "o.toml"
    path.write_text(text)
    return read_options(str(path))


def test_every_option_of_the_library_is_one_of_the_command():
    ours = set(inspect.signature(write.command).parameters)
    theirs = set(list_options())
    assert {"shuffle", "delimiter"} < theirs
    assert theirs - ours - {"shard_bytes"} == set()
    assert "shard_size" in ours


def test_every_option_of_a_plan_is_one_of_a_write():
    planned = set(inspect.signature(datum.plan).parameters)
    written = set(inspect.signature(datum.write).parameters)
    assert planned <= written
    assert written - planned == {*write._PLANLESS, "out"}


def test_the_line_is_read_as_the_library_takes_it():
    found = given_on_line(
        splits=["train=0.9", "val=10%"],
        schema=["x=int64"],
        shard_size="1MiB",
        shards="train=2,val=1",
        compression="none",
        seed=3,
        shuffle=False,
        workers=None,
    )
    assert found == {
        "splits": {"train": 0.9, "val": 0.1},
        "schema": {"x": Feature("int64")},
        "shard_bytes": 1 << 20,
        "shards": {"train": 2, "val": 1},
        "compression": None,
        "seed": 3,
        "shuffle": False,
    }
    assert given_on_line() == {}
    assert given_on_line(source=["train=a", "val=b"]) == {"splits": {"train": "a", "val": "b"}}


def test_what_cannot_be_read_is_told():
    with pytest.raises(
        ValueError, match=r"train: expected a fraction .*got 'a.csv'\nhint: --source"
    ):
        parse_fractions({"train": "a.csv"})
    with pytest.raises(ValueError, match=r"--shards: expected a number, got 'many'"):
        parse_shards("many")
    with pytest.raises(ValueError, match="expected --splits or --source, got both"):
        given_on_line(splits=["a=1"], source=["a=b"])


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
