"""Files of records into batches of columns, several ahead of the reader."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from datum.errors import Damage, DatumError
from datum.format.file import RecordFile, Recovery, check_recovery
from datum.format.parse import Parser
from datum.format.records import Records
from datum.format.threads import thread_count
from datum.schema import Feature, Schema

__all__ = ["BatchReader", "read_batches"]


def read_batches(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    schema: Schema | Mapping[str, Feature],
    *,
    batch_size: int = 1024,
    columns: Iterable[str] | None = None,
    threads: int | None = None,
    drop_remainder: bool = False,
    check_crc: bool = True,
    recovery: Recovery = "strict",
) -> BatchReader:
    """Read files one after the other into batches of `batch_size` records.

    Each batch is what `parse` returns. Batches are made by `threads` (by default one for each core,
    the caller's among them) ahead of the reader; content and order do not depend on how many.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    schema = schema if isinstance(schema, Schema) else Schema(schema)
    if columns is not None:
        schema = schema.select(columns)
    if batch_size < 1:
        raise ValueError(f"expected `batch_size` of 1 or more, got {batch_size}")
    return BatchReader(
        paths=[os.fspath(path) for path in paths],
        parser=Parser(schema),
        batch_size=batch_size,
        threads=thread_count(threads),
        drop_remainder=drop_remainder,
        check_crc=check_crc,
        recovery=check_recovery(recovery),
    )


class BatchReader:
    """An iterable of batches; each iteration reads the files anew and fills `damage`."""

    def __init__(
        self,
        *,
        paths: list[str],
        parser: Parser,
        batch_size: int,
        threads: int,
        drop_remainder: bool,
        check_crc: bool,
        recovery: Recovery,
    ) -> None:
        self.paths = paths
        self.damage: list[Damage] = []
        self._parser = parser
        self._batch_size = batch_size
        self._threads = threads
        self._drop_remainder = drop_remainder
        self._check_crc = check_crc
        self._recovery: Recovery = recovery

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.damage = []
        runs = self._runs()
        if self._threads == 1:
            return (self._parser.parse(run, threads=1) for run in runs)
        return self._parse_ahead(runs)

    def _parse_ahead(self, runs: Iterator[Records]) -> Iterator[dict[str, Any]]:
        """Keep every thread busy and one batch more ready, in order.

        The caller's own thread counts: it finds the records and checks their CRCs.
        """
        with ThreadPoolExecutor(self._threads - 1, "datum-parse") as pool:
            pending: deque[Future[dict[str, Any]]] = deque()
            error: DatumError | None = None
            try:
                while True:
                    try:
                        run = next(runs, None)
                    except DatumError as found:  # raised once what came before it is handed out
                        run, error = None, found
                    if run is None:
                        break
                    pending.append(pool.submit(self._parser.parse, run, threads=1))
                    if len(pending) > self._threads + 1:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
                if error is not None:
                    raise error
            finally:
                for future in pending:
                    future.cancel()

    def _runs(self) -> Iterator[Records]:
        """Runs of exactly `batch_size` records, over the ends of files."""
        held: list[Records] = []

        def missing() -> int:
            return self._batch_size - sum(map(len, held))

        for path in self.paths:
            with RecordFile(path, check_crc=self._check_crc, recovery=self._recovery) as file:
                for records in file.runs(missing):
                    held.append(records)
                    if not missing():
                        yield Records.join(held)
                        held.clear()
                self.damage += file.damage
        if held and not self._drop_remainder:
            yield Records.join(held)
