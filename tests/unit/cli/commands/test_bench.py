"""`datum bench` as it is called in a shell."""

import json

import pytest
from typer.testing import CliRunner

import datum
from datum.cli.app import app
from datum.format import frame

QUICK = ("--seconds", "0.01", "--frameworks", "numpy")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    datum.write({"x": range(60), "y": [0.5] * 60}, "few", shards=2, progress=False)
    return tmp_path / "few"


def bench(*arguments):
    found = CliRunner().invoke(app, ["bench", *map(str, arguments)])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found


def test_a_chart_goes_to_stdout_alone(folder):
    found = bench("few", *QUICK)
    assert found.exit_code == 0
    assert found.stdout.startswith("few: split train: 60 records, 2 shards, ")
    assert "Bottleneck: " in found.stdout
    assert "to_numpy" in found.stdout
    assert found.stderr == ""


def test_options_reach_the_measurement(folder):
    options = ["--batch-size", 7, "--no-shuffle", "--columns", "x, y", "--threads", 1]
    found = bench("few", *QUICK, *options, "--split", "train[:20]", "--json")
    told = json.loads(found.stdout)
    assert told["options"] == {
        "batch_size": 7,
        "shuffle": False,
        "columns": ["x", "y"],
        "threads": 1,
        "workers": 2,
        "map": None,
        "seconds": 0.01,
    }
    assert told["records"] == 20
    assert [stage["name"] for stage in told["stages"]] == ["read", "crc", "parse", "batch"]


def test_json_is_one_document(folder):
    found = bench("few", *QUICK, "--json")
    assert found.stdout.count("\n") == 1
    told = json.loads(found.stdout)
    assert told["path"] == "few"
    assert sum(stage["share"] for stage in told["stages"]) == pytest.approx(1.0)
    assert told["speeds"][0]["name"] == "to_numpy"


def test_a_page_is_written_beside_the_chart(folder):
    found = bench("few", *QUICK, "--html", "page.html")
    assert found.stderr.strip() == "wrote page.html"
    assert "Bottleneck" in found.stdout
    page = (folder.parent / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "datum bench: few" in page


def test_a_page_without_a_folder_is_refused_before_anything_is_measured(folder):
    found = bench("few", *QUICK, "--html", "none/page.html")
    assert found.exit_code == 2
    assert "expected a folder to write into" in found.stderr


def test_a_function_is_found_in_this_folder(folder):
    (folder.parent / "augmenting.py").write_text("def double(r):\n    return {'z': r['x'] * 2}\n")
    found = bench("few", *QUICK, "--map", "augmenting:double", "--json")
    told = json.loads(found.stdout)
    assert told["options"]["map"] == "augmenting:double"
    assert "callback" in [stage["name"] for stage in told["stages"]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nothing", "--map: expected MODULE:FUNCTION, got 'nothing'"),
        ("no_such_module:f", "--map no_such_module:f: expected a module to import"),
        ("json:dump_s", "hint: did you mean json:dumps?"),
        ("json:decoder", "expected a function"),
    ],
)
def test_a_function_that_is_not_there_is_refused(folder, given, message):
    found = bench("few", *QUICK, "--map", given)
    assert found.exit_code == 2
    assert message in found.stderr


def test_a_function_that_fails_is_told_as_such(folder):
    (folder.parent / "failing.py").write_text("def fail(r):\n    return r['nope']\n")
    found = bench("few", *QUICK, "--map", "failing:fail")
    assert found.exit_code == 2
    assert "--map failing:fail: expected a value for each record, got KeyError" in found.stderr
    assert "report it" not in found.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--split", "trian"], 1, "hint: did you mean 'train'?"),
        (["--columns", "z"], 2, "expected `columns` to name features, got 'z'"),
        (["--frameworks", "tourch"], 2, "did you mean 'torch'?"),
        (["--seconds", "0"], 2, "expected `seconds` above 0"),
        (["--threads", "100000"], 2, "invalid value for '--threads'"),
        (["--workers", "100000"], 2, "invalid value for '--workers'"),
    ],
)
def test_wrong_options_are_told(folder, options, code, message):
    found = bench("few", "--seconds", "0.01", "--frameworks", "numpy", *options)
    assert found.exit_code == code
    assert message in found.stderr
    assert found.stdout == ""


def test_no_dataset_is_told(folder):
    found = bench("none", *QUICK)
    assert found.exit_code == 1
    assert found.stderr.startswith("error: none: expected a dataset")


def test_damage_is_told(folder):
    shard = min(folder.glob("*.tfrecord"))
    data = bytearray(shard.read_bytes())
    data[14] ^= 1
    shard.write_bytes(data)
    found = bench("few", *QUICK)
    assert found.exit_code == 1
    assert f"{shard.name}: record 0 at byte 0: expected a sound record" in found.stderr
    assert "hint:" in found.stderr


def test_records_that_are_no_examples_are_read_and_checked(folder):
    (folder.parent / "texts.tfrecord").write_bytes(frame([b"just text"] * 9).to_bytes())
    found = bench("texts.tfrecord", *QUICK)
    assert found.exit_code == 0
    assert "crc" in found.stdout
    assert "parse" not in found.stdout.partition("Note")[0]
    assert "only read and checked" in found.stdout


def test_files_of_others_are_measured(shared_data):
    files = sorted((shared_data / "foreign_tfrecords").glob("*iris*"))
    found = bench(files[0], *QUICK)
    assert found.exit_code == 0
    assert "parse" in found.stdout
