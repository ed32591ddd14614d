"""Record files of a foreign dataset: content, split names, shard sets and JSON descriptions."""

from __future__ import annotations

import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from datum import _core
from datum.errors import Call, CorruptRecordError, ManifestError, SplitError, Text
from datum.format.framing import CompressedStreamError, detect_compression, inflate
from datum.format.manifest import check_split_name, read_manifest
from datum.format.strict_json import describe, parse_json

__all__ = [
    "check_member",
    "check_sets",
    "expect",
    "is_beside",
    "list_folder",
    "natural_order",
    "no_record_file",
    "read_json",
    "select_record_files",
    "size_of",
    "sniff",
    "split_of_file",
    "split_of_folder",
    "split_order",
]

DEFAULT_SPLIT = "train"  # for files whose names contain no split
SHOWN_MISSING = 5
MAX_MISSING = 1000  # listed of one set, since the names of files may claim any number

# In the order in which splits are listed.
_WORDS: tuple[str, ...] = (
    *("train", "training", "trainval"),
    *("val", "valid", "validation", "dev", "eval", "evaluation"),
    *("test", "testing", "holdout", "unlabeled", "unlabelled", "unsupervised"),
)
_LETTERS = re.compile(r"[^\W\d_]+")
_ARTIFACT = "Split-"  # prefix of the folders of splits in TFX
_SHARD = re.compile(r"(.+)[-_.]([0-9]{1,18})-of-([0-9]{1,18})(.*)")
_COMPRESSED = re.compile(r"\.(?:gz|gzip|z|zz|zlib)$", re.IGNORECASE)


def split_of_file(path: Path) -> str:
    """The split of a record file: the last word of its name, or else of its folder, that is one.

    >>> split_of_file(Path("data/nsynth-train.tfrecord")), split_of_file(Path("x/valid-1.tfr"))
    ('train', 'valid')
    >>> (
    ...     split_of_file(Path("Split-eval/data-00000-of-00012")),
    ...     split_of_file(Path("data/a.tfrecord")),
    ... )
    ('eval', 'train')
    """
    named: list[str] = [word for word in _LETTERS.findall(path.name.lower()) if word in _WORDS]
    if named:
        return named[-1]
    folder = path.absolute().parent
    if folder.name.lower() in _WORDS or folder.name.startswith(_ARTIFACT):
        return split_of_folder(folder)
    return DEFAULT_SPLIT


def split_of_folder(folder: Path) -> str:
    """The split that a folder is named after; ManifestError if a split cannot have that name.

    >>> split_of_folder(Path("out/Split-train")), split_of_folder(Path("out/Validation"))
    ('train', 'validation')
    """
    name = folder.name.removeprefix(_ARTIFACT)
    name = name.lower() if name.lower() in _WORDS else name
    try:
        return check_split_name(name)
    except SplitError as error:
        raise ManifestError(
            f"expected a folder named after a split: {error.parts.line}",
            where=folder,
            hint="rename it, or load a list of the files in it",
        ) from None


def split_order(name: str) -> tuple[int, str]:
    """A sort key of splits: training first, testing last."""
    return (_WORDS.index(name) if name in _WORDS else len(_WORDS)), name


def natural_order(name: str) -> list[str | int]:
    """A sort key of names that compares numbers by value.

    >>> sorted(["x-10", "x-9", "x"], key=natural_order)
    ['x', 'x-9', 'x-10']
    """
    parts: list[str | int] = list(re.split(r"([0-9]+)", name))
    parts[1::2] = map(int, parts[1::2])
    return parts


@dataclass(frozen=True, slots=True)
class _NumberedFile:
    """A file with its number and the count of its set in the name."""

    path: Path
    number: int
    count: int
    digits: tuple[int, int]  # place of the number in the name

    def sibling(self, number: int) -> Path:
        """The path of another shard of the set."""
        (start, stop), name = self.digits, self.path.name
        return self.path.with_name(f"{name[:start]}{number:0{stop - start}}{name[stop:]}")


def check_sets(paths: Iterable[Path], *, may_miss: bool = False) -> list[Path]:
    """Raise ManifestError if files of a set such as `-00000-of-00004` are missing or duplicate.

    Numbers may start at 0 or at 1.

    Args:
        paths: Paths of the files.
        may_miss: Whether to return the missing files instead of raising.
    """
    sets: dict[tuple[Path, str, str], list[_NumberedFile]] = defaultdict(list)
    for path in paths:
        found = _SHARD.fullmatch(path.name)
        if found is not None and int(found[2]) <= int(found[3]):
            shard = _NumberedFile(path, int(found[2]), int(found[3]), found.span(2))
            sets[path.parent, found[1], _COMPRESSED.sub("", found[4])].append(shard)
    absent: list[Path] = []
    for shards in sets.values():
        _check_one_set(shards)
        missing = _find_missing(shards, MAX_MISSING if may_miss else SHOWN_MISSING + 1)
        if missing and not may_miss:
            raise _missing(shards[0], missing)
        absent += missing
    return absent


def _check_one_set(shards: list[_NumberedFile]) -> None:
    seen: dict[int, _NumberedFile] = {}
    for shard in shards:
        other = seen.setdefault(shard.number, shard)
        if shard.count != shards[0].count or other is not shard:
            first = shards[0] if shard.count != shards[0].count else other
            raise ManifestError(
                f"expected one set of shards, got {first.path.name} and {shard.path.name}",
                where=shard.path.parent,
                hint="remove the files of an older export, or load a list of those to read",
            )


def _find_missing(shards: list[_NumberedFile], limit: int) -> list[Path]:
    """The first shards of a set that are neither given nor on the disk."""
    numbers, count = {shard.number for shard in shards}, shards[0].count
    first = 1 if count in numbers else 0
    missing: list[Path] = []
    for path in _absent(shards[0], numbers, range(first, first + count)):
        missing.append(path)
        if len(missing) >= limit:
            break
    return missing


def _absent(shard: _NumberedFile, numbers: set[int], wanted: range) -> Iterator[Path]:
    for number in wanted:
        if number not in numbers and not (path := shard.sibling(number)).exists():
            yield path


def _missing(shard: _NumberedFile, missing: list[Path]) -> ManifestError:
    shown = ", ".join(path.name for path in missing[:SHOWN_MISSING])
    more = ", ..." if len(missing) > SHOWN_MISSING else ""
    return ManifestError(
        f"expected all {shard.count} shards of a set, but there is no {shown}{more}",
        where=shard.path.parent,
        hint="copy them here, or load a list of the files that are here",
    )


Beginning = Literal["records", "nothing", "other"]

HEAD_BYTES = 64 * 1024  # enough to decompress a header
HEADER_BYTES = 12  # a length and its CRC

_LIKE_RECORDS = re.compile(
    r"tfrec|\.tfr\b|\.records?\b|\.recordio\b|-[0-9]+-of-[0-9]+", re.IGNORECASE
)
# Files beside records, which are never opened: indexes, descriptions, tables, images, archives.
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
    """The files of a folder that may have records, and its folders, in order.

    Hidden entries are skipped (names that start with `.` or `_`, and `lost+found`), and so are
    files whose names show that they have no records: indexes, JSON, text, tables, images, archives.
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
    """Whether the name of a file shows that it has no records.

    >>> is_beside("label_map.pbtxt"), is_beside("rows.csv.gz"), is_beside("train-00000-of-00004")
    (True, True, False)
    """
    plain = _COMPRESSED.sub("", name).lower()
    stem, _, suffix = plain.rpartition(".")
    return (suffix in _BESIDE if stem else plain in _PAPERS) or name[:1] in "._"


def select_record_files(paths: Iterable[Path], *, skips_damage: bool = False) -> list[Path]:
    """The files that have records; none if no file has any.

    Any other file among record files raises CorruptRecordError, since it may be a damaged one.
    Empty files count if they are named like record files.

    Args:
        paths: Paths of the files.
        skips_damage: Whether to return files that may be damaged instead of raising.
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
    """The start of a file: the header of a record, compressed or not; nothing; or other bytes."""
    try:
        if not path.is_file():  # reading a pipe would wait for its writer
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
        except CompressedStreamError:  # the head is cut, so only the bytes before count
            if not inflated:
                return "other"
        head = inflated
    if not head:
        return "nothing"
    return "records" if _core.has_valid_header(head[:HEADER_BYTES]) else "other"


def no_record_file(path: Path) -> CorruptRecordError:
    """The error for a file that should have records, and does not begin with one."""
    return CorruptRecordError(
        "expected a TFRecord file, got other bytes, or a first record that is damaged",
        where=path,
        hint=Text(
            "restore it, or load a list of the other files; ",
            Call("datum.write", shell="datum write"),
            " makes a dataset of other kinds of files",
        ),
    )


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; ManifestError names the file and the place of an error."""
    file, data = read_manifest(path)
    try:
        return expect(parse_json(data), dict, "$")  # type: ignore[no-any-return]
    except ManifestError as error:
        raise ManifestError(error, where=file) from None


def expect(value: Any, kind: type, where: str) -> Any:
    """Return a value of this kind, or raise ManifestError; a bool is no number."""
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    kinds = {dict: "an object", list: "a list", str: "a text", int: "an integer", bool: "a truth"}
    raise ManifestError(f"expected {kinds[kind]}, got {describe(value)}", where=where)


def size_of(path: Path) -> int | None:
    """The size of a regular file; None if there is no such file."""
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: a name with a NUL
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def check_member(name: str, where: str) -> str:
    """Return the name of a file in this folder; raise ManifestError for a path out of it."""
    parts = PurePosixPath(name).parts
    is_inside = parts and not name.startswith("/") and ".." not in parts
    if not is_inside or any(c in "\\:" or c < " " for c in name):
        got = describe(name)
        raise ManifestError(f"expected the name of a file in this folder, got {got}", where=where)
    return name
