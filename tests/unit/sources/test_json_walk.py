import pytest

from datum.errors import SourceError
from datum.sources.json_files import JsonWalk


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
