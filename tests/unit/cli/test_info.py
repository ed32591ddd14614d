"""`datum info`: what a dataset holds."""

import ast
import io
import json
import sys

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import datum
from datum import Feature
from datum.cli.app import app
from datum.cli.feature_table import (
    describe_shape,
    describe_stored,
    describe_values,
    feature_table,
)
from datum.cli.info_page import (
    describe_look,
    describe_unknown,
    make_spec,
    print_spec,
    render,
    show_payloads,
)
from datum.cli.terminal import ASCII, UNICODE
from datum.format import RecordWriter


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"x": np.arange(300) / 7, "label": np.arange(300) % 5}
    datum.write(columns, "out", splits={"train": 0.9, "val": 0.1}, progress=False)
    return tmp_path


def info(*arguments):
    found = CliRunner().invoke(app, ["info", *map(str, arguments)])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found


def test_a_dataset_is_shown(folder):
    found = info("out")
    assert found.exit_code == 0
    assert found.stdout.startswith("out  Datum dataset (format 1) · 300 records")
    assert "label  5 values · balanced" in found.stdout
    assert found.stderr == ""


def test_json_is_one_document(folder):
    found = json.loads(info("out", "--json").stdout)
    assert found["records"] == 300
    assert list(found["features"]) == ["x", "label"]
    assert found["unknown"] is None


def test_one_split_is_shown(folder):
    assert json.loads(info("out", "--split", "val", "--json").stdout)["splits"].keys() == {"val"}
    assert info("out", "--split", "tran").exit_code == 1


def test_how_much_to_look_at_can_be_said(folder):
    assert json.loads(info("out", "--sample", 10, "--json").stdout)["seen"] == 20
    assert json.loads(info("out", "--full", "--json").stdout)["complete"]
    assert info("out", "--full", "--sample", 10).exit_code == 2
    assert info("out", "--sample", 0).exit_code == 2


def test_classes_are_as_many_as_asked_for(folder):
    assert "… 3 more" in info("out", "--class-balance", 2).stdout
    assert "balanced" not in info("out", "--class-balance", 0).stdout


def test_records_of_another_kind_are_shown_with_the_reason(folder):
    with RecordWriter("text.tfrecord") as writer:
        writer.write(b"only text")
    found = info("text.tfrecord")
    assert found.exit_code == 0
    assert "! no features are known" in found.stdout
    assert "got other bytes" in found.stdout
    assert "records  plain text · 9 bytes" in found.stdout
    document = json.loads(info("text.tfrecord", "--json").stdout)
    assert "expected a tf.train.Example" in document["unknown"]
    assert document["splits"]["train"]["payloads"]["kind"] == "text"


def test_a_file_without_records_is_shown(folder):
    (folder / "empty.tfrecord").write_bytes(b"")
    found = info("empty.tfrecord")
    assert found.exit_code == 0
    assert "train has no records" in found.stdout


def test_what_is_no_dataset_is_an_error(folder):
    (folder / "notes.txt").write_text("some notes")
    found = info("notes.txt")
    assert found.exit_code == 1
    assert found.stdout == ""
    assert "error: notes.txt: expected a TFRecord file" in found.stderr


def test_piped_all_features_are_shown(folder):
    datum.write({f"f{n:03}": np.arange(5) for n in range(120)}, "wide", progress=False)
    found = info("wide")
    assert "f119" in found.stdout
    assert "more feature" not in found.stdout


def test_damage_is_shown_beside_what_is_known(folder):
    path = folder / "out" / "train-00000-of-00001.tfrecord"
    path.write_bytes(path.read_bytes()[:-5])
    found = info("out")
    assert found.exit_code == 0
    assert "! damaged shards" in found.stdout
    assert "x" in found.stdout


def test_every_foreign_file_is_shown(shared_data):
    files = [
        path for path in sorted((shared_data / "foreign_tfrecords").iterdir()) if path.is_file()
    ]
    for path in files[::8]:
        found = info(path)
        assert found.exit_code == (1 if path.suffix == ".tsv" else 0), path
        assert found.stdout or found.stderr


def test_what_was_rounded_is_told(folder):
    assert "rounded to float32: x\n" in info("out").stdout
    assert json.loads(info("out", "--json").stdout)["rounded"] == ["x"]
    datum.write({"x": [0.5, 1e300]}, "wide", progress=False)
    line = "kept as float64: x, as float32 cannot hold 1e+300 (record 1 of 'train')"
    assert line in info("wide").stdout


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "out"
    columns = {"x": np.random.default_rng(0).normal(size=200), "label": np.arange(200) % 3}
    splits = {"train": 0.8, "val": 0.2}
    datum.write(columns, path, splits=splits, progress=False)
    return datum.profile(path)


def printed(page, width=100, encoding="utf-8"):
    file = io.TextIOWrapper(io.BytesIO(), encoding, newline="")
    console = Console(file=file, width=width, force_terminal=False)
    console.print(page, soft_wrap=True, highlight=False)
    file.flush()
    return file.buffer.getvalue().decode(encoding)


def test_the_page_tells_who_wrote_it_and_what_it_holds(profile):
    text = printed(render(profile, title="name"))
    first = text.splitlines()[0]
    assert first.startswith("name  Datum dataset (format 1) · 200 records · ")
    assert first.endswith(" · 2 shards · not compressed")
    assert "✓ no warnings" in text
    assert "read all 200 records in 0." in text
    assert "next: datum head name · datum stats name · datum info name --spec tf" in text


@pytest.mark.parametrize("width", [200, 100, 80, 60, 40])
def test_no_line_is_longer_than_the_terminal_is_wide(profile, width):
    lines = printed(render(profile, title="name"), width).splitlines()
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


def test_a_terminal_of_ascii_gets_ascii(profile):
    text = printed(render(profile, title="name"), encoding="ascii")
    assert "ok no warnings" in text
    assert "?" not in text


def test_only_so_many_features_are_shown(profile):
    text = printed(render(profile, features=1))
    assert "… 1 more feature: --all shows them" in text


def test_classes_may_be_left_out(profile):
    assert "balanced" in printed(render(profile))
    assert "balanced" not in printed(render(profile, classes=0))


def test_a_path_with_blanks_is_quoted_where_it_is_to_be_typed(profile):
    assert "datum head 'my data'" in printed(render(profile, title="my data"))


def test_the_page_can_be_made_into_a_picture(profile):
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(render(profile, title="digits"))
    assert "digits" in console.export_svg(title="datum info")


def test_of_a_sample_it_is_told_what_is_known_of_all(profile, tmp_path):
    datum.write({"x": np.arange(1000)}, tmp_path / "out", progress=False)
    text = describe_look(datum.profile(tmp_path / "out", sample=10))
    assert text.startswith("read 10 of 1,000 records in 0.")
    assert "(counts, ranges and means of all records are in the manifest): --full" in text


def test_more_labels_than_fit_are_named(tmp_path):
    rows = [{f"{name}_label": n % 2 for name in "abcde"} | {"id": n} for n in range(50)]
    datum.write(rows, tmp_path / "out", progress=False)
    text = printed(render(datum.profile(tmp_path / "out")))
    assert "… more labels: d_label, e_label" in text


TO = UNICODE.to


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "out"
    rng = np.random.default_rng(0)
    rows = [
        {
            "score": float(rng.normal()),
            "a/very/long/name/of/a/feature/that/ends/in/x": n % 2 == 0,
            "city": ["Bonn", "Ulm", "Köln"][n % 3],
            "label": n % 4,
            "tokens": list(range(n % 6)),
            "text": f"the text of record {n}",
        }
        | ({"some": n} if n % 4 else {})
        for n in range(100)
    ]
    datum.write(rows, path, progress=False)
    return datum.profile(path).features


def lines_of(features, width, signs=UNICODE):
    return [line.plain for line in feature_table(features, width, signs)]


def test_a_wide_table_shows_all_columns(features):
    heading = lines_of(features, 4096)[0].split("  ")
    titles = [title.strip() for title in heading if title.strip()]
    assert titles == [
        "feature",
        "type",
        "shape",
        "stored as",
        "missing",
        "values",
        "mean",
        "distribution",
    ]


@pytest.mark.parametrize("width", [200, 120, 100, 80, 60, 45, 30])
def test_every_width_has_room_for_every_feature(features, width):
    lines = lines_of(features, width)
    assert len(lines) == 1 + len(features)
    assert all(len(line) <= width for line in lines)


def test_how_it_is_stored_and_the_histogram_give_way_first(features):
    wide, narrow = lines_of(features, 130)[0], lines_of(features, 70)[0]
    assert "stored as" not in narrow
    assert "distribution" not in narrow
    assert "values" in narrow
    assert "distribution" in wide


def test_nothing_is_cut_where_there_is_room(features):
    lines = lines_of(features, 4096)
    assert lines[2].startswith("a/very/long/name/of/a/feature/that/ends/in/x  bool")
    assert "…" not in "".join(lines)


def test_ascii_is_ascii(features):
    lines = lines_of({name: one for name, one in features.items() if name != "city"}, 120, ASCII)
    assert all(line.isascii() for line in lines)


def test_features_without_missing_values_need_no_column_for_them(features):
    assert "missing" not in lines_of({"label": features["label"]}, 4096)[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("city", "3 values: Bonn 34.0 %, Köln 33.0 %, Ulm 33.0 %"),
        ("label", "4 values"),
        ("tokens", f"0{TO}4, 0{TO}5 per record"),
        ("a/very/long/name/of/a/feature/that/ends/in/x", "50.0 % true"),
        ("some", f"1{TO}99"),
    ],
)
def test_values_are_told_in_a_few_words(features, name, text):
    assert describe_values(features[name], UNICODE) == text


def test_texts_show_one_of_them(features):
    assert describe_values(features["text"], UNICODE).startswith(
        f'all differ, 20{TO}21 B, "the text'
    )


def test_shapes_and_storage_are_told():
    assert (
        describe_shape(Feature("uint8", (None, 1000, 3)), UNICODE)
        == f"? {UNICODE.times} 1,000 {UNICODE.times} 3"
    )
    assert describe_shape(Feature("int64"), UNICODE) == ""
    assert describe_stored(Feature("uint8", (8, 8), encoding="raw")) == "raw bytes"
    assert describe_stored(Feature("bfloat16")) == "float list"
    assert describe_stored(Feature("str", (None,), sequence=True)) == "bytes list, sequence"
    assert describe_stored(Feature("float64", (9,), encoding="sparse")) == "sparse, raw bytes"
    assert describe_stored(Feature("uint8", (1, 1, 3), encoding="image")) == "image file"


def test_a_name_that_steers_a_terminal_is_spelt_out(tmp_path):
    datum.write([{"a\x1b[2J": 1}], tmp_path / "out", progress=False)
    features = datum.profile(tmp_path / "out").features
    assert lines_of(features, 80)[1].startswith("a\\x1b[2J")


def payloads_of(path, *records):
    with RecordWriter(path) as writer:
        for record in records:
            writer.write(record)
    dataset = datum.load(path, schema={})
    return datum.profile(dataset).splits["train"].payloads


def test_text_is_told_and_shown(tmp_path):
    lines = show_payloads(payloads_of(tmp_path / "a.tfrecord", b"hello", b"a"), 80, UNICODE)
    assert lines[0].plain == f"records  plain text · 1{UNICODE.to}5 bytes each"
    assert lines[-1].plain == "  68 65 6c 6c 6f  hello"


def test_fields_of_messages_are_a_table(tmp_path):
    found = payloads_of(tmp_path / "a.tfrecord", b"\x08\x96\x01\x12\x02hi")
    lines = [line.plain for line in show_payloads(found, 80, UNICODE)]
    assert lines[2].split() == ["field", "type", "in", "records", "example"]
    assert lines[3].split() == ["1", "varint", "1", "of", "1", "150"]
    assert lines[4].split() == ["2", "text", "1", "of", "1", "'hi'"]


@pytest.mark.parametrize("width", [100, 60, 40])
def test_bytes_fit_the_terminal(tmp_path, width):
    found = payloads_of(tmp_path / "a.tfrecord", bytes(range(256)))
    assert all(line.cell_len <= width for line in show_payloads(found, width, UNICODE)[2:])


def test_images_are_called_by_their_format(tmp_path):
    found = payloads_of(tmp_path / "a.tfrecord", b"\xff\xd8\xff\xe0....")
    assert show_payloads(found, 80, UNICODE)[0].plain.startswith("records  JPEG images")


def test_why_nothing_is_known_needs_no_path_and_no_hint():
    error = datum.SchemaError("expected Examples, got others", where="/a/path", hint="none")
    assert describe_unknown(error) == "expected Examples, got others"


@pytest.fixture
def ds(tmp_path):
    rows = [{"größe": i, "x": [i / 2] * 3} for i in range(6)]
    schema = {"größe": Feature("int64"), "x": Feature("float32", (3,))}
    datum.write(
        {"val": rows[:2], "train": rows},
        tmp_path / "ds",
        schema=schema,
        shards={"train": 3, "val": 1},
        compression="gzip",
        progress=False,
    )
    return datum.load(tmp_path / "ds")


def test_the_code_names_the_shards_to_train_with_and_their_compression(ds):
    code = make_spec(ds, "tf")
    assert f'list_files("{ds.path}/train-0000*-of-00003.tfrecord"' not in code
    assert f'list_files("{ds.path}/train-*-of-00003.tfrecord", shuffle=False)' in code
    assert 'compression_type="GZIP"' in code
    for dialect in ("tf", "dali", "tfrecord"):
        ast.parse(make_spec(ds, dialect))


def test_a_pattern_that_would_find_other_files_is_not_used(ds):
    (ds.path / "train-9-of-00003.tfrecord").touch()
    code = make_spec(ds, "tfrecord")
    assert "glob" not in code
    assert all(f"train-0000{i}-of-00003" in code for i in range(3))


def test_a_single_file_is_named(ds):
    one = datum.load(ds.path / "val-00000-of-00001.tfrecord")
    assert f'files = ["{ds.path / "val-00000-of-00001.tfrecord"}"]' in make_spec(one, "tf")


def test_an_unknown_dialect_is_refused(ds):
    with pytest.raises(ValueError, match="expected one of tf, dali, tfrecord, got 'jax'"):
        make_spec(ds, "jax")


def test_a_file_of_the_code_is_in_utf_8_whatever_the_stream_is(ds, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii", errors="replace"))
    print_spec(ds, "tf")
    assert raw.getvalue().decode() == make_spec(ds, "tf")
    assert '"größe"'.encode() in raw.getvalue()


def test_info_prints_it(ds):
    found = CliRunner().invoke(app, ["info", str(ds.path), "--spec", "tf"])
    assert found.exit_code == 0
    assert found.stdout == make_spec(ds, "tf")
