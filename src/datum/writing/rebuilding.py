"""Fitted encoders made again of what a dataset keeps of them: plain values, never a pickle."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from datum._optional import require
from datum.errors import ManifestError, SchemaError
from datum.sources.source import Part
from datum.writing.estimators import SUPPORTED, as_column, as_table
from datum.writing.feature_encoder import UNSTORED, FeatureEncoder

__all__ = ["Encoders", "rebuild_encoder", "with_stored"]


class Encoders(Mapping[str, Any]):
    """The fitted scikit-learn encoders of a dataset by feature, each made when it is asked for.

    Args:
        metadata: That of the dataset, by feature.
    """

    def __init__(self, metadata: Mapping[str, Mapping[str, Any]]) -> None:
        self._found = {name: one for name, one in metadata.items() if "encoder" in one}
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._found:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = rebuild_encoder(name, self._found[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        names = ", ".join(f"{name!r}: {one['encoder']}" for name, one in self._found.items())
        return f"Encoders({{{names}}})"


def with_stored(
    given: Mapping[str, Any],
    metadata: Mapping[str, Mapping[str, Any]],
    parts: Mapping[str, Part],
) -> dict[str, Any]:
    """The encoders of an append: those that the dataset keeps stand for all that is not fitted.

    None as an encoder leaves the values as they are; so do parts whose own metadata says that an
    encoder was applied.
    """
    chosen = dict(given)
    for name, found in metadata.items():
        if "encoder" not in found:
            continue
        is_encoded = any("encoder" in part.metadata.get(name, {}) for part in parts.values())
        if name in given:
            estimator = given[name]
            if estimator is None:
                del chosen[name]
            elif not FeatureEncoder(name, estimator).is_fitted:
                chosen[name] = rebuild_encoder(name, found, like=estimator)
        elif not is_encoded:
            chosen[name] = rebuild_encoder(name, found)
    return chosen


def rebuild_encoder(name: str, found: Mapping[str, Any], *, like: Any = None) -> Any:
    """The fitted encoder of a feature.

    Args:
        name: The feature.
        found: What the metadata of the dataset says of it.
        like: An encoder that is not fitted, whose parameters are taken instead of those stored;
            functions among them are not stored.
    """
    kind = str(found["encoder"])
    if kind not in SUPPORTED:
        raise SchemaError(
            f"encoder of {name!r}: expected one of {', '.join(SUPPORTED)}, got {kind}", feature=name
        )
    if like is not None and type(like).__name__ != kind:
        raise SchemaError(
            f"encoder of {name!r}: expected a {kind}, as the dataset has, got {like!r}",
            feature=name,
        )
    if like is None and found.get(UNSTORED):
        lacking = ", ".join(found[UNSTORED])
        raise SchemaError(
            f"encoder of {name!r}: expected parameters that a dataset can keep, got objects as"
            f" {lacking} of {kind}",
            hint=f"to append, pass a {kind} with the same {lacking}:"
            f" encoders={{{name!r}: {kind}({lacking.replace(', ', '=..., ')}=...)}}",
            feature=name,
        )
    is_text = kind.endswith("Vectorizer")
    place = "sklearn.feature_extraction.text" if is_text else "sklearn.preprocessing"
    classes = require(place, purpose="encoders")
    try:
        parameters = _parameters(found["parameters"]) if like is None else like.get_params()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits over what is no data
            return _FIT[kind](getattr(classes, kind), parameters, found)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ManifestError(
            f"encoder of {name!r}: expected what describes a {kind}, got {error!r}"
        ) from error


def _parameters(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as scikit-learn has them: JSON has no tuples and no types."""
    made = {name: tuple(v) if name == "ngram_range" else v for name, v in stored.items()}
    if "dtype" in made:
        made["dtype"] = np.dtype(made["dtype"]).type
    if isinstance(made.get("drop"), list):
        made["drop"] = np.array(made["drop"], object)
    return made


def _fit_vectorizer(kind: Any, parameters: dict[str, Any], found: Mapping[str, Any]) -> Any:
    columns = {term: int(at) for term, at in found["vocabulary"].items()}
    made = kind(**{**parameters, "vocabulary": columns}).fit([""])
    if "idf" in found:
        made.idf_ = np.array(found["idf"], made.idf_.dtype)
    return made.set_params(vocabulary=parameters.get("vocabulary"))


def _fit_hashing(kind: Any, parameters: dict[str, Any], _found: Mapping[str, Any]) -> Any:
    return kind(**parameters)


def _fit_labels(kind: Any, parameters: dict[str, Any], found: Mapping[str, Any]) -> Any:
    return kind(**parameters).fit(as_column(list(found["classes"])))


def _fit_one_hot(kind: Any, parameters: dict[str, Any], found: Mapping[str, Any]) -> Any:
    """Fit over rows in which what was rare is rare: how often it was is not stored."""
    categories = found["categories"]
    rare = found.get("infrequent") or [[] for _ in categories]
    common = [
        [one for one in column if one not in few]
        for column, few in zip(categories, rare, strict=True)
    ]
    if not all(common):
        raise ValueError("a column that has no frequent category")
    # Those that are rare are in one row each, all others in two or more.
    count = 2 * max(map(len, common)) + max(map(len, rare))
    rows = [[column[at % len(column)] for column in common] for at in range(count)]
    for column, few in enumerate(rare):
        for at, category in enumerate(few):
            rows[at][column] = category
    limits = {"min_frequency": 2, "max_categories": None} if "infrequent" in found else {}
    lists = [as_table([[one] for one in column])[:, 0] for column in categories]
    made = kind(**{**parameters, **limits, "categories": lists}).fit(as_table(rows))
    return made.set_params(**{name: parameters[name] for name in limits})


_FIT: dict[str, Callable[[Any, dict[str, Any], Mapping[str, Any]], Any]] = {
    "CountVectorizer": _fit_vectorizer,
    "TfidfVectorizer": _fit_vectorizer,
    "HashingVectorizer": _fit_hashing,
    "LabelBinarizer": _fit_labels,
    "LabelEncoder": _fit_labels,
    "OneHotEncoder": _fit_one_hot,
}
