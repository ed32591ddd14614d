"""Where a pipeline keeps what it read: in memory, or in files that nothing else is taken for."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from datum.adapters.tensorflow.plan import Plan
from datum.reading import Split
from datum.schema import Schema

__all__ = ["Cache"]

DIGEST_HEX = 12  # as many digits tell apart more caches than anyone keeps


class Cache:
    """The cache of one pipeline.

    tf.data takes any files of the name given for its own. So the name of ours ends with a digest of
    all that decides what is kept: the shards, the records of them, the features, and the form.

    Args:
        where: True for memory, or what the names of the files begin with.
        split: whose records are kept.
        schema: the features that are read.
        plan: how they are read.
    """

    def __init__(
        self, where: bool | str | os.PathLike[str], split: Split, schema: Schema, plan: Plan
    ) -> None:
        self._where = where
        self._kept = [
            [(r.shard.name, r.shard.bytes, r.shard.crc32c, r.start, r.stop) for r in split.runs],
            str(split.shards.folder.absolute()),
            schema.to_json(),
            [(b.path, b.first, b.records) for b in plan.table.blocks],
        ]

    def keep(self, dataset: Any, *form: Any) -> Any:
        """The dataset, read once and then kept; `form` tells what else its elements depend on."""
        if isinstance(self._where, bool):
            return dataset.cache()
        path = Path(self._where).expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = json.dumps([self._kept, form, str(dataset.element_spec)], default=str)
        digest = hashlib.sha256(kept.encode()).hexdigest()[:DIGEST_HEX]
        return dataset.cache(f"{path}-{digest}")
