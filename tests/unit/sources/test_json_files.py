"""JSON files and JSON lines."""

import gzip
import json
import math

import pytest

from datum.errors import SourceError
from datum.sources import JsonLines, JsonText, Source, StreamedPart, json_files
from datum.sources.json_files import JsonError, JsonWalk, make_decoder


def part_of(tmp_path, content, name="a.jsonl", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (part,) = JsonLines(path, **options).parts().values()
    return part


def rows_of(part):
    return [row for block in part.blocks() for row in block.data]


def test_each_line_is_a_record(tmp_path):
    part = part_of(tmp_path, '{"a": 1, "b": {"c": [1, 2]}}\n{"a": null, "s": "é"}')
    assert isinstance(part, StreamedPart)
    assert rows_of(part) == [{"a": 1, "b": {"c": [1, 2]}}, {"a": None, "s": "é"}]
    assert rows_of(part) == rows_of(part)
    assert part.schema is None


BAD = [
    ("[1]", "expected an object, got a list"),
    ("7", "expected an object, got a number"),
    ("null", "expected an object, got null"),
    ('{"a": 1', "expected JSON, got Expecting ',' delimiter"),
    ('{"a": NaN}', "expected a number of JSON, got NaN"),
    ('{"a": 1, "a": 2}', "expected each name once, got 'a' twice"),
    ("[" * 100_000, "expected JSON, got too deep a nesting"),
    (b'{"a": "\xff"}', "expected UTF-8"),
    ('{"a": ' + "9" * 5000 + "}", "digits"),
    ('{"a": 1}{"b": 2}', "expected JSON, got Extra data"),
]


@pytest.mark.parametrize(("line", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_a_bad_line_is_rejected_and_others_go_on(tmp_path, line, reason):
    bad = line if isinstance(line, bytes) else line.encode()
    part = part_of(tmp_path, b'{"a": 0}\n\n' + bad + b'\n{"a": 2}\n')
    (block,) = part.blocks()
    assert block.data == [{"a": 0}, {"a": 2}]
    assert block.numbers.tolist() == [0, 2]
    (reject,) = block.rejects
    assert reject.record == 1
    assert reject.where == f"{tmp_path / 'a.jsonl'}, line 3"
    assert reason in reject.reason


def test_empty_lines_a_byte_order_mark_and_carriage_returns_do_not_matter(tmp_path):
    part = part_of(tmp_path, b'\xef\xbb\xbf{"a": 1}\r\n  \r\n\n{"a": 2}\r\n')
    assert rows_of(part) == [{"a": 1}, {"a": 2}]


def test_nan_can_be_allowed(tmp_path):
    assert str(rows_of(part_of(tmp_path, '{"a": NaN}', allow_nan=True))) == "[{'a': nan}]"


def test_packed_files_are_unpacked(tmp_path):
    part = part_of(tmp_path, gzip.compress(b'{"a": 1}\n'), "a.jsonl.gz")
    assert rows_of(part) == [{"a": 1}]


def test_blocks_are_of_a_certain_size(tmp_path):
    part = part_of(tmp_path, "".join(f'{{"a": {i}}}\n' for i in range(10_000)))
    blocks = list(part.blocks())
    assert [len(block) for block in blocks] == [4096, 4096, 1808]
    assert blocks[2].numbers[0] == 8192


def test_a_key_names_the_records(tmp_path):
    lines = [{"id": "a"}, {"id": 7}, {"x": 1}, {"id": 1.5}, {"id": True}]
    part = part_of(tmp_path, "\n".join(map(json.dumps, lines)), key="id")
    (block,) = part.blocks()
    assert block.keys == ["a", "7"]
    assert [reject.record for reject in block.rejects] == [2, 3, 4]
    assert "expected a key 'id' that is a text, got None" in block.rejects[0].reason


def test_a_line_beyond_the_limit_is_rejected_without_reading_it_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(json_files, "MAX_LINE_BYTES", 100)
    long = json.dumps({"a": "x" * 1000})
    part = part_of(tmp_path, f'{{"a": 1}}\n{long}\n{{"a": 2}}\n')
    (block,) = part.blocks()
    assert block.data == [{"a": 1}, {"a": 2}]
    assert block.rejects[0].reason == "expected at most 100 bytes in a line, got more"
    assert block.rejects[0].where.endswith("line 2")
    part = part_of(tmp_path, f'{{"a": 1}}\n{long}')
    (block,) = part.blocks()
    assert len(block.rejects) == 1


def test_files_and_splits_are_named_as_for_other_tables(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"x": "{name}"}}\n')
    source = JsonLines(str(tmp_path / "*.jsonl"), split="all")
    assert isinstance(source, Source)
    assert rows_of(source.parts()["all"]) == [{"x": "a"}, {"x": "b"}]
    parts = JsonLines({"train": tmp_path / "b.jsonl"}).parts()
    assert rows_of(parts["train"]) == [{"x": "b"}]
    with pytest.raises(SourceError, match="no such file"):
        JsonLines(tmp_path / "gone.jsonl")


def test_an_empty_file_has_no_records(tmp_path):
    assert rows_of(part_of(tmp_path, "")) == []


@pytest.mark.parametrize(
    "value", [{"a": 1, "b": [1.5, None, "é", {"c": True}]}, [], "x", 2**63, {"": {}}]
)
def test_sound_json_is_read(value):
    assert make_decoder(allow_nan=False).decode(json.dumps(value)) == value


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '[{"b": {"c": 1, "d": 2, "c": 3}}]'])
def test_a_name_that_occurs_twice_is_refused(text):
    with pytest.raises(JsonError, match="expected each name once, got '[ac]' twice"):
        make_decoder(allow_nan=True).decode(text)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}'])
def test_numbers_that_json_has_not_are_refused_unless_allowed(text):
    with pytest.raises(JsonError, match="hint: allow_nan=True"):
        make_decoder(allow_nan=False).decode(text)
    assert "a" in make_decoder(allow_nan=True).decode(f'{{"a": {text}}}')


def test_nan_that_is_allowed_is_nan():
    assert math.isnan(make_decoder(allow_nan=True).decode("NaN"))
    assert make_decoder(allow_nan=True).decode("-Infinity") == -math.inf


def write(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def read(part):
    """All rows, keys and rejects of a part."""
    blocks = list(part.blocks())
    keys = None if blocks and blocks[0].keys is None else [k for b in blocks for k in b.keys]
    rows = [row for block in blocks for row in block.data]
    return rows, keys, [reject for block in blocks for reject in block.rejects]


PAPER = {
    "7": {"text": "good", "label": {"polarity": 1, "topic": "film"}},
    "8": {"text": "bad", "label": {"polarity": 0, "topic": "book"}},
}


def test_the_papers_layout_gives_texts_and_labels(tmp_path):
    write(tmp_path / "train.json", PAPER)
    write(tmp_path / "train_2.json", {"9": {"text": "so so", "label": {"polarity": 1}}})
    write(tmp_path / "val.json", {"1": {"text": "fine", "source": "web"}})
    source = JsonText(tmp_path)
    assert isinstance(source, Source)
    parts = source.parts()
    assert list(parts) == ["train", "val"]
    rows, keys, rejects = read(parts["train"])
    assert rows == [
        {"text": "good", "polarity": 1, "topic": "film"},
        {"text": "bad", "polarity": 0, "topic": "book"},
        {"text": "so so", "polarity": 1},
    ]
    assert keys == ["7", "8", "9"]
    assert rejects == []
    assert read(parts["val"])[0] == [{"text": "fine", "source": "web"}]


def test_a_label_that_is_no_object_is_a_feature(tmp_path):
    path = write(tmp_path / "train.json", {"1": {"text": "x", "label": 3}})
    assert read(JsonText(path).parts()["train"])[0] == [{"text": "x", "label": 3}]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (5, "expected an object with a text, got 5"),
        ({"label": {}}, "expected an object with a text"),
        ({"text": 5}, "expected an object with a text"),
        ({"text": "x", "label": {"text": 1}}, "labels need names of their own, got 'text'"),
    ],
)
def test_records_of_another_shape_are_rejected_by_their_ids(tmp_path, record, reason):
    path = write(tmp_path / "train.json", {"a": {"text": "x"}, "b": record, "c": {"text": "y"}})
    rows, keys, rejects = read(JsonText(path).parts()["train"])
    assert rows == [{"text": "x"}, {"text": "y"}]
    assert keys == ["a", "c"]
    assert [(reject.record, reject.key) for reject in rejects] == [(1, "b")]
    assert reason in rejects[0].reason


def test_lists_by_split_give_a_split_each(tmp_path):
    data = {"train": [["hi", "greet"], {"text": "yo", "n": 1}], "test": ["alone"], "none": []}
    parts = JsonText(write(tmp_path / "data.json", data)).parts()
    assert list(parts) == ["train", "test", "none"]
    rows, keys, _ = read(parts["train"])
    assert rows == [{"text": "hi", "label": "greet"}, {"text": "yo", "n": 1}]
    assert keys is None
    assert read(parts["test"])[0] == [{"text": "alone"}]
    assert read(parts["none"])[0] == []


def test_items_of_another_shape_are_rejected(tmp_path):
    data = {"train": [["a", "b", "c"], 5, [], [1, 2], None, ["ok", "x"]]}
    rows, _, rejects = read(JsonText(write(tmp_path / "data.json", data)).parts()["train"])
    assert rows == [{"text": "ok", "label": "x"}]
    assert [reject.record for reject in rejects] == [0, 1, 2, 3, 4]


def test_a_list_of_objects_is_a_split(tmp_path):
    rows = [{"text": "a", "n": {"m": 1}}, {"text": "b"}]
    parts = JsonText(write(tmp_path / "test.json", rows)).parts()
    assert list(parts) == ["test"]
    assert read(parts["test"])[0] == rows


def test_splits_can_be_chosen(tmp_path):
    for name in ("train", "trainlong", "extra"):
        write(tmp_path / f"{name}_1.json", {name: {"text": name}})
    parts = JsonText(tmp_path, splits=["extra", "train", "trainlong"]).parts()
    assert {name: read(part)[1] for name, part in parts.items()} == {
        "extra": ["extra"],
        "train": ["train"],
        "trainlong": ["trainlong"],
    }
    with pytest.raises(SourceError, match=r"expected a file val\*.json, got extra_1.json"):
        JsonText(tmp_path, splits=["val"]).parts()
    path = write(tmp_path / "lists.json", {"a": [], "b": []})
    assert list(JsonText(path, splits=["b"]).parts()) == ["b"]
    with pytest.raises(SourceError, match="expected a list 'c', got a, b"):
        JsonText(path, splits=["c"]).parts()


def test_a_folder_must_tell_its_splits(tmp_path):
    with pytest.raises(SourceError, match=r"expected a file train\*.json, got no file"):
        JsonText(tmp_path).parts()
    write(tmp_path / "reviews.json", PAPER)
    assert list(JsonText(tmp_path).parts()) == ["train"]
    write(tmp_path / "more.json", PAPER)
    with pytest.raises(SourceError, match=r"expected a file train\*.json, got more.json, reviews"):
        JsonText(tmp_path).parts()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a": [1], "b": 2}',
        '{"a": [NaN]}',
        '{"a": [' + "[" * 100_000,
        '{"a": [], "a": []}',
        '{"a": []} x',
    ],
)
def test_what_is_no_json_is_an_error_with_its_line(tmp_path, text):
    path = write(tmp_path / "train.json", text)
    with pytest.raises(SourceError, match=r"train.json: line 1: expected JSON"):
        [read(part) for part in JsonText(path).parts().values()]


def test_nan_can_be_allowed_in_json_text(tmp_path):
    path = write(tmp_path / "a.json", '[{"x": NaN}]')
    (row,) = read(JsonText(path, allow_nan=True).parts()["train"])[0]
    assert row["x"] != row["x"]


def test_the_fingerprint_changes_with_the_file(tmp_path):
    path = write(tmp_path / "train.json", PAPER)
    first = JsonText(path).parts()["train"].fingerprint
    write(path, {"7": {"text": "another"}})
    assert JsonText(path).parts()["train"].fingerprint != first


def test_real_intents_are_read(shared_data):
    path = shared_data / "clinc_oos" / "data_full.json"
    expected = json.loads(path.read_text())
    parts = JsonText(path).parts()
    assert list(parts) == list(expected)
    for name, part in parts.items():
        rows, _, rejects = read(part)
        assert rejects == []
        assert [[row["text"], row["label"]] for row in rows] == expected[name]


def walk(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return JsonWalk(path, allow_nan=False)


def test_an_object_is_gone_through_member_by_member(tmp_path):
    at = walk(tmp_path, ' { "a" : [1, {"x": 2}] ,\n"b":{}, "c": "}" } ')
    assert at.peek() == "{"
    assert [(name, at.peek(), at.value()) for name in at.members()] == [
        ("a", "[", [1, {"x": 2}]),
        ("b", "{", {}),
        ("c", '"', "}"),
    ]
    at.end()


def test_a_list_is_gone_through_item_by_item(tmp_path):
    at = walk(tmp_path, '\ufeff[1, [], "x"]')
    assert [at.value() for _ in at.items()] == [1, [], "x"]
    at.end()
    assert at.peek() == ""


def test_lists_within_objects_are_gone_through_too(tmp_path):
    at = walk(tmp_path, '{"a": [], "b": [1, 2]}')
    assert {name: [at.value() for _ in at.items()] for name in at.members()} == {
        "a": [],
        "b": [1, 2],
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("[1,\n2", 2),
        ("[1,\n2 3]", 2),
        ("[1,]", 1),
        ("[\n\nnope]", 3),
        ("[1]\n[2]", 2),
        ("[NaN]", 1),
        ("[" * 100_000, 1),
        ('[{"a": 1, "a": 2}]', 1),
        ("[" + "9" * 5000 + "]", 1),
        ("{}", 1),
    ],
)
def test_what_is_no_list_of_json_names_its_line(tmp_path, text, line):
    at = walk(tmp_path, text)
    with pytest.raises(SourceError, match=rf"a.json: line {line}: expected JSON, got: "):
        [[at.value() for _ in at.items()], at.end()]


@pytest.mark.parametrize("text", ['{"a" 1}', "{1: 2}", '{"a": 1 "b": 2}', '{"a"', "{,}"])
def test_what_is_no_object_is_told(tmp_path, text):
    at = walk(tmp_path, text)
    with pytest.raises(SourceError, match=r"line 1: expected JSON"):
        {name: at.value() for name in at.members()}


def test_text_that_is_not_utf8_is_told(tmp_path):
    with pytest.raises(SourceError, match=r"a.json: expected UTF-8"):
        walk(tmp_path, b'["\xff"]')
