"""`datum write`: any dataset as sharded TFRecord files."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import datum
from datum import SourceError, WriteError
from datum.cli.opening import complete_words
from datum.cli.running import tell
from datum.cli.terminal import print_json
from datum.cli.words.shell import told_for_shell
from datum.cli.writing.options import given_on_line, read_options
from datum.cli.writing.show import report_to_json, show_plan, show_report, tell_plan
from datum.cli.writing.source import STDIN, LinesOfStdin

if TYPE_CHECKING:
    from datum import WritePlan

__all__ = ["command"]

# What a plan takes of a write's options: all but where and how the work is done.
_PLANLESS = ("workers", "executor", "overwrite", "append", "legacy_metadata", "progress")
# What describes datasets of Datum, of the older library and of TFDS.
_DESCRIPTIONS = ("datum.json", "shard_info.json", "dataset_info.json")

Text = str | None
Number = int | None
Flag = bool | None
Texts = list[str] | None


def _option(panel: str, text: str, *names: str, metavar: str | None = None) -> Any:
    completes = complete_words(metavar)
    return typer.Option(
        *names, help=text, metavar=metavar, rich_help_panel=panel, autocompletion=completes
    )


def _read(text: str, *names: str, metavar: str | None = None) -> Any:
    return _option("What is read", text, *names, metavar=metavar)


def _made(text: str, *names: str, metavar: str | None = None) -> Any:
    return _option("What becomes of records", text, *names, metavar=metavar)


def _laid(text: str, *names: str, metavar: str | None = None) -> Any:
    return _option("How they are stored", text, *names, metavar=metavar)


def _done(text: str, *names: str, metavar: str | None = None) -> Any:
    return _option("How it is done", text, *names, metavar=metavar)


SRC = typer.Argument(metavar="SRC", help="A folder, a file, a pattern, or - for JSON lines.")
OUT = typer.Argument(metavar="OUT", help="The folder of the new dataset.")
PROBLEM = _read(
    "What SRC holds, where two layouts fit.", metavar="image_clf|image_det|image_seg|text_clf"
)
SOURCE = _read("A source for each split, in place of SRC; repeated.", metavar="SPLIT=PATH")
OPTIONS = _read("Options from a file; those given here win.", metavar="FILE.toml")
SPLITS = _made("Divide the records: train=0.9,val=0.1.", metavar="SPLIT=FRACTION,...")
STRATIFY = _made("Divide each value of this feature exactly.", metavar="FEATURE")
SCHEMA = _made(
    "Fix types: age=int64,box=float32[?,4]; or a JSON or TOML file.", metavar="NAME=TYPE"
)
ENCODERS = _made("Encode with scikit-learn: label=LabelEncoder; repeated.", metavar="NAME=CLASS")
MAX_SIDE = _made("Shrink images to at most so many pixels.", metavar="PIXELS")
QUALITY = _made("Compress JPEG and WebP images anew, 1 to 100.", metavar="N")
VERIFY = _made("Decode every image, and refuse damaged ones.", "--verify/--no-verify")
ON_ERROR = _made("What to do about bad records (raise).", metavar="raise|skip|quarantine")
SHUFFLE = _laid("In random order (the default), or as they come.", "--shuffle/--no-shuffle")
SEED = _laid("Of that order (0).", metavar="N")
SHARD_SIZE = _laid("About how large shards are (128MiB).", "--shard-size", metavar="SIZE")
SHARDS = _laid("How many shards there are: 8, or train=8,val=1.", metavar="N|SPLIT=N,...")
COMPRESSION = _laid("Of the shards (none).", metavar="gzip|zlib|none")
OVERWRITE = _laid("Replace the dataset at OUT.", "--overwrite")
APPEND = _laid("Add to the dataset at OUT, in shards of their own.", "--append")
LEGACY = _laid("Also write the JSON files of the older library.", "--legacy-metadata")
WORKERS = _done("How many cores to use (all).", metavar="N")
EXECUTOR = _done("Where the work is done (local).", metavar="local")
PROGRESS = _done("Show how far it is, or don't.", "--progress/--no-progress")
DRY_RUN = _done("Show what would be written, and write nothing.", "--dry-run", "-n")
JSON = _done("The report, or the plan, as JSON.", "--json")


def command(
    src: Annotated[Text, SRC] = None,
    out: Annotated[Text, OUT] = None,
    problem: Annotated[Text, PROBLEM] = None,
    source: Annotated[Texts, SOURCE] = None,
    options: Annotated[Text, OPTIONS] = None,
    splits: Annotated[Texts, SPLITS] = None,
    stratify: Annotated[Text, STRATIFY] = None,
    schema: Annotated[Texts, SCHEMA] = None,
    encoders: Annotated[Texts, ENCODERS] = None,
    max_side: Annotated[Number, MAX_SIDE] = None,
    quality: Annotated[Number, QUALITY] = None,
    verify: Annotated[Flag, VERIFY] = None,
    on_error: Annotated[Text, ON_ERROR] = None,
    shuffle: Annotated[Flag, SHUFFLE] = None,
    seed: Annotated[Number, SEED] = None,
    shard_size: Annotated[Text, SHARD_SIZE] = None,
    shards: Annotated[Text, SHARDS] = None,
    compression: Annotated[Text, COMPRESSION] = None,
    overwrite: Annotated[Flag, OVERWRITE] = None,
    append: Annotated[Flag, APPEND] = None,
    legacy_metadata: Annotated[Flag, LEGACY] = None,
    workers: Annotated[Number, WORKERS] = None,
    executor: Annotated[Text, EXECUTOR] = None,
    progress: Annotated[Flag, PROGRESS] = None,
    dry_run: Annotated[bool, DRY_RUN] = False,
    json: Annotated[bool, JSON] = False,
) -> None:
    """Write any dataset as TFRecord shards: folders, tables, JSON lines.

    The layout of SRC is found out: class folders, Pascal VOC, masks, images with a CSV of labels,
    CSV, Parquet, Arrow, JSON, NumPy. Nothing appears at OUT before all of it is written; a command
    that was interrupted goes on where it stopped when it is given again.

    With --options FILE.toml, options come from a file too, by the names that datum.write has:
    shard_bytes = "256MiB", and tables [splits], [schema.FEATURE], [encoders.FEATURE], [source].

        $ datum write photos out --splits train=0.9,val=0.1
        $ datum write table.csv out --dry-run
        $ datum write out --source train=a.csv --source test=b.csv
        $ zcat log.jsonl.gz | datum write - out --on-error quarantine
    """
    given = {} if options is None else read_options(options)
    given |= given_on_line(
        problem=problem,
        splits=splits or (),
        source=source or (),
        stratify=stratify,
        schema=schema or (),
        encoders=encoders or (),
        shuffle=shuffle,
        seed=seed,
        shard_size=shard_size,
        shards=shards,
        compression=compression,
        max_side=max_side,
        quality=quality,
        verify=verify,
        on_error=on_error,
        overwrite=overwrite,
        append=append,
        workers=workers,
        executor=executor,
        legacy_metadata=legacy_metadata,
        progress=progress,
    )
    place, target = _find_places(src, out, given, is_dry=dry_run)
    with told_for_shell(place, target):
        _run(place, target, given, is_dry=dry_run, is_json=json)


def _find_places(
    src: str | None, out: str | None, given: dict[str, Any], *, is_dry: bool
) -> tuple[Any, str | None]:
    """What is read, and the folder that is written; names in the options file stand back."""
    place, target = given.pop("source", None), given.pop("out", None)
    has_sources = any(not isinstance(one, (int, float)) for one in given.get("splits", {}).values())
    if out is None and src is not None and (has_sources or place is not None):
        src, out = None, src  # the only path there is, is where to write
    if src is not None and has_sources:
        raise ValueError(
            f"expected SRC or a source for each split, got both: {src}\n"
            "hint: datum write OUT --source train=PATH --source val=PATH"
        )
    place, target = (place if src is None else src), (target if out is None else out)
    if place is None and not has_sources:
        raise ValueError("expected SRC, what to write, got none\nhint: datum write SRC OUT")
    if target is None and not is_dry:
        shown = shlex.quote(place) if isinstance(place, str) else "SRC"
        raise ValueError(
            "expected OUT, the folder of the new dataset, got none\n"
            f"hint: datum write {shown} OUT, or --dry-run to see what would be written"
        )
    return place, target


def _run(
    place: Any, target: str | None, given: dict[str, Any], *, is_dry: bool, is_json: bool
) -> None:
    if target is not None and not is_dry:
        _check_free(target, given)
    planned = {name: value for name, value in given.items() if name not in _PLANLESS}
    if place == STDIN:
        if sys.stdin.isatty():
            tell("reading", "JSON lines from the terminal; Ctrl-D ends them")
        source: Any = LinesOfStdin()
        plan = _plan_lines(source, planned)
    else:
        _check_not_written(place)
        plan = datum.plan(place, **planned)
        source = plan.source
    if is_dry:
        if is_json:
            print_json([plan.to_json()])
        else:
            show_plan(plan, target)
        return
    assert target is not None
    tell_plan(plan, given=given.get("schema") or ())
    rest = {name: value for name, value in given.items() if name != "problem"}
    if any(not isinstance(one, (int, float)) for one in rest.get("splits", {}).values()):
        del rest["splits"]  # the source has them
    report = datum.write(source, target, **rest)
    if is_json:
        print_json([report_to_json(report)])
    else:
        show_report(report, shlex.quote(target))


def _plan_lines(source: LinesOfStdin, options: dict[str, Any]) -> WritePlan:
    plan = datum.plan(lambda: iter(source.head), **options)
    return replace(plan, layout="JSON lines of stdin")


def _check_not_written(place: Any) -> None:
    """Refuse a dataset, whose description would be taken for data in JSON."""
    folder = Path(place).expanduser() if isinstance(place, str) else None
    if folder is None or not any((folder / name).is_file() for name in _DESCRIPTIONS):
        return
    if (folder / "datum.json").is_file() or any(folder.glob("*.tfrecord*")):
        raise SourceError(f"{place}: expected data to write, got a dataset of TFRecord files")


def _check_free(target: str, given: dict[str, Any]) -> None:
    """Refuse before looking at the source, which may take a while."""
    is_allowed = given.get("overwrite") or given.get("append")
    if (Path(target).expanduser() / "datum.json").is_file() and not is_allowed:
        raise WriteError(
            f"{target}: expected no dataset there, got one\n"
            "hint: --overwrite replaces it, --append adds to it"
        )
