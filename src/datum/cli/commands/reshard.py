"""`datum reshard`: a dataset laid out anew, or a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.text import Text

import datum
from datum.cli.arguments import FollowLinks, parse_pairs
from datum.cli.flags import Flag, parse_flags, takes_options
from datum.cli.terminal import print_json, talk
from datum.cli.write_options import SHARED_FLAGS, parse_fractions
from datum.cli.write_report import report_to_json, show_report
from datum.errors import Message, count_of, shell_word

__all__ = ["command", "parse_names", "parse_splits"]


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


_FLAGS = {
    "shard_bytes": SHARED_FLAGS["shard_bytes"],
    "shards": SHARED_FLAGS["shards"],
    "records_per_shard": SHARED_FLAGS["records_per_shard"],
    "compression": replace(SHARED_FLAGS["compression"], default="that of PATH"),
    "floats": SHARED_FLAGS["floats"],
    "shuffle": SHARED_FLAGS["shuffle"],
    "seed": SHARED_FLAGS["seed"],
    "splits": Flag(
        metavar="PAIRS",
        example="train=0.9,val=0.1, or 'val=train[:10%],train=train[10%:]'",
        is_list=True,
        parse=parse_splits,
    ),
    "stratify": SHARED_FLAGS["stratify"],
    "columns": Flag(metavar="NAME,...", is_list=True, parse=parse_names),
    "drop": Flag(metavar="NAME,...", is_list=True, parse=parse_names),
    "where": Flag(metavar="EXPRESSION", example="'label == \"cat\" and score > 0.5'"),
    "recount": Flag(is_pair=False),
    "workers": SHARED_FLAGS["workers"],
    "overwrite": SHARED_FLAGS["overwrite"],
    "sidecars": SHARED_FLAGS["sidecars"],
    "storage": SHARED_FLAGS["storage"],
}


@takes_options(datum.reshard, _FLAGS)
def command(
    path: Annotated[
        str, typer.Argument(help="A dataset, a folder of TFRecord files, a file or a pattern.")
    ],
    out: Annotated[str, typer.Argument(help="The folder of the new dataset, or its URL.")],
    *,
    follow_links: FollowLinks = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    **flags: Any,
) -> None:
    """Rewrite a dataset, or a part of it, with other shards, splits or compression.

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
    given = parse_flags(_FLAGS, flags)
    dataset = datum.load(path, follow_links=follow_links)
    total = sum(split.records for split in dataset.splits.values())
    if "where" in given:
        from datum.cli.where import parse_expression

        given["where"] = parse_expression(given["where"], dataset.schema, dataset.metadata)
    report = datum.reshard(dataset, out, **given)
    if as_json:
        print_json([report_to_json(report) | {"of_records": total}])
        return
    show_report(report, shell_word(out))
    if report.records < total:
        told = f"{report.records:,} of {count_of(total, 'record')} are in it"
        talk().print(Text(told, style="dim"), soft_wrap=True)
