"""`datum export-to`."""

import json

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
            main(["export-to", *map(str, words)])
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def numbers(tmp_path):
    rows = {"train": [{"x": i, "y": i} for i in range(5)], "val": [{"x": 9, "y": 9}]}
    datum.write(rows, tmp_path / "numbers", shuffle=False, progress=False)


def test_tables_are_the_default(run, numbers, tmp_path):
    code, out, err = run("numbers", "tables")
    assert code == 0
    assert out.splitlines()[0].startswith("tables: 6 records as parquet in ")
    assert err == "next: datum write tables NEW\n"
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == [
        "train.parquet",
        "val.parquet",
    ]


def test_the_name_of_a_file_says_its_format(run, numbers, tmp_path):
    code, out, _ = run("numbers", "v.jsonl", "--split", "val", "-c", "y", "--json")
    assert code == 0
    assert (tmp_path / "v.jsonl").read_text() == '{"y": 9}\n'
    found = json.loads(out)
    assert (found["path"], found["format"], found["records"]) == ("v.jsonl", "jsonl", 1)


def test_images_with_other_features_are_read_back_by_their_table(run, tmp_path):
    save(tmp_path / "a.png", pixels(4, 4), "PNG")
    rows = [{"image": tmp_path / "a.png", "n": 1}]
    datum.write(rows, tmp_path / "a", progress=False)
    code, _, err = run("a", "out", "--format", "images")
    assert code == 0
    assert err == "next: datum write NEW --source train=out/train.parquet\n"
    _, _, err = run("a", "tables")
    assert err == "next: datum write tables NEW --schema 'image=uint8[4,4,3]:image'\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["numbers", "o", "--format", "images"], 1, "hint: --format parquet takes any features"),
        (["numbers", "o", "--format", "csv"], 2, "expected --format to be one of 'parquet'"),
        (["numbers", "o.jsonl"], 1, "hint: give --split train, or the folder"),
        (["numbers", "o", "--split", "test"], 1, "test"),
        (["numbers", "o", "--columns", "z"], 1, "expected a feature of the schema, got 'z'"),
        (["numbers", "numbers"], 1, "got a dataset of Datum"),
        (["nowhere", "o"], 1, "nowhere"),
        (["numbers", ""], 2, "expected a folder to export to, got an empty path"),
        (["numbers", "o.csv"], 1, "got the name of another kind of file"),
    ],
)
def test_what_cannot_be_is_told(run, numbers, tmp_path, words, code, message):
    found, out, err = run(*words)
    assert (found, out) == (code, "")
    assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["numbers"]


def test_nothing_is_replaced_unasked(run, numbers):
    assert run("numbers", "o")[0] == 0
    code, _, err = run("numbers", "o")
    assert code == 1
    assert "hint: --overwrite replaces it" in err
    assert run("numbers", "o", "--overwrite")[0] == 0


def test_records_that_are_no_examples_are_told(run, tmp_path):
    from datum.format import frame

    (tmp_path / "a.tfrecord").write_bytes(frame([b"just text"]).to_bytes())
    code, _, err = run("a.tfrecord", "o")
    assert code == 1
    assert "error: " in err
    assert not (tmp_path / "o").exists()


def test_images_without_classes_are_read_back_as_they_can_be(run, tmp_path):
    rows = [{"image": save(tmp_path / f"{at}.png", pixels(2, 3)).read_bytes()} for at in range(2)]
    datum.write(rows, tmp_path / "photos", progress=False)
    code, _, err = run("photos", "out", "--format", "images")
    assert code == 0
    assert "images without classes can be listed in a table" in err
