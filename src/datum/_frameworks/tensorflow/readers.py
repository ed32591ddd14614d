"""Request, steps, order and position that the readers of both engines share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from datum._frameworks.tensorflow.dataset import Passes, Position, batches_per_epoch
from datum._frameworks.tensorflow.options import TfOptions
from datum._frameworks.tensorflow.steps import (
    KEPT,
    NUMBER,
    SEED,
    ElementCache,
    apply,
    with_extra_columns,
)
from datum._load.options import MASK
from datum._load.stream import EpochOrder, Stream, order_split
from datum._optional import require
from datum._read.shards import bytes_of
from datum._read.split import Split
from datum.schema import Schema

__all__ = [
    "LARGE_RECORD_BYTES",
    "PARSED_LARGE_RECORDS",
    "PARSED_RECORDS",
    "OrderedReader",
    "ReadRequest",
    "Reader",
    "RecordSteps",
]

tf: Any = require("tensorflow", purpose="`to_tf`")

# Larger records are moved one by one: copying them in windows costs more than an op for each.
LARGE_RECORD_BYTES = 8 * 2**10
PARSED_RECORDS = 64  # parsed together where records are then processed one by one
PARSED_LARGE_RECORDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """The records that a reader reads, and the options for them.

    Attributes:
        split: The records of all hosts.
        schema: The features to read.
        options: The options of `to_tf`.
        host: Index of this host, and number of hosts.
        needs_seeds: Whether each record comes with a column `SEED`.
        decoded: Names of the small images that are decoded while they are read.
    """

    split: Split
    schema: Schema
    options: TfOptions
    host: tuple[int, int] = (0, 1)
    needs_seeds: bool = False
    decoded: Collection[str] = ()

    @property
    def is_trusted(self) -> bool:
        """Whether the records are known to fit their schema, since Datum wrote them."""
        return self.split.shards.writer == "datum"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSteps:
    """Functions that are applied to single records.

    Attributes:
        decode: Function of a record, applied first. A cache keeps its results. None for no change.
        finish: Function of the dataset of the records of one epoch. Batches that it makes end with
            the epoch.
        is_last: Whether no other function of single records follows `decode`.
        kept_form: Everything else that results of `decode` depend on, for names of cache files.
    """

    decode: Callable[..., Any] | None
    finish: Callable[[Any], Any]
    is_last: bool = False
    kept_form: tuple[Any, ...] = ()


class Reader(Protocol):
    """A source of the records of a split, for the steps that all engines share."""

    extra_columns: tuple[str, ...]

    @property
    def position(self) -> Position | None:
        """The position of the dataset; None where it cannot be known."""

    @property
    def has_full_batches(self) -> bool:
        """Whether every batch has `batch_size` records."""

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches of an epoch on this host, or of records without batches."""

    def batches(self) -> Any:
        """A dataset of the batches of all epochs, padded as the options say."""

    def records(self, steps: RecordSteps) -> Any:
        """A dataset of the results of `steps` for the records of all epochs."""


AnyPasses = TypeVar("AnyPasses", bound=Passes)


class OrderedReader(Generic[AnyPasses]):
    """Base of the readers that return records in the order of `to_numpy`.

    The order is the same for any number of hosts and threads. Each new iteration starts with the
    epoch after those of the iteration before.

    Args:
        request: The records and options.
        schema: The features as they are parsed.
        make_passes: Makes the passes over a stream.

    Attributes:
        stream: The records of each batch.
        position: The position of the dataset.
        extra_columns: Columns that are no features: `SEED`, and `MASK` for remainder="pad".
    """

    def __init__(
        self,
        request: ReadRequest,
        schema: Schema,
        make_passes: Callable[[Stream], AnyPasses],
    ) -> None:
        split, options = request.split, request.options
        self._options = options
        self._load_options = options.load_options(schema)
        self._ordered = order_split(split, self._load_options)
        order, identity = self._find_order(request)
        remainder = options.remainder_on(request.host[1])
        wanted = {SEED: request.needs_seeds, MASK: remainder == "pad"}
        self.extra_columns = tuple(name for name, is_wanted in wanted.items() if is_wanted)
        self.stream = Stream(
            order, options.batch_size or 1, request.host, remainder, options.epochs
        )
        self._passes = make_passes(self.stream)
        self.position = Position(
            self.stream, self._passes, identity, name=split.name, echo=options.echo
        )
        self._record_bytes = max(1, bytes_of(split.runs) // max(1, len(split)))
        self._is_large = self._record_bytes >= LARGE_RECORD_BYTES
        self._chunk = PARSED_LARGE_RECORDS if self._is_large else PARSED_RECORDS

    def _find_order(self, request: ReadRequest) -> tuple[EpochOrder, Mapping[str, Any]]:  # noqa: ARG002
        """The order of the records, and the values that a state must agree with."""
        return self._ordered.order, self._ordered.identity

    @property
    def has_full_batches(self) -> bool:
        """Whether every batch has `batch_size` records."""
        return self.stream.remainder != "keep"

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches of an epoch, or of records without batches."""
        return batches_per_epoch(self.stream)

    def _decode_kept(
        self, steps: RecordSteps, make_records: Callable[[], Any]
    ) -> tuple[Callable[..., Any] | None, ElementCache | None]:
        """The function that decodes records with extra columns, and the cache of its results.

        Args:
            steps: Functions that are applied to single records.
            make_records: Makes a dataset of records, for the types of their columns.
        """
        if steps.decode is None:
            return None, None
        cache, extra = None, self.extra_columns
        if self._options.cache:
            cache = self._make_cache(make_records(), steps.decode)
            extra = (*extra, NUMBER, KEPT)
        if not extra:
            return steps.decode, None
        keeps = not steps.is_last
        return with_extra_columns(steps.decode, extra, keeps=keeps, cache=cache), cache

    def _make_cache(self, records: Any, decode: Callable[..., Any]) -> ElementCache:
        """A cache of the elements that `decode` makes of records."""
        decode = with_extra_columns(decode, self.extra_columns, keeps=False)
        spec = apply(records, decode, self._options).element_spec
        has_more = isinstance(spec, tuple) and MASK in self.extra_columns
        return ElementCache(spec[0] if has_more else spec)
