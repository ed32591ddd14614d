"""The pipelines that people write by hand, over the files of a dataset."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import datasets, peers_tf
from benchmarks.loader import HAND_WRITTEN, SHUFFLED
from benchmarks.workloads import Workload


def _loader(
    make: Callable[[Workload, Sequence[Path]], Any],
) -> Callable[[Workload, Path], Any]:
    return lambda workload, folder: make(workload, datasets.shards_of(folder))


LOADERS = {HAND_WRITTEN: _loader(peers_tf.hand_written), SHUFFLED: _loader(peers_tf.shuffled)}
