"""Times of stages that were measured together, as what each of them costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from datum.measuring.measurement import Bottleneck, Stage
from datum.measuring.stages import MEASURED, STAGES

__all__ = ["Costs", "find_bottleneck", "find_costs", "speed_up", "to_stages"]

STANDS_OUT = 0.35  # a share that is worth a sentence of its own
_DOING = {
    "read": "reading the bytes takes",
    "crc": "checking the CRC of each record takes",
    "parse": "parsing records into columns takes",
    "shuffle": "fetching records in random order takes",
    "decode": "decoding images takes",
    "callback": "the function given as `map` takes",
    "batch": "putting batches together takes",
}


@dataclass(frozen=True, slots=True)
class Costs:
    """What each stage adds, in microseconds a record, by its name."""

    us: Mapping[str, float]

    @property
    def total(self) -> float:
        """Of all stages."""
        return sum(self.us.values())

    def share(self, *names: str) -> float:
        """The part that some stages have; 0 of those that there are none."""
        found = sum(self.us.get(name, 0.0) for name in names)
        return found / self.total if self.total else 0.0


def find_costs(seconds: Mapping[str, float], records: int) -> Costs:
    """Costs out of the times of passes, where each stage was measured with those before it.

    A stage that seems to take less than none, since times are noisy, costs nothing.

    >>> costs = find_costs({"read": 1e-6, "crc": 3e-6, "parse": 2e-6, "batch": 7e-6}, 1)
    >>> {name: round(cost, 3) for name, cost in costs.us.items()}
    {'read': 1.0, 'crc': 2.0, 'parse': 0.0, 'batch': 4.0}
    """
    found, so_far = {}, 0.0
    for name in MEASURED:
        if name in seconds:
            here = max(so_far, seconds[name] / max(1, records) * 1e6)
            found[name] = here - so_far
            so_far = here
    return Costs({name: found[name] for name in STAGES if name in found})


def to_stages(
    costs: Costs, spreads: Mapping[str, float], *, record_bytes: float
) -> tuple[Stage, ...]:
    """The costs with what follows from them."""
    stages, so_far = [], 0.0
    for name, cost in costs.us.items():
        so_far += cost
        speed = 1e6 / max(so_far, 1e-9)
        share = costs.share(name)
        spread = spreads.get(name, 0.0)
        stages.append(Stage(name, cost, share, speed, speed * record_bytes / 1e6, spread))
    return tuple(stages)


def find_bottleneck(costs: Costs) -> Bottleneck | None:
    """The stage that takes most of the time; None where nothing was measured.

    >>> find_bottleneck(Costs({"parse": 1.0, "decode": 9.0})).text
    'decoding images takes 90 % of the time: 9.00 of 10.0 µs a record'
    """
    if not costs.total:
        return None
    name = max(costs.us, key=lambda stage: costs.us[stage])
    share = costs.share(name)
    figures = f"{_number(costs.us[name])} of {_number(costs.total)} µs a record"
    text = f"{_DOING[name]} {share * 100:.0f} % of the time: {figures}"
    if share < STANDS_OUT:
        text = f"no stage stands out: {text}"
    return Bottleneck(name, share, text)


def speed_up(share: float, factor: float = float("inf")) -> float:
    """How many times as fast all is if a share of it is `factor` times as fast (Amdahl).

    >>> speed_up(0.5), speed_up(0.9, 3.0)
    (2.0, 2.5)
    """
    left = 1 - share + share / factor
    return 1 / max(left, 1e-3)


def _number(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"
