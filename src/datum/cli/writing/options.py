"""The options of `datum write`: those of `datum.write`, from the command line and from a file."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import datum
from datum import sources
from datum.cli.words.pairs import parse_pairs
from datum.cli.words.sizes import parse_bytes
from datum.cli.words.toml import read_toml
from datum.cli.writing.encoders import encoders_of, read_encoders
from datum.cli.writing.schema import features_of, read_schema
from datum.cli.writing.source import source_of
from datum.errors import Message, suggest

__all__ = ["given_on_line", "parse_fractions", "parse_shards", "read_options"]

_FLAGS = ("append", "overwrite", "progress", "shuffle", "verify")
_NUMBERS = ("max_side", "quality", "records_per_shard", "seed", "workers")
_TEXTS = ("compression", "executor", "floats", "keys", "on_error", "out", "problem", "root")
_WORDS = (*_TEXTS, "stratify")


def given_on_line(
    *,
    splits: Sequence[str] = (),
    schema: Sequence[str] = (),
    shard_size: str | None = None,
    shards: str | None = None,
    compression: str | None = None,
    encoders: Sequence[str] = (),
    source: Sequence[str] = (),
    table: Mapping[str, Any] | None = None,
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
    options |= _parse_table(table or {})
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


def _parse_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of tables; those that are not given are None or empty."""
    options = {name: value for name, value in given.items() if value not in (None, ())}
    for name in ("names", "columns"):
        if name in options and options[name] not in ("same", "union", "intersection"):
            options[name] = _parse_list(options[name])
    if options.get("delimiter") in ("\\t", "tab"):
        options["delimiter"] = "\t"
    if "rename" in options:
        options["rename"] = parse_pairs(options["rename"], option="--rename")
    if "null_values" in options:
        options["null_values"] = [
            cell for text in options["null_values"] for cell in text.split(",")
        ]
    return options


def _parse_list(text: str) -> list[str]:
    """Names with commas between them; one that has commas itself stands in quotes.

    >>> _parse_list('a, b,"c, d"')
    ['a', 'b', 'c, d']
    """
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


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
            Message(
                f"--splits: {name}: expected a fraction such as 0.9, got {text!r}",
                hint="--source train=PATH --source val=PATH gives a source for each split",
            )
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
                Message(
                    f"--shards: expected a number, got {count!r}",
                    hint="--shards 8, or train=8,val=1",
                )
            )
    counts = {name: int(count) for name, count in pairs.items()}
    return counts.get("", counts)


# Options from a file.


def read_options(path: str) -> dict[str, Any]:
    """What a TOML file gives, as `datum.write` takes it; its names are those of `datum.write`.

    Beside plain values it may have tables: [splits] of fractions or of paths, [schema] and
    [encoders] by feature, and [source] with a `class` of `datum.sources` and its options.
    """
    known = list_options()
    options = {}
    for given, value in read_toml(path).items():
        name = "shard_bytes" if given == "shard_size" else given  # what the command line calls it
        if name not in known:
            hint = suggest(name, known, f"there are {', '.join(known)}", cutoff=0.5)
            raise ValueError(
                Message(f"{path}: expected options of datum.write, got {name!r}", hint=hint)
            )
        options[name] = _checked(name, value, f"{path}: {name}")
    return options


def list_options() -> list[str]:
    """The names of the options of `datum.write`, with those of tables."""
    parameters = inspect.signature(datum.write).parameters.values()
    named = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
    return [*named, *sources.TableOptions.__annotations__]


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
    if name == "sidecars" and not isinstance(value, list):
        raise ValueError(f"{where}: expected a list of names, got {value!r}")
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
