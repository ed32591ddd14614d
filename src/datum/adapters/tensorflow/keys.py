"""One key of a feature: what lies under it, and how it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._core import Cell, Kind, Layout
from datum._optional import require
from datum.adapters.tensorflow.example_ops import DenseKey
from datum.format.layout import StoredColumn
from datum.schema import Feature, numpy_dtype
from datum.schema.dtypes import FLOATS_ON_WIRE

__all__ = ["Key"]

tf: Any = require("tensorflow", purpose="`to_tf`")

_TYPES = {Kind.BYTES: tf.string, Kind.FLOAT: tf.float32, Kind.INT64: tf.int64}


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a feature."""

    column: StoredColumn
    feature: Feature

    @property
    def name(self) -> str:
        """How it is called in records."""
        return self.column.key

    @property
    def dtype(self) -> Any:
        """Of the list under it."""
        return _TYPES[self.column.kind]

    @property
    def is_raw(self) -> bool:
        """Whether its values lie as bytes in one string."""
        return self.column.cell == Cell.RAW

    @property
    def is_fixed(self) -> bool:
        """Whether a record that has it has a certain number of values under it, one or more."""
        has_number = self.column.layout == Layout.FIXED and self.column.unit > 0
        return not self.feature.sequence and (self.is_raw or has_number)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the values in one record, where they are fixed; of raw ones that is one string."""
        return () if self.is_raw else self.feature.shape  # type: ignore[return-value]

    @property
    def is_required(self) -> bool:
        """Whether a record must have it."""
        return not self.feature.optional and self.feature.encoding != "sparse"

    @property
    def is_doubtful(self) -> bool:
        """Whether a record has its certain number of values or none, and no default either."""
        return self.is_fixed and not self.is_required and self.feature.default is None

    @property
    def needs_presence(self) -> bool:
        """Whether it matters which records have it: to be told, or to fill in the default."""
        return self.feature.optional and self.column.role == "values" and self.feature.default != ()

    def default(self) -> bytes | NDArray[Any]:
        """The default as it would be stored: the one string, or the values of lists."""
        default = self.feature.default
        if self.feature.is_string:
            return default.encode() if isinstance(default, str) else bytes(default)
        values = np.array(default, numpy_dtype(self.feature.dtype))
        if self.is_raw:
            return values.tobytes()
        is_float = self.feature.dtype in FLOATS_ON_WIRE
        return values.astype(np.float32 if is_float else np.int64)  # of uint64 the same bits

    def dense_key(self) -> DenseKey:
        """How a fixed key is parsed; without a default, records that lack it are refused."""
        if self.feature.default is None:
            return DenseKey(self.name, self.shape, self.dtype)
        return DenseKey(self.name, self.shape, tf.constant(self.default(), self.dtype, self.shape))

    def blank(self) -> Any:
        """What a record without the key gets for each value."""
        if self.is_raw and self.column.layout == Layout.FIXED:
            return tf.constant(bytes(self.column.unit))
        return tf.zeros([], self.dtype)
