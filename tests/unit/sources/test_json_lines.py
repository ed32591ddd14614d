import gzip
import json

import pytest

from datum.errors import SourceError
from datum.sources import JsonLines, Source, StreamedPart, json_files


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
    ("[" * 100_000, "expected JSON, got one that is nested too deeply"),
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
