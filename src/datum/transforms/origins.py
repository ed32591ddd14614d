"""Where a function of `datum.transforms` comes from, and NumPy code that does the same."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Origin", "find_factory", "find_origin", "numpy_code", "remember"]

_IMAGE = "<image>"  # in code: the name of the feature that a decoder is given for
_NUMPY = "import numpy"


@dataclass(frozen=True, slots=True)
class Origin:
    """What is known of a function that `datum.transforms` made.

    Attributes:
        name: the name of what made it, say "normalize".
        call: a call that makes one like it, say "random_crop(32, 32)".
        takes: what it is given: a record, or the bytes of one image.
        code: NumPy statements that do the same with a dict `record`; `<image>` stands for the name
            of a feature.
        imports: what the code needs.
        draws: whether the code draws random numbers, from `rng`.
        is_single: whether the code works on single records only, not on batches.
        is_for_graphs: whether the function needs TensorFlow's tensors.
    """

    name: str
    call: str = ""
    takes: Literal["record", "image"] = "record"
    code: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    draws: bool = False
    is_single: bool = False
    is_for_graphs: bool = True

    @classmethod
    def of_pixels(cls, name: str, *code: str, call: str = "", draws: bool = False) -> Origin:
        """A decoder, whose code works on decoded pixels."""
        imports = (_NUMPY, "from PIL import Image") if code else ()
        return cls(name, call, "image", code, imports, draws=draws, is_single=True)

    @classmethod
    def of_update(cls, name: str, feature: str, value: str, *imports: str) -> Origin:
        """A function of records that gives a feature another value."""
        return cls(name, code=(update({feature: value}),), imports=imports)


def update(values: dict[str, str]) -> str:
    """The statement that gives features other values.

    >>> update({"label": "record['label'] + 1"})
    "record = {**record, 'label': record['label'] + 1}"
    """
    items = "".join(f", {name!r}: {value}" for name, value in values.items())
    return f"record = {{**record{items}}}"


# Beside the functions, not in them: `functools.wraps` copies what a function carries.
_ORIGINS: weakref.WeakKeyDictionary[Callable[..., Any], Origin] = weakref.WeakKeyDictionary()


def remember(function: Callable[..., Any], origin: Origin) -> Callable[..., Any]:
    """`function`, whose origin `find_origin` gives from now on."""
    _ORIGINS[function] = origin
    return function


def find_origin(function: Any) -> Origin | None:
    """What is known of a function that `datum.transforms` made; None for all others."""
    while isinstance(function, functools.partial):
        function = function.func
    try:
        return _ORIGINS.get(function)
    except TypeError:  # what cannot be hashed, or referred to weakly
        return None


def find_factory(function: Any) -> str | None:
    """The name of what makes functions in `datum.transforms`; None for all others."""
    module, name = (str(getattr(function, key, "")) for key in ("__module__", "__qualname__"))
    is_ours = module.startswith(__name__.rpartition(".")[0] + ".") and "." not in name
    return name if is_ours and find_origin(function) is None else None


def join_origins(name: str, functions: Sequence[Callable[..., Any]]) -> Origin:
    """What is known of a function that calls several, one after the other."""
    found = [find_origin(function) for function in functions]
    known = [origin for origin in found if origin is not None]
    code: list[str] = []
    for function, origin in zip(functions, found, strict=True):
        own = getattr(function, "__name__", type(function).__name__)
        code += (f"record = {own}(record)",) if origin is None else origin.code
    guilty = dict.fromkeys(origin.name for origin in known if origin.is_for_graphs)
    return Origin(
        f"{name} of {', '.join(guilty)}" if guilty else name,
        takes=found[0].takes if found and found[0] is not None else "record",
        code=tuple(code),
        imports=tuple(dict.fromkeys(line for origin in known for line in origin.imports)),
        draws=any(origin.draws for origin in known),
        is_single=any(origin.is_single for origin in known),
        is_for_graphs=bool(guilty),
    )


def numpy_code(origin: Origin, feature: str) -> str:
    """A function `prepare` that does with NumPy what a function for graphs does.

    >>> print(numpy_code(Origin.of_update("twice", "x", "record['x'] * 2"), "image"))
    def prepare(record):
        record = {**record, 'x': record['x'] * 2}
        return record
    """
    body = [line.replace(_IMAGE, repr(feature)) for line in origin.code]
    head = f"def prepare(record{', rng' if origin.draws else ''}):"
    return "\n".join([*origin.imports, head, *(f"    {line}" for line in (*body, "return record"))])
