"""Batches as dicts of `jax.Array`; `Ragged` and `Sparse` go through `jit` once this is imported."""

from datum.adapters.jax.columns import to_bcoo, to_padded
from datum.adapters.jax.loader import JaxLoader, make_loader

__all__ = ["JaxLoader", "make_loader", "to_bcoo", "to_padded"]
