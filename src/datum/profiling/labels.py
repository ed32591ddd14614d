"""Which features tell classes, and what those are called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from datum.profiling.results import FeatureProfile

__all__ = ["class_names", "find_labels"]

MAX_CLASSES = 10_000  # labels of more are ids
FEW_CLASSES = 20  # of a text that nothing else tells to be a label
RECORDS_A_CLASS = 2  # on average: a feature of fewer has names, not classes
_LABEL = re.compile(
    r"(^|[/_.\s-])(labels?|class(es|_?ids?)?|targets?|category|categories|intent|y)$",
    re.IGNORECASE,
)


def class_names(metadata: Mapping[str, Any]) -> dict[Any, str]:
    """What numbers of classes stand for, as the metadata of a feature tells."""
    names = metadata.get("class_names")
    return dict(enumerate(map(str, names))) if isinstance(names, (list, tuple)) else {}


def find_labels(features: Mapping[str, FeatureProfile]) -> set[str]:
    """The features that tell the class of their record, or of objects in it.

    They are told by the names of their classes, or by their own. Where there is none, it is the
    one text of few values that every record has.
    """
    found = {name for name, one in features.items() if _has_classes(one) and _is_named(name, one)}
    if found:
        return found
    few = [
        name
        for name, one in features.items()
        if one.counts is not None
        and one.feature.dtype in ("str", "bool")
        and not (one.feature.shape or one.missing)
        and _has_classes(one, at_most=FEW_CLASSES)
        and all(str(value).isprintable() for value, _ in one.counts.values)
    ]
    return set(few) if len(few) == 1 else set()


def _is_named(name: str, one: FeatureProfile) -> bool:
    return bool(one.counts and one.counts.names) or bool(_LABEL.search(name))


def _has_classes(one: FeatureProfile, *, at_most: int = MAX_CLASSES) -> bool:
    counts = one.counts
    if counts is None or not counts.values or not 2 <= counts.distinct <= at_most:
        return False
    if one.feature.dtype.startswith(("float", "bfloat", "datetime", "timedelta")):
        return False
    return counts.total >= RECORDS_A_CLASS * counts.distinct
