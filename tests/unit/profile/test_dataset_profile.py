import json

import numpy as np
import pytest

import datum


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "mixed"
    rows = [
        {"label": ["cat", "dog"][n % 2], "x": [float(n)] * (n % 3), "b": bytes([n, 255])}
        | ({"some": n} if n % 2 else {})
        for n in range(40)
    ]
    datum.write(rows, path, progress=False, shuffle=False)
    return datum.profile(path)


def test_json_holds_all_of_it(found):
    document = json.loads(json.dumps(found.to_json()))
    assert document["records"] == 40
    assert document["complete"] is True
    feature = document["splits"]["train"]["features"]["label"]
    assert feature["counts"]["values"][0] == {"value": "cat", "count": 20}
    assert feature["label"] is True
    assert document["features"]["x"]["lengths"]["max"] == 2
    assert document["features"]["some"]["missing"] == 20
    assert document["features"]["b"]["examples"][0] == "\x00\\xff"
    assert document["features"]["x"]["numbers"]["quantiles"].keys() == {
        "0.05",
        "0.25",
        "0.5",
        "0.75",
        "0.95",
    }
    assert [one["kind"] for one in document["warnings"]] == ["missing"]


def test_text_tells_splits_features_and_warnings(found):
    lines = str(found).splitlines()
    assert lines[0].endswith("mixed: 40 records, all looked at")
    assert lines[1].startswith("  train  40 records, 1 shard, ")
    assert lines[2] == "features:"
    assert lines[3].split() == ["label", "str,", "3", "to", "3", "bytes,", "2", "values"]
    assert lines[-1] == "  some: 50.0 % of the records lack it"


def test_text_tells_how_much_was_looked_at(tmp_path):
    datum.write({"x": np.arange(1000)}, tmp_path / "out", progress=False)
    found = datum.profile(tmp_path / "out", sample=10)
    assert "1,000 records, 10 of 1,000 looked at" in str(found)
    assert not found.is_complete
    assert found.shards == 1
