import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum.errors import SplitError
from datum.format.manifest import check_split_name, parse_shard_name, shard_name


def is_split_name(name: str) -> bool:
    try:
        return check_split_name(name) == name
    except SplitError:
        return False


split_names = st.from_regex(r"[A-Za-z0-9_.-]{1,20}", fullmatch=True).filter(is_split_name)


def test_a_shard_is_named_by_split_number_and_count():
    assert shard_name("train", 7, 1024) == "train-00007-of-01024.tfrecord"


def test_appended_shards_tell_their_generation():
    assert shard_name("train", 0, 2, generation=1) == "train.1-00000-of-00002.tfrecord"


def test_names_of_many_shards_sort_in_their_order():
    names = [shard_name("train", number, 123_456) for number in (0, 9, 10, 99_999, 100_000)]
    assert names[0] == "train-000000-of-123456.tfrecord"
    assert names == sorted(names)


@pytest.mark.parametrize(("number", "count", "generation"), [(2, 2, 0), (-1, 2, 0), (0, 2, -1)])
def test_a_number_outside_is_refused(number, count, generation):
    with pytest.raises(ValueError, match="expected"):
        shard_name("train", number, count, generation=generation)


@given(split_names, st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 1000))
def test_a_name_tells_what_it_was_made_of(split, number, more, generation):
    count = number + more
    name = shard_name(split, number, count, generation=generation)
    assert parse_shard_name(name) == (split, number, count, generation)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("validation-00003-of-00128", ("validation", 3, 128, 0)),
        ("train-00000-of-01024", ("train", 0, 1024, 0)),
        ("train.tfrecord-00000-of-00010", ("train", 0, 10, 0)),
        ("x-train.tfrecord-00001-of-00002.gz", ("train", 1, 2, 0)),
        ("coco-2017-validation.tfrecord-00001-of-00002", ("validation", 1, 2, 0)),
        ("train_3-of-8.tfrec", ("train", 3, 8, 0)),
        ("my-split-0003-of-0004.tfrecords.zlib", ("my-split", 3, 4, 0)),
        ("train.2-00000-of-00001.tfrecord.gz", ("train", 0, 1, 2)),
    ],
)
def test_names_of_others_are_read(name, expected):
    assert parse_shard_name(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "",
        "train.tfrecord",
        "datum.json",
        "-00000-of-00001",
        "train-00002-of-00002.tfrecord",
        "train-00000-of-00000",
        "train-00000-of-x.tfrecord",
        "train-00000-of-00001.index.1",
        "train-\n00000-of-00001",
        ".tfrecord-00000-of-00001",
        "train-" + "0" * 5000 + "-of-1",
    ],
)
def test_other_names_are_not_taken_for_shards(name):
    assert parse_shard_name(name) is None


@given(st.text(max_size=60))
def test_any_text_is_a_shard_or_not(name):
    found = parse_shard_name(name)
    assert found is None or 0 <= found[1] < found[2]


@pytest.mark.parametrize(
    "name", ["train", "val", "test_2012", "train-clean", "train.clean", "a", "0", "_x", "x" * 128]
)
def test_ordinary_names_of_splits_are_taken(name):
    assert check_split_name(name) == name


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "letters"),
        (".train", "letters"),
        ("train.", "letters"),
        ("-train", "letters"),
        ("a/b", "letters"),
        ("..", "letters"),
        ("a\\b", "letters"),
        ("a b", "letters"),
        ("a\0", "letters"),
        ("a\n", "letters"),
        ("train[:1]", "letters"),
        ("a+b", "letters"),
        ("é", "letters"),
        ("all", "every split"),
        ("train-00000", "that of a shard"),
        ("train-00000-of-00008", "that of a shard"),
        ("train.1", "that of a shard"),
        ("x" * 129, "128 characters"),
        (None, "got NoneType"),
        (3, "got int"),
    ],
)
def test_names_that_would_mislead_are_refused(name, problem):
    with pytest.raises(SplitError, match=problem):
        check_split_name(name)
