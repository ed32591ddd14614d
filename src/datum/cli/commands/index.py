"""`datum index`: where the records of each file start, for random access, DALI and `tfrecord`."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

import datum
from datum import CorruptIndexError, CorruptRecordError, DatumError
from datum.cli.arguments import FollowLinks
from datum.cli.running import BAD_DATA
from datum.cli.terminal import data, print_json, show_bar, talk
from datum.errors import Message, count_of, inert
from datum.format import Index, RecordFile

__all__ = ["Form", "Indexed", "command"]

MAX_SHOWN = 40  # files; --json lists all
_FAILED = ("missing", "wrong", "refused")
_OTHER_KIND = "a file of another kind is there; --force writes over it"


class Form(StrEnum):
    """What an index file looks like."""

    datum = "datum"
    text = "text"


@dataclass(frozen=True, slots=True)
class Indexed:
    """What became of the index of one file.

    Attributes:
        file: the file with the records.
        index: the file with their places.
        records: how many there are; None if that cannot be told.
        state: "sound" (it was there), "written", "replaced", "missing", "wrong" or "refused".
        reason: why it is wrong, was replaced, or is refused.
    """

    file: str
    index: str
    records: int | None
    state: str
    reason: str = ""


def command(
    path: Annotated[
        str, typer.Argument(help="A dataset, a folder of TFRecord files, a file or a pattern.")
    ],
    form: Annotated[
        Form, typer.Option("--format", help="text is what DALI and the tfrecord package read.")
    ] = Form.datum,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Where to put them; by default index/ beside the files, and for text beside them.",
        ),
    ] = None,
    tfds: Annotated[
        bool,
        typer.Option(
            "--tfds", help="Write what TensorFlow Datasets reads a dataset by, and no indexes."
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if one is not sound.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write all anew, also over files of other kinds.")
    ] = False,
    follow_links: FollowLinks = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for each file.")] = False,
) -> None:
    """Write down where each record starts, or check the indexes that are there.

    With an index, random access to a large file starts at once. index/of-NAME.index in the folder
    of NAME.tfrecord is Datum's own. --format text writes FILE.idx beside FILE, a line "offset size"
    for each record, as tfrecord2idx of DALI and of the tfrecord package does; files must not be
    compressed for that.
    --tfds writes features.json and dataset_info.json into a dataset of Datum.

        $ datum index logs
        $ datum index "logs/train-*" --format text --out idx
        $ datum index photos --check
        $ datum index photos --tfds
    """
    if tfds:
        if out is not None or check or force or as_json or form is not Form.datum:
            raise ValueError(Message("expected --tfds alone, got other options beside it"))
        _describe_for_tfds(path)
        return
    if out == "":
        raise ValueError(Message("--out: expected a folder, got an empty path"))
    folder = None if out is None else Path(out)
    files = _find_files(path, follow_links=follow_links)
    places = [_place_of(file, form, folder) for file in files]
    _check_places(files, places)
    if folder is not None and not check:
        folder.mkdir(parents=True, exist_ok=True)
    found = []
    with show_bar("indexing") as bar:
        for at, (file, place) in enumerate(zip(files, places, strict=True)):
            bar(at, len(files))
            found.append(_treat(file, place, form, check=check, force=force))
    if as_json:
        print_json(map(asdict, found))
    else:
        _show(found)
    if any(one.state in _FAILED for one in found):
        raise typer.Exit(BAD_DATA)


def _describe_for_tfds(path: str) -> None:
    notes = datum.write_sidecars(path, ["tfds"])
    place = inert(path)
    data().print(Text(f"{place}: tfds.builder_from_directory({place!r}) reads it"), soft_wrap=True)
    for note in notes:
        data().print(Text(f"  {inert(note)}"), soft_wrap=True)


def _find_files(path: str, *, follow_links: bool) -> list[Path]:
    if not path:
        raise ValueError(Message("expected the path of a dataset, got an empty one"))
    try:
        dataset = datum.load(path, schema={}, follow_links=follow_links)
    except CorruptRecordError:  # told of the file that it is in
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dataset = datum.load(path, schema={}, on_error="skip", follow_links=follow_links)
    shards = [shard for split in dataset.splits.values() for shard in split.shards]
    return [dataset.path / shard.name for shard in shards]


def _place_of(file: Path, form: Form, out: Path | None) -> Path:
    place = Index.path_for(file) if form is Form.datum else Index.text_path_for(file)
    return place if out is None else out / place.name


def _check_places(files: Sequence[Path], places: Sequence[Path]) -> None:
    owners: dict[Path, Path] = {}
    for file, place in zip(files, places, strict=True):
        other = owners.setdefault(place, file)
        if other is not file:
            raise ValueError(
                Message(
                    f"{place}: expected an index for each file, got one for {other} and {file}",
                    hint="leave out --out, or index the folders one by one",
                )
            )


def _treat(file: Path, place: Path, form: Form, *, check: bool, force: bool) -> Indexed:
    """Find the records of a file, and write or check its index."""
    try:
        index = _find_records(file, form)
    except (DatumError, OSError) as error:
        reason = Message.of(error).beside(file)
        return Indexed(str(file), str(place), None, "refused", reason)
    state, reason = _look_at(place, form, index)
    is_kept = state == "sound" or (state == "refused" and not force)
    if not check and (force or not is_kept):
        write = index.save if form is Form.datum else index.save_text
        write(place)
        state = "written" if state == "missing" else "replaced"
    return Indexed(str(file), str(place), len(index), state, reason)


def _find_records(file: Path, form: Form) -> Index:
    with RecordFile(file, use_index=False) as records:
        if form is Form.text and records.compression is not None:
            raise CorruptIndexError(
                "DALI and tfrecord read files that are not compressed", where=records.compression
            )
        return records.index


def _look_at(place: Path, form: Form, index: Index) -> tuple[str, str]:
    """Whether the index that is there, if any, is that of these records; and why not."""
    if not place.exists():
        return "missing", ""
    try:
        if form is Form.datum and not Index.is_index(place):
            return "refused", _OTHER_KIND
        there = Index.load(place) if form is Form.datum else Index.load_text(place)
    except OSError as error:
        return "refused", str(error)
    except CorruptIndexError as error:
        if form is Form.text:  # which has no checksum: it may be anything
            return "refused", _OTHER_KIND
        return "wrong", error.parts.beside(place)
    is_same = there.stream_bytes == index.stream_bytes and np.array_equal(
        there.offsets, index.offsets
    )
    return ("sound", "") if is_same else ("wrong", "it was of other records")


def _show(found: Sequence[Indexed]) -> None:
    console = data()
    shown = sorted(found, key=lambda one: one.state not in _FAILED)[:MAX_SHOWN]
    has_reasons = any(one.reason for one in shown)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("index", overflow="fold")
    table.add_column("records", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    if has_reasons:
        table.add_column("", overflow="fold")
    for one in shown:
        records = "" if one.records is None else f"{one.records:,}"
        reasons = [Text(inert(one.reason))] if has_reasons else []
        table.add_row(Text(inert(one.index)), records, one.state, *reasons)
    console.print(table)
    if len(found) > len(shown):
        console.print(f"{len(found) - len(shown):,} more are listed by --json", style="dim")
    states = Counter(one.state for one in found)
    counts = ", ".join(f"{count:,} {state}" for state, count in states.items())
    records = count_of(sum(one.records or 0 for one in found), "record")
    console.print(Text(f"{count_of(len(found), 'index', 'indexes')}: {counts}; {records}"))
    for hint in _hints(found):
        talk().print(Text(f"hint: {hint}", style="cyan"), soft_wrap=True)


def _hints(found: Sequence[Indexed]) -> Iterator[str]:
    if any(one.state in ("missing", "wrong") for one in found):
        yield "without --check they are written"
    if any(one.state == "refused" and "not compressed" in one.reason for one in found):
        yield "datum reshard PATH OUT --compression none makes files that are not"
    if any(one.state == "refused" and "got damage" in one.reason for one in found):
        yield "datum verify tells all damage, datum repair keeps what is sound"
