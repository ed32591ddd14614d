"""The steps of the demo that TensorFlow takes part in, and how it is kept quiet."""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.text import Text

from datum import Dataset, MissingDependencyError
from datum.cli.demonstration import calls
from datum.cli.demonstration.telling import Story
from datum.cli.terminal import is_plain

__all__ = ["ACCURACY", "load_tensorflow", "train"]

ACCURACY = 0.95  # which the model has to exceed
_BAR_WIDTH = 30
_STDERR = 2  # as the system counts


def load_tensorflow(*, purpose: str) -> Any:
    """TensorFlow, kept from chattering; MissingDependencyError where there is none."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # looked at when it is loaded
    if importlib.util.find_spec("tensorflow") is None:
        raise MissingDependencyError(
            f"{purpose} needs the package `tensorflow`", hint="pip install tensorflow"
        )
    with _silenced():
        tf = importlib.import_module("tensorflow")
        tf.config.list_physical_devices()  # looks for GPUs, and talks of it
    tf.get_logger().setLevel("ERROR")
    return tf


@contextmanager
def _silenced() -> Iterator[None]:
    """Let nothing that native code writes to stderr be seen; errors of Python are raised still."""
    try:
        kept = os.dup(_STDERR)
    except OSError:  # there is none
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
    """Train a small model, showing each epoch; returns its accuracy on what it has not seen.

    Without TensorFlow that is said, and nothing is known: 0.
    """
    story.step("Train a model on it")
    story.say("A small Keras network. `to_tf` is a tf.data.Dataset: shuffled, decoded, batched.")
    try:
        tf = load_tensorflow(purpose="training")
    except MissingDependencyError as error:
        story.note_missing(error)
        return 0.0
    story.python(f"import tensorflow as tf\nepochs = {epochs}\n{calls.code_of(calls.train_model)}")
    tell = tf.keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: _tell_epoch(story, epoch, epochs, logs["val_accuracy"])
    )
    with warnings.catch_warnings():
        # Keras cannot shuffle a tf.data.Dataset, and says so at every fit.
        warnings.filterwarnings("ignore", message=".*shuffle=True.*", category=UserWarning)
        history = calls.train_model(ds, tf, epochs, callbacks=[tell])
    accuracy = float(history.history["val_accuracy"][-1])
    count = len(ds["val"])
    known = f"{round(accuracy * count):,} of {count:,} digits that it has not seen: {accuracy:.1%}"
    if accuracy > ACCURACY:
        story.say(f"It knows {known}.", "bold green")
    else:
        story.say(f"It knows {known}, less than the {ACCURACY:.0%} expected.", "bold red")
        story.say(f"hint: train for longer: datum demo --train --epochs {2 * epochs}")
    return accuracy


def _tell_epoch(story: Story, epoch: int, epochs: int, accuracy: float) -> None:
    is_ascii = is_plain(story.console)
    full, empty = ("#", ".") if is_ascii else ("█", "░")
    done = round(_BAR_WIDTH * accuracy)
    number = f"epoch {epoch + 1:>{len(str(epochs))}}/{epochs}  "
    bar = Text(full * done, "green").append(empty * (_BAR_WIDTH - done), "dim")
    story.show(Text(number) + bar + Text(f"  {accuracy:6.1%} right on val"))
