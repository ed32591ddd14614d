"""Settings of the older library: dicts with attributes, and the defaults of its problems."""

from __future__ import annotations

import copy
import functools
import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from datum.configs import TFRWriteConfigs
from datum.errors import SourceError
from datum.older.generators import (
    ClfDatumGenerator,
    DetDatumGenerator,
    SegDatumGenerator,
    TextJsonDatumGenerator,
)
from datum.older.serializers import DatumSerializer
from datum.problem import IMAGE_CLF, IMAGE_DET, IMAGE_SEG, TEXT_CLF

if TYPE_CHECKING:
    from typing import Self

__all__ = ["PROBLEM_PARAMS", "AttrDict", "get_default_write_configs", "load_module"]

PROBLEM_PARAMS: dict[str, dict[str, Any]] = {
    IMAGE_CLF: {"serializer": "image", "generator": ClfDatumGenerator},
    IMAGE_DET: {"serializer": "image", "generator": DetDatumGenerator},
    IMAGE_SEG: {"serializer": "image", "generator": SegDatumGenerator},
    TEXT_CLF: {"serializer": "text", "generator": TextJsonDatumGenerator},
}


class AttrDict(dict[str, Any]):
    """A dict whose items are attributes too; dicts within it, also in lists, are of this class.

    >>> made = AttrDict({"train": {"num_examples": 2}})
    >>> made.train.num_examples
    2
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.update(*args, **kwargs)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set items; a dict that is there is updated, not replaced."""
        for name, value in dict(*args, **kwargs).items():
            if isinstance(value, dict) and isinstance(self.get(name), AttrDict):
                self[name].update(value)
            else:
                self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, _hold(value))

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"AttrDict has no item {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name):
            raise AttributeError(f"AttrDict.{name}: expected the name of an item, got a method")
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]

    def copy(self) -> Self:
        """A copy that shares its values."""
        return copy.copy(self)

    def deepcopy(self) -> Self:
        """A copy that shares nothing."""
        return copy.deepcopy(self)

    def to_dict(self) -> dict[str, Any]:
        """The items as plain dicts."""
        made: dict[str, Any] = _release(self)
        return made


def _hold(value: Any) -> Any:
    if isinstance(value, dict) and not isinstance(value, AttrDict):
        return AttrDict(value)
    return type(value)(map(_hold, value)) if type(value) in (list, tuple) else value


def _release(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _release(item) for name, item in value.items()}
    return type(value)(map(_release, value)) if type(value) in (list, tuple) else value


def get_default_write_configs(
    problem_type: str, label_names_file: str | os.PathLike[str] | None = None
) -> TFRWriteConfigs:
    """The generator and the serializer of a problem.

    Args:
        problem_type: One of `datum.problem.types`.
        label_names_file: The names of the classes, a line each; `image_det` needs it.
    """
    if problem_type not in PROBLEM_PARAMS:
        known = ", ".join(PROBLEM_PARAMS)
        raise SourceError(f"expected `problem_type` to be one of {known}, got {problem_type!r}")
    found = PROBLEM_PARAMS[problem_type]
    gen_config = None
    if problem_type == IMAGE_DET:
        if label_names_file is None or not Path(label_names_file).is_file():
            raise SourceError(
                f"image_det: expected `label_names_file`, a file with the names of the classes,"
                f" got {label_names_file!r}"
            )
        names = Path(label_names_file).read_text(encoding="utf-8").splitlines()
        class_map = {name: number for number, name in enumerate(names, 1)}
        gen_config = AttrDict(has_test_annotations=True, class_map=class_map)
    return TFRWriteConfigs(
        generator=functools.partial(found["generator"], gen_config=gen_config),
        serializer=DatumSerializer(found["serializer"]),
    )


def load_module(module_name: str, module_path: str | os.PathLike[str]) -> ModuleType:
    """Import a file of Python as a module of this name."""
    spec = importlib.util.spec_from_file_location(module_name, module_path)
    if spec is None or spec.loader is None:
        raise SourceError(f"{module_path}: expected a file of Python, `.py`")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
