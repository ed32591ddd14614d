"""`datum head`: which records are read, and how they are printed."""

import base64
import gzip
import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

import datum
from datum import CorruptRecordError, Feature, SchemaError, Sparse
from datum.cli import main
from datum.cli.app import app
from datum.cli.record_page import (
    Options,
    Page,
    payload_to_json,
    place_to_json,
    print_records,
    record_to_json,
)
from datum.cli.record_places import CHUNK_RECORDS, Asked, Found, Place, open_source, read_records
from datum.cli.record_values import Cell, describe_payload, fields_of, fields_to_json
from datum.format import Index, RecordFile, RecordWriter, frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A dataset of six records in two shards, and one to validate with."""
    monkeypatch.chdir(tmp_path)
    rows = [{"x": i, "text": f"text {i}", "label": i % 2} for i in range(6)]
    datum.write(
        {"train": rows, "val": rows[:1]},
        "ds",
        schema={"x": Feature("int64"), "text": Feature("str"), "label": Feature("int64")},
        shuffle=False,
        shards={"train": 2, "val": 1},
        progress=False,
    )
    return tmp_path / "ds"


def head(*arguments):
    found = CliRunner().invoke(app, ["head", *map(str, arguments)])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found


def numbers(found):
    return [json.loads(line)["features"]["x"] for line in found.stdout.splitlines()]


def test_records_are_shown_with_their_place_and_a_line_for_each_feature(folder):
    found = head("ds", "-n", "2")
    assert found.exit_code == 0
    assert found.stdout.splitlines()[:4] == [
        "train 0  train-00000-of-00002.tfrecord, record 0",
        "  x      int64  0",
        '  text   str    "text 0"',
        "  label  int64  0",
    ]
    assert found.stderr == "2 of 6 records of train; other splits: val (1)\n"


def test_records_are_chosen_by_number_from_either_end_and_by_ranges(folder):
    assert numbers(head("ds", "--json", "-i", "3", "-i", "-1", "--index", "0:2")) == [3, 5, 0, 1]
    assert numbers(head("ds", "--json", "-i", "4,2")) == [4, 2]
    assert numbers(head("ds", "--json", "--split", "train[-2:]")) == [4, 5]
    assert numbers(head("ds", "--json", "--split", "val+train", "-n", "3")) == [0, 0, 1]


def test_the_same_seed_gives_the_same_random_records(folder):
    first = numbers(head("ds", "--json", "--seed", "1", "-n", "3"))
    assert numbers(head("ds", "--json", "--random", "--seed", "1", "-n", "3")) == first
    assert len(set(first)) == 3


def test_json_lines_tell_place_and_features(folder):
    line = json.loads(head("ds", "--json", "-i", "4").stdout)
    assert line == {
        "split": "train",
        "number": 4,
        "file": "ds/train-00001-of-00002.tfrecord",
        "record": 1,
        "features": {"x": 4, "text": "text 4", "label": 0},
    }


def test_columns_are_chosen_and_misspelt_ones_told(folder):
    assert list(json.loads(head("ds", "-n1", "--json", "-c", "label,x").stdout)["features"]) == [
        "label",
        "x",
    ]
    found = head("ds", "-c", "labl")
    assert found.exit_code == 1
    assert "did you mean 'label'?" in found.stderr
    found = head("ds/val-00000-of-00001.tfrecord", "-c", "labl")
    assert found.exit_code == 2
    assert "did you mean 'label'?" in found.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--index", "9"], "expected a number within 6 records, got 9"),
        (["--index", "-9"], "expected a number within 6 records, got -9"),
        (["--index", "x"], "expected a number such as 17 or -1, or 10:20, got 'x'"),
        (["--index", "1", "--random"], "expected --index or --random, got both"),
        (["--picture", "ansi"], "'blocks'"),
    ],
)
def test_a_wrong_call_says_what_was_expected(folder, options, told):
    found = head("ds", *options)
    assert found.exit_code == 2
    assert told in found.stderr


def test_a_file_alone_is_read_without_its_dataset(folder):
    found = head("ds/train-00001-of-00002.tfrecord", "-n", "1")
    assert found.stdout.startswith("record 0  train-00001-of-00002.tfrecord\n")
    assert "text 3" in found.stdout
    assert numbers(head("ds/train-00001-of-00002.tfrecord", "-i", "-1", "--json")) == [5]


def test_a_damaged_record_is_told_in_its_place(folder):
    shard = folder / "train-00000-of-00002.tfrecord"
    data = bytearray(shard.read_bytes())
    data[int(Index.load(Index.path_for(shard)).offsets[1]) + 20] ^= 1
    shard.write_bytes(data)
    for path, name in (("ds", "train"), (shard, "record")):
        found = head(path, "-n", "3")
        assert found.exit_code == 1
        assert f"{name} 1  train-00000" in found.stdout
        assert "  damaged: payload checksum, bytes " in found.stdout
        assert "text 0" in found.stdout
        assert "text 2" in found.stdout
        assert "`datum verify` lists all damage" in found.stderr
    lines = [json.loads(line) for line in head("ds", "-n", "3", "--json").stdout.splitlines()]
    assert [line["number"] for line in lines] == [0, 1, 2]
    assert lines[1]["error"].startswith("damaged: payload checksum")


def test_records_that_are_no_examples_are_shown_as_what_they_are(tmp_path):
    path = tmp_path / "odd.tfrecord"
    with RecordWriter(path) as writer:
        for payload in (b"hello", b"\x08\x05\x12\x03abc", bytes(range(200, 240))):
            writer.write(payload)
    found = head(path)
    assert found.exit_code == 0
    assert 'text of 5 bytes: "hello"' in found.stdout
    assert "a protobuf message of 7 bytes, no tf.train.Example:" in found.stdout
    assert '    2: "abc"' in found.stdout
    assert "000000  c8 c9 ca" in found.stdout
    assert json.loads(head(path, "--json", "-n", "1").stdout)["payload"] == {
        "bytes": 5,
        "text": "hello",
    }


def test_what_is_no_record_file_and_what_is_empty_is_told(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"no records at all, but long enough for a header")
    found = head(tmp_path / "a.tfrecord")
    assert found.exit_code == 1
    assert "expected a TFRecord file" in found.stderr
    (tmp_path / "b.tfrecord").write_bytes(b"")
    found = head(tmp_path / "b.tfrecord")
    assert found.exit_code == 0
    assert "there are no records" in found.stderr


def test_images_are_shown_where_they_are_asked_for(tmp_path):
    pixels = np.full((4, 6, 3), 255, np.uint8)
    datum.write([{"image": Image.fromarray(pixels)}], tmp_path / "ds", progress=False)
    assert "▀" not in head(tmp_path / "ds").stdout  # no terminal
    assert "▀▀" in head(tmp_path / "ds", "--picture", "blocks").stdout
    assert "@@" in head(tmp_path / "ds", "--picture", "ascii").stdout
    assert "\x1b_Ga=T" in head(tmp_path / "ds", "--picture", "kitty").stdout
    assert "▀" not in head(tmp_path / "ds", "--picture", "blocks", "--no-picture").stdout


def test_main_ends_with_the_code_of_the_command(folder, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["head", "ds", "--index", "17"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: split 'train': expected a number")


def test_every_foreign_file_is_shown_or_told(shared_data):
    files = sorted(
        path for path in (shared_data / "foreign_tfrecords").rglob("*") if path.is_file()
    )
    for path in files:
        found = head(path, "-n", "2", "--picture", "blocks", "--width", "80")
        is_other = "not_tfrecord" in path.parts or path.suffix == ".tsv"
        assert found.exit_code == int(is_other), path
        assert "error" in found.stderr if is_other else found.stdout or "no records" in found.stderr
        for line in head(path, "-n", "2", "--json").stdout.splitlines():
            json.loads(line)


@pytest.mark.parametrize("asked", [["-n", 0], ["--index", "5:2"]])
def test_none_of_the_records_is_not_told_as_no_records(folder, asked):
    assert "no records were selected" in head("ds", *asked).stderr


FOUND = Found(Place("train", 1200, Path("folder/a.tfrecord"), 3), b"")
CELLS = [
    Cell("label", Feature("int64"), np.int64(1), ["cat", "dog"]),
    Cell("a_feature_with_a_long_name", Feature("str"), "x" * 300),
    Cell("absent", Feature("int64", optional=True), None),
]


@pytest.fixture
def lines(capsys):
    return lambda: capsys.readouterr().out.splitlines()


def test_in_a_file_nothing_is_cut(lines):
    Page().write_features(FOUND, CELLS, "")
    assert lines() == [
        "train 1,200  a.tfrecord, record 3",
        "  label                       int64  1 (dog)",
        f'  a_feature_with_a_long_name  str    "{"x" * 300}"',
        "  absent                      int64  absent",
        "",
    ]


def test_a_narrow_page_has_no_types_and_cuts_names_and_values(lines):
    Page(width=50).write_features(FOUND, CELLS, "")
    shown = lines()
    assert max(map(len, shown)) <= 50
    assert shown[1].split() == ["label", "1", "(dog)"]
    assert "…ith_a_long_name" in shown[2]
    assert shown[2].endswith('…" (300 characters)')


def test_a_stream_of_ascii_gets_ascii(lines, monkeypatch):
    monkeypatch.setattr("datum.cli.record_page.is_plain", lambda console: True)
    Page(width=60).write_features(FOUND, CELLS, "")
    shown = lines()
    assert all(line.isascii() for line in shown)
    assert "...re_with_a_long_name" in shown[2]
    assert shown[2].endswith('..." (300 characters)')


def test_problems_stand_under_the_heading(lines):
    Page().write_damage(Found(FOUND.place, None, "damaged: payload checksum"))
    assert lines()[1] == "  damaged: payload checksum"
    Page().write_payload(FOUND, b"hello", "expected int64")
    assert lines()[1:3] == ["  expected int64", '  text of 5 bytes: "hello"']


def test_what_could_steer_a_terminal_is_spelt_out(lines):
    odd = [Cell("\x1b[31mname", Feature("str"), "[bold]\x1b[2J")]
    Page().write_features(FOUND, odd, "")
    shown = lines()[1]
    assert "\x1b" not in shown
    assert "\\x1b[31mname" in shown
    assert '"[bold]\\x1b[2J"' in shown


@pytest.fixture
def printed_folder(tmp_path):
    datum.write([{"x": i} for i in range(4)], tmp_path / "ds", shuffle=False, progress=False)
    return tmp_path / "ds"


def show(folder, asked=None, **options):
    asked = asked or Asked()
    source = open_source(str(folder), split=None, asked=asked)
    return print_records(source, asked, Options(**options))


def test_sound_records_are_all_well(printed_folder, capsys):
    assert show(printed_folder)
    out, err = capsys.readouterr()
    assert out.count("  x  int64  ") == 4
    assert err == "4 of 4 records of train\n"


def test_a_record_that_does_not_fit_its_schema_is_shown_all_the_same(printed_folder, capsys):
    text = (printed_folder / "datum.json").read_text().replace('"int64"', '"float32"')
    checksum = json.loads(text)["checksum"]
    (printed_folder / "datum.json").write_text(text.replace(f'"{checksum}"', "null"))
    assert not show(printed_folder, Asked(1))
    out, err = capsys.readouterr()
    assert "expected" in out.splitlines()[1]
    assert out.splitlines()[2] == "  x  int64  0"
    assert "1 record of 1 cannot be read" in err
    assert not show(printed_folder, Asked(1), is_json=True)
    line = json.loads(capsys.readouterr().out)
    assert line["features"] == {"x": 0}
    assert "expected" in line["error"]


def test_columns_are_checked_before_anything_is_read(printed_folder, capsys):
    with pytest.raises(SchemaError, match="expected a feature of the schema, got 'y'"):
        show(printed_folder, columns=["y"])
    assert capsys.readouterr().out == ""


def test_json_says_nothing_but_lines(printed_folder, capsys):
    assert show(printed_folder, is_json=True)
    out, err = capsys.readouterr()
    assert [json.loads(line)["features"]["x"] for line in out.splitlines()] == [0, 1, 2, 3]
    assert err == ""


def test_no_records_are_not_met_with_silence(tmp_path, capsys):
    (tmp_path / "empty.tfrecord").touch()
    assert show(tmp_path / "empty.tfrecord")
    assert "there are no records" in capsys.readouterr().err


COUNT = 2 * CHUNK_RECORDS + 7


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame([b"%d" % i for i in range(COUNT)]).to_bytes())
    return path


def read(path, asked, split=None):
    found = list(read_records(open_source(str(path), split=split, asked=asked), asked))
    return [one.payload if one.payload is not None else one.problem for one in found]


def change(path, record, at=14):
    data = bytearray(path.read_bytes())
    offsets = RecordFile(path).index.offsets
    data[int(offsets[record]) + at] ^= 0x40
    path.write_bytes(data)


def test_records_come_in_the_order_asked_for(file):
    asked = Asked(numbers=[COUNT - 1, slice(2, 4), 0])
    assert read(file, asked) == [b"%d" % (COUNT - 1), b"2", b"3", b"0"]
    assert read(file, Asked(COUNT + 5)) == [b"%d" % i for i in range(COUNT)]
    with pytest.raises(IndexError, match=f"within {COUNT} records, got 600"):
        read(file, Asked(numbers=[600]))


@pytest.mark.parametrize("asked", [Asked(10**30), Asked(numbers=[slice(0, 10**17)])])
def test_more_records_than_there_can_be_are_those_that_there_are(file, asked):
    assert read(file, asked) == [b"%d" % i for i in range(COUNT)]


def test_numbers_go_on_through_files(tmp_path):
    for name, payloads in (("a-0", [b"0", b"1"]), ("a-1", []), ("a-2", [b"2", b"3"])):
        (tmp_path / f"{name}.tfrecord").write_bytes(frame(payloads).to_bytes())
    assert read(tmp_path, Asked(9)) == [b"0", b"1", b"2", b"3"]
    assert read(tmp_path, Asked(numbers=[3, 1])) == [b"3", b"1"]


def test_of_a_compressed_file_no_more_is_inflated_than_need_be(tmp_path):
    data = gzip.compress(frame([bytes([i % 251]) * 5000 for i in range(3000)]).to_bytes())
    path = tmp_path / "a.gz"
    path.write_bytes(data[:-20])  # what is torn at its end is not come to
    assert [one[:1] for one in read(path, Asked(2))] == [b"\x00", b"\x01"]


@pytest.mark.parametrize(("at", "kind"), [(14, "payload checksum"), (3, "length checksum")])
def test_damage_is_told_in_place_of_its_record(file, at, kind):
    change(file, 1, at)
    found = read(file, Asked(4))
    assert found[1].startswith(f"damaged: {kind}, bytes 17-")
    assert [found[0], found[2], found[3]] == [b"0", b"2", b"3"]


def test_a_file_that_ends_within_a_record_is_told(file):
    file.write_bytes(file.read_bytes()[:-3])
    assert read(file, Asked(numbers=[COUNT - 2, COUNT - 1]))[1].startswith("damaged: torn payload")


def test_a_file_without_a_sound_record_is_refused(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"something else that is no record")
    with pytest.raises(CorruptRecordError, match="expected a TFRecord file"):
        read(tmp_path / "a.tfrecord", Asked())


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("has_index", [True, False])
def test_records_of_datasets_are_read_with_and_without_an_index(tmp_path, compression, has_index):
    rows = [{"x": i} for i in range(9)]
    options = {"shuffle": False, "shards": 2, "progress": False, "compression": compression}
    datum.write(rows, tmp_path / "ds", **options)
    ds = datum.load(tmp_path / "ds")
    payloads = [
        one for shard in ds.splits["train"].shards for one in RecordFile(ds.path / shard.name)
    ]
    for path in [] if has_index else list(ds.path.glob("index/*")):
        path.unlink()
    assert read(ds.path, Asked(numbers=[8, 0, slice(3, 6)])) == [
        payloads[i] for i in (8, 0, 3, 4, 5)
    ]


def test_a_damaged_index_does_not_keep_records_from_being_read(tmp_path):
    datum.write([{"x": i} for i in range(3)], tmp_path / "ds", shuffle=False, progress=False)
    shard = tmp_path / "ds" / "train-00000-of-00001.tfrecord"
    Index.path_for(shard).write_bytes(b"broken")
    assert all(isinstance(one, bytes) for one in read(tmp_path / "ds", Asked(3)))


def field(number, kind, content):
    return bytes([number << 3 | kind]) + content


def nested(number, content):
    return field(number, 2, bytes([len(content)]) + content)


def test_the_fields_of_a_message_are_told_with_those_within():
    inner = field(1, 0, b"\xac\x02") + nested(2, b"name")
    message = nested(3, inner) + field(4, 5, struct.pack("<f", 0.5))
    message += field(5, 1, struct.pack("<d", 1.25)) + nested(6, b"\xff\xfe\xfd")
    assert describe_payload(message, 80) == [
        f"a protobuf message of {len(message)} bytes, no tf.train.Example:",
        "  3:",
        "    1: 300",
        '    2: "name"',
        "  4: 0.5",
        "  5: 1.25",
        "  6: 3 B, ff fe fd",
    ]


def test_messages_of_one_field_are_told_in_one_line():
    assert describe_payload(nested(1, nested(2, field(3, 0, b"\x07"))), 80)[1:] == ["  1.2.3: 7"]


def test_lines_of_a_text_are_shown_and_counted():
    text = "\n".join(f"line {i}" for i in range(20)).encode()
    lines = describe_payload(text, 80)
    assert lines[0] == f"text of {len(text)} bytes, 20 lines:"
    assert lines[1] == "  line 0"
    assert lines[-1] == "  … 12 more lines"


def test_many_fields_are_cut():
    lines = describe_payload(b"".join(field(1, 0, bytes([i])) for i in range(40)), 80)
    assert lines[-1] == "  … 16 more"


def test_other_bytes_are_dumped():
    assert describe_payload(b"\xff" * 20, 80)[1].startswith("000000  ff ff")
    assert describe_payload(b"", 80) == ["no bytes"]


def test_what_is_cut_off_is_no_message():
    assert fields_of(nested(1, b"abcd")[:-1]) is None
    assert fields_of(b"\x00\x01") is None
    assert fields_of(b"\xff" * 11) is None


@given(st.binary(max_size=80))
def test_any_bytes_can_be_described(data):
    lines = describe_payload(data, 40)
    assert lines
    assert all(line.isprintable() for line in lines)
    fields_to_json(fields_of(data) or [])


ANY = Feature("int64")


def to_json(value, **options):
    found = record_to_json([Cell("x", ANY, value)], is_full=options.get("is_full", False))["x"]
    return json.loads(json.dumps(found))


def test_values_of_each_kind_become_plain_ones():
    assert to_json(np.float32([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert to_json(np.uint64(2**64 - 1)) == 2**64 - 1
    assert to_json(np.bool_(True)) is True
    assert to_json(np.complex64(1 + 2j)) == [1, 2]
    assert to_json(["a", [np.int64([1]), []]]) == ["a", [[1], []]]
    assert to_json(None) is None
    sparse = Sparse(np.array([[1]]), np.array([0.5]), (3,))
    assert to_json(sparse) == {"indices": [[1]], "values": [0.5], "shape": [3]}


def test_times_are_texts_and_spans_are_counts():
    assert to_json(np.datetime64("2024-01-02T03:04:05", "s")) == "2024-01-02T03:04:05"
    times = np.array(["2024-01-02", "NaT"], "datetime64[D]")
    assert to_json(times) == ["2024-01-02", None]
    assert to_json(np.timedelta64(5, "s")) == 5


def test_bytes_are_told_and_given_only_when_all_is_wanted():
    assert to_json(b"\xff\x00") == {"bytes": 2}
    assert to_json(b"\xff\x00", is_full=True) == {"bytes": 2, "base64": "/wA="}
    file = io.BytesIO()
    Image.fromarray(np.zeros((3, 5), np.uint8)).save(file, "png")
    data = file.getvalue()
    told = {"bytes": len(data), "format": "png", "height": 3, "width": 5, "channels": 1}
    assert to_json(data) == told
    assert base64.b64decode(to_json(data, is_full=True)["base64"]) == data


def test_a_place_has_a_split_only_in_a_dataset():
    assert place_to_json(Place("train", 7, Path("a"), 1)) == {
        "split": "train",
        "number": 7,
        "file": "a",
        "record": 1,
    }
    assert "split" not in place_to_json(Place(None, 7, Path("a"), 7))


def test_other_payloads_are_text_fields_or_bytes():
    assert payload_to_json(b"text", is_full=False) == {"bytes": 4, "text": "text"}
    assert payload_to_json(b"\x08\x05", is_full=False) == {
        "bytes": 2,
        "fields": [{"field": 1, "value": 5}],
    }
    assert payload_to_json(b"\xff", is_full=True) == {"bytes": 1, "base64": "/w=="}
