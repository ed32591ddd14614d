"""A dataset that was written, as its manifest describes it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from datum.format import Compression, Manifest, SplitInfo
from datum.reading.shards import Shards
from datum.reading.split import Split, runs_of
from datum.reading.splits import find_ranges
from datum.reading.summary import summarize
from datum.reading.verify import VerifyReport, verify_shards
from datum.schema import Schema

__all__ = ["Dataset", "load"]


def load(path: str | os.PathLike[str]) -> Dataset:
    """Open the dataset of a folder, or of the manifest in it.

    Only the manifest is read; shards are opened when records are asked for. ManifestError if there
    is none, or if it is not what it should be.

    >>> import datum
    >>> report = datum.write(
    ...     [{"x": 5}, {"x": 6}, {"x": 7}], "numbers", shuffle=False, progress=False
    ... )
    >>> train = datum.load("numbers")["train"]
    >>> len(train), int(train[-1]["x"]), train.read([2, 0])["x"].tolist()
    (3, 7, [7, 5])
    """
    path = Path(path).expanduser()
    manifest = Manifest.load(path)
    return Dataset(path if path.is_dir() else path.parent, manifest)


class Dataset:
    """The splits of a dataset, and what is known of them.

    `ds["train"]` is a split; so are `ds["train[:10%]"]`, `ds["train[-100:]"]`, `ds["train+val"]`
    and `ds["all"]`. Iterating gives the names of the splits.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self._manifest = manifest
        self._shards = Shards(path, manifest.compression)

    @property
    def schema(self) -> Schema:
        """What each record holds."""
        return self._manifest.schema

    @property
    def splits(self) -> Mapping[str, SplitInfo]:
        """How many records and bytes each split has, and in which shards."""
        return self._manifest.splits

    @property
    def metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """What else is known of features, by their names: class names, vocabularies."""
        return self._manifest.metadata

    @property
    def statistics(self) -> Mapping[str, Mapping[str, Any]]:
        """What was counted in each split, by its name."""
        return self._manifest.statistics

    @property
    def compression(self) -> Compression | None:
        """How the shards are compressed."""
        return self._manifest.compression

    def __getitem__(self, split: str) -> Split:
        ranges = find_ranges(split, {name: info.records for name, info in self.splits.items()})
        return Split(split, self.schema, self._shards, runs_of(ranges, self.splits))

    def __iter__(self) -> Iterator[str]:
        return iter(self.splits)

    def __contains__(self, name: object) -> bool:
        return name in self.splits

    def verify(self, *, threads: int | None = None) -> VerifyReport:
        """Read every shard, and compare it with the manifest, with its index, and with its CRCs.

        What is wrong is listed, not raised.
        """
        return verify_shards(self.path, self._manifest, threads=threads)

    def __repr__(self) -> str:
        return summarize(self.path, self._manifest)
