"""Functions of packages that are called like the module they are in, which would hide them."""

from __future__ import annotations

from typing import Any

from griffe import Alias, Extension

__all__ = ["FunctionsOverModules"]


class FunctionsOverModules(Extension):
    """Let `datum.format.parse` be the function, as it is in Python, not the module of that name."""

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """Put the functions in the place of their modules."""
        _uncover(pkg)


def _uncover(package: Any) -> None:
    for name, module in list(package.members.items()):
        if module.is_alias or not module.is_module:
            continue
        _uncover(module)
        if package.imports.get(name) == f"{module.path}.{name}":
            function = module.members[name]
            function.members.update(module.members)  # what others import from there is still found
            package.members[name] = Alias(name, function, parent=package)
