"""Batches of a split, or of a mix, for JAX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from datum._optional import require
from datum.adapters.jax.placing import Placer
from datum.loading import Loader, LoadOptions
from datum.loading.checks import check_known
from datum.loading.options import MASK, present_name
from datum.loading.ordered import Ordered
from datum.loading.padding import mask_owners
from datum.loading.stream import Place
from datum.schema import Schema

__all__ = ["JaxLoader", "make_loader"]

jax: Any = require("jax", purpose="`to_jax`")


def make_loader(ordered: Ordered, options: LoadOptions, *, sharding: Any = None) -> JaxLoader:
    """What `to_jax` gives: batches as dicts of `jax.Array`.

    Args:
        ordered: the records, and their order.
        options: what is asked for.
        sharding: a `jax.sharding.Sharding` or a device for all arrays that have a row for each
            record, or a dict of them by the names of columns.
    """
    return JaxLoader(ordered, options, sharding=sharding)


def find_host() -> tuple[int, int]:
    """Which of the processes of JAX this is."""
    return jax.process_index(), jax.process_count()


class JaxLoader(Loader):
    """Batches of records, made ahead by threads: dicts of `jax.Array`."""

    def __init__(self, ordered: Ordered, options: LoadOptions, *, sharding: Any = None) -> None:
        sharding = _as_shardings(sharding)
        super().__init__(ordered, options, convert=Placer(sharding), find_host=find_host)
        if isinstance(sharding, Mapping) and options.map is None and options.batch_map is None:
            check_known("sharding", sharding, _columns_of(self.schema, options))
        self.sharding = sharding

    def with_records(self, ordered: Ordered) -> JaxLoader:
        """A loader of other records that is like this one in all else."""
        return JaxLoader(ordered, self.options, sharding=self.sharding)

    def __iter__(self) -> Iterator[Any]:
        self._refuse_short_batches()
        return super().__iter__()

    def _refuse_short_batches(self) -> None:
        """A batch that is not full cannot be cut: better told now than at the end of an epoch."""
        shardings = self.sharding if isinstance(self.sharding, Mapping) else {"": self.sharding}
        is_cut = any(one is not None and not one.is_fully_replicated for one in shardings.values())
        stream = self._stream()
        size, short = stream.global_batch, sum(stream.last_batches(Place()))
        if is_cut and short < size:
            raise ValueError(
                f"expected only full batches, of {size} records on all hosts, to cut with"
                f" `sharding`, got {short} records at the end of an epoch\n"
                "hint: remainder='pad', 'wrap' or 'drop'"
            )


def _columns_of(schema: Schema, options: LoadOptions) -> list[str]:
    beside = [present_name(name, feature) for name, feature in schema.items()]
    masks = mask_owners(options.pad, schema)
    return [*schema, *(name for name in beside if name is not None), *masks, MASK]


def _as_shardings(sharding: Any) -> Any:
    if sharding is None:
        return None
    if isinstance(sharding, Mapping):
        return {name: _as_sharding(one) for name, one in sharding.items()}
    return _as_sharding(sharding)


def _as_sharding(sharding: Any) -> Any:
    if isinstance(sharding, jax.sharding.Sharding):
        return sharding
    if isinstance(sharding, jax.Device):
        return jax.sharding.SingleDeviceSharding(sharding)
    raise TypeError(
        "expected `sharding` to be a jax.sharding.Sharding, a device, or a dict of them by name,"
        f" got {sharding!r}"
    )
