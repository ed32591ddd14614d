"""The names of splits, and of the shards that hold their records."""

from __future__ import annotations

import re

from datum.errors import Message, SplitError

__all__ = [
    "ALL_SPLITS",
    "MANIFEST_NAME",
    "check_split_name",
    "is_own_shard_name",
    "parse_shard_name",
    "shard_name",
]

MANIFEST_NAME = "datum.json"
ALL_SPLITS = "all"  # what stands for every split where one can be asked for
MAX_SPLIT_BYTES = 128  # leaves room for the rest of a file name, which is 255 bytes at most

_SPLIT = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
_LIKE_A_SHARD = re.compile(r".*(-[0-9]{5,}|\.[1-9][0-9]*)")
# Numbers of at most 18 digits: more are no count of files, and costly to convert.
_SHARD = re.compile(r"(.+)[-_]([0-9]{1,18})-of-([0-9]{1,18})((?:\.[A-Za-z][A-Za-z0-9_]*)*)")
_GENERATION = re.compile(r"(.+)\.([1-9][0-9]{0,17})")
_FORMATS = (".tfrecord", ".tfrecords", ".tfrec", ".array_record")


def shard_name(split: str, number: int, count: int, *, generation: int = 0) -> str:
    """Name shard `number` of the `count` that one write made for a split.

    What is appended to a dataset is a generation of its own, counted from 1. Numbers have five
    digits, or as many as `count`, so that names sort in the order of the shards.

    >>> shard_name("train", 0, 8)
    'train-00000-of-00008.tfrecord'
    >>> shard_name("train", 1, 2, generation=1)
    'train.1-00001-of-00002.tfrecord'
    """
    check_split_name(split)
    if not 0 <= number < count:
        raise ValueError(f"expected a number below {count}, the number of shards, got {number}")
    if generation < 0:
        raise ValueError(f"expected `generation` of 0 or more, got {generation}")
    appended = f".{generation}" if generation else ""
    width = max(5, len(str(count)))
    return f"{split}{appended}-{number:0{width}}-of-{count:0{width}}.tfrecord"


def parse_shard_name(name: str) -> tuple[str, int, int, int] | None:
    """Split, number, count and generation, if this is the name of a shard, ours or another's.

    Names of `shard_name` come back as they were made. Of others this is a guess: numbers of any
    width, any extensions or none, `_` for the first `-`, and the names of TensorFlow Datasets,
    `DATASET-SPLIT.tfrecord-NUMBER-of-COUNT`, where the split is what follows the last `-`.

    >>> parse_shard_name("validation-00003-of-00128")
    ('validation', 3, 128, 0)
    >>> parse_shard_name("mnist-train.tfrecord-00001-of-00002.gz")
    ('train', 1, 2, 0)
    """
    found = _SHARD.fullmatch(name)
    if found is None:
        return None
    split, number, count, extensions = found[1], int(found[2]), int(found[3]), found[4]
    if number >= count:
        return None
    generation = 0
    form = next((form for form in _FORMATS if split.endswith(form)), None)
    if form is not None and not extensions.startswith(_FORMATS):
        split = split.removesuffix(form).rpartition("-")[2]
    else:
        appended = _GENERATION.fullmatch(split)
        if appended is not None:
            split, generation = appended[1], int(appended[2])
    return (split, number, count, generation) if split else None


def is_own_shard_name(name: str) -> bool:
    """Whether `shard_name` makes this name.

    >>> is_own_shard_name("train.1-00001-of-00002.tfrecord"), is_own_shard_name("train-0-of-2")
    (True, False)
    """
    found = parse_shard_name(name)
    if found is None:
        return False
    split, number, count, generation = found
    try:
        return shard_name(split, number, count, generation=generation) == name
    except SplitError:
        return False


def check_split_name(name: str) -> str:
    """Refuse what cannot name a split, and so begin the names of files anywhere.

    Letters (a-z), digits, `_`, `-` and inner dots; not what would read as part of the name of a
    shard (`train-00000`, `train.1`), and not `all`, which stands for every split.

    >>> check_split_name("train_2012")
    'train_2012'
    """
    problem = _find_problem(name)
    if problem:
        raise SplitError(problem, where=f"split {name!r:.200}")
    return name


def _find_problem(name: str) -> str | Message | None:
    if not isinstance(name, str):
        return f"expected a name, got {type(name).__name__}"
    if name == ALL_SPLITS:
        return f"expected another name: {ALL_SPLITS!r} stands for every split"
    if len(name) > MAX_SPLIT_BYTES:
        return f"expected at most {MAX_SPLIT_BYTES} characters, got {len(name)}"
    if not _SPLIT.fullmatch(name):
        return Message(
            "expected letters from a to z, digits, '_', '-' and inner dots",
            hint="name it like 'train', 'val' or 'test_2012'",
        )
    if _LIKE_A_SHARD.fullmatch(name):
        return Message(
            "expected a name that does not end like that of a shard,"
            " in '-' and five digits or in '.' and a number",
            hint="use '_' before the number",
        )
    return None
