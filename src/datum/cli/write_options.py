"""Options of `datum write`: sources, features and encoders, from flags and TOML."""

from __future__ import annotations

import ast
import csv
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import datum
from datum import Feature, MissingDependencyError, SourceError, sources
from datum.cli.arguments import parse_bytes, parse_pairs, read_toml
from datum.errors import Message, suggest

__all__ = [
    "HEAD_RECORDS",
    "STDIN",
    "LinesOfStdin",
    "encoders_of",
    "features_of",
    "given_on_line",
    "parse_feature",
    "parse_fractions",
    "parse_shards",
    "read_encoders",
    "read_options",
    "read_schema",
    "source_of",
    "spell_feature",
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
        raise ValueError(f"{where}: {kind}: expected its options, got: {error}") from None


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
    raise ValueError(f"{name}, which is none")


_FEATURE = re.compile(
    r"(?P<dtype>[a-z][a-z0-9]*(?:\[(?:D|h|m|s|ms|us|ns)\])?)"
    r"(?:\[(?P<shape>[^\]]*)\])?(?::(?P<encoding>[a-z]+))?(?P<optional>\?)?"
)
_RAW = ("float64", "complex64", "complex128")  # which no list of a record holds
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
            raise ValueError(f"{path}: expected JSON, got: {error}") from None
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


def spell_feature(feature: Feature) -> str:
    """The text that `parse_feature` reads as this type, shape and encoding.

    >>> spell_feature(Feature("uint8", (None, None, 3), encoding="image"))
    'uint8[?,?,3]:image'
    """
    shape = ",".join("?" if n is None else str(n) for n in feature.shape)
    is_usual = feature.encoding == ("raw" if feature.dtype in _RAW else "values")
    return (
        feature.dtype
        + (f"[{shape}]" if feature.shape else "")
        + ("" if is_usual else f":{feature.encoding}")
        + ("?" if feature.optional else "")
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
        raise ValueError(f"{where}: expected encoders by feature, got {found!r:.100}")
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


_FLAGS = ("append", "overwrite", "progress", "shuffle", "verify")
_NUMBERS = ("max_side", "quality", "records_per_shard", "seed", "workers")
_TEXTS = ("compression", "executor", "floats", "keys", "on_error", "out", "problem", "root")
_WORDS = (*_TEXTS, "stratify")


def given_on_line(
    *,
    splits: Sequence[str] = (),
    schema: Sequence[str] = (),
    shard_size: str | None = None,
    shards: str | None = None,
    compression: str | None = None,
    encoders: Sequence[str] = (),
    source: Sequence[str] = (),
    table: Mapping[str, Any] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """What the command line gives, as `datum.write` takes it; what it does not is left out."""
    options = {name: value for name, value in others.items() if value is not None}
    if splits and source:
        raise ValueError("expected --splits or --source, got both")
    if splits:
        options["splits"] = parse_fractions(parse_pairs(splits, option="--splits"))
    if source:
        options["splits"] = parse_pairs(source, option="--source")
    options |= _parse_table(table or {})
    if schema:
        options["schema"] = read_schema(schema)
    if encoders:
        options["encoders"] = read_encoders(encoders)
    if shard_size is not None:
        options["shard_bytes"] = parse_bytes(shard_size)
    if shards is not None:
        options["shards"] = parse_shards(shards)
    if options.get("storage") is not None:
        options["storage"] = parse_pairs(options["storage"], option="--storage")
    if compression is not None:
        options["compression"] = None if compression.lower() == "none" else compression
    return options


def _parse_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of tables; those that are not given are None or empty."""
    options = {name: value for name, value in given.items() if value not in (None, ())}
    for name in ("names", "columns"):
        if name in options and options[name] not in ("same", "union", "intersection"):
            options[name] = _parse_list(options[name])
    if options.get("delimiter") in ("\\t", "tab"):
        options["delimiter"] = "\t"
    if "rename" in options:
        options["rename"] = parse_pairs(options["rename"], option="--rename")
    if "null_values" in options:
        options["null_values"] = [
            cell for text in options["null_values"] for cell in text.split(",")
        ]
    return options


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


# Options from a file.


def read_options(path: str) -> dict[str, Any]:
    """What a TOML file gives, as `datum.write` takes it; its names are those of `datum.write`.

    Beside plain values it may have tables: [splits] of fractions or of paths, [schema] and
    [encoders] by feature, and [source] with a `class` of `datum.sources` and its options.
    """
    known = list_options()
    options = {}
    for given, value in read_toml(path).items():
        name = "shard_bytes" if given == "shard_size" else given  # what the command line calls it
        if name not in known:
            hint = suggest(name, known, f"there are {', '.join(known)}", cutoff=0.5)
            raise ValueError(
                Message(f"{path}: expected options of datum.write, got {name!r}", hint=hint)
            )
        options[name] = _checked(name, value, f"{path}: {name}")
    return options


def list_options() -> list[str]:
    """The names of the options of `datum.write`, with those of tables."""
    parameters = inspect.signature(datum.write).parameters.values()
    named = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
    return [*named, *sources.TableOptions.__annotations__]


def _checked(name: str, value: Any, where: str) -> Any:
    if name == "source":
        return source_of(value, where=where)
    if name == "splits":
        return _splits_of(value, where)
    if name == "schema":
        return features_of(value, where=where)
    if name == "encoders":
        return encoders_of(value, where=where)
    if name == "shard_bytes" and isinstance(value, str):
        return parse_bytes(value)
    if name == "compression" and value == "none":
        return None
    if name == "sidecars" and not isinstance(value, list):
        raise ValueError(f"{where}: expected a list of names, got {value!r}")
    for names, kind, wanted in (
        (_FLAGS, bool, "true or false"),
        (_NUMBERS, int, "a number"),
        (_WORDS, str, "a text"),
    ):
        if name in names and type(value) is not kind:
            raise ValueError(f"{where}: expected {wanted}, got {value!r}")
    return value


def _splits_of(found: Any, where: str) -> dict[str, Any]:
    if not isinstance(found, Mapping) or not found:
        raise ValueError(f"{where}: expected fractions or sources by split, got {found!r}")
    if all(isinstance(value, (int, float)) for value in found.values()):
        return dict(found)
    return {name: source_of(value, where=f"{where}.{name}") for name, value in found.items()}
