"""Conditions that the graph checks while it runs."""

from __future__ import annotations

from typing import Any

from datum._optional import require

__all__ = ["checked"]

tf: Any = require("tensorflow", purpose="`to_tf`")


def checked(value: Any, condition: Any, problem: str) -> Any:
    """The tensor `value`; an InvalidArgumentError of `problem` unless all of `condition` holds.

    What uses the result runs after the check. TensorFlow escapes quotes in `problem`. The bare op
    is used because `tf.debugging` wraps it in a conditional, ten ops for one.
    """
    assertion = tf.raw_ops.Assert(condition=tf.reduce_all(condition), data=[problem])
    with tf.control_dependencies([] if assertion is None else [assertion]):
        return tf.identity(value)
