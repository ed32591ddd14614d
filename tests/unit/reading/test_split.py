import pickle
import threading

import numpy as np
import pytest

from datum import Feature, Schema
from datum.errors import CorruptRecordError, SchemaError, SplitError
from datum.reader import load
from tests.unit.reading.written import numbered, write_dataset, write_numbered


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


@pytest.mark.parametrize("at", ["x", 1.5, None, [1, 2]])
def test_what_is_no_number_is_told(dataset, at):
    with pytest.raises(TypeError, match=r"hint: split\.read"):
        dataset["train"][at]


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
    with pytest.raises(ValueError, match="step 1"):
        dataset["train"][::2]


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
def test_a_compressed_dataset_is_read_in_order_only(tmp_path, compression):
    write_numbered(tmp_path, compression=compression)
    dataset = load(tmp_path)
    assert len(dataset["train"]) == 10
    assert [row["x"] for row in dataset["train[3:8]"]] == [3, 4, 5, 6, 7]
    assert [row["x"] for row in dataset["all"][9:]] == [9, 10, 11, 12]
    for read in (lambda: dataset["train"][0], lambda: dataset["train"].read([1, 2])):
        with pytest.raises(ValueError, match=f"got {compression}\nhint: iterate"):
            read()


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
    with pytest.raises(SchemaError, match=r"train-00000-of-00003\.tfrecord: record 2.*'text'"):
        train.read([5, 2])


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
    assert repr(copy) == repr(train) == "Split('train[5:]', 5 records)"


def test_threads_may_share_a_split(dataset):
    split = dataset["all"]
    wrong = []

    def read(offset):
        for i in range(200):
            number = (i * 7 + offset) % 13
            if split[number]["x"] != number:
                wrong.append(number)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_unknown_split_names_the_nearest(dataset):
    with pytest.raises(SplitError, match="did you mean 'train'"):
        dataset["trian"]
