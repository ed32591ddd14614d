"""The options of `datum write`: those of `datum.write`, from the command line and from a file."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import datum
from datum.cli.words.pairs import parse_pairs
from datum.cli.words.sizes import parse_bytes
from datum.cli.words.toml import read_toml
from datum.cli.writing.encoders import encoders_of, read_encoders
from datum.cli.writing.schema import features_of, read_schema
from datum.cli.writing.source import source_of

__all__ = ["given_on_line", "parse_fractions", "parse_shards", "read_options"]

_FLAGS = ("append", "legacy_metadata", "overwrite", "progress", "shuffle", "verify")
_NUMBERS = ("max_side", "quality", "seed", "workers")
_WORDS = ("compression", "executor", "on_error", "out", "problem", "stratify")


def given_on_line(
    *,
    splits: Sequence[str] = (),
    schema: Sequence[str] = (),
    shard_size: str | None = None,
    shards: str | None = None,
    compression: str | None = None,
    encoders: Sequence[str] = (),
    source: Sequence[str] = (),
    **others: Any,
) -> dict[str, Any]:
    """What the command line gives, as `datum.write` takes it; what it does not is left out."""
    options = {name: value for name, value in others.items() if value is not None}
    if splits and source:
        raise ValueError("expected --splits or --source, got both")
    if splits:
        options["splits"] = parse_fractions(parse_pairs(splits, option="--splits"))
    if source:
        options["splits"] = parse_pairs(source, option="--source")
    if schema:
        options["schema"] = read_schema(schema)
    if encoders:
        options["encoders"] = read_encoders(encoders)
    if shard_size is not None:
        options["shard_bytes"] = parse_bytes(shard_size)
    if shards is not None:
        options["shards"] = parse_shards(shards)
    if compression is not None:
        options["compression"] = None if compression.lower() == "none" else compression
    return options


def parse_fractions(pairs: Mapping[str, str]) -> dict[str, float]:
    """Fractions of splits: `0.9` or `90%`.

    >>> parse_fractions({"train": "90%", "val": "0.1"})
    {'train': 0.9, 'val': 0.1}
    """
    return {name: _fraction(name, text) for name, text in pairs.items()}


def _fraction(name: str, text: str) -> float:
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ValueError(
            f"--splits: {name}: expected a fraction such as 0.9, got {text!r}\n"
            "hint: --source train=PATH --source val=PATH gives a source for each split"
        ) from None


def parse_shards(text: str) -> int | dict[str, int]:
    """A number of shards, or one for each split.

    >>> parse_shards("8"), parse_shards("train=8,val=1")
    (8, {'train': 8, 'val': 1})
    """
    pairs = parse_pairs([text], option="--shards") if "=" in text else {"": text}
    for count in pairs.values():
        if not count.isdecimal():
            raise ValueError(
                f"--shards: expected a number, got {count!r}\nhint: --shards 8, or train=8,val=1"
            )
    counts = {name: int(count) for name, count in pairs.items()}
    return counts.get("", counts)


# Options from a file.


def read_options(path: str) -> dict[str, Any]:
    """What a TOML file gives, as `datum.write` takes it; its names are those of `datum.write`.

    Beside plain values it may have tables: [splits] of fractions or of paths, [schema] and
    [encoders] by feature, and [source] with a `class` of `datum.sources` and its options.
    """
    known = list(inspect.signature(datum.write).parameters)
    options = {}
    for given, value in read_toml(path).items():
        name = "shard_bytes" if given == "shard_size" else given  # what the command line calls it
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise ValueError(f"{path}: expected options of datum.write, got {name!r}\nhint: {hint}")
        options[name] = _checked(name, value, f"{path}: {name}")
    return options


def _checked(name: str, value: Any, where: str) -> Any:
    if name == "source":
        return source_of(value, where=where)
    if name == "splits":
        return _splits_of(value, where)
    if name == "schema":
        return features_of(value, where=where)
    if name == "encoders":
        return encoders_of(value, where=where)
    if name == "shard_bytes" and isinstance(value, str):
        return parse_bytes(value)
    if name == "compression" and value == "none":
        return None
    for names, kind, wanted in (
        (_FLAGS, bool, "true or false"),
        (_NUMBERS, int, "a number"),
        (_WORDS, str, "a text"),
    ):
        if name in names and type(value) is not kind:
            raise ValueError(f"{where}: expected {wanted}, got {value!r}")
    return value


def _splits_of(found: Any, where: str) -> dict[str, Any]:
    if not isinstance(found, Mapping) or not found:
        raise ValueError(f"{where}: expected fractions or sources by split, got {found!r}")
    if all(isinstance(value, (int, float)) for value in found.values()):
        return dict(found)
    return {name: source_of(value, where=f"{where}.{name}") for name, value in found.items()}
