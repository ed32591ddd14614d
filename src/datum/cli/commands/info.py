"""`datum info`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from datum.cli.arguments import FollowLinks, Opened, complete_split, open_any
from datum.cli.terminal import data, print_json
from datum.errors import Message

if TYPE_CHECKING:
    from datum import Profile

__all__ = ["command"]

SHOWN_FEATURES = 50  # a screen or two


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
    sample: Annotated[
        int | None,
        typer.Option("--sample", min=1, help="How many records of each split to look at."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Look at all records.")] = False,
    spec: Annotated[
        Literal["tf", "dali", "tfrecord"] | None,
        typer.Option(
            "--spec",
            help="Print code that reads the records: for tf.io.parse_example, DALI, or the"
            " package tfrecord.",
        ),
    ] = None,
    classes: Annotated[
        int, typer.Option("--class-balance", min=0, help="How many classes of a label to show.")
    ] = 10,
    every: Annotated[
        bool, typer.Option("--all", help=f"Show all features, not only the first {SHOWN_FEATURES}.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
    follow_links: FollowLinks = False,
) -> None:
    """Show what a dataset holds: splits, features, distributions, classes, warnings.

    Whoever wrote it: Datum, TFDS, or any other writer of TFRecord files. A moment's look at some
    records is enough for it; --full looks at all, and finds all duplicates.

        $ datum info photos
        $ datum info photos --split val --full
        $ datum info "logs/*.tfrecord.gz" --json
        $ datum info photos --spec tf
    """
    opened = open_any(path, follow_links=follow_links)
    if spec is not None:
        _print_spec(opened, spec)
        return
    console = data()
    limit = SHOWN_FEATURES if console.is_terminal and not (every or as_json) else None
    profile = _look(opened, split, _sample(sample, full), limit)
    if as_json:
        unknown = None if opened.unknown is None else str(opened.unknown)
        print_json([{**profile.to_json(), "unknown": unknown}])
        return
    from datum.cli.info_page import render

    page = render(
        profile,
        title=path,
        unknown=opened.unknown,
        features=limit,
        classes=classes,
        all_features=len(opened.dataset.schema),
    )
    console.print(page, soft_wrap=True, highlight=False)


def _sample(sample: int | None, full: bool) -> Any:
    if sample is not None and full:
        raise ValueError(Message("expected --sample or --full, got both"))
    return None if full else sample or "quick"


def _look(opened: Opened, split: str | None, sample: Any, limit: int | None) -> Profile:
    import datum
    from datum.cli.terminal import show_bar

    columns = list(opened.dataset.schema)[:limit]
    with show_bar("looking at the records") as bar:
        found: Profile = datum.profile(
            opened.dataset, split=split, columns=columns, sample=sample, progress=bar
        )
    return found


def _print_spec(opened: Opened, dialect: str) -> None:
    from datum.cli.info_page import print_spec

    if opened.unknown is not None:
        raise opened.unknown
    print_spec(opened.dataset, dialect)
