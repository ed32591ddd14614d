"""Import of optional packages."""

from __future__ import annotations

import importlib
from typing import Any

from datum.errors import MissingDependencyError

__all__ = ["require"]

_PACKAGES = {"sklearn": "scikit-learn"}  # modules of packages with another name


def require(module: str, *, purpose: str) -> Any:
    """Import `module`; raise MissingDependencyError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        package = _PACKAGES.get(name, name)
        raise MissingDependencyError(
            f"{purpose} needs the package `{package}`", hint=f"pip install {package}"
        ) from error
