"""`datum head`: some records, readable in a terminal, or as JSON lines for programs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from datum.cli.arguments import FollowLinks, complete_split
from datum.errors import Message

__all__ = ["command"]


def command(
    path: Annotated[
        str, typer.Argument(help="A dataset, a folder of TFRecord files, a file or a pattern.")
    ],
    count: Annotated[int, typer.Option("-n", "--count", min=0, help="How many records.")] = 5,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            "-s",
            help="Of which split: train, val, train[:10%].",
            autocompletion=complete_split,
        ),
    ] = None,
    index: Annotated[
        list[str] | None,
        typer.Option("--index", "-i", help="Which records: 17, -1, 10:20; may be repeated."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", "-c", help="Only these features: image,label.")
    ] = None,
    random: Annotated[bool, typer.Option("--random", "-r", help="Take records by chance.")] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Of the chance; the same gives the same records.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="A JSON object a line for each record.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="With --json: the bytes of images and byte strings, too.")
    ] = False,
    picture: Annotated[
        Literal["auto", "kitty", "iterm", "sixel", "blocks", "ascii", "none"] | None,
        typer.Option(
            "--picture",
            help="How to show images; as the terminal can, and not where there is none.",
        ),
    ] = None,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Show no images.")] = False,
    width: Annotated[
        int | None, typer.Option("--width", "-w", min=20, help="How wide lines may be.")
    ] = None,
    follow_links: FollowLinks = False,
) -> None:
    """Show some records: numbers, texts, labels, and images as little pictures.

    Only the records shown are read, also of huge and of compressed files. A damaged record is told
    in its place, and the exit code is 1. Records that are no tf.train.Example are shown as text, as
    the fields of their message, or as bytes.

    --json gives for each record {"split", "number", "file", "record", "features": {...}}: arrays as
    nested lists, NaN as null, times as text, sparse values as {"indices", "values", "shape"}; byte
    strings and images as {"bytes", "format", "height", "width", "channels"}, with --full and
    "base64". Instead of "features" a record that is damaged has "error", one that is no Example
    "payload".

        $ datum head photos
        $ datum head photos --split val --index -1 --columns image,label
        $ datum head logs/train.tfrecord.gz -n 100 --json | jq .features.text
    """
    from datum.cli.record_page import Options, print_records
    from datum.cli.record_places import Asked, open_source, parse_numbers

    asked = Asked(count, parse_numbers(index or ()), random or seed is not None, seed)
    if asked.numbers and asked.is_random:
        raise ValueError(Message("expected --index or --random, got both"))
    names = None if columns is None else [name for name in columns.split(",") if name]
    source = open_source(path, split=split, asked=asked, follow_links=follow_links)
    options = Options(
        columns=names,
        is_json=json,
        is_full=full,
        picture="none" if no_picture else picture,
        width=width,
    )
    if not print_records(source, asked, options):
        raise typer.Exit(1)
