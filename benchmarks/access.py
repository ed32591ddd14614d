"""Records by number, at random: a split of Datum beside ArrayRecord, on the same records."""

from collections.abc import Callable, Iterable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peer_datasets
from benchmarks.equality import OutputDiffersError
from benchmarks.measure import Contender
from benchmarks.peer_datasets import SMALL_FIELDS
from benchmarks.suite import Setting, Suite, faster, speed
from benchmarks.workloads import Array

LIST = "in lists of 1024"
SINGLE = "one by one"
BYTES_LIST = f"ArrayRecord: bytes, {LIST}"
PARSED_LIST = f"ArrayRecord: tf.train.Example parsed, {LIST}"
BYTES_SINGLE = f"ArrayRecord: bytes, {SINGLE}"
PARSED_SINGLE = f"ArrayRecord: tf.train.Example parsed, {SINGLE}"
DATUM_LIST = f"datum: split[numbers], {LIST}"
DATUM_SINGLE = f"datum: split[number], {SINGLE}"
DATUM_COLUMNS = f"datum: split.read(numbers), {LIST}"
LIST_RECORDS = 1024

Rows = Iterable[Any]
Way = Callable[[Any, list[int]], Rows]  # of what was opened, and the numbers to read


def access(setting: Setting) -> Suite:
    """Each record is a dict in the end, but for the lines that say otherwise."""
    records, share = (100_000, 8) if setting.quick else (1_000_000, 1)
    folder = peer_datasets.small_dataset(records, setting.cache)
    file = peer_datasets.array_record(records, setting.cache)
    in_lists = _numbers(records, 256 * LIST_RECORDS // share)
    singly = _numbers(records, 32 * LIST_RECORDS // share)
    few, fewer = in_lists[: len(in_lists) // 8], singly[: len(singly) // 16]  # for slow ones
    of_array_record, of_datum = partial(_open_array_record, file), partial(_open_split, folder)
    contenders = (
        _contender(BYTES_LIST, of_array_record, _bytes_of_list, in_lists),
        _contender(PARSED_LIST, of_array_record, _parsed_list, few),
        _contender(BYTES_SINGLE, of_array_record, _bytes_one_by_one, fewer),
        _contender(PARSED_SINGLE, of_array_record, _parsed_one_by_one, fewer),
        _contender(DATUM_LIST, of_datum, _split_by_list, in_lists),
        _contender(DATUM_SINGLE, of_datum, _split_one_by_one, singly),
        _contender(DATUM_COLUMNS, of_datum, _columns_by_list, in_lists),
    )
    version = f"array_record {metadata.version('array_record')}"
    return Suite(
        name="access",
        title=f"records by number, at random, out of {records:,} small ones ({version})",
        contenders=contenders,
        references=(BYTES_LIST, PARSED_LIST, BYTES_SINGLE, PARSED_SINGLE),
        goals=(
            speed(DATUM_LIST, records_per_s=200_000),
            speed(DATUM_SINGLE, records_per_s=30_000),
            faster(DATUM_LIST, PARSED_LIST, times=1),
            faster(DATUM_SINGLE, PARSED_SINGLE, times=1),
        ),
        check=partial(_check, folder, file, in_lists[: 2 * LIST_RECORDS]),
        has_memory=False,  # of mapped files, all of it
    )


def _numbers(records: int, count: int) -> list[int]:
    numbers: list[int] = np.random.default_rng(5).integers(0, records, count).tolist()
    return numbers


def _contender(
    name: str, open_records: Callable[[], Any], read: Way, numbers: list[int]
) -> Contender:
    def prepare() -> Callable[[], int]:
        opened = open_records()

        def run() -> int:
            return sum(_count(rows) for rows in read(opened, numbers))

        run()  # opens the files
        return run

    return Contender(name, prepare, len(numbers), data_bytes=len(numbers) * _ROW_BYTES)


_ROW_BYTES = sum(8 if field.kind == "int" else 4 for field in SMALL_FIELDS)


def _count(rows: Any) -> int:
    """Of a dict of columns, the length of one; of a dict of values or bytes, 1; else of a list."""
    if isinstance(rows, list):
        return len(rows)
    return len(rows["x"]) if isinstance(rows, dict) and isinstance(rows["x"], np.ndarray) else 1


def _open_array_record(file: Path) -> Any:
    from benchmarks import peers_array_record

    return peers_array_record.open_records(file)


def _open_split(folder: Path) -> Any:
    import datum

    return datum.load(folder)["train"]


def _lists(numbers: list[int]) -> Iterable[list[int]]:
    return (numbers[at : at + LIST_RECORDS] for at in range(0, len(numbers), LIST_RECORDS))


def _bytes_of_list(source: Any, numbers: list[int]) -> Rows:
    return (source.__getitems__(each) for each in _lists(numbers))


def _parsed_list(source: Any, numbers: list[int]) -> Rows:
    from benchmarks.peers_array_record import parse

    return (
        [parse(payload, SMALL_FIELDS) for payload in source.__getitems__(each)]
        for each in _lists(numbers)
    )


def _bytes_one_by_one(source: Any, numbers: list[int]) -> Rows:
    return (source[number] for number in numbers)


def _parsed_one_by_one(source: Any, numbers: list[int]) -> Rows:
    from benchmarks.peers_array_record import parse

    return (parse(source[number], SMALL_FIELDS) for number in numbers)


def _split_by_list(split: Any, numbers: list[int]) -> Rows:
    return (split[each] for each in _lists(numbers))


def _split_one_by_one(split: Any, numbers: list[int]) -> Rows:
    return (split[number] for number in numbers)


def _columns_by_list(split: Any, numbers: list[int]) -> Rows:
    return (split.read(each) for each in _lists(numbers))


def _check(folder: Path, file: Path, numbers: list[int]) -> None:
    """Raise unless each way returns the requested records in order."""
    from benchmarks.peers_array_record import parse

    source, split = _open_array_record(file), _open_split(folder)
    wanted = peer_datasets.small_columns(len(split))
    expected = {name: column[numbers] for name, column in wanted.items()}
    payloads = [payload for rows in _bytes_of_list(source, numbers) for payload in rows]
    columns = list(_columns_by_list(split, numbers))
    got = {
        BYTES_LIST: _joined(parse(payload, SMALL_FIELDS) for payload in payloads),
        PARSED_LIST: _joined(row for rows in _parsed_list(source, numbers) for row in rows),
        BYTES_SINGLE: _joined(
            parse(payload, SMALL_FIELDS) for payload in _bytes_one_by_one(source, numbers)
        ),
        PARSED_SINGLE: _joined(_parsed_one_by_one(source, numbers)),
        DATUM_LIST: _joined(row for rows in _split_by_list(split, numbers) for row in rows),
        DATUM_SINGLE: _joined(_split_one_by_one(split, numbers)),
        DATUM_COLUMNS: {name: np.concatenate([each[name] for each in columns]) for name in wanted},
    }
    for name, result in got.items():
        if not all(np.array_equal(result[each], expected[each]) for each in expected):
            raise OutputDiffersError(f"{name}: the records are not those that were asked for")


def _joined(rows: Iterable[Any]) -> dict[str, Array]:
    listed = list(rows)
    return {name: np.array([row[name] for row in listed]) for name in listed[0]}
