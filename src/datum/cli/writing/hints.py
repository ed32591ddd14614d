"""How to go on in a shell from a source that `datum write` does not understand."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from datum import DatumError, sources
from datum.errors import shell_word

__all__ = ["find_hint"]

_IMAGES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
_TABLES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".jsonl", ".ndjson", ".json")
_TRIED_FOLDERS = 20
_START_BYTES = 2**16  # of a file, in which its keys are found
_PIPE = "records of any kind can come as JSON lines: your-program | datum write - OUT"


def find_hint(place: str, target: str | None) -> list[str]:
    """The lines of the next step for what lies at a path: a command, where there is one."""
    path = Path(place).expanduser()
    out = shell_word(target or "OUT")
    if not path.is_dir():
        is_records = path.is_file() and ".tfrecord" in path.name.lower()
        return [_lay_out_anew(path, out) if is_records else _PIPE]
    try:
        for find in (
            _find_records,
            _find_coco,
            _find_folder,
            _find_boxes,
            _find_pictures,
            _find_table,
        ):
            hint = find(path, out)
            if hint is not None:
                return [hint] if isinstance(hint, str) else hint
    except OSError:  # a folder that cannot be read is told already
        pass
    return [_PIPE]


def _find_records(path: Path, out: str) -> str | None:
    if not any(path.glob("*.tfrecord*")) and not (path / "datum.json").exists():
        return None
    return _lay_out_anew(path, out)


def _lay_out_anew(path: Path, out: str) -> str:
    shown = f"datum reshard {shell_word(str(path))} {out}"
    return f"these are TFRecord files already; to lay them out anew: {shown}"


def _find_coco(path: Path, out: str) -> str | None:
    """COCO, whose annotations would be taken for texts."""
    for file in sorted((path / "annotations").glob("*.json"))[:_TRIED_FOLDERS]:
        with file.open("rb") as opened:
            start = opened.read(_START_BYTES)
        if b'"images"' in start or b'"categories"' in start:
            return f"annotations of COCO can come as JSON lines: your-program | datum write - {out}"
    return None


def _find_boxes(path: Path, out: str) -> list[str] | None:
    """Pascal VOC in folders of other names."""
    folders = list(_folders(path))
    annotated = {folder: _stems(folder, (".xml",)) for folder in folders}
    boxes = max(folders, key=lambda folder: len(annotated[folder]), default=path)
    named = annotated.get(boxes, set())
    photos = {folder: len(_stems(folder, (".jpg", ".jpeg")) & named) for folder in folders}
    shared = {folder: len(_stems(folder, _IMAGES) & named) for folder in folders}
    # Masks have the names of the photos, too, but are PNG.
    pictures = max(folders, key=lambda folder: (photos[folder], shared[folder]), default=path)
    if not shared.get(pictures):
        return None
    images, xml = pictures.relative_to(path), boxes.relative_to(path)
    return [
        "if these are boxes as of Pascal VOC, name the folders in a file, source.toml:",
        "  [source]",
        '  class = "VocDetection"',
        f'  path = "{path}"',
        f'  splits.train = {{image_dir = "{images}", annotation_dir = "{xml}"}}',
        f"  and write with: datum write {out} --options source.toml",
    ]


def _find_pictures(path: Path, out: str) -> str | None:
    """Images without classes: a table that lists them."""
    counts = Counter(ending for _, ending in _names(path) if ending.lower() in _IMAGES)
    if not counts:
        return None
    suffix = counts.most_common(1)[0][0]
    return (
        "images without classes can be listed in a table:"
        f" (echo path; ls {shell_word(str(path))}/*{suffix}) > images.csv;"
        f" datum write images.csv {out}"
    )


def _find_folder(path: Path, out: str) -> str | None:
    """A folder within that is understood."""
    inner = sorted(entry for entry in path.iterdir() if entry.is_dir())
    for folder in inner[:_TRIED_FOLDERS]:
        try:
            sources.as_source(folder)
        except DatumError as error:
            if "several that fit" not in error.problem:  # which says itself how to choose
                continue
        return f"name a folder within: datum write {shell_word(str(folder))} {out}"
    return None


def _find_table(path: Path, out: str) -> str | None:
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in _TABLES)
    if not files:
        return None
    return f"name one of its files: datum write {shell_word(str(files[0]))} {out}"


def _folders(path: Path) -> Iterator[Path]:
    """The folders in a folder, and those in them."""
    for entry in sorted(path.iterdir())[:_TRIED_FOLDERS]:
        if entry.is_dir():
            yield entry
            yield from sorted(one for one in entry.iterdir() if one.is_dir())[:_TRIED_FOLDERS]


def _stems(folder: Path, suffixes: tuple[str, ...]) -> set[str]:
    """The names, without their endings, of files that end in one of these."""
    return {stem for stem, ending in _names(folder) if ending.lower() in suffixes}


def _names(folder: Path) -> list[tuple[str, str]]:
    with os.scandir(folder) as entries:
        return [os.path.splitext(entry.name) for entry in entries]  # noqa: PTH122
