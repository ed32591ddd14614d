"""`datum write`: any dataset as sharded TFRecord files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import datum
from datum import SourceError, WriteError, sources
from datum.cli.arguments import complete_words
from datum.cli.running import print_message
from datum.cli.shell import told_for_shell
from datum.cli.terminal import print_json
from datum.cli.write_options import STDIN, LinesOfStdin, given_on_line, read_options
from datum.cli.write_report import report_to_json, show_plan, show_report, tell_plan
from datum.errors import Message, shell_word

if TYPE_CHECKING:
    from datum import WritePlan

__all__ = ["command"]

# What a plan takes of a write's options: all but where and how the work is done.
_PLANLESS = ("workers", "executor", "overwrite", "append", "progress", "storage")
_SHARDINGS = {"shard_bytes", "shards", "records_per_shard"}  # of which one decides
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


def _tabled(text: str, *names: str, metavar: str | None = None) -> Any:
    return _option("How tables in files are read", text, *names, metavar=metavar)


def _made(text: str, *names: str, metavar: str | None = None) -> Any:
    return _option("What becomes of records", text, *names, metavar=metavar)


def _laid(text: str, *names: str, metavar: str | None = None) -> Any:
    return _option("How they are stored", text, *names, metavar=metavar)


def _done(text: str, *names: str, metavar: str | None = None) -> Any:
    return _option("How it is done", text, *names, metavar=metavar)


SRC = typer.Argument(metavar="SRC", help="A folder, a file, a pattern, or - for JSON lines.")
OUT = typer.Argument(metavar="OUT", help="The folder of the new dataset, or its URL.")
PROBLEM = _read(
    "What SRC holds, where two layouts fit.", metavar="image_clf|image_det|image_seg|text_clf"
)
SOURCE = _read("A source for each split, in place of SRC; repeated.", metavar="SPLIT=PATH")
OPTIONS = _read("Options from a file; those given here win.", metavar="FILE.toml")
HEADER = _tabled("The first row has names, or has not (found out).", "--header/--no-header")
NAMES = _tabled("Names of the columns, in place of a header.", metavar="NAME,...")
DELIMITER = _tabled("Between cells (found out); tab is \\t.", metavar="CHARACTER")
SKIP_ROWS = _tabled("Skip so many lines at the start of each file.", metavar="N")
COMMENT = _tabled("Skip lines that start with this.", metavar="CHARACTER")
DECIMAL = _tabled("Before the fraction of a number (.).", metavar=".|,")
COLUMNS = _tabled(
    "Columns to take; or what to do where headers differ (same).",
    metavar="NAME,...|same|union|intersection",
)
RENAME = _tabled("New names of columns; repeated.", metavar="OLD=NEW")
NULL_VALUES = _tabled("Cells that mean no value; '' is an empty one; repeated.", metavar="TEXT,...")
ENCODING = _tabled("Of the text (found out).", metavar="NAME")
ROOT = _tabled("The folder that paths of images must stay within.", metavar="FOLDER")
SPLITS = _made("Divide the records: train=0.9,val=0.1.", metavar="SPLIT=FRACTION,...")
STRATIFY = _made("Divide each value of this feature exactly.", metavar="FEATURE")
SCHEMA = _made(
    "Fix types: age=int64,box=float32[?,4]; or a JSON or TOML file.", metavar="NAME=TYPE"
)
FLOATS = _made("Round floats (float32), or keep every bit.", metavar="float32|float64")
ENCODERS = _made("Encode with scikit-learn: label=LabelEncoder; repeated.", metavar="NAME=CLASS")
MAX_SIDE = _made("Shrink images to at most so many pixels.", metavar="PIXELS")
QUALITY = _made("Compress JPEG and WebP images anew, 1 to 100.", metavar="N")
VERIFY = _made("Decode every image, and refuse damaged ones.", "--verify/--no-verify")
ON_ERROR = _made("What to do about bad records (raise).", metavar="raise|skip|quarantine")
SHUFFLE = _laid("In random order (the default), or as they come.", "--shuffle/--no-shuffle")
SEED = _laid("Of that order (0).", metavar="N")
SHARD_SIZE = _laid("About how large shards are (128MiB).", "--shard-size", metavar="SIZE")
SHARDS = _laid("How many shards there are: 8, or train=8,val=1.", metavar="N|SPLIT=N,...")
RECORDS = _laid("At most so many records in a shard, in place of --shards.", metavar="N")
COMPRESSION = _laid("Of the shards (none).", metavar="gzip|zlib|none")
KEYS = _laid("Store boxes under the keys of another library.", metavar="tf_object_detection")
OVERWRITE = _laid("Replace the dataset at OUT.", "--overwrite")
APPEND = _laid("Add to the dataset at OUT, in shards of their own.", "--append")
SIDECARS = _laid(
    "Also what another program needs; repeated.", "--sidecar", metavar="tfds|label_map|older"
)
WORKERS = _done("How many cores to use (all).", metavar="N")
EXECUTOR = _done("Where the work is done (local).", metavar="local")
STORAGE = _done("Of the object store that OUT is in: region=eu-west-1.", metavar="NAME=VALUE,...")
PROGRESS = _done("Show how far it is, or don't.", "--progress/--no-progress")
DRY_RUN = _done("Show what would be written, and write nothing.", "--dry-run", "-n")
JSON = _done("The report, or the plan, as JSON.", "--json")


def command(
    src: Annotated[Text, SRC] = None,
    out: Annotated[Text, OUT] = None,
    problem: Annotated[Text, PROBLEM] = None,
    source: Annotated[Texts, SOURCE] = None,
    options: Annotated[Text, OPTIONS] = None,
    header: Annotated[Flag, HEADER] = None,
    names: Annotated[Text, NAMES] = None,
    delimiter: Annotated[Text, DELIMITER] = None,
    skip_rows: Annotated[Number, SKIP_ROWS] = None,
    comment: Annotated[Text, COMMENT] = None,
    decimal: Annotated[Text, DECIMAL] = None,
    columns: Annotated[Text, COLUMNS] = None,
    rename: Annotated[Texts, RENAME] = None,
    null_values: Annotated[Texts, NULL_VALUES] = None,
    encoding: Annotated[Text, ENCODING] = None,
    root: Annotated[Text, ROOT] = None,
    splits: Annotated[Texts, SPLITS] = None,
    stratify: Annotated[Text, STRATIFY] = None,
    schema: Annotated[Texts, SCHEMA] = None,
    floats: Annotated[Text, FLOATS] = None,
    encoders: Annotated[Texts, ENCODERS] = None,
    max_side: Annotated[Number, MAX_SIDE] = None,
    quality: Annotated[Number, QUALITY] = None,
    verify: Annotated[Flag, VERIFY] = None,
    on_error: Annotated[Text, ON_ERROR] = None,
    shuffle: Annotated[Flag, SHUFFLE] = None,
    seed: Annotated[Number, SEED] = None,
    shard_size: Annotated[Text, SHARD_SIZE] = None,
    shards: Annotated[Text, SHARDS] = None,
    records_per_shard: Annotated[Number, RECORDS] = None,
    compression: Annotated[Text, COMPRESSION] = None,
    keys: Annotated[Text, KEYS] = None,
    overwrite: Annotated[Flag, OVERWRITE] = None,
    append: Annotated[Flag, APPEND] = None,
    sidecars: Annotated[Texts, SIDECARS] = None,
    workers: Annotated[Number, WORKERS] = None,
    executor: Annotated[Text, EXECUTOR] = None,
    storage: Annotated[Texts, STORAGE] = None,
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
        $ datum write table.csv out --no-header --delimiter ';' --schema zip=str
        $ datum write out --source train=a.csv --source test=b.csv
        $ zcat log.jsonl.gz | datum write - out --on-error quarantine
    """
    given = {} if options is None else read_options(options)
    on_line = given_on_line(
        problem=problem,
        splits=splits or (),
        source=source or (),
        table={
            "header": header,
            "names": names,
            "delimiter": delimiter,
            "skip_rows": skip_rows,
            "comment": comment,
            "decimal": decimal,
            "columns": columns,
            "rename": tuple(rename or ()),
            "null_values": tuple(null_values or ()),
            "encoding": encoding,
            "root": root,
        },
        stratify=stratify,
        schema=schema or (),
        floats=floats,
        encoders=encoders or (),
        shuffle=shuffle,
        seed=seed,
        shard_size=shard_size,
        shards=shards,
        records_per_shard=records_per_shard,
        compression=compression,
        max_side=max_side,
        quality=quality,
        verify=verify,
        on_error=on_error,
        overwrite=overwrite,
        append=append,
        workers=workers,
        executor=executor,
        storage=storage or None,
        sidecars=sidecars or None,
        keys=keys,
        progress=progress,
    )
    if on_line.keys() & _SHARDINGS:  # what the line says of shards replaces all the file says
        given = {name: value for name, value in given.items() if name not in _SHARDINGS}
    given |= on_line
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
            Message(
                f"expected SRC or a source for each split, got both: {src}",
                hint="datum write OUT --source train=PATH --source val=PATH",
            )
        )
    place, target = (place if src is None else src), (target if out is None else out)
    if place is None and not has_sources:
        raise ValueError(
            Message("expected SRC, what to write, got none", hint="datum write SRC OUT")
        )
    if target is None and not is_dry:
        shown = shell_word(place) if isinstance(place, str) else "SRC"
        raise ValueError(
            Message(
                "expected OUT, the folder of the new dataset, got none",
                hint=f"datum write {shown} OUT, or --dry-run to see what would be written",
            )
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
            print_message("reading", "JSON lines from the terminal; Ctrl-D ends them")
        if table := [name for name in planned if name in sources.TableOptions.__annotations__]:
            option = table[0].replace("_", "-")
            raise ValueError(f"--{option} applies to tables in files; stdin holds JSON lines")
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
    tell_plan(plan)
    known = ("problem", *sources.TableOptions.__annotations__)  # the plan's source knows them
    rest = {name: value for name, value in given.items() if name not in known}
    if any(not isinstance(one, (int, float)) for one in rest.get("splits", {}).values()):
        del rest["splits"]  # the source has them
    report = datum.write(source, target, **rest)
    if is_json:
        print_json([report_to_json(report)])
    else:
        show_report(report, shell_word(target))


def _plan_lines(source: LinesOfStdin, options: dict[str, Any]) -> WritePlan:
    plan = datum.plan(lambda: iter(source.head), **options)
    return replace(plan, layout="JSON lines of stdin")


def _check_not_written(place: Any) -> None:
    """Refuse a dataset, whose description would be taken for data in JSON."""
    folder = Path(place).expanduser() if isinstance(place, str) else None
    if folder is None or not any((folder / name).is_file() for name in _DESCRIPTIONS):
        return
    if (folder / "datum.json").is_file() or any(folder.glob("*.tfrecord*")):
        raise SourceError("expected data to write, got a dataset of TFRecord files", where=place)


def _check_free(target: str, given: dict[str, Any]) -> None:
    """Refuse before looking at the source, which may take a while."""
    is_allowed = given.get("overwrite") or given.get("append")
    if (Path(target).expanduser() / "datum.json").is_file() and not is_allowed:
        raise WriteError(
            "a dataset already exists",
            where=target,
            hint="--overwrite replaces it, --append adds to it",
        )
