"""Encoders as they are written in a shell or in a TOML file: `text=CountVectorizer(min_df=2)`."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from datum import MissingDependencyError
from datum.cli.words.pairs import parse_pairs
from datum.errors import Message, suggest

__all__ = ["encoders_of", "read_encoders"]

_HOMES = {
    "CountVectorizer": "sklearn.feature_extraction.text",
    "HashingVectorizer": "sklearn.feature_extraction.text",
    "LabelBinarizer": "sklearn.preprocessing",
    "LabelEncoder": "sklearn.preprocessing",
    "OneHotEncoder": "sklearn.preprocessing",
    "TfidfVectorizer": "sklearn.feature_extraction.text",
}
_HINT = "--encoders label=LabelEncoder --encoders 'text=CountVectorizer(max_features=1000)'"


def read_encoders(texts: Iterable[str]) -> dict[str, Any]:
    """The encoders that `--encoders` gives, by feature: `label=LabelEncoder,text=...`."""
    encoders: dict[str, Any] = {}
    for text in texts:
        if "(" in text:  # what follows is one call: its commas are its own
            name, _, call = text.partition("=")
            encoders[name.strip()] = _parse_call(call.strip())
        else:
            pairs = parse_pairs([text], option="--encoders")
            encoders |= {name: _make(kind, {}) for name, kind in pairs.items()}
    return encoders


def encoders_of(found: Any, *, where: str) -> dict[str, Any]:
    """The encoders of a table: names of classes, or tables with `class` and parameters."""
    if not isinstance(found, Mapping):
        raise ValueError(f"{where}: expected encoders by feature, got {found!r:.100}")
    encoders = {}
    for name, one in found.items():
        if isinstance(one, str):
            encoders[name] = _parse_call(one)
        elif isinstance(one, Mapping) and isinstance(one.get("class"), str):
            parameters = {key: value for key, value in one.items() if key != "class"}
            encoders[name] = _make(one["class"], parameters)
        else:
            raise ValueError(
                Message(
                    f"{where}: {name}: expected the name of a class, or a table with one, got"
                    f" {one!r}",
                    hint=f"[encoders.{name}] class = 'CountVectorizer'",
                )
            )
    return encoders


def _parse_call(text: str) -> Any:
    """An encoder from its class and its parameters, as Python would write them."""
    try:
        parsed = ast.parse(text, mode="eval").body
        if isinstance(parsed, ast.Name):
            return _make(parsed.id, {})
        if isinstance(parsed, ast.Call) and isinstance(parsed.func, ast.Name) and not parsed.args:
            parameters = {
                str(one.arg): ast.literal_eval(one.value)
                for one in parsed.keywords
                if one.arg is not None
            }
            return _make(parsed.func.id, parameters)
    except (SyntaxError, ValueError, TypeError) as error:
        if "expected" in str(error):
            raise
    raise ValueError(
        Message(f"encoders: expected a class and its parameters, got {text!r}", hint=_HINT)
    )


def _make(kind: str, parameters: Mapping[str, Any]) -> Any:
    if kind not in _HOMES:
        hint = suggest(kind, _HOMES, f"there are {', '.join(_HOMES)}", shown=str, cutoff=0.5)
        raise ValueError(
            Message(f"encoders: expected a class of scikit-learn, got {kind!r}", hint=hint)
        )
    try:
        home = importlib.import_module(_HOMES[kind])
    except ImportError as error:
        raise MissingDependencyError(
            "encoders need the package `scikit-learn`", hint="pip install scikit-learn"
        ) from error
    # What a list is in TOML and JSON is a tuple to scikit-learn: ngram_range = [1, 2].
    given = {
        key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()
    }
    known = list(getattr(home, kind)().get_params(deep=False))
    for key in given:
        if key not in known:
            hint = suggest(key, known, f"there are {', '.join(known)}", cutoff=0.5)
            raise ValueError(
                Message(f"{kind}: expected one of its parameters, got {key!r}", hint=hint)
            )
    return getattr(home, kind)(**given)
