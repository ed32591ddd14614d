import numpy as np
import pytest

import datum
from datum.cli.feature_table import balance, balanced_features
from datum.cli.terminal import ASCII, UNICODE


@pytest.fixture
def profile(tmp_path):
    rng = np.random.default_rng(0)

    def rows(count, start):
        labels = rng.permutation([min(n % 40, 14) for n in range(count)]).tolist()
        return [{"id": start + n, "label": f"class {label}"} for n, label in enumerate(labels)]

    splits = {"train": rows(400, 0), "val": rows(80, 1000)}
    datum.write(None, tmp_path / "out", splits=splits, progress=False)
    return datum.profile(tmp_path / "out")


def lines_of(profile, width=120, signs=UNICODE, shown=10):
    return [line.plain for line in balance(profile, "label", width, signs, shown=shown)]


def test_frequent_classes_come_first_and_the_rest_is_summed(profile):
    lines = lines_of(profile, shown=3)
    assert lines[0] == f"label  15 values · most frequent 26.0 {UNICODE.times} the rarest"
    assert lines[1].split() == [
        "class",
        "14",
        "█" * 24,
        "312",
        "65.0",
        "%",
        "train",
        "260",
        "val",
        "52",
    ]
    assert lines[-1].split() == ["…", "12", "more", "144", "30.0", "%"]
    assert len(lines) == 5


def test_all_classes_may_be_shown(profile):
    assert len(lines_of(profile, shown=50)) == 16


@pytest.mark.parametrize("width", [120, 80, 60, 40])
def test_splits_and_bars_give_way_on_narrow_terminals(profile, width):
    assert all(len(line) <= width for line in lines_of(profile, width)[1:])
    assert ("train" in "".join(lines_of(profile, width))) == (width >= 80)


def test_ascii_is_ascii(profile):
    assert all(line.isascii() for line in lines_of(profile, signs=ASCII))


def test_counts_of_a_sample_are_told_as_such(tmp_path):
    rows = [{"id": n, "label": n % 30} for n in range(3000)]
    datum.write(rows, tmp_path / "out", progress=False)
    profile = datum.profile(tmp_path / "out", sample=300)
    assert "≈" in lines_of(profile)[1]


def test_only_labels_are_balanced(profile):
    assert balanced_features(profile.features) == ["label"]
