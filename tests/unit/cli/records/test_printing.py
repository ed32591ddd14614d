import json

import pytest

import datum
from datum import SchemaError
from datum.cli.record_page import Options, print_records
from datum.cli.record_places import Asked, open_source


@pytest.fixture
def folder(tmp_path):
    datum.write([{"x": i} for i in range(4)], tmp_path / "ds", shuffle=False, progress=False)
    return tmp_path / "ds"


def show(folder, asked=None, **options):
    asked = asked or Asked()
    source = open_source(str(folder), split=None, asked=asked)
    return print_records(source, asked, Options(**options))


def test_sound_records_are_all_well(folder, capsys):
    assert show(folder)
    out, err = capsys.readouterr()
    assert out.count("  x  int64  ") == 4
    assert err == "4 of 4 records of train\n"


def test_a_record_that_does_not_fit_its_schema_is_shown_all_the_same(folder, capsys):
    text = (folder / "datum.json").read_text().replace('"int64"', '"float32"')
    checksum = json.loads(text)["checksum"]
    (folder / "datum.json").write_text(text.replace(f'"{checksum}"', "null"))
    assert not show(folder, Asked(1))
    out, err = capsys.readouterr()
    assert "expected" in out.splitlines()[1]
    assert out.splitlines()[2] == "  x  int64  0"
    assert "1 record of 1 cannot be read" in err
    assert not show(folder, Asked(1), is_json=True)
    line = json.loads(capsys.readouterr().out)
    assert line["features"] == {"x": 0}
    assert "expected" in line["error"]


def test_columns_are_checked_before_anything_is_read(folder, capsys):
    with pytest.raises(SchemaError, match="expected a feature of the schema, got 'y'"):
        show(folder, columns=["y"])
    assert capsys.readouterr().out == ""


def test_json_says_nothing_but_lines(folder, capsys):
    assert show(folder, is_json=True)
    out, err = capsys.readouterr()
    assert [json.loads(line)["features"]["x"] for line in out.splitlines()] == [0, 1, 2, 3]
    assert err == ""


def test_no_records_are_not_met_with_silence(tmp_path, capsys):
    (tmp_path / "empty.tfrecord").touch()
    assert show(tmp_path / "empty.tfrecord")
    assert "there are no records" in capsys.readouterr().err
