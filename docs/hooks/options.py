"""Options that are declared in a dataclass, in the reference of the functions that take them."""

from __future__ import annotations

import inspect
from functools import reduce
from typing import Any

from griffe import Extension, Parameter, ParameterKind, Parameters

__all__ = ["DeclaredOptions"]


class DeclaredOptions(Extension):
    """Document functions that take `**options` with each option, as `help` shows them."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Replace the signature and docstring of a function with those that it has when it runs."""
        if obj.is_function and obj.path.startswith("datum."):
            _expand(obj)


def _expand(function: Any) -> None:
    given = [one for one in function.parameters if one.kind is not ParameterKind.var_keyword]
    if len(given) == len(function.parameters):
        return
    found = _import(function.path)
    if not hasattr(found, "__signature__"):
        return
    known = {one.name for one in given}
    options = [
        Parameter(
            name,
            kind=ParameterKind.keyword_only,
            annotation=str(option.annotation),
            default=repr(option.default),
        )
        for name, option in inspect.signature(found).parameters.items()
        if name not in known
    ]
    function.parameters = Parameters(*given, *options)
    if function.docstring is not None:
        function.docstring.value = inspect.getdoc(found) or ""


def _import(path: str) -> Any:
    import importlib

    names = path.split(".")
    for end in range(len(names) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(names[:end]))
        except ModuleNotFoundError:
            continue
        return reduce(lambda found, name: getattr(found, name, None), names[end:], module)
    return None
