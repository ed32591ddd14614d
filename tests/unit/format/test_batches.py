import re
import threading

import numpy as np
import pytest

from datum import CorruptRecordError, Feature, SchemaError
from datum.format import RecordWriter, encode, read_batches

SCHEMA = {"x": Feature("int64"), "name": Feature("str"), "tags": Feature("int64", (None,))}
FILES = 3
EACH = 10
THREADS = [1, 2, 5]


def rows(first: int, last: int) -> list[dict]:
    return [{"x": i, "name": f"row {i}", "tags": [i] * (i % 3)} for i in range(first, last)]


@pytest.fixture
def paths(tmp_path):
    """Three files of ten records each."""
    found = []
    for k in range(FILES):
        found.append(tmp_path / f"{k}.tfrecord")
        found[-1].write_bytes(encode(rows(k * EACH, (k + 1) * EACH), SCHEMA).to_bytes())
    return found


def damage(path, record: int, at: int = 14) -> int:
    """Flip a bit in a record, and tell where it starts."""
    k = int(path.stem)
    offset = int(encode(rows(k * EACH, (k + 1) * EACH), SCHEMA).offsets[record])
    data = bytearray(path.read_bytes())
    data[offset + at] ^= 1
    path.write_bytes(data)
    return offset


def numbers(reader) -> list[list[int]]:
    return [batch["x"].tolist() for batch in reader]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("batch_size", [1, 3, 4, 10, 15, 30, 31, 1000])
def test_batches_go_over_the_ends_of_files(paths, batch_size, threads):
    reader = read_batches(paths, SCHEMA, batch_size=batch_size, threads=threads)
    expected = [list(range(i, min(i + batch_size, 30))) for i in range(0, 30, batch_size)]
    assert numbers(reader) == expected
    assert reader.damage == []


@pytest.mark.parametrize("threads", THREADS)
def test_every_column_is_right(paths, threads):
    for batch in read_batches(paths, SCHEMA, batch_size=7, threads=threads):
        first = batch["x"][0]
        expected = rows(first, first + len(batch["x"]))
        assert list(batch) == list(SCHEMA)
        assert batch["name"].to_list() == [row["name"] for row in expected]
        assert batch["tags"].to_list() == [row["tags"] for row in expected]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(("batch_size", "batches"), [(4, 7), (30, 1), (31, 0), (10, 3)])
def test_the_remainder_can_be_dropped(paths, batch_size, batches, threads):
    reader = read_batches(
        paths, SCHEMA, batch_size=batch_size, threads=threads, drop_remainder=True
    )
    found = numbers(reader)
    assert len(found) == batches
    assert all(len(batch) == batch_size for batch in found)


def test_one_path_need_not_be_a_list(paths):
    assert numbers(read_batches(paths[1], SCHEMA)) == [list(range(10, 20))]
    assert numbers(read_batches(str(paths[1]), SCHEMA)) == [list(range(10, 20))]


def test_paths_may_come_from_a_generator_and_be_read_again(paths):
    reader = read_batches((path for path in paths), SCHEMA, batch_size=30)
    assert numbers(reader) == numbers(reader) == [list(range(30))]
    assert reader.paths == [str(path) for path in paths]


def test_files_are_read_in_the_order_given(paths):
    (batch,) = numbers(read_batches([paths[2], paths[0]], SCHEMA))
    assert batch == [*range(20, 30), *range(10)]


def test_no_files_have_no_batches():
    assert numbers(read_batches([], SCHEMA)) == []


def test_empty_files_add_nothing(paths, tmp_path):
    (tmp_path / "empty").touch()
    paths.insert(1, tmp_path / "empty")
    assert numbers(read_batches(paths, SCHEMA, batch_size=20))[0] == list(range(20))


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_files_mix_with_others(paths, tmp_path, compression):
    with RecordWriter(tmp_path / "packed", compression=compression) as writer:
        writer.write_framed(encode(rows(30, 40), SCHEMA))
    reader = read_batches([*paths, tmp_path / "packed"], SCHEMA, batch_size=16)
    assert [i for batch in numbers(reader) for i in batch] == list(range(40))


def test_only_the_columns_asked_for_are_read(paths):
    (batch,) = read_batches(paths, SCHEMA, columns=["tags", "x"])
    assert list(batch) == ["tags", "x"]
    (batch,) = read_batches(paths, SCHEMA, columns=(name for name in ["name"]))
    assert list(batch) == ["name"]


def test_each_iteration_starts_afresh(paths):
    reader = read_batches(paths, SCHEMA, batch_size=4)
    first, second = iter(reader), iter(reader)
    assert next(first)["x"].tolist() == next(second)["x"].tolist() == [0, 1, 2, 3]
    assert next(first)["x"].tolist() == [4, 5, 6, 7]
    assert len(numbers(reader)) == 8


@pytest.mark.parametrize("threads", THREADS)
def test_an_iteration_may_be_abandoned(paths, threads):
    before = threading.active_count()
    batches = iter(read_batches(paths, SCHEMA, batch_size=1, threads=threads))
    next(batches)
    batches.close()
    assert threading.active_count() == before
    assert list(batches) == []


def test_an_iteration_that_was_never_begun_costs_nothing(paths):
    before = threading.active_count()
    batches = iter(read_batches(paths, SCHEMA, threads=5))
    del batches
    assert threading.active_count() == before


def test_batches_outlive_reader_and_files(paths):
    batches = list(read_batches(paths, SCHEMA, batch_size=8))
    for path in paths:
        path.unlink()
    names = [name for batch in batches for name in batch["name"]]
    assert names == [f"row {i}" for i in range(30)]


@pytest.mark.parametrize("threads", THREADS)
def test_damage_ends_the_reading_after_the_batches_before_it(paths, threads):
    offset = damage(paths[1], 5)
    reader = read_batches(paths, SCHEMA, batch_size=2, threads=threads)
    batches = iter(reader)
    for i in range(7):
        assert next(batches)["x"].tolist() == [2 * i, 2 * i + 1]
    message = f"{paths[1]}: record 5 at byte {offset}: expected a sound record, got damage: payload"
    with pytest.raises(CorruptRecordError, match=f"^{re.escape(message)}"):
        next(batches)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(("at", "kind"), [(14, "payload checksum"), (0, "length checksum")])
def test_damage_in_the_middle_is_stepped_over_and_listed(paths, threads, at, kind):
    offset = damage(paths[1], 5, at)
    reader = read_batches(paths, SCHEMA, batch_size=4, threads=threads, recovery="skip")
    for _ in range(2):
        assert [i for batch in numbers(reader) for i in batch] == [i for i in range(30) if i != 15]
        (found,) = reader.damage
        assert (found.file, found.offset, found.record) == (str(paths[1]), offset, 5)
        assert found.kind == kind


@pytest.mark.parametrize("threads", THREADS)
def test_torn_files_are_read_up_to_their_tails(paths, threads):
    for path in paths:
        path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(CorruptRecordError, match=r"0.tfrecord: record 9 .*torn payload"):
        numbers(read_batches(paths, SCHEMA, threads=threads))
    reader = read_batches(paths, SCHEMA, threads=threads, recovery="tail")
    assert numbers(reader) == [[*range(9), *range(10, 19), *range(20, 29)]]
    assert [found.file for found in reader.damage] == [str(path) for path in paths]
    assert {found.kind for found in reader.damage} == {"torn payload"}


@pytest.mark.parametrize("threads", THREADS)
def test_damage_within_is_an_error_where_only_tails_may_be_torn(paths, threads):
    damage(paths[1], 5)
    with pytest.raises(CorruptRecordError, match=r"1.tfrecord: record 5 .*payload checksum"):
        numbers(read_batches(paths, SCHEMA, threads=threads, recovery="tail"))


def test_checksums_can_be_left_unchecked(paths):
    damage(paths[0], 2, at=-1)  # the checksum of the payload of record 1
    with pytest.raises(CorruptRecordError):
        numbers(read_batches(paths, SCHEMA))
    assert len(numbers(read_batches(paths, SCHEMA, check_crc=False))[0]) == 30


@pytest.mark.parametrize("threads", THREADS)
def test_a_record_that_does_not_fit_is_named_in_its_own_file(paths, threads):
    misfit = encode(rows(0, 3), SCHEMA).to_bytes() + encode([{"x": 1}]).to_bytes()
    paths[1].write_bytes(misfit)
    offset = encode(rows(0, 3), SCHEMA).nbytes
    reader = read_batches(paths, SCHEMA, batch_size=30, threads=threads)
    message = f"{paths[1]}: record 3 at byte {offset}, feature 'name': expected a value, got none"
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}"):
        numbers(reader)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_batches_of_no_records_are_refused(paths, batch_size):
    with pytest.raises(ValueError, match=f"expected `batch_size` of 1 or more, got {batch_size}"):
        read_batches(paths, SCHEMA, batch_size=batch_size)


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_below_one_are_refused(paths, threads):
    with pytest.raises(ValueError, match=f"expected `threads` of 1 or more, got {threads}"):
        read_batches(paths, SCHEMA, threads=threads)


def test_an_unknown_recovery_is_refused_at_once(paths):
    with pytest.raises(ValueError, match="expected `recovery` strict, tail or skip, got 'lazy'"):
        read_batches(paths, SCHEMA, recovery="lazy")


def test_an_unknown_column_is_refused_at_once(paths):
    with pytest.raises(SchemaError, match="got 'nam'\nhint: did you mean 'name'?"):
        read_batches(paths, SCHEMA, columns=["nam"])


def test_a_missing_file_is_a_missing_file(paths, tmp_path):
    with pytest.raises(FileNotFoundError):
        numbers(read_batches([*paths, tmp_path / "missing"], SCHEMA))


def test_many_records_are_the_same_for_any_number_of_threads(tmp_path):
    path = tmp_path / "many.tfrecord"
    count = 20_000
    columns = {"x": np.arange(count), "name": [f"row {i}" for i in range(count)]}
    schema = {"x": SCHEMA["x"], "name": SCHEMA["name"]}
    path.write_bytes(encode(columns, schema).to_bytes())
    for threads in THREADS:
        batches = list(read_batches(path, schema, batch_size=999, threads=threads))
        assert np.array_equal(np.concatenate([b["x"] for b in batches]), columns["x"])
        assert [name for b in batches for name in b["name"]] == columns["name"]
