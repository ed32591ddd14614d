"""Labels in words: class names where they are known, ids and numbers where not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.errors import SchemaError

__all__ = ["ClassNames", "count_names", "describe_label", "name_class"]

MAX_NAMES = 8  # of one label: more than a caption has room for
_MIN_SHARE = 0.05  # of a class in a mixed label that is worth telling

Names = Sequence[str] | None


@dataclass(frozen=True, slots=True)
class ClassNames:
    """The names of classes: of one feature each, or the same for all."""

    of_features: Mapping[str, Sequence[str]]
    of_all: Names = None

    @classmethod
    def read(cls, given: Any) -> ClassNames:
        """From a list, a dict of lists, or the `metadata` of a dataset."""
        if given is None:
            return cls({})
        if not isinstance(given, Mapping):
            return cls({}, _as_names(given, "class_names"))
        found = {}
        for feature, names in given.items():
            if isinstance(names, Mapping):
                names = names.get("class_names")
            if names is not None:
                found[str(feature)] = _as_names(names, f"class_names[{feature!r}]")
        return cls(found)

    def of(self, feature: str) -> Names:
        """Those of a feature; if a tuple has lost its name, of the only one, or of "label".

        >>> ClassNames.read({"label": ["cat", "dog"]}).of("targets")
        ['cat', 'dog']
        """
        if feature in self.of_features:
            return self.of_features[feature]
        if feature == "targets" and len(self.of_features) == 1:
            return next(iter(self.of_features.values()))
        return self.of_features.get("label", self.of_all) if feature == "targets" else self.of_all


def _as_names(given: Any, where: str) -> list[str]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise SchemaError(f"`{where}`: expected a list of names, got {given!r}")
    return [
        name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in given
    ]


def name_class(value: Any, names: Names = None) -> str:
    """The name of an id, the id itself if it has none, or a text as it is.

    >>> name_class(1, ["cat", "dog"]), name_class(7, ["cat", "dog"]), name_class(b"bird")
    ('dog', '7', 'bird')
    """
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, bool | np.bool_) and names is None:
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        if not float(value).is_integer():
            return f"{value:.4g}"
        value = int(value)
    is_id = isinstance(value, int | np.integer | np.bool_)
    if is_id and names is not None and 0 <= value < len(names):
        return names[int(value)]
    return str(value)


def describe_label(value: Any, names: Names = None) -> str:
    """What a label says: one class, several, or shares of them.

    A vector of zeros and ones, as long as the names or, without names, of three values or more,
    marks classes; one of fractions gives their shares; other numbers are ids.

    >>> describe_label([0, 1, 0], ["cat", "dog", "cow"]), describe_label([0.7, 0.3, 0.0])
    ('dog', '0 0.70, 1 0.30')
    >>> describe_label([2, 0], ["cat", "dog", "cow"]), describe_label(2.5)
    ('cow, cat', '2.5')
    """
    if value is None:
        return "no label"
    array = np.asarray(value, object if isinstance(value, str | bytes) else None)
    if array.dtype.kind in "SU":
        array = array.astype(object)
    if array.ndim == 0:
        return name_class(array.item(), names)
    if array.ndim != 1 or array.dtype.kind not in "biufO":
        return f"{array.dtype} of shape {array.shape}"
    if array.dtype.kind != "O" and _marks_classes(array, names):
        return _join([name_class(at, names) for at in np.flatnonzero(array).tolist()])
    if array.dtype.kind == "f" and len(array) > 1 and _holds_shares(array):
        return _join_shares(array, names)
    return _join([name_class(one, names) for one in array[: MAX_NAMES + 1].tolist()], len(array))


def count_names(names: Iterable[str]) -> str:
    """How many there are of each, the most frequent first.

    >>> count_names(["cell", "platelet", "cell"])
    '2 cell, 1 platelet'
    """
    counts = sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0]))
    return _join([f"{count} {name}" for name, count in counts])


def _marks_classes(array: NDArray[Any], names: Names) -> bool:
    is_long_enough = len(array) == len(names) if names is not None else len(array) > 2
    return is_long_enough and bool(np.isin(array, (0, 1)).all())


def _holds_shares(array: NDArray[Any]) -> bool:
    return bool(((array >= 0) & (array <= 1)).all() and (array % 1 != 0).any())


def _join_shares(array: NDArray[Any], names: Names) -> str:
    order = np.argsort(-array, kind="stable")
    order = order[: max(1, int((array >= _MIN_SHARE).sum()))]
    return _join([f"{name_class(at, names)} {array[at]:.2f}" for at in order.tolist()])


def _join(words: Sequence[str], count: int | None = None) -> str:
    count = len(words) if count is None else count
    if not words:
        return "none"
    more = f" and {count - MAX_NAMES} more" if count > MAX_NAMES else ""
    return ", ".join(words[:MAX_NAMES]) + more
