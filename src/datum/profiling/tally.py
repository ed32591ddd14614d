"""One feature counted as its columns come: whatever of it can be counted, by what it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.profiling.distributions import Distribution
from datum.profiling.numbers import NumberTally, tally_numbers
from datum.profiling.pictures import ImageTally, holds_images, tally_images
from datum.profiling.results import FeatureProfile
from datum.profiling.values import (
    MAX_COUNTED_BYTES,
    ValueTally,
    tally_strings,
    tally_values,
)
from datum.schema import Feature

__all__ = ["FeatureTally", "tally_column"]

SHOWN_EXAMPLES = 3
SHOWN_BYTES = 256  # of an example: more than a line
MANY_A_RECORD = 16  # values in a record; more are pixels, tokens or samples, not labels

_Part = TypeVar("_Part", NumberTally, ValueTally, ImageTally)


@dataclass(frozen=True, slots=True)
class FeatureTally:
    """What was counted of a feature; None stands for what it does not have.

    Attributes:
        present, missing: how many records have it, or lack it.
        numbers, lengths, sizes: of elements, of rows, and of strings in bytes.
        empty: strings without characters.
        values: of elements, where they may be classes.
        images: of image files.
        cells: how many elements a sparse feature would have, were it dense.
        examples: some strings.
    """

    present: float = 0
    missing: float = 0
    numbers: NumberTally | None = None
    lengths: NumberTally | None = None
    sizes: NumberTally | None = None
    empty: float = 0
    values: ValueTally | None = None
    images: ImageTally | None = None
    cells: float = 0
    examples: tuple[str | bytes, ...] = ()

    def merge(self, other: FeatureTally) -> FeatureTally:
        """Of the records of both; those of `other` come after these."""
        if not self.present and not self.missing:
            return other
        return FeatureTally(
            self.present + other.present,
            self.missing + other.missing,
            _merge_present(self.numbers, other.numbers),
            _merge_present(self.lengths, other.lengths),
            _merge_present(self.sizes, other.sizes),
            self.empty + other.empty,
            _merge_all(self, other, "values"),
            _merge_present(self.images, other.images),
            self.cells + other.cells,
            tuple(dict.fromkeys(self.examples + other.examples))[:SHOWN_EXAMPLES],
        )

    def scaled(self, factor: float) -> FeatureTally:
        """The same, as if each record had been there `factor` times."""
        return FeatureTally(
            self.present * factor,
            self.missing * factor,
            self.numbers and self.numbers.scaled(factor),
            self.lengths and self.lengths.scaled(factor),
            self.sizes and self.sizes.scaled(factor),
            self.empty * factor,
            self.values and self.values.scaled(factor),
            self.images and self.images.scaled(factor),
            self.cells * factor,
            self.examples,
        )

    def result(
        self, feature: Feature, names: Mapping[Any, str], *, is_exact: bool
    ) -> FeatureProfile:
        """What it says of the feature, whose classes have these names."""
        lengths, values, images = self.lengths, self.values, self.images
        filled = lengths.mean * lengths.count if lengths is not None else 0.0
        return FeatureProfile(
            feature,
            round(self.present),
            round(self.missing),
            is_exact,
            _distribution(self.numbers, is_exact=is_exact),
            _distribution(lengths, is_exact=is_exact),
            _distribution(self.sizes, is_exact=is_exact),
            round(self.empty),
            None if values is None else values.result(names, is_exact=is_exact),
            None if images is None else images.result(is_exact=is_exact),
            filled / self.cells if self.cells else None,
            self.examples,
            None if values is None else values.repeated,
        )


def _distribution(tally: NumberTally | None, *, is_exact: bool) -> Distribution | None:
    return None if tally is None else tally.result(is_exact=is_exact)


def _merge_present(first: _Part | None, second: _Part | None) -> _Part | None:
    return first.merge(second) if first and second else first or second


def _merge_all(first: FeatureTally, second: FeatureTally, name: str) -> Any:
    """Of both; None if one of them has records, but could not count them."""
    parts = [getattr(one, name) for one in (first, second) if one.present]
    if not parts or None in parts:
        return None
    return parts[0].merge(parts[1]) if len(parts) == 2 else parts[0]


def tally_column(feature: Feature, column: Any, *, has_classes: bool) -> FeatureTally:
    """Count a column as `datum.format.parse` makes it.

    Where `has_classes`, its elements are numbers of classes, and counted even where there are many.
    """
    count, missing = len(column), 0
    if isinstance(column, Masked):
        missing = count - int(np.count_nonzero(column.present))
        column = column.values if not missing else column.values[column.present]
    present = count - missing
    if not present:
        return FeatureTally(0, missing)
    lengths, values = _flattened(column)
    found: dict[str, Any] = {"lengths": None if lengths is None else tally_numbers(lengths)}
    if isinstance(column, Sparse):
        found["cells"] = present * math.prod(n or 0 for n in feature.shape)
    is_scalar = not feature.shape
    if isinstance(values, BytesColumn):
        found |= _tally_bytes(feature, values, is_scalar=is_scalar)
    else:
        found["numbers"] = tally_numbers(values)
        if _is_counted(feature, values, present=present, has_classes=has_classes):
            found["values"] = tally_values(_plain(values), is_scalar=is_scalar)
    return FeatureTally(present, missing, **found)


def _flattened(column: Any) -> tuple[NDArray[np.int64] | None, Any]:
    """How many items each record has, where that differs, and all elements one after the other."""
    if isinstance(column, Sparse):
        return np.bincount(column.indices[:, 0], minlength=len(column)), column.values
    lengths = None
    if isinstance(column, Ragged):
        lengths = column.row_lengths
        while isinstance(column, Ragged):
            column = column.values
    elif isinstance(column, np.ndarray) and column.dtype == object:  # tensors of several shapes
        lengths = np.array([len(tensor) for tensor in column], np.int64)
        column = np.concatenate([tensor.reshape(-1) for tensor in column])
    return lengths, column


def _is_counted(feature: Feature, values: NDArray[Any], *, present: int, has_classes: bool) -> bool:
    """Whether elements may be classes: scalars, or integers of which a record has few."""
    if not feature.shape:
        return values.dtype.kind != "c"
    if values.dtype.kind not in "iub":
        return False
    is_list = feature.encoding == "values" and len(feature.shape) == 1
    return has_classes or (is_list and values.size <= MANY_A_RECORD * present)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """As numbers that NumPy can sort: times as counts of their unit."""
    flat = values.reshape(-1)
    if flat.dtype.kind in "mM":
        return flat.astype(np.int64)
    is_small_float = flat.dtype.kind == "V" or (flat.dtype.kind == "f" and flat.itemsize < 4)
    return flat.astype(np.float32) if is_small_float else flat


def _tally_bytes(feature: Feature, strings: BytesColumn, *, is_scalar: bool) -> dict[str, Any]:
    flat = BytesColumn(strings.buffer, strings.slices, is_text=strings.is_text)
    sizes = flat.lengths
    found: dict[str, Any] = {
        "sizes": tally_numbers(sizes),
        "empty": len(sizes) - int(np.count_nonzero(sizes)),
    }
    if feature.encoding == "image" or (feature.dtype == "bytes" and holds_images(flat)):
        return found | {"images": tally_images(flat)}
    found["examples"] = _examples(flat)
    if sizes.max(initial=0) <= MAX_COUNTED_BYTES:
        found["values"] = tally_strings(flat.to_list(), is_scalar=is_scalar)
    return found


def _examples(strings: BytesColumn) -> tuple[str | bytes, ...]:
    """The first few that differ, shortened."""
    found: dict[str | bytes, None] = {}
    slices = strings.slices[strings.slices[:, 1] > 0][: 8 * SHOWN_EXAMPLES]
    slices[:, 1] = np.minimum(slices[:, 1], SHOWN_BYTES)
    for start in BytesColumn(strings.buffer, slices):
        # Cut bytes may end within a character.
        found[start.decode(errors="ignore") if strings.is_text else start] = None
    return tuple(found)[:SHOWN_EXAMPLES]
