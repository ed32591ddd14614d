"""`datum bench`: what this machine reads of a dataset, and what keeps it from more."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from datum.cli.arguments import FollowLinks, complete_split
from datum.cli.terminal import data, print_json, show_bar, talk
from datum.errors import Message, inert, suggest

__all__ = ["command"]

# More threads or processes than any machine has cores are a slip, which would bring it to a halt.
MAX_THREADS = 4096
MAX_WORKERS = 512


def command(
    path: Annotated[str, typer.Argument(help="A dataset, a folder, TFRecord files.")],
    split: Annotated[
        str | None,
        typer.Option(
            help="What to measure, also a part: 'train[:10%]'. By default train.",
            autocompletion=complete_split,
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Records in a batch.")] = 64,
    seconds: Annotated[float, typer.Option(help="That each stage and each loader may take.")] = 2.0,
    frameworks: Annotated[
        str,
        typer.Option(metavar="NAMES", help="Of numpy, torch, jax, tf; by default all installed."),
    ] = "all",
    shuffle: Annotated[bool, typer.Option(help="Mix all records, or read in order.")] = True,
    columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Features to read; by default all.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_THREADS, help="Of loaders; by default one for each core."),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=MAX_WORKERS, help="Of a PyTorch DataLoader.")
    ] = 2,
    map_: Annotated[
        str | None,
        typer.Option("--map", metavar="MODULE:FUNCTION", help="A function of each record."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts as well.")
    ] = None,
    follow_links: FollowLinks = False,
    json: Annotated[bool, typer.Option("--json", help="All figures, for programs.")] = False,
) -> None:
    """Measure how fast this dataset loads here, and name the bottleneck.

    One thread goes through stage after stage: read, CRC, parse, decode, callback, batch. Then
    each framework that is installed takes batches as a program does. All go through the same
    records in turn, so that what else the machine does hits all alike; medians are shown.

        $ datum bench photos
        $ datum bench photos --frameworks torch --batch-size 256 --html bench.html
        $ datum bench photos --map augment:flip --json
    """
    import datum

    if html is not None and not html.absolute().parent.is_dir():
        raise ValueError(Message(f"--html {html}: expected a folder to write into, got none"))
    function = None if map_ is None else _find_function(map_)
    with show_bar("measuring") as report:
        try:
            found = datum.measure(
                datum.load(path, follow_links=True) if follow_links else path,
                split=split,
                batch_size=batch_size,
                seconds=seconds,
                frameworks=frameworks,
                shuffle=shuffle,
                columns=None if columns is None else _names(columns),
                threads=threads,
                workers=workers,
                map=function,
                progress=report,
            )
        except Exception as error:
            if function is not None and _is_raised_in(function, error):
                raise _failed(map_, error) from error
            raise
    if html is not None:
        from datum.cli.bench_page import make_page

        html.write_text(make_page(found), encoding="utf-8")
        talk().print(f"wrote {inert(html)}", markup=False, highlight=False)
    if json:
        print_json([found.to_json()])
    else:
        from datum.cli.bench_page import show

        show(found, data())


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _find_function(text: str) -> Callable[..., Any]:
    """What `module:function` names; modules in this folder are found as well."""
    module_name, _, name = text.partition(":")
    if not module_name or not name:
        raise ValueError(Message(f"--map: expected MODULE:FUNCTION, got {text!r}"))
    here = os.getcwd()  # noqa: PTH109 - as Python has it there
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(
            Message(f"--map {text}: expected a module to import, got: {error}")
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        public = [n for n in vars(module) if n[:1] != "_"]
        hint = suggest(name, public, shown=f"{module_name}:{{}}".format)
        raise ValueError(
            Message(f"--map {text}: expected a function, got none of that name", hint=hint)
        )
    made: Callable[..., Any] = found
    return made


def _is_raised_in(function: Callable[..., Any], error: BaseException) -> bool:
    code = getattr(function, "__code__", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is code:
            return True
        trace = trace.tb_next
    return False


def _failed(name: str | None, error: Exception) -> ValueError:
    return ValueError(
        Message(
            f"--map {name}: expected a value for each record, got {type(error).__name__}: {error}",
            hint="it is called with a dict of NumPy values; --debug shows where it failed",
        )
    )
