"""Serialized records into tensors, by ops of the TensorFlow graph alone."""

from __future__ import annotations

from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.assembly import assemble
from datum.adapters.tensorflow.keys import Key
from datum.adapters.tensorflow.stored import StoredReader
from datum.errors import SchemaError
from datum.format.layout import check_keys, lower, stand_in
from datum.loading.options import present_name
from datum.schema import Schema

__all__ = ["GraphParser"]

tf: Any = require("tensorflow", purpose="`to_tf`")


class GraphParser:
    """A schema made ready for parsing in the graph: in `tf.data`, in a tf.function, or eagerly.

    Columns are tensors of the feature's dtype, times of int64; a tf.RaggedTensor for features of
    variable dimensions, a tf.SparseTensor for sparse ones. Images are strings, still encoded. A
    record that lacks an optional feature has zeros, empty strings or no items in its column, and
    False in the column of `present_name`.

    Records that lack a required list are refused, and such that have an optional number without
    its value. To find them, records with an empty list or without the number are parsed once more,
    unless `is_trusted` says that there are none, as among those that Datum wrote.

    >>> from datum.format import encode
    >>> from datum.schema import Feature
    >>> schema = Schema({"x": Feature("uint8"), "words": Feature("str", (None,))})
    >>> records = list(encode([{"x": 1, "words": ["a"]}, {"x": 2, "words": []}], schema))
    >>> batch = GraphParser(schema).parse(tf.constant(records))
    >>> batch["x"].numpy(), batch["words"].to_list()
    (array([1, 2], dtype=uint8), [[b'a'], []])
    """

    def __init__(self, schema: Schema, *, is_trusted: bool = False) -> None:
        check_keys(schema)
        for name, feature in schema.items():
            beside = present_name(name, feature)
            if beside in schema:
                raise SchemaError(
                    f"feature {name!r} is optional, so {beside!r} tells which records have it;"
                    " there is a feature of that name\n"
                    f"hint: give {name!r} a default, or rename one of them",
                    feature=name,
                )
        self.schema = schema
        self._is_trusted = is_trusted
        self._keys = {
            name: [Key(column, stand_in(feature)) for column in lower(name, feature)]
            for name, feature in schema.items()
        }

    def parse(self, serialized: Any) -> dict[str, Any]:
        """The columns of records, given as a string tensor of one dimension, by their names.

        A record that does not fit the schema is a tf.errors.InvalidArgumentError that names the
        feature. Unlike the native parser, this one takes text that is not UTF-8.
        """
        serialized = tf.convert_to_tensor(serialized, tf.string)
        if serialized.shape.rank != 1:
            raise ValueError(f"expected records in one dimension, got {serialized.shape}")
        reader = StoredReader(serialized, self._is_trusted)
        found = reader.read([key for keys in self._keys.values() for key in keys])
        batch = {}
        for name, feature in self.schema.items():
            parts = [found[key.name, feature.sequence] for key in self._keys[name]]
            batch[name] = assemble(name, self._keys[name], parts, serialized)
            beside = present_name(name, feature)
            if beside is not None:
                batch[beside] = parts[0].present
        return batch
