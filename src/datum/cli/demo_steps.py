"""The steps of `datum demo`, and the calls that they show and run."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import statistics
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

import datum
from datum import Dataset, MissingDependencyError, WriteReport
from datum.cli.info_page import render
from datum.cli.terminal import data, is_plain, show_bar

if TYPE_CHECKING:
    from datum import Dataset

__all__ = [
    "ACCURACY",
    "Digits",
    "Story",
    "code_of",
    "compare",
    "compare_with_tensorflow",
    "draw_digits",
    "feed_numpy",
    "feed_pixels_by_hand",
    "feed_tensorflow",
    "feed_tensorflow_by_hand",
    "go_on_from_state",
    "load_tensorflow",
    "look",
    "make_images",
    "measure",
    "measure_in_turn",
    "read_digits",
    "save_images",
    "show_rates",
    "train",
    "train_model",
    "write",
    "write_dataset",
    "write_larger_copy",
    "write_pixels",
]

# Left out of the code shown: types, and the demo's own progress callback.
_LEFT_OUT = re.compile(r": Any\b| -> Any\b|, verbose=0, callbacks=callbacks")


def write_dataset() -> WriteReport:
    """Write the folders of images as a dataset."""
    splits = {"train": 0.8, "val": 0.2}
    return datum.write("images", "digits", splits=splits, stratify="label")


def train_model(ds: Dataset, tf: Any, epochs: int, *, callbacks: list[Any]) -> Any:
    """Train a small Keras model on the dataset."""
    pair = ("image", "label")
    train = ds.to_tf("train", batch_size=32, shuffle=True, supervised=pair)
    val = ds.to_tf("val", batch_size=64, supervised=pair)

    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    model = tf.keras.Sequential()
    model.add(layers.Rescaling(1 / 255))
    model.add(layers.Conv2D(32, 3, activation="relu"))
    model.add(layers.Conv2D(64, 3, activation="relu"))
    model.add(layers.Flatten())
    model.add(layers.Dense(10))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return model.fit(train, validation_data=val, epochs=epochs, verbose=0, callbacks=callbacks)


def compare_with_tensorflow(ds: Dataset) -> int:
    """Count the records that are equal at the same position in NumPy and TensorFlow."""
    arrays = ds.to_numpy("train", shuffle=True, seed=1)
    tensors = ds.to_tf("train", shuffle=True, seed=1, engine="native")
    same = 0
    for a, b in zip(arrays, tensors, strict=True):
        alike = (a["image"] == b["image"].numpy()).all(axis=(1, 2, 3))
        same += int((alike & (a["label"] == b["label"].numpy())).sum())
    return same


def go_on_from_state(ds: Dataset) -> bool:
    """Return whether a loader resumes from another's state with the same records."""
    loader = ds.to_numpy("train", batch_size=64, shuffle=True, seed=1)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()  # a few numbers, for the checkpoint
    rest = np.concatenate([batch["label"] for batch in batches])

    again = ds.to_numpy("train", batch_size=64, shuffle=True, seed=1)
    again.load_state_dict(state)
    return np.array_equal(rest, np.concatenate([batch["label"] for batch in again]))


def feed_tensorflow_by_hand(tf: Any, files: list[str]) -> Any:
    """Read PNG records with plain TensorFlow."""
    spec = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    decode, kind = tf.io.decode_png, tf.TensorSpec((8, 8, 1), tf.uint8)

    def parse(serialized: Any) -> Any:
        batch = tf.io.parse_example(serialized, spec)
        images = tf.map_fn(decode, batch["image"], fn_output_signature=kind)
        return {"image": images, "label": batch["label"]}

    records = tf.data.TFRecordDataset(files).repeat().shuffle(8192)
    return records.batch(256).map(parse, tf.data.AUTOTUNE).prefetch(2)


def feed_pixels_by_hand(tf: Any, files: list[str]) -> Any:
    """Read pixels stored as numbers with plain TensorFlow."""
    spec = {
        "image": tf.io.FixedLenFeature((8, 8, 1), tf.int64),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }

    def parse(serialized: Any) -> Any:
        batch = tf.io.parse_example(serialized, spec)
        images = tf.cast(batch["image"], tf.uint8)
        return {"image": images, "label": batch["label"]}

    records = tf.data.TFRecordDataset(files).repeat().shuffle(8192)
    return records.batch(256).map(parse, tf.data.AUTOTUNE).prefetch(2)


def feed_tensorflow(ds: Dataset) -> Any:
    """Read the same records into TensorFlow with Datum."""
    return ds.to_tf("train", batch_size=256, shuffle=True, epochs=None)


def feed_numpy(ds: Dataset) -> Any:
    """Read the same records into NumPy with Datum."""
    return ds.to_numpy("train", batch_size=256, shuffle=True, epochs=None)


def code_of(function: Callable[..., Any]) -> str:
    """Return the body of a function as a user would type it."""
    source = textwrap.dedent(inspect.getsource(function))
    _, _, body = source.partition('"""')
    _, _, body = body.partition('"""\n')
    lines = _LEFT_OUT.sub("", textwrap.dedent(body)).rstrip().splitlines()
    last = lines[-1].removeprefix("return ")
    return "\n".join(lines[:-1] if last.isidentifier() else [*lines[:-1], last])


_MAX_WIDTH = 88  # of a readable line
_INDENT = 3


class Story:
    """Numbered steps printed to stdout; plain text without a terminal."""

    def __init__(self) -> None:
        self.console: Console = data()
        self.width = min(self.console.width, _MAX_WIDTH) - _INDENT
        self._steps = 0
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def step(self, title: str) -> None:
        """Begin a step."""
        self._steps += 1
        heading = Text.assemble("\n", (f"{self._steps}. {title}", "bold"))
        if self.console.is_terminal:
            line = "-" if is_plain(self.console) else "─"
            heading.append(" " + line * (self.width + _INDENT - heading.cell_len - 1), "dim")
        self._print(heading)

    def say(self, text: str, style: str = "") -> None:
        """Print text in lines that fit."""
        for line in textwrap.wrap(text, self.width, break_on_hyphens=False):
            self.show(Text(line, style))

    def show(self, what: RenderableType) -> None:
        """Print anything else, indented like the text."""
        if isinstance(what, Text):
            lines = list(what.split("\n"))
        else:
            options = self.console.options.update(width=self.console.width - _INDENT)
            lines = [
                Text.assemble(*((part.text, part.style or "") for part in line))
                for line in self.console.render_lines(what, options, pad=False)
            ]
        for line in lines:
            self._print(Text(" " * _INDENT) + line)

    def python(self, code: str) -> None:
        """Print Python code with prompts."""
        is_inner = False
        for line in code.splitlines():
            if not line and not is_inner:
                continue  # a blank line is needed only to end a block
            is_inner = line.startswith((" ", ")", "]", "}"))
            prompt = "... " if is_inner or not line else ">>> "
            self.show(Text.assemble((prompt, "dim"), (line, "cyan")))

    def note_missing(self, error: MissingDependencyError) -> None:
        """Say that a step is skipped, and what it needs."""
        self.say(f"Skipped: {error.parts.line}.", "yellow")
        self.say(f"hint: {error.hint}", "cyan")

    def shell(self, command: str) -> None:
        """Print a shell command."""
        self.show(Text.assemble(("$ ", "dim"), (command, "green")))

    def _print(self, text: Text) -> None:
        text.rstrip()
        self.console.print(text, soft_wrap=True, highlight=False)


ACCURACY = 0.95  # that the model must exceed
_BAR_WIDTH = 30
_STDERR = 2  # file descriptor


def load_tensorflow(*, purpose: str) -> Any:
    """Import TensorFlow silently; raise MissingDependencyError without it."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read at import
    if importlib.util.find_spec("tensorflow") is None:
        raise MissingDependencyError(
            f"{purpose} needs the package `tensorflow`", hint="pip install tensorflow"
        )
    with _silenced():
        tf = importlib.import_module("tensorflow")
        tf.config.list_physical_devices()  # searches for GPUs, and logs it
    tf.get_logger().setLevel("ERROR")
    return tf


@contextmanager
def _silenced() -> Iterator[None]:
    """Discard what native code writes to stderr."""
    try:
        kept = os.dup(_STDERR)
    except OSError:  # stderr is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, _STDERR)
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
        os.close(nowhere)


def train(story: Story, ds: Dataset, epochs: int) -> float:
    """Train a small model, show each epoch, and return its validation accuracy.

    Without TensorFlow, print a note and return 0.
    """
    story.step("Train a model on it")
    story.say("A small Keras network. `to_tf` is a tf.data.Dataset: shuffled, decoded, batched.")
    try:
        tf = load_tensorflow(purpose="training")
    except MissingDependencyError as error:
        story.note_missing(error)
        return 0.0
    story.python(f"import tensorflow as tf\nepochs = {epochs}\n{code_of(train_model)}")
    show_epochs = tf.keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: _show_epoch(story, epoch, epochs, logs["val_accuracy"])
    )
    with warnings.catch_warnings():
        # Keras cannot shuffle a tf.data.Dataset, and warns at every fit.
        warnings.filterwarnings("ignore", message=".*shuffle=True.*", category=UserWarning)
        history = train_model(ds, tf, epochs, callbacks=[show_epochs])
    accuracy = float(history.history["val_accuracy"][-1])
    count = len(ds["val"])
    known = f"{round(accuracy * count):,} of {count:,} unseen digits: {accuracy:.1%}"
    if accuracy > ACCURACY:
        story.say(f"It recognises {known}.", "bold green")
    else:
        story.say(f"It recognises {known}, less than the {ACCURACY:.0%} expected.", "bold red")
        story.say(f"hint: train for longer: datum demo --train --epochs {2 * epochs}")
    return accuracy


def _show_epoch(story: Story, epoch: int, epochs: int, accuracy: float) -> None:
    is_ascii = is_plain(story.console)
    full, empty = ("#", ".") if is_ascii else ("█", "░")
    done = round(_BAR_WIDTH * accuracy)
    number = f"epoch {epoch + 1:>{len(str(epochs))}}/{epochs}  "
    bar = Text(full * done, "green").append(empty * (_BAR_WIDTH - done), "dim")
    story.show(Text(number) + bar + Text(f"  {accuracy:6.1%} right on val"))


_SPEED_BAR_WIDTH = 24


def write_larger_copy(
    images: Sequence[tuple[bytes, int]], like: Dataset, out: Path, *, copies: int
) -> Dataset:
    """Write encoded images `copies` times, as a dataset with the image feature of `like`."""
    columns = {
        "image": [image for image, _ in images] * copies,
        "label": [label for _, label in images] * copies,
    }
    datum.write(columns, out, schema={"image": like.schema["image"]}, progress=False)
    return datum.load(out)


def write_pixels(
    pixels: NDArray[np.uint8], labels: NDArray[np.int64], out: Path, *, copies: int
) -> Dataset:
    """Write pixels `copies` times, as numbers instead of PNG."""
    images = np.tile(pixels[..., None], (copies, 1, 1, 1))
    datum.write({"image": images, "label": np.tile(labels, copies)}, out, progress=False)
    return datum.load(out)


def measure_in_turn(
    feeds: Mapping[str, Callable[[], Iterable[Mapping[str, Any]]]],
    *,
    turns: int,
    seconds: float,
    progress: Callable[[int, int], None],
) -> dict[str, float]:
    """Records per second of each feed: the median of alternating turns.

    A feed yields batches without end. The first batch of a turn is not counted, because it waits
    for files to be opened and buffers to be filled.
    """
    rates: dict[str, list[float]] = {name: [] for name in feeds}
    for turn in range(turns):
        for at, (name, make) in enumerate(feeds.items()):
            progress(turn * len(feeds) + at, turns * len(feeds))
            rates[name].append(_rate(make(), seconds))
    return {name: statistics.median(values) for name, values in rates.items()}


def _rate(batches: Iterable[Mapping[str, Any]], seconds: float) -> float:
    iterator = iter(batches)
    next(iterator)
    records, started = 0, time.perf_counter()
    for batch in iterator:
        records += len(batch["label"])
        if time.perf_counter() - started >= seconds:
            break
    return records / (time.perf_counter() - started)


def show_rates(rates: Mapping[str, float], console: Console) -> Table:
    """Table of rates with bars, and the speed-up over the first."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, justify="right")
    best, first = max(rates.values()), next(iter(rates.values()))
    block = "#" if is_plain(console) else "█"
    width = min(_SPEED_BAR_WIDTH, max(console.width - 56, 4))
    for name, rate in rates.items():
        is_ours = name != next(iter(rates))
        bar = Text(block * max(1, round(width * rate / best)), "green" if is_ours else "dim")
        table.add_row(name, bar, f"{rate:,.0f} records/s", f"{rate / first:.1f}x")
    return table


_BRIGHTEST = 16  # the pixels of scikit-learn's digits are 0 to 16
_SHADES = " ░▒▓█"
_ASCII_SHADES = " .:-=+*#%@"


def read_digits() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the 1,797 digits of scikit-learn: pixels (8 x 8, 0 to 255) and labels."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise MissingDependencyError(
            "the handwritten digits of the demo come with the package `scikit-learn`",
            hint="pip install scikit-learn",
        ) from error
    digits: Any = load_digits()
    pixels = np.rint(digits.images * (255 / _BRIGHTEST)).astype(np.uint8)
    return pixels, digits.target.astype(np.int64)


def save_images(
    folder: Path, pixels: NDArray[np.uint8], labels: NDArray[np.int64]
) -> list[tuple[bytes, int]]:
    """Save each image as `folder/LABEL/NUMBER.png`; return their bytes and labels."""
    from PIL import Image

    saved = []
    for number, (image, label) in enumerate(zip(pixels, labels.tolist(), strict=True)):
        path = folder / str(label) / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
        saved.append((path.read_bytes(), label))
    return saved


def draw_digits(pixels: NDArray[np.uint8], console: Console, *, width: int) -> Text:
    """Draw as many images side by side as fit, in greys or in shading characters."""
    has_colours = console.color_system is not None and not console.no_color
    if has_colours and not is_plain(console):
        count = max(1, width // (pixels.shape[2] + 2))
        return _in_half_blocks(pixels[:count])
    shades = _ASCII_SHADES if is_plain(console) else _SHADES
    count = max(1, width // (2 * pixels.shape[2] + 2))
    return _in_shades(pixels[:count], shades)


def _in_half_blocks(pixels: NDArray[np.uint8]) -> Text:
    """Draw two rows of pixels per line, as foreground and background of half blocks."""
    text = Text()
    for top in range(0, pixels.shape[1], 2):
        for image in pixels:
            for upper, lower in zip(image[top].tolist(), image[top + 1].tolist(), strict=True):
                text.append("▀", f"rgb({upper},{upper},{upper}) on rgb({lower},{lower},{lower})")
            text.append("  ")
        text.append("\n")
    return text[:-1]


def _in_shades(pixels: NDArray[np.uint8], shades: str) -> Text:
    """Draw one line per row and two characters per pixel, which is about square."""
    levels = pixels.astype(int) * (len(shades) - 1) // 255
    lines = [
        "  ".join("".join(shades[level] * 2 for level in row) for row in rows).rstrip()
        for rows in levels.transpose(1, 0, 2).tolist()
    ]
    return Text("\n".join(lines))


COPIES = 56  # of 1,797 digits: about 100,000 records
TURNS = 3  # so that one disturbed turn does not count
SECONDS = 1.5  # per turn; all turns take less than half a minute


@dataclass(frozen=True, slots=True)
class Digits:
    """The digits as pixels and labels, and as PNG files."""

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]
    files: list[tuple[bytes, int]]


def make_images(story: Story, pixels: NDArray[np.uint8], labels: NDArray[np.int64]) -> Digits:
    """Save the digits as image files in class folders."""
    story.step("Real data: images in class folders")
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
    story.say(
        "The folders are the classes; types and shapes are inferred. One call in Python (>>>),"
    )
    story.say("or one command in a shell ($):")
    story.python(f"import datum\n{code_of(write_dataset)}")
    story.shell("datum write images digits --splits train=0.8,val=0.2 --stratify label")
    story.show(Text(str(write_dataset())))
    files = sorted(path.name for path in Path("digits").iterdir())
    story.say(f"Plain TFRecord files, their indexes, a manifest: {', '.join(files)}.")
    return datum.load("digits")


def look(story: Story, ds: Dataset) -> None:
    """Show the content of the dataset."""
    story.step("Look into it")
    story.python('ds = datum.load("digits")')
    story.shell("datum info digits")
    story.show(Text())
    story.show(render(datum.profile(ds, sample="quick"), title="digits"))


def compare(story: Story, ds: Dataset) -> None:
    """Read the same records without TensorFlow, in the same order, and resume."""
    story.step("The same batches in NumPy, without TensorFlow")
    story.say("First each record, decoded, beside its PNG file:")
    story.python('records = list(ds["all"])')
    same = _same_pixels(ds)
    story.say(f"{same:,} of {len(ds['all']):,} are equal, pixel for pixel.")
    story.show(Text())
    if _tensorflow_or_note(story, "the comparison with it") is not None:
        story.python(code_of(compare_with_tensorflow))
        alike = compare_with_tensorflow(ds)
        story.say(
            f"The same records in the same order in both: {alike:,} of {len(ds['train']):,}."
            " `to_torch` and `to_jax` use that order too."
        )
    story.show(Text())
    story.say("An interrupted run resumes with the very next record:")
    story.python(f"import numpy as np\n{code_of(go_on_from_state)}")
    story.show(Text(str(go_on_from_state(ds)), "bold"))


def _same_pixels(ds: Dataset) -> int:
    from PIL import Image

    same = 0
    for record in ds["all"]:
        with Image.open(Path("images", record["filename"])) as file:
            same += np.array_equal(record["image"][..., 0], np.asarray(file))
    return same


def measure(story: Story, ds: Dataset, digits: Digits) -> None:
    """Measure the speed of Datum and of plain TensorFlow on larger copies."""
    story.step("How fast")
    tf = _tensorflow_or_note(story, "the hand-written pipeline")
    story.say(f"Measured on a larger copy, the digits {COPIES} times, all in train.")
    if tf is not None:
        story.say("Without Datum:")
        files = 'from glob import glob\nfiles = sorted(glob("larger/train-*.tfrecord"))'
        story.python(f"{files}\n{code_of(feed_tensorflow_by_hand)}")
        story.say("With Datum:")
        story.python(f'ds = datum.load("larger")\n{code_of(feed_tensorflow)}')
    story.python(code_of(feed_numpy))
    story.shell("datum bench digits")
    with tempfile.TemporaryDirectory(prefix="datum-demo-") as folder:
        copy = write_larger_copy(digits.files, ds, Path(folder, "png"), copies=COPIES)
        story.show(Text())
        story.say(f"{len(copy['train']):,} records: the digits {COPIES} times, as PNG:")
        _measure_one(story, copy, tf, feed_tensorflow_by_hand)
        copy = write_pixels(digits.pixels, digits.labels, Path(folder, "pixels"), copies=COPIES)
        story.show(Text())
        story.say("The same with pixels stored as numbers, which cost no decoding:")
        _measure_one(story, copy, tf, feed_pixels_by_hand)
    story.show(Text())
    where = f"{os.cpu_count()} cores" + ("" if tf is None else f", TensorFlow {tf.__version__}")
    story.say(
        f"Measured: shuffled batches of 256 with decoded pixels, on {where};"
        f" the median of {TURNS} turns of {SECONDS} s each, taken in turn, after the first batch;"
        " files cached in memory. Records this small show the cost per record. With 100 KB photos"
        " the JPEG decoder dominates, and the gap narrows.",
        "dim",
    )


def _measure_one(
    story: Story, ds: Dataset, tf: Any, by_hand: Callable[[Any, list[str]], Any]
) -> None:
    files = [str(path) for path in sorted(ds.path.glob("*.tfrecord"))]
    feeds: dict[str, Callable[[], Any]] = {}
    if tf is not None:
        feeds["hand-written tf.data"] = lambda: by_hand(tf, files)
        feeds["ds.to_tf"] = lambda: feed_tensorflow(ds)
    feeds["ds.to_numpy"] = lambda: feed_numpy(ds)
    with show_bar("measuring") as progress:
        rates = measure_in_turn(feeds, turns=TURNS, seconds=SECONDS, progress=progress)
    story.show(show_rates(rates, story.console))


def _tensorflow_or_note(story: Story, purpose: str) -> Any:
    """Import TensorFlow; without it, print how to install it and return None."""
    try:
        return load_tensorflow(purpose=purpose)
    except MissingDependencyError as error:
        story.note_missing(error)
        return None
