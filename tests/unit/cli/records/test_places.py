import pytest

import datum
from datum.cli.record_places import Asked, find_bare_files, open_source, parse_numbers


@pytest.fixture
def folder(tmp_path):
    rows = [{"x": i} for i in range(7)]
    datum.write(
        {"train": rows, "val": rows[:2]},
        tmp_path / "ds",
        shuffle=False,
        shards={"train": 3, "val": 1},
        progress=False,
    )
    return tmp_path / "ds"


def test_numbers_are_parsed_with_ranges_and_commas():
    assert parse_numbers(["3", "-1,4", ":2", "5:"]) == [
        3,
        -1,
        4,
        slice(None, 2),
        slice(5, None),
    ]
    for wrong in ("", "a", "1:2:3", "1.5"):
        with pytest.raises(ValueError, match="expected a number such as"):
            parse_numbers([wrong])


def test_numbers_are_chosen_of_so_many_records():
    assert Asked(3).choose(10) == [0, 1, 2]
    assert Asked(3).choose(2) == [0, 1]
    assert Asked(numbers=[-1, slice(-2, None), 0]).choose(5) == [4, 3, 4, 0]
    assert len(Asked(3, is_random=True).choose(10)) == 3
    assert Asked(3, is_random=True, seed=4).choose(10) == Asked(3, is_random=True, seed=4).choose(
        10
    )


@pytest.mark.parametrize(
    ("asked", "is_from_the_start"),
    [
        (Asked(3), True),
        (Asked(numbers=[1, slice(2, 4)]), True),
        (Asked(numbers=[-1]), False),
        (Asked(numbers=[slice(2, None)]), False),
        (Asked(is_random=True), False),
    ],
)
def test_it_is_known_whether_records_have_to_be_counted(asked, is_from_the_start):
    assert asked.is_from_the_start == is_from_the_start


def test_records_are_found_in_their_shards(folder):
    source = open_source(str(folder), split=None, asked=Asked())
    assert (source.split, source.records) == ("train", 7)
    places = source.find([0, 6, 3])
    assert [place.number for place in places] == [0, 6, 3]
    assert places[1].file.name == "train-00002-of-00003.tfrecord"
    with pytest.raises(IndexError, match="expected a number within 7 records, got 7"):
        source.find([7])
    part = open_source(str(folder), split="train[-2:]", asked=Asked())
    assert part.find([1])[0].file.name == "train-00002-of-00003.tfrecord"


def test_files_that_nothing_describes_are_not_counted(folder):
    for name in ("datum.json", "notes.txt"):
        (folder / name).unlink(missing_ok=True)
    names = [path.name for path in find_bare_files(str(folder))]
    assert names == [*(f"train-0000{i}-of-00003.tfrecord" for i in range(3)), names[-1]]
    assert names[-1].startswith("val")  # training data first
    source = open_source(str(folder), split=None, asked=Asked())
    assert source.dataset is None
    assert open_source(str(folder), split="val", asked=Asked()).records == 2
    pattern = str(folder / "val-*.tfrecord")
    assert [path.name for path in find_bare_files(pattern)] == names[-1:]


def test_described_datasets_are_opened_as_such(folder):
    assert find_bare_files(str(folder)) == []
    assert find_bare_files(str(folder / "datum.json")) == []
    assert find_bare_files(str(folder / "none")) == []


def test_files_are_in_order_whatever_digits_are_in_their_names(tmp_path):
    names = ["2.tfrecord", "10.tfrecord", "²5.tfrecord", "٣.tfrecord"]
    for name in reversed(names):
        (tmp_path / name).write_bytes(b"")
    assert [one.name for one in find_bare_files(str(tmp_path))] == names
