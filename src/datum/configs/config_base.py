"""Settings as attributes of an object, checked when they are set; merged and compared."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

from datum.errors import Message, suggest

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "CALLABLE",
    "FLAG",
    "PATH",
    "ConfigBase",
    "Kind",
    "Settings",
    "create_config",
    "is_whole",
    "list_of",
    "merge_configs",
    "settings_of",
    "whole",
]


class ConfigBase:
    """Base of all settings, also of those that programs define with `create_config`.

    >>> class Crop(ConfigBase):
    ...     side = create_config("side", int, "Pixels of a side.", lambda: 224)
    >>> crop = Crop()
    >>> crop.side = 96
    >>> crop.merge(Crop()).side
    96
    """

    def __init__(self) -> None:
        object.__setattr__(self, "_configs", {})

    def set_names(self) -> Iterable[str]:
        """The names of the settings that were set."""
        return list(vars(self)["_configs"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        names = {*self.set_names(), *other.set_names()}
        return all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment]  # settings change

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(self, name):
            raise AttributeError(f"{type(self).__name__} has no setting {name!r}")
        object.__setattr__(self, name, value)

    def merge(self, configs: Self) -> Self:
        """Merge these settings and others into a new object; see `merge_configs`."""
        merged: Self = merge_configs(self, configs)
        return merged


def create_config(
    name: str,
    ty: Any,
    docstring: str,
    default_factory: Callable[[], Any] = lambda: None,
) -> Any:
    """Make a property of a subclass of `ConfigBase` that accepts values of the type `ty` alone.

    Args:
        name: The name of the property.
        ty: A type, or several in a tuple.
        docstring: The docstring of the property.
        default_factory: Returns the value of a property that was not set.
    """

    def read(config: Any) -> Any:
        values = vars(config)["_configs"]
        if name not in values:
            values[name] = default_factory()
        return values[name]

    def change(config: Any, value: Any) -> None:
        if not isinstance(value, ty):
            where = f"{type(config).__name__}.{name}"
            raise TypeError(f"{where}: expected {ty}, got {value!r}")
        vars(config)["_configs"][name] = value

    return property(read, change, None, docstring)


def merge_configs(*configs_list: Any) -> Any:
    """Merge settings of one class into a new object with the values that are not defaults.

    Nested settings are merged too. Raises ValueError if two values differ from the default and from
    each other, and TypeError for objects of several classes.
    """
    if not configs_list:
        raise ValueError("expected settings to merge, got none")
    kind = type(configs_list[0])
    for configs in configs_list:
        if not isinstance(configs, ConfigBase) or not isinstance(configs, kind):
            raise TypeError(f"expected settings of one class, {kind.__name__}, got {configs!r}")
    default, merged = kind(), kind()
    for configs in configs_list:
        for name in configs.set_names():
            mine, other = getattr(merged, name), getattr(configs, name)
            if other == getattr(default, name):
                continue
            if mine == getattr(default, name):
                setattr(merged, name, other)
            elif isinstance(mine, ConfigBase):
                setattr(merged, name, merge_configs(mine, other))
            elif mine != other:
                raise ValueError(
                    f"{kind.__name__}.{name}: expected one value, got {mine!r} and {other!r}"
                )
    return merged


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that a setting accepts: in words, and as a test."""

    expected: str
    fits: Callable[[Any], bool]


@dataclass(kw_only=True, repr=False)
class Settings(ConfigBase):
    """Settings that are checked when they are set, as an attribute or in the constructor.

    An unknown name raises AttributeError (TypeError in the constructor), with the nearest name; a
    value of another kind raises TypeError. None is accepted where it is the default.

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
        """Raise TypeError for unknown names, with the nearest one."""
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

        def __getattr__(self, name: str) -> Any:  # called only for unknown names
            raise AttributeError(self._refuse(name))

    def set_names(self) -> Iterable[str]:
        """The names of all settings."""
        return list(vars(self))

    @classmethod
    def _refuse(cls, name: str) -> Message:
        hint = suggest(name, cls._kinds, f"there are {', '.join(cls._kinds)}")
        return Message(f"{cls.__name__} has no setting {name!r}", hint=hint)

    def __repr__(self) -> str:
        """The settings that differ from their defaults."""
        default = type(self)()
        changed = [
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if not _is_same(value, getattr(default, name))
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def copy(self) -> Self:
        """A copy of the settings; functions are shared."""
        return type(self)(**{name: _copy(value) for name, value in vars(self).items()})

    def to_dict(self) -> dict[str, Any]:
        """All settings by name; nested settings become dicts too."""
        return {
            name: value.to_dict() if isinstance(value, Settings) else _copy(value)
            for name, value in vars(self).items()
        }


def is_whole(value: Any) -> bool:
    """Whether `value` is a whole number; True and False are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def whole(expected: str, *, least: int, also: Sequence[int | None] = ()) -> Kind:
    """Whole numbers from `least` on, and the values in `also`."""
    return Kind(
        expected,
        lambda value: (
            (value is None and None in also)
            or (is_whole(value) and (value >= least or value in also))
        ),
    )


def list_of(expected: str, fits: Callable[[Any], bool]) -> Kind:
    """Lists and tuples whose items all pass `fits`."""
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


CALLABLE = Kind("a callable", callable)
FLAG = Kind("True or False", lambda value: isinstance(value, bool))
PATH = Kind("a path", lambda value: isinstance(value, (str, os.PathLike)))


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def _copy(value: Any) -> Any:
    """A copy of settings, lists and dicts; other values are shared."""
    if isinstance(value, Settings):
        return value.copy()
    if isinstance(value, list):
        return [_copy(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _copy(item) for name, item in value.items()}
    return value
