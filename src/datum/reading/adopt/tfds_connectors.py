"""The connectors of a TFDS `features.json`, in any of the forms that its versions wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from datum.errors import ManifestError, SchemaError
from datum.format.strict_json import describe, parse_json

__all__ = ["KINDS", "Connector"]

KINDS = (
    "Audio",
    "BBoxFeature",
    "ClassLabel",
    "Dataset",
    "FeaturesDict",
    "Image",
    "LabeledImage",
    "Scalar",
    "Sequence",
    "Tensor",
    "Text",
    "Translation",
    "TranslationVariableLanguages",
    "Video",
)
_CONTENTS = {  # fields of a Feature message, one of which holds what the connector is
    "audio",
    "bounding_box",
    "class_label",
    "features_dict",
    "image",
    "json_feature",
    "sequence",
    "tensor",
    "text",
    "translation",
    "video",
}
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_INTEGER = re.compile(r"-?[0-9]{1,18}")  # a message in JSON has integers as text


@dataclass(frozen=True, slots=True)
class Connector:
    """One node of `features.json`: a feature, or a container of others.

    Attributes:
        name: of the feature, as "a/b" for "b" within "a".
        class_name: of the connector, with its module.
        kind: one of `KINDS`, or empty for a connector that is not known.
        content: its settings, if it is known; names are in snake_case.
        is_message: whether the content was a message; versions before 4.3 wrote plain JSON.
        notes: what the author said of the feature: `description`, `value_range`.
    """

    name: str
    class_name: str
    kind: str
    content: Mapping[str, Any]
    is_message: bool
    notes: Mapping[str, str]

    @classmethod
    def read(cls, found: Any, name: str) -> Connector:
        """The connector of a node; SchemaError, naming the feature, if it is none."""
        node = _names_in_snake_case(_checked_mapping(found, name, "a connector"))
        key = "type" if "type" in node else "python_class_name"
        class_name = _checked_text(node.get(key), name, f"`{key}`")
        kind = _kind_of(class_name)
        content, is_message = _read_content(node, kind, name)
        notes = {key: node[key] for key in ("description", "value_range") if node.get(key)}
        for key, text in notes.items():
            _checked_text(text, name, f"`{key}`")
        return cls(name, class_name, kind, content, is_message, notes)

    def child(self, found: Any, key: str | None = None) -> Connector:
        """The connector of a node within this one, of that key if it is one of several."""
        if key is None:
            return Connector.read(found, self.name)
        return Connector.read(found, f"{self.name}/{key}" if self.name else key)

    def nodes(self) -> Mapping[str, Any]:
        """What lies within a FeaturesDict, by keys."""
        found = self.content.get("features", {}) if self.is_message else self.content
        return _checked_mapping(found, self.name, "`features`")

    def settings(self, field: str) -> Connector | None:
        """The settings within a setting; None where it is not set."""
        found = self.content.get(field)
        if found is None:
            return None
        found = _checked_mapping(found, self.name, f"`{field}`")
        return replace(self, content=_names_in_snake_case(found))

    def text(self, field: str) -> str | None:
        """A setting that is text; None where it is not set."""
        value = self.content.get(field)
        return None if value is None else _checked_text(value, self.name, f"`{field}`")

    def texts(self, field: str) -> list[str]:
        """A setting that is a list of texts."""
        value = self.content.get(field)
        items = [] if value is None else _checked_list(value, self.name, f"`{field}`")
        return [_checked_text(item, self.name, f"`{field}`") for item in items]

    def flag(self, field: str) -> bool:
        """A setting that is true or false; false where it is not set."""
        value = self.content.get(field)
        if value is not None and not isinstance(value, bool):
            raise _error(self.name, f"expected true or false as `{field}`, got {describe(value)}")
        return bool(value)

    def integer(self, field: str) -> int | None:
        """A setting that is an integer; None where it is not set."""
        value = self.content.get(field)
        return None if value is None else _checked_integer(value, self.name, f"`{field}`")

    def length(self) -> int | None:
        """How many items a sequence has; None if that differs between records."""
        length = self.integer("length")
        if length is None:
            return 0 if self.is_message else None  # messages leave zeros out
        return _checked_size(length, self.name)

    def shape(self) -> tuple[int | None, ...]:
        """The setting `shape`, with None for dimensions that differ; empty where it is not set."""
        found = self.content.get("shape")
        found = [] if found is None else found
        if isinstance(found, Mapping):
            found = found.get("dimensions", [])
        return tuple(
            None
            if item is None
            else _checked_size(_checked_integer(item, self.name, "`shape`"), self.name)
            for item in _checked_list(found, self.name, "`shape`")
        )


def _error(name: str, problem: str) -> SchemaError:
    place = f"feature {name!r}" if name else "the features"
    return SchemaError(problem, where=place, feature=name or None)


def _parse(text: str, name: str) -> Any:
    try:
        return parse_json(text.encode("utf-8", "surrogatepass"))
    except ManifestError as error:
        raise _error(name, f"expected settings as JSON: {error}") from None


def _kind_of(class_name: str) -> str:
    """Whoever makes connectors of their own may store something else under the same names."""
    *module, kind = class_name.split(".")
    return kind if "tensorflow_datasets" in module and kind in KINDS else ""


def _read_content(node: Mapping[str, Any], kind: str, name: str) -> tuple[Mapping[str, Any], bool]:
    """The settings of a node, if it is known, and whether they were a message."""
    if not kind:
        return {}, False
    return _typed_content(node, kind, name) if "type" in node else _message_content(node, name)


def _message_content(node: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], bool]:
    fields = sorted(_CONTENTS & node.keys())
    if len(fields) != 1:
        got = ", ".join(fields) or "none"
        raise _error(name, f"expected the settings of one connector, got {got}")
    content = _checked_mapping(node[fields[0]], name, f"`{fields[0]}`")
    if fields[0] != "json_feature":
        return _names_in_snake_case(content), True
    content = _parse(_checked_text(content.get("json"), name, "`json`"), name)
    return _checked_mapping(content, name, "`json`"), False


def _typed_content(node: Mapping[str, Any], kind: str, name: str) -> tuple[Mapping[str, Any], bool]:
    """Those of a node as versions before 4.5 wrote it."""
    content, is_message = node.get("content"), bool(node.get("proto_cls"))
    if is_message and isinstance(content, str):
        content = _parse(content, name)
    content = _checked_mapping(content, name, "`content`")
    # A plain dict has its features by their own names, which stay as they are.
    is_named = kind == "FeaturesDict" and not is_message
    return content if is_named else _names_in_snake_case(content), is_message


def _names_in_snake_case(found: Mapping[str, Any]) -> dict[str, Any]:
    """Messages have their fields in camelCase, or as they were declared: readers take both."""
    return {_CAPITAL.sub(r"_\1", key).lower(): value for key, value in found.items()}


def _checked_mapping(value: Any, name: str, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _error(name, f"expected {what} as an object, got {describe(value)}")
    return value


def _checked_list(value: Any, name: str, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise _error(name, f"expected {what} as a list, got {describe(value)}")
    return value


def _checked_text(value: Any, name: str, what: str) -> str:
    if not isinstance(value, str):
        raise _error(name, f"expected {what} as text, got {describe(value)}")
    return value


def _checked_integer(value: Any, name: str, what: str) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 10**18:
        raise _error(name, f"expected {what} of integers, got {describe(value)}")
    return value


def _checked_size(value: int, name: str) -> int | None:
    """The length of a dimension; -1 stands for one that differs."""
    if value < -1:
        raise _error(name, f"expected a length of -1 or more, got {value}")
    return None if value == -1 else value
