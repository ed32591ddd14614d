"""Costs out of times: pure arithmetic."""

import pytest

from datum._inspect.measure.advice import Costs, find_bottleneck, find_costs, speed_up, to_stages


def test_costs_are_differences_in_the_order_of_measuring():
    times = {"read": 1.0, "crc": 2.0, "parse": 4.0, "batch": 8.0, "shuffle": 9.0, "decode": 29.0}
    costs = find_costs(times, records=1_000_000)
    assert costs.us == pytest.approx(
        {"read": 1, "crc": 1, "parse": 2, "shuffle": 1, "decode": 20, "batch": 4}
    )
    assert list(costs.us) == ["read", "crc", "parse", "shuffle", "decode", "batch"]
    assert costs.total == pytest.approx(29.0)


def test_noise_never_makes_a_stage_cost_less_than_nothing():
    costs = find_costs({"read": 5.0, "crc": 3.0, "parse": 4.0, "batch": 6.0}, records=1_000_000)
    assert costs.us == pytest.approx({"read": 5, "crc": 0, "parse": 0, "batch": 1})


def test_shares_add_up():
    costs = Costs({"read": 1.0, "parse": 2.0, "batch": 5.0})
    assert costs.share("parse") == 0.25
    assert costs.share("read", "batch") == 0.75
    assert costs.share("decode") == 0.0
    assert sum(map(costs.share, costs.us)) == pytest.approx(1.0)


def test_no_time_at_all_has_no_shares_and_no_bottleneck():
    costs = Costs({"read": 0.0})
    assert costs.share("read") == 0.0
    assert find_bottleneck(costs) is None
    assert to_stages(costs, {}, record_bytes=1)[0].share == 0.0


def test_speeds_are_of_all_stages_so_far():
    stages = to_stages(Costs({"read": 1.0, "parse": 3.0}), {"parse": 0.1}, record_bytes=2000)
    assert [stage.records_per_s for stage in stages] == [1e6, 250_000]
    assert [stage.mb_per_s for stage in stages] == [2000.0, 500.0]
    assert [stage.spread for stage in stages] == [0.0, 0.1]
    assert [stage.share for stage in stages] == [0.25, 0.75]


@pytest.mark.parametrize(
    ("us", "stage", "text"),
    [
        ({"crc": 1.0, "decode": 1499.0}, "decode", "100 % of the time: 1,499 of 1,500 µs a record"),
        ({"crc": 1.0, "callback": 3.0}, "callback", "75 % of the time: 3.00 of 4.00 µs"),
        ({"read": 1, "crc": 1, "parse": 1.01, "batch": 1}, "parse", "no stage stands out"),
    ],
)
def test_the_bottleneck_is_the_largest_cost(us, stage, text):
    found = find_bottleneck(Costs(us))
    assert found.stage == stage
    assert text in found.text


@pytest.mark.parametrize(
    ("share", "factor", "expected"),
    [(0.0, 9.0, 1.0), (0.5, float("inf"), 2.0), (0.5, 2.0, 4 / 3), (1.0, 4.0, 4.0)],
)
def test_amdahl(share, factor, expected):
    assert speed_up(share, factor) == pytest.approx(expected)


def test_a_gain_is_never_without_bound():
    assert speed_up(1.0) == pytest.approx(1000.0)
