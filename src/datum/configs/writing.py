"""The paper's settings of an export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from datum.configs.settings import CALLABLE, Kind, Settings, list_of, whole

__all__ = ["TFRWriteConfigs"]

_RECORDS = whole("a number of records", least=0)
_NAMES = list_of("a list of names of features", lambda name: isinstance(name, str))
_SPLITS = Kind(
    "a dict of the options, a dict each, of every split",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(name, str) and isinstance(it, Mapping) for name, it in value.items())
    ),
)


@dataclass(kw_only=True, repr=False)
class TFRWriteConfigs(Settings):
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

    generator: Annotated[Any, CALLABLE] = None
    serializer: Annotated[Any, CALLABLE] = None
    sparse_features: Annotated[Sequence[str] | None, _NAMES] = None
    splits: Annotated[Mapping[str, Mapping[str, Any]] | None, _SPLITS] = None
    num_train_examples: Annotated[int | None, _RECORDS] = None
    num_val_examples: Annotated[int | None, _RECORDS] = None
    num_test_examples: Annotated[int | None, _RECORDS] = None
