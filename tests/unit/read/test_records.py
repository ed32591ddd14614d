"""Records by number and in order, parsed and as stored."""

import gc
import io
import itertools
import os
import random
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import datum
from datum import Feature, Schema, Sparse
from datum._read import numbered as numbered_module
from datum._read.contents import Contents
from datum._read.copy import (
    PlacedRun,
    Places,
    StoredRecords,
    StoredStream,
    frames_of,
    gather_frames,
    lasting_metadata,
    read_run,
)
from datum._read.local import find_local
from datum._read.shards import RangeBatches, ShardRange, Shards
from datum._read.tables import iterate_rows, single_row
from datum.errors import CorruptRecordError, Damage, SourceError
from datum.format import Index, Parser, RecordFile, ShardInfo, SplitInfo, encode, frame, parse
from datum.sources import IndexedPart, Source, StreamedPart
from tests.unit.read.opened import ALL, opened, parts_of, shard_path, write_parts
from tests.unit.read.written import NUMBERED, numbered, write_dataset, write_numbered
from tests.unit.rewrite.damaged import cut, payloads, shard_of, write_numbers


@pytest.fixture
def parts(tmp_path):
    return write_parts(tmp_path)


# What is read.
@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_records_come_in_the_order_asked_for(parts, threads):
    records = opened(parts, threads)
    wanted = [19, 0, 7, 7, 3, 8, 0]
    taken = records.take(records.submit(np.array(wanted)))
    assert taken.columns["x"].tolist() == wanted
    assert taken.columns["text"].to_list() == [f"record {x}" for x in wanted]
    assert taken.rows is None
    assert taken.damage == ()
    records.close()


def test_an_interrupt_is_not_taken_for_a_wrong_path(parts, monkeypatch):
    class Interrupted(type(Path())):
        def __fspath__(self):
            raise KeyboardInterrupt

    def find_interrupted(*args, **options):
        found = find_local(*args, **options)
        return replace(found, path=Interrupted(found.path), index=Interrupted(found.index))

    monkeypatch.setattr(numbered_module, "find_local", find_interrupted)
    assert opened(parts, 0).read([3])["x"].tolist() == [3]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_tickets_are_taken_in_any_order(parts, threads):
    records = opened(parts, threads)
    rng = random.Random(0)
    asked = {}
    for _ in range(200):
        wanted = [rng.randrange(20) for _ in range(rng.randrange(40))]
        asked[records.submit(wanted)] = wanted
    tickets = list(asked)
    rng.shuffle(tickets)
    for ticket in tickets:
        assert records.take(ticket).columns["x"].tolist() == asked[ticket]
    records.close()


def test_several_threads_of_python_share_one_loader(parts):
    records = opened(parts, 2)
    wrong = []

    def run(seed):
        rng = random.Random(seed)
        for _ in range(200):
            wanted = [rng.randrange(20) for _ in range(8)]
            found = records.read(wanted)["x"].tolist()
            if found != wanted:
                wrong.append((wanted, found))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    records.close()


def test_no_numbers_give_columns_of_no_rows(parts):
    for threads in (0, 1):
        columns = opened(parts, threads).read([])
        assert columns["x"].shape == (0,)
        assert columns["x"].dtype == np.int64
        assert len(columns["text"]) == 0


def test_runs_may_be_parts_of_shards(parts):
    (shards, first), (_, _), (_, last) = parts
    pieces = [(shards, ShardRange(last.shard, 4, 9)), (shards, ShardRange(first.shard, 6, 7))]
    records = opened([*pieces, pieces[0]])
    assert len(records) == 11
    assert records.read(range(11))["x"].tolist() == [12, 13, 14, 15, 16, 6, 12, 13, 14, 15, 16]
    assert records.locate(5) == (str(shard_path(parts)), 6, Index.load(
        Index.path_for(shard_path(parts))).offsets[6])  # fmt: skip


EVERYTHING = Schema(
    {
        "number": Feature("int64"),
        "small": Feature("uint8", (2,)),
        "matrix": Feature("float32", (2, 3)),
        "half": Feature("float16", (2,)),
        "word": Feature("str"),
        "words": Feature("str", (None,)),
        "pair": Feature("bytes", (2,)),
        "ragged": Feature("int64", (None,)),
        "rows": Feature("float32", (None, 2)),
        "nested": Feature("int64", (None, None)),
        "sparse": Feature("float32", (9,), encoding="sparse"),
        "raw": Feature("uint16", (2, 2), encoding="raw"),
        "shaped": Feature("float64", (None, None), encoding="raw"),
        "maybe": Feature("int64", optional=True),
        "maybe_word": Feature("str", optional=True),
        "filled": Feature("float32", default=2.5),
        "when": Feature("datetime64[s]"),
        "flag": Feature("bool"),
        "steps": Feature("int64", (None,), sequence=True),
        "nested_steps": Feature("str", (None, None), sequence=True),
    }
)


def row_of(i):
    rng = np.random.default_rng(i)
    row = {
        "number": i,
        "small": [i % 256, 1],
        "matrix": rng.random((2, 3), np.float32),
        "half": np.array([i, 0.5], np.float16),
        "word": f"ä{i}",
        "words": [f"w{k}" for k in range(i % 4)],
        "pair": [b"\0" * (i % 3), b"\xff"],
        "ragged": list(range(i % 5)),
        "rows": rng.random((i % 3, 2), np.float32),
        "nested": [list(range(k)) for k in range(i % 4)],
        "sparse": datum.Sparse(np.array([[i % 9]]), np.array([1.5], np.float32), (9,)),
        "raw": rng.integers(0, 9, (2, 2), np.uint16),
        "shaped": rng.random((i % 3 + 1, 2)),
        "when": np.datetime64(i, "s"),
        "flag": i % 2 == 0,
        "steps": list(range(i % 6)),
        "nested_steps": [[f"s{k}"] * k for k in range(i % 3)],
    }
    if i % 3:
        row |= {"maybe": i, "maybe_word": f"m{i}"}
    if i % 2:
        row["filled"] = float(i)
    return row


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, datum.Masked):
        assert_same(found.present, expected.present)
        assert_same(found.values, expected.values)
    elif isinstance(expected, datum.Ragged):
        assert_same(found.row_splits, expected.row_splits)
        assert_same(found.values, expected.values)
    elif isinstance(expected, datum.Sparse):
        assert found.dense_shape == expected.dense_shape
        assert_same(found.indices, expected.indices)
        assert_same(found.values, expected.values)
    elif isinstance(expected, np.ndarray) and expected.dtype == object:
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert np.array_equal(found, expected)
    else:
        assert found.shape == expected.shape
        assert found.to_list() == expected.to_list()


@pytest.mark.parametrize("threads", [0, 2])
def test_every_kind_of_column_is_as_reading_in_order_makes_it(tmp_path, threads):
    rows = [[row_of(i) for i in range(30)], [row_of(i) for i in range(30, 50)]]
    manifest = write_dataset(tmp_path, {"train": rows}, EVERYTHING)
    records = opened(parts_of(tmp_path, manifest), threads, schema=EVERYTHING)
    everything = RecordFile(frame([
        payload for path in sorted(tmp_path.glob("*.tfrecord")) for payload in RecordFile(path)
    ]).to_bytes())  # fmt: skip
    for wanted in ([*range(50)], [49, 3, 3, 30, 29], [17], []):
        found = records.read(wanted)
        expected = Parser(EVERYTHING).parse(everything.records(wanted))
        assert list(found) == list(expected)
        for name in expected:
            assert_same(found[name], expected[name])
    records.close()


def test_columns_outlive_what_read_them(parts):
    records = opened(parts)
    columns = records.read(ALL)
    records.close()
    del records
    gc.collect()
    assert columns["text"].to_list() == [f"record {x}" for x in ALL]


def test_columns_are_aligned_for_frameworks_that_adopt_memory(parts):
    for wanted in ([0], ALL, ALL * 1000):
        assert opened(parts, 0).read(wanted)["x"].ctypes.data % 64 == 0


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_shards_are_read_by_number(tmp_path, compression):
    manifest = write_dataset(
        tmp_path, {"train": [numbered(*range(7)), numbered(*range(7, 20))]}, compression=compression
    )
    records = opened(parts_of(tmp_path, manifest))
    assert records.read([19, 0, 8])["x"].tolist() == [19, 0, 8]
    records.close()


def test_foreign_files_are_read_by_number(tmp_path):
    write_dataset(tmp_path, {"train": [numbered(*range(7)), numbered(*range(7, 20))]})
    for path in [*tmp_path.glob("index/*"), *tmp_path.glob("*.json")]:
        path.unlink()
    split = datum.load(sorted(tmp_path.glob("*.tfrecord")), schema=dict(NUMBERED))["train"]
    records = opened([(split.shards, run) for run in split.runs])
    assert records.read([19, 0, 8])["x"].tolist() == [19, 0, 8]
    records.close()


# What is asked wrongly.
@pytest.mark.parametrize("wrong", [[-1], [20], [0, 2**40]])
def test_numbers_outside_are_refused(parts, wrong):
    with pytest.raises(IndexError, match=rf"within 20 records, got {wrong[-1]}"):
        opened(parts).submit(wrong)


@pytest.mark.parametrize("wrong", [[0.5], [[1]], ["a"], 3])
def test_what_is_no_number_is_refused(parts, wrong):
    with pytest.raises(TypeError, match="expected numbers of records"):
        opened(parts).submit(wrong)


def test_a_ticket_is_taken_once(parts):
    for threads in (0, 1):
        records = opened(parts, threads)
        ticket = records.submit([1])
        records.take(ticket)
        for wrong in (ticket, 99):
            with pytest.raises(KeyError, match="expected a ticket"):
                records.take(wrong)


def rows_of(rows, schema):
    batch = parse(encode(rows, schema), schema)
    found = list(iterate_rows(batch, schema, range(len(rows)), where="here"))
    for row, record in zip(rows, found, strict=True):
        alone = single_row(parse(encode([row], schema), schema), schema, 0, where="here")
        assert repr(alone) == repr(record)
        assert [type(value) for value in alone.values()] == [type(v) for v in record.values()]
    return found


@pytest.mark.parametrize(
    ("feature", "value", "kind"),
    [
        (Feature("int64"), 5, np.int64),
        (Feature("uint8"), 255, np.uint8),
        (Feature("bool"), True, np.bool_),
        (Feature("float32"), 0.5, np.float32),
        (Feature("float64"), 1e300, np.float64),
        (Feature("complex64"), 1 + 2j, np.complex64),
        (Feature("str"), "é", str),
        (Feature("bytes"), b"\xff", bytes),
        (Feature("datetime64[us]"), np.datetime64("2020-01-02T03:04:05", "us"), np.datetime64),
    ],
)
def test_a_scalar_comes_back_of_its_type(feature, value, kind):
    (row,) = rows_of([{"x": value}], Schema({"x": feature}))
    assert type(row["x"]) is kind
    assert row["x"] == value


@pytest.mark.parametrize(
    ("feature", "value"),
    [
        (Feature("int16", (2, 2)), [[1, 2], [3, 4]]),
        (Feature("float32", (None,)), [1.5]),
        (Feature("float32", (None,)), []),
        (Feature("uint8", (None, 2)), [[1, 2], [3, 4], [5, 6]]),
        (Feature("uint8", (None, None), encoding="raw"), [[1, 2, 3]]),
        (Feature("float64", (2,)), [1e300, -0.0]),
    ],
)
def test_arrays_come_back_of_their_type_and_shape(feature, value):
    blank = [] if None in feature.shape and feature.encoding == "values" else value
    first, second = rows_of([{"x": value}, {"x": blank}], Schema({"x": feature}))
    assert isinstance(first["x"], np.ndarray)
    assert first["x"].dtype == feature.dtype
    assert first["x"].tolist() == value
    assert second["x"].tolist() == blank


@pytest.mark.parametrize(
    ("feature", "value"),
    [
        (Feature("str", (2,)), ["a", "b"]),
        (Feature("bytes", (2, 1)), [[b"a"], [b"b"]]),
        (Feature("str", (None,)), ["a", "", "c"]),
        (Feature("str", (None, None)), [["a"], [], ["b", "c"]]),
    ],
)
def test_several_strings_are_lists(feature, value):
    (row,) = rows_of([{"x": value}], Schema({"x": feature}))
    assert row["x"] == value


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64", "bool"])
@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 3), (3, 2)],
        [(20, 30), (30, 20)],  # integers of more than 256 values are stored in another way
        [(2, 3), (30, 20)],
        [(2, 3, 4), (3, 2, 4)],
        [(2, 3, 4), (1, 5, 2)],
        [(2, 1), (1, 0), (4, 4)],
        [(2,), (0,), (5,)],
    ],
)
def test_arrays_of_any_shapes_come_back_as_arrays(tmp_path, shapes, dtype):
    values = [np.arange(np.prod(shape)).reshape(shape).astype(dtype) for shape in shapes]
    rows = [{"x": value} for value in values]
    datum.write(rows, tmp_path / "out", shuffle=False, floats="float64", progress=False)
    train = datum.load(tmp_path / "out")["train"]
    for found in (list(train), [train[i] for i in range(len(train))], train[:]):
        for row, value in zip(found, values, strict=True):
            assert isinstance(row["x"], np.ndarray)
            assert row["x"].dtype == value.dtype
            assert row["x"].shape == value.shape
            assert np.array_equal(row["x"], value)
    assert [value.shape for value in train.to_pandas()["x"]] == shapes


def test_only_rows_that_differ_within_a_record_are_a_list(tmp_path):
    values = [[[1, 2], [3]], [[1, 2], [3, 4]], [[5]], [], [[]]]
    datum.write([{"x": value} for value in values], tmp_path / "out", shuffle=False, progress=False)
    uneven, even, single, *empty = (row["x"] for row in datum.load(tmp_path / "out")["train"])
    assert [item.tolist() for item in uneven] == values[0]
    assert (even.tolist(), single.tolist()) == (values[1], values[2])
    assert [value.shape for value in empty] == [(0, 0), (1, 0)]


def test_what_is_ragged_twice_is_a_list_of_arrays():
    schema = Schema({"x": Feature("int8", (None, None))})
    (row,) = rows_of([{"x": [[1, 2], [], [3]]}], schema)
    assert [item.tolist() for item in row["x"]] == [[1, 2], [], [3]]
    assert all(item.dtype == np.int8 for item in row["x"])


def test_what_is_absent_is_none():
    schema = Schema(
        {
            "x": Feature("int64", optional=True),
            "words": Feature("str", (None,), optional=True),
            "d": Feature("int64", default=7),
        }
    )
    first, second = rows_of([{}, {"x": 1, "words": ["a"], "d": 2}], schema)
    assert first == {"x": None, "words": None, "d": 7}
    assert second == {"x": 1, "words": ["a"], "d": 2}


def test_sparse_values_are_told_by_record():
    schema = Schema({"x": Feature("float32", (5,), encoding="sparse")})
    values = [([1, 3], [1.0, 2.0]), ([], []), ([0], [3.0])]
    rows = rows_of([{"x": value} for value in values], schema)
    for row, (indices, items) in zip(rows, values, strict=True):
        assert isinstance(row["x"], Sparse)
        assert row["x"].dense_shape == (5,)
        assert row["x"].indices[:, 0].tolist() == indices
        assert row["x"].values.tolist() == items


def test_records_without_features_are_empty():
    assert list(iterate_rows({}, Schema({}), range(2), where="here")) == [{}, {}]


def picture(array) -> bytes:
    data = io.BytesIO()
    Image.fromarray(array).save(data, "PNG")
    return data.getvalue()


IMAGE = Schema({"image": Feature("uint8", (None, None, 3), encoding="image", optional=True)})


def test_an_image_is_decoded():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    first, second = rows_of([{"image": picture(pixels)}, {}], IMAGE)
    assert first["image"].dtype == np.uint8
    assert np.array_equal(first["image"], pixels)
    assert first["image"].flags.writeable
    assert second["image"] is None


def test_an_image_that_cannot_be_decoded_names_its_record():
    with pytest.raises(SourceError, match="here, record 1, feature 'image': "):
        rows_of([{}, {"image": b"no image"}], IMAGE)
    batch = parse(encode([{"image": b"no image"}], IMAGE), IMAGE)
    with pytest.raises(SourceError, match="here, record 7, feature 'image': "):
        single_row(batch, IMAGE, 7, where="here")


def test_images_are_decoded_one_after_the_other():
    pixels = np.zeros((2, 4, 3), np.uint8)
    rows = [{"image": picture(pixels)}, {"image": b"no image"}]
    batch = parse(encode(rows, IMAGE), IMAGE)
    records = iterate_rows(batch, IMAGE, range(5, 7), where="split 'train[:10%]'")
    assert np.array_equal(next(records)["image"], pixels)
    with pytest.raises(SourceError, match=r"'train\[:10%\]', record 6, feature 'image'"):
        next(records)


def test_values_of_absent_records_stay_absent_among_many():
    schema = Schema(
        {
            "x": Feature("float32", (2,), optional=True),
            "s": Feature("int8", (3,), encoding="sparse", optional=True),
            "t": Feature("uint8", (None, None), encoding="raw", optional=True),
        }
    )
    rows = [
        {} if i % 3 else {"x": [i, i], "s": ([1], [i]), "t": np.full((i, 1), i, np.uint8)}
        for i in range(9)
    ]
    for i, row in enumerate(rows_of(rows, schema)):
        assert (row["x"] is None) == (row["t"] is None) == bool(i % 3)
        if not i % 3:
            assert row["x"].tolist() == [i, i]
            assert row["t"].shape == (i, 1)
            assert row["s"].values.tolist() == [i]


def part_of(folder, instruction="train"):
    (part,) = datum.load(folder)[instruction].parts().values()
    return part


def test_datasets_and_splits_are_sources(tmp_path):
    write_numbers(tmp_path / "in")
    dataset = datum.load(tmp_path / "in")
    assert isinstance(dataset, Source)
    assert isinstance(dataset["train"], Source)
    assert list(dataset.parts()) == ["train"]


def test_plain_shards_are_read_in_any_order_and_others_in_theirs(tmp_path):
    write_numbers(tmp_path / "plain")
    write_numbers(tmp_path / "packed", compression="zlib")
    assert isinstance(part_of(tmp_path / "plain"), StoredRecords)
    assert isinstance(part_of(tmp_path / "packed"), StoredStream)


def test_a_part_is_called_as_its_split(tmp_path):
    write_numbers(tmp_path / "in", splits={"a": 0.5, "b": 0.5})
    dataset = datum.load(tmp_path / "in")
    names = [*dataset, "b[:10%]", "a+b", "all"]
    assert [list(dataset[name].parts()) for name in names] == [
        ["a"],
        ["b"],
        ["b"],
        ["train"],
        ["train"],
    ]


def test_fingerprints_tell_the_records_apart(tmp_path):
    write_numbers(tmp_path / "in")
    write_numbers(tmp_path / "other", count=91)
    found = {
        part_of(tmp_path / "in").fingerprint,
        part_of(tmp_path / "in", "train[:50]").fingerprint,
        part_of(tmp_path / "other").fingerprint,
    }
    assert len(found) == 3
    assert part_of(tmp_path / "in").fingerprint in found


def test_files_that_nobody_described_are_told_by_when_they_changed(tmp_path):
    write_numbers(tmp_path / "in")
    (tmp_path / "in" / "datum.json").unlink()
    before = part_of(tmp_path / "in").fingerprint
    os.utime(shard_of(tmp_path / "in"), (1, 1))
    assert part_of(tmp_path / "in").fingerprint != before


def test_statistics_are_those_of_whole_splits_alone(tmp_path):
    write_numbers(tmp_path / "in")
    dataset = datum.load(tmp_path / "in")
    assert dataset.parts()["train"].statistics == dataset.statistics["train"]
    assert part_of(tmp_path / "in").statistics is None


def test_counts_of_images_are_not_metadata_of_a_part():
    metadata = {
        "image": {"formats": {"png": 3}, "dtypes": ["uint8"], "height": [1, 2], "colours": "x"},
        "photo": {"formats": {"png": 3}, "dtypes": ["uint8"]},
        "size": {"height": [1, 2]},
        "blank": {},
    }
    assert lasting_metadata(metadata) == {
        "image": {"colours": "x"},
        "size": {"height": [1, 2]},
        "blank": {},
    }


def test_runs_of_one_shard_share_its_places(tmp_path):
    write_numbers(tmp_path / "in", shards=1)
    part = part_of(tmp_path / "in", "train[:5]+train[-5:]")
    assert part.runs[0].places() is part.runs[1].places()
    assert part.read(np.arange(10)).numbers.tolist() == list(range(10))


SCHEMA = datum.Schema({"x": datum.Feature("int64"), "y": datum.Feature("int64")})
METADATA = {"x": {"a": 1}, "y": {"b": 2}, "other": {"c": 3}}


@pytest.fixture
def part(tmp_path):
    """Two files of ten payloads each; of the second, the last eight are in the part."""
    runs = []
    for name, start in (("a", 0), ("b", 2)):
        framed = frame([f"{name}{number}".encode() * (number + 1) for number in range(10)])
        (tmp_path / name).write_bytes(framed.to_bytes())
        index = Index(framed.offsets, framed.nbytes)
        bounds = np.append(index.offsets, index.stream_bytes)
        places = Places(tmp_path / name, bounds[:-1], bounds[1:])
        runs.append(PlacedRun(lambda places=places: places, start, 10))
    return StoredRecords(runs, SCHEMA, METADATA, "fingerprint")


def payload(number):
    name, number = ("a", number) if number < 10 else ("b", number - 8)
    return f"{name}{number}".encode() * (number + 1)


def read(part, numbers):
    block = part.read(np.array(numbers, np.int64))
    return list(RecordFile(block.data.frames.tobytes())), block


def test_it_is_a_part_that_can_be_read_in_any_order(part):
    assert isinstance(part, IndexedPart)
    assert (len(part), part.keys, part.is_slow_python) == (18, None, False)


@pytest.mark.parametrize(
    "numbers", [[0], [3, 4, 5], [5, 3, 5], [9, 10], [17, 0, 11, 4], list(range(18)), []]
)
def test_records_come_in_the_order_that_was_asked_for(part, numbers):
    found, block = read(part, numbers)
    assert found == [payload(number) for number in numbers]
    assert block.numbers.tolist() == numbers
    assert block.data.schema == SCHEMA
    assert block.data.sizes.tolist() == [16 + len(payload(number)) for number in numbers]


def test_places_are_told_by_file_record_and_byte(part):
    _, block = read(part, [12, 1])
    assert block.data.locate(0).endswith("b (record 4 at byte 84)")
    assert block.data.locate(1).endswith("a (record 1 at byte 18)")


def test_damaged_records_are_rejects_and_the_others_are_read(part, tmp_path):
    data = bytearray((tmp_path / "b").read_bytes())
    for number in (4, 6):
        data[int(part.runs[1].places().offsets[number]) + 13] ^= 1
    (tmp_path / "b").write_bytes(data)
    found, block = read(part, [13, 14, 0, 12, 11])
    assert found == [payload(number) for number in (13, 0, 11)]
    assert block.numbers.tolist() == [13, 0, 11]
    assert [(reject.record, reject.reason) for reject in block.rejects] == [
        (12, "expected an intact record, got damage: payload checksum"),
        (14, "expected an intact record, got damage: payload checksum"),
    ]
    assert block.rejects[0].where.startswith(f"{tmp_path / 'b'} (record 4 at byte ")


def test_some_of_the_records_are_counted_anew(part):
    some = part.select(np.array([1, 5, 12]))
    assert len(some) == 3
    assert read(some, [2, 0])[0] == [payload(12), payload(1)]
    assert read(some.select(np.array([1, 2])), [0, 1])[0] == [payload(5), payload(12)]
    assert some.fingerprint not in (None, part.fingerprint)
    assert some.fingerprint != part.select(np.array([1, 5, 13])).fingerprint
    assert part.select(np.array([1])).statistics is None


def test_how_many_bytes_they_take_is_known(part):
    sizes = [16 + len(payload(number)) for number in range(18)]
    assert part.stored_bytes == sum(sizes)
    assert part.select(np.array([1, 12])).stored_bytes == sizes[1] + sizes[12]
    assert part.narrow(SCHEMA.select(["x"])).stored_bytes is None


def test_features_that_are_left_out_lose_their_metadata(part):
    narrow = part.narrow(SCHEMA.select(["x"]))
    assert narrow.metadata == {"x": {"a": 1}, "other": {"c": 3}}
    assert narrow.is_partial
    assert narrow.read(np.array([0])).data.is_partial
    assert narrow.fingerprint != part.fingerprint


def test_a_part_without_a_fingerprint_stays_without(part):
    bare = StoredRecords(part.runs, SCHEMA, {}, None)
    assert bare.select(np.array([1])).fingerprint is None
    assert bare.narrow(SCHEMA).fingerprint is None


def test_a_file_that_is_cut_while_it_is_read_is_an_error(part, tmp_path):
    part.read(np.array([0]))
    with (tmp_path / "a").open("r+b") as file:
        file.truncate(50)
    with pytest.raises(datum.CorruptRecordError, match="the file was truncated while it was read"):
        part.read(np.array([0]))


def test_frames_with_gaps_are_put_together():
    data = np.arange(100, dtype=np.uint8)
    frames, offsets = gather_frames(data, np.array([10, 30]), np.array([13, 32]))
    assert frames.tolist() == [10, 11, 12, 30, 31]
    assert offsets.tolist() == [0, 3]
    assert gather_frames(data, np.empty(0, np.int64), np.empty(0, np.int64))[0].tolist() == []


@pytest.fixture
def split(tmp_path):
    write_numbers(tmp_path / "in", compression="gzip")
    return datum.load(tmp_path / "in")["train"]


def records_of(part):
    return [
        payload for block in part.blocks() for payload in RecordFile(block.data.frames.tobytes())
    ]


def test_it_is_a_part_that_is_read_in_order(split, tmp_path):
    (part,) = split.parts().values()
    assert isinstance(part, StreamedPart)
    assert not isinstance(part, IndexedPart)
    assert records_of(part) == records_of(part) == payloads(tmp_path / "in")
    numbers = np.concatenate([block.numbers for block in part.blocks()])
    assert numbers.tolist() == list(range(90))


def test_a_slice_has_its_records_alone(split, tmp_path):
    (part,) = split[25:65].parts().values()
    assert records_of(part) == payloads(tmp_path / "in")[25:65]


def test_records_that_are_left_are_counted_anew(split, tmp_path):
    (part,) = split.parts().values()
    made = []

    def keep():
        made.append(1)
        return lambda stored: np.arange(len(stored)) % 2 == 0

    some = part.filtered(keep)
    found = records_of(some)
    assert found == [p for at in range(3) for p in payloads(tmp_path / "in")[30 * at :: 2][:15]]
    assert np.concatenate([b.numbers for b in some.blocks()]).tolist() == list(range(45))
    assert len(made) == 2
    assert some.fingerprint is None


def test_features_can_be_left_out(split):
    (part,) = split.parts().values()
    narrow = part.narrow(split.schema.select(["x"]))
    block = next(iter(narrow.blocks()))
    assert block.data.is_partial
    assert list(block.data.schema) == ["x"]
    assert narrow.fingerprint not in (None, part.fingerprint)
    assert StoredStream(part.runs, split.schema, {}, None).narrow(split.schema).fingerprint is None


def test_places_are_told(split):
    (part,) = split.parts().values()
    block = next(iter(part.blocks()))
    assert block.data.locate(0).endswith("train-00000-of-00003.tfrecord (record 0 at byte 0)")


def test_a_shard_that_is_not_as_known_is_an_error(split, tmp_path):
    run = split.runs[0]
    more = type(run)(type(run.shard)(run.shard.name, 31, run.shard.bytes, None, "gzip"), 0, 31)
    split.shards.writer = "tfrecord files"
    with pytest.raises(datum.CorruptRecordError, match="expected 31 records, .* got 30"):
        list(read_run(split.shards, more))
    cut(shard_of(tmp_path / "in"), 20)
    with pytest.raises(datum.CorruptRecordError, match="expected"):
        list(read_run(split.shards, run))


def test_frames_are_those_around_the_payloads(tmp_path):
    write_numbers(tmp_path / "in", shards=1)
    path = shard_of(tmp_path / "in")
    (records,) = RecordFile(path).chunks(100)
    frames, offsets = frames_of(records)
    assert frames.tobytes() == path.read_bytes()
    assert offsets[0] == 0


def batches(folder, runs, batch_size, **options):
    return RangeBatches(
        Shards(folder), runs, parser=Parser(NUMBERED), batch_size=batch_size, **options
    )


def numbers(reader):
    return [batch["x"].tolist() for batch in reader]


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
@pytest.mark.parametrize("has_index", [True, False])
def test_every_part_of_every_shard_is_read(tmp_path, compression, has_index):
    splits = write_numbered(tmp_path, compression=compression, has_index=has_index).splits
    first, _, third = splits["train"].shards
    for start, stop in itertools.combinations(range(7), 2):
        runs = [
            ShardRange(first, min(start, 3), 4),
            ShardRange(third, start, stop),
            ShardRange(third, 0, 6),
        ]
        reader = batches(tmp_path, runs, 100)
        expected = [*range(min(start, 3), 4), *range(4 + start, 4 + stop), *range(4, 10)]
        assert numbers(reader) == [expected]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 13, 100])
def test_batches_go_over_the_ends_of_shards(tmp_path, batch_size, threads):
    splits = write_numbered(tmp_path).splits
    runs = [ShardRange(s, 0, s.records) for split in splits.values() for s in split.shards]
    reader = batches(tmp_path, runs, batch_size, threads=threads)
    expected = [list(range(13))[at : at + batch_size] for at in range(0, 13, batch_size)]
    assert numbers(reader) == expected
    assert numbers(reader) == expected
    reader = batches(tmp_path, runs, batch_size, threads=threads, drop_remainder=True)
    assert numbers(reader) == [batch for batch in expected if len(batch) == batch_size]


def test_many_records_of_a_compressed_shard_are_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr("datum._read.shards.SKIPPED_RECORDS", 2)
    shard = write_numbered(tmp_path, compression="gzip").splits["train"].shards[2]
    assert numbers(batches(tmp_path, [ShardRange(shard, 5, 6)], 4)) == [[9]]


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("told", [2, 4, 5])
def test_a_shard_of_another_number_of_records_is_noticed(tmp_path, compression, told):
    (shard,) = write_numbered(tmp_path, compression=compression).splits["val"].shards
    wrong = replace(shard, records=told)
    got = "more" if told < 3 else "3"
    for batch_size in (1, 2, 3, 100):
        reader = batches(tmp_path, [ShardRange(wrong, 0, told)], batch_size)
        with pytest.raises(CorruptRecordError, match=f"expected {told} records, .*, got {got}"):
            list(reader)


def test_a_compressed_shard_that_ends_within_a_run_is_noticed(tmp_path):
    (shard,) = write_numbered(tmp_path, compression="gzip").splits["val"].shards
    wrong = replace(shard, records=9)
    reader = batches(tmp_path, [ShardRange(wrong, 1, 5)], 10)
    with pytest.raises(CorruptRecordError, match="expected 9 records, .*, got 3"):
        list(reader)


def test_damage_is_raised_after_what_is_whole(tmp_path):
    (shard,) = write_numbered(tmp_path).splits["val"].shards
    path = tmp_path / shard.name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    found = []
    with pytest.raises(CorruptRecordError, match="record 2"):
        found.extend(
            batch["x"].tolist() for batch in batches(tmp_path, [ShardRange(shard, 0, 3)], 1)
        )
    assert found == [[10], [11]]


def test_a_batch_needs_a_record(tmp_path):
    with pytest.raises(ValueError, match="batch_size"):
        batches(tmp_path, [], 0)


def test_no_runs_make_no_batches(tmp_path):
    assert numbers(batches(tmp_path, [], 3)) == []


def test_a_run_knows_its_length():
    shard = ShardInfo("a", 10, frame([b""] * 10).nbytes, 0)
    assert len(ShardRange(shard, 3, 7)) == 4


def test_a_manifest_tells_all_contents(tmp_path):
    manifest = write_numbered(
        tmp_path,
        compression="gzip",
        metadata={"x": {"class_names": ["a"]}},
        statistics={"train": {"records": 10}},
    )
    contents = Contents.of_manifest(tmp_path, manifest)
    assert contents == Contents(
        folder=tmp_path,
        schema=manifest.schema,
        splits=manifest.splits,
        metadata=manifest.metadata,
        statistics=manifest.statistics,
        compression="gzip",
        writer="datum",
    )
    assert contents.is_published


def test_records_of_others_are_not_published():
    assert not Contents(Path(), {}, {}, writer="tfds").is_published


def test_shards_with_damage_are_named_with_the_records_that_are_no_messages():
    shards = SplitInfo(tuple(ShardInfo(name, 5, 100, None) for name in ("a", "b", "c")))
    damage = (
        Damage("folder/a", 10, 20, 1, "payload checksum"),
        Damage("folder/b", 10, 20, 1, "malformed"),
        Damage("folder/b", 30, 40, 3, "malformed"),
        Damage("folder/gone", 0, 0, 0, "missing file"),
    )
    contents = Contents(Path("folder"), {}, {"train": shards}, damage=damage)
    assert contents.left_out == {"a": (), "b": (1, 3)}
