"""Options of `datum write`: sources, features and encoders, from flags and TOML."""

from __future__ import annotations

import ast
import csv
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal, get_origin

import datum
from datum import Feature, MissingDependencyError, SourceError, sources
from datum._options import options_of
from datum.cli.arguments import parse_bytes, parse_pairs, read_toml
from datum.cli.flags import Flag, types_of
from datum.errors import Message, suggest
from datum.problem import PROBLEMS

__all__ = [
    "HEAD_RECORDS",
    "SHARED_FLAGS",
    "STDIN",
    "WRITE_FLAGS",
    "LinesOfStdin",
    "encoders_of",
    "features_of",
    "parse_compression",
    "parse_feature",
    "parse_fractions",
    "parse_shards",
    "read_encoders",
    "read_options",
    "read_schema",
    "source_of",
]

STDIN = "-"
HEAD_RECORDS = 1001  # one more than a plan looks at, so that it knows whether there are more


def source_of(found: Any, *, where: str) -> Any:
    """What a table of a TOML file names: a path, or a class of `datum.sources` and its options."""
    if isinstance(found, str):
        return found
    kinds = [name for name in sources.__all__ if name[0].isupper() and _is_public(name)]
    if not isinstance(found, Mapping) or not isinstance(found.get("class"), str):
        raise ValueError(
            Message(
                f"{where}: expected a path, or a table with a `class` of datum.sources, got"
                f" {found!r}",
                hint=f"there are {', '.join(kinds)}",
            )
        )
    kind = found["class"]
    if kind not in kinds:
        hint = suggest(kind, kinds, f"there are {', '.join(kinds)}", shown=str, cutoff=0.5)
        raise ValueError(
            Message(f"{where}: expected a class of datum.sources, got {kind!r}", hint=hint)
        )
    options = {name: value for name, value in found.items() if name != "class"}
    try:
        return getattr(sources, kind)(**options)
    except TypeError as error:
        raise ValueError(Message(f"{where}: {kind}: expected its options, got: {error}")) from None


def _is_public(name: str) -> bool:
    return hasattr(getattr(sources, name), "parts") and name != "Source"


class LinesOfStdin(sources.SourceInfo):
    """The JSON lines of stdin, as one split: a source that can be read once.

    Attributes:
        head: the first records, to plan by; lines that hold none are left to the write.
    """

    kind = "JSON lines"
    is_table = True
    is_final = False

    def __init__(self, stream: IO[bytes] | None = None) -> None:
        lines = enumerate(sys.stdin.buffer if stream is None else stream, 1)
        first = list(islice(lines, HEAD_RECORDS))
        self._lines = chain(first, lines)
        found = [_read(text) for _, text in first if not text.isspace()]
        self.head = [row for row in found if isinstance(row, dict)]
        if not self.head:
            raise SourceError(
                f"stdin: {found[0] if found else 'expected JSON lines, got none'}",
                hint='an object on each line: {"text": "hello", "label": 3}',
            )

    def parts(self) -> dict[str, Any]:
        """The one split."""
        return {"train": _LinesPart(self._lines)}


class _LinesPart(sources.PartInfo):
    """A `StreamedPart` of numbered lines."""

    is_repeatable = False

    def __init__(self, lines: Iterator[tuple[int, bytes]]) -> None:
        self.schema = None
        self.metadata: Mapping[str, Mapping[str, Any]] = {}
        self.fingerprint = None
        self._lines = ((line, text) for line, text in lines if not text.isspace())
        self._blocks = sources.RowBlocks(has_keys=False)

    @property
    def nested(self) -> tuple[str, ...]:
        """The features made of lists of objects, in the lines that were read."""
        return tuple(self._blocks.nested.names)

    def blocks(self) -> Iterator[sources.Block]:
        """The records of all lines; those that hold none are rejected."""
        blocks = self._blocks
        for line, text in self._lines:
            row = _read(text)
            if isinstance(row, dict):
                blocks.add(row, place=("stdin", line))
            else:
                blocks.reject(f"stdin, line {line}", row)
            if blocks.is_full:
                yield blocks.take()
        if len(blocks):
            yield blocks.take()


def _read(text: bytes) -> dict[str, Any] | str:
    """The object on a line, or what is wrong with it."""
    try:
        found = json.loads(text, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        return f"expected UTF-8, got {error}"
    except (ValueError, RecursionError) as error:
        return f"expected JSON, got {error}"
    return found if isinstance(found, dict) else f"expected an object, got {text[:60]!r}"


def _refuse(name: str) -> Any:
    raise ValueError(Message(f"{name}, which is none"))


_FEATURE = re.compile(
    r"(?P<dtype>[a-z][a-z0-9]*(?:\[(?:D|h|m|s|ms|us|ns)\])?)"
    r"(?:\[(?P<shape>[^\]]*)\])?(?::(?P<encoding>[a-z]+))?(?P<optional>\?)?"
)
_ANY = ("?", "*", "-1", "none")  # ways to write a length that differs
_HINT = "name=dtype[shape]:encoding, as in age=int64, box=float32[?,4], x=float32[9]:sparse"


def read_schema(texts: Iterable[str]) -> dict[str, Feature]:
    """The features that `--schema` gives: pairs of name and type, or files of them.

    A file is JSON or TOML: features by name, or such a table under the name `schema`, as in the
    `datum.json` of a dataset.
    """
    features: dict[str, Feature] = {}
    for text in texts:
        if text.lower().endswith((".json", ".toml")) and "=" not in text:
            features |= features_of(_read_file(Path(text)), where=text)
        else:
            features |= features_of(parse_pairs([text], option="--schema"), where="--schema")
    return features


def _read_file(path: Path) -> Any:
    if path.suffix.lower() == ".toml":
        found: Any = read_toml(path)
    else:
        try:
            found = json.loads(path.read_bytes())
        except ValueError as error:
            raise ValueError(Message(f"{path}: expected JSON, got: {error}")) from None
    is_wrapped = isinstance(found, Mapping) and isinstance(found.get("schema"), Mapping)
    return found["schema"] if is_wrapped and "dtype" not in found["schema"] else found


def features_of(found: Any, *, where: str) -> dict[str, Feature]:
    """Features by name, from texts such as `float32[3]` or from tables of their attributes."""
    if not isinstance(found, Mapping):
        raise ValueError(
            Message(f"{where}: expected features by name, got {found!r:.100}", hint=_HINT)
        )
    return {name: _feature_of(one, f"{where}: {name}") for name, one in found.items()}


def _feature_of(found: Any, where: str) -> Feature:
    if isinstance(found, str):
        return parse_feature(found, where=where)
    if not isinstance(found, Mapping):
        raise ValueError(
            Message(f"{where}: expected a type such as 'float32[3]', got {found!r}", hint=_HINT)
        )
    given = dict(found)
    if isinstance(given.get("shape"), list):
        given["shape"] = [None if str(n).lower() in _ANY else n for n in given["shape"]]
    return Feature.from_json(given)


def parse_feature(text: str, *, where: str = "schema") -> Feature:
    """The feature that a text stands for.

    >>> parse_feature("float32[?,4]"), parse_feature("str?")
    (Feature('float32', (None, 4)), Feature('str', optional=True))
    >>> parse_feature("float32[100]:sparse")
    Feature('float32', (100,), encoding='sparse')
    """
    found = _FEATURE.fullmatch(text.strip())
    if found is None:
        raise ValueError(Message(f"{where}: expected a type and a shape, got {text!r}", hint=_HINT))
    encoding: Any = found["encoding"]
    shape = tuple(_length(part.strip(), text, where) for part in (found["shape"] or "").split(","))
    return Feature(
        found["dtype"],
        shape if found["shape"] else (),
        encoding=encoding,
        optional=found["optional"] is not None,
    )


def _length(part: str, text: str, where: str) -> int | None:
    if not part or part.lower() in _ANY:
        return None
    if not part.isdecimal():
        raise ValueError(
            Message(f"{where}: expected lengths in the shape, or ?, got {text!r}", hint=_HINT)
        )
    return int(part)


_HOMES = {
    "CountVectorizer": "sklearn.feature_extraction.text",
    "HashingVectorizer": "sklearn.feature_extraction.text",
    "LabelBinarizer": "sklearn.preprocessing",
    "LabelEncoder": "sklearn.preprocessing",
    "OneHotEncoder": "sklearn.preprocessing",
    "TfidfVectorizer": "sklearn.feature_extraction.text",
}
_ENCODER_HINT = "--encoders label=LabelEncoder --encoders 'text=CountVectorizer(max_features=1000)'"


def read_encoders(texts: Iterable[str]) -> dict[str, Any]:
    """The encoders that `--encoders` gives, by feature: `label=LabelEncoder,text=...`."""
    encoders: dict[str, Any] = {}
    for text in texts:
        if "(" in text:  # what follows is one call: its commas are its own
            name, _, call = text.partition("=")
            encoders[name.strip()] = _parse_call(call.strip())
        else:
            pairs = parse_pairs([text], option="--encoders")
            encoders |= {name: _make(kind, {}) for name, kind in pairs.items()}
    return encoders


def encoders_of(found: Any, *, where: str) -> dict[str, Any]:
    """The encoders of a table: names of classes, or tables with `class` and parameters."""
    if not isinstance(found, Mapping):
        raise ValueError(Message(f"{where}: expected encoders by feature, got {found!r:.100}"))
    encoders = {}
    for name, one in found.items():
        if isinstance(one, str):
            encoders[name] = _parse_call(one)
        elif isinstance(one, Mapping) and isinstance(one.get("class"), str):
            parameters = {key: value for key, value in one.items() if key != "class"}
            encoders[name] = _make(one["class"], parameters)
        else:
            raise ValueError(
                Message(
                    f"{where}: {name}: expected the name of a class, or a table with one, got"
                    f" {one!r}",
                    hint=f"[encoders.{name}] class = 'CountVectorizer'",
                )
            )
    return encoders


def _parse_call(text: str) -> Any:
    """An encoder from its class and its parameters, as Python would write them."""
    try:
        parsed = ast.parse(text, mode="eval").body
        if isinstance(parsed, ast.Name):
            return _make(parsed.id, {})
        if isinstance(parsed, ast.Call) and isinstance(parsed.func, ast.Name) and not parsed.args:
            parameters = {
                str(one.arg): ast.literal_eval(one.value)
                for one in parsed.keywords
                if one.arg is not None
            }
            return _make(parsed.func.id, parameters)
    except (SyntaxError, ValueError, TypeError) as error:
        if "expected" in str(error):
            raise
    raise ValueError(
        Message(f"encoders: expected a class and its parameters, got {text!r}", hint=_ENCODER_HINT)
    )


def _make(kind: str, parameters: Mapping[str, Any]) -> Any:
    if kind not in _HOMES:
        hint = suggest(kind, _HOMES, f"there are {', '.join(_HOMES)}", shown=str, cutoff=0.5)
        raise ValueError(
            Message(f"encoders: expected a class of scikit-learn, got {kind!r}", hint=hint)
        )
    try:
        home = importlib.import_module(_HOMES[kind])
    except ImportError as error:
        raise MissingDependencyError(
            "encoders need the package `scikit-learn`", hint="pip install scikit-learn"
        ) from error
    # What a list is in TOML and JSON is a tuple to scikit-learn: ngram_range = [1, 2].
    given = {
        key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()
    }
    known = list(getattr(home, kind)().get_params(deep=False))
    for key in given:
        if key not in known:
            hint = suggest(key, known, f"there are {', '.join(known)}", cutoff=0.5)
            raise ValueError(
                Message(f"{kind}: expected one of its parameters, got {key!r}", hint=hint)
            )
    return getattr(home, kind)(**given)


def _parse_delimiter(text: str) -> str:
    return "\t" if text in ("\\t", "tab") else text


def _parse_renames(texts: Sequence[str]) -> dict[str, str]:
    return parse_pairs(texts, option="--rename")


def _parse_storage(texts: Sequence[str]) -> dict[str, str]:
    return parse_pairs(texts, option="--storage")


def _parse_cells(texts: Sequence[str]) -> list[str]:
    return [cell for text in texts for cell in text.split(",")]


def _parse_columns(text: str) -> str | list[str]:
    return text if text in ("same", "union", "intersection") else _parse_list(text)


def _parse_list(text: str) -> list[str]:
    """Names with commas between them; one that has commas itself stands in quotes.

    >>> _parse_list('a, b,"c, d"')
    ['a', 'b', 'c, d']
    """
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def parse_fractions(pairs: Mapping[str, str]) -> dict[str, float]:
    """Fractions of splits: `0.9` or `90%`.

    >>> parse_fractions({"train": "90%", "val": "0.1"})
    {'train': 0.9, 'val': 0.1}
    """
    return {name: _fraction(name, text) for name, text in pairs.items()}


def _fraction(name: str, text: str) -> float:
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ValueError(
            Message(
                f"--splits: {name}: expected a fraction such as 0.9, got {text!r}",
                hint="--source train=PATH --source val=PATH gives a source for each split",
            )
        ) from None


def parse_shards(text: str) -> int | dict[str, int]:
    """A number of shards, or one for each split.

    >>> parse_shards("8"), parse_shards("train=8,val=1")
    (8, {'train': 8, 'val': 1})
    """
    pairs = parse_pairs([text], option="--shards") if "=" in text else {"": text}
    for count in pairs.values():
        if not count.isdecimal():
            raise ValueError(
                Message(
                    f"--shards: expected a number, got {count!r}",
                    hint="--shards 8, or train=8,val=1",
                )
            )
    counts = {name: int(count) for name, count in pairs.items()}
    return counts.get("", counts)


def parse_compression(text: str) -> str | None:
    """A compression; None for `none`."""
    return None if text.lower() == "none" else text


def _parse_splits(texts: Sequence[str]) -> dict[str, float]:
    return parse_fractions(parse_pairs(texts, option="--splits"))


_READ = "What is read"
_TABLES = "How tables in files are read"
_MADE = "What becomes of records"
_STORED = "How they are stored"
_DONE = "How it is done"

SHARED_FLAGS = {
    "shuffle": Flag(),
    "seed": Flag(),
    "shard_bytes": Flag(
        metavar="SIZE",
        name="shard-size",
        default=f"{options_of(datum.write)['shard_bytes'].default >> 20}MiB",
        parse=parse_bytes,
    ),
    "shards": Flag(metavar="N|SPLIT=N,...", example="8, or train=8,val=1", parse=parse_shards),
    "records_per_shard": Flag(),
    "compression": Flag(metavar="gzip|zlib|none", default="none", parse=parse_compression),
    "sidecars": Flag(metavar="tfds|label_map|older", name="sidecar", is_list=True),
    "overwrite": Flag(is_pair=False),
    "floats": Flag(),
    "stratify": Flag(metavar="FEATURE"),
    "workers": Flag(default="all"),
    "storage": Flag(
        metavar="NAME=VALUE,...", example="region=eu-west-1", is_list=True, parse=_parse_storage
    ),
    "progress": Flag(),
}


def _flag(panel: str, name: str) -> Flag:
    return replace(SHARED_FLAGS[name], panel=panel)


WRITE_FLAGS = {
    "problem": Flag(_READ, "|".join(PROBLEMS)),
    "header": Flag(_TABLES, default="detected"),
    "names": Flag(_TABLES, "NAME,...", parse=_parse_list),
    "delimiter": Flag(_TABLES, "CHARACTER", default="detected", parse=_parse_delimiter),
    "skip_rows": Flag(_TABLES),
    "comment": Flag(_TABLES, "CHARACTER"),
    "decimal": Flag(_TABLES),
    "columns": Flag(_TABLES, "NAME,...|same|union|intersection", parse=_parse_columns),
    "rename": Flag(_TABLES, "OLD=NEW", is_list=True, parse=_parse_renames),
    "null_values": Flag(_TABLES, "TEXT,...", is_list=True, parse=_parse_cells),
    "encoding": Flag(_TABLES, "NAME", default="detected"),
    "root": Flag(_TABLES, "FOLDER"),
    "splits": Flag(
        _MADE,
        "SPLIT=FRACTION,...",
        example="train=0.9,val=0.1",
        is_list=True,
        parse=_parse_splits,
    ),
    "stratify": _flag(_MADE, "stratify"),
    "schema": Flag(
        _MADE,
        "NAME=TYPE",
        example="age=int64,box=float32[?,4], or a JSON or TOML file",
        is_list=True,
        parse=read_schema,
    ),
    "floats": _flag(_MADE, "floats"),
    "encoders": Flag(
        _MADE, "NAME=CLASS", example="label=LabelEncoder", is_list=True, parse=read_encoders
    ),
    "max_side": Flag(_MADE, "PIXELS"),
    "quality": Flag(_MADE),
    "verify": Flag(_MADE),
    "on_error": Flag(_MADE),
    "shuffle": _flag(_STORED, "shuffle"),
    "seed": _flag(_STORED, "seed"),
    "shard_bytes": _flag(_STORED, "shard_bytes"),
    "shards": _flag(_STORED, "shards"),
    "records_per_shard": _flag(_STORED, "records_per_shard"),
    "compression": _flag(_STORED, "compression"),
    "keys": Flag(_STORED),
    "overwrite": _flag(_STORED, "overwrite"),
    "append": Flag(_STORED, is_pair=False),
    "sidecars": _flag(_STORED, "sidecars"),
    "workers": _flag(_DONE, "workers"),
    "executor": Flag(_DONE),
    "storage": _flag(_DONE, "storage"),
    "progress": _flag(_DONE, "progress"),
}


# Options from a file.


def read_options(path: str) -> dict[str, Any]:
    """The options in a TOML file, as `datum.write` takes them and by the names that it has.

    Beside plain values a file may have tables: [splits] of fractions or of paths, [schema] and
    [encoders] by feature, and [source] with a `class` of `datum.sources` and its options.
    """
    known = list(inspect.signature(datum.write).parameters)
    options = {}
    for given, value in read_toml(path).items():
        name = "shard_bytes" if given == "shard_size" else given  # what the command line calls it
        if name not in known:
            hint = suggest(name, known, f"there are {', '.join(known)}", cutoff=0.5)
            raise ValueError(
                Message(f"expected options of datum.write, got {name!r}", where=path, hint=hint)
            )
        options[name] = _checked(name, value, f"{path}: {name}")
    return options


def splits_of(found: Any, *, where: str) -> dict[str, Any]:
    if not isinstance(found, Mapping) or not found:
        raise ValueError(Message(f"{where}: expected fractions or sources by split, got {found!r}"))
    if all(isinstance(value, (int, float)) for value in found.values()):
        return dict(found)
    return {name: source_of(value, where=f"{where}.{name}") for name, value in found.items()}


_READERS: Mapping[str, Callable[..., Any]] = {
    "source": source_of,
    "splits": splits_of,
    "schema": features_of,
    "encoders": encoders_of,
}
_KINDS = {bool: "true or false", int: "a number", str: "a text"}


def _checked(name: str, value: Any, where: str) -> Any:
    """The value of an option, checked as far as TOML and Python differ."""
    if name in _READERS:
        return _READERS[name](value, where=where)
    if name == "shard_bytes" and isinstance(value, str):
        return parse_bytes(value)
    if name == "compression" and value == "none":
        return None
    if name == "sidecars" and not isinstance(value, list):
        raise ValueError(Message(f"expected a list of names, got {value!r}", where=where))
    kinds = str if name == "out" else options_of(datum.write)[name].kind
    wanted = [kind for kind in _KINDS if kind in _plain_types(kinds)]
    is_plain = len(wanted) == 1 and not isinstance(value, (list, dict))
    if is_plain and type(value) is not wanted[0]:
        raise ValueError(Message(f"expected {_KINDS[wanted[0]]}, got {value!r}", where=where))
    return value


def _plain_types(kind: Any) -> set[Any]:
    """The types of an option; of words to choose from, `str`."""
    return {str if get_origin(one) is Literal else one for one in types_of(kind)}
