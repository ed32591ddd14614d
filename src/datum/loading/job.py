"""One batch as work for threads: in pieces, its error kept for the one who takes it."""

from __future__ import annotations

import threading
from dataclasses import replace

from datum.loading.making import BatchBuilder, Finished, Work
from datum.loading.stream import BatchPlan

__all__ = ["BatchJob"]


class BatchJob:
    """One batch. Its pieces may be run by any threads; the last one to end completes it.

    Args:
        work: what is to be done.
        plan: which records the batch has; they are asked for at once.
        piece_records: how many of them make a piece; None where nothing is done to single ones.
    """

    def __init__(self, work: Work, plan: BatchPlan, *, piece_records: int | None) -> None:
        self._work = work
        self._plan = plan
        self._size = piece_records
        self.records = count = len(plan.numbers)
        self.pieces = 1 if piece_records is None else max(1, -(-count // piece_records))
        self._request = work.fetcher.submit(plan.numbers)
        self._lock = threading.RLock()  # garbage collected within it may close the pipeline
        self._left = self.pieces
        # Not an Event: an interrupt within one can leave its lock taken, for ever.
        self._is_done = False
        self._gate = threading.Lock()  # taken until it is done
        self._gate.acquire()
        self._failure: tuple[int, BaseException] | None = None  # of the first piece that failed
        self._cancelled: BaseException | None = None
        self._builder: BatchBuilder | None = None
        self._finished: Finished | None = None

    def run(self, piece: int) -> None:
        """Work on one piece; what goes wrong is kept for `result`."""
        try:
            builder = self._open(piece)
            if builder is not None and self._size is not None:
                start = piece * self._size
                for row in range(start, min(start + self._size, len(builder))):
                    if self._cancelled is not None:
                        self._fail(piece, self._cancelled)
                        break
                    builder.run(row)
        except BaseException as error:  # whatever it is, the one who takes the batch has to know
            self._fail(piece, error)
        with self._lock:
            self._left -= 1
            is_last = not self._left
        if is_last:
            self._finish()

    def _open(self, piece: int) -> BatchBuilder | None:
        """The columns, fetched by whoever comes first; None if an earlier piece has failed."""
        with self._lock:
            if self._failure is not None:
                return self._builder if self._failure[0] > piece else None
            if self._builder is None:
                try:
                    fetched = self._work.fetcher.take(self._request)
                    self._builder = BatchBuilder(self._work, self._plan, self._request, fetched)
                except BaseException as error:
                    self._failure = -1, error
            return self._builder

    def _fail(self, piece: int, error: BaseException) -> None:
        with self._lock:
            if self._failure is None or piece < self._failure[0]:
                self._failure = piece, error

    def _finish(self) -> None:
        if self._failure is None:
            assert self._builder is not None
            try:
                self._finished = self._builder.finish()
            except BaseException as error:
                self._fail(self.pieces, error)
        if self._finished is None or self._finished.batch is not None:
            self._builder = None  # frees the memory before the batch is taken
        self._open_gate()

    def run_all(self) -> None:
        """Do here what is not done yet."""
        for piece in range(self.pieces - self._left, self.pieces):
            self.run(piece)

    def cancel(self, error: BaseException) -> None:
        """Have `result` raise an error if the batch is not ready."""
        self._cancelled = error  # before the lock, which one who fetches the columns may have
        with self._lock:
            if not self._is_done and self._failure is None:
                self._failure = -1, error
        self._open_gate()

    def _open_gate(self) -> None:
        with self._lock:
            if not self._is_done:
                self._is_done = True
                self._gate.release()

    def wait(self) -> None:
        """Wait until the batch is ready, or cancelled."""
        while not self._is_done:
            with self._gate:
                pass

    def result(self) -> Finished:
        """The batch that is ready; raises what went wrong in it. To be called once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            try:
                raise failure[1]
            finally:
                del failure  # its traceback holds this frame
        finished, builder = self._finished, self._builder
        assert finished is not None
        if finished.batch is None:  # here and in order, since it is modelled on those before it
            assert builder is not None
            return replace(finished, batch=builder.empty())
        return finished
