"""The paper's settings, as attributes of an object."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["TFRWriteConfigs"]


@dataclass(init=False)
class TFRWriteConfigs:
    """What `datum.export.export_to_tfrecord` is to write, and how.

    Every setting is None until it is set, as an attribute or in the constructor. A name that is
    none of these raises AttributeError (TypeError in the constructor) and names the nearest.

    Attributes:
        generator: called with the input path, it gives an object that is called with the keyword
            `split` and the options of the split, and yields `(key, dict)` pairs.
        serializer: called with one dict, it gives a serialized `tf.train.Example`.
        sparse_features: names of features of which only the values that are not zero are written.
        splits: by the name of each split to be written, its options: `num_examples`, and those
            that `export_to_tfrecord` lists for each problem.
        num_train_examples: the `num_examples` of the split `train`.
        num_val_examples: the `num_examples` of the split `val`.
        num_test_examples: the `num_examples` of the split `test`.

    >>> configs = TFRWriteConfigs()
    >>> configs.splits = {"train": {"num_examples": 100}}
    >>> configs.split = {}
    Traceback (most recent call last):
    AttributeError: TFRWriteConfigs has no setting 'split'
    hint: did you mean 'splits'?
    """

    generator: Any
    serializer: Any
    sparse_features: Sequence[str] | None
    splits: Mapping[str, Mapping[str, Any]] | None
    num_train_examples: int | None
    num_val_examples: int | None
    num_test_examples: int | None

    def __init__(
        self,
        *,
        generator: Any = None,
        serializer: Any = None,
        sparse_features: Sequence[str] | None = None,
        splits: Mapping[str, Mapping[str, Any]] | None = None,
        num_train_examples: int | None = None,
        num_val_examples: int | None = None,
        num_test_examples: int | None = None,
        **unknown: Any,  # only to name the nearest right one
    ) -> None:
        for name in unknown:
            raise TypeError(_refusal(name))
        self.generator = generator
        self.serializer = serializer
        self.sparse_features = sparse_features
        self.splits = splits
        self.num_train_examples = num_train_examples
        self.num_val_examples = num_val_examples
        self.num_test_examples = num_test_examples

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _names():
            raise AttributeError(_refusal(name))
        expected = _find_mistake(name, value)
        if value is not None and expected:
            raise TypeError(f"TFRWriteConfigs.{name}: expected {expected}, got {value!r}")
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:  # asked only for what is not there
        raise AttributeError(_refusal(name))


def _names() -> list[str]:
    return [field.name for field in fields(TFRWriteConfigs)]


def _refusal(name: str) -> str:
    near = difflib.get_close_matches(name, _names(), 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_names())}"
    return f"TFRWriteConfigs has no setting {name!r}\nhint: {hint}"


def _find_mistake(name: str, value: Any) -> str | None:
    """What was expected, if `value` is not of that kind."""
    if name in ("generator", "serializer"):
        return None if callable(value) else "something that can be called"
    if name == "splits":
        is_fit = isinstance(value, Mapping) and all(
            isinstance(split, str) and isinstance(options, Mapping)
            for split, options in value.items()
        )
        return None if is_fit else "a dict of the options, a dict each, of every split"
    if name == "sparse_features":
        is_fit = isinstance(value, Sequence) and not isinstance(value, (bytes, str))
        is_fit = is_fit and all(isinstance(feature, str) for feature in value)
        return None if is_fit else "a list of names of features"
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return None if is_count else "a number of records"
