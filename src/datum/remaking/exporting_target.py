"""Where exported files are made before anyone sees them, and how they appear: whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from datum.errors import WriteError
from datum.format.naming import MANIFEST_NAME

__all__ = ["open_target"]

_SUFFIXES = {"parquet": (".parquet", ".pq"), "jsonl": (".jsonl", ".ndjson"), "images": ()}
# Names of files, which a folder gets only by mistake.
_OTHER_FILES = (".arrow", ".csv", ".feather", ".gz", ".json", ".tfrecord", ".tsv", ".zip", ".zst")
_ALL_FILES = (*_OTHER_FILES, *_SUFFIXES["parquet"], *_SUFFIXES["jsonl"])


@contextmanager
def open_target(
    out: Path, format: str, splits: Sequence[str], *, overwrite: bool
) -> Iterator[Path]:
    """Give a folder to make files in, by the names they shall have; in the end they are at `out`.

    WriteError if there are files of those names already, unless `overwrite` is set, and in any
    case within a dataset of Datum.
    """
    out = Path(os.path.realpath(out.expanduser()))
    is_file = out.suffix.lower() in _SUFFIXES[format]
    _check(out, format, splits, is_file=is_file, overwrite=overwrite)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{out.name}.", suffix=".partial", dir=out.parent, ignore_cleanup_errors=True
        ) as name:
            folder = Path(name) / "new"
            folder.mkdir()
            yield folder
            if is_file:
                (made,) = folder.iterdir()
                made.replace(out)
            else:
                _publish(folder, out, overwrite=overwrite)
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(f"{out}: nothing was exported: {error}") from error


def _check(
    out: Path, format: str, splits: Sequence[str], *, is_file: bool, overwrite: bool
) -> None:
    if is_file and len(splits) > 1:
        raise WriteError(
            f"{out}: expected a folder for {len(splits)} splits, got the name of a file\n"
            f"hint: give split={splits[0]!r}, or the folder {out.parent / out.stem}"
        )
    if is_file:
        taken = [out] if out.exists() else []
    elif out.exists() and not out.is_dir():
        raise WriteError(f"{out}: expected a folder, got a file")
    elif out.suffix.lower() in _ALL_FILES and not out.exists():
        meant = [name for name, endings in _SUFFIXES.items() if out.suffix.lower() in endings]
        other = f"format={meant[0]!r}" if meant else "for one split a name in .parquet or .jsonl"
        raise WriteError(
            f"{out}: expected a folder for {format}, got the name of another kind of file\n"
            f"hint: give the folder {out.parent / out.stem}, or {other}"
        )
    else:
        if (out / MANIFEST_NAME).exists():
            raise WriteError(
                f"{out}: expected a folder for exported files, got a dataset of Datum\n"
                "hint: export to a folder of its own"
            )
        taken = [path for split in splits for path in _names_of(out, split, format)]
    if is_file and out.is_dir():
        raise WriteError(f"{out}: expected a file, got a folder")
    if taken and not overwrite:
        raise _taken(taken[0])


def _taken(path: Path) -> WriteError:
    return WriteError(
        f"{path}: expected nothing of that name, got what is there already\n"
        "hint: overwrite=True replaces it"
    )


def _names_of(out: Path, split: str, format: str) -> list[Path]:
    """What is there by the names that the files of a split get."""
    if not out.is_dir():
        return []
    if format != "images":
        path = out / f"{split}.{format}"
        return [path] if path.exists() else []
    wanted = (split, f"{split}.jsonl", f"{split}.parquet", f"{split}.txt")
    return [entry for entry in sorted(out.iterdir()) if entry.name in wanted]


def _publish(made: Path, out: Path, *, overwrite: bool) -> None:
    """Move what was made to where it belongs; what it replaces goes with the rest."""
    if not out.exists():
        made.rename(out)
        return
    taken = [out / entry.name for entry in sorted(made.iterdir()) if (out / entry.name).exists()]
    if taken and not overwrite:  # made meanwhile, or of a name that nobody could know before
        raise _taken(taken[0])
    old = made.with_name("old")
    old.mkdir()
    for entry in sorted(made.iterdir()):
        place = out / entry.name
        if place.is_symlink() or place.exists():
            shutil.move(place, old / entry.name)
        entry.rename(place)
    shutil.rmtree(old, ignore_errors=True)
