"""Supported scikit-learn encoders: fitting, application and description of each kind."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.errors import Message

__all__ = [
    "SUPPORTED",
    "Estimator",
    "Labels",
    "OneHot",
    "Texts",
    "as_column",
    "as_table",
    "wrap",
]

SUPPORTED = (
    "CountVectorizer",
    "TfidfVectorizer",
    "HashingVectorizer",
    "LabelBinarizer",
    "LabelEncoder",
    "OneHotEncoder",
)


class Estimator(Protocol):
    """One scikit-learn encoder; unfitted, it has only `is_fitted` and `fit`."""

    fitted: Any

    @property
    def is_fitted(self) -> bool:
        """Whether the encoder is fitted."""
        ...

    def fit(self, values: Iterable[Any]) -> None:
        """Fit on values; invalid ones are skipped."""
        ...

    def find_fault(self, value: Any) -> str | None:
        """Return the problem of a value that is invalid before encoding, else None."""
        ...

    def apply(self, values: list[Any]) -> Any:
        """Encode valid values to a SciPy matrix or an array, one row each."""
        ...

    @property
    def size(self) -> int:
        """Number of columns, or of classes."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an encoded value: a row or a single number."""
        ...

    def facts(self) -> dict[str, Any]:
        """Return what the encoder has learned, by name."""
        ...


def wrap(estimator: Any) -> Estimator | None:
    """Wrap an encoder, copied if unfitted; None for an unsupported one."""
    texts = require("sklearn.feature_extraction.text", purpose="encoders")
    labels = require("sklearn.preprocessing", purpose="encoders")
    kinds: list[tuple[Any, type[Texts | Labels | OneHot]]] = [
        ((texts.CountVectorizer, texts.HashingVectorizer), Texts),
        ((labels.LabelBinarizer, labels.LabelEncoder), Labels),
        (labels.OneHotEncoder, OneHot),
    ]
    for classes, kind in kinds:
        if isinstance(estimator, classes):
            found = kind(estimator)
            # The caller's encoder stays unfitted, so that the next write fits it again.
            return found if found.is_fitted else kind(_clone(estimator))
    return None


def _clone(estimator: Any) -> Any:
    """Return an unfitted copy."""
    return require("sklearn.base", purpose="encoders").clone(estimator)


class Texts:
    """Vectorizers: a text becomes a sparse row of numbers."""

    def __init__(self, estimator: Any) -> None:
        self.fitted = estimator
        is_given = getattr(estimator, "vocabulary", None) is not None
        if is_given and not self._has_weights and not self.is_fitted:
            self.fitted = _clone(estimator).fit([""])  # its vocabulary is given

    @property
    def _has_weights(self) -> bool:
        return bool(getattr(self.fitted, "use_idf", False))

    @property
    def is_fitted(self) -> bool:
        """Whether vocabulary and weights are known."""
        if hasattr(self.fitted, "n_features"):
            return True  # the hashing vectorizer has nothing to learn
        return hasattr(self.fitted, "idf_" if self._has_weights else "vocabulary_")

    def fit(self, values: Iterable[Any]) -> None:
        """Fit on texts one at a time; only counts are kept in memory."""
        self.fitted.fit(value for value in values if self.find_fault(value) is None)

    def find_fault(self, value: Any) -> str | None:
        """Return the problem of a text; a user's own function may accept anything."""
        if isinstance(value, str) or callable(self.fitted.analyzer) or self.fitted.preprocessor:
            return None
        if not isinstance(value, bytes):
            return f"expected text, got {type(value).__name__}"
        try:
            self.fitted.decode(value)
        except UnicodeDecodeError as error:
            return f"expected text that is {self.fitted.encoding}, got {error}"
        return None

    def apply(self, values: list[Any]) -> Any:
        """Count the terms of texts."""
        return self.fitted.transform(values)

    @property
    def size(self) -> int:
        """Number of columns."""
        count = getattr(self.fitted, "n_features", None)
        return int(count) if count is not None else len(self.fitted.vocabulary_)

    @property
    def shape(self) -> tuple[int, ...]:
        """A row."""
        return (self.size,)

    def facts(self) -> dict[str, Any]:
        """Return the column and the weight of each term."""
        if not hasattr(self.fitted, "vocabulary_"):
            return {}
        columns = sorted(self.fitted.vocabulary_.items(), key=lambda pair: (pair[1], pair[0]))
        found: dict[str, Any] = {"vocabulary": {str(term): int(at) for term, at in columns}}
        if self._has_weights:
            found["idf"] = self.fitted.idf_
        return found


class Labels:
    """Label encoders: a class becomes its number, or a row of 0 and 1."""

    def __init__(self, estimator: Any) -> None:
        self.fitted = estimator
        self._is_binarizer = hasattr(estimator, "sparse_output")
        self._codes: dict[Any, int] = {}

    @property
    def is_fitted(self) -> bool:
        """Whether the classes are known."""
        return hasattr(self.fitted, "classes_")

    def fit(self, values: Iterable[Any]) -> None:
        """Fit on labels."""
        found = {
            label: None for label in map(_as_label, values) if _find_label_fault(label) is None
        }
        if not found:
            raise ValueError(Message("expected labels, got none"))
        with warnings.catch_warnings():
            # scikit-learn warns if most labels differ, and here all do.
            warnings.simplefilter("ignore", UserWarning)
            self.fitted.fit(as_column(list(found)))

    @property
    def codes(self) -> dict[Any, int]:
        """Number of each class."""
        if not self._codes:
            classes = [_as_label(label) for label in self.fitted.classes_.tolist()]
            self._codes = {label: code for code, label in enumerate(classes)}
        return self._codes

    def find_fault(self, value: Any) -> str | None:
        """Return the problem of a label, if any."""
        label = _as_label(value)
        fault = _find_label_fault(label)
        if fault is None and label not in self.codes:
            return f"expected one of {len(self.codes)} classes, got {_short(label)}"
        return fault

    def apply(self, values: list[Any]) -> Any:
        """Encode labels.

        Unlike `transform`, it does not map unknown labels to the first of two classes or warn when
        many labels differ.
        """
        codes = np.array([self.codes[_as_label(value)] for value in values], np.int64)
        if not self._is_binarizer:
            return codes
        count = len(self.codes)
        rows = np.flatnonzero((codes > 0) | (count > 2)) if count > 1 else np.empty(0, np.intp)
        columns = codes[rows] if count > 2 else np.zeros(len(rows), np.int64)
        signs = np.full(len(rows), self.fitted.pos_label, np.int64)
        if self.fitted.sparse_output:
            scipy_sparse = require("scipy.sparse", purpose="sparse encoders")
            return scipy_sparse.csr_matrix((signs, (rows, columns)), (len(codes), self.size))
        dense = np.full((len(codes), self.size), self.fitted.neg_label, np.int64)
        dense[rows, columns] = signs
        return dense

    @property
    def size(self) -> int:
        """Number of classes, or of columns: two classes need one."""
        count = len(self.codes)
        return 1 if self._is_binarizer and count <= 2 else count

    @property
    def shape(self) -> tuple[int, ...]:
        """A row, or the number of the class."""
        return (self.size,) if self._is_binarizer else ()

    def facts(self) -> dict[str, Any]:
        """Return the classes in order, and as class names if they are text."""
        classes = self.fitted.classes_.tolist()
        is_named = not self._is_binarizer and all(isinstance(label, str) for label in classes)
        return {"classes": classes, **({"class_names": classes} if is_named else {})}


class OneHot:
    """One-hot encoder: one or several values become a row of 0 and 1."""

    def __init__(self, estimator: Any) -> None:
        self.fitted = estimator
        self._known: list[set[Any]] = []
        is_given = not isinstance(estimator.categories, str) and not self._counts
        if is_given and not self.is_fitted:
            self.fitted = _clone(estimator)
            self.fitted.fit(as_table([_as_row([column[0] for column in estimator.categories])]))

    @property
    def _counts(self) -> bool:
        """Whether frequencies of values matter."""
        return self.fitted.min_frequency is not None or self.fitted.max_categories is not None

    @property
    def is_fitted(self) -> bool:
        """Whether the categories are known."""
        return hasattr(self.fitted, "categories_")

    def fit(self, values: Iterable[Any]) -> None:
        """Fit on values."""
        rows: Iterable[tuple[Any, ...]] = (
            row for row in map(_as_row, values) if all(_find_label_fault(v) is None for v in row)
        )
        table = list(rows) if self._counts else list(dict.fromkeys(rows))
        if not table:
            raise ValueError(Message("expected values, got none"))
        self.fitted.fit(as_table(table))

    @property
    def known(self) -> list[set[Any]]:
        """Categories of each column."""
        if not self._known:
            self._known = [set(column.tolist()) for column in self.fitted.categories_]
        return self._known

    def find_fault(self, value: Any) -> str | None:
        """Return the problem of a value or of one in a list, if any."""
        row = _as_row(value)
        if len(row) != len(self.known):
            return f"expected {len(self.known)} values, got {len(row)}"
        for item, known in zip(row, self.known, strict=True):
            fault = _find_label_fault(item)
            if fault is None and self.fitted.handle_unknown == "error" and item not in known:
                fault = f"expected one of {len(known)} categories, got {_short(item)}"
            if fault is not None:
                return fault
        return None

    def apply(self, values: list[Any]) -> Any:
        """Encode values."""
        return self.fitted.transform(as_table([_as_row(value) for value in values]))

    @property
    def size(self) -> int:
        """Number of columns of all categories."""
        first = [column.tolist()[0] for column in self.fitted.categories_]
        return int(self.fitted.transform(as_table([first])).shape[1])

    @property
    def shape(self) -> tuple[int, ...]:
        """A row."""
        return (self.size,)

    def facts(self) -> dict[str, Any]:
        """Return the categories of each column in order, and the infrequent ones."""
        found = {"categories": [column.tolist() for column in self.fitted.categories_]}
        if self._counts:
            rare = self.fitted.infrequent_categories_
            found["infrequent"] = [[] if one is None else one.tolist() for one in rare]
        return found


def _as_label(value: Any) -> Any:
    """Convert a value to a plain one, and UTF-8 bytes to text."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    return value


def _find_label_fault(label: Any) -> str | None:
    if not isinstance(label, (bool, float, int, str)):
        return f"expected a text or a number, got {_short(label)}"
    return "expected a text or a number, got nan" if label != label else None


def _as_row(value: Any) -> tuple[Any, ...]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    items = value if isinstance(value, (list, tuple)) else [value]
    return tuple(_as_label(item) for item in items)


def as_column(labels: list[Any]) -> NDArray[Any]:
    """Make an array of numbers of one type, else of objects: NumPy strings drop a final NUL."""
    types = set(map(type, labels))
    is_plain = len(types) == 1 and types <= {bool, float, int}
    return np.array(labels, None if is_plain else object)


def as_table(rows: list[Any]) -> NDArray[Any]:
    """Make a table of objects, which compare with categories of any type."""
    if len({len(row) for row in rows}) > 1:
        raise ValueError(Message("expected the same number of values in every record"))
    table = np.empty((len(rows), len(rows[0])), object)
    table[:] = rows
    return table


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
