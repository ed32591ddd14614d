"""`datum stats`."""

from __future__ import annotations

from typing import Annotated

import typer

from datum.cli.arguments import FollowLinks, complete_split, open_any
from datum.cli.running import print_message
from datum.cli.terminal import data, print_json, show_bar

__all__ = ["command"]


def command(
    path: Annotated[
        str, typer.Argument(help="A dataset, a folder of TFRecord files, a file, or a pattern.")
    ],
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            metavar="SPLIT",
            help='One split, or a part: "train[:10%]".',
            autocompletion=complete_split,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B,...", help="The features to look at."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", min=1, help="How many records of each split to look at."),
    ] = None,
    save: Annotated[
        bool,
        typer.Option("--save", help="Keep them in the manifest, where `datum info` finds them."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
    follow_links: FollowLinks = False,
) -> None:
    """Count all records: distributions, quantiles, classes, duplicates, warnings.

    Every record is read once, so that duplicates are found wherever they are, also between splits.
    Images are counted by their headers, not decoded.

        $ datum stats photos
        $ datum stats table --columns age,income --split train
        $ datum stats photos --json > photos.json
    """
    import datum

    opened = open_any(path, follow_links=follow_links)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    with show_bar("counting") as bar:
        profile = datum.profile(
            opened.dataset, split=split, columns=names, sample=sample, progress=bar
        )
    if save:
        print_message("saved", profile.save())
    if as_json:
        unknown = None if opened.unknown is None else str(opened.unknown)
        print_json([{**profile.to_json(), "unknown": unknown}])
        return
    from datum.cli.stats_page import render

    data().print(render(profile, title=path), soft_wrap=True, highlight=False)
