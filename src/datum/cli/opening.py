"""A path as a dataset, whatever its records are."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import datum
from datum import DatumError, ManifestError
from datum.errors import shell_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from datum import Dataset

__all__ = ["FollowLinks", "Opened", "complete_split", "complete_words", "open_any"]

FollowLinks = Annotated[
    bool,
    typer.Option(
        "--follow-links", help="Read shards that are links out of the folder; only if you trust it."
    ),
]


@dataclass(frozen=True, slots=True)
class Opened:
    """A dataset, and why nothing is known of its features if nothing is.

    Attributes:
        dataset: its schema is empty where `unknown` is not None.
        unknown: what kept the features from being told: records of other messages, of no message,
            or none at all.
    """

    dataset: Dataset
    unknown: DatumError | None = None


def open_any(path: str | os.PathLike[str], *, follow_links: bool = False) -> Opened:
    """Open a dataset; of records that are no Examples, as records without features.

    Of damaged files what is sound is opened, with a warning that lists the rest. What is no
    dataset and no TFRecord file raises what `datum.load` has to say of it. Shards that are links
    out of the folder are refused unless `follow_links`.
    """
    if not os.fspath(path):
        raise ValueError("expected the path of a dataset, got an empty one")
    try:
        return Opened(datum.load(path, follow_links=follow_links))
    except DatumError as error:
        lenient: list[dict[str, Any]] = [{"on_error": "skip"}, {"schema": {}}]
        for options in (*lenient, {**lenient[0], **lenient[1]}):
            with suppress(DatumError):
                dataset = datum.load(path, follow_links=follow_links, **options)
                return Opened(dataset, error if "schema" in options else None)
        way_out = _way_out_of(error, path)
        if way_out:
            raise ManifestError(error, hint=way_out) from error
        raise


def _way_out_of(error: DatumError, path: str | os.PathLike[str]) -> str:
    """The next step in the words of a shell, where the library has none or has one of Python."""
    if "follow_links=True" in error.hint:
        return "--follow-links, if you trust its links"
    is_described = isinstance(error, ManifestError) and Path(path, "datum.json").is_file()
    if not is_described or error.hint:
        return ""
    return f"datum repair {shell_word(os.fspath(path))} OUT saves the records"


def complete_words(words: str | None) -> Callable[[str], list[str]] | None:
    """What completes a value in a shell that is one of "some|such|words"; None for other values.

    >>> complete_words("raise|skip|quarantine")("s")
    ['skip']
    """
    if not words or not re.fullmatch(r"\w+(\|\w+)+", words):
        return None
    return lambda incomplete: [word for word in words.split("|") if word.startswith(incomplete)]


def complete_split(ctx: Any, incomplete: str) -> list[str]:
    """The splits of the dataset that a command line names, for completion in a shell.

    Nothing is told of what would have to be read for it: records that nobody described.
    """
    # While a value is still to come, arguments are words that nobody has taken apart.
    words = (word for word in getattr(ctx, "args", ()) if not word.startswith("-"))
    path = ctx.params.get("path") or next(words, None)
    if not path or not Path(path, "datum.json").is_file():
        return []
    try:
        return [name for name in datum.load(path).splits if name.startswith(incomplete)]
    except (DatumError, OSError):
        return []
