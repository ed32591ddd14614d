"""Counts and sizes as people write them."""

from datum.format.wording import count_of, format_bytes


def test_sizes_are_as_people_write_them():
    assert [format_bytes(n) for n in (0, 999, 1000, 2.5e9, 3e15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "2.5 GB",
        "3000.0 TB",
    ]


def test_counts_agree_with_their_nouns():
    assert count_of(1, "class", "classes") == "1 class"
    assert count_of(0, "class", "classes") == "0 classes"
