"""scikit-learn encoders of features: fitted over a split and applied to blocks."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum._write.estimators import SUPPORTED, Estimator, as_column, as_table, wrap
from datum._write.serialized import columns_of
from datum.columns import Masked, Sparse
from datum.errors import Call, ManifestError, Message, SchemaError, SourceError, Text, suggest
from datum.schema import Feature
from datum.schema.plain import plain_row
from datum.sources.protocol import (
    Block,
    Columns,
    IndexedPart,
    Part,
    Reject,
    Rows,
    part_info,
    take_rows,
)

__all__ = [
    "UNSTORED",
    "Encoders",
    "FeatureEncoder",
    "apply_encoders",
    "fit_encoders",
    "make_encoders",
    "rebuild_encoder",
    "with_stored",
]

UNSTORED = "unstored_parameters"  # metadata key of parameters that JSON cannot hold
_LEARNED = ("categories", "vocabulary")  # parameters that metadata stores as learned values


class FeatureEncoder:
    """A scikit-learn encoder of one feature, which can be sent to other processes.

    An unfitted encoder is copied first, so that the caller's stays unchanged.
    """

    def __init__(self, name: str, estimator: Any) -> None:
        if isinstance(estimator, type):
            raise SchemaError(
                f"encoder of {name!r}: expected an object, got the class {estimator.__name__}",
                hint=f"{estimator.__name__}()",
                feature=name,
            )
        wrapped = wrap(estimator)
        if wrapped is None:
            raise SchemaError(
                f"encoder of {name!r}: expected one of {', '.join(SUPPORTED)},"
                f" got {type(estimator).__name__}",
                hint="apply it yourself, and write its output",
                feature=name,
            )
        if getattr(estimator, "input", "content") != "content":
            raise SchemaError(
                f"encoder of {name!r}: expected input='content', because records hold texts,"
                f" got input={estimator.input!r}",
                feature=name,
            )
        self.name = name
        self._estimator: Estimator = wrapped

    @property
    def is_fitted(self) -> bool:
        """Whether the encoder is fitted."""
        return self._estimator.is_fitted

    def fit(self, values: Iterable[Any]) -> None:
        """Fit the encoder; None and invalid values are skipped."""
        try:
            self._estimator.fit(value for value in values if value is not None)
        except (TypeError, ValueError) as error:
            if isinstance(error, (SchemaError, SourceError)):
                raise
            raise SchemaError(
                f"{self._class_name} cannot be fitted: {error}",
                where=f"feature {self.name!r}",
                feature=self.name,
            ) from error

    def transform(self, values: list[Any]) -> Sparse | NDArray[Any]:
        """Encode values, one row each; raise SchemaError for the first invalid one."""
        faults = self.find_faults(values)
        if faults:
            record, fault = next(iter(faults.items()))
            raise SchemaError(
                fault,
                where=f"record {record}, feature {self.name!r}",
                record=record,
                feature=self.name,
            )
        return self._apply(values)

    def find_faults(self, values: list[Any]) -> dict[int, str]:
        """Problems of invalid values, by position."""
        faults = {}
        for at, value in enumerate(values):
            fault = self._estimator.find_fault(value)
            if fault is not None:
                faults[at] = fault
        return faults

    def transform_each(
        self, values: list[Any]
    ) -> tuple[Sparse | NDArray[Any], list[int], dict[int, str]]:
        """Encode valid values; return rows, their positions, and the problems of the others."""
        faults = self.find_faults(values)
        kept = [at for at in range(len(values)) if at not in faults]
        try:
            return self._apply([values[at] for at in kept]), kept, faults
        except Exception:  # a user's function failed: find the value
            for at in kept:
                try:
                    self._apply([values[at]])
                except Exception as error:
                    faults[at] = f"{self._class_name}: {type(error).__name__}: {error}"
        kept = [at for at in kept if at not in faults]
        return self._apply([values[at] for at in kept]), kept, dict(sorted(faults.items()))

    def _apply(self, values: list[Any]) -> Sparse | NDArray[Any]:
        self._check_fitted()
        feature = self.feature
        width: Any = feature.shape
        if not values:
            if feature.encoding == "sparse":
                blank = np.empty(0, feature.dtype)
                return Sparse(np.empty((0, 2), np.int64), blank, (0, *width))
            return np.empty((0, *width), feature.dtype)
        found = self._estimator.apply(values)
        if not hasattr(found, "tocsr"):
            return np.asarray(found, feature.dtype)
        rows = found.tocsr()
        rows.sum_duplicates()  # which also sorts the indices
        places = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        indices = np.stack([places, rows.indices], axis=1)
        return Sparse(indices, rows.data.astype(feature.dtype), tuple(map(int, rows.shape)))

    @property
    def feature(self) -> Feature:
        """Feature of the output: `Feature(dtype, (size,))`, sparse for sparse rows."""
        self._check_fitted()
        fitted, shape = self._estimator.fitted, self._estimator.shape
        dtype = np.dtype(getattr(fitted, "dtype", np.int64)).name
        is_sparse = bool(shape) and getattr(fitted, "sparse_output", True)
        return Feature(dtype, shape, encoding="sparse" if is_sparse else None)  # type: ignore[arg-type]

    def describe(self) -> dict[str, Any]:
        """Describe the fitted encoder in plain JSON values, for the manifest."""
        self._check_fitted()
        given = sorted(self._estimator.fitted.get_params(deep=False).items())
        given = [(name, value) for name, value in given if name not in _LEARNED]
        parameters = {name: _plain(value) for name, value in given if _is_plain(value)}
        unstored = [name for name, value in given if not _is_plain(value)]
        facts = {name: _plain(value) for name, value in self._estimator.facts().items()}
        return {
            "encoder": self._class_name,
            "size": self._estimator.size,
            "parameters": parameters,
            **({UNSTORED: unstored} if unstored else {}),
            **facts,
        }

    @property
    def _class_name(self) -> str:
        return type(self._estimator.fitted).__name__

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise SchemaError(
                f"expected a fitted {self._class_name}, got an unfitted one",
                where=f"feature {self.name!r}",
                hint="call fit first",
                feature=self.name,
            )


def _is_plain(value: Any) -> bool:
    """Return whether JSON can hold a parameter, which a function cannot."""
    if isinstance(value, (list, np.ndarray, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, type):
        return issubclass(value, np.generic)
    return value is None or isinstance(value, (bool, int, float, str, np.generic, np.dtype))


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (type, np.dtype)):
        return np.dtype(value).name
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


FIT_RECORDS = 4096  # read at once for fitting
_FIT_SPLIT = "train"


def make_encoders(mapping: Mapping[str, Any]) -> dict[str, FeatureEncoder]:
    """Wrap encoders by feature; raise SchemaError for unsupported ones."""
    if not isinstance(mapping, Mapping):
        raise SchemaError(f"expected a dict of encoders by feature, got {mapping!r}")
    return {name: FeatureEncoder(name, estimator) for name, estimator in mapping.items()}


def fit_encoders(
    encoders: Mapping[str, FeatureEncoder],
    parts: Mapping[str, Part],
    *,
    keep: Callable[[Block], NDArray[np.bool_]] | None = None,
) -> None:
    """Fit unfitted encoders on the split `train`, or on the first split.

    `keep` selects the records of a block to learn from. The part is read once for each encoder;
    raises SourceError for a part that can be read only once.
    """
    unfitted = [encoder for encoder in encoders.values() if not encoder.is_fitted]
    if not unfitted or not parts:
        return
    split = _FIT_SPLIT if _FIT_SPLIT in parts else next(iter(parts))
    part = parts[split]
    if not part_info(part).is_repeatable:
        names = ", ".join(encoder.name for encoder in unfitted)
        raise SourceError(
            f"expected records that can be read twice, because the encoders of {names}"
            " are fitted first, got an iterator",
            where=f"split {split!r}",
            hint="pass a function that returns the iterator, or fitted encoders",
        )
    for encoder in unfitted:
        seen: set[str] = set()
        encoder.fit(_check_found(_values(part, encoder.name, keep, seen), encoder.name, seen))


def _values(
    part: Part, name: str, keep: Callable[[Block], NDArray[np.bool_]] | None, seen: set[str]
) -> Iterator[Any]:
    """Values of one feature; the names of all features are added to `seen`."""
    for block in _blocks(part):
        values = _take_values(block, name)
        if not seen:
            seen.update(block.data[0] if isinstance(block.data, list) and block.data else ())
            seen.update(block.data if isinstance(block.data, dict) else ())
        kept = np.ones(len(block), np.bool_) if keep is None else keep(block)
        yield from (value for value, is_kept in zip(values, kept, strict=True) if is_kept)


def _check_found(values: Iterator[Any], name: str, seen: set[str]) -> Iterator[Any]:
    """Yield values that are present; raise SchemaError if there are none."""
    is_found = False
    for value in values:
        if value is not None:
            is_found = True
            yield value
    if not is_found:
        raise SchemaError(
            f"encoder of {name!r}: no record has this feature",
            hint=suggest(name, seen, f"there are {', '.join(sorted(seen)) or 'no records'}"),
            feature=name,
        )


def _blocks(part: Part) -> Iterator[Block]:
    if not isinstance(part, IndexedPart):
        blocks = part.blocks()
    else:
        starts = range(0, len(part), FIT_RECORDS)
        ranges = (np.arange(first, min(first + FIT_RECORDS, len(part))) for first in starts)
        blocks = map(part.read, ranges)
    return (replace(block, data=columns_of(block.data)) for block in blocks)


def _take_values(block: Block, name: str) -> list[Any]:
    """Values as Python objects, None where absent."""
    if isinstance(block.data, list):
        return [row.get(name) for row in _flattened(block.data, [name])]
    column = columns_of(block.data).get(name)
    if column is None:
        return [None] * len(block)
    if isinstance(column, list):
        return column
    values: list[Any] = column.to_list() if hasattr(column, "to_list") else column.tolist()
    return values


def _flattened(rows: Rows, names: Iterable[str]) -> Rows:
    """Flatten nested dicts to names such as "a/b", if an encoder needs one."""
    return [plain_row(row) for row in rows] if any("/" in name for name in names) else rows


def apply_encoders(block: Block, encoders: Mapping[str, FeatureEncoder]) -> Block:
    """Encode the features of a block; absent values stay absent.

    Records with invalid values, such as an unknown label, are rejected.
    """
    data: Any = block.data
    faults: dict[int, str] = {}
    made: dict[str, tuple[Sparse | NDArray[Any], NDArray[np.intp]]] = {}
    for name, encoder in encoders.items():
        values = _take_values(block, name)
        present = [at for at, value in enumerate(values) if value is not None]
        if not present and name not in data:  # an empty column is replaced nevertheless
            continue
        column, kept, found = encoder.transform_each([values[at] for at in present])
        made[name] = column, np.array([present[at] for at in kept], np.intp)
        for at, fault in found.items():
            faults.setdefault(present[at], f"feature {name!r}: {fault}")
    if isinstance(data, list):
        rows = _flattened(data, made)
        block = replace(block, data=_replace_in_rows(rows, made))
    else:
        block = replace(block, data=_replace_in_columns(data, made, list(faults)))
    return _reject(block, faults) if faults else block


def _replace_in_rows(given: Rows, made: Mapping[str, Any]) -> Rows:
    rows = [dict(row) for row in given]
    for name, (column, places) in made.items():
        for at, value in zip(places.tolist(), _split_rows(column), strict=True):
            rows[at][name] = value
    return rows


def _split_rows(column: Sparse | NDArray[Any]) -> Iterable[Any]:
    if not isinstance(column, Sparse):
        return column.tolist() if column.ndim == 1 else column
    bounds = np.searchsorted(column.indices[:, 0], np.arange(len(column) + 1)).tolist()
    shape = column.dense_shape[1:]
    return (
        Sparse(column.indices[first:last, 1:], column.values[first:last], shape)
        for first, last in itertools.pairwise(bounds)
    )


def _replace_in_columns(given: Columns, made: Mapping[str, Any], refused: list[int]) -> Columns:
    columns = dict(given)
    for name, (column, places) in made.items():
        present = np.zeros(len(given[name]), np.bool_)
        present[places] = True
        present[refused] = True  # blank now, removed next
        whole = _spread(column, places, len(present))
        columns[name] = whole if present.all() else Masked(whole, present)
    return columns


def _spread(column: Any, places: NDArray[np.intp], count: int) -> Any:
    """A column of `count` rows, blank except at these places."""
    if isinstance(column, Sparse):
        indices = column.indices.copy()
        indices[:, 0] = places[indices[:, 0]]
        return Sparse(indices, column.values, (count, *column.dense_shape[1:]))
    whole = np.zeros((count, *column.shape[1:]), column.dtype)
    whole[places] = column
    return whole


def _reject(block: Block, faults: Mapping[int, str]) -> Block:
    """Remove faulty records from a block."""
    keys = block.keys
    rejects = [
        Reject(
            int(block.numbers[at]),
            None if keys is None else keys[at],
            "" if block.locate is None else block.locate(at),
            fault,
        )
        for at, fault in faults.items()
    ]
    kept = np.delete(np.arange(len(block)), list(faults))
    kept_keys = None if keys is None else [keys[at] for at in kept.tolist()]
    data: Any = block.data
    if isinstance(data, list):
        data = [data[at] for at in kept.tolist()]
    else:
        data = {name: take_rows(column, kept) for name, column in data.items()}
    listed = sorted([*block.rejects, *rejects], key=lambda reject: reject.record)
    return Block(data, block.numbers[kept], kept_keys, listed)


class Encoders(Mapping[str, Any]):
    """Fitted scikit-learn encoders of a dataset by feature, each created on access.

    Args:
        metadata: Metadata of the dataset by feature.
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
    """Encoders of an append: those stored in the dataset replace unfitted ones.

    None as an encoder leaves values unchanged, as do parts whose metadata says that an encoder was
    applied.
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
    """Restore the fitted encoder of a feature.

    Args:
        name: Name of the feature.
        found: Metadata of the feature.
        like: Unfitted encoder whose parameters replace the stored ones; functions are not
            stored.
    """
    kind = str(found["encoder"])
    if kind not in SUPPORTED:
        raise SchemaError(
            f"encoder of {name!r}: expected one of {', '.join(SUPPORTED)}, got {kind}", feature=name
        )
    if like is not None and type(like).__name__ != kind:
        raise SchemaError(
            f"encoder of {name!r}: expected a {kind}, as in the dataset, got {like!r}",
            feature=name,
        )
    if like is None and found.get(UNSTORED):
        lacking = ", ".join(found[UNSTORED])
        raise SchemaError(
            f"encoder of {name!r}: expected parameters that a dataset can store, got objects as"
            f" {lacking} of {kind}",
            hint=Text(
                f"to append, pass a {kind} with the same {lacking}: ",
                Call(f"encoders={{{name!r}: {kind}({'=..., '.join(found[UNSTORED])}=...)}}"),
            ),
            feature=name,
        )
    is_text = kind.endswith("Vectorizer")
    place = "sklearn.feature_extraction.text" if is_text else "sklearn.preprocessing"
    classes = require(place, purpose="encoders")
    try:
        parameters = _parameters(found["parameters"]) if like is None else like.get_params()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about fitting on made-up rows
            return _FIT[kind](getattr(classes, kind), parameters, found)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ManifestError(
            f"encoder of {name!r}: expected the description of a {kind}, got {error!r}"
        ) from error


def _parameters(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Convert stored parameters to scikit-learn's types, such as tuples."""
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
    """Fit on rows in which infrequent categories are infrequent; counts are not stored."""
    categories = found["categories"]
    rare = found.get("infrequent") or [[] for _ in categories]
    common = [
        [one for one in column if one not in few]
        for column, few in zip(categories, rare, strict=True)
    ]
    if not all(common):
        raise ValueError(Message("a column that has no frequent category"))
    # Infrequent categories are in one row each, all others in two or more.
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
