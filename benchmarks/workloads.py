"""The four workloads: their records, and the columns that every reader must return."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

Kind = Literal["float", "int", "bytes"]
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Lists:
    """A ragged column: the lists of all rows end to end, and where each begins."""

    values: Array
    row_splits: Array


Column = Array | Lists
Columns = Mapping[str, Column]


@dataclass(frozen=True)
class Field:
    """One feature of a record: a scalar `()`, a vector `(64,)` or a ragged list `(None,)`."""

    name: str
    kind: Kind
    shape: tuple[int | None, ...] = ()

    @property
    def is_ragged(self) -> bool:
        """Whether rows differ in length."""
        return None in self.shape


@dataclass(frozen=True)
class Workload:
    """Records of one kind, spread over shards in row order.

    Readers interleave and shuffle, so each record carries its row number in `row_field`
    (the first item, when that is a list): sorted by it, any two readings compare.
    """

    name: str
    records: int
    sample_records: int | None  # what the slowest readers are timed on; None is all
    fields: tuple[Field, ...]
    row_field: str
    make: Callable[[int], Columns]
    batch_records: int = 1024
    shards: int = 4

    def columns(self) -> Columns:
        """All rows, as generated: the answer that every reader is checked against."""
        return _generated(self.make, self.records)

    def shard_rows(self, shard: int) -> range:
        """The rows that `shard` holds."""
        size = self.records // self.shards
        return range(shard * size, (shard + 1) * size)


@cache
def _generated(make: Callable[[int], Columns], records: int) -> Columns:
    return make(records)


def _ragged(lengths: Array, values: Array) -> Lists:
    return Lists(values, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


def _words(rng: np.random.Generator, records: int) -> Array:
    """Lower-case ASCII of 8 to 24 letters."""
    letters = rng.integers(97, 123, (records, 24), dtype=np.uint8).tobytes()
    lengths = rng.integers(8, 25, records).tolist()
    words = np.empty(records, dtype=object)
    words[:] = [letters[24 * i : 24 * i + length] for i, length in enumerate(lengths)]
    return words


def _make_tabular(records: int) -> Columns:
    rng = np.random.default_rng(1)
    columns: dict[str, Column] = {
        f"f{i}": rng.standard_normal(records, dtype=np.float32) for i in range(10)
    }
    columns["i0"] = np.arange(records, dtype=np.int64)
    columns["i1"] = rng.integers(-1000, 1000, records)  # negative: ten-byte varints
    for i in range(2, 10):  # from a flag to an id of nine digits
        columns[f"i{i}"] = rng.integers(0, 10**i, records)
    columns["vector"] = rng.standard_normal((records, 64), dtype=np.float32)
    columns["text"] = _words(rng, records)
    lengths = rng.integers(0, 20, records)
    columns["list"] = _ragged(lengths, rng.integers(0, 10_000, int(lengths.sum())))
    return columns


def _make_wide(records: int) -> Columns:
    rng = np.random.default_rng(2)
    columns: dict[str, Column] = {
        f"f{i:03}": rng.standard_normal(records, dtype=np.float32) for i in range(200)
    }
    columns["f000"] = np.arange(records, dtype=np.float32)  # exact below 2**24
    return columns


def _make_tokens(records: int) -> Columns:
    rng = np.random.default_rng(3)
    lengths = rng.integers(512, 2049, records)
    tokens = _ragged(lengths, rng.integers(0, 50_000, int(lengths.sum())))
    tokens.values[tokens.row_splits[:-1]] = np.arange(records)
    return {"tokens": tokens}


IMAGE_BYTES = 100 * 1024


def _make_images(records: int) -> Columns:
    rng = np.random.default_rng(4)
    images = np.empty(records, dtype=object)
    images[:] = [rng.bytes(IMAGE_BYTES) for _ in range(records)]
    return {"image": images, "label": np.arange(records, dtype=np.int64)}


TABULAR_FIELDS = (
    *(Field(f"f{i}", "float") for i in range(10)),
    *(Field(f"i{i}", "int") for i in range(10)),
    Field("vector", "float", (64,)),
    Field("text", "bytes"),
    Field("list", "int", (None,)),
)


def all_workloads(*, quick: bool) -> dict[str, Workload]:
    """The workloads by name, at 110 to 250 MB each, or less when `quick`."""
    share = 8 if quick else 1
    parts = 6 if quick else 10  # fewer when quick, lest starting up is most of it
    wide = tuple(Field(f"f{i:03}", "float") for i in range(200))
    tokens = (Field("tokens", "int", (None,)),)
    images = (Field("image", "bytes"), Field("label", "int"))
    every = (
        Workload(
            "tabular",
            records=200_000 // share,
            sample_records=200_000 // share // parts,
            fields=TABULAR_FIELDS,
            row_field="i0",
            make=_make_tabular,
        ),
        Workload(
            "wide",
            records=32_000 // share,
            sample_records=32_000 // share // parts,
            fields=wide,
            row_field="f000",
            make=_make_wide,
        ),
        Workload(
            "tokens",
            records=40_000 // share,
            sample_records=10_000 // share,
            fields=tokens,
            row_field="tokens",
            make=_make_tokens,
        ),
        Workload(
            "images",
            records=1_200 if quick else 2_400,
            sample_records=None,
            fields=images,
            row_field="label",
            make=_make_images,
            batch_records=128,  # 13 MB; of 1024 it would be 100 MB, more than anybody feeds at once
        ),
    )
    return {workload.name: workload for workload in every}
