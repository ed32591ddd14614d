import numpy as np
import pytest

import datum
from datum._inspect.profile.run import known_statistics
from datum.cli.feature_table import describe_values
from datum.cli.terminal import UNICODE


def write(path):
    rng = np.random.default_rng(0)
    columns = {
        "x": rng.normal(size=5000),
        "few": rng.integers(0, 3, 5000),
        "many": rng.integers(0, 50, 5000),
        "id": np.arange(5000),
    }
    datum.write(columns, path, progress=False)
    return columns, datum.profile(path, sample=50)


def test_a_sample_knows_the_ranges_of_all_records(tmp_path):
    columns, found = write(tmp_path / "out")
    numbers = found.splits["train"].features["x"].numbers
    stored = columns["x"].astype(np.float32)
    assert (numbers.count, numbers.lowest) == (5000, stored.min())
    assert numbers.highest == stored.max()
    assert numbers.is_exact
    assert numbers.histogram.edges[0] == numbers.lowest
    assert sum(numbers.histogram.counts) == 50
    assert found.features["x"].present == 5000


def test_a_sample_knows_the_counts_of_few_values(tmp_path):
    columns, found = write(tmp_path / "out")
    counts = found.features["few"].counts
    assert counts.is_exact
    assert dict(counts.values) == dict(enumerate(np.bincount(columns["few"]).tolist()))


def test_of_many_values_it_knows_how_many_there_are(tmp_path):
    _, found = write(tmp_path / "out")
    counts = found.features["many"].counts
    assert counts.distinct == 50
    assert counts.is_counted
    assert not counts.is_complete
    assert not counts.is_exact


def test_of_ids_it_knows_that_they_are_many(tmp_path):
    _, found = write(tmp_path / "out")
    counts = found.features["id"].counts
    assert counts.distinct > 1000
    assert counts.is_known
    assert not counts.is_counted


def test_the_mean_of_all_stands_without_the_deviation_of_a_sample(tmp_path):
    columns, found = write(tmp_path / "out")
    numbers = found.features["x"].numbers
    assert numbers.mean == pytest.approx(columns["x"].mean(), abs=1e-6)
    assert numbers.std is None
    assert datum.profile(tmp_path / "out").features["x"].numbers.std is not None


def test_info_tells_no_count_of_a_sample_for_that_of_all(tmp_path):
    rows = {"id": [f"id{n}" for n in range(9000)], "word": [f"w{n % 900}" for n in range(9000)]}
    datum.write(rows, tmp_path / "out", progress=False)
    features = datum.profile(tmp_path / "out", sample=2000).features
    shown = [describe_values(features[name], UNICODE) for name in ("id", "word")]
    assert shown[0].startswith("at least 2,000 values, ")
    assert shown[1].startswith("900 values, ")


def test_nothing_is_known_of_a_part_of_a_split(tmp_path):
    write(tmp_path / "out")
    dataset = datum.load(tmp_path / "out")
    assert known_statistics(dataset, "train").records == 5000
    assert known_statistics(dataset, "train[:10]") is None
    found = datum.profile(dataset, split="train[:10]")
    assert found.features["x"].numbers.count == 10


def test_statistics_of_another_kind_are_passed_by(tmp_path):
    write(tmp_path / "out")
    manifest = datum.format.Manifest.load(tmp_path / "out")
    changed = datum.format.Manifest(
        manifest.schema, manifest.splits, manifest.metadata, {"train": {"mine": 1}}
    )
    changed.save(tmp_path / "out")
    assert known_statistics(datum.load(tmp_path / "out"), "train") is None
    found = datum.profile(tmp_path / "out", sample=10)
    assert found.splits["train"].features["x"].numbers.count == 10
