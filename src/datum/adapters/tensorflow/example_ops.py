"""The two ops that parse serialized messages in bulk, as far as they are needed here.

They are called bare: `tf.io` takes neither an empty key nor a shape without values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from datum._optional import require

__all__ = ["DenseKey", "parse_examples", "parse_steps", "refuse_missing_steps"]

tf: Any = require("tensorflow", purpose="`to_tf`")


class DenseKey(NamedTuple):
    """A key that holds `shape` values in every record, or else gets `default`.

    A `default` that is the type of the values says that the key must be there.
    """

    key: str
    shape: tuple[int, ...]
    default: Any


def parse_examples(
    serialized: Any, dense: Sequence[DenseKey] = (), ragged: Sequence[tuple[str, Any]] = ()
) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """The values of keys of Examples, or of the context of SequenceExamples.

    For `dense` tensors of a row for each record; for `ragged`, pairs of key and type, flat values
    and row splits. A key that is missing among the latter is as good as empty.
    """
    types = {default for _, _, default in dense if isinstance(default, tf.DType)}
    none = {dtype: tf.zeros([0], dtype) for dtype in types}  # one for all: each is an operation
    found = tf.raw_ops.ParseExampleV2(
        serialized=serialized,
        names=[],
        sparse_keys=[],
        dense_keys=[key for key, _, _ in dense],
        ragged_keys=[key for key, _ in ragged],
        dense_defaults=[
            none[default] if isinstance(default, tf.DType) else default for _, _, default in dense
        ],
        num_sparse=0,
        sparse_types=[],
        ragged_value_types=[dtype for _, dtype in ragged],
        ragged_split_types=[tf.int64] * len(ragged),
        dense_shapes=[shape for _, shape, _ in dense],
    )
    pairs = zip(found.ragged_values, found.ragged_row_splits, strict=True)
    return list(found.dense_values), list(pairs)


def parse_steps(serialized: Any, keys: Sequence[tuple[str, Any]]) -> list[tuple[Any, Any, Any]]:
    """Of feature lists, given as pairs of key and type: flat values, splits of steps, of values.

    A list that is missing is as good as empty.
    """
    found = _parse_feature_lists(serialized, ragged=keys)
    return list(
        zip(
            found.feature_list_ragged_values,
            found.feature_list_ragged_outer_splits,
            found.feature_list_ragged_inner_splits,
            strict=True,
        )
    )


def refuse_missing_steps(serialized: Any, key: str, dtype: Any) -> Any:
    """How many records there are; an error that names the key if one of them lacks it.

    None of them may have a step under it.
    """
    found = _parse_feature_lists(serialized, dense=[(key, dtype)])
    return tf.shape(found.feature_list_dense_lengths[0])[0]


def _parse_feature_lists(
    serialized: Any,
    *,
    dense: Sequence[tuple[str, Any]] = (),
    ragged: Sequence[tuple[str, Any]] = (),
) -> Any:
    return tf.raw_ops.ParseSequenceExampleV2(
        serialized=serialized,
        debug_name=[],
        context_sparse_keys=[],
        context_dense_keys=[],
        context_ragged_keys=[],
        feature_list_sparse_keys=[],
        feature_list_dense_keys=[key for key, _ in dense],
        feature_list_ragged_keys=[key for key, _ in ragged],
        feature_list_dense_missing_assumed_empty=[False] * len(dense),
        context_dense_defaults=[],
        Ncontext_sparse=0,
        context_sparse_types=[],
        context_ragged_value_types=[],
        context_ragged_split_types=[],
        context_dense_shapes=[],
        Nfeature_list_sparse=0,
        Nfeature_list_dense=len(dense),
        feature_list_dense_types=[dtype for _, dtype in dense],
        feature_list_sparse_types=[],
        feature_list_ragged_value_types=[dtype for _, dtype in ragged],
        feature_list_ragged_split_types=[tf.int64] * len(ragged),
        feature_list_dense_shapes=[()] * len(dense),
    )
