import copy
import dataclasses
import json
import pickle
import re
import subprocess

import pytest

import datum
from datum import (
    CorruptIndexError,
    CorruptRecordError,
    Damage,
    DatumError,
    MissingDependencyError,
    SchemaError,
    SourceError,
    WriteError,
)
from datum._optional import require
from datum.errors import (
    Message,
    count_of,
    format_bytes,
    inert,
    json_text,
    nearest,
    shell_word,
    suggest,
)

DAMAGE = Damage("a.tfrecord", 16, 40, 3, "payload checksum")


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (CorruptRecordError, Exception),
        (CorruptIndexError, Exception),
        (SchemaError, ValueError),
        (MissingDependencyError, ImportError),
    ],
)
def test_every_error_is_a_datum_error_and_its_builtin(error, builtin):
    assert issubclass(error, DatumError)
    assert issubclass(error, builtin)


def test_the_tree_in_the_docstring_names_every_error():
    names = [name for name in datum.errors.__all__ if name.endswith("Error")]
    assert names
    assert all(name in datum.errors.__doc__ for name in names)


def test_damage_tells_file_record_bytes_and_kind():
    assert str(DAMAGE) == "a.tfrecord: record 3, bytes 16-40: payload checksum"


def test_damage_is_a_value_that_cannot_be_changed():
    assert Damage("a.tfrecord", 16, 40, 3, "payload checksum") == DAMAGE
    assert len({DAMAGE, dataclasses.replace(DAMAGE)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        DAMAGE.offset = 0


def test_a_corrupt_record_error_carries_its_damage():
    error = CorruptRecordError("broken", damage=DAMAGE)
    assert str(error) == "broken"
    assert error.damage is DAMAGE
    assert CorruptRecordError("broken").damage is None


ERRORS = [
    CorruptRecordError("broken", where="a.tfrecord", hint="restore it", damage=DAMAGE),
    SchemaError("expected 3", where="record 1", hint="count", record=1, feature="x"),
    SourceError("expected rows", where="a.csv", details=("  line 1", "  line 2")),
    WriteError("nothing was published", where="out", hint=("try again", "or elsewhere")),
    MissingDependencyError("it needs `jax`", hint="pip install jax"),
    DatumError("plain"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("trip", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy])
def test_errors_survive_the_trip_between_processes(error, trip):
    other = trip(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    for field in ("where", "problem", "details", "hint", "damage", "record", "feature"):
        assert getattr(other, field, None) == getattr(error, field, None)


def test_the_text_of_an_error_is_made_of_its_fields():
    assert str(ERRORS[0]) == "a.tfrecord: broken\nhint: restore it"
    assert str(ERRORS[2]) == "a.csv: expected rows\n  line 1\n  line 2"
    assert str(ERRORS[3]) == "out: nothing was published\nhint: try again\nhint: or elsewhere"
    assert str(ERRORS[4]) == "it needs `jax`\nhint: pip install jax"
    assert str(DatumError("", hint="x")) == "\nhint: x"


def test_an_error_made_of_another_keeps_its_parts():
    first = SourceError("expected 3, got 4", where="line 2", hint="count again")
    second = SchemaError(first, where="a.csv")
    assert str(second) == "a.csv: line 2: expected 3, got 4\nhint: count again"
    assert str(SourceError(first, hint="other")) == "line 2: expected 3, got 4\nhint: other"
    assert str(SourceError(KeyError("x"))) == "x"


def test_what_is_shown_already_need_not_be_told_again():
    message = Message("expected 3", where="a.csv: record 1, feature 'x'")
    assert message.line == "a.csv: record 1, feature 'x': expected 3"
    assert message.beside("a.csv") == "record 1, feature 'x': expected 3"
    assert message.beside("a.csv: record 1") == "feature 'x': expected 3"
    assert message.beside("a.csv: record 1, feature 'x'") == "expected 3"
    assert message.beside("a.cs") == message.beside("") == message.line


UNSAFE = [
    *map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, 0x2028, 0x2029, 0xFEFF]),
    *map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xD800, 0xDCFF, 0xE0041]),
]


@pytest.mark.parametrize("char", UNSAFE, ids=lambda char: f"U+{ord(char):04X}")
def test_no_field_holds_what_could_steer_a_terminal(char):
    text = f"a{char}hint: b"
    error = SourceError(text, where=text, details=[text], hint=text)
    assert char not in str(error).replace("\n", "")
    assert len(str(error).split("\n")) == 3  # where and problem, details, hint
    assert all(char not in part for part in (error.where, error.problem, error.hint))
    assert inert(inert(text)) == inert(text)
    assert char not in json_text([text])
    assert json.loads(json_text([text])) == [text]
    assert char not in shell_word(text)


@pytest.mark.parametrize("text", ["café", "日本語", "👩\u200d🚀 🇨🇭", "a\\b 'c'", "“naïve”"])
def test_ordinary_text_stays_readable(text):
    assert inert(text) == text
    assert str(SourceError(text)) == text
    assert text in json_text({"k": text}) or "\\" in text


@pytest.mark.parametrize(
    "word", ["a b", "it's", "\x1b[2J\nrm -rf /", "\u202eé\\'", "a\udcff", "$(id)"]
)
def test_a_word_of_a_shell_pastes_as_what_it_stands_for(word):
    command = f"printf %s {shell_word(word)}"
    assert command.isprintable()
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert done.stdout == word.encode("utf-8", "surrogateescape")


def test_the_nearest_name_is_suggested():
    assert nearest("trian", ["val", "train", "test"]) == ["train"]
    assert suggest("trian", ["val", "train"]) == "did you mean 'train'?"
    assert suggest("trian", ["val", "train"], shown="`{}`".format) == "did you mean `train`?"
    assert suggest("x", ["val"], "there are val") == "there are val"
    assert suggest(7, []) == ""


def test_sizes_have_decimal_units():
    assert [format_bytes(n) for n in (0, 999, 1000, 2.5e9, 3e15)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "2.5 GB",
        "3000.0 TB",
    ]


def test_counts_agree_with_their_nouns():
    assert count_of(1, "class", "classes") == "1 class"
    assert count_of(0, "class", "classes") == "0 classes"


def test_a_package_that_is_there_is_imported():
    assert require("json", purpose="this test") is json


def test_a_missing_package_is_named_with_its_purpose_and_the_way_to_get_it():
    message = "reading maps needs the package `no_such_package`\nhint: pip install no_such_package"
    with pytest.raises(MissingDependencyError, match=f"^{re.escape(message)}$") as caught:
        require("no_such_package", purpose="reading maps")
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, DatumError)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_of_a_missing_submodule_the_package_is_named():
    with pytest.raises(MissingDependencyError, match="pip install no_such_package$"):
        require("no_such_package.inner.part", purpose="this test")
