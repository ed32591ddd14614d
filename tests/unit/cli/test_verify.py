import json

import pytest
from typer.testing import CliRunner

import datum
from datum.cli.app import app
from datum.format import Index, frame
from tests.unit.read.written import write_numbered

SHARD = "train-00002-of-00003.tfrecord"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_numbered(tmp_path / "out")
    return tmp_path / "out"


def verify(*arguments):
    found = CliRunner().invoke(app, ["verify", *map(str, arguments)])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found


def change(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def test_a_sound_dataset_is_one_line(folder):
    found = verify("out")
    assert found.exit_code == 0
    assert found.stdout.startswith("sound: 13 records, 4 shards, 679 B, 0.")
    assert found.stdout.count("\n") == 1
    assert found.stderr == ""


def test_damage_is_listed_by_file_record_and_byte(folder):
    change(folder / SHARD, 80)
    found = verify("out")
    assert found.exit_code == 1
    lines = found.stdout.splitlines()
    assert lines[0] == SHARD
    assert lines[1].split() == ["record", "byte", "kind", "what"]
    assert lines[2].split()[:2] == ["file", "checksum"]
    assert lines[4].split()[:4] == ["1", "52", "payload", "checksum"]
    assert "damaged: 3 problems in 1 file; 1 record lost, 12 sound" in lines
    hint = "hint: restore the files from a copy, or datum repair out OUT keeps the 12 sound records"
    assert found.stderr.splitlines() == [hint]


def test_a_path_is_quoted_in_hints(folder):
    change(folder / SHARD, 80)
    folder.rename(folder.parent / "my data")
    assert "datum repair 'my data' OUT" in verify("my data").stderr


def test_much_damage_is_cut_short(tmp_path):
    data = bytearray(frame([b"abcd"] * 50).to_bytes())
    data[12 : 20 * 45 : 20] = b"?" * 45
    (tmp_path / "a.tfrecord").write_bytes(data)
    found = verify(tmp_path)
    assert found.stdout.count("payload checksum") == 20
    assert "25 more are listed by --json" in found.stdout
    assert len(json.loads(verify(tmp_path, "--json").stdout)["problems"]) == 45


def test_an_index_that_is_wrong_can_be_made_anew(folder):
    Index.path_for(folder / SHARD).write_bytes(b"DATUMIDX")
    found = verify("out")
    assert found.exit_code == 1
    assert found.stderr == "hint: datum index out --force makes the indexes anew\n"
    assert "0 records lost, 13 sound" in found.stdout


def test_a_damaged_manifest_is_told_with_what_can_be_done(folder):
    change(folder / "datum.json", 60)
    found = verify("out")
    assert found.exit_code == 1
    assert found.stdout.startswith("datum.json\n")
    assert "manifest" in found.stdout
    assert "0 records lost, 13 sound" in found.stdout
    hint = "hint: restore it from a copy, or datum repair out OUT keeps the 13 sound records"
    assert found.stderr.splitlines() == [hint]


def test_a_manifest_that_is_asked_for_and_missing_is_an_error(folder):
    (folder / "datum.json").unlink()
    found = verify("out/datum.json")
    assert found.exit_code == 1
    assert found.stderr.startswith("error: out: expected a dataset, got a folder that was never")
    assert "note: no datum.json" in verify("out").stdout


def test_notes_are_told_of_sound_datasets_too(folder):
    (folder / "stray.tfrecord").touch()
    found = verify("out")
    assert found.exit_code == 0
    assert "note: 1 TFRecord file that datum.json does not list: stray.tfrecord" in found.stdout


def test_json_is_the_report(folder):
    change(folder / SHARD, 80)
    found = verify("out", "--json")
    assert found.exit_code == 1
    report = json.loads(found.stdout)
    assert report["is_sound"] is False
    assert (report["records"], report["lost"], report["path"]) == (12, 1, "out")
    (damage,) = (one for one in report["problems"] if one["record"] is not None)
    assert (damage["shard"], damage["record"], damage["offset"]) == (SHARD, 1, 52)
    assert found.stderr == ""


def test_quiet_leaves_all_to_the_exit_code(folder):
    assert verify("out", "--quiet").output == ""
    change(folder / SHARD, 80)
    found = verify("out", "-q")
    assert (found.output, found.exit_code) == ("", 1)


def test_images_are_decoded_when_asked_for(tmp_path):
    schema = {"image": datum.Feature("bytes"), "x": datum.Feature("int64")}
    out = tmp_path / "out"
    datum.write([{"image": b"GIF89a", "x": 1}], out, schema=schema, progress=False)
    manifest = datum.format.Manifest.load(out)
    feature = datum.Feature("uint8", (None, None, 3), encoding="image")
    schema = datum.Schema({"image": feature, "x": datum.Feature("int64")})
    datum.format.Manifest(schema, manifest.splits).save(out)
    assert "decoded" not in verify(out).stdout
    found = verify(out, "--deep", "--threads", "2")
    assert found.exit_code == 1
    assert "'image': expected a GIF image, got a damaged header" in found.stdout
    assert "OUT --deep keeps the 0 sound records" in found.stderr


def test_how_many_images_were_decoded_is_told(tmp_path, folder):
    assert verify("out", "--deep").stdout.rstrip().endswith("0 images decoded")


def test_records_of_any_kind_are_verified(tmp_path):
    path = tmp_path / "a.record"
    path.write_bytes(frame([b"\xff text"] * 3).to_bytes())
    found = verify(path)
    assert found.exit_code == 0
    assert found.stdout.startswith("sound: 3 records, 1 shard")
    assert "note: features not checked" in found.stdout


def test_what_is_no_dataset_is_an_error_with_a_hint(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"something else")
    for path in (tmp_path, tmp_path / "a.tfrecord", tmp_path / "gone", tmp_path / "*.gz"):
        found = verify(path)
        assert found.exit_code == 1
        assert found.stdout == ""
        assert found.stderr.startswith("error: ")
        assert "hint: " in found.stderr


def test_names_that_look_like_markup_or_controls_are_shown_as_they_are(tmp_path):
    path = tmp_path / "[red]\x1b[2J.tfrecord"
    path.write_bytes(frame([b"abc"]).to_bytes() * 2 + b"torn")
    found = verify(path)
    assert found.exit_code == 1
    assert "[red]\\x1b[2J.tfrecord" in found.stdout
    assert "\x1b" not in found.output


def test_no_threads_are_a_wrong_call(folder):
    assert verify("out", "--threads", "0").exit_code == 2
