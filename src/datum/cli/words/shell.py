"""Errors of the library in the words of a shell: `on_error='skip'` is `--on-error skip` there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from datum import DatumError, Feature, SourceError
from datum.cli.writing.hints import find_hint
from datum.cli.writing.schema import spell_feature
from datum.errors import Message, shell_word

__all__ = ["say_for_shell", "told_for_shell"]

_OPTIONS = (
    "append|columns|comment|compression|decimal|delimiter|drop|encoders|encoding|executor|floats"
    "|format|header|keys|max_side|names|null_values|on_error|overwrite|problem|quality"
    "|records_per_shard|rename|schema|seed|shard_bytes|shards|sidecars|skip_rows|split|splits"
    "|stratify|workers"
)
_OF_PYTHON = ("datum.sources", "pass rows", "pass its records", "(path")
_OTHER_NAMES = {"shard_bytes": "shard-size", "sidecars": "sidecar"}
_FLAG = re.compile(rf"\b({_OPTIONS})=True")
_NO_FLAG = re.compile(rf"\b({_OPTIONS})=False")
_WORD = re.compile(rf"\b({_OPTIONS})=(?:'([\w.,-]+)'|(\d+))")
_NAME = re.compile(rf"`({_OPTIONS})`")
_DICT = re.compile(r"\bsplits=\{((?:'\w+': [\d.]+(?:, )?)+)\}")
_FEATURE = re.compile(r"\bschema=\{('[^'{}]+'): datum\.(Feature\((?:[^()]|\([^()]*\))*\))\}")
_SOURCES = re.compile(r"\bdatum\.write\(\{((?:'\w+': '[^']+'(?:, )?)+)\}, out\)")
_SOURCE = re.compile(r"'(\w+)': '([^']+)'")
_PAIR = re.compile(r"'(\w+)': ([\d.]+)(?:, )?")


def say_for_shell(text: str) -> str:
    """A message with options as they are written in a shell.

    >>> say_for_shell("hint: overwrite=True replaces it, on_error='skip' goes on")
    'hint: --overwrite replaces it, --on-error skip goes on'
    >>> say_for_shell("hint: schema={'x': datum.Feature('float32', (None,), optional=True)}")
    "hint: --schema 'x=float32[?]?'"
    >>> say_for_shell("hint: splits={'train': 0.8, 'val': 0.2}")
    'hint: --splits train=0.8,val=0.2'
    >>> say_for_shell("schema={'path': datum.Feature('str')} stores the text")
    '--schema path=str stores the text'
    """
    text = _SOURCES.sub(lambda found: f"datum write OUT {_sources(found[1])}", text)
    text = _DICT.sub(lambda found: f"--splits {_pairs(found[1])}", text)
    text = _FEATURE.sub(lambda found: f"--schema {_spell(found[1], found[2])}", text)
    text = _NAME.sub(lambda found: f"--{_dashed(found[1])}", text)
    text = _FLAG.sub(lambda found: f"--{_dashed(found[1])}", text)
    text = _NO_FLAG.sub(lambda found: f"--no-{_dashed(found[1])}", text)
    return _WORD.sub(lambda found: f"--{_dashed(found[1])} {found[2] or found[3]}", text)


def _spell(name: str, feature: str) -> str:
    """The name and the repr of a feature as one word of a shell, quoted where it has a `?`."""
    call: Any = ast.parse(feature, mode="eval").body
    values = [ast.literal_eval(one) for one in call.args]
    named = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
    return shell_word(f"{ast.literal_eval(name)}={spell_feature(Feature(*values, **named))}")


def _pairs(text: str) -> str:
    return ",".join(f"{name}={value}" for name, value in _PAIR.findall(text))


def _sources(text: str) -> str:
    return " ".join(
        f"--source {shell_word(f'{name}={path}')}" for name, path in _SOURCE.findall(text)
    )


def _dashed(name: str) -> str:
    return _OTHER_NAMES.get(name, name.replace("_", "-"))


@contextmanager
def told_for_shell(place: Any, target: str | None) -> Iterator[None]:
    """Let errors speak of options as a shell has them, and lead on from a source not understood."""
    try:
        yield
    except (DatumError, TypeError, ValueError) as error:
        found = Message.of(error)
        problem, hint = say_for_shell(found.problem), say_for_shell(found.hint).split("\n")
        is_of_options = not found.where and problem.startswith(("expected --", "--"))
        if isinstance(error, SourceError) and isinstance(place, str) and not is_of_options:
            is_of_python = any(word in found.hint for word in _OF_PYTHON)
            hint = find_hint(place, target) if is_of_python or not found.hint else hint
        error.args = (found.changed(problem=problem, hint=hint),)
        raise
