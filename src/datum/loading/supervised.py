"""Batches as tuples of inputs and targets: the option `supervised`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from datum.errors import Message

__all__ = ["Names", "Supervised", "check_presence", "select_parts", "supervised_names"]

Names = str | tuple[str, ...] | list[str]
Supervised = tuple[Names, ...]


def supervised_names(supervised: Supervised | None) -> list[str]:
    """All columns that `supervised` names.

    >>> supervised_names((["age", "income"], "bought"))
    ['age', 'income', 'bought']
    """
    if supervised is None:
        return []
    given: Any = supervised
    if isinstance(given, (tuple, list)) and len(given) in (2, 3):
        parts = [part if isinstance(part, (tuple, list)) else [part] for part in given]
        names = [name for part in parts for name in part]
        if all(isinstance(name, str) for name in names):
            return names
    raise TypeError(
        Message(
            "expected `supervised` to name the inputs, the targets, and maybe the weights,"
            f" got {given!r}",
            hint="supervised=('image', 'label')",
        )
    )


def check_presence(names: Collection[str], columns: Collection[str]) -> None:
    """Refuse to leave out the column that tells which records lack a feature.

    Without it a missing class would look like class 0.
    """
    for name in names:
        beside = f"{name}_present"
        if beside in columns and beside not in names:
            raise ValueError(
                Message(
                    f"`supervised`: some records may lack {name!r}, expected {beside!r} beside it,"
                    " which tells them apart",
                    hint=f"missing={{{name!r}: 'drop'}} leaves such records out, 'error' refuses"
                    f" them and a value fills them in; or name {beside!r} in `supervised`, too",
                )
            )


def select_parts(batch: Any, supervised: Supervised) -> tuple[Any, ...]:
    """The tuple of a batch: each part a column, or a dict of those that are named together."""
    names = supervised_names(supervised)
    if not isinstance(batch, Mapping) or not set(names) <= set(batch):
        got = ", ".join(map(str, batch)) if isinstance(batch, Mapping) else type(batch).__name__
        raise ValueError(f"expected batches with {', '.join(names)} for `supervised`, got {got}")
    check_presence(names, batch)
    return tuple(
        batch[part] if isinstance(part, str) else {name: batch[name] for name in part}
        for part in supervised
    )
