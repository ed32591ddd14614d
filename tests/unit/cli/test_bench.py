"""`datum bench`: the table, the chart and the page of a measurement."""

import io
import json
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console
from typer.testing import CliRunner

import datum
from datum._inspect.measure.measurement import Advice, Bottleneck, Speed
from datum.cli import bench_page
from datum.cli.app import app
from datum.cli.bench_page import make_page, show
from datum.format import frame
from tests.unit.measure.made import make_measurement

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
        (["--seconds", "0"], 2, "expected --seconds above 0"),
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
    assert f"{shard.name}: record 0 at byte 0: expected an intact record" in found.stderr
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


def shown(found, *, width=100, encoding="utf-8", terminal=False):
    buffer = io.BytesIO()
    file = io.TextIOWrapper(buffer, encoding=encoding, errors="replace", newline="\n")
    console = Console(
        file=file, width=width, force_terminal=terminal, color_system=None, legacy_windows=False
    )
    show(found, console)
    file.flush()
    return buffer.getvalue().decode(encoding)


def test_everything_is_shown():
    text = shown(make_measurement())
    assert text.startswith("photos: split train: 12,345 records, 10 shards, 1.2 GB\nSome CPU, ")
    for words in (
        "90 %",
        "records/s so far",
        "on the first read: inflating 12.5 µs per record, disk 500 MB/s, opening 300 µs",
        "DataLoader, 2 workers",
        "2,000   200  ±4 %",
        "to_tf graph: no such <format>",
        "not installed: jax",
        "Bottleneck: decoding takes 90 % of the time: 900 µs.",
        "longer than 32.0 ms does not wait for data (to_numpy).",
        "1. 12x measured: images fit in memory\n     ds.to_numpy(..., cache=True)\n",
        "Note: the machine is busy.",
    ):
        assert words in text, words


@pytest.mark.parametrize("width", [40, 60, 72, 80, 110, 200])
@pytest.mark.parametrize("terminal", [False, True])
def test_no_line_is_longer_than_the_terminal_is_wide(width, terminal):
    text = shown(make_measurement(), width=width, terminal=terminal)
    assert max(map(len, text.splitlines())) <= width
    assert "decode" in text
    assert "900" in text
    assert "2,000" in text


def test_what_a_stage_does_is_told_where_there_is_room():
    assert "images into pixels" in shown(make_measurement(), width=120)
    assert "images into pixels" not in shown(make_measurement(), width=80)


def test_narrow_terminals_keep_shares_and_speeds():
    text = shown(make_measurement(), width=60)
    assert "so far" not in text
    assert "90 %" in text
    assert "2,000" in text


def test_ascii_has_other_bars_and_units():
    text = shown(make_measurement(), encoding="ascii")
    assert "?" not in text
    assert "####" in text
    assert "us/record" in text
    assert "+-4 %" in text


def test_files_get_no_blanks_at_the_ends_of_lines():
    lines = shown(make_measurement(), width=4096).splitlines()
    assert [line for line in lines if line != line.rstrip()] == []


def test_names_are_never_markup_and_never_steer_the_terminal():
    speed = Speed("tf", "to_tf graph", "", problem="[bold]x[/] \x1b[2J")
    found = make_measurement(path="[red]pets[/red]\x1b[2J", speeds=(speed,))
    text = shown(found)
    assert "[red]pets[/red]\\x1b[2J" in text
    assert "[bold]x[/] \\x1b[2J" in text
    assert "\x1b" not in text


def test_a_long_path_has_a_line_of_its_own():
    path = "/a/" + "long/" * 30
    assert f"{path}:\nsplit train" in shown(make_measurement(path=path), width=120).replace(
        "\nlong", "long"
    ).replace(path[:120] + "\n", path[:120])


def test_stages_alone():
    text = shown(make_measurement(speeds=(), advice=(), bottleneck=None, missing=()))
    assert "What a program gets" not in text
    assert "What to change" not in text
    assert "stands out" not in text


def test_nothing_to_change_is_said():
    assert "Nothing to change stands out." in shown(make_measurement(advice=()))


VOID = {"br", "meta"}


class Checker(HTMLParser):
    """Knows what is open, and what text there is."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.texts, self.attributes = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)


def parsed(found):
    checker = Checker()
    checker.feed(make_page(found))
    checker.close()
    assert checker.open == []
    return checker


def test_the_page_is_well_formed_and_has_all_figures():
    page = parsed(make_measurement())
    text = "".join(page.texts)
    for words in (
        "datum bench: photos",
        "12,345 records",
        "Decoding takes 90 % of the time: 900 µs.",
        "90 %, 900 µs",
        "2,000 records/s",
        "no such <format>",
        "Not installed: jax",
        "12x measured",
        "ds.to_numpy(..., cache=True)",
        "The disk reads 500 MB/s",
        "Note: the machine is busy.",
    ):
        assert words in text, words
    assert page.tags.count("table") == 2
    assert page.tags.count("h1") == page.tags.count("title") == 1


def test_bars_are_as_wide_as_their_shares():
    page = make_page(make_measurement())
    assert re.findall(r'style="width: ([\d.]+)%', page) == [
        "0.20",
        "9.80",
        "90.00",
        "100.00",
        "50.00",
    ]


def test_nothing_is_fetched_or_run():
    page = parsed(make_measurement())
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    names = {name for _, name, _ in page.attributes}
    assert names == {"lang", "charset", "name", "content", "class", "style"}
    assert "url(" not in make_page(make_measurement())
    assert "http" not in make_page(make_measurement())


def test_it_suits_phones_and_the_dark():
    page = make_page(make_measurement())
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


@pytest.mark.parametrize("evil", ['<script>alert("x")</script>', "a & b < c > 'd' \"e\""])
def test_what_comes_from_the_data_is_escaped(evil):
    found = make_measurement(
        path=evil,
        split=evil,
        options={**make_measurement().options, "columns": [evil]},
        speeds=(Speed("tf", evil, evil, problem=evil),),
        missing=(evil,),
        bottleneck=Bottleneck("decode", 0.9, evil),
        advice=(Advice("kind", evil, evil, 2.0, "measured"),),
        notes=(evil,),
    )
    page = parsed(found)
    assert "script" not in page.tags
    assert "".join(page.texts).count(evil) >= 8


def test_names_that_are_no_utf8_do_not_break_it():
    make_page(make_measurement(path="caf\udce9")).encode("utf-8")


def test_stages_alone_make_a_page():
    page = parsed(make_measurement(speeds=(), advice=(), bottleneck=None, missing=(), notes=()))
    assert page.tags.count("table") == 1
    assert "What to change" not in "".join(page.texts)


def test_nothing_to_change_is_said_on_the_page():
    assert "Nothing stands out." in "".join(parsed(make_measurement(advice=())).texts)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.00001, "0"),
        (0.00123456, "0.00123"),
        (0.5, "0.500"),
        (0.9996, "1.00"),
        (3.14159, "3.14"),
        (31.4159, "31.4"),
        (314.159, "314"),
        (999.9, "1,000"),
        (123_456_789, "123,000,000"),
    ],
)
def test_three_digits_count(value, expected):
    assert bench_page.rounded(value) == expected


@pytest.mark.parametrize(
    ("share", "expected"), [(0, "0 %"), (0.004, "<1 %"), (0.006, "1 %"), (1, "100 %")]
)
def test_percent(share, expected):
    assert bench_page.percent(share) == expected


def test_a_split_in_one_line():
    found = make_measurement(compression="gzip")
    assert (
        bench_page.describe_split(found) == "split train: 12,345 records, 10 shards, 1.2 GB, gzip"
    )


def test_a_run_in_one_line():
    found = make_measurement()
    assert bench_page.describe_run(found) == "128 records of 100.0 kB, batches of 64, shuffled"
    options = {**found.options, "shuffle": False, "columns": ["a", "b"]}
    found = make_measurement(options=options, measured_records=12_345)
    assert bench_page.describe_run(found).startswith("all records of")
    assert bench_page.describe_run(found).endswith("in order, columns a, b")


def test_the_verdict_is_the_time_of_a_step():
    assert "of 64 records that takes longer than 32.0 ms" in bench_page.verdict(make_measurement())
    assert bench_page.verdict(make_measurement(speeds=())) == ""


def test_threads_and_programs():
    found = make_measurement()
    assert bench_page.describe_threads(found) == "2 threads"
    assert bench_page.describe_programs(found) == "Python 3.12.1"


def test_every_stage_has_words():
    from datum._inspect.measure.contenders import STAGES

    assert set(bench_page.STAGES) == set(STAGES)
