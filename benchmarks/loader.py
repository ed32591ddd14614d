"""What loads datasets as `tf.data`, by name, and how what it loads is gone through."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.workloads import Workload

HAND_WRITTEN = "tf: interleave, batch, parse_example"
SHUFFLED = "tf: the same, shuffle(8192)"
TFDS = "TFDS: as_dataset, ragged_batch"
DATUM = "datum: to_tf, graph"
DATUM_SHUFFLED = "datum: to_tf, graph, shuffled"
DATUM_OF_TFDS = "datum: to_tf of what TFDS wrote, graph, shuffled"
NATIVE = "datum: to_tf, native"
NATIVE_SHUFFLED = "datum: to_tf, native, shuffled"
AUTO_SHUFFLED = "datum: to_tf, by itself, shuffled"
IN_GRAPH = ", looped in a graph"

# loaded only when needed: measuring the memory of one must not load the others
_MODULES = {
    HAND_WRITTEN: "benchmarks.peers_tf_loading",
    SHUFFLED: "benchmarks.peers_tf_loading",
    TFDS: "benchmarks.peers_tfds_loading",
    DATUM: "benchmarks.datum_loading",
    DATUM_SHUFFLED: "benchmarks.datum_loading",
    DATUM_OF_TFDS: "benchmarks.datum_loading",
    NATIVE: "benchmarks.datum_loading",
    NATIVE_SHUFFLED: "benchmarks.datum_loading",
    AUTO_SHUFFLED: "benchmarks.datum_loading",
}


@dataclass(frozen=True)
class Loading:
    """A loader's name, and the dataset it is given."""

    name: str
    workload: Workload
    folder: Path

    def make(self) -> Any:
        """The `tf.data.Dataset` of batches, built from nothing."""
        module = import_module(_MODULES[self.name.removesuffix(IN_GRAPH)])
        make: Callable[[Workload, Path], Any] = module.LOADERS[self.name.removesuffix(IN_GRAPH)]
        return make(self.workload, self.folder)

    def passes(self) -> Callable[[], int]:
        """A function that goes through everything once and returns the number of records."""
        from benchmarks import peers_tf

        dataset = self.make()
        if self.name.endswith(IN_GRAPH):
            return lambda: peers_tf.count_in_graph(dataset)
        return lambda: sum(peers_tf.length_of(batch) for batch in dataset)

    def first_batch(self) -> int:
        """Builds all anew, takes one batch and returns the number of its records."""
        from benchmarks import peers_tf

        return peers_tf.length_of(next(iter(self.make())))
