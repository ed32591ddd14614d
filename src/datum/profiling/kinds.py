"""The kinds of warnings that a profile can have."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["KINDS"]

# By gravity. What of the data is lost or wrong comes first, what merely costs time last.
KINDS: Mapping[str, str] = {
    "damage": "damaged shards",
    "leakage": "records in two splits",
    "empty-split": "splits without records",
    "unreadable-images": "images that cannot be read",
    "not-finite": "NaN and infinities",
    "unseen-label": "labels that training never sees",
    "empty-class": "classes without records",
    "imbalance": "class imbalance",
    "order": "records in the order of their labels",
    "duplicates": "duplicate records",
    "missing": "missing values",
    "constant": "constant features",
    "empty-text": "empty texts",
    "image-size": "odd image sizes",
    "small-shards": "tiny shards",
    "large-shards": "huge shards",
    "uneven-shards": "uneven shards",
}
