import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum._read.split import SplitRange, find_ranges
from datum.errors import SplitError

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
        with pytest.raises(SplitError, match="ends after it starts, got 250 to 125"):
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
        ("train[1.5:]", "expected a number or a percent, got '1.5'"),
        ("train[1__0:]", "expected a number or a percent"),
        ("train[1.:]", "expected a number or a percent"),
        ("train[1_0%:]", "expected a number or a percent"),
        ("train[:1001]", "within 1000 records, got 1001"),
        ("train[-1001:]", "within 1000 records, got -1001"),
        ("train[:101%]", "within 100%, got 101%"),
        ("train[:100.1%]", "within 100%"),
        ("train[-101%:]", "within 100%"),
        ("train[50:10]", "ends after it starts, got 50 to 10 of 1000 records"),
        ("train[60%:-60%]", "ends after it starts"),
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
