"""What the readers of a split have in common, whichever engine they are for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from datum._optional import require
from datum.adapters.tensorflow.blocks import bytes_of
from datum.adapters.tensorflow.element_cache import ElementCache
from datum.adapters.tensorflow.mapping import SEED, apply, with_asides
from datum.adapters.tensorflow.options import TfOptions, refuse_mask
from datum.adapters.tensorflow.plan import (
    LARGE_RECORD_BYTES,
    PARSED_LARGE_RECORDS,
    PARSED_RECORDS,
)
from datum.adapters.tensorflow.position import Passes, Position, batches_of_epoch
from datum.loading.options import MASK
from datum.loading.stream import EpochOrder, Stream
from datum.reading import Split
from datum.schema import Schema

__all__ = ["InOrder", "Reader"]

tf: Any = require("tensorflow", purpose="`to_tf`")


class Reader(Protocol):
    """What gives the records of a split to the steps that all engines share."""

    asides: tuple[str, ...]

    @property
    def position(self) -> Position | None:
        """Where the dataset has come to; None where that cannot be told."""

    @property
    def is_full(self) -> bool:
        """Whether there is no short batch."""

    @property
    def batches_per_epoch(self) -> int:
        """How many batches an epoch has on this host, or records if there are none."""

    def batches(self) -> Any:
        """Batches of all epochs, those that differ in length padded where asked."""

    def read(
        self,
        finish: Callable[[Any], Any],
        decode: Callable[..., Any] | None,
        *form: Any,
        is_last: bool = False,
    ) -> Any:
        """The records of all epochs, decoded one by one; `finish` is given those of an epoch.

        So what it makes of them, batches for example, ends with the epoch. What `decode` made is
        what a cache keeps, and `form` tells what it depends on. `is_last` if it gives what goes
        into batches, and no function that takes a record follows.
        """


class InOrder:
    """The base of readers that give the order of `to_numpy`.

    It is the same for any number of hosts and threads. Each new iteration begins with the epoch
    after those of the one before.

    Args:
        split: the records of all hosts.
        schema: the features to read.
        options: what is asked for.
        host: the index of this host, and how many there are.
        needs_seeds: whether records are to come with a column `SEED`.
        order: which record comes at which position.
        identity: what a state has to agree with.
        passes: makes what starts the passes over a stream.

    Attributes:
        stream: which records each batch has.
        position: where the dataset has come to.
        asides: columns that are no features: `SEED`, and `MASK` where batches are filled up.
    """

    def __init__(
        self,
        split: Split,
        schema: Schema,
        options: TfOptions,
        *,
        host: tuple[int, int],
        needs_seeds: bool,
        order: EpochOrder,
        identity: Mapping[str, Any],
        passes: Callable[[Stream], Passes],
    ) -> None:
        remainder = options.remainder_on(host[1])
        if remainder == "pad":
            refuse_mask(schema)
        wanted = {SEED: needs_seeds, MASK: remainder == "pad"}
        self.asides = tuple(name for name, is_wanted in wanted.items() if is_wanted)
        self.stream = Stream(order, options.batch_size or 1, host, remainder, options.epochs)
        begun = passes(self.stream)
        self.position = Position(self.stream, begun, identity, name=split.name, echo=options.echo)
        self._options = options
        self._record_bytes = max(1, bytes_of(split) // max(1, len(split)))
        self._is_large = self._record_bytes >= LARGE_RECORD_BYTES
        self._chunk = PARSED_LARGE_RECORDS if self._is_large else PARSED_RECORDS

    @property
    def is_full(self) -> bool:
        """Whether there is no short batch."""
        return self.stream.remainder != "keep"

    @property
    def batches_per_epoch(self) -> int:
        """How many batches an epoch has, or records if there are none."""
        return batches_of_epoch(self.stream)

    def _cache_for(self, records: Any, decode: Callable[..., Any]) -> ElementCache:
        """What is to keep the elements that `decode` makes of records like these."""
        spec = apply(records, with_asides(decode, self.asides, keeps=False), self._options)
        spec = spec.element_spec
        has_more = isinstance(spec, tuple) and MASK in self.asides
        return ElementCache(spec[0] if has_more else spec)
