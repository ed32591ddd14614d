"""Settings that are merged and compared, and properties of a type to make them of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

__all__ = ["ConfigBase", "create_config", "merge_configs"]


class ConfigBase:
    """The base of all settings, and of those that programs make with `create_config`.

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
        """The names of the settings that have a value of their own."""
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
        """These settings and others in a new object; see `merge_configs`."""
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
    """Settings of one class in a new object: of each, the value that is not the default.

    Settings within settings are merged too. ValueError if two of them differ from the default and
    from each other; TypeError for objects of several classes.
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
