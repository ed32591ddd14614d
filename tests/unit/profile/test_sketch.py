import numpy as np
import pytest

from datum._inspect.profile.sketch import MAX_PIECES, MAX_POINTS, Sketch

SHARES = [0.05, 0.25, 0.5, 0.75, 0.95]


def merged(parts):
    sketch = Sketch()
    for part in parts:
        sketch = sketch.merge(Sketch.of(part))
    return sketch


def test_few_values_are_described_exactly():
    values = np.random.default_rng(0).normal(size=5000)
    sketch = merged(np.array_split(values, 7))
    assert np.allclose(sketch.quantiles(SHARES), np.quantile(values, SHARES))
    edges = np.linspace(values.min(), values.max(), 33)
    assert sketch.histogram(edges).tolist() == np.histogram(values, edges)[0].tolist()


@pytest.mark.parametrize("pieces", [40, 200])
def test_ranks_of_many_values_are_right_to_a_fraction_of_a_percent(pieces):
    values = np.random.default_rng(1).lognormal(size=pieces * 8192)
    sketch = merged(np.array_split(values, pieces))
    found = sketch.quantiles(SHARES)
    ranks = np.searchsorted(np.sort(values), found) / len(values)
    assert np.abs(ranks - SHARES).max() < 0.003


def test_memory_is_bounded():
    sketch = merged(np.random.default_rng(2).normal(size=(300, 8192)))
    assert len(sketch.parts) <= MAX_PIECES
    assert sum(len(points) for points, _ in sketch.parts) <= MAX_POINTS


def test_the_weight_of_all_points_is_the_number_of_values():
    sketch = merged(np.random.default_rng(3).normal(size=(100, 8192)))
    total = sum(len(points) * weight for points, weight in sketch.parts)
    assert total == pytest.approx(100 * 8192)


def test_of_a_large_array_some_values_are_drawn_from_all_over():
    values = np.arange(4 * MAX_POINTS)
    sketch = Sketch.of(values)
    assert len(sketch.parts[0][0]) == MAX_POINTS
    assert sketch.quantiles([0.5])[0] == pytest.approx(2 * MAX_POINTS, rel=0.02)


def test_sorted_input_is_no_trap():
    values = np.arange(50 * 8192, dtype=np.float64)
    sketch = merged(np.array_split(values, 50))
    assert np.allclose(sketch.quantiles(SHARES) / len(values), SHARES, atol=0.003)


def test_scaled_values_count_more_beside_others():
    sketch = Sketch.of(np.zeros(10)).scaled(9).merge(Sketch.of(np.ones(10)))
    assert sketch.quantiles([0.8])[0] == 0
    assert sketch.histogram(np.array([0.0, 0.5, 1.0])).tolist() == [90, 10]


def test_nothing_has_no_quantiles():
    assert np.isnan(Sketch.of(np.empty(0)).quantiles([0.5])).all()
