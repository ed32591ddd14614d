"""Settings as attributes of an object: each of a kind, and none that does not exist."""

from __future__ import annotations

import difflib
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

from datum.configs.config_base import ConfigBase

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "CALLABLE",
    "FLAG",
    "PATH",
    "Kind",
    "Settings",
    "is_whole",
    "list_of",
    "settings_of",
    "whole",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a setting may be: in words, and as a test."""

    expected: str
    fits: Callable[[Any], bool]


@dataclass(kw_only=True, repr=False)
class Settings(ConfigBase):
    """Settings that are checked when they are set, as an attribute or in the constructor.

    A name that is no setting raises AttributeError (TypeError in the constructor) and names the
    nearest; a value of another kind raises TypeError. None is of any kind where it is the default.

    Subclasses are dataclasses with `kw_only=True, repr=False`, and annotate each setting with its
    kind: `shades: Annotated[int, whole("a whole number from 1", least=1)] = 16`.
    """

    _kinds: ClassVar[dict[str, tuple[Kind, bool]]] = {}  # and whether it may be None

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True)
        own = {
            name: (hints[name].__metadata__[0], vars(cls).get(name, ...) is None)
            for name in cls.__annotations__
        }
        cls._kinds = {**cls._kinds, **own}

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Refuse unknown names; the constructor that dataclasses make names no nearest."""
        for name in given:
            if name not in cls._kinds:
                raise TypeError(cls._refuse(name))
        return super().__new__(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._kinds:
            raise AttributeError(self._refuse(name))
        kind, is_optional = self._kinds[name]
        if not (value is None and is_optional) and not kind.fits(value):
            where = f"{type(self).__name__}.{name}"
            raise TypeError(f"{where}: expected {kind.expected}, got {value!r}")
        object.__setattr__(self, name, value)

    if not TYPE_CHECKING:  # type checkers find a misspelt name themselves

        def __getattr__(self, name: str) -> Any:  # asked only for what is not there
            raise AttributeError(self._refuse(name))

    def set_names(self) -> Iterable[str]:
        """The names of all settings."""
        return list(vars(self))

    @classmethod
    def _refuse(cls, name: str) -> str:
        near = difflib.get_close_matches(name, cls._kinds, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(cls._kinds)}"
        return f"{cls.__name__} has no setting {name!r}\nhint: {hint}"

    def __repr__(self) -> str:
        """What differs from the defaults."""
        default = type(self)()
        changed = [
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if not _is_same(value, getattr(default, name))
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def copy(self) -> Self:
        """The same settings in an object of their own; functions are shared."""
        return type(self)(**{name: _copy(value) for name, value in vars(self).items()})

    def to_dict(self) -> dict[str, Any]:
        """All settings by their names; those that hold settings are dicts too."""
        return {
            name: value.to_dict() if isinstance(value, Settings) else _copy(value)
            for name, value in vars(self).items()
        }


def is_whole(value: Any) -> bool:
    """Whether `value` is a whole number; True and False are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def whole(expected: str, *, least: int, also: Sequence[int | None] = ()) -> Kind:
    """Whole numbers that are `least` or more, or in `also`."""
    return Kind(
        expected,
        lambda value: (
            (value is None and None in also)
            or (is_whole(value) and (value >= least or value in also))
        ),
    )


def list_of(expected: str, fits: Callable[[Any], bool]) -> Kind:
    """Lists and tuples, of which each item `fits`."""
    return Kind(
        expected,
        lambda value: (
            isinstance(value, Sequence)
            and not isinstance(value, (bytes, str))
            and all(fits(item) for item in value)
        ),
    )


def settings_of(kind: type[Settings]) -> Kind:
    """Settings of the class `kind`."""
    return Kind(f"a {kind.__name__}", lambda value: isinstance(value, kind))


CALLABLE = Kind("something that can be called", callable)
FLAG = Kind("True or False", lambda value: isinstance(value, bool))
PATH = Kind("a path", lambda value: isinstance(value, (str, os.PathLike)))


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _copy(value: Any) -> Any:
    """A copy of what can be changed in place; a function that is an object stays that object."""
    if isinstance(value, Settings):
        return value.copy()
    if isinstance(value, list):
        return [_copy(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _copy(item) for name, item in value.items()}
    return value
