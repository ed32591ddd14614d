"""Splits and parts of them."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import Feature, Schema
from datum._read import split as module
from datum._read.split import SplitRange, find_ranges
from datum.errors import CorruptRecordError, SchemaError, SplitError
from datum.reader import load
from tests.unit.read.written import numbered, write_dataset, write_numbered


@pytest.fixture
def dataset(tmp_path):
    write_numbered(tmp_path)
    return load(tmp_path)


def test_a_record_is_read_by_its_number(dataset):
    train = dataset["train"]
    assert len(train) == 10
    assert [train[i]["x"] for i in range(10)] == list(range(10))
    assert train[-1] == {"x": 9, "text": "record 9"}
    assert train[np.int64(3)]["text"] == "record 3"


@pytest.mark.parametrize("number", [10, -11, 2**70])
def test_a_number_outside_is_told(dataset, number):
    with pytest.raises(IndexError, match=f"within 10 records, got {number}"):
        dataset["train"][number]


@pytest.mark.parametrize(
    "at", ["x", 1.5, None, [0.5], ["a"], [[1]], [[1], [1, 2]], {1}, [2**70], np.array(1.5), (1, 2)]
)
def test_what_is_no_number_is_told(dataset, at):
    with pytest.raises(TypeError, match=r"expected .* got .*\nhint: split\["):
        dataset["train"][at]


@pytest.mark.parametrize(
    "numbers",
    [
        [5, 2, 9],
        [-1, 0, -10],
        [4, 4, 3, 4],
        range(9, -1, -2),
        np.array([7, 1]),
        np.array([7, 1], np.uint8),
        [np.int64(7), 1],
        np.arange(10),
        [3],
        [],
        np.array([]),
    ],
)
def test_a_list_of_numbers_gives_a_list_of_records(dataset, numbers):
    train = dataset["train"]
    expected = [train[int(number)] for number in numbers]
    for found in (train[numbers], train.__getitems__(numbers)):
        assert type(found) is list
        assert found == expected
        assert [record["x"] for record in found] == [int(number) % 10 for number in numbers]


def test_records_of_a_list_have_the_types_of_single_ones(tmp_path):
    schema = Schema(
        {
            "x": Feature("int16"),
            "vector": Feature("float32", (2,)),
            "words": Feature("str", (None,)),
            "when": Feature("datetime64[s]"),
            "maybe": Feature("bytes", optional=True),
        }
    )
    row = {"x": 1, "vector": [1, 2], "words": ["a", "b"], "when": np.datetime64(5, "s")}
    write_dataset(tmp_path, {"train": [[row, row | {"maybe": b"m", "words": []}]]}, schema)
    train = load(tmp_path)["train"]
    for found, alone in zip(train[[1, 0]], [train[1], train[0]], strict=True):
        assert list(found) == list(alone) == list(schema)
        assert [type(value) for value in found.values()] == [type(v) for v in alone.values()]
        assert found["vector"].dtype == np.float32
        assert repr(found) == repr(alone)


@pytest.mark.parametrize("mask", [[True, False] * 5, np.zeros(10, bool), np.array([], bool)])
def test_a_mask_is_refused_with_what_to_do(dataset, mask):
    for read in (dataset["train"].__getitem__, dataset["train"].read):
        with pytest.raises(TypeError, match=r"got a mask .*\nhint: numpy\.flatnonzero\(mask\)"):
            read(mask)


def test_a_list_with_a_number_outside_is_told(dataset):
    with pytest.raises(IndexError, match="within 10 records, got 10"):
        dataset["train"][[0, 10]]
    with pytest.raises(IndexError, match="within 0 records, got 0"):
        dataset["train"][5:5][[0]]


def test_records_come_in_order(dataset):
    assert [row["x"] for row in dataset["all"]] == list(range(13))
    assert list(dataset["val"]) == [dataset["val"][i] for i in range(3)]


def test_a_slice_is_a_split(dataset):
    part = dataset["all"][3:12][1:-1]
    assert len(part) == 7
    assert [row["x"] for row in part] == list(range(4, 11))
    assert [part[i]["x"] for i in range(7)] == list(range(4, 11))
    assert len(dataset["train"][8:3]) == 0
    assert list(dataset["train"][20:]) == []


def test_a_slice_with_steps_is_refused(dataset):
    with pytest.raises(ValueError, match=r"step 1.*\nhint: split\[range\(0, 10, 2\)\]"):
        dataset["train"][::2]
    assert [row["x"] for row in dataset["train"][range(0, 10, 2)]] == [0, 2, 4, 6, 8]
    with pytest.raises(ValueError, match=r"range\(9, -1, -1\)"):
        dataset["train"][::-1]


def test_every_slice_holds_what_that_of_a_list_holds(dataset):
    split, whole = dataset["all"], list(range(13))
    for start in (None, *range(-14, 15)):
        for stop in (None, 0, 4, 5, 13, -3):
            part = split[start:stop]
            expected = whole[start:stop]
            assert len(part) == len(expected)
            assert part.read(range(len(part)))["x"].tolist() == expected


def test_several_records_are_read_as_columns(dataset):
    batch = dataset["all"].read([12, 0, -1, 5, 4, 4])
    assert batch["x"].tolist() == [12, 0, 12, 5, 4, 4]
    assert batch["text"].to_list()[3] == "record 5"
    assert dataset["val"].read(np.array([2, 0], np.uint8))["x"].tolist() == [12, 10]
    assert dataset["val"].read([])["x"].tolist() == []


def test_only_the_columns_asked_for_are_read(dataset):
    assert list(dataset["all"].read([12, 0], columns=["text"])) == ["text"]
    assert all(list(batch) == ["x"] for batch in dataset["all"].batches(4, columns=["x"]))
    with pytest.raises(SchemaError, match="did you mean 'text'"):
        dataset["all"].read([0], columns=["txet"])


@pytest.mark.parametrize("numbers", [[10], [-11], np.array([0, 10])])
def test_numbers_outside_are_told(dataset, numbers):
    with pytest.raises(IndexError, match="within 10 records"):
        dataset["train"].read(numbers)


@pytest.mark.parametrize("numbers", [[0.5], ["a"], [[1]], 3, [True]])
def test_what_are_no_numbers_is_told(dataset, numbers):
    with pytest.raises(TypeError, match="expected numbers of records"):
        dataset["train"].read(numbers)


def test_batches_hold_all_records(dataset):
    batches = list(dataset["train[2:]+val"].batches(4))
    assert [batch["x"].tolist() for batch in batches] == [[2, 3, 4, 5], [6, 7, 8, 9], [10, 11, 12]]
    assert len(list(dataset["train"].batches(4, drop_remainder=True, threads=1))) == 2


def test_without_an_index_records_are_found(tmp_path):
    write_numbered(tmp_path, has_index=False)
    train = load(tmp_path)["train"]
    assert [train[i]["x"] for i in (9, 0, 4)] == [9, 0, 4]


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_a_compressed_dataset_is_read_like_any_other(tmp_path, compression):
    write_numbered(tmp_path, compression=compression)
    dataset = load(tmp_path)
    assert len(dataset["train"]) == 10
    assert [row["x"] for row in dataset["train[3:8]"]] == [3, 4, 5, 6, 7]
    assert [row["x"] for row in dataset["all"][9:]] == [9, 10, 11, 12]
    assert dataset["all"][-1] == {"x": 12, "text": "record 12"}
    assert [row["x"] for row in dataset["all"][3:][[9, 0, 4]]] == [12, 3, 7]
    assert dataset["all"].read([12, 1, 5])["x"].tolist() == [12, 1, 5]


def test_compressed_records_are_read_in_order_without_a_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("DATUM_CACHE", str(tmp_path / "cache"))
    write_numbered(tmp_path / "out", compression="gzip")
    dataset = load(tmp_path / "out")
    assert len(list(dataset["all"])) == 13
    assert not (tmp_path / "cache").exists()
    assert dataset["all"][0]["x"] == 0
    assert (tmp_path / "cache").exists()


def test_a_damaged_record_is_named_and_others_are_read(tmp_path):
    write_numbered(tmp_path)
    path = tmp_path / "train-00002-of-00003.tfrecord"
    data = bytearray(path.read_bytes())
    data[80] ^= 1
    path.write_bytes(data)
    train = load(tmp_path)["train"]
    with pytest.raises(CorruptRecordError, match=r"train-00002-of-00003\.tfrecord: record 1"):
        train[5]
    with pytest.raises(CorruptRecordError, match=r"record 1 at byte 52"):
        train.read([0, 5])
    with pytest.raises(CorruptRecordError, match=r"record 1 at byte 52"):
        list(train)
    assert train.read([4, 0, 6])["x"].tolist() == [4, 0, 6]


def test_a_record_that_does_not_fit_the_schema_is_named(tmp_path):
    written = write_numbered(tmp_path)
    other = Schema({"x": Feature("int64"), "text": Feature("int64")})
    type(written)(other, written.splits).save(tmp_path)
    train = load(tmp_path)["train"]
    for read in (lambda: train[4], lambda: train.read([4, 4, 5]), lambda: list(train[4:])):
        with pytest.raises(SchemaError, match=r"train-00002-of-00003\.tfrecord: record 0.*'text'"):
            read()
    with pytest.raises(SchemaError, match=r"train-00002-of-00003\.tfrecord: record 1.*'text'"):
        train.read([5, 2])  # the first of those asked for


def test_records_without_features_are_counted(tmp_path):
    write_dataset(tmp_path, {"train": [[{}, {}], [{}]]}, Schema({}))
    train = load(tmp_path)["train"]
    assert list(train) == [{}, {}, {}]
    assert train[2] == {}


def test_more_records_than_are_parsed_at_a_time_come_in_order(tmp_path):
    write_dataset(tmp_path, {"train": [numbered(*range(300)), numbered(*range(300, 1000))]})
    assert [row["x"] for row in load(tmp_path)["train"]] == list(range(1000))


def test_a_split_can_be_pickled_after_it_was_read(dataset):
    train = dataset["train[5:]"]
    train[0]
    copy = pickle.loads(pickle.dumps(train))
    assert copy[0] == train[0]
    assert copy[[4, 0]] == train[[4, 0]]
    assert repr(copy) == repr(train) == "Split('train[5:]', 5 records)"


def test_a_process_that_was_forked_opens_files_of_its_own(dataset, monkeypatch):
    train = dataset["train"]
    expected, reader = train[3], train._readers[None]
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert train[3] == expected
    assert train._readers[None] is not reader


def test_choices_of_columns_are_kept_up_to_a_number(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_READERS", 2)
    write_numbered(tmp_path)
    train = load(tmp_path)["train"]
    for columns in (["x"], ["text"], ["x", "text"], iter(["x"]), None):
        assert train.read([4], columns=columns)
        assert len(train._readers) <= 2


def test_threads_may_share_a_split(dataset):
    split = dataset["all"]
    wrong = []

    def read(offset):
        for i in range(200):
            number = (i * 7 + offset) % 13
            if split[number]["x"] != number:
                wrong.append(number)
            numbers = [number, (number + offset) % 13, 12]
            if [row["x"] for row in split[numbers]] != numbers:
                wrong.append(numbers)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_unknown_split_names_the_nearest(dataset):
    with pytest.raises(SplitError, match="did you mean 'train'"):
        dataset["trian"]


RECORDS = {"train": 1000, "val": 15, "train-extra.b": 4, "none": 0}


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("train", [("train", 0, 1000)]),
        ("train[:10%]", [("train", 0, 100)]),
        ("train[10%:]", [("train", 100, 1000)]),
        ("train[25%:12_5]", None),
        ("train[10:1_000]", [("train", 10, 1000)]),
        ("train[5%:100]", [("train", 50, 100)]),
        ("train[-100:]", [("train", 900, 1000)]),
        ("train[:-10%]", [("train", 0, 900)]),
        ("train[12.5%:50%]", [("train", 125, 500)]),
        ("train[:]", [("train", 0, 1000)]),
        (" train [ : 10 % ] + val ", [("train", 0, 100), ("val", 0, 15)]),
        ("val+train[:1]", [("val", 0, 15), ("train", 0, 1)]),
        ("val[3:5]+val[4:6]", [("val", 3, 5), ("val", 4, 6)]),
        ("train-extra.b[1:]", [("train-extra.b", 1, 4)]),
        ("all", [("train", 0, 1000), ("val", 0, 15), ("train-extra.b", 0, 4)]),
        ("all[990:-1]", [("train", 990, 1000), ("val", 0, 15), ("train-extra.b", 0, 3)]),
        ("none", []),
        ("none+val", [("val", 0, 15)]),
        ("train[:0%]+train[20%:]", [("train", 200, 1000)]),
        ("train[100%:]+val", [("val", 0, 15)]),
        ("val[:50%]", [("val", 0, 7)]),
        ("val[-0:]+val[:2]", [("val", 0, 2)]),
    ],
)
def test_an_instruction_gives_ranges_of_records(instruction, expected):
    if expected is None:
        with pytest.raises(SplitError, match="ends after its start, got 250 to 125"):
            find_ranges(instruction, RECORDS)
        return
    assert find_ranges(instruction, RECORDS) == [SplitRange(*found) for found in expected]


@pytest.mark.parametrize(
    ("instruction", "problem"),
    [
        ("", "expected a name like 'train'"),
        ("+", "expected a name like 'train'"),
        ("train+", "expected a name like 'train'"),
        ("trian", "expected a split, got 'trian'\nhint: did you mean 'train'"),
        ("Val[:3]", "hint: did you mean 'val'"),
        ("zzz", "hint: there are train, val"),
        ("train[", "expected a name like 'train'"),
        ("train[]", "expected a name like 'train'"),
        ("train[1:2:3]", "expected a name like 'train'"),
        ("train[5]", r"hint: one record is ds\['train'\]\[5\]"),
        ("train[a:b]", "expected a name like 'train'"),
        ("train[1.5:]", "expected a number or a percentage, got '1.5'"),
        ("train[1__0:]", "expected a number or a percent"),
        ("train[1.:]", "expected a number or a percent"),
        ("train[1_0%:]", "expected a number or a percent"),
        ("train[:1001]", "within 1000 records, got 1001"),
        ("train[-1001:]", "within 1000 records, got -1001"),
        ("train[:101%]", "within 100%, got 101%"),
        ("train[:100.1%]", "within 100%"),
        ("train[-101%:]", "within 100%"),
        ("train[50:10]", "ends after its start, got 50 to 10 of 1000 records"),
        ("train[60%:-60%]", "ends after its start"),
        ("train[5:5]", "expected a range of records, got none"),
        ("val[:1%]", "expected a range of records, got none"),
        ("none[:50%]", "expected a range of records, got none"),
        ("train[:" + "9" * 5000 + "]", "expected a name like 'train'"),
        (5, "expected the name of a split, got 5"),
        (None, "expected the name of a split"),
    ],
)
def test_an_instruction_that_cannot_be_followed_says_why(instruction, problem):
    with pytest.raises(SplitError, match=problem) as caught:
        find_ranges(instruction, RECORDS)
    assert len(str(caught.value)) < 700


@given(st.integers(0, 10**12), st.decimals(0, 100, places=3))
def test_both_sides_of_a_percent_share_no_record_and_miss_none(count, percent):
    records = {"train": count, "val": 1}
    before = find_ranges(f"train[:{percent}%]+val", records)[:-1]
    after = find_ranges(f"train[{percent}%:]+val", records)[:-1]
    from_end = find_ranges(f"train[-{100 - percent}%:]+val", records)[:-1]
    assert sum(found.stop - found.start for found in before + after) == count
    assert from_end == after


@given(st.text(max_size=30) | st.text("train[]:%+-0123456789 .", max_size=30))
def test_any_text_gives_ranges_inside_or_an_error(instruction):
    try:
        found = find_ranges(instruction, RECORDS)
    except SplitError:
        return
    assert all(0 <= start < stop <= RECORDS[name] for name, start, stop in found)
