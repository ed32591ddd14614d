"""The building blocks of functions for a TensorFlow graph."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from datum._optional import require
from datum.errors import SchemaError, suggest

__all__ = [
    "Origin",
    "Record",
    "RecordFunction",
    "apart",
    "check_size",
    "checked",
    "fail",
    "find_factory",
    "find_origin",
    "fold_in",
    "leave_as_is",
    "listed",
    "numpy_code",
    "random_seed",
    "remember",
    "take",
    "takes_seed",
    "tensorflow",
]

_IMAGE = "<image>"  # in code: the name of the feature that a decoder is used for
_NUMPY = "import numpy"


@dataclass(frozen=True, slots=True)
class Origin:
    """How `datum.transforms` made a function.

    Attributes:
        name: The name of its factory, for example "normalize".
        call: A call that makes one like it, for example "random_crop(32, 32)".
        takes: Its argument: a record, or the bytes of one image.
        code: NumPy statements that do the same with a dict `record`; `<image>` is a placeholder for
            the name of a feature.
        imports: The imports that the code needs.
        draws: Whether the code draws random numbers, from `rng`.
        is_single: Whether the code works on single records only, not on batches.
        is_for_graphs: Whether the function needs TensorFlow's tensors.
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
        """Return the origin of a decoder, whose code works on decoded pixels."""
        imports = (_NUMPY, "from PIL import Image") if code else ()
        return cls(name, call, "image", code, imports, draws=draws, is_single=True)

    @classmethod
    def of_update(cls, name: str, feature: str, value: str, *imports: str) -> Origin:
        """Return the origin of a function of records that sets a feature."""
        return cls(name, code=(update({feature: value}),), imports=imports)


def update(values: dict[str, str]) -> str:
    """Return the statement that sets features.

    >>> update({"label": "record['label'] + 1"})
    "record = {**record, 'label': record['label'] + 1}"
    """
    items = "".join(f", {name!r}: {value}" for name, value in values.items())
    return f"record = {{**record{items}}}"


# Not attributes of the functions: `functools.wraps` would copy those.
_ORIGINS: weakref.WeakKeyDictionary[Callable[..., Any], Origin] = weakref.WeakKeyDictionary()


def remember(function: Callable[..., Any], origin: Origin) -> Callable[..., Any]:
    """Register the origin of `function` for `find_origin`, and return the function."""
    _ORIGINS[function] = origin
    return function


def find_origin(function: Any) -> Origin | None:
    """Return the origin of a function that `datum.transforms` made; None for all others."""
    while isinstance(function, functools.partial):
        function = function.func
    try:
        return _ORIGINS.get(function)
    except TypeError:  # not hashable, or without weak references
        return None


def find_factory(function: Any) -> str | None:
    """Return the name of a factory of `datum.transforms`; None for all others."""
    module, name = (str(getattr(function, key, "")) for key in ("__module__", "__qualname__"))
    is_ours = module.startswith(__name__.rpartition(".")[0] + ".") and "." not in name
    return name if is_ours and find_origin(function) is None else None


def join_origins(name: str, functions: Sequence[Callable[..., Any]]) -> Origin:
    """Return the origin of a function that calls several, one after the other."""
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
    """Return the source of a NumPy function `prepare` equivalent to a function for graphs.

    >>> print(numpy_code(Origin.of_update("twice", "x", "record['x'] * 2"), "image"))
    def prepare(record):
        record = {**record, 'x': record['x'] * 2}
        return record
    """
    body = [line.replace(_IMAGE, repr(feature)) for line in origin.code]
    head = f"def prepare(record{', rng' if origin.draws else ''}):"
    return "\n".join([*origin.imports, head, *(f"    {line}" for line in (*body, "return record"))])


Record = dict[str, Any]
RecordFunction = Callable[[Record], Record]

_INT32 = 2**31
_MIX = 0x9E3779B1  # odd, and without a pattern: separates neighbours


def tensorflow() -> Any:
    """Return the package, which only the functions of `datum.transforms` need."""
    return require("tensorflow", purpose="datum.transforms")


def leave_as_is(
    function: Callable[..., Any], *, takes_seed: bool = False, origin: Origin | None = None
) -> Callable[..., Any]:
    """Mark `function` so that AutoGraph does not rewrite it, and whether it accepts `seed=`.

    `origin` is registered for functions that users get, so that other frameworks can refuse them.
    """
    made: Any = tensorflow().autograph.experimental.do_not_convert(function)
    made.takes_seed = takes_seed
    return made if origin is None else remember(made, origin)


def takes_seed(function: Any) -> bool:
    """Return whether a function accepts `seed=`: it has an attribute `takes_seed` that is true."""
    return bool(getattr(function, "takes_seed", False))


def apart(function: Callable[..., Any], *specs: Any) -> Callable[..., Any]:
    """Wrap `function` of tensors as a single operation of the calling graphs, traced only once.

    A branch that is not taken costs time for each of its operations; so rare branches are one.
    """
    tf = tensorflow()
    traced = tf.function(
        function,
        input_signature=specs,
        autograph=False,
        experimental_attributes={"_noinline": True},
    )
    return lambda *values: (function if tf.executing_eagerly() else traced)(*values)


def checked(value: Any, condition: Any, *message: Any) -> Any:
    """Return `value`, numbers or a string; raise an error within the graph unless `condition`."""
    tf = tensorflow()

    def fail_instead() -> Any:
        number = fail(*message)
        is_string = value.dtype == tf.string
        return tf.as_string(number) if is_string else value + tf.cast(number, value.dtype)

    return tf.cond(condition, lambda: value, fail_instead)


def fail(*message: Any) -> Any:
    """Return a number that raises an error with this message, of texts and numbers, when computed.

    An assertion would do, but has a side effect: TensorFlow can then no longer save the position
    of an iterator. Reading a text as a number has none.
    """
    tf = tensorflow()
    parts = [part if isinstance(part, str) else tf.as_string(part) for part in message]
    return tf.strings.to_number(tf.strings.join(parts, separator=" "), tf.int32)


def take(record: Record, name: str, where: str) -> Any:
    """Return the feature of that name; raise SchemaError if there is none."""
    if not isinstance(record, Mapping):
        raise SchemaError(
            f"expected a record, a dict of features, got {type(record).__name__}",
            where=where,
            hint="use functions of records before a record becomes a tuple",
        )
    if name in record:
        return record[name]
    hint = suggest(name, record)
    raise SchemaError(
        f"expected a feature {name!r}, got {', '.join(map(repr, sorted(record)))}",
        where=where,
        hint=hint,
        feature=name,
    )


def check_size(where: str, height: Any, width: Any) -> None:
    """Raise SchemaError unless both are numbers of pixels."""
    for name, value in (("height", height), ("width", width)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise SchemaError(
                f"expected `{name}` as a number of pixels, got {value!r}", where=where
            )


def random_seed(seed: int | None, given: Any) -> Any:
    """Return two integers for TensorFlow's stateless functions: random, or made from `given`."""
    tf = tensorflow()
    if given is None:
        return tf.random.uniform([2], -_INT32, _INT32 - 1, tf.int32, seed=seed)
    return fold_in(given, seed or 0)


def fold_in(seed: Any, number: int) -> Any:
    """Return another seed for each number, by one operation: TensorFlow mixes seeds itself."""
    tf = tensorflow()
    seed = tf.convert_to_tensor(seed)
    return tf.bitwise.bitwise_xor(seed, tf.constant([0, _MIX * (number + 1) % _INT32], seed.dtype))


def listed(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return a tuple of names; a single name may be passed without a list."""
    return (names,) if isinstance(names, str) else tuple(names)
