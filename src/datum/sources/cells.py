"""Text cells of CSV and JSON, converted to the features of a schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked
from datum.errors import Message
from datum.schema import Feature
from datum.schema.feature import numpy_dtype

__all__ = ["cell_kind", "convert_row", "read_cell", "read_column"]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NO_NUMBER = re.compile(r"nan|-?inf(?:inity)?", re.IGNORECASE)
_TRUTHS = {"true": True, "t": True, "yes": True, "y": True, "1": True} | {
    "false": False, "f": False, "no": False, "n": False, "0": False
}  # fmt: skip
_MOMENT = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,](?P<fraction>[0-9]{1,9}))?)?))?"
    r" ?(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?"
)


def cell_kind(feature: Feature) -> str:
    """Return the type the core reads cells as for a feature; "empty" leaves the choice to it.

    >>> cell_kind(Feature("int8")), cell_kind(Feature("datetime64[D]")), cell_kind(Feature("str"))
    ('int64', 'str', 'str')
    """
    if feature.shape or feature.sequence or feature.encoding in ("sparse", "image"):
        return "empty"
    if feature.dtype in ("str", "bytes"):
        return "str"
    if feature.dtype == "bool":
        return "bool"
    if feature.dtype.startswith("timedelta"):
        return "int64"
    if feature.dtype.startswith(("datetime", "complex")) or feature.dtype == "uint64":
        return "str"
    return "int64" if "int" in feature.dtype else "float64"


def read_column(column: Any, feature: Feature) -> tuple[Any, dict[int, str]]:
    """Convert a column that the core read as `cell_kind`; return it and the faults by row."""
    values = column.values if isinstance(column, Masked) else column
    present = column.present if isinstance(column, Masked) else np.ones(len(column), np.bool_)
    faults: dict[int, str] = {}
    if not feature.optional:
        faults = dict.fromkeys(
            np.flatnonzero(~present).tolist(), "expected a value, got an empty cell"
        )
    if feature.dtype == "bytes":
        values = BytesColumn(values.buffer, values.slices)
    elif feature.dtype.startswith("timedelta"):
        values = values.view(feature.dtype)
    elif feature.dtype != "str" and isinstance(values, BytesColumn):
        values, wrong = _read_texts(values, present, feature)
        faults |= wrong
    elif feature.dtype not in ("str", "bool"):
        lost = np.flatnonzero(_is_beyond(values, feature.dtype) & present)
        faults |= {row: _expected(feature, str(values[row])) for row in lost.tolist()}
    return (Masked(values, present) if isinstance(column, Masked) else values), faults


def _is_beyond(values: NDArray[Any], dtype: str) -> NDArray[np.bool_]:
    """Return where values are beyond the range of a type."""
    if values.dtype.kind == "i":
        limits = np.iinfo(dtype)
        return np.asarray((values < limits.min) | (values > limits.max))
    with np.errstate(over="ignore"):
        narrow = values.astype(numpy_dtype(dtype)).astype(np.float64)
    return np.asarray(np.isfinite(values) & ~np.isfinite(narrow))


def _read_texts(
    texts: BytesColumn, present: NDArray[np.bool_], feature: Feature
) -> tuple[NDArray[Any], dict[int, str]]:
    found = np.zeros(len(texts), feature.dtype)
    faults: dict[int, str] = {}
    known: dict[str, Any] = {}  # dates repeat
    for row, (text, is_there) in enumerate(zip(texts.to_list(), present.tolist(), strict=True)):
        if not is_there:
            continue
        try:
            if text not in known:
                known[text] = read_cell(text, feature)
            found[row] = known[text]
        except ValueError as error:
            faults[row] = str(error)
    return found, faults


def _expected(feature: Feature, text: str, why: str = "") -> str:
    return f"expected {feature.dtype}, got {text!r:.100}{why}"


def read_cell(text: str, feature: Feature) -> Any:
    """Convert a text to the feature's type; raise ValueError if it does not fit.

    Blanks around numbers and dates, leading zeros and a plus are allowed. Dates follow ISO 8601.

    >>> read_cell(" 007", Feature("int8")), read_cell("2024-02-01", Feature("datetime64[D]"))
    (7, np.datetime64('2024-02-01'))
    """
    if feature.dtype in ("str", "bytes"):
        return text if feature.dtype == "str" else text.encode()
    plain = text.strip(" \t")
    if feature.dtype == "bool":
        if plain.lower() not in _TRUTHS:
            raise ValueError(_expected(feature, text))
        return _TRUTHS[plain.lower()]
    if feature.dtype.startswith("datetime"):
        return _read_moment(plain, feature)
    try:
        return _read_number(plain, feature)
    except (ValueError, OverflowError):
        raise ValueError(_expected(feature, text)) from None


def _read_number(text: str, feature: Feature) -> Any:
    dtype = feature.dtype
    if dtype.startswith("complex"):
        return complex(text)
    if not _NUMBER.fullmatch(text) and ("float" not in dtype or not _NO_NUMBER.fullmatch(text)):
        raise ValueError
    if "float" in dtype:
        value = np.array([float(text)])
        if not _NO_NUMBER.fullmatch(text) and not np.isfinite(value[0]):
            raise ValueError
        if _is_beyond(value, dtype)[0]:
            raise ValueError
        return float(value[0])
    whole = int(text) if text.lstrip("+-").isdigit() else float(text)
    if whole != int(whole) or (isinstance(whole, float) and abs(whole) > 2**53):
        raise ValueError
    if dtype.startswith("timedelta"):
        return np.timedelta64(int(whole), dtype[len("timedelta64[") : -1])  # type: ignore[call-overload]
    limits = np.iinfo(dtype)
    if not limits.min <= whole <= limits.max:
        raise ValueError
    return int(whole)


def _read_moment(text: str, feature: Feature) -> np.datetime64:
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(_expected(feature, text, " (write dates as 2024-01-31, or with a time)"))
    time = (found["time"] or "00:00").replace(",", ".")
    unit = "ns" if len(found["fraction"] or "") > 6 else "us"
    try:
        moment: Any = np.array(f"{found['date']}T{time}", f"datetime64[{unit}]")[()]
    except ValueError:  # the 31st of February
        raise ValueError(_expected(feature, text)) from None
    zone = found["zone"]
    if zone not in (None, "Z"):
        minutes = 60 * int(zone[1:3]) + int(zone[-2:])
        moment -= np.timedelta64(minutes if zone[0] == "+" else -minutes, "m")
    wanted = moment.astype(feature.dtype)
    if wanted != moment:
        raise ValueError(_expected(feature, text, ", which is more precise"))
    return np.datetime64(wanted)


def convert_row(row: dict[str, Any], features: Mapping[str, Feature]) -> dict[str, Any]:
    """Convert the texts of a row to these features; features of text stay as they are.

    Nested objects become members named "outer/inner". ValueError names the feature.

    >>> convert_row({"a": {"b": "1.5"}}, {"a/b": Feature("float32")})
    {'a/b': 1.5}
    """
    converted = _flatten(row)
    for name, feature in features.items():
        is_read = feature.dtype not in ("str", "bytes") and feature.encoding != "image"
        if is_read and name in converted:
            try:
                converted[name] = _convert_value(converted[name], feature)
            except ValueError as error:
                raise ValueError(Message(error, where=f"feature {name!r}")) from None
    return converted


def _flatten(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict) and value:
            flat |= _flatten(value, f"{prefix}{name}/")
        else:
            flat[prefix + name] = value
    return flat


def _convert_value(value: Any, feature: Feature) -> Any:
    if isinstance(value, str):
        return read_cell(value, feature)
    if isinstance(value, list):
        return [_convert_value(one, feature) for one in value]
    return value
