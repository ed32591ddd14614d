"""Exceptions, and the text of their messages.

DatumError
├── CorruptRecordError        a record is damaged; `damage` says where and how
├── CorruptIndexError         an index file is damaged, or of another shard
├── ManifestError             a manifest is damaged, or of a newer version
├── SchemaError (ValueError)  data and schema do not agree; `record` and `feature` say where
├── SourceError (ValueError)  a source is not as expected, or a record of it cannot be read
│   └── AmbiguousSourceError  several layouts fit a folder; `problem` names the one meant
├── SplitError (ValueError)   splits are asked for that are not there, or do not add up
├── StateError (ValueError)   the state of a loader is of other records, or in another order
├── StorageError (OSError)    an object store failed, or refused; `kind` says how
├── WriteError (OSError)      a dataset could not be written; what was there is as it was
└── MissingDependencyError (ImportError)
                              an optional package is needed

Names, values and paths in a message are often a stranger's. Every message is made here, by
`Message`, and its parts are made inert here, by `inert`.

A line that names an option or a function is a `Text` with an `Option` or a `Call` in it, because
`overwrite=True` is `--overwrite` in a shell, and `datum.repair(path, out)` a command.
"""

from __future__ import annotations

import difflib
import itertools
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

__all__ = [
    "AmbiguousSourceError",
    "Call",
    "CorruptIndexError",
    "CorruptRecordError",
    "Damage",
    "DatumError",
    "ManifestError",
    "Message",
    "MissingDependencyError",
    "Option",
    "SchemaError",
    "SourceError",
    "SplitError",
    "StateError",
    "StorageError",
    "Text",
    "WriteError",
    "count_of",
    "format_bytes",
    "inert",
    "json_text",
    "nearest",
    "shell_word",
    "suggest",
]

# Controls of both sets, line and paragraph separators, marks that turn the direction of writing,
# characters that take no room and have no use in words (U+200D joins emoji and is kept), and the
# halves of pairs, which stand for bytes of file names that are not UTF-8.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def inert(text: object) -> str:
    r"""Text of strangers on one line, with what could steer a terminal or a reader spelt out.

    What is left are letters, signs and spaces of any language. Calling it again changes nothing.

    >>> inert("caf\u00e9\n\x1b[2Jhint: \u202ecurl"), inert("a\udcff.jpg")
    ('café\\n\\x1b[2Jhint: \\u202ecurl', 'a\\xff.jpg')
    """
    return _UNSAFE.sub(_spell_out, str(text))


def _spell_out(found: re.Match[str]) -> str:
    char, code = found[0], ord(found[0])
    if char in _SHORT:
        return _SHORT[char]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        code -= 0xDC00
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}"


def json_text(value: Any, **options: Any) -> str:
    r"""A value as JSON whose text is inert: what `inert` spells out is escaped as JSON has it.

    `options` are those of `json.dumps`. What is read back is the value as it was.

    >>> json_text({"café": "\x9b2J\u202e"})
    '{"café": "\\u009b2J\\u202e"}'
    """
    return _UNSAFE.sub(_spell_in_json, json.dumps(value, ensure_ascii=False, **options))


def _spell_in_json(found: re.Match[str]) -> str:
    if found[0] == "\n":
        return "\n"  # between values, where an indent asks for it
    return json.dumps(found[0])[1:-1]


def shell_word(text: object) -> str:
    r"""Text as one word of a shell: quoted where needed, safe to show and to paste.

    Controls are spelt as bash, zsh and ksh read them, `$'...'`.

    >>> print(shell_word("train"), shell_word("a b.jpg"), shell_word("it's\n"))
    train 'a b.jpg' $'it\'s\x0a'
    """
    word = str(text)
    if _UNSAFE.search(word) is None:
        return shlex.quote(word)
    quoted = word.replace("\\", r"\\").replace("'", r"\'")
    return f"$'{_UNSAFE.sub(_spell_bytes, quoted)}'"


def _spell_bytes(found: re.Match[str]) -> str:
    is_byte = "\udc80" <= found[0] <= "\udcff"
    data = found[0].encode("utf-8", "surrogateescape" if is_byte else "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)


def count_of(count: int, what: str, several: str | None = None) -> str:
    """A count and its noun, in the singular or plural.

    >>> count_of(1, "record"), count_of(1200, "record")
    ('1 record', '1,200 records')
    """
    return f"{count:,} {what if count == 1 else several or what + 's'}"


def format_bytes(count: float) -> str:
    """A size in bytes with a decimal unit.

    >>> format_bytes(1_500_000)
    '1.5 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def nearest(
    name: object, known: Iterable[object], *, count: int = 1, cutoff: float = 0.6
) -> list[str]:
    """The names that are most like `name`, the nearest first; see `suggest`."""
    return difflib.get_close_matches(str(name), [str(one) for one in known], count, cutoff)


def suggest(
    name: object,
    known: Iterable[object],
    otherwise: str = "",
    *,
    shown: Callable[[str], str] = repr,
    cutoff: float = 0.6,
) -> str:
    """The hint for a name that is not known: the nearest one that is.

    Args:
        name: the name that was given.
        known: the names there are.
        otherwise: the hint if none is near.
        shown: how a name is written.
        cutoff: how near is near, from 0 (anything) to 1 (the same).

    >>> suggest("shufle", ["shuffle", "seed"]), suggest("x", ["shuffle", "seed"], "there are two")
    ("did you mean 'shuffle'?", 'there are two')
    """
    near = nearest(name, known, cutoff=cutoff)
    return f"did you mean {shown(near[0])}?" if near else otherwise


class Option:
    """An option that a message names, with a value if it proposes one.

    >>> print(Option("shards"), Option("overwrite", True), Option("on_error", "skip"))
    `shards` overwrite=True on_error='skip'

    Attributes:
        name: the option's name in Python.
        has_value: whether the message proposes a value.
        value: the value it proposes.
    """

    def __init__(self, name: str, *value: Any) -> None:
        self.name = name
        self.has_value = bool(value)
        self.value = value[0] if value else None

    def __str__(self) -> str:
        return f"{self.name}={_code(self.value)}" if self.has_value else f"`{self.name}`"


class Call(str):
    """Python code that a message proposes.

    >>> call = Call("datum.repair('photos', 'repaired')", shell="datum repair photos repaired")
    >>> call
    "datum.repair('photos', 'repaired')"
    >>> call.shell
    'datum repair photos repaired'

    Attributes:
        shell: the command that does the same; None if there is none.
    """

    shell: str | None

    def __new__(cls, code: object, *, shell: str | None = None) -> Self:
        """Take the code, and the command that does the same."""
        made = super().__new__(cls, str(code))
        made.shell = shell
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_call, (str(self), self.shell)


def _make_call(code: str, shell: str | None) -> Call:
    return Call(code, shell=shell)


def _code(value: Any) -> str:
    """A value as users write it: names of Datum are qualified."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_code(one)}" for key, one in value.items()) + "}"
    return f"datum.{value!r}" if type(value).__module__.startswith("datum.") else repr(value)


class Text(str):
    """A line of a message, made of words, `Option`s and `Call`s; a `str` as Python spells it.

    >>> line = Text(Option("overwrite", True), " replaces it")
    >>> line
    'overwrite=True replaces it'
    >>> line.for_shell(lambda option: f"--{option.name}")
    '--overwrite replaces it'
    """

    parts: tuple[object, ...]

    def __new__(cls, *parts: object) -> Self:
        """Join the parts; those of a `Text` among them are taken one by one."""
        made = super().__new__(cls, "".join(map(str, parts)))
        flat = [part.parts if isinstance(part, Text) else (part,) for part in parts]
        made.parts = tuple(itertools.chain.from_iterable(flat))
        return made

    @property
    def options(self) -> tuple[Option, ...]:
        """The options that the line names."""
        return tuple(part for part in self.parts if isinstance(part, Option))

    @property
    def is_for_python(self) -> bool:
        """Whether the line proposes code that no command replaces."""
        return any(isinstance(part, Call) and part.shell is None for part in self.parts)

    def for_shell(self, spell: Callable[[Option], str]) -> str:
        """The line with commands in place of calls, and options as `spell` spells them."""

        def say(part: object) -> str:
            if isinstance(part, Option):
                return spell(part)
            return part.shell or part if isinstance(part, Call) else str(part)

        return "".join(map(say, self.parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return Text, self.parts


def _inert_line(line: object) -> str:
    """An inert line that keeps its options."""
    if not isinstance(line, Text):
        return inert(line)
    return Text(*map(_inert_part, line.parts))


def _inert_part(part: object) -> object:
    if isinstance(part, Option):
        return part
    if isinstance(part, Call):
        return Call(inert(part), shell=None if part.shell is None else inert(part.shell))
    return inert(part)


class Message(str):
    r"""The text of an error, made of its parts: `where: problem`, detail lines, `hint:` lines.

    Each part is made inert, so that nothing in it can start a line. What goes on over several
    lines is given as several lines.

    >>> print(Message("expected 3, got 4", where="a.csv, line 2", hint="count again"))
    a.csv, line 2: expected 3, got 4
    hint: count again
    >>> print(Message("expected 3, got a\nhint: b"))
    expected 3, got a\nhint: b

    Attributes:
        where: the file, record or feature that it is about; empty if there is no single one.
        problem: what is wrong: what was expected, and what was found.
        details: more lines, such as a list of places.
        hint_lines: the lines of the next step; a line that starts with two spaces continues the
            one above.
    """

    where: str
    problem: str
    details: tuple[str, ...]
    hint_lines: tuple[str, ...]

    def __new__(
        cls,
        problem: object,
        *,
        where: object = "",
        details: Iterable[str] = (),
        hint: str | Sequence[str] = (),
    ) -> Self:
        """Make a message.

        Args:
            problem: what is wrong, in one line. A `Message`, or the error that has one, is taken
                with its parts: `where` comes before its own, other parts replace its own.
            where: the file, record or feature that it is about.
            details: more lines.
            hint: the next step, without `hint:`. Of several lines each is a hint of its own,
                unless it starts with two spaces: it then goes on with the one above.
        """
        place = inert(where)
        if isinstance(problem, BaseException):
            problem = Message.of(problem)
        if isinstance(problem, Message):
            place = ": ".join(filter(None, (place, problem.where)))
            details, hint = details or problem.details, hint or problem.hint_lines
            problem = problem.problem
        lines = [hint] if isinstance(hint, str) else hint
        parts = (
            _inert_line(problem),
            place,
            tuple(map(_inert_line, details)),
            tuple(_inert_line(line) for line in lines if line),
        )
        made = super().__new__(cls, "\n".join(_lay_out(*parts)))
        made.problem, made.where, made.details, made.hint_lines = parts
        return made

    @classmethod
    def of(cls, error: BaseException) -> Message:
        """The message of any error; of one that is not Datum's, its text as the problem."""
        first = error.args[0] if error.args else ""
        if isinstance(first, Message):
            return first
        return cls(first if isinstance(error, KeyError) else error.__str__())

    @property
    def hint(self) -> str:
        """The next step; empty if there is none, several lines if it takes them."""
        return self.hint_lines[0] if len(self.hint_lines) == 1 else "\n".join(self.hint_lines)

    @property
    def hints(self) -> tuple[str, ...]:
        """The lines of the hint as they are shown."""
        return tuple(_lay_out_hint(self.hint_lines))

    @property
    def line(self) -> str:
        """Where and what, without details and hints."""
        return _placed(self.where, self.problem)

    def beside(self, place: object) -> str:
        """The line for where `place` is shown already: without it."""
        shown = inert(place)
        if self.where == shown:
            return self.problem
        for sign in (": ", ", "):
            if shown and self.where.startswith(shown + sign):
                return _placed(self.where.removeprefix(shown + sign), self.problem)
        return self.line

    def changed(self, **parts: Any) -> Message:
        """The message with other parts: `where`, `problem`, `details`, `hint`."""
        mine = {"problem": self.problem, "where": self.where, "details": self.details}
        return Message(**{**mine, "hint": self.hint_lines, **parts})

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_message, (self.problem, self.where, self.details, self.hint_lines)


def _placed(where: str, problem: str) -> str:
    """A place and a problem as one line, which keeps its options."""
    return Text(f"{where}: ", problem) if where else problem


def _lay_out(
    problem: str, where: str, details: Iterable[str], hints: Iterable[str]
) -> Iterator[str]:
    yield f"{where}: {problem}" if where else problem
    yield from details
    yield from _lay_out_hint(hints)


def _lay_out_hint(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield str(line) if line.startswith("  ") else f"hint: {line}"


def _make_message(
    problem: str, where: str, details: tuple[str, ...], hint: tuple[str, ...]
) -> Message:
    return Message(problem, where=where, details=details, hint=hint)


@dataclass(frozen=True, slots=True)
class Damage:
    """One place where a file does not hold what it should.

    Attributes:
        file: the file's path, or a name in angle brackets for memory.
        offset: the first byte lost, counted in the decompressed stream if the file is compressed.
        end: the first byte after the loss.
        record: the number the lost record would have had; each damage counts as one record.
        kind: "torn header", "torn payload", "length checksum", "payload checksum",
            "oversized record" or "compressed stream"; of a record that is whole, "malformed" if
            it is no tf.train.Example, and "image" if it has one that cannot be decoded; of a shard
            that the names of others tell of, "missing file".
    """

    file: str
    offset: int
    end: int
    record: int
    kind: str

    def __str__(self) -> str:
        place = f"{self.file}: record {self.record}, bytes {self.offset}-{self.end}"
        return f"{inert(place)}: {inert(self.kind)}"


class DatumError(Exception):
    """The base of every error that Datum raises on purpose.

    Its text is made of its fields: `where: problem`, then a `hint:` line. Names and values of
    strangers in them are inert: controls and line ends are spelt out.

    Args:
        problem: what is wrong, in one line.
        where: the file, record or feature that it is about.
        details: more lines.
        hint: the next step; of several lines each is a hint of its own.
    """

    def __init__(
        self,
        problem: object = "",
        *,
        where: object = "",
        details: Iterable[str] = (),
        hint: str | Sequence[str] = (),
    ) -> None:
        super().__init__(Message(problem, where=where, details=details, hint=hint))

    def __str__(self) -> str:
        return str(self.parts)

    @property
    def parts(self) -> Message:
        """The text, with its parts."""
        message: Message = self.args[0]
        return message

    @property
    def where(self) -> str:
        """The file, record or feature that it is about; empty if there is no single one."""
        return self.parts.where

    @property
    def problem(self) -> str:
        """What is wrong: what was expected, and what was found."""
        return self.parts.problem

    @property
    def details(self) -> tuple[str, ...]:
        """More lines, such as a list of places."""
        return self.parts.details

    @property
    def hint(self) -> str:
        """The next step; empty if there is none."""
        return self.parts.hint


class CorruptRecordError(DatumError):
    """A record, or the stream that holds it, is damaged.

    Attributes:
        damage: where and how; None if that is not known.
    """

    def __init__(
        self,
        problem: object = "",
        *,
        where: object = "",
        details: Iterable[str] = (),
        hint: str | Sequence[str] = (),
        damage: Damage | None = None,
    ) -> None:
        super().__init__(problem, where=where, details=details, hint=hint)
        self.damage = damage


class CorruptIndexError(DatumError):
    """An index file is damaged, or does not belong to its shard."""


class ManifestError(DatumError):
    """A manifest is damaged, of a newer version, or says what cannot be."""


class SchemaError(DatumError, ValueError):
    """Data and schema do not agree, or a schema does not agree with itself.

    Attributes:
        record: the number of the record within what was given; None if it is no single one.
        feature: the name of the feature; None if it is no single one.
    """

    def __init__(
        self,
        problem: object = "",
        *,
        where: object = "",
        details: Iterable[str] = (),
        hint: str | Sequence[str] = (),
        record: int | None = None,
        feature: str | None = None,
    ) -> None:
        super().__init__(problem, where=where, details=details, hint=hint)
        self.record = record
        self.feature = feature


class SourceError(DatumError, ValueError):
    """A source is not as expected, or a record of it cannot be read."""


class AmbiguousSourceError(SourceError):
    """Several layouts fit a folder."""


class SplitError(DatumError, ValueError):
    """Splits are asked for that are not there, or that do not add up."""


class StateError(DatumError, ValueError):
    """The state of a loader does not fit: it is of other records, or in another order."""


class StorageError(DatumError, OSError):
    """An object store failed, or refused what was asked.

    Attributes:
        kind: "missing", "denied", "credentials", "region", "name" (of a host, which is not
            known), "connection", "timeout", "short" (an answer that was cut off), "no ranges",
            "range", "unavailable", "exists", "changed", "unsupported", "options", "forked", or
            "unknown".
    """

    def __init__(
        self,
        problem: object = "",
        *,
        where: object = "",
        details: Iterable[str] = (),
        hint: str | Sequence[str] = (),
        kind: str = "unknown",
    ) -> None:
        super().__init__(problem, where=where, details=details, hint=hint)
        self.kind = kind


class WriteError(DatumError, OSError):
    """A dataset could not be written; what was there before is as it was."""


class MissingDependencyError(DatumError, ImportError):
    """An optional package is needed for what was asked."""
