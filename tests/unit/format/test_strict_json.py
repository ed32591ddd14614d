import json
import math
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum.errors import ManifestError
from datum.format import strict_json
from datum.format.strict_json import (
    describe,
    join_path,
    parse_json,
    plain_value,
    restore_floats,
    stored_value,
)

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(
                lambda name: name != "$float"
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(values)
def test_what_is_stored_comes_back(value):
    plain = plain_value(value, "$")
    text = json.dumps(stored_value(plain), ensure_ascii=False, allow_nan=False)
    found = restore_floats(parse_json(text.encode()), "$")
    assert repr(found) == repr(plain)


def test_a_text_like_nan_is_not_a_number():
    assert restore_floats(stored_value(["nan", "inf"]), "$") == ["nan", "inf"]
    (found,) = restore_floats(stored_value([math.nan]), "$")
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "empty file"),
        (b"{", r"line 1, column \d: expected JSON"),
        (b"[1] 2", "extra data"),
        (b"[1,]", "expected JSON"),
        (b"'a'", "expected JSON"),
        (b"\xff", "byte 0: expected UTF-8"),
        (b'["\xc3"]', "byte 2: expected UTF-8"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ('{"a": 1}'.encode("utf-16"), "byte 0: expected UTF-8"),
        (b'{"a": [1, NaN]}', r"\$\.a\[1\]: expected a finite number, got NaN"),
        (b'{"a": -Infinity}', r"\$\.a: expected a finite number, got -Infinity"),
        (b'{"a": 1e999}', r"\$\.a: expected a finite number, got 1e999"),
        (b'{"a": 18446744073709551616}', r"\$\.a: expected an integer of 64 bits"),
        (b'{"a": -9223372036854775809}', r"\$\.a: expected an integer of 64 bits"),
        (b"9" * 100_000, r"\$: expected an integer of 64 bits"),
        (b'{"a": {"b": 1, "c": 2, "b": 1}}', r"\$\.a: expected each name once, got 'b' twice"),
        (b'{"a": "\\ud800"}', r"\$\.a: expected text that UTF-8 can encode"),
        (b'{"\\ud800": 1}', r"\$: expected text that UTF-8 can encode"),
        (b'["a\nb"]', "expected JSON"),
        (b"[" * 100_000, "nesting"),
        (b'{"a":' * 100_000, "nesting"),
    ],
)
def test_text_that_is_not_strictly_json_is_refused(text, problem):
    with pytest.raises(ManifestError, match=problem) as caught:
        parse_json(text)
    assert len(str(caught.value)) < 300


def test_more_values_than_memory_should_hold_are_refused(monkeypatch):
    monkeypatch.setattr(strict_json, "MAX_VALUES", 10)
    assert parse_json(b"[1,1,1,1,1,1,1,1,1,1]") == [1] * 10
    with pytest.raises(ManifestError, match="at most 10 values"):
        parse_json(b"[1,1,1,1,1,1,1,1,1,1,1]")


def test_escaped_pairs_are_one_character():
    assert parse_json(b'"\\ud83d\\ude00"') == "\U0001f600"


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"a": {1, 2}}, r"\$\.a: expected a JSON value, got set"),
        ({"a": [b"x"]}, r"\$\.a\[0\]: expected a JSON value, got bytes"),
        ({1: 2}, r"\$: expected names that are text, got 1"),
        ({"a": 2**64}, r"\$\.a: expected an integer of 64 bits"),
        ({"a": 10**5000}, r"\$\.a: expected an integer of 64 bits"),
        ({"a": "\ud800"}, r"\$\.a: expected text that UTF-8 can encode"),
        ({"\ud800": 1}, r"\$: expected text that UTF-8 can encode"),
        ({"$float": "nan"}, "it marks numbers"),
        (nested(100), "64 levels"),
        (nested(5000), "64 levels"),
    ],
)
def test_values_that_json_cannot_hold_are_refused(value, problem):
    with pytest.raises(ManifestError, match=problem):
        plain_value(value, "$")


def test_values_of_numpy_become_plain():
    value = {
        "a": np.int64(5),
        "b": np.array([[0.5, math.inf]]),
        "c": np.array(["x"]),
        "d": np.True_,
    }
    plain = plain_value(MappingProxyType(value), "$")
    assert repr(plain) == "{'a': 5, 'b': [[0.5, inf]], 'c': ['x'], 'd': True}"
    for odd in (
        np.array([b"x"]),
        np.datetime64("2020-01-01"),
        np.array([1j]),
        np.array([object()]),
    ):
        with pytest.raises(ManifestError, match="expected a JSON value"):
            plain_value(odd, "$")


@pytest.mark.parametrize("marked", [{"$float": "x"}, {"$float": 1}, {"$float": "nan", "a": 1}])
def test_a_marked_number_that_is_none_is_refused(marked):
    with pytest.raises(ManifestError, match=r"\$\.a: expected nan, inf or -inf"):
        restore_floats({"a": marked}, "$")


def test_restoring_has_a_limit_of_depth():
    with pytest.raises(ManifestError, match="64 levels"):
        restore_floats(nested(500), "$")


def test_a_plain_value_is_a_copy_with_sorted_names():
    given_value = {"b": [1], "a": {"d": 1, "c": 2}}
    plain = plain_value(given_value, "$")
    given_value["b"].append(2)
    assert json.dumps(plain) == '{"a": {"c": 2, "d": 1}, "b": [1]}'


def test_paths_of_odd_names_are_quoted_and_short():
    assert join_path("$", "x-ray_1") == "$.x-ray_1"
    assert join_path("$", "a.b") == "$['a.b']"
    assert len(join_path("$", "x" * 10_000)) < 110


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (True, "true"), (1.5, "1.5"), ({}, "an object"), ((), "tuple"), (7, "7")],
)
def test_values_are_described_in_few_words(value, text):
    assert describe(value) == text


def test_a_long_value_is_described_in_few_words():
    assert len(describe("x" * 10_000)) < 110
    assert describe(10**10_000) == "a huge number"
