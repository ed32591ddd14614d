"""Code for other libraries, of the dataset at hand: what `datum info --spec` prints."""

from __future__ import annotations

import glob
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from datum import specs
from datum.cli.terminal import data

if TYPE_CHECKING:
    from datum import Dataset

__all__ = ["Dialect", "make_spec", "print_spec"]

Dialect = Literal["tf", "dali", "tfrecord"]


def print_spec(dataset: Dataset, dialect: str) -> None:
    """Print code that reads a dataset with TensorFlow ("tf"), DALI or the package `tfrecord`.

    It is coloured on a terminal; elsewhere it is as it has to be in a file, in UTF-8.
    """
    code = make_spec(dataset, dialect)
    console = data()
    if console.is_terminal:
        from rich.syntax import Syntax

        syntax = Syntax(code.rstrip("\n"), "python", theme="ansi_dark", background_color="default")
        console.print(syntax, soft_wrap=True)
        return
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # replaced by something that takes text alone
        sys.stdout.write(code)
        return
    sys.stdout.flush()
    stream.write(code.encode())
    stream.flush()


def make_spec(dataset: Dataset, dialect: str) -> str:
    """The code, with the files and the compression of the dataset."""
    if dialect not in get_args(Dialect):
        known = ", ".join(get_args(Dialect))
        raise ValueError(f"--spec: expected one of {known}, got {dialect!r}")
    files, compression = _files_of(dataset), dataset.compression
    if dialect == "dali":
        return specs.dali(dataset.schema, files=files, compression=compression)
    if dialect == "tfrecord":
        return specs.tfrecord(dataset.schema, files=files, compression=compression)
    return specs.tensorflow(
        dataset.schema, files=files, compression=compression, metadata=dataset.metadata
    )


def _files_of(dataset: Dataset) -> str | list[str]:
    """The files of the split to train with, or of the first: a pattern, or their names."""
    names = [name for name, info in dataset.splits.items() if info.records] or list(dataset.splits)
    split = "train" if "train" in names else names[0]
    files = [dataset.path / shard.name for shard in dataset.splits[split].shards]
    patterns = _patterns_of(files)
    return patterns or [str(file) for file in files]


def _patterns_of(files: Sequence[Path]) -> str | None:
    """A pattern that fits these files and no others that are there; None if there is none."""
    folders: dict[Path, list[str]] = defaultdict(list)
    for file in files:
        folders[file.parent].append(file.name)
    if len(files) < 2 or len(folders) > 1 or glob.has_magic(str(files[0].parent)):
        return None
    folder, names = next(iter(folders.items()))
    start = _shared(names).rstrip("0123456789")
    end = _shared([name[::-1] for name in names])[::-1].lstrip("0123456789")
    if glob.has_magic(start + end):
        return None
    pattern = f"{start}*{end}"
    found = sorted(path.name for path in folder.glob(pattern))
    return str(folder / pattern) if found == sorted(names) else None


def _shared(names: Sequence[str]) -> str:
    """What all names begin with."""
    first, last = min(names), max(names)
    count = next((at for at, one in enumerate(first) if last[at : at + 1] != one), len(first))
    return first[:count]
