"""Flags of a command, derived from the options of the function that it calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import typer

from datum._options import DeclaredOption, options_of
from datum.cli.arguments import complete_words

__all__ = ["Flag", "parse_flags", "takes_options", "types_of"]

_Command = TypeVar("_Command", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class Flag:
    """How a shell gives an option.

    Attributes:
        panel: Heading that the help lists it under.
        metavar: Word for its value in the help; by default its choices, or N.
        name: Its name, where that is not the name of the option.
        example: What to give it, for the help.
        default: Its default, for the help; by default that of the option.
        is_list: Whether it may be given several times.
        is_pair: Whether `--no-...` turns it off.
        parse: Makes the value of the option from the text, or from the list of texts.
    """

    panel: str | None = None
    metavar: str | None = None
    name: str | None = None
    example: str = ""
    default: str | None = None
    is_list: bool = False
    is_pair: bool = True
    parse: Callable[[Any], Any] | None = None

    def flag_of(self, name: str) -> str:
        """The flag of the option of this name."""
        return f"--{self.name or name.replace('_', '-')}"


def takes_options(function: Any, flags: Mapping[str, Flag]) -> Callable[[_Command], _Command]:
    """Let a command that takes `**given` take flags, before its keyword-only parameters.

    Each is None where it is not given.

    Args:
        function: The public function that has the options.
        flags: How each option is given; options that are not in it have no flag.
    """

    def decorate(command: _Command) -> _Command:
        declared = options_of(function)
        own = inspect.signature(command, eval_str=True)
        parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=None,
                annotation=_annotation(name, declared[name], flag, flags),
            )
            for name, flag in flags.items()
        ]
        places = list(own.parameters.values())
        first = [one for one in places if one.kind is one.POSITIONAL_OR_KEYWORD]
        last = [one for one in places if one.kind is one.KEYWORD_ONLY]
        taking: Any = command
        taking.__signature__ = own.replace(parameters=[*first, *parameters, *last])
        return command

    return decorate


def parse_flags(flags: Mapping[str, Flag], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that the flags of a command line give, as Python takes them."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if value is not None and value != []:
            parse = flags[name].parse
            found[name] = value if parse is None else parse(value)
    return found


def types_of(kind: Any) -> tuple[Any, ...]:
    """The types of a union, or the one type."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _choices_of(kind: Any) -> list[str]:
    """The words that an option of this type may be.

    >>> _choices_of(Literal["gzip", "zlib"] | None)
    ['gzip', 'zlib']
    """
    words = [get_args(one) for one in types_of(kind) if get_origin(one) is Literal]
    return [str(word) for some in words for word in some]


def _annotation(name: str, option: DeclaredOption, flag: Flag, flags: Mapping[str, Flag]) -> Any:
    is_switch = bool in types_of(option.kind)
    long = flag.flag_of(name)
    is_number = int in types_of(option.kind) and flag.parse is None
    kind = bool if is_switch else list[str] if flag.is_list else int if is_number else str
    metavar = flag.metavar or "|".join(_choices_of(option.kind)) or ("N" if is_number else None)
    info = typer.Option(
        f"{long}/--no-{long[2:]}" if is_switch and flag.is_pair else long,
        help=_help(option, flag, flags),
        metavar=None if is_switch else metavar,
        show_default=_shown_default(option, flag, is_switch=is_switch),
        rich_help_panel=flag.panel,
        autocompletion=complete_words(metavar),
    )
    return Annotated[kind | None, info]


_FIRST = re.compile(r'.*?\.(?=\s+["A-Z`]|$)')
_NAME = re.compile(r"`(\w+)`")


def _help(option: DeclaredOption, flag: Flag, flags: Mapping[str, Flag]) -> str:
    """The first sentence of the help of an option, with flags for the options that it names."""
    found = _FIRST.match(option.help)
    text = found[0] if found else option.help
    text = _NAME.sub(lambda name: _spell(name[1], flags), text)
    text = f"{text.rstrip('.')}: {flag.example}." if flag.example else text
    return f"{text} Repeatable." if flag.is_list else text


def _spell(name: str, flags: Mapping[str, Flag]) -> str:
    return flags[name].flag_of(name) if name in flags else name.upper()


def _shown_default(option: DeclaredOption, flag: Flag, *, is_switch: bool) -> str | bool:
    if flag.default is not None:
        return flag.default
    if is_switch:
        return "on" if option.default is True else False
    return str(option.default) if isinstance(option.default, (str, int)) else False
