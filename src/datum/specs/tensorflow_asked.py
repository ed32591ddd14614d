"""A feature to be read with TensorFlow, and the code that is made for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from datum.format.layout import lower
from datum.schema import Feature
from datum.schema.dtypes import FLOATS_ON_WIRE, TIMES
from datum.specs.code import Code, quote

__all__ = ["Asked", "Read"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A feature, and how it is asked for.

    Attributes:
        name: what it is called.
        feature: what it holds.
        is_batched: whether many records are parsed at once.
        in_sequences: whether the records are SequenceExamples.
        formats: of images, those that are known to occur.
        others: the keys of all features.
    """

    name: str
    feature: Feature
    is_batched: bool
    in_sequences: bool
    formats: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()

    @property
    def keys(self) -> list[str]:
        """Where it lies in records: values first, then lengths, shape or indices."""
        return [column.key for column in lower(self.name, self.feature)]

    @property
    def is_doubtful(self) -> bool:
        """Whether records may lack it, and only a column beside it tells which do."""
        return self.feature.optional and self.feature.default is None

    @property
    def inner(self) -> tuple[int | None, ...]:
        """The dimensions after those that differ in length."""
        return self.feature.shape[self.feature.ragged_rank :]

    @property
    def kind(self) -> str:
        """The TensorFlow type of the list that it is stored in."""
        feature = self.feature
        if feature.is_string or feature.is_raw or feature.encoding == "image":
            return "tf.string"
        return "tf.float32" if feature.dtype in FLOATS_ON_WIRE else "tf.int64"

    @property
    def dtype(self) -> str:
        """The TensorFlow type of its elements: times are counts of their unit."""
        feature = self.feature
        if feature.is_string:
            return "tf.string"
        return "tf.int64" if feature.dtype in TIMES else f"tf.{feature.dtype}"

    def found(self, at: int = 0) -> str:
        """What was parsed under one of its keys."""
        holder = (
            ("lists" if self.feature.sequence else "context") if self.in_sequences else "parsed"
        )
        return f"{holder}[{quote(self.keys[at])}]"

    def shape(self, *dims: int | None) -> Code:
        """A shape to give tensors, with the dimension of records in front if there is one."""
        lead: tuple[int, ...] = (-1,) if self.is_batched else ()
        return str([*lead, *(-1 if n is None else n for n in dims)])


@dataclass(slots=True)
class Read:
    """The code for one feature.

    Attributes:
        specs: how each key is asked for; of sequences, among the feature lists.
        values: the expression of each column.
        helpers: the functions that the expressions call.
        note: what is to be known of the feature.
    """

    specs: dict[str, Code] = field(default_factory=dict)
    values: dict[str, Code] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    note: str = ""
