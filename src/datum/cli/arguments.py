"""Arguments that several commands take: paths of datasets, sizes, pairs, files of options."""

from __future__ import annotations

import os
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import datum
from datum import DatumError, ManifestError
from datum.cli.shell import is_for_shell
from datum.errors import Message, shell_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from datum import Dataset

__all__ = [
    "FollowLinks",
    "Opened",
    "complete_split",
    "complete_words",
    "open_any",
    "parse_bytes",
    "parse_pairs",
    "read_toml",
]

FollowLinks = Annotated[
    bool,
    typer.Option(
        "--follow-links", help="Follow links to shards outside the folder, if you trust it."
    ),
]


@dataclass(frozen=True, slots=True)
class Opened:
    """A dataset, and the error if its features are unknown.

    Attributes:
        dataset: The dataset, with an empty schema if `unknown` is set.
        unknown: Error that left the features unknown: no records, or none that are Examples.
    """

    dataset: Dataset
    unknown: DatumError | None = None


def open_any(path: str | os.PathLike[str], *, follow_links: bool = False) -> Opened:
    """Open a dataset; records that are no Examples are opened without features.

    Intact parts of damaged files are opened, with a warning that lists the rest. Raises the error
    of `datum.load` for anything else, and for shards that link outside the folder unless
    `follow_links` is set.
    """
    if not os.fspath(path):
        raise ValueError(Message("expected the path of a dataset, got an empty one"))
    try:
        return Opened(datum.load(path, follow_links=follow_links))
    except DatumError as error:
        lenient: list[dict[str, Any]] = [{"on_error": "skip"}, {"schema": {}}]
        for options in (*lenient, {**lenient[0], **lenient[1]}):
            with suppress(DatumError):
                dataset = datum.load(path, follow_links=follow_links, **options)
                return Opened(dataset, error if "schema" in options else None)
        is_described = isinstance(error, ManifestError) and Path(path, "datum.json").is_file()
        if not is_described or any(map(is_for_shell, error.parts.hint_lines)):
            raise
        repair = f"datum repair {shell_word(os.fspath(path))} OUT saves the records"
        raise ManifestError(error, hint=repair) from error


def complete_words(words: str | None) -> Callable[[str], list[str]] | None:
    """Return a shell completion for a value out of "a|b|c"; None for other values.

    >>> complete_words("raise|skip|quarantine")("s")
    ['skip']
    """
    if not words or not re.fullmatch(r"\w+(\|\w+)+", words):
        return None
    return lambda incomplete: [word for word in words.split("|") if word.startswith(incomplete)]


def complete_split(ctx: Any, incomplete: str) -> list[str]:
    """Complete the splits of the dataset on the command line.

    Datasets without a manifest have no completion, because their records would have to be read.
    """
    # During completion, arguments are not parsed yet.
    words = (word for word in getattr(ctx, "args", ()) if not word.startswith("-"))
    path = ctx.params.get("path") or next(words, None)
    if not path or not Path(path, "datum.json").is_file():
        return []
    try:
        return [name for name in datum.load(path).splits if name.startswith(incomplete)]
    except (DatumError, OSError):
        return []


# A comma separates pairs only before a name and `=`, so that values may contain commas:
# "a=1,2,b=3" is {"a": "1,2", "b": "3"}.
_BETWEEN = re.compile(r",(?=\s*[^\s,=\[\]+]+\s*=(?!=))")


def parse_pairs(texts: Iterable[str], *, option: str = "option") -> dict[str, str]:
    """Parse name=value pairs from an option that may be repeated.

    Spaces around names and values are ignored. Raises ValueError, with the name `option`, for a
    pair without `=`, an empty side, or a repeated name.

    >>> parse_pairs(["train=0.9,val=0.1", "test=train[:10%]"])
    {'train': '0.9', 'val': '0.1', 'test': 'train[:10%]'}
    """
    pairs: dict[str, str] = {}
    for text in texts:
        for pair in _BETWEEN.split(text):
            name, equals, value = (part.strip() for part in pair.partition("="))
            if not (name and equals and value):
                raise ValueError(
                    Message(
                        f"{option}: expected name=value, got {pair.strip()!r}",
                        hint="separate pairs by commas, as in train=0.9,val=0.1",
                    )
                )
            if name in pairs:
                raise ValueError(Message(f"{option}: {name!r} is given twice"))
            pairs[name] = value
    return pairs


_SIZE = re.compile(r"(?P<number>\d[\d_,]*(?:\.\d+)?|\.\d+)\s*(?P<unit>[a-z]*)", re.IGNORECASE)
_LETTERS = "kmgtp"


def _units() -> dict[str, int]:
    """Bytes by unit in lower case; as in GNU tools, `k` is KiB and `kB` is 1,000."""
    units = {"": 1, "b": 1, "byte": 1, "bytes": 1}
    for power, letter in enumerate(_LETTERS, start=1):
        units |= {letter: 1024**power, f"{letter}ib": 1024**power, f"{letter}i": 1024**power}
        units[f"{letter}b"] = 1000**power
    return units


_BYTE_UNITS = _units()


def parse_bytes(text: str) -> int:
    """Parse a size such as `128MiB`, `1.5 GB`, `500k` or `1048576`.

    As in GNU tools, `KiB` and a bare letter are powers of 1,024 and `kB` is a power of 1,000; case
    is ignored. Raises ValueError for anything else and for less than one byte.

    >>> parse_bytes("128MiB"), parse_bytes("1 GB"), parse_bytes("500k")
    (134217728, 1000000000, 512000)
    """
    found = _SIZE.fullmatch(text.strip())
    unit = _BYTE_UNITS.get(found["unit"].lower()) if found is not None else None
    if found is None or unit is None:
        raise ValueError(
            Message(
                f"size: expected a number of bytes, got {text!r}",
                hint="write it as 128MiB, 1.5GB, 500k or 1048576",
            )
        )
    size = int(Decimal(found["number"].replace("_", "").replace(",", "")) * unit)
    if size < 1:
        raise ValueError(Message(f"size: expected at least one byte, got {text!r}"))
    return size


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file; raise ValueError with its name if it is not TOML."""
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(Message(f"expected TOML, got: {error}", where=path)) from None
    return found
