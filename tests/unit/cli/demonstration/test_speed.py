"""Rates measured in turn."""

import itertools

import numpy as np
import pytest
from rich.console import Console

import datum
from datum.cli.demo_steps import (
    measure_in_turn,
    show_rates,
    write_larger_copy,
    write_pixels,
)

BATCH = {"label": np.zeros(10)}


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by a second at every look."""
    ticks = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))


@pytest.mark.usefixtures("clock")
def test_a_rate_counts_the_records_after_the_first_batch():
    told = []
    rates = measure_in_turn(
        {"one": lambda: itertools.repeat(BATCH)},
        turns=3,
        seconds=5,
        tell=lambda done, total: told.append((done, total)),
    )
    # Five batches of ten by the fifth look; the last look is one second later.
    assert rates == {"one": pytest.approx(50 / 6)}
    assert told == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.usefixtures("clock")
def test_feeds_are_made_anew_for_every_turn_and_taken_in_turn():
    order = []

    def feed(name):
        order.append(name)
        return itertools.repeat(BATCH)

    feeds = {name: lambda name=name: feed(name) for name in "ab"}
    measure_in_turn(feeds, turns=2, seconds=1, tell=lambda done, total: None)
    assert order == ["a", "b", "a", "b"]


@pytest.mark.usefixtures("clock")
def test_one_turn_that_was_disturbed_does_not_count():
    sizes = iter([10, 1000, 10])

    def feed():
        return itertools.repeat({"label": np.zeros(next(sizes))})

    rates = measure_in_turn({"x": feed}, turns=3, seconds=5, tell=lambda done, total: None)
    assert rates["x"] == pytest.approx(50 / 6)


def test_rates_are_shown_against_the_first():
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(show_rates({"by hand": 1000.0, "ds.to_tf": 12_500.0}, console))
    console.file.close()
    first, second = console.export_text().splitlines()
    assert first.split() == ["by", "hand", "██", "1,000", "records/s", "1.0x"]
    assert second.split() == ["ds.to_tf", "█" * 24, "12,500", "records/s", "12.5x"]


def test_copies_hold_the_same_images_many_times(tmp_path):
    pixels = np.arange(3 * 64, dtype=np.uint8).reshape(3, 8, 8)
    labels = np.arange(3)
    columns = {"image": pixels[..., None], "label": labels}
    image = datum.Feature("uint8", (8, 8, 1), encoding="image")
    datum.write(columns, tmp_path / "few", schema={"image": image}, progress=False)
    few = datum.load(tmp_path / "few")
    files = [(bytes(few["all"].read([i])["image"][0]), few["all"][i]["label"]) for i in range(3)]

    copies = [
        write_larger_copy(files, few, tmp_path / "png", copies=4),
        write_pixels(pixels, labels, tmp_path / "pixels", copies=4),
    ]
    assert copies[0].schema["image"].encoding == "image"
    assert copies[1].schema["image"].encoding != "image"
    for copy in copies:
        assert len(copy["train"]) == 12
        for record in copy["train"]:
            np.testing.assert_array_equal(record["image"][..., 0], pixels[record["label"]])
