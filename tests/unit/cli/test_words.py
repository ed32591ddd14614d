"""Counts, sizes, tables and settings as commands print them."""

import io
from dataclasses import fields

import numpy as np
import pytest
from rich.console import Console
from rich.text import Text

from datum import Feature
from datum.cli.arguments import parse_bytes, parse_pairs, read_toml
from datum.cli.formatting import (
    Column,
    Sized,
    cut,
    cut_middle,
    describe_feature,
    describe_number,
    describe_range,
    describe_share,
    lay_out,
    one_line,
)
from datum.cli.terminal import ASCII, UNICODE, signs_for
from datum.errors import count_of, format_bytes


def test_counts_have_separators_and_the_right_number():
    assert count_of(1, "shard") == "1 shard"
    assert count_of(0, "shard") == "0 shards"
    assert count_of(12_345, "class", "classes") == "12,345 classes"


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0 B"), (1000, "1.0 kB"), (10**9, "1.0 GB"), (5 * 10**15, "5000.0 TB")]
)
def test_sizes_have_units(nbytes, text):
    assert format_bytes(nbytes) == text


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        (Feature("int64"), "int64"),
        (Feature("str", (None,)), "str (?)"),
        (Feature("int64", (None, 2), sequence=True), "int64 (?, 2), sequence"),
        (Feature("int64", default=7), "int64, default 7"),
        (Feature("float64", optional=True), "float64, optional"),
    ],
)
def test_features_are_short(feature, text):
    assert describe_feature(feature) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (2014, "2014"),
        (10_000, "10,000"),
        (-123456, "-123,456"),
        (2**63, "9.223e+18"),
        (0.5, "0.5"),
        (3.0, "3"),
        (0.123456, "0.1235"),
        (1234.5678, "1,235"),
        (12345.6, "12,346"),
        (1e-9, "1e-09"),
        (1.5e300, "1.5e+300"),
        (float("nan"), "nan"),
        (None, ""),
    ],
)
def test_numbers_are_as_short_as_they_can_be(value, text):
    assert describe_number(value) == text


def test_times_are_dates():
    assert describe_number(19723, dtype="datetime64[D]") == "2024-01-01"
    assert describe_number(1_704_067_200_000, dtype="datetime64[ms]") == "2024-01-01 00:00:00.000"
    assert describe_number(90.0, dtype="timedelta64[s]") == "90 seconds"


def test_a_range_of_one_value_is_that_value():
    assert describe_range(5, 5, UNICODE) == "5"
    assert describe_range(0.10001, 0.10002, UNICODE) == "0.1"


def test_signs_do_not_run_together_with_dashes():
    assert describe_range(1, 5, ASCII) == "1-5"
    assert describe_range(-1, 5, ASCII) == "-1 - 5"
    assert describe_range(0, 1, ASCII, dtype="datetime64[D]") == "1970-01-01 - 1970-01-02"


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0 %"), (1, "100 %"), (0.0001, "<0.1 %"), (0.99999, ">99.9 %")]
)
def test_a_share_is_never_all_or_nothing_where_it_is_not(share, text):
    assert describe_share(share) == text


def test_text_of_strangers_is_one_harmless_line():
    assert one_line("a\n\tb\x1b[2Jc") == "a b\\x1b[2Jc"


@pytest.mark.parametrize("width", range(1, 30))
def test_what_is_cut_fits(width):
    for text in ("a long name of a feature", "寿司と刺身と天ぷら", "image/object/class/label"):
        for made in (cut(text, width, UNICODE), cut_middle(text, width, UNICODE)):
            assert np.sum([2 if ord(sign) > 0x2E80 else 1 for sign in made]) <= max(width, 2)


def test_names_keep_their_ends():
    assert cut_middle("image/object/bbox/xmax", 13, UNICODE) == "image/…x/xmax"
    assert cut_middle("short", 13, UNICODE) == "short"


def plain(columns, **options):
    return [line.plain for line in lay_out(columns, **options)]


def test_columns_stand_below_each_other():
    names = Column("name", ["a", "long name"])
    sizes = Column("size", ["5", "1,000"], "right")
    assert plain([names, sizes]) == ["name        size", "a              5", "long name  1,000"]


def test_columns_without_titles_have_no_heading():
    assert plain([Column("", ["a"]), Column("", ["b"])], indent="  ") == ["  a  b"]


def test_no_line_ends_in_blanks():
    assert plain([Column("a", ["x"]), Column("b", [""])])[1] == "x"


def test_wide_characters_take_their_room():
    assert plain([Column("", ["寿司", "a"]), Column("", ["|", "|"])]) == ["寿司  |", "a     |"]


def test_cells_keep_their_own_style():
    (line,) = lay_out(
        [Column("", [Text("x", "red")], style="green"), Column("", ["y"], style="blue")]
    )
    assert [str(span.style) for span in line.spans] == ["red", "blue"]


def test_brackets_are_no_markup():
    assert plain([Column("", ["[red]x[/]"])]) == ["[red]x[/]"]


def test_what_is_sized_is_told_width_and_signs():
    seen = []

    def make(width, signs):
        seen.append((width, signs))
        return [Text("line")]

    console = Console(width=33, file=io.TextIOWrapper(io.BytesIO(), "utf-8"))
    with console.capture() as captured:
        console.print(Sized(make))
    assert captured.get() == "line\n"
    assert seen == [(33, UNICODE)]


@pytest.mark.parametrize(
    ("texts", "pairs"),
    [
        ([], {}),
        (["train=0.9,val=0.1"], {"train": "0.9", "val": "0.1"}),
        (["train=0.9", "val=0.1"], {"train": "0.9", "val": "0.1"}),
        ([" train = 0.9 , val = 0.1 "], {"train": "0.9", "val": "0.1"}),
        (["val=train[:10%]+test"], {"val": "train[:10%]+test"}),
        (["a=1,2,b=3"], {"a": "1,2", "b": "3"}),
        (["a=x == y"], {"a": "x == y"}),
        (["val=train[:10%],train=train[10%:]"], {"val": "train[:10%]", "train": "train[10%:]"}),
    ],
)
def test_pairs_are_read_from_one_or_several_texts(texts: list[str], pairs: dict[str, str]) -> None:
    assert parse_pairs(texts) == pairs


@pytest.mark.parametrize("text", ["train", "=0.9", "train=", "train=0.9,val", "", ","])
def test_what_is_no_pair_is_an_error_that_names_the_option(text: str) -> None:
    if text == "train=0.9,val":  # a value may hold a comma: the reader of the value will object
        assert parse_pairs([text]) == {"train": "0.9,val"}
        return
    with pytest.raises(ValueError, match=r"--splits: expected name=value, got .*\nhint: "):
        parse_pairs([text], option="--splits")


def test_a_name_given_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="--splits: 'a' is given twice"):
        parse_pairs(["a=1", "b=2,a=3"], option="--splits")


def test_ascii_signs_are_ascii():
    assert all(getattr(ASCII, part.name).isascii() for part in fields(ASCII))


def test_a_console_that_holds_ascii_alone_gets_them():
    options = Console().options
    options.encoding = "ascii"
    assert signs_for(options) is ASCII
    options.encoding = "utf-8"
    assert signs_for(options) is UNICODE


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1048576", 1 << 20),
        ("1_048_576", 1 << 20),
        ("1,048,576", 1 << 20),
        ("128MiB", 128 << 20),
        ("128 mib", 128 << 20),
        ("128Mi", 128 << 20),
        ("128M", 128 << 20),
        ("128MB", 128_000_000),
        ("1GB", 1_000_000_000),
        ("1.5GiB", 3 << 29),
        (".5k", 512),
        ("500k", 512_000),
        ("500kB", 500_000),
        ("2TiB", 2 << 40),
        ("1P", 1 << 50),
        (" 7 bytes ", 7),
        ("7B", 7),
        ("0.1GB", 100_000_000),
    ],
)
def test_a_size_is_read_as_people_write_it(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "12 apples", "-5k", "1e9", "nan", "1.2.3", "12kk"])
def test_what_is_no_size_is_an_error_that_shows_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a number of bytes, got .*\nhint: .*128MiB"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["0", "0MiB", "0.1"])
def test_less_than_a_byte_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected at least one byte"):
        parse_bytes(text)


def test_a_file_is_a_dict(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text('name = "ü"\n[splits]\ntrain = 0.9\n', encoding="utf-8")
    assert read_toml(path) == {"name": "ü", "splits": {"train": 0.9}}


@pytest.mark.parametrize("content", [b"a = ", b"\xff\xfe"])
def test_what_is_no_toml_is_told_with_the_file(tmp_path, content):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.toml: expected TOML, got: "):
        read_toml(path)


def test_no_file_is_told_as_such(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_toml(tmp_path / "no.toml")
