"""A scikit-learn encoder attached to a feature."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import Sparse
from datum.errors import SchemaError, SourceError
from datum.schema import Feature
from datum.writing.estimators import SUPPORTED, Estimator, wrap

__all__ = ["UNSTORED", "FeatureEncoder"]

UNSTORED = "unstored_parameters"  # in what describes an encoder: those that JSON cannot hold
_LEARNED = ("categories", "vocabulary")  # parameters that are told as what was learned


class FeatureEncoder:
    """A scikit-learn encoder attached to a feature; it can be sent to other processes.

    An encoder that is not fitted is copied first, so that the one given stays as it is.
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
                hint="apply it yourself, and write what it gives",
                feature=name,
            )
        if getattr(estimator, "input", "content") != "content":
            raise SchemaError(
                f"encoder of {name!r}: expected input='content', as records hold the texts,"
                f" got input={estimator.input!r}",
                feature=name,
            )
        self.name = name
        self._estimator: Estimator = wrapped

    @property
    def is_fitted(self) -> bool:
        """Whether it can be applied."""
        return self._estimator.is_fitted

    def fit(self, values: Iterable[Any]) -> None:
        """Learn from values, None among them; those that the encoder refuses are passed over."""
        try:
            self._estimator.fit(value for value in values if value is not None)
        except (TypeError, ValueError) as error:
            if isinstance(error, (SchemaError, SourceError)):
                raise
            raise SchemaError(
                f"{self._class_name} cannot learn from it: {error}",
                where=f"feature {self.name!r}",
                feature=self.name,
            ) from error

    def transform(self, values: list[Any]) -> Sparse | NDArray[Any]:
        """Encode values, a row for each; raises SchemaError for the first that is refused."""
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
        """What is wrong with values that the encoder refuses, by their positions."""
        faults = {}
        for at, value in enumerate(values):
            fault = self._estimator.find_fault(value)
            if fault is not None:
                faults[at] = fault
        return faults

    def transform_each(
        self, values: list[Any]
    ) -> tuple[Sparse | NDArray[Any], list[int], dict[int, str]]:
        """Encode what can be: the rows, the positions they are of, and the faults of the others."""
        faults = self.find_faults(values)
        kept = [at for at in range(len(values)) if at not in faults]
        try:
            return self._apply([values[at] for at in kept]), kept, faults
        except Exception:  # a function of the user's own, for any reason: which value is it?
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
        rows.sum_duplicates()  # which also sorts them
        places = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        indices = np.stack([places, rows.indices], axis=1)
        return Sparse(indices, rows.data.astype(feature.dtype), tuple(map(int, rows.shape)))

    @property
    def feature(self) -> Feature:
        """What it gives: `Feature(dtype, (size,))`, sparse if the encoder gives sparse rows."""
        self._check_fitted()
        fitted, shape = self._estimator.fitted, self._estimator.shape
        dtype = np.dtype(getattr(fitted, "dtype", np.int64)).name
        is_sparse = bool(shape) and getattr(fitted, "sparse_output", True)
        return Feature(dtype, shape, encoding="sparse" if is_sparse else None)  # type: ignore[arg-type]

    def describe(self) -> dict[str, Any]:
        """What a model needs to know of it, as plain JSON values, the same for the same data."""
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
                f"expected a {self._class_name} that is fitted, got one that is not",
                where=f"feature {self.name!r}",
                hint="call fit first",
                feature=self.name,
            )


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold a parameter; functions it cannot."""
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
