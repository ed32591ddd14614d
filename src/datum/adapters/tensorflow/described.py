"""What `to_tf` gives: a `tf.data.Dataset` that tells how it is made and where it has come to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from datum._optional import require
from datum.adapters.tensorflow.engines import Choice
from datum.adapters.tensorflow.position import Position
from datum.errors import StateError
from datum.loading.checks import check_count

__all__ = ["DatumDataset", "Pipeline"]

tf: Any = require("tensorflow", purpose="`to_tf`")

_Iterator: Any = type(iter(tf.data.Dataset.range(0)))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a dataset is made of.

    Attributes:
        make: makes the dataset; given False, without a promise of how many elements there are.
        choice: the engine that it reads with, and why.
        count: how many batches a pass has; None where only reading them tells.
        position: where it has come to; None where that cannot be told.
    """

    make: Callable[[bool], Any]
    choice: Choice
    count: int | None = None
    position: Position | None = None


class DatumDataset(tf.data.Dataset):  # type: ignore[misc]
    """A dataset like the one it is made of, with a place that can be saved.

    Each iteration is one pass of `epochs` epochs, and goes on with the epochs after those of the
    last one, even if that was broken off. `state_dict` and `load_state_dict` are those of the
    loaders of other frameworks; one state serves all of them.

    Args:
        pipeline: what it is made of.
        remake: makes that with another seed, where this one's was drawn; else None.
    """

    def __init__(
        self, pipeline: Pipeline, *, remake: Callable[[int], Pipeline] | None = None
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
        """How many batches a whole pass has, also if the next one is resumed within it."""
        if self._pipeline.count is None:
            return super().cardinality()
        return tf.constant(self._pipeline.count, tf.int64, name=name)

    def __iter__(self) -> Any:
        if self._pipeline.position is None or not tf.executing_eagerly():
            return super().__iter__()
        return _CountedIterator(self, self._placed)

    # Where it is.

    def _placed(self) -> Position:
        if self._pipeline.position is None:
            raise StateError(
                f"{self!r}: expected a dataset in the order of `seed`, whose place can be told\n"
                "hint: leave out bucket_fn, shuffle_files, host='service', deterministic=False"
                " and settings of `read`"
            )
        return self._pipeline.position

    @property
    def remaining(self) -> int | None:
        """How many batches the pass under way still has, or else the next; None without end."""
        return self._placed().remaining

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """The place after the last batch that a Python loop took, as values that fit into JSON.

        What iterates within the graph, as `model.fit` does, is not counted: `batches`, how many it
        has taken since the iteration began, tells the place then.
        """
        return self._placed().state_dict(batches)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Start the next iteration where a state was taken; StateError if it does not fit.

        With `seed=None` the seed is that of the state from then on. Datasets that were made of
        this one before, by `map` or the like, must be made anew.
        """
        pipeline, position = self._pipeline, self._placed()
        given: Any = state
        seed = given.get("seed") if isinstance(given, Mapping) else None
        if self._remake is not None and isinstance(seed, int) and seed != position.seed:
            pipeline = self._remake(check_count("seed", seed, least=0))
            assert pipeline.position is not None
            position = pipeline.position
        position.load_state_dict(state)
        self._pipeline = pipeline
        self._forget_count()

    def _forget_count(self) -> None:
        """Promise no number of elements any more: the next pass may be the rest of one."""
        self._made = self._pipeline.make(False)
        super().__init__(tf.data.experimental.to_variant(self._made))

    def __repr__(self) -> str:
        choice, kind = self._pipeline.choice, type(self._made).__name__
        engine = f"engine={choice.engine}: {choice.reason}"
        return f"<datum to_tf {engine}; {kind} element_spec={self.element_spec}>"

    __str__ = __repr__


class _CountedIterator(_Iterator):  # type: ignore[misc]
    """The iterator of a dataset, which counts what it gives, and saves only that."""

    def __init__(self, dataset: DatumDataset, find_position: Callable[[], Position]) -> None:
        self._owner = dataset
        self._find_position = find_position
        self._position = find_position()
        self._given = self._position.iterate()
        super().__init__(dataset)

    def __next__(self) -> Any:
        try:
            element = super().__next__()
        except StopIteration:
            self._position.end(self._given)
            raise
        if tf.executing_eagerly():
            self._given.batches += 1
        return element

    def get_next(self) -> Any:
        """The next element; tf.errors.OutOfRangeError at the end."""
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
        self._given = self._position.iterate()
        self._create_iterator(self._owner)
        return []
