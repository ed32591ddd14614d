"""Errors of the library in the language of the shell."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from datum import DatumError, Feature, SourceError, sources
from datum.cli.write_options import spell_feature
from datum.errors import AmbiguousSourceError, Message, shell_word

__all__ = [
    "find_hint",
    "say_for_shell",
    "told_for_shell",
]

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
        except AmbiguousSourceError:
            pass  # its own hint says how to choose
        except DatumError:
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


_OPTIONS = (
    "append|columns|comment|compression|decimal|delimiter|drop|encoders|encoding|executor|floats"
    "|format|header|keys|max_side|names|null_values|on_error|overwrite|problem|quality"
    "|records_per_shard|rename|schema|seed|shard_bytes|shards|sidecars|skip_rows|split|splits"
    "|stratify|workers"
)
_OF_PYTHON = ("datum.sources", "pass rows", "pass its records", "(path")
_OTHER_NAMES = {"shard_bytes": "shard-size", "sidecars": "sidecar"}
_FLAG = re.compile(rf"\b({_OPTIONS})=True")
_NO_FLAG = re.compile(rf"\b({_OPTIONS})=False")
_WORD = re.compile(rf"\b({_OPTIONS})=(?:'([\w.,-]+)'|(\d+))")
_NAME = re.compile(rf"`({_OPTIONS})`")
_DICT = re.compile(r"\bsplits=\{((?:'\w+': [\d.]+(?:, )?)+)\}")
_FEATURE = re.compile(r"\bschema=\{('[^'{}]+'): datum\.(Feature\((?:[^()]|\([^()]*\))*\))\}")
_SOURCES = re.compile(r"\bdatum\.write\(\{((?:'\w+': '[^']+'(?:, )?)+)\}, out\)")
_SOURCE = re.compile(r"'(\w+)': '([^']+)'")
_PAIR = re.compile(r"'(\w+)': ([\d.]+)(?:, )?")


def say_for_shell(text: str) -> str:
    """A message with options as they are written in a shell.

    >>> say_for_shell("hint: overwrite=True replaces it, on_error='skip' goes on")
    'hint: --overwrite replaces it, --on-error skip goes on'
    >>> say_for_shell("hint: schema={'x': datum.Feature('float32', (None,), optional=True)}")
    "hint: --schema 'x=float32[?]?'"
    >>> say_for_shell("hint: splits={'train': 0.8, 'val': 0.2}")
    'hint: --splits train=0.8,val=0.2'
    >>> say_for_shell("schema={'path': datum.Feature('str')} stores the text")
    '--schema path=str stores the text'
    """
    text = _SOURCES.sub(lambda found: f"datum write OUT {_sources(found[1])}", text)
    text = _DICT.sub(lambda found: f"--splits {_pairs(found[1])}", text)
    text = _FEATURE.sub(lambda found: f"--schema {_spell(found[1], found[2])}", text)
    text = _NAME.sub(lambda found: f"--{_dashed(found[1])}", text)
    text = _FLAG.sub(lambda found: f"--{_dashed(found[1])}", text)
    text = _NO_FLAG.sub(lambda found: f"--no-{_dashed(found[1])}", text)
    return _WORD.sub(lambda found: f"--{_dashed(found[1])} {found[2] or found[3]}", text)


def _spell(name: str, feature: str) -> str:
    """The name and the repr of a feature as one word of a shell, quoted where it has a `?`."""
    call: Any = ast.parse(feature, mode="eval").body
    values = [ast.literal_eval(one) for one in call.args]
    named = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
    return shell_word(f"{ast.literal_eval(name)}={spell_feature(Feature(*values, **named))}")


def _pairs(text: str) -> str:
    return ",".join(f"{name}={value}" for name, value in _PAIR.findall(text))


def _sources(text: str) -> str:
    return " ".join(
        f"--source {shell_word(f'{name}={path}')}" for name, path in _SOURCE.findall(text)
    )


def _dashed(name: str) -> str:
    return _OTHER_NAMES.get(name, name.replace("_", "-"))


@contextmanager
def told_for_shell(place: Any, target: str | None) -> Iterator[None]:
    """Let errors speak of options as a shell has them, and lead on from a source not understood."""
    try:
        yield
    except (DatumError, TypeError, ValueError) as error:
        found = Message.of(error)
        problem, hint = say_for_shell(found.problem), say_for_shell(found.hint).split("\n")
        is_of_options = not found.where and problem.startswith(("expected --", "--"))
        if isinstance(error, SourceError) and isinstance(place, str) and not is_of_options:
            is_of_python = any(word in found.hint for word in _OF_PYTHON)
            hint = find_hint(place, target) if is_of_python or not found.hint else hint
        error.args = (found.changed(problem=problem, hint=hint),)
        raise
