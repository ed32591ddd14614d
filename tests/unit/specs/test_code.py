"""Source code as it is written."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum.specs.code import (
    MAX_LINE,
    Call,
    Choice,
    join_parts,
    list_files,
    literal,
    quote,
    quote_files,
    render,
    render_dict,
    render_list,
)


@given(st.text())
def test_a_quoted_text_is_read_as_itself(text: str) -> None:
    assert ast.literal_eval(quote(text)) == text
    assert "\n" not in quote(text)


def test_double_quotes_are_taken_where_they_can_be() -> None:
    assert quote("it's") == '"it\'s"'
    assert quote('say "a"') == "'say \"a\"'"


def test_literals_are_read_as_themselves() -> None:
    for value in (1, -2.5, True, b"\x00", "a", [[1, 2], []]):
        assert ast.literal_eval(literal(value)) == value
    assert literal((1, 2)) == "[1, 2]"
    assert eval(literal([float("inf"), -float("inf")])) == [float("inf"), -float("inf")]


def test_a_long_call_is_broken_into_lines_that_fit() -> None:
    inner = Call("g(", tuple(f"argument_{i}" for i in range(12)))
    text = render(Call("f(", ("x", inner, Choice("a" * 60, "condition", "b" * 60))), indent=4)
    assert max(map(len, text.splitlines())) <= MAX_LINE
    assert text.startswith("f(\n        x,\n        g(\n")
    ast.parse(text.replace("\n    ", "\n"))
    assert render(Call("f(", ("x", "y")), indent=4) == "f(x, y)"


def test_a_dict_has_an_entry_a_line_and_notes_above_them() -> None:
    assert render_dict({}) == "{}"
    text = render_dict({"a": "1", "b": Call("f(", ("2",))}, notes={"b": "a note"})
    assert text == '{\n    "a": 1,\n    # a note\n    "b": f(2),\n}'


def test_functions_have_two_blank_lines_around_them() -> None:
    assert join_parts(["import x", "def f():\n    pass", "y = 1"]) == (
        "import x\n\n\ndef f():\n    pass\n\n\ny = 1\n"
    )


def test_files_are_listed_or_found_by_patterns() -> None:
    assert list_files("a.tfrecord") == ('["a.tfrecord"]', False)
    assert list_files(["a", "b"]) == ('["a", "b"]', False)
    found, calls_glob = list_files(["a-*", "b"])
    assert calls_glob
    assert found == '[file for pattern in ("a-*", "b") for file in sorted(glob(pattern))]'
    with pytest.raises(ValueError, match="expected paths or patterns"):
        quote_files([])


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a[b]*c.tfrecord"
    path.write_bytes(b"")
    assert quote_files(str(path)) == ([f'"{path}"'], False)


def test_a_long_list_is_filled_line_by_line() -> None:
    assert render_list(["1", "2"], indent=4) == "[1, 2]"
    items = [quote(f"class {i}") for i in range(100)]
    text = render_list(items, indent=4)
    assert ast.literal_eval(text) == [f"class {i}" for i in range(100)]
    assert max(map(len, text.splitlines())) <= MAX_LINE
    assert len(text.splitlines()) < 20
