"""Datasets as `tf.data`."""

__all__: list[str] = []
