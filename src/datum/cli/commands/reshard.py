"""`datum reshard`: a dataset laid out anew, or a part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.text import Text

import datum
from datum import DatumError
from datum.cli.arguments import FollowLinks, complete_words, hint_at_links, parse_bytes, parse_pairs
from datum.cli.shell import told_for_shell
from datum.cli.terminal import print_json, talk
from datum.errors import Message, count_of, shell_word

__all__ = ["command", "parse_names", "parse_splits"]

_COMPRESSIONS = "gzip|zlib|none"
_FLOATS = "float32|float64"
_SIDECARS = "tfds|label_map|older"
_SPLITS = "Fractions, train=0.9,val=0.1, or records of splits, 'val=train[:10%],train=train[10%:]'."
_WHERE = "Keep records for which this is true: 'label == \"cat\" and score > 0.5'."


def command(
    path: Annotated[
        str, typer.Argument(help="A dataset, a folder of TFRecord files, a file or a pattern.")
    ],
    out: Annotated[str, typer.Argument(help="The folder of the new dataset.")],
    shard_size: Annotated[
        str, typer.Option("--shard-size", metavar="SIZE", help="About how large: 128MiB, 1GB.")
    ] = "128MiB",
    shards: Annotated[
        str | None, typer.Option(metavar="N", help="How many shards: 8, or train=8,val=1.")
    ] = None,
    records_per_shard: Annotated[
        int | None, typer.Option(metavar="N", help="At most so many records in a shard.")
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(
            metavar=_COMPRESSIONS,
            help="Of the shards; as it is by default.",
            autocompletion=complete_words(_COMPRESSIONS),
        ),
    ] = None,
    floats: Annotated[
        str,
        typer.Option(
            metavar=_FLOATS,
            help="Keep float64 features (float64), or round them.",
            autocompletion=complete_words(_FLOATS),
        ),
    ] = "float64",
    shuffle: Annotated[
        bool, typer.Option("--shuffle/--no-shuffle", help="Store records in random order.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of that order.")] = 0,
    splits: Annotated[list[str] | None, typer.Option(metavar="PAIRS", help=_SPLITS)] = None,
    stratify: Annotated[
        str | None,
        typer.Option(metavar="FEATURE", help="Divide each value of this feature exactly."),
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="The features to keep: a,b.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="The features to leave out: a,b.")
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="EXPRESSION", help=_WHERE)] = None,
    recount: Annotated[
        bool, typer.Option("--recount", help="Count the statistics of whole splits anew.")
    ] = False,
    workers: Annotated[int | None, typer.Option(help="How many cores to use.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the dataset at OUT.")
    ] = False,
    sidecar: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_SIDECARS,
            help="Also what another program needs; repeated.",
            autocompletion=complete_words(_SIDECARS),
        ),
    ] = None,
    storage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="Of the object store that OUT is in: region=eu-west-1.",
        ),
    ] = None,
    follow_links: FollowLinks = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Lay a dataset out anew: other shards, splits, order, compression, or only a part of it.

    Records are copied byte for byte, images are never decoded. PATH may be of others: TFDS, or
    plain TFRecord files, which become a dataset of Datum. It is not changed.

    In --where, names are those of features (`image/height` in backquotes), and there are
    comparisons, in, and, or, not, arithmetic, indexing, len, lower, startswith and a few more. A
    class may be called by its name.

        $ datum reshard photos out --shards 8 --shuffle
        $ datum reshard photos out --splits train=0.9,val=0.1 --stratify label
        $ datum reshard photos cats --where 'label == "cat"' --drop mask
        $ datum reshard 'tfds/mnist/3.0.1' mnist --compression gzip
    """
    from datum.cli.write_options import parse_shards
    from datum.cli.write_report import report_to_json, show_report

    with hint_at_links():
        dataset = datum.load(path, follow_links=follow_links)
    total = sum(split.records for split in dataset.splits.values())
    with told_for_shell(None, out), _told_how_to_repair(path):
        report = datum.reshard(
            dataset,
            out,
            splits=parse_splits(splits or ()),
            columns=parse_names(columns),
            drop=parse_names(drop),
            where=_parse_where(where, dataset),
            shard_bytes=parse_bytes(shard_size),
            shards=None if shards is None else parse_shards(shards),
            records_per_shard=records_per_shard,
            compression=_parse_compression(compression),
            floats=floats,  # type: ignore[arg-type]  # checked there
            shuffle=shuffle,
            seed=seed,
            stratify=stratify,
            recount=recount,
            workers=workers,
            overwrite=overwrite,
            sidecars=sidecar or (),
            storage=parse_pairs(storage, option="--storage") if storage else None,
        )
    if as_json:
        print_json([report_to_json(report) | {"of_records": total}])
        return
    show_report(report, shell_word(out))
    if report.records < total:
        told = f"{report.records:,} of {count_of(total, 'record')} are in it"
        talk().print(Text(told, style="dim"), soft_wrap=True)


@contextmanager
def _told_how_to_repair(path: str) -> Iterator[None]:
    """Name the command, where the library names its function."""
    try:
        yield
    except DatumError as error:
        command = f"datum repair {shell_word(path)} OUT"
        hint = error.hint.replace("datum.repair(path, out)", command)
        error.args = (error.parts.changed(hint=hint),)
        raise


def parse_splits(texts: Sequence[str]) -> dict[str, float] | dict[str, str] | None:
    """Fractions of all records, or instructions, by split; None if there are none.

    >>> parse_splits(["train=0.9,val=10%"]), parse_splits(["val=train[:10%]"])
    ({'train': 0.9, 'val': 0.1}, {'val': 'train[:10%]'})
    """
    pairs = parse_pairs(texts, option="--splits")
    if not pairs:
        return None
    is_number = [_is_number(value) for value in pairs.values()]
    if any(is_number) and not all(is_number):
        raise ValueError(
            Message(
                f"--splits: expected fractions, or records of splits, got both: {' '.join(texts)}",
                hint="--splits train=0.9,val=0.1, or --splits 'val=train[:10%],train=train[10%:]'",
            )
        )
    from datum.cli.write_options import parse_fractions

    return parse_fractions(pairs) if all(is_number) else dict(pairs)


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in ("-", ".")


def parse_names(texts: Sequence[str] | None) -> list[str] | None:
    """Names parted by commas, of an option that may be given several times.

    >>> parse_names(["a, b", "c"])
    ['a', 'b', 'c']
    """
    if not texts:
        return None
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _parse_compression(text: str | None) -> Any:
    found = "keep" if text is None else text.lower()
    return None if found == "none" else found


def _parse_where(text: str | None, dataset: datum.Dataset) -> Any:
    if text is None:
        return None
    from datum.cli.where import parse_expression

    return parse_expression(text, dataset.schema, dataset.metadata)
