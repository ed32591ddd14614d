import json
import math

import pytest

from datum.sources.json_files import JsonError, make_decoder


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
