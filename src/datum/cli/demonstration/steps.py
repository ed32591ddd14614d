"""The steps of the demo that need no TensorFlow, and those that can do without."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

import datum
from datum import Dataset, MissingDependencyError
from datum.cli.demonstration import calls
from datum.cli.demonstration.digits import draw_digits, save_images
from datum.cli.demonstration.speed import (
    measure_in_turn,
    show_rates,
    write_larger_copy,
    write_pixels,
)
from datum.cli.demonstration.telling import Story
from datum.cli.demonstration.training import load_tensorflow
from datum.cli.pages.info import render
from datum.cli.terminal import show_bar

__all__ = ["Digits", "compare", "look", "make_images", "measure", "write"]

COPIES = 56  # of 1,797 digits: about 100,000 records
TURNS = 3  # of each, so that one that something else disturbed does not count
SECONDS = 1.5  # a turn: all of them take less than half a minute


@dataclass(frozen=True, slots=True)
class Digits:
    """The digits as pixels with labels, and the PNG files made of them."""

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]
    files: list[tuple[bytes, int]]


def make_images(story: Story, pixels: NDArray[np.uint8], labels: NDArray[np.int64]) -> Digits:
    """Save the digits as people have them: image files in a folder for each class."""
    story.step("Real data, as people have it: images in folders")
    digits = Digits(pixels, labels, save_images(Path("images"), pixels, labels))
    story.say(
        f"{len(pixels):,} handwritten digits of 8 x 8 pixels, from scikit-learn, as PNG files:"
        " images/0/0000.png, images/1/0001.png, ..."
    )
    story.show(Text())
    story.show(draw_digits(pixels, story.console, width=story.width))
    return digits


def write(story: Story) -> Dataset:
    """Write the images as a dataset."""
    story.step("Write it as a dataset")
    story.say("The folders are the classes; types and shapes are found out. One call, here in")
    story.say("Python (>>>), with the command that does the same in a shell ($):")
    story.python(f"import datum\n{calls.code_of(calls.write_dataset)}")
    story.shell("datum write images digits --splits train=0.8,val=0.2 --stratify label")
    story.show(Text(str(calls.write_dataset())))
    files = sorted(path.name for path in Path("digits").iterdir())
    story.say(f"Plain TFRecord files, their indexes, a manifest: {', '.join(files)}.")
    return datum.load("digits")


def look(story: Story, ds: Dataset) -> None:
    """Show what is in the dataset."""
    story.step("Look into it")
    story.python('ds = datum.load("digits")')
    story.shell("datum info digits")
    story.show(Text())
    story.show(render(datum.profile(ds, sample="quick"), title="digits"))


def compare(story: Story, ds: Dataset) -> None:
    """Read the same records without TensorFlow, in its order, and go on from a checkpoint."""
    story.step("The same batches in NumPy, without TensorFlow")
    story.say("First each record, decoded, beside its PNG file:")
    story.python('records = list(ds["all"])')
    same = _same_pixels(ds)
    story.say(f"{same:,} of {len(ds['all']):,} are equal, pixel for pixel.")
    story.show(Text())
    if _tensorflow_or_note(story, "the comparison with it") is not None:
        story.python(calls.code_of(calls.compare_with_tensorflow))
        alike = calls.compare_with_tensorflow(ds)
        story.say(
            f"The same records in the same order in both: {alike:,} of {len(ds['train']):,}."
            " `to_torch` and `to_jax` have that order, too."
        )
    story.show(Text())
    story.say("A run that stopped goes on where it was, with the very next record:")
    story.python(f"import numpy as np\n{calls.code_of(calls.go_on_from_state)}")
    story.show(Text(str(calls.go_on_from_state(ds)), "bold"))


def _same_pixels(ds: Dataset) -> int:
    from PIL import Image

    same = 0
    for record in ds["all"]:
        with Image.open(Path("images", record["filename"])) as file:
            same += np.array_equal(record["image"][..., 0], np.asarray(file))
    return same


def measure(story: Story, ds: Dataset, digits: Digits) -> None:
    """Read larger copies as fast as it goes, with Datum and by hand."""
    story.step("How fast")
    tf = _tensorflow_or_note(story, "the hand-written pipeline")
    story.say(f"On a larger copy: the digits {COPIES} times, all of them for training.")
    if tf is not None:
        story.say("What one writes without Datum:")
        files = 'from glob import glob\nfiles = sorted(glob("larger/train-*.tfrecord"))'
        story.python(f"{files}\n{calls.code_of(calls.feed_tensorflow_by_hand)}")
        story.say("With Datum:")
        story.python(f'ds = datum.load("larger")\n{calls.code_of(calls.feed_tensorflow)}')
    story.python(calls.code_of(calls.feed_numpy))
    story.shell("datum bench digits")
    with tempfile.TemporaryDirectory(prefix="datum-demo-") as folder:
        copy = write_larger_copy(digits.files, ds, Path(folder, "png"), copies=COPIES)
        story.show(Text())
        story.say(f"{len(copy['train']):,} records: the digits {COPIES} times, as PNG:")
        _measure_one(story, copy, tf, calls.feed_tensorflow_by_hand)
        copy = write_pixels(digits.pixels, digits.labels, Path(folder, "pixels"), copies=COPIES)
        story.show(Text())
        story.say("The same with pixels stored as numbers, which cost no decoding:")
        _measure_one(story, copy, tf, calls.feed_pixels_by_hand)
    story.show(Text())
    where = f"{os.cpu_count()} cores" + ("" if tf is None else f", TensorFlow {tf.__version__}")
    story.say(
        f"Measured: shuffled batches of 256 with decoded pixels, on {where};"
        f" the median of {TURNS} turns of {SECONDS} s each, taken in turn, after the first batch;"
        " files in the memory of the system. Records as small as these show what a record costs"
        " besides its pixels. With photos of 100 KB it is the JPEG decoder that counts, and the"
        " gap narrows.",
        "dim",
    )


def _measure_one(
    story: Story, ds: Dataset, tf: Any, by_hand: Callable[[Any, list[str]], Any]
) -> None:
    files = [str(path) for path in sorted(ds.path.glob("*.tfrecord"))]
    feeds: dict[str, Callable[[], Any]] = {}
    if tf is not None:
        feeds["hand-written tf.data"] = lambda: by_hand(tf, files)
        feeds["ds.to_tf"] = lambda: calls.feed_tensorflow(ds)
    feeds["ds.to_numpy"] = lambda: calls.feed_numpy(ds)
    with show_bar("measuring") as tell:
        rates = measure_in_turn(feeds, turns=TURNS, seconds=SECONDS, tell=tell)
    story.show(show_rates(rates, story.console))


def _tensorflow_or_note(story: Story, purpose: str) -> Any:
    """TensorFlow; None, with a word on how to get it, where there is none."""
    try:
        return load_tensorflow(purpose=purpose)
    except MissingDependencyError as error:
        story.note_missing(error)
        return None
