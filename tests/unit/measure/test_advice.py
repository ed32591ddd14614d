"""What `datum.measure` advises, and what each step costs."""

import pytest

from datum._inspect.measure.advice import (
    CACHED,
    LARGER_BATCHES,
    MORE_THREADS,
    Costs,
    Facts,
    advise,
    find_bottleneck,
    find_costs,
    larger_batch,
    speed_up,
    to_stages,
)
from datum._inspect.measure.measurement import Paid

EVEN = Costs({"read": 1.0, "crc": 1.0, "parse": 1.0, "batch": 7.0})
DECODING = Costs({"parse": 10.0, "decode": 90.0})
GB = 10**9


def advice(**facts):
    facts.setdefault("costs", EVEN)
    return {one.kind: one for one in advise(Facts(**facts))}


def test_nothing_is_said_without_figures():
    assert advice() == {}


def test_large_images_are_better_stored_small():
    (found,) = advice(costs=DECODING, image_side=512.0).values()
    assert found.kind == "smaller images"
    assert "max_side=256" in found.call
    assert found.basis == "expected"
    assert found.gain == pytest.approx(1 / (0.1 + 0.9 / 4))


@pytest.mark.parametrize(
    "facts",
    [
        {"costs": DECODING, "image_side": 224.0},
        {"costs": Costs({"parse": 90.0, "decode": 10.0}), "image_side": 900.0},
        {"costs": DECODING},
    ],
)
def test_small_images_or_little_decoding_are_left_alone(facts):
    assert "smaller images" not in advice(**facts)


def test_a_cache_is_advised_if_it_was_faster():
    found = advice(
        speeds={"to_numpy": 100.0, CACHED: 500.0}, records=1000, decoded_bytes=3_000_000.0
    )
    assert found["cache"].gain == 5.0
    assert found["cache"].basis == "measured"
    assert "3.0 GB" in found["cache"].text
    assert advice(speeds={"to_numpy": 100.0, CACHED: 101.0}) == {}


def test_a_slow_function_is_better_vectorised():
    costs = Costs({"parse": 20.0, "callback": 80.0})
    found = advice(costs=costs)
    assert found["vectorise"].gain == pytest.approx(5.0)
    assert found["vectorise"].basis == "at most"
    assert "batch_map" in found["vectorise"].call
    assert "workers" not in found


def test_workers_are_advised_for_a_function_that_holds_the_lock():
    costs = Costs({"parse": 20.0, "callback": 80.0})
    found = advice(costs=costs, speeds={"to_torch": 100.0, "DataLoader": 190.0})
    assert found["workers"].gain == pytest.approx(1.9)


def test_columns_are_advised_where_parsing_takes_the_time():
    costs = Costs({"parse": 80.0, "batch": 20.0})
    found = advice(costs=costs, features=4)
    assert found["columns"].gain == pytest.approx(1 / (1 - 0.6))
    assert "columns" not in advice(costs=costs, features=1)
    assert "columns" not in advice(costs=costs, features=4, is_narrowed=True)


def test_checking_crcs_is_never_advised_against():
    assert advice(costs=Costs({"read": 1.0, "crc": 99.0})) == {}


@pytest.mark.parametrize(("gain", "is_told"), [(1.2, False), (3.0, True)])
def test_larger_batches_have_to_be_much_faster(gain, is_told):
    found = advice(speeds={"to_numpy": 100.0, LARGER_BATCHES: 100.0 * gain}, batch_size=8)
    assert ("larger batches" in found) is is_told
    if is_told:
        assert f"batch_size={larger_batch(8)}" in found["larger batches"].call


def test_more_threads_are_advised_where_they_help():
    found = advice(speeds={"to_numpy": 100.0, MORE_THREADS: 300.0}, threads=1, cores=4)
    assert found["threads"].gain == 3.0
    assert "1 thread of 4 cores" in found["threads"].text


def test_blocks_are_advised_where_order_costs():
    found = advice(costs=Costs({"parse": 50.0, "shuffle": 50.0}))
    assert found["blocks"].gain == pytest.approx(2.0)
    assert 'shuffle="blocks"' in found["blocks"].call


def on_disk(**facts):
    return advice(
        speeds={"to_numpy": 10_000.0},
        paid=Paid(disk_mb_per_s=100.0),
        record_bytes=100_000.0,
        records=10_000_000,
        **facts,
    )


def test_a_disk_that_cannot_keep_up_is_told():
    found = on_disk(memory_bytes=16 * GB)
    assert found["faster disk"].gain == pytest.approx(10.0)
    assert "1,000 records/s" in found["faster disk"].text
    assert "blocks on disk" not in found


def test_a_full_shuffle_of_a_slow_disk_is_told():
    assert "blocks on disk" in on_disk(memory_bytes=16 * GB, shuffle=True)


def test_what_stays_in_memory_is_not_read_from_the_disk():
    assert on_disk(memory_bytes=4000 * GB) == {}


def test_inflating_is_told_with_its_share():
    found = advice(compression="gzip", paid=Paid(inflate_us_per_record=10.0), path="photos")[
        "compression"
    ]
    assert found.gain == pytest.approx(2.0)
    assert "50 %" in found.text
    assert found.call == "datum reshard photos OUT --compression none"


def test_inflating_that_costs_nothing_is_no_matter():
    assert advice(compression="gzip", paid=Paid(inflate_us_per_record=0.1)) == {}


def test_many_tiny_shards_are_told_if_opening_takes_the_time():
    tiny = {"paid": Paid(open_us_per_shard=1000.0), "shards": 1000, "bytes": 10**6}
    found = advice(**tiny, records=10_000)["larger shards"]
    assert "--shards 1" in found.call
    assert found.gain == pytest.approx((999_000 + 100_000) / 100_000)
    assert advice(**tiny, records=10**9) == {}
    assert advice(paid=Paid(open_us_per_shard=1e6), shards=1000, bytes=10**12) == {}


def test_workers_that_only_carry_batches_are_advised_against():
    found = advice(speeds={"to_torch": 300.0, "DataLoader": 100.0})
    assert found["no workers"].gain == pytest.approx(3.0)
    assert advice(speeds={"to_torch": 100.0, "DataLoader": 300.0}) == {}


def test_the_faster_engine_is_advised():
    speeds = {"to_tf graph": 100.0, "to_tf native": 250.0}
    found = advice(speeds=speeds, auto_engine="graph")["engine"]
    assert 'engine="native"' in found.call
    assert found.gain == 2.5
    assert advice(speeds=speeds, auto_engine="native") == {}
    assert advice(speeds=speeds) == {}


def test_a_framework_that_takes_batches_slowly_is_told():
    found = advice(speeds={"to_numpy": 500.0, "to_jax": 100.0, "to_torch": 400.0})
    assert list(found) == ["handover"]
    assert "`to_jax` spends 80 %" in found["handover"].text


def test_the_largest_gain_comes_first():
    found = advise(
        Facts(
            costs=DECODING,
            image_side=512.0,
            speeds={"to_numpy": 1.0, CACHED: 2.0, "to_torch": 9.0, "DataLoader": 1.0},
        )
    )
    gains = [one.gain for one in found]
    assert gains == sorted(gains, reverse=True)
    assert len(found) == 3


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
        (
            {"crc": 1.0, "decode": 1499.0},
            "decode",
            "100 % of the time: 1,499 of 1,500 µs per record",
        ),
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
