"""A `tf.data.Dataset` whose position can be saved and restored like that of any other loader."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from datum._load.stream import PassProgress, Place, Stream, check_state, to_state
from datum._optional import require
from datum._options import check_count
from datum._read.shards import Shards
from datum.errors import StateError

__all__ = [
    "DatumDataset",
    "GraphPasses",
    "Passes",
    "Position",
    "PythonPasses",
    "TfPipeline",
    "batches_per_epoch",
]

tf: Any = require("tensorflow", purpose="`to_tf`")

_Iterator: Any = type(iter(tf.data.Dataset.range(0)))


@dataclass(frozen=True, slots=True)
class TfPipeline:
    """The parts of a dataset.

    Attributes:
        make: Makes the dataset. The argument says whether its number of elements is fixed.
        description: The engine that reads and the reason for it, shown by `repr`.
        count: Number of batches of a pass; None where it is not known before they are read.
        position: The position of the dataset; None where it cannot be known.
        shards: Keeps the local copies of objects that the graph reads.
    """

    make: Callable[[bool], Any]
    description: str
    count: int | None = None
    position: Position | None = None
    shards: Shards | None = None


class DatumDataset(tf.data.Dataset):  # type: ignore[misc]
    """The `tf.data.Dataset` that `to_tf` returns; its position can be saved.

    Each iteration is one pass of `epochs` epochs. It continues with the epochs after those of the
    last iteration, even if that one was interrupted. `state_dict` and `load_state_dict` are those
    of the loaders of other frameworks, and a state of one fits all of them.

    Args:
        pipeline: The parts of the dataset.
        remake: Makes the pipeline of another seed, where the seed was drawn; otherwise None.
    """

    def __init__(
        self, pipeline: TfPipeline, *, remake: Callable[[int], TfPipeline] | None = None
    ) -> None:
        self._pipeline = pipeline
        self._remake = remake
        self._made = pipeline.make(True)
        super().__init__(tf.data.experimental.to_variant(self._made))

    def _inputs(self) -> list[Any]:
        return [self._made]

    @property
    def element_spec(self) -> Any:
        """The types of the tensors of an element."""
        return self._made.element_spec

    def cardinality(self, name: str | None = None) -> Any:
        """Number of batches of a whole pass, even if the next one resumes within it."""
        if self._pipeline.count is None:
            return super().cardinality()
        return tf.constant(self._pipeline.count, tf.int64, name=name)

    def __iter__(self) -> Any:
        if self._pipeline.position is None or not tf.executing_eagerly():
            return super().__iter__()
        return _CountedIterator(self, self._known_position)

    # Position.

    def _known_position(self) -> Position:
        if self._pipeline.position is None:
            raise StateError(
                "expected a dataset in the order of `seed`, whose position is known",
                where=f"{self!r}",
                hint="leave out bucket_fn, shuffle_files, host='service', deterministic=False"
                " and settings of `read`",
            )
        return self._pipeline.position

    @property
    def remaining(self) -> int | None:
        """Batches left in the current pass, or in the next one before it starts; None: no end."""
        return self._known_position().remaining

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """The position after the last batch that a Python loop took, as values that fit into JSON.

        Args:
            batches: Number of batches taken since the iteration started. Needed if the graph
                iterates, as in `model.fit`, since it does not count batches.
        """
        return self._known_position().state_dict(batches)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Start the next iteration at the position of a state; StateError if it does not fit.

        With `seed=None` the seed is that of the state from then on. Datasets that were derived
        from this one before, by `map` for example, must be made again.
        """
        pipeline, position = self._pipeline, self._known_position()
        given: Any = state
        seed = given.get("seed") if isinstance(given, Mapping) else None
        if self._remake is not None and type(seed) is int and seed >= 0 and seed != position.seed:
            pipeline = self._remake(seed)
            assert pipeline.position is not None
            position = pipeline.position
        position.load_state_dict(state)
        self._pipeline = pipeline
        # Without a fixed number of elements, since the next pass may be the rest of one.
        self._made = self._pipeline.make(False)
        super().__init__(tf.data.experimental.to_variant(self._made))

    def __repr__(self) -> str:
        kind, description = type(self._made).__name__, self._pipeline.description
        return f"<datum to_tf {description}; {kind} element_spec={self.element_spec}>"

    __str__ = __repr__


class _CountedIterator(_Iterator):  # type: ignore[misc]
    """The iterator of a dataset, which counts its batches and saves only their number."""

    def __init__(self, dataset: DatumDataset, find_position: Callable[[], Position]) -> None:
        self._owner = dataset
        self._find_position = find_position
        self._position = find_position()
        self._returned = self._position.iterate()
        super().__init__(dataset)

    def __next__(self) -> Any:
        try:
            element = super().__next__()
        except StopIteration:
            self._position.end(self._returned)
            raise
        if tf.executing_eagerly():
            self._returned.batches += 1
        return element

    def get_next(self) -> Any:
        """Return the next element; raise tf.errors.OutOfRangeError at the end."""
        try:
            return self.__next__()
        except StopIteration:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence") from None

    def _serialize_to_tensors(self) -> dict[str, Any]:
        return {"_STATE": tf.constant(json.dumps(self._position.state_dict()))}

    def _restore_from_tensors(self, restored_tensors: dict[str, Any]) -> list[Any]:
        state = np.asarray(restored_tensors["_STATE"]).item()
        self._owner.load_state_dict(json.loads(state))
        self._position = self._find_position()
        self._returned = self._position.iterate()
        self._create_iterator(self._owner)
        return []


# Position.


@dataclass(slots=True)
class _Count:
    """Number of batches that an iterator has returned."""

    batches: int = 0


class Position:
    """The position of a dataset, counted by its Python iterator or given by the program.

    Args:
        stream: The records of each batch.
        passes: The start of the current pass and of the next one.
        identity: The values that a state must agree with.
        name: Name of the split, for messages.
        echo: How often each batch is repeated.
    """

    def __init__(
        self,
        stream: Stream,
        passes: Passes,
        identity: Mapping[str, Any],
        *,
        name: str,
        echo: int = 1,
    ) -> None:
        self._stream = stream
        self._passes = passes
        self._identity = identity
        self._where = f"split {name!r}"
        self._echo = echo
        self._count = _Count()

    @property
    def seed(self) -> int:
        """The seed of the order."""
        return int(self._identity["seed"])

    # Counting.

    def iterate(self) -> _Count:
        """Register a new iterator, and return the counter of its batches."""
        begun, following = self._passes.get()
        returned = self._count.batches
        if begun is not None and returned and self._stream.epochs is None:
            last = self._stream.after(begun, self._in_stream(begun, returned - 1))
            following = self._stream.next_pass(last)
        self._passes.set(None, following)
        self._count = _Count()
        return self._count

    def end(self, count: _Count) -> None:
        """Register that an iterator is exhausted."""
        if count is self._count:
            self._passes.set(None, self._passes.get()[1])
            self._count = _Count()

    def _in_stream(self, start: Place, returned: int) -> int:
        """Batches that were returned, as a number of batches of all hosts together."""
        returned //= self._echo
        if not _lacks_last(self._stream):
            return returned
        first = batches_per_epoch(self._stream, start.position)
        each = batches_per_epoch(self._stream)
        if returned < first or not each:
            return returned
        epochs, rest = divmod(returned - first, each)
        return first + 1 + epochs * (each + 1) + rest

    def place(self, batches: int | None = None) -> Place:
        """The place after the last batch, or after this many batches of the current pass."""
        begun, following = self._passes.get()
        start = following if begun is None else begun
        returned = self._count.batches if batches is None else batches
        if begun is None and batches is None:
            return start
        return self._stream.reached(start, self._in_stream(start, returned))

    @property
    def remaining(self) -> int | None:
        """Batches left in the current pass, or in the next one before it starts; None: no end."""
        place, epochs = self.place(), self._stream.epochs
        if epochs is None:
            return None
        more = (epochs - 1 - place.epoch % epochs) * batches_per_epoch(self._stream)
        return (batches_per_epoch(self._stream, place.position) + more) * self._echo

    # Saving.

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """The position as plain values that fit into JSON."""
        if batches is not None:
            batches = check_count("batches", batches, least=0)
        return to_state(self._identity, PassProgress(self.place(batches)))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Start the next pass at the position of a state; StateError if it does not fit."""
        progress = check_state(
            state,
            self._identity,
            records=self._stream.order.records,
            worker=(0, 1),
            where=self._where,
        )
        if progress.batches:
            raise StateError(
                "expected the state of a whole host, got a worker's", where=self._where
            )
        self._passes.set(None, progress.start)
        self._count = _Count()


def batches_per_epoch(stream: Stream, position: int = 0) -> int:
    """Number of batches of an epoch from a position on, without empty ones."""
    place = Place(0, position)
    count = replace(stream, epochs=1).count(place) or 0
    return count - (1 if count and _lacks_last(stream) else 0)


def _lacks_last(stream: Stream) -> bool:
    """Whether the last batch of an epoch has no record for this host."""
    rest = stream.order.records % stream.global_batch
    index, hosts = stream.host
    is_empty = rest * (index + 1) // hosts == rest * index // hosts
    return bool(stream.remainder == "keep" and rest and is_empty)


# Passes: the starts of iterations, kept by whatever starts them.


class Passes(Protocol):
    """The start of the current pass and of the next one."""

    def get(self) -> tuple[Place | None, Place]:
        """The start of the current pass, None without one; and the start of the next."""

    def set(self, begun: Place | None, following: Place) -> None:
        """Replace both."""


class PythonPasses:
    """The passes of a dataset that Python feeds: each iterator calls `begin`.

    Args:
        stream: Computes where the pass after another one starts.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._begun: Place | None = None
        self._following = Place()

    def get(self) -> tuple[Place | None, Place]:
        """The start of the current pass, None without one; and the start of the next."""
        with self._lock:
            return self._begun, self._following

    def set(self, begun: Place | None, following: Place) -> None:
        """Replace both."""
        with self._lock:
            self._begun, self._following = begun, following

    def begin(self) -> Place:
        """Start the next pass."""
        with self._lock:
            self._begun = self._following
            self._following = self._stream.next_pass(self._begun)
            return self._begun


class GraphPasses:
    """The passes of a dataset that start within the graph, whatever iterates over it.

    They are kept in a TensorFlow variable that is identified by its name alone: a graph that runs
    in another process creates its own variable there, and starts with the first epoch.

    Args:
        stream: Defines how many epochs a pass has.
    """

    def __init__(self, stream: Stream) -> None:
        self._epochs = stream.epochs
        self._name = f"datum-passes-{secrets.token_hex(8)}"

    def _handle(self) -> Any:
        return tf.raw_ops.VarHandleOp(
            dtype=tf.int64, shape=[5], shared_name=self._name, container=""
        )

    def _read(self, handle: Any) -> Any:
        return tf.cond(
            tf.raw_ops.VarIsInitializedOp(resource=handle),
            lambda: tf.ensure_shape(tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64), 5),
            lambda: tf.zeros([5], tf.int64),
        )

    def begin(self) -> Any:
        """Start the next pass, and return a tensor of its epoch and of the position in it."""
        handle = self._handle()
        place = self._read(handle)[3:]
        epoch = place[0]
        more = 1 if self._epochs is None else self._epochs - epoch % self._epochs
        following = tf.stack([epoch + more, tf.zeros([], tf.int64)])
        state = tf.concat([tf.ones([1], tf.int64), place, following], 0)
        assigned = tf.raw_ops.AssignVariableOp(resource=handle, value=state)
        with tf.control_dependencies([assigned] if assigned is not None else []):
            return tf.identity(place)

    def get(self) -> tuple[Place | None, Place]:
        """The start of the current pass, None without one; and the start of the next."""
        with tf.device("CPU:0"):
            has_begun, *places = self._read(self._handle()).numpy().tolist()
        return Place(*places[:2]) if has_begun else None, Place(*places[2:])

    def set(self, begun: Place | None, following: Place) -> None:
        """Replace both."""
        held = begun or Place()
        state = [int(begun is not None), held.epoch, held.position]
        state += [following.epoch, following.position]
        with tf.device("CPU:0"):
            value = tf.constant(state, tf.int64)
            tf.raw_ops.AssignVariableOp(resource=self._handle(), value=value)
