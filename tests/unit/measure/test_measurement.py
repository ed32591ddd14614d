"""A measurement tells itself, in words and as plain values."""

import json

from tests.unit.measure.made import make_measurement


def test_a_summary_names_stages_loaders_bottleneck_and_advice():
    text = str(make_measurement())
    assert text.startswith("photos: split 'train': 12,345 records, 10 shards, 1.2 GB\n")
    assert "  decode            90%      900.00 us a record         1,000 records/s so far" in text
    assert "to_tf graph     not measured: no such <format>" in text
    assert "decoding takes 90 % of the time" in text
    assert "- images fit in memory: ds.to_numpy(..., cache=True) (12.3x, measured)" in text
    assert text.endswith("the machine is busy")


def test_a_summary_without_loaders_has_stages_alone():
    text = str(
        make_measurement(speeds=(), advice=(), bottleneck=None, notes=(), compression="zlib")
    )
    assert text.count("\n") == 3
    assert "1.2 GB, zlib" in text


def test_json_has_every_figure_as_plain_values():
    found = json.loads(json.dumps(make_measurement().to_json()))
    assert found["records_per_s"] == 1000.0
    assert [stage["name"] for stage in found["stages"]] == ["read", "parse", "decode"]
    assert found["stages"][2] == {
        "name": "decode",
        "us_per_record": 900.0,
        "share": 0.9,
        "records_per_s": 1000.0,
        "mb_per_s": 100.0,
        "spread": 0.03,
    }
    assert found["speeds"][2]["problem"] == "no such <format>"
    assert found["speeds"][2]["records_per_s"] is None
    assert found["machine"]["versions"] == {"Python": "3.12.1"}
    assert found["paid"]["disk_mb_per_s"] == 500.0
    assert found["bottleneck"]["stage"] == "decode"
    assert found["advice"][0]["basis"] == "measured"
    assert found["missing"] == ["jax"]
    assert found["options"]["batch_size"] == 64


def test_the_best_is_the_fastest_loader_of_datum():
    from dataclasses import replace

    found = make_measurement()
    assert found.best.name == "to_numpy"
    slow = replace(found.speeds[0], records_per_s=1.0)
    assert make_measurement(speeds=(slow, found.speeds[1])).best.name == "to_numpy"
    assert make_measurement(speeds=()).best is None
