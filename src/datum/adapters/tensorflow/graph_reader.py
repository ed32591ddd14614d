"""Records read, mixed and parsed by operations of TensorFlow's graph alone."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.batching import densify_single, pad_batches, unbatch
from datum.adapters.tensorflow.hosts import part_of
from datum.adapters.tensorflow.mapping import apply
from datum.adapters.tensorflow.options import TfOptions
from datum.adapters.tensorflow.parsing import GraphParser
from datum.adapters.tensorflow.plan import PARSED_LARGE_RECORDS, PARSED_RECORDS, Plan, make_plan
from datum.adapters.tensorflow.records import read_chunks, refuse_marks, shuffle, shuffle_chunks
from datum.reading import Split
from datum.schema import Schema
from datum.transforms.graph import leave_as_is

__all__ = ["GraphReader"]

tf: Any = require("tensorflow", purpose="`to_tf`")

DIGEST_HEX = 12  # as many digits tell apart more caches than anyone keeps


class GraphReader:
    """Reads the part of a split that belongs to a host.

    Args:
        split: the records of all hosts.
        schema: the features to read.
        options: what is asked for.
        host: the index of this host, and how many there are.

    Attributes:
        asides: none.
        is_full: whether there is no short batch.
        position: None: the order is that of no other reader, and cannot be entered anywhere.
    """

    asides: tuple[str, ...] = ()
    position = None

    def __init__(
        self, split: Split, schema: Schema, options: TfOptions, *, host: tuple[int, int]
    ) -> None:
        if host[1] > 1:
            start, stop = part_of(len(split), host)
            split = split[start:stop]
        self._options = options
        self._plan = make_plan(split, options, is_cached=options.cache is not False)
        self._cache = _Cache(options.cache, split, schema, self._plan)
        parser = GraphParser(schema, is_trusted=split.shards.writer == "datum")
        self._parse = leave_as_is(lambda records: parser.parse(refuse_marks(records)))
        self.is_full = options.drop_remainder
        self._records = self._plan.table.records

    @property
    def batches_per_epoch(self) -> int:
        """How many batches an epoch has, or records if there are none."""
        size, short = self._options.batch_size, 0 if self.is_full else 1
        return self._records if size is None else (self._records + short * (size - 1)) // size

    def batches(self) -> Any:
        """Batches of all epochs, parsed as such: no op runs for each record."""
        plan, options = self._plan, self._options
        chunks = read_chunks(plan.table, plan.reading, self._mixed_at_reading())
        if plan.shuffling is not None:
            if options.cache is not False:
                chunks = self._shuffle_cached(self._cache.keep(chunks, plan.reading.chunk))
            chunks = shuffle_chunks(chunks, plan.shuffling, deterministic=options.is_deterministic)
        chunks = chunks.rebatch(options.batch_size, drop_remainder=options.drop_remainder)
        batches = densify_single(apply(chunks, self._parse, options), options)
        batches = pad_batches(batches, options)
        if options.cache is not False and plan.shuffling is None:
            form = (options.batch_size, options.drop_remainder, options.pad)
            batches = self._cache.keep(batches, *form)
        return batches if options.epochs == 1 else batches.repeat(options.epochs)

    def _mixed_at_reading(self) -> Any:
        return None if self._options.cache is not False else self._plan.shuffling

    def _shuffle_cached(self, chunks: Any) -> Any:
        """Chunks in another order: all of them, if they are in memory anyway."""
        plan, shuffling = self._plan, self._plan.shuffling
        assert shuffling is not None
        count = plan.table.records if self._options.cache is True else shuffling.window
        buffered = -(-count // plan.reading.chunk) + len(plan.table.blocks)  # short ones, too
        seed = shuffling.seed if shuffling.block_seed is None else shuffling.block_seed
        return shuffle(chunks, buffered, seed=seed, reshuffle=shuffling.reshuffle)

    def read(
        self,
        finish: Callable[[Any], Any],
        decode: Callable[..., Any] | None,
        *form: Any,
        is_last: bool = False,
    ) -> Any:
        """The records of all epochs, decoded one by one; see `Reader`."""
        del is_last  # which is all the same here
        made, epochs = finish(self._read(decode, *form)), self._options.epochs
        return made if epochs == 1 else made.repeat(epochs)

    def _read(self, decode: Callable[..., Any] | None, *form: Any) -> Any:
        options, shuffling = self._options, self._plan.shuffling
        records = self._read_parsed()
        records = apply(records, decode, options)
        if options.cache is False:
            return records
        records = self._cache.keep(records, *form)
        if shuffling is None:
            return records
        window = self._plan.table.records if options.cache is True else shuffling.window
        return self._shuffle_records(records, max(window, shuffling.window))

    def _read_parsed(self) -> Any:
        """Parsed records, one by one, mixed unless a cache comes first."""
        plan, shuffling = self._plan, self._mixed_at_reading()
        chunks = read_chunks(plan.table, plan.reading, shuffling)
        if plan.has_large_records:
            if shuffling is not None:
                records = self._shuffle_records(chunks.unbatch(), shuffling.window)
                chunks = records.batch(PARSED_LARGE_RECORDS)
        elif shuffling is not None:
            deterministic = self._options.is_deterministic
            chunks = shuffle_chunks(chunks, shuffling, deterministic=deterministic)
            chunks = chunks.rebatch(PARSED_RECORDS)
        return unbatch(apply(chunks, self._parse, self._options))

    def _shuffle_records(self, records: Any, window: int) -> Any:
        shuffling = self._plan.shuffling
        assert shuffling is not None
        return shuffle(records, window, seed=shuffling.seed, reshuffle=shuffling.reshuffle)


class _Cache:
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
