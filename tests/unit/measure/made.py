"""A measurement that was never taken, for tests of how one is told."""

from datum._inspect.measure.measurement import (
    Advice,
    Bottleneck,
    Machine,
    Measurement,
    Paid,
    Speed,
    Stage,
)

__all__ = ["make_measurement"]


def make_measurement(**changes):
    """Photos whose decoding takes the time; JAX is not installed, one loader failed."""
    facts = {
        "path": "photos",
        "split": "train",
        "records": 12_345,
        "bytes": 1_234_500_000,
        "shards": 10,
        "compression": None,
        "measured_records": 128,
        "record_bytes": 100_000.0,
        "options": {
            "batch_size": 64,
            "shuffle": True,
            "columns": None,
            "threads": 2,
            "workers": 2,
            "map": None,
            "seconds": 2.0,
        },
        "machine": Machine("Some CPU", 2, 16 * 10**9, "Linux", {"Python": "3.12.1"}),
        "stages": (
            Stage("read", 2.0, 0.002, 500_000.0, 50_000.0, 0.01),
            Stage("parse", 98.0, 0.098, 10_000.0, 1_000.0, 0.02),
            Stage("decode", 900.0, 0.9, 1_000.0, 100.0, 0.03),
        ),
        "speeds": (
            Speed("numpy", "to_numpy", "ds.to_numpy(...)", 2000.0, 200.0, 500.0, 0.04),
            Speed("torch", "DataLoader", "DataLoader(...)", 1000.0, 100.0, 1000.0, 0.05),
            Speed("tf", "to_tf graph", "ds.to_tf(...)", problem="no such <format>"),
        ),
        "paid": Paid(500.0, 12.5, 300.0),
        "missing": ("jax",),
        "bottleneck": Bottleneck("decode", 0.9, "decoding takes 90 % of the time: 900 µs"),
        "advice": (
            Advice(
                "cache", "images fit in memory", "ds.to_numpy(..., cache=True)", 12.3, "measured"
            ),
            Advice("columns", "parse less", "ds.to_numpy(..., columns=[...])", 1.21, "at most"),
        ),
        "notes": ("the machine is busy",),
    }
    return Measurement(**(facts | changes))
