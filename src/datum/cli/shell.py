"""Messages of the library in the language of a shell, and hints for sources."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from datum import DatumError, Feature, SourceError, sources
from datum.cli.formatting import spell_feature
from datum.cli.running import COMMAND
from datum.errors import AmbiguousSourceError, Message, Option, Text, shell_word

__all__ = [
    "find_hint",
    "hinted",
    "is_for_shell",
    "say",
    "say_for_shell",
    "spell_option",
    "spell_value",
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


# Messages.


def spell_option(option: Option) -> str:
    """An option as the running command takes it: `--overwrite`, `--splits train=0.9,val=0.1`."""
    found = _find_parameter(option)
    if found is None:
        return str(option)
    if found.param_type_name == "argument":
        return found.metavar or str(found.name).upper()
    flag = next((name for name in found.opts if name.startswith("--")), found.opts[0])
    if not option.has_value or option.value is True:
        return str(flag)
    if option.value is False:
        return str(found.secondary_opts[0] if found.secondary_opts else flag)
    return f"{flag} {shell_word(spell_value(option.value))}"


def spell_value(value: Any) -> str:
    """A value as a flag takes it.

    >>> spell_value({"train": 0.8, "val": 0.2}), spell_value(["a", "b"])
    ('train=0.8,val=0.2', 'a,b')
    >>> spell_value({"x": Feature("float32", (None,), optional=True)}), spell_value(None)
    ('x=float32[?]?', 'none')
    """
    if isinstance(value, Mapping):
        return ",".join(f"{name}={spell_value(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(map(spell_value, value))
    if isinstance(value, Feature):
        return spell_feature(value)
    return "none" if value is None else str(value)


def _find_parameter(option: Option) -> Any:
    command = COMMAND.get()
    known = {param.name: param for param in command.params} if command is not None else {}
    return known.get(option.name)


def is_for_shell(line: str) -> bool:
    """Whether a line proposes nothing that the running command lacks."""
    if not isinstance(line, Text):
        return True
    return not line.is_for_python and all(map(_find_parameter, line.options))


def say(line: str) -> str:
    """A line with options as flags, and commands in place of calls."""
    return line.for_shell(spell_option) if isinstance(line, Text) else line


def say_for_shell(message: Message) -> Message:
    """A message as a shell spells it, without hints that only Python can follow."""
    hints: list[str] = []
    is_kept = True
    for line in message.hint_lines:
        is_kept = is_for_shell(line) and (is_kept or not line.startswith("  "))
        hints += [say(line)] if is_kept else []
    details = [say(line) for line in message.details]
    return message.changed(problem=say(message.problem), details=details, hint=hints)


@contextmanager
def hinted(place: Any, target: str | None) -> Iterator[None]:
    """Add a next step to a SourceError about what lies at a path, if it has none for a shell."""
    try:
        yield
    except SourceError as error:
        found = error.parts
        is_about_options = isinstance(found.problem, Text) and bool(found.problem.options)
        has_hint = any(map(is_for_shell, found.hint_lines))
        if not isinstance(place, str) or is_about_options or has_hint:
            raise
        raise SourceError(found.changed(hint=find_hint(place, target))) from error
