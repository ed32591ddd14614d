"""Functions with the same name as their module, which would hide them."""

from __future__ import annotations

from typing import Any

from griffe import Alias, Extension

__all__ = ["FunctionsOverModules"]


class FunctionsOverModules(Extension):
    """Document `datum.format.parse` as the function, as in Python, not as the module."""

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """Replace the modules with the functions."""
        _uncover(pkg)


def _uncover(package: Any) -> None:
    for name, module in list(package.members.items()):
        if module.is_alias or not module.is_module:
            continue
        _uncover(module)
        if package.imports.get(name) == f"{module.path}.{name}":
            function = module.members[name]
            function.members.update(module.members)  # keep what others import from there
            package.members[name] = Alias(name, function, parent=package)
