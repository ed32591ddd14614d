"""`datum demo`: real digits from image files into training, with every call shown."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from datum import WriteError
from datum.errors import shell_word

if TYPE_CHECKING:
    from datum.cli.demo_steps import Story

__all__ = ["command"]

_NEXT = (
    ("datum head digits -n 3", "some records"),
    ("datum info digits --spec tf", "code to read it with TensorFlow alone"),
    ("datum verify digits --deep", "every CRC, every image"),
    ("datum bench digits", "where the time goes on this machine"),
    ("datum export-to digits back --format images", "the way back"),
)


def command(
    train: Annotated[
        bool,
        typer.Option("--train/--no-train", help="Also train a small Keras model to over 95 %."),
    ] = False,
    epochs: Annotated[int, typer.Option(min=1, help="How long to train.")] = 12,
    keep: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Leave images and dataset there, to play with."),
    ] = None,
) -> None:
    """Take real handwritten digits from image files into training, and show every call.

    Nothing is downloaded: scikit-learn carries the 1,797 digits. They are saved as PNG files in a
    temporary folder, written as a dataset, looked into, trained on (--train), read in NumPy, and
    read as fast as it goes beside a hand-written pipeline. That takes less than two minutes, and
    leaves nothing behind. Exit 1 if the model does not exceed 95 %.

        $ datum demo --train
        $ datum demo --keep playground
    """
    from datum.cli import demo_steps
    from datum.cli.demo_steps import ACCURACY, read_digits
    from datum.cli.demo_steps import train as train_model

    pixels, labels = read_digits()
    story = demo_steps.Story()
    accuracy = 1.0
    with _workplace(keep) as folder, _working_in(folder):
        digits = demo_steps.make_images(story, pixels, labels)
        ds = demo_steps.write(story)
        demo_steps.look(story, ds)
        if train:
            accuracy = train_model(story, ds, epochs)
        demo_steps.compare(story, ds)
        demo_steps.measure(story, ds, digits)
    _end(story, keep, trained=train)
    if accuracy <= ACCURACY:
        raise typer.Exit(1)


@contextmanager
def _workplace(keep: str | None) -> Iterator[Path]:
    """The folder to work in: the one that is kept, or one that is gone afterwards."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="datum-demo-") as name:
            yield Path(name)
        return
    folder = Path(keep).expanduser()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise WriteError("expected a new or empty folder", where=keep, hint="name another")
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """Paths are short in there, and so are the commands that are shown."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _end(story: Story, keep: str | None, *, trained: bool) -> None:
    story.step("Go on")
    if keep is None:
        story.say(f"All in {story.seconds:.0f} s, and nothing is left behind. To play with it:")
        story.shell(f"datum demo{' --train' if trained else ''} --keep playground")
    else:
        story.say(f"All in {story.seconds:.0f} s. Images and dataset are there to play with:")
        story.shell(f"cd {shell_word(keep)}")
        for command, about in _NEXT:
            story.show(
                Text.assemble(("$ ", "dim"), (f"{command:<44}", "green"), ("  # " + about, "dim"))
            )
    if not trained:
        story.say("Train a model on it, too:")
        story.shell("datum demo --train")
