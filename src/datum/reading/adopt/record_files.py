"""Which files of a folder hold records: told by their content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from datum import _core
from datum.errors import CorruptRecordError, ManifestError
from datum.format.compression import CompressedStreamError, detect_compression, inflate
from datum.reading.adopt.names import natural_order

__all__ = ["is_beside", "list_folder", "no_record_file", "select_record_files", "sniff"]

Beginning = Literal["records", "nothing", "other"]

HEAD_BYTES = 64 * 1024  # enough to tell, and to inflate a header from
HEADER_BYTES = 12  # a length and its CRC

_COMPRESSED = re.compile(r"\.(?:gz|gzip|z|zz|zlib)$", re.IGNORECASE)
_LIKE_RECORDS = re.compile(
    r"tfrec|\.tfr\b|\.records?\b|\.recordio\b|-[0-9]+-of-[0-9]+", re.IGNORECASE
)
# What lies beside records: indexes, descriptions, tables, pictures, archives. Never opened.
_BESIDE = frozenset(
    (
        *("index", "idx", "crc", "md5", "sha256", "lock", "log", "tmp", "partial", "bak"),
        *("json", "jsonl", "ndjson", "yaml", "yml", "toml", "ini", "cfg", "xml", "html"),
        *("txt", "md", "rst", "pdf", "csv", "tsv", "names", "labels", "vocab", "pbtxt", "pb"),
        *("py", "ipynb", "sh", "npy", "npz", "parquet", "arrow", "array_record", "riegeli"),
        *("jpg", "jpeg", "png", "gif", "webp", "bmp", "wav", "mp3", "mp4"),
        *("zip", "tar", "tgz", "bz2", "xz", "zst", "7z"),
    )
)
_PAPERS = ("readme", "license", "licence", "notice", "copying", "authors", "changelog", "manifest")


def list_folder(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of a folder that may hold records, and its folders, in order.

    Hidden ones are passed over (names that start with `.` or `_`, and `lost+found`), and so are
    files that only lie beside records by their names: indexes, JSON, text, tables, pictures,
    archives.
    """
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir()) for entry in entries]
    except OSError as error:
        raise ManifestError(f"expected a folder to read: {error}", where=folder) from error
    found.sort(key=lambda entry: natural_order(entry[0]))
    shown = [entry for entry in found if entry[0][0] not in "._" and entry[0] != "lost+found"]
    return (
        [folder / name for name, is_folder in shown if not is_folder and not is_beside(name)],
        [folder / name for name, is_folder in shown if is_folder],
    )


def is_beside(name: str) -> bool:
    """Whether a file only lies beside records, by its name.

    >>> is_beside("label_map.pbtxt"), is_beside("rows.csv.gz"), is_beside("train-00000-of-00004")
    (True, True, False)
    """
    plain = _COMPRESSED.sub("", name).lower()
    stem, _, suffix = plain.rpartition(".")
    return (suffix in _BESIDE if stem else plain in _PAPERS) or name[:1] in "._"


def select_record_files(paths: Iterable[Path], *, skips_damage: bool = False) -> list[Path]:
    """Those of some files that hold records; none if there are no records at all.

    Among record files every other one is an error that names it: it may be one that is damaged.
    Empty files count if they are named like record files. With `skips_damage` those that may be
    damaged count, too.
    """
    kinds = {path: sniff(path) for path in paths}
    has_records = "records" in kinds.values()
    chosen = []
    for path, kind in kinds.items():
        is_named_so = _LIKE_RECORDS.search(path.name) is not None
        if kind == "other" and (has_records or is_named_so):
            if not skips_damage:
                raise no_record_file(path)
            chosen.append(path)
        if kind == "records" or (kind == "nothing" and is_named_so):
            chosen.append(path)
    return chosen


def sniff(path: Path) -> Beginning:
    """What a file begins with: the header of a record, compressed or not, nothing, or others."""
    try:
        if not path.is_file():  # a pipe would wait for whoever writes to it
            raise OSError("not a regular file")
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise ManifestError(f"expected a TFRecord file to read: {error}", where=path) from error
    compression = detect_compression(head) if head else None
    if compression is not None:
        inflated = b""
        try:
            for piece in inflate(head, compression):
                inflated += piece
                if len(inflated) >= HEADER_BYTES:
                    break
        except CompressedStreamError:  # the head of a file is cut: what comes before counts
            if not inflated:
                return "other"
        head = inflated
    if not head:
        return "nothing"
    return "records" if _core.has_valid_header(head[:HEADER_BYTES]) else "other"


def no_record_file(path: Path) -> CorruptRecordError:
    """The error of a file that should hold records, and does not even begin with one."""
    return CorruptRecordError(
        "expected a TFRecord file, got other bytes, or a first record that is damaged",
        where=path,
        hint="restore it, or load a list of the files to read without it;"
        " of other kinds of files datum.write makes a dataset",
    )
