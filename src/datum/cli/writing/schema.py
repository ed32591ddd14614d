"""Features as they are written in a shell or in a TOML file: `age=int64?`, `tokens=int64[?]`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from datum import Feature
from datum.cli.words.pairs import parse_pairs
from datum.cli.words.toml import read_toml
from datum.errors import Message

__all__ = ["features_of", "parse_feature", "read_schema", "spell_feature"]

_FEATURE = re.compile(
    r"(?P<dtype>[a-z][a-z0-9]*(?:\[(?:D|h|m|s|ms|us|ns)\])?)"
    r"(?:\[(?P<shape>[^\]]*)\])?(?::(?P<encoding>[a-z]+))?(?P<optional>\?)?"
)
_RAW = ("float64", "complex64", "complex128")  # which no list of a record holds
_ANY = ("?", "*", "-1", "none")  # ways to write a length that differs
_HINT = "name=dtype[shape]:encoding, as in age=int64, box=float32[?,4], x=float32[9]:sparse"


def read_schema(texts: Iterable[str]) -> dict[str, Feature]:
    """The features that `--schema` gives: pairs of name and type, or files of them.

    A file is JSON or TOML: features by name, or such a table under the name `schema`, as in the
    `datum.json` of a dataset.
    """
    features: dict[str, Feature] = {}
    for text in texts:
        if text.lower().endswith((".json", ".toml")) and "=" not in text:
            features |= features_of(_read_file(Path(text)), where=text)
        else:
            features |= features_of(parse_pairs([text], option="--schema"), where="--schema")
    return features


def _read_file(path: Path) -> Any:
    if path.suffix.lower() == ".toml":
        found: Any = read_toml(path)
    else:
        try:
            found = json.loads(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: expected JSON, got: {error}") from None
    is_wrapped = isinstance(found, Mapping) and isinstance(found.get("schema"), Mapping)
    return found["schema"] if is_wrapped and "dtype" not in found["schema"] else found


def features_of(found: Any, *, where: str) -> dict[str, Feature]:
    """Features by name, from texts such as `float32[3]` or from tables of their attributes."""
    if not isinstance(found, Mapping):
        raise ValueError(
            Message(f"{where}: expected features by name, got {found!r:.100}", hint=_HINT)
        )
    return {name: _feature_of(one, f"{where}: {name}") for name, one in found.items()}


def _feature_of(found: Any, where: str) -> Feature:
    if isinstance(found, str):
        return parse_feature(found, where=where)
    if not isinstance(found, Mapping):
        raise ValueError(
            Message(f"{where}: expected a type such as 'float32[3]', got {found!r}", hint=_HINT)
        )
    given = dict(found)
    if isinstance(given.get("shape"), list):
        given["shape"] = [None if str(n).lower() in _ANY else n for n in given["shape"]]
    return Feature.from_json(given)


def parse_feature(text: str, *, where: str = "schema") -> Feature:
    """The feature that a text stands for.

    >>> parse_feature("float32[?,4]"), parse_feature("str?")
    (Feature('float32', (None, 4)), Feature('str', optional=True))
    >>> parse_feature("float32[100]:sparse")
    Feature('float32', (100,), encoding='sparse')
    """
    found = _FEATURE.fullmatch(text.strip())
    if found is None:
        raise ValueError(Message(f"{where}: expected a type and a shape, got {text!r}", hint=_HINT))
    encoding: Any = found["encoding"]
    shape = tuple(_length(part.strip(), text, where) for part in (found["shape"] or "").split(","))
    return Feature(
        found["dtype"],
        shape if found["shape"] else (),
        encoding=encoding,
        optional=found["optional"] is not None,
    )


def spell_feature(feature: Feature) -> str:
    """The text that `parse_feature` reads as this type, shape and encoding.

    >>> spell_feature(Feature("uint8", (None, None, 3), encoding="image"))
    'uint8[?,?,3]:image'
    """
    shape = ",".join("?" if n is None else str(n) for n in feature.shape)
    is_usual = feature.encoding == ("raw" if feature.dtype in _RAW else "values")
    return (
        feature.dtype
        + (f"[{shape}]" if feature.shape else "")
        + ("" if is_usual else f":{feature.encoding}")
        + ("?" if feature.optional else "")
    )


def _length(part: str, text: str, where: str) -> int | None:
    if not part or part.lower() in _ANY:
        return None
    if not part.isdecimal():
        raise ValueError(
            Message(f"{where}: expected lengths in the shape, or ?, got {text!r}", hint=_HINT)
        )
    return int(part)
