"""The loaders of each framework as contenders: with all threads, as a program has them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from datum._optional import require
from datum.loading import Loader, LoadOptions
from datum.loading.ordered import order_split
from datum.measuring.sample import Sample
from datum.measuring.stages import batches_of
from datum.measuring.timing import Contender

__all__ = ["Entry", "Settings", "loader_entries"]

WORKER_TIMEOUT_S = 60  # a fork beside threads of others may hang
_PURPOSE = "measuring it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the loaders are asked for.

    Attributes:
        options: of all of them.
        metadata: what is known of the features beside the schema.
        workers: of a DataLoader.
        worker_epochs: how many epochs each pass of one has; starting a pass takes it a while.
    """

    options: LoadOptions
    metadata: Any
    workers: int = 2
    worker_epochs: int = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A loader that may be measured.

    Attributes:
        framework: whose arrays it gives.
        name: of the loader.
        call: how one gets it.
        make: makes it a contender; raises what is in the way of that.
    """

    framework: str
    name: str
    call: str
    make: Callable[[], Contender]


def loader_entries(framework: str, sample: Sample, settings: Settings) -> Iterator[Entry]:
    """What there is to measure of a framework."""
    if framework == "numpy":
        yield Entry("numpy", "to_numpy", "ds.to_numpy(...)", lambda: _numpy(sample, settings))
    elif framework == "torch":
        yield Entry("torch", "to_torch", "ds.to_torch(...)", lambda: _torch(sample, settings))
        call = f"DataLoader(ds.to_torch(...), batch_size=None, num_workers={settings.workers})"
        yield Entry("torch", "DataLoader", call, lambda: _data_loader(sample, settings))
    elif framework == "jax":
        yield Entry("jax", "to_jax", "ds.to_jax(...)", lambda: _jax(sample, settings))
    else:
        for engine in ("native", "graph"):
            make = functools.partial(_tensorflow, sample, settings, engine)
            yield Entry("tf", f"to_tf {engine}", f'ds.to_tf(..., engine="{engine}")', make)
        call = "TFRecordDataset, interleave, shuffle, batch, parse_example"
        yield Entry("tf", "tf.data by hand", call, lambda: _tensorflow(sample, settings, None))


def _contender(
    name: str,
    sample: Sample,
    settings: Settings,
    make: Callable[[LoadOptions], Iterable[Any]],
) -> Contender:
    """Goes through all epochs of a turn without a stop."""
    options = settings.options

    @functools.cache
    def run(passes: int) -> Iterable[Any]:
        return make(replace(options, epochs=passes))

    return Contender(name, run, batches_of(sample.records, options.plan_records))


def _numpy(sample: Sample, settings: Settings) -> Contender:
    split = sample.split
    return _contender("to_numpy", sample, settings, lambda o: Loader(order_split(split, o), o))


def _torch(sample: Sample, settings: Settings) -> Contender:
    from datum.frameworks.torch import make_loader

    split = sample.split
    return _contender("to_torch", sample, settings, lambda o: make_loader(order_split(split, o), o))


def _jax(sample: Sample, settings: Settings) -> Contender:
    from datum.frameworks.jax import make_loader

    jax = require("jax", purpose=_PURPOSE)
    split = sample.split
    made = _contender("to_jax", sample, settings, lambda o: make_loader(order_split(split, o), o))
    # Arrays are promises until somebody waits for them.
    return replace(made, run=lambda passes: map(jax.block_until_ready, made.run(passes)))


def _data_loader(sample: Sample, settings: Settings) -> Contender:
    """Workers that stay from one pass to the next: no turn starts them."""
    from datum.frameworks.torch import make_loader

    torch = require("torch", purpose=_PURPOSE)
    epochs = settings.worker_epochs
    options = replace(settings.options, epochs=epochs)
    loader = torch.utils.data.DataLoader(
        make_loader(order_split(sample.split, options), options),
        batch_size=None,
        num_workers=settings.workers,
        persistent_workers=True,
        multiprocessing_context=_start_method(),
        timeout=WORKER_TIMEOUT_S,
    )

    def run(passes: int) -> Iterator[Any]:
        for _ in range(passes):
            yield from loader

    batches = epochs * batches_of(sample.records, options.plan_records)
    return Contender("DataLoader", run, batches, epochs=epochs)


def _start_method() -> str | None:
    """Forks, where PyTorch itself makes some; None for what it does elsewhere.

    Other ways to start a process run the user's program anew, up to where it asks whether it is
    the main one, and not every program that measures something does.
    """
    return "fork" if sys.platform == "linux" else None


def _tensorflow(sample: Sample, settings: Settings, engine: str | None) -> Contender:
    from datum.measuring import tensorflow_pipelines as pipelines

    options = settings.options
    if engine is None:
        name, dataset = "tf.data by hand", pipelines.make_by_hand(sample, options)
    else:
        name = f"to_tf {engine}"
        dataset = pipelines.make_to_tf(sample, options, engine, settings.metadata)

    batches = batches_of(sample.records, options.plan_records)
    # TensorFlow optimizes its graph at the start of each pass; the first epoch takes that.
    return Contender(name, lambda passes: dataset.repeat(passes + 1), batches, lead=batches)
