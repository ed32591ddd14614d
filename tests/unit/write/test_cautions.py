"""What is worth a second look before a dataset is written."""

import pytest

from datum._write.options import check_options
from datum._write.plan import find_cautions
from datum._write.report import PlannedSplit
from datum.sources import Reject

REJECT = Reject(7, "k", "a.csv, line 9", "expected 2 cells, got 3", "none")


def cautions(
    splits=None, metadata=None, *, rejects=(), duplicates=(), unfitted=(), unread=(), **options
):
    given = {
        "schema": None,
        "floats": "float32",
        "shuffle": True,
        "seed": 0,
        "shard_bytes": 1 << 20,
        "shards": None,
        "records_per_shard": None,
        "compression": None,
        "workers": None,
        "executor": "local",
        "on_error": "raise",
        "stratify": None,
        "sidecars": (),
        "keys": None,
    }
    return find_cautions(
        check_options(**{**given, **options}),
        splits or {"train": PlannedSplit("", 10, 10, 1000, 1)},
        metadata or {},
        looked_at=10,
        rejects=rejects,
        duplicates=duplicates,
        unfitted=unfitted,
        unread=unread,
    )


def test_a_sound_plan_has_none():
    assert cautions() == ()


@pytest.mark.parametrize(
    ("on_error", "words"),
    [("raise", "will stop there"), ("skip", "left out"), ("quarantine", "put aside")],
)
def test_bad_records_are_told_with_what_becomes_of_them(on_error, words):
    (found,) = cautions(rejects=[REJECT], on_error=on_error)
    assert words in found
    assert found.endswith("the first: a.csv, line 9: record 7 (k): expected 2 cells, got 3")


def test_keys_that_occur_twice():
    assert "1 record with the key of another, such as 'k'" in cautions(duplicates=[REJECT])[0]
    assert "leave them out" in cautions(duplicates=[REJECT], on_error="skip")[0]


def test_what_else_lies_in_a_folder():
    (found,) = cautions(unread=["a", "b/", "c", "d"])
    assert found == "4 more in this folder will not be read: a, b/, c, ..."


def test_splits_and_shards_of_odd_sizes():
    split = {
        "empty": PlannedSplit("", 0, 0, 0, 1),
        "many": PlannedSplit("", 3, 3, 300, 10),
        "small": PlannedSplit("", 1000, 1000, 10_000, 10),
        "large": PlannedSplit("", 1000, 1000, 10**12, 2),
    }
    found = cautions(split)
    assert found == (
        "split 'empty' has no records",
        "split 'many': 10 shards for 3 records: some will be empty",
        "split 'small': 10 shards of only about 1.0 kB each",
        "split 'large': shards of about 500.0 GB each; more of them can be read side by side",
    )


def test_compression_empty_columns_and_encoders():
    metadata = {name: {"left_out": "no record has a value"} for name in "abcd"}
    learns = "encoders of text learn from all of the split 'train' first"
    assert cautions(metadata=metadata, compression="gzip", unfitted={"text"}) == (
        "compressed shards cannot be read by record number without a copy in the cache",
        "4 columns left out, as no record has a value: a, b, c, ...",
        f"{learns}: how large their features are is a guess",
    )
