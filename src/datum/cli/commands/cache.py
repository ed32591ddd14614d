"""`datum cache`: local copies of datasets in object stores."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

import datum
from datum.cli.terminal import data, print_json, talk
from datum.errors import count_of, format_bytes, inert

__all__ = ["command"]


def command(
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="One dataset; all by default.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the local copies.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The list as JSON.")] = False,
) -> None:
    """List or remove local copies of datasets in object stores.

    Records that were read from a store are kept in DATUM_CACHE, or ~/.cache/datum, as far as
    there is room. Removing them costs nothing but to fetch them again.

        $ datum cache
        $ datum cache --clear
    """
    found = [one for one in datum.cached_datasets() if url is None or one.url == url.rstrip("/")]
    freed = datum.clear_cache(url) if clear else 0
    if as_json:
        rows = [
            {
                "url": one.url,
                "bytes": one.bytes,
                "total_bytes": one.total_bytes,
                "last_used": None if one.last_used is None else one.last_used.isoformat(),
                "folder": str(one.folder),
            }
            for one in found
        ]
        print_json([{"datasets": rows, "freed_bytes": freed}])
        return
    if clear:
        told = f"removed {count_of(len(found), 'copy', 'copies')}, {format_bytes(freed)}"
        talk().print(Text(told), soft_wrap=True)
        return
    table = Table("dataset", box=None, pad_edge=False)
    table.add_column("here", justify="right")
    table.add_column("last used")
    for one in found:
        used = "never" if one.last_used is None else f"{one.last_used:%Y-%m-%d %H:%M} UTC"
        table.add_row(inert(one.url) or "(unknown)", format_bytes(one.bytes), used)
    if found:
        data().print(table)
    total = format_bytes(sum(one.bytes for one in found))
    talk().print(Text(f"{count_of(len(found), 'copy', 'copies')}, {total}"), soft_wrap=True)
