"""Mix of several datasets, each with its share of every batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from datum._load.loader import Loader
from datum._load.mix import mix_shares, order_mix
from datum._load.options import LoadKeywords, LoadOptions
from datum._load.stream import Ordered, order_split
from datum._options import check_count, lists_options
from datum._read.split import Split
from datum.dataset import Dataset
from datum.errors import Message

if TYPE_CHECKING:
    from datum._frameworks.jax import JaxLoader
    from datum._frameworks.torch import TorchLoader

__all__ = ["Mix", "mix"]


SomeLoader = TypeVar("SomeLoader", bound=Loader)


@overload
def mix(parts: Mapping[SomeLoader, float], *, seed: int = 0) -> SomeLoader: ...
@overload
def mix(parts: Mapping[Split, float], *, seed: int = 0) -> Mix: ...
@overload
def mix(parts: Mapping[Dataset, float], *, seed: int = 0) -> Mix: ...
@overload
def mix(parts: Mapping[Dataset | Split, float], *, seed: int = 0) -> Mix: ...
def mix(parts: Mapping[Any, float], *, seed: int = 0) -> Any:
    """Mix datasets, splits or loaders record by record, by weight.

    Splits, or datasets for their split "train", are mixed to a `Mix`, whose `to_numpy`, `to_torch`
    and `to_jax` take the options of those of a dataset. Loaders, which must have the same options,
    are mixed to a loader.

    The source of each record depends on `seed` and the position alone. A split that ends starts
    again in the order of its next epoch. An epoch of the mix has as many records as all splits
    together.

    Args:
        parts: Weight of each dataset, split or loader.
        seed: Seed of the order in which they take turns.

    >>> import datum
    >>> for name in ("small", "large"):
    ...     report = datum.write({"x": range(1000)}, name, progress=False)
    >>> small, large = datum.load("small"), datum.load("large")
    >>> both = datum.mix({small["train"]: 0.7, large["train"]: 0.3}, seed=1)
    >>> [len(batch["x"]) for batch in both.to_numpy(batch_size=800)]
    [800, 800, 400]
    """
    check_count("seed", seed, least=0)
    given: Any = parts
    if not isinstance(given, Mapping) or not given:
        raise TypeError(
            Message(
                f"mix: expected a dict of splits and their weights, got {parts!r}",
                hint="datum.mix({a['train']: 0.7, b['train']: 0.3})",
            )
        )
    mix_shares(list(parts.values()))  # raises for an invalid weight
    if all(isinstance(part, Loader) for part in parts):
        return _mix_loaders(parts, seed)
    return Mix({_as_split(part): weight for part, weight in parts.items()}, seed=seed)


def _as_split(part: Any) -> Split:
    if isinstance(part, Dataset):
        return part["train"]
    if not isinstance(part, Split):
        raise TypeError(
            Message(f"mix: expected datasets, splits, or loaders alone, got {type(part).__name__}")
        )
    return part


def _mix_loaders(loaders: Mapping[Loader, float], seed: int) -> Loader:
    first, *others = loaders
    for other in others:
        if type(other) is not type(first) or other.options != first.options:
            raise ValueError(
                Message(
                    "mix: expected loaders of one framework with the same options, got"
                    f" {first!r} and {other!r}",
                    hint="mix the splits, and pass the options to the loader of the mix",
                )
            )
    ordered = [loader.ordered for loader in loaders]
    weights = list(loaders.values())
    return first.with_records(order_mix(ordered, weights, seed=seed, options=first.options))


class Mix:
    """Splits that are read as one, each with its share of every batch.

    Attributes:
        splits: Weight of each split.
        seed: Seed of the order in which the splits take turns.
    """

    def __init__(self, splits: Mapping[Split, float], *, seed: int) -> None:
        self.splits = dict(splits)
        self.seed = seed

    def __len__(self) -> int:
        return sum(map(len, self.splits))

    @lists_options(LoadOptions, keywords=LoadKeywords)
    def to_numpy(self, **options: Unpack[LoadKeywords]) -> Loader:
        """Batches as dicts of NumPy arrays; see `Dataset.to_numpy`.

        Args:
            options: See `datum._load.LoadOptions`.
        """
        chosen = LoadOptions.of(options, caller="to_numpy")
        return Loader(self._ordered(chosen), chosen)

    @lists_options(LoadOptions, keywords=LoadKeywords)
    def to_torch(
        self, *, pin_memory: bool | None = None, **options: Unpack[LoadKeywords]
    ) -> TorchLoader:
        """Batches as dicts of PyTorch tensors; see `Dataset.to_torch`.

        Args:
            pin_memory: Whether tensors are in memory that a GPU copies from by itself.
            options: See `datum._load.LoadOptions`.
        """
        from datum._frameworks.torch import make_loader  # imports PyTorch

        chosen = LoadOptions.of(options, caller="to_torch")
        return make_loader(self._ordered(chosen), chosen, pin_memory=pin_memory)

    @lists_options(LoadOptions, keywords=LoadKeywords)
    def to_jax(self, *, sharding: Any = None, **options: Unpack[LoadKeywords]) -> JaxLoader:
        """Batches as dicts of `jax.Array`; see `Dataset.to_jax`.

        Args:
            sharding: Sharding of all arrays, or a dict by the names of columns.
            options: See `datum._load.LoadOptions`.
        """
        from datum._frameworks.jax import make_loader  # imports JAX

        chosen = LoadOptions.of(options, caller="to_jax")
        return make_loader(self._ordered(chosen), chosen, sharding=sharding)

    def _ordered(self, options: LoadOptions) -> Ordered:
        parts = [order_split(split, options) for split in self.splits]
        return order_mix(parts, list(self.splits.values()), seed=self.seed, options=options)

    def __repr__(self) -> str:
        total = sum(self.splits.values())
        parts = (f"{weight / total:.1%} {split.name!r}" for split, weight in self.splits.items())
        return f"Mix({', '.join(parts)}, {len(self):,} records, seed={self.seed})"
