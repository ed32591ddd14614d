"""Runs stubtest taught about nanobind: signatures that `inspect` cannot read, enums, metaclass."""

import inspect
import re
import sys
from typing import Any

from mypy import stubtest

is_function = stubtest.is_probably_a_function
read_signature = stubtest.safe_inspect_signature


def is_function_or_nanobind(runtime: Any) -> bool:
    return hasattr(runtime, "__nb_signature__") or is_function(runtime)


def read_nanobind_signature(runtime: Any) -> inspect.Signature | None:
    overloads = getattr(runtime, "__nb_signature__", ())
    if len(overloads) != 1:
        return read_signature(runtime)
    text, _, defaults = overloads[0]
    for i in reversed(range(len(defaults or ()))):  # \10 before \1
        text = text.replace(f"\\{i}", f"defaults[{i}]")
    text = re.sub(r"ndarray\[[^]]*\]", "object", text)  # not Python, and types are not compared
    scope: dict[str, Any] = {"defaults": defaults}
    exec(f"from __future__ import annotations\n{text}: ...", scope)
    return inspect.signature(scope[runtime.__name__])


stubtest.is_probably_a_function = is_function_or_nanobind
stubtest.safe_inspect_signature = read_nanobind_signature
stubtest._verify_metaclass = lambda *_, **__: iter(())
stubtest.IGNORABLE_CLASS_DUNDERS |= {"__nb_enum__"}
sys.exit(stubtest.main())
