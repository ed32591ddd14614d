"""Values of records in a terminal, and the places of records that were named."""

import io

import numpy as np
import pytest
from PIL import Image
from rich.cells import cell_len

import datum
from datum import DatumError, Feature, Schema, SchemaError, Sparse
from datum.cli.record_places import Asked, find_bare_files, open_source, parse_numbers
from datum.cli.record_values import (
    Cell,
    cells_of,
    clean,
    describe_type,
    describe_value,
    hex_dump,
    look_at,
    read_image_header,
    shorten,
    shorten_name,
    text_of,
)
from datum.format import encode


def describe(value, room=80, dtype="int64", shape=(), names=(), **options):
    return describe_value(Cell("x", Feature(dtype, shape), value, names), room, **options)


@pytest.mark.parametrize(
    ("feature", "told"),
    [
        (Feature("int64"), "int64"),
        (Feature("float32", (None, 3)), "float32 (?, 3)"),
        (Feature("uint8", (None, None, 3), encoding="image"), "image"),
        (Feature("uint16", (None, None, 1), encoding="image"), "image uint16"),
        (Feature("int64", (5,), encoding="sparse"), "sparse int64 (5)"),
        (Feature("str", (None,), sequence=True), "str (?) steps"),
    ],
)
def test_types_are_told_in_short(feature, told):
    assert describe_type(Cell("x", feature, None)) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "absent"),
        (np.int64(-5), "-5"),
        (np.float32(0.1), "0.1"),
        (np.bool_(True), "true"),
        (np.datetime64("2024-01-02T03:04:05"), "2024-01-02 03:04:05"),
        (np.datetime64("NaT"), "no time"),
        (np.timedelta64(5, "s"), "5 seconds"),
        ("text", '"text"'),
        ("two\nlines\t.", '"two⏎lines ."'),
        (b"\x00", "1 B, 00"),
        (np.array([1, 2, 3]), "[1 2 3]"),
        (np.float32([[0.5, 2], [3, 4]]), "2 x 2: [[0.5 2] [3 4]]"),
        (np.zeros((0, 3)), "no values, 0 x 3"),
        (np.zeros(0), "no values"),
        ([], "no values"),
        (["a", "b"], '2 items: ["a" "b"]'),
        ([np.array([1]), np.array([], int)], "2 rows: [[1] []]"),
        ([["a"], []], '2 rows: [["a"] []]'),
        ([b"\x01", b"\x02"], "2 items of 1 B: 01 02"),
        ([b"12345", b"x"], '2 items, 6 B: 5 B, text "12345", 1 B, text "x"'),
    ],
)
def test_values_are_told_in_a_line(value, told):
    assert describe(value) == told


def test_ids_are_told_with_their_classes():
    assert describe(np.int64(1), names=["cat", "dog"]) == "1 (dog)"
    assert describe(np.int64(7), names=["cat", "dog"]) == "7"
    assert describe(np.array([1, 0]), names=["cat", "dog"]) == "[1 0]  dog, cat"
    many = np.array([1] * 9 + [0])
    assert describe(many, names=["cat", "dog"]).endswith("  9 dog, 1 cat")


def test_many_numbers_are_abbreviated_with_their_range():
    values = np.arange(1000)
    assert describe(values) == "1,000: [0 1 2 … 997 998 999]  0..999"
    assert describe(values, shape=(1000,), has_shape=True) == "[0 1 2 … 997 998 999]  0..999"
    assert describe(values, room=32) == "1,000: [0 1 … 998 999]  0..999"
    assert describe(values, room=24) == "1,000: 0..999"
    assert describe(np.full(50, 2.5)) == "50: [2.5 2.5 2.5 … 2.5 2.5 2.5]  all 2.5"
    odd = np.array([np.nan] * 3 + [1.0] * 50 + [2.0])
    assert describe(odd).endswith("  1..2, 3 not finite")
    assert "no finite number" in describe(np.full(50, np.nan))
    assert describe(np.arange(100).astype("datetime64[D]"), room=200).endswith(
        "  1970-01-01..1970-04-10"
    )


def test_sparse_values_are_told_by_their_places():
    one = Sparse(np.array([[1], [30]]), np.array([0.5, 2.0]), (1000,))
    assert describe(one) == "2 of 1,000: 1: 0.5, 30: 2"
    two = Sparse(np.array([[1, 2]]), np.array([5]), (3, 4))
    assert describe(two) == "1 of 12: (1, 2): 5"
    none = Sparse(np.zeros((0, 1), int), np.zeros(0), (9,))
    assert describe(none) == "0 of 9 values"


def test_long_texts_are_cut_and_counted():
    told = describe("word " * 1000, room=60)
    assert told.endswith('…" (5,000 characters)')
    assert len(told) <= 60
    assert describe("word " * 1000, room=20) == '"word word word wo…"'
    wide = describe("日本語" * 100, room=60)
    assert cell_len(wide) <= 60
    assert wide.endswith("(300 characters)")


@pytest.mark.parametrize("room", [12, 20, 40, 80])
def test_nothing_is_wider_than_its_room(room):
    values = [np.arange(5000.0).reshape(50, 100), ["text"] * 50, np.arange(9) * 10**9, b"x" * 500]
    values += [Sparse(np.arange(50)[:, None], np.arange(50), (10**6,)), [b"abcdefgh"] * 40]
    for value in values:
        assert cell_len(describe(value, room=room)) <= room + 2


def test_names_keep_their_ends():
    assert shorten_name("observation/walker/joints_pos", 14) == "…er/joints_pos"
    assert shorten_name("short", 14) == "short"
    assert shorten("abcdef", 3) == "ab…"


def test_controls_are_spelt_out():
    assert clean("\x00é\u202e") == "\\x00é\\u202e"


def payload(row, schema=None):
    return next(iter(encode([row], schema)))


def test_features_come_with_values_and_class_names():
    schema = Schema({"label": Feature("int64"), "text": Feature("str")})
    label, text = cells_of(
        payload({"label": 1, "text": "x"}, schema),
        schema,
        metadata={"label": {"class_names": ["cat", "dog"]}},
    )
    assert (label.name, int(label.value), list(label.class_names)) == ("label", 1, ["cat", "dog"])
    assert (text.value, list(text.class_names)) == ("x", [])


def test_values_of_each_kind_are_those_of_one_record():
    schema = Schema(
        {
            "ragged": Feature("int64", (None,)),
            "nested": Feature("int64", (None, None)),
            "words": Feature("str", (None,)),
            "sparse": Feature("float32", (5,), encoding="sparse"),
            "absent": Feature("int64", optional=True),
        }
    )
    row = {"ragged": [1, 2], "nested": [[1], []], "words": ["a"]}
    row["sparse"] = Sparse(np.array([[2]]), np.array([1.5], np.float32), (5,))
    ragged, nested, words, sparse, absent = cells_of(payload(row, schema), schema)
    assert ragged.value.tolist() == [1, 2]
    assert [part.tolist() for part in nested.value] == [[1], []]
    assert words.value == ["a"]
    assert sparse.value.indices.tolist() == [[2]]
    assert absent.value is None


def test_without_a_schema_the_record_tells_its_features():
    data = payload({"a": 1, "b": "text", "c": b"\xff", "d": b"\x00\x01"})
    found = {cell.name: cell.value for cell in cells_of(data, None)}
    assert found == {"a": 1, "b": "text", "c": b"\xff", "d": b"\x00\x01"}  # d happens to be UTF-8


def test_columns_that_one_record_lacks_are_absent_unless_it_lacks_all():
    data = payload({"label": 1})
    label, other = cells_of(data, None, columns=["label", "other"])
    assert (int(label.value), other.value) == (1, None)
    with pytest.raises(ValueError, match="did you mean 'label'"):
        cells_of(data, None, columns=["labl"])


def test_what_is_no_example_and_what_does_not_fit_is_refused():
    with pytest.raises(DatumError):
        cells_of(b"\xff\xff", None)
    with pytest.raises(DatumError, match="without"):
        cells_of(b"", None)
    with pytest.raises(SchemaError):
        cells_of(payload({"x": "text"}), Schema({"x": Feature("int64")}))


def png(array, **options):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "png", **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "0 B"),
        (b"\x1f\x8b\x08xx", "5 B, gzip"),
        (b"RIFF\x00\x00\x00\x00WAVE", "12 B, WAV"),
        (b"\x00\x00\x00\x18ftypmp42", "12 B, MP4"),
        (b"\x00\x01\x02", "3 B, 00 01 02"),
        (bytes(20), "20 B, 00 00 00 00 00 00 00 00 00 00 00 00 …"),
        (b"hello", '5 B, text "hello"'),
    ],
)
def test_bytes_are_told_by_length_and_looks(data, told):
    assert look_at(data, 80) == told


def test_images_are_told_by_format_size_and_colours():
    grey = png(np.zeros((5, 7), np.uint8))
    assert look_at(grey, 80) == f"PNG 7 x 5, grey, {len(grey)} B"
    assert look_at(png(np.zeros((5, 7, 4), np.uint8)), 80, is_short=True) == (
        "PNG 7 x 5, with transparency"
    )
    assert "16 bits" in look_at(png(np.zeros((5, 7), np.uint16)), 80)
    palette = Image.fromarray(np.zeros((5, 7), np.uint8)).convert("P")
    file = io.BytesIO()
    palette.save(file, "png")
    assert "palette" in look_at(file.getvalue(), 80)


def test_a_damaged_image_is_no_image():
    assert read_image_header(png(np.zeros((5, 7), np.uint8))[:20]) is None
    assert read_image_header(b"text") is None


def test_text_is_what_can_be_read():
    assert text_of("größe\n".encode()) == "größe\n"
    assert text_of(b"\x00\x01") is None
    assert text_of(b"\xff\xfe") is None


def test_a_dump_shows_place_bytes_and_letters():
    first, second = hex_dump(b"0123456789abcdef\x00")
    assert first == ("000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef")
    assert second.startswith("000010  00  ")
    assert second.endswith("  .")
    assert len(hex_dump(bytes(1000), lines=3)) == 3


@pytest.fixture
def folder(tmp_path):
    rows = [{"x": i} for i in range(7)]
    datum.write(
        {"train": rows, "val": rows[:2]},
        tmp_path / "ds",
        shuffle=False,
        shards={"train": 3, "val": 1},
        progress=False,
    )
    return tmp_path / "ds"


def test_numbers_are_parsed_with_ranges_and_commas():
    assert parse_numbers(["3", "-1,4", ":2", "5:"]) == [
        3,
        -1,
        4,
        slice(None, 2),
        slice(5, None),
    ]
    for wrong in ("", "a", "1:2:3", "1.5"):
        with pytest.raises(ValueError, match="expected a number such as"):
            parse_numbers([wrong])


def test_numbers_are_chosen_of_so_many_records():
    assert Asked(3).choose(10) == [0, 1, 2]
    assert Asked(3).choose(2) == [0, 1]
    assert Asked(numbers=[-1, slice(-2, None), 0]).choose(5) == [4, 3, 4, 0]
    assert len(Asked(3, is_random=True).choose(10)) == 3
    assert Asked(3, is_random=True, seed=4).choose(10) == Asked(3, is_random=True, seed=4).choose(
        10
    )


@pytest.mark.parametrize(
    ("asked", "is_from_the_start"),
    [
        (Asked(3), True),
        (Asked(numbers=[1, slice(2, 4)]), True),
        (Asked(numbers=[-1]), False),
        (Asked(numbers=[slice(2, None)]), False),
        (Asked(is_random=True), False),
    ],
)
def test_it_is_known_whether_records_have_to_be_counted(asked, is_from_the_start):
    assert asked.is_from_the_start == is_from_the_start


def test_records_are_found_in_their_shards(folder):
    source = open_source(str(folder), split=None, asked=Asked())
    assert (source.split, source.records) == ("train", 7)
    places = source.find([0, 6, 3])
    assert [place.number for place in places] == [0, 6, 3]
    assert places[1].file.name == "train-00002-of-00003.tfrecord"
    with pytest.raises(IndexError, match="expected a number within 7 records, got 7"):
        source.find([7])
    part = open_source(str(folder), split="train[-2:]", asked=Asked())
    assert part.find([1])[0].file.name == "train-00002-of-00003.tfrecord"


def test_files_that_nothing_describes_are_not_counted(folder):
    for name in ("datum.json", "notes.txt"):
        (folder / name).unlink(missing_ok=True)
    names = [path.name for path in find_bare_files(str(folder))]
    assert names == [*(f"train-0000{i}-of-00003.tfrecord" for i in range(3)), names[-1]]
    assert names[-1].startswith("val")  # training data first
    source = open_source(str(folder), split=None, asked=Asked())
    assert source.dataset is None
    assert open_source(str(folder), split="val", asked=Asked()).records == 2
    pattern = str(folder / "val-*.tfrecord")
    assert [path.name for path in find_bare_files(pattern)] == names[-1:]


def test_described_datasets_are_opened_as_such(folder):
    assert find_bare_files(str(folder)) == []
    assert find_bare_files(str(folder / "datum.json")) == []
    assert find_bare_files(str(folder / "none")) == []


def test_files_are_in_order_whatever_digits_are_in_their_names(tmp_path):
    names = ["2.tfrecord", "10.tfrecord", "²5.tfrecord", "٣.tfrecord"]
    for name in reversed(names):
        (tmp_path / name).write_bytes(b"")
    assert [one.name for one in find_bare_files(str(tmp_path))] == names
