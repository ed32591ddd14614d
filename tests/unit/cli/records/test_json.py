import base64
import io
import json
from pathlib import Path

import numpy as np
from PIL import Image

from datum import Feature, Sparse
from datum.cli.record_page import payload_to_json, place_to_json, record_to_json
from datum.cli.record_places import Place
from datum.cli.record_values import Cell

ANY = Feature("int64")


def to_json(value, **options):
    found = record_to_json([Cell("x", ANY, value)], is_full=options.get("is_full", False))["x"]
    return json.loads(json.dumps(found))


def test_values_of_each_kind_become_plain_ones():
    assert to_json(np.float32([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert to_json(np.uint64(2**64 - 1)) == 2**64 - 1
    assert to_json(np.bool_(True)) is True
    assert to_json(np.complex64(1 + 2j)) == [1, 2]
    assert to_json(["a", [np.int64([1]), []]]) == ["a", [[1], []]]
    assert to_json(None) is None
    sparse = Sparse(np.array([[1]]), np.array([0.5]), (3,))
    assert to_json(sparse) == {"indices": [[1]], "values": [0.5], "shape": [3]}


def test_times_are_texts_and_spans_are_counts():
    assert to_json(np.datetime64("2024-01-02T03:04:05", "s")) == "2024-01-02T03:04:05"
    times = np.array(["2024-01-02", "NaT"], "datetime64[D]")
    assert to_json(times) == ["2024-01-02", None]
    assert to_json(np.timedelta64(5, "s")) == 5


def test_bytes_are_told_and_given_only_when_all_is_wanted():
    assert to_json(b"\xff\x00") == {"bytes": 2}
    assert to_json(b"\xff\x00", is_full=True) == {"bytes": 2, "base64": "/wA="}
    file = io.BytesIO()
    Image.fromarray(np.zeros((3, 5), np.uint8)).save(file, "png")
    data = file.getvalue()
    told = {"bytes": len(data), "format": "png", "height": 3, "width": 5, "channels": 1}
    assert to_json(data) == told
    assert base64.b64decode(to_json(data, is_full=True)["base64"]) == data


def test_a_place_has_a_split_only_in_a_dataset():
    assert place_to_json(Place("train", 7, Path("a"), 1)) == {
        "split": "train",
        "number": 7,
        "file": "a",
        "record": 1,
    }
    assert "split" not in place_to_json(Place(None, 7, Path("a"), 7))


def test_other_payloads_are_text_fields_or_bytes():
    assert payload_to_json(b"text", is_full=False) == {"bytes": 4, "text": "text"}
    assert payload_to_json(b"\x08\x05", is_full=False) == {
        "bytes": 2,
        "fields": [{"field": 1, "value": 5}],
    }
    assert payload_to_json(b"\xff", is_full=True) == {"bytes": 1, "base64": "/w=="}
