"""Datasets as batches for TensorFlow, PyTorch and JAX, each in a package or module of its own."""

__all__: list[str] = []
