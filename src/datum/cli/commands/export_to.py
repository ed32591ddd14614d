"""`datum export-to`: a dataset back as files that everybody reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import datum
from datum import Feature
from datum.cli.arguments import FollowLinks, complete_split, complete_words, open_any
from datum.cli.formatting import spell_feature
from datum.cli.running import print_message
from datum.cli.shell import find_hint
from datum.cli.terminal import data, print_json, show_bar
from datum.errors import Message, shell_word

__all__ = ["command"]

_FORMATS = "parquet|jsonl|images|coco|yolo|voc"


def command(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A dataset, a folder, a file or a pattern.")
    ],
    out: Annotated[
        str,
        typer.Argument(metavar="OUT", help="The new folder; for one split, also x.parquet."),
    ],
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar=_FORMATS,
            autocompletion=complete_words(_FORMATS),
            help="What to make (parquet, or as OUT is called).",
        ),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(
            "--split",
            "-s",
            help="Only this: val, train[:10%]; repeated.",
            autocompletion=complete_split,
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", "-c", metavar="NAME,...", help="Only these features."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of the same names.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
    follow_links: FollowLinks = False,
) -> None:
    """Turn a dataset back into files: tables, class folders, or images with boxes.

    Nothing appears at OUT before it is whole. Images keep their stored bytes; in JSON lines, images
    and byte strings are base64. What comes out can be read by datum write again.

        $ datum export-to photos tables
        $ datum export-to photos pictures --format images --split train
        $ datum export-to streets boxes --format coco
        $ datum export-to photos val.jsonl --split val --columns label,filename
    """
    if not out:
        raise ValueError(Message("expected a folder to export to, got an empty path"))
    opened = open_any(path, follow_links=follow_links)
    if opened.unknown is not None:
        raise opened.unknown
    chosen: Any = format if format is not None else _format_of(out)
    wanted = [name for text in columns or () for name in text.split(",") if name]
    with show_bar("exporting") as bar:
        report = datum.export_to(
            opened.dataset,
            out,
            format=chosen,
            split=split or None,
            columns=wanted or None,
            overwrite=overwrite,
            progress=bar,
        )
    if json:
        print_json([report.to_json()])
        return
    data().print(Text(str(report)), soft_wrap=True)
    first, *more = _next_step(report, opened.dataset.schema)
    print_message("next", Message(first, details=more))


def _next_step(report: Any, schema: Mapping[str, Feature]) -> Sequence[str]:
    """The lines that say how `datum write` reads back what was made."""
    out = Path(report.path)
    tables = {name: out / f"{name}.parquet" for name in report.splits}
    if report.format == "images" and any(path.is_file() for path in tables.values()):
        sources = [f"--source {name}={shell_word(str(path))}" for name, path in tables.items()]
        return [f"datum write NEW {' '.join(sources)}"]
    bare = out / next(iter(report.splits))
    if report.format == "images" and not bare.with_suffix(".txt").is_file() and _has_files(bare):
        return find_hint(str(bare), "NEW")
    images = [
        f"{name}={spell_feature(one)}" for name, one in schema.items() if one.encoding == "image"
    ]
    told = f" --schema {shell_word(','.join(images))}" if images else ""
    told = told if report.format == "parquet" else ""
    return [f"datum write {shell_word(out)} NEW{told}"]


def _has_files(folder: Path) -> bool:
    """Whether images lie in a folder itself, not in folders of their classes."""
    return folder.is_dir() and any(entry.is_file() for entry in folder.iterdir())


def _format_of(out: str) -> str:
    """What the name of a file says it is; Parquet where it says nothing."""
    return "jsonl" if out.lower().endswith((".jsonl", ".ndjson")) else "parquet"
