"""Whether a reading gave exactly the columns that were written, whatever its order."""

from collections.abc import Sequence

import numpy as np

from benchmarks.workloads import Array, Column, Columns, Lists, Workload


class OutputDiffersError(Exception):
    """A contender's output is not what was written, so its speed means nothing."""


def check_reading(name: str, batches: Sequence[Columns], workload: Workload, rows: range) -> None:
    """Raises unless `batches` hold exactly `rows` of the workload, in any order."""
    wanted = workload.columns()
    if missing := wanted.keys() - batches[0].keys():
        raise OutputDiffersError(f"{name}: no column {', '.join(sorted(missing))}")
    got = {column: _concatenate([batch[column] for batch in batches]) for column in wanted}
    order = np.argsort(_row_numbers(got[workload.row_field]), kind="stable")
    expected_rows = np.arange(rows.start, rows.stop)
    for column in wanted:
        if not _equal(_take(got[column], order), _take(wanted[column], expected_rows)):
            raise OutputDiffersError(f"{name}: column {column!r} of {workload.name} differs")


def take_rows(columns: Columns, rows: Array) -> Columns:
    """The columns of these rows only, in this order."""
    return {name: _take(column, rows) for name, column in columns.items()}


def _concatenate(parts: Sequence[Column]) -> Column:
    lists = [part for part in parts if isinstance(part, Lists)]
    if not lists:
        return np.concatenate([part for part in parts if not isinstance(part, Lists)])
    lengths = np.concatenate([np.diff(part.row_splits) for part in lists])
    return _lists(np.concatenate([part.values for part in lists]), lengths)


def _lists(values: Array, lengths: Array) -> Lists:
    return Lists(values, np.concatenate([[0], np.cumsum(lengths)]))


def _take(column: Column, rows: Array) -> Column:
    if not isinstance(column, Lists):
        return column[rows]
    lengths = np.diff(column.row_splits)[rows]
    taken = _lists(column.values, lengths)
    shift = np.repeat(column.row_splits[rows] - taken.row_splits[:-1], lengths)
    return Lists(column.values[np.arange(len(shift)) + shift], taken.row_splits)


def _row_numbers(column: Column) -> Array:
    return column.values[column.row_splits[:-1]] if isinstance(column, Lists) else column


def _equal(got: Column, wanted: Column) -> bool:
    if isinstance(got, Lists) and isinstance(wanted, Lists):
        return _equal(got.values, wanted.values) and _equal(got.row_splits, wanted.row_splits)
    if isinstance(got, Lists) or isinstance(wanted, Lists):
        return False
    return got.dtype == wanted.dtype and np.array_equal(got, wanted)
